"""Time a comparison of two detectors with resamples against hotcoco's, side by side.

    python benchmarks/intervals_detection.py images-1000 images-5000 \
        --peers-python PEERS/bin/python --write-docs

The sets are those of intervals_detection_data.py; `--scale 0.02` tries everything on small ones.
sections.py describes the measurement. PEERS is an environment with hotcoco.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import section_reporting
from section_reporting import Line, Words, ratio
from sections import OURS, Benchmark, Section, main

SECTIONS = {
    "images-1000": Section((*OURS, "hotcoco"), warm_up=0.02, sampled=("hotcoco",)),
    "images-5000": Section((*OURS, "hotcoco"), warm_up=0.004, sampled=("hotcoco",)),
}
SIZES = {
    "images-1000": "1,000 images x 80 classes, 50 k detections a model",
    "images-5000": "5,000 images x 80 classes, 250 k detections a model",
}
MOST_CPU = {"images-1000": 6.0, "images-5000": 20.0}
ABOUT = """\
From files to the differences of COCO's twelve numbers with 1,000 paired resamples, every
measurement in a fresh process, contenders taking turns. evalengine reads Parquet, hotcoco COCO
JSON. CPU is user and system seconds over all threads. *Relative* is to the peer's figure of the
same column. *Values* are the twelve differences, compared with {reference}'s, in every run.
Intervals are not compared: hotcoco counts an image that is repeated in a resample once. Its
resamples are samples of 63 %, and its standard errors are too small. evalengine also tests all 24
numbers by randomisation (1,000 more resamples) and compares single images; hotcoco has neither.
"""
SAMPLED = "hotcoco resamples {} times; its figures are {} times that sample, plus matching once."
NOTES = {"images-1000": SAMPLED.format(100, 10), "images-5000": SAMPLED.format(50, 20)}


def title(result: dict[str, Any]) -> str:
    scale = "" if result["scale"] == 1 else f", {result['scale']:g} of it"
    return f"Two detectors compared in 1,000 resamples, {SIZES[result['section']]}{scale}"


def goals(result: dict[str, Any], peers: list[str]) -> list[Line]:
    """CPU seconds, and ratios to the peer."""
    contenders = result["contenders"]
    inside = contenders["evalengine-1"]["in_process"]["total_cpu"]
    one = contenders["evalengine-1"]["in_process"]["total_cpu"] / min(
        contenders[name]["in_process"]["total_cpu"] for name in peers
    )
    return [
        ("in process, one thread, CPU seconds", inside, MOST_CPU[result["section"]]),
        ("in process, one thread, CPU, against the peer", one, 1 / 15),
        (
            "in process, CPU, against the peer",
            ratio(contenders, "in_process", "total_cpu", peers),
            1 / 15,
        ),
        (
            "in process, wall, against the peer",
            ratio(contenders, "in_process", "total_wall", peers),
            None,
        ),
    ]


WORDS = Words("intervals_detection", title, goals, about=ABOUT, notes=NOTES)
BENCHMARK = Benchmark(
    "intervals_detection",
    SECTIONS,
    references=("hotcoco",),
    page=partial(section_reporting.page, WORDS),
)


if __name__ == "__main__":
    main(BENCHMARK)
