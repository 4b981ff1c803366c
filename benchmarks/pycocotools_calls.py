"""Time pycocotools' calls over evalengine against other evaluators that have them, side by side.

    python benchmarks/pycocotools_calls.py objects files --peers-python PEERS/bin/python \
        --write-docs

`objects` begins with the dicts and lists of a training loop, `files` with COCO's two JSON files;
the set is that of pycocotools_calls_data.py. sections.py describes the measurement. PEERS is an
environment with hotcoco, ultrafast-pycocotools, faster-coco-eval and pycocotools.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import Line, Words, ratio
from sections import Benchmark, Section, main

OURS = {"evalengine-2": "**evalengine**, `compat.pycocotools`"}
CONTENDERS = (*OURS, "hotcoco", "ultrafast-pycocotools", "faster-coco-eval", "pycocotools")
SECTIONS = {"objects": Section(CONTENDERS), "files": Section(CONTENDERS, data="objects")}
BEGINNINGS = {"objects": "rows in memory", "files": "JSON files"}
ABOUT = """\
`COCO`, `loadRes`, `COCOeval`, `evaluate`, `accumulate`, `summarize` of boxes, every measurement in
a fresh process, contenders taking turns. CPU is user and system seconds over all threads.
*Relative* is to the best peer's figure of the same column: below 1 is better than every peer.
*Values* are the twelve numbers, compared with {reference}'s, in every run.
"""
NOTES = {
    "objects": (
        "The clock starts once json has made dicts and lists of the files; whole processes do that,"
        " too, and take longer and more memory for it."
    )
}


def title(result: dict[str, Any]) -> str:
    images = round(5_000 * result["scale"])
    return (
        f"pycocotools' calls from {BEGINNINGS[result['section']]}, {images:,} images x 80 classes"
    )


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """CPU and wall seconds against hotcoco, and against the best of the peers."""
    contenders = result["contenders"]
    lines: list[Line] = []
    for whose, some in (("hotcoco", ["hotcoco"]), ("the best peer", peers)):
        if set(some) <= set(contenders):
            cpu, wall = (
                ratio(contenders, "in_process", f"total_{kind}", some) for kind in ("cpu", "wall")
            )
            limit = 0.6 if whose == "hotcoco" and result["section"] == "objects" else None
            lines += [(f"in process, CPU, against {whose}", cpu, limit)]
            lines += [(f"in process, wall, against {whose}", wall, None)]
    return lines


WORDS = Words("pycocotools_calls", title, goals, names=OURS, about=ABOUT, notes=NOTES)
BENCHMARK = Benchmark(
    "pycocotools_calls",
    SECTIONS,
    references=("pycocotools",),
    page=partial(section_reporting.page, WORDS),
)


if __name__ == "__main__":
    main(BENCHMARK)
