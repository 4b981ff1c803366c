"""DOTA: one text file per image; one line per oriented box: four corners, class, difficulty.

``x1 y1 x2 y2 x3 y3 x4 y4 class difficulty`` in pixels, after lines that begin with ``imagesource:``
and ``gsd:``: https://captain-whu.github.io/DOTA/dataset.html
"""

from __future__ import annotations

from typing import Any

import polars as pl

from .format import (
    RINGS,
    Annotations,
    Format,
    Look,
    broken,
    image_ids,
    is_number,
    lines_of,
    numbers_in,
    shown,
)

_HEADERS = ("imagesource:", "gsd:")
_CORNERS = 8


def _detect(look: Look) -> bool:
    return look.mostly(lambda head: _is_label(head.decode("utf-8", "replace")), ".txt")


def _is_label(head: str) -> bool:
    """Return whether the first line after the headers is eight numbers and a word."""
    lines = (line.split() for line in head.splitlines())
    for fields in lines:
        if fields and not _is_header(fields):
            return (
                len(fields) in (_CORNERS + 1, _CORNERS + 2)
                and all(map(is_number, fields[:_CORNERS]))
                and not is_number(fields[_CORNERS])
            )
    return head.lower().startswith(_HEADERS)


def _is_header(fields: list[str]) -> bool:
    return fields[0].lower().startswith(_HEADERS)


def _read(look: Look) -> Annotations:
    files = look.of(".txt")
    ids = image_ids(look, files, below="labelTxt")
    rows: list[dict[str, Any]] = []
    for file, datum in zip(files, ids, strict=True):
        for line, fields in lines_of(file):
            if not _is_header(fields):
                rows.append({"datum_id": datum, **_object(file, line, fields)})
    schema: dict[str, Any] = {
        "datum_id": pl.String,
        "label_value": pl.String,
        "xmin": pl.Float64,
        "ymin": pl.Float64,
        "xmax": pl.Float64,
        "ymax": pl.Float64,
        "polygon": RINGS,
        "difficult": pl.Int64,
    }
    frame = pl.DataFrame(rows, schema=schema)
    if frame["difficult"].null_count() == frame.height:
        frame = frame.drop("difficult")
    return Annotations(rows=frame, datums=pl.DataFrame({"datum_id": ids}, {"datum_id": pl.String}))


def _object(file: str, line: int, fields: list[str]) -> dict[str, Any]:
    if len(fields) not in (_CORNERS + 1, _CORNERS + 2):
        raise broken(
            file,
            line,
            f"{len(fields)} fields: {shown(fields)}",
            "Expected eight coordinates, a class and, optionally, the difficulty.",
        )
    numbers = numbers_in(file, line, fields[:_CORNERS])
    xs, ys = numbers[::2], numbers[1::2]
    difficult = fields[_CORNERS + 1 :]
    return {
        "label_value": fields[_CORNERS],
        "xmin": min(xs),
        "ymin": min(ys),
        "xmax": max(xs),
        "ymax": max(ys),
        "polygon": [[[x, y] for x, y in zip(xs, ys, strict=True)]],
        "difficult": int(numbers_in(file, line, difficult)[0]) if difficult else None,
    }


DOTA = Format("dota", (".txt",), _detect, _read)
