"""Detections in a text file a class: those of Pascal VOC's and DOTA's development kits.

``image score xmin ymin xmax ymax``, or four corners of an oriented box in place of two. The class
stands in the name: ``comp4_det_test_car.txt``, ``Task1_ship.txt``, ``car.txt``.
"""

from __future__ import annotations

import os
import re
from typing import Any

import polars as pl

from .format import FIRST, RINGS, Annotations, Format, Look, broken
from .image_headers import SUFFIXES
from .text_lines import is_number, lines_of, numbers_in, shown

_CLASS = re.compile(r"^(?:comp\d+_det_[^_]+_|Task\d+_|det_[^_]+_)?(.+)\.txt$", re.IGNORECASE)
_COUNTS = (6, 10)  # fields of a line: of boxes, and of oriented ones


def _detect(look: Look) -> bool:
    return look.mostly(lambda head: _is_result(head.decode("utf-8", "replace")), ".txt")


def _is_result(head: str) -> bool:
    fields = head.split("\n", 1)[0].split()
    return len(fields) in _COUNTS and all(map(is_number, fields[1:]))


def _read(look: Look) -> Annotations:
    rows: list[dict[str, Any]] = []
    labels = []
    starts = {}
    for file in look.of(".txt"):
        named = _CLASS.match(os.path.basename(file))
        assert named is not None  # a name that ends in .txt
        labels.append(named[1])
        starts[file] = len(rows)
        for line, fields in lines_of(file):
            rows.append({"label_value": named[1], **_object(file, line, fields)})
    schema: dict[str, Any] = {"datum_id": pl.String, "label_value": pl.String}
    schema |= dict.fromkeys(("score", "xmin", "ymin", "xmax", "ymax"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema | {"polygon": RINGS})
    if frame["polygon"].null_count():
        frame = frame.drop("polygon")
    ends = [*starts.values(), len(rows)][1:]
    return Annotations(
        rows=frame,
        firsts={
            file: frame[start : min(end, start + FIRST)]
            for (file, start), end in zip(starts.items(), ends, strict=True)
        },
        datums=frame.select(pl.col("datum_id").unique(maintain_order=True)),
        labels=pl.DataFrame({"label_value": labels}, {"label_value": pl.String}).unique(
            maintain_order=True
        ),
    )


def _object(file: str, line: int, fields: list[str]) -> dict[str, Any]:
    if len(fields) not in _COUNTS:
        raise broken(
            file, line, f"{len(fields)} fields: {shown(fields)}",
            "Needed are an image, a score, and two or four corners.",
        )  # fmt: skip
    score, *numbers = numbers_in(file, line, fields[1:])
    xs, ys = numbers[::2], numbers[1::2]
    return {
        "datum_id": os.path.splitext(os.path.basename(fields[0]))[0]
        if fields[0].lower().endswith(SUFFIXES)
        else fields[0],
        "score": score,
        "xmin": min(xs), "ymin": min(ys), "xmax": max(xs), "ymax": max(ys),
        "polygon": [[[x, y] for x, y in zip(xs, ys, strict=True)]] if len(xs) > 2 else None,
    }  # fmt: skip


CLASS_RESULTS = Format("voc-results", (".txt",), _detect, _read)
