"""Time calls of rouge-score, sacrebleu and ranx, by evalengine's drop-ins and by the packages.

    python benchmarks/compat_text_retrieval.py rouge bleu sentence-bleu chrf evaluate compare \
        --peers-python PEERS/bin/python --write-docs

The sets are those of compat_text_retrieval_data.py; sections.py describes the measurement. PEERS is
an environment with rouge-score, sacrebleu, ranx and polars.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import Line, Words, ratio
from sections import Benchmark, Section, main

OURS = {
    "evalengine-2": "**evalengine**, the same calls",
    "evalengine-2-all": "**evalengine**, all pairs in one call",
}
ONE, BOTH = ("evalengine-2",), tuple(OURS)
SECTIONS = {
    "rouge": Section(("rouge-score", *BOTH), data="pairs"),
    "bleu": Section(("sacrebleu", *ONE), data="pairs"),
    "sentence-bleu": Section(("sacrebleu", *BOTH), data="pairs"),
    "evaluate": Section(("ranx", *ONE), data="queries"),
}
TITLES = {
    "rouge": ("rouge-score's calls: ROUGE-1, -2 and -L", 20_000, "pairs of 60 words"),
    "bleu": ("sacrebleu's calls: corpus BLEU", 20_000, "pairs of 60 words"),
    "sentence-bleu": ("sacrebleu's calls: sentence BLEU", 20_000, "pairs of 60 words"),
    "evaluate": ("ranx's calls: five metrics of a run", 10_000, "queries x 100 documents"),
}
ABOUT = """\
Texts or dicts are in memory when the clock starts; every measurement in a fresh process, contenders
taking turns. CPU is user and system seconds over all threads. *Relative* is to the package's own
figure of the same column: below 1 is better. *Values* are compared with {reference}'s, in every
run.
"""
NOTES = {
    "evaluate": (
        "Whole processes of ranx compile its kernels, which the warm-up has done in process."
    )
}


def title(result: dict[str, Any]) -> str:
    what, many, of = TITLES[result["section"]]
    return f"{what}, {round(many * result['scale']):,} {of}"


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """CPU and wall seconds of the same calls, against those of the package."""
    contenders = result["contenders"]
    if not peers:
        return []
    return [
        (f"in process, {what}", ratio(contenders, "in_process", f"total_{kind}", peers), None)
        for kind, what in (("cpu", "CPU"), ("wall", "wall"))
    ]


WORDS = Words("compat_text_retrieval", title, goals, names=OURS, about=ABOUT, notes=NOTES)
BENCHMARK = Benchmark(
    "compat_text_retrieval",
    SECTIONS,
    references=("rouge-score", "sacrebleu", "ranx"),
    page=partial(section_reporting.page, WORDS),
)


if __name__ == "__main__":
    main(BENCHMARK)
