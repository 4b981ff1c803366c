"""KITTI objects: one text file per image; one line per object: class, 14 numbers, score of
detections.

The numbers are truncation, occlusion, angle, the box in pixels (xmin, ymin, xmax, ymax), 3-D size,
position and rotation: https://www.cvlibs.net/datasets/kitti/eval_object.php
"""

from __future__ import annotations

from typing import Any

import polars as pl

from .format import (
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

_COUNTS = (15, 16)  # fields of ground truths, and of detections
_REGION = "DontCare"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def _detect(look: Look) -> bool:
    return look.mostly(lambda head: _is_label(head.decode("utf-8", "replace")), ".txt")


def _is_label(head: str) -> bool:
    fields = head.split("\n", 1)[0].split()
    return len(fields) in _COUNTS and not is_number(fields[0]) and all(map(is_number, fields[1:]))


def _read(look: Look) -> Annotations:
    files = look.of(".txt")
    ids = image_ids(look, files, below="label_2")
    rows: list[dict[str, Any]] = []
    regions: dict[str, list[float]] = {datum: [] for datum in ids}
    for file, datum in zip(files, ids, strict=True):
        for line, fields in lines_of(file):
            one = _object(file, line, fields)
            if fields[0] == _REGION:
                regions[datum] += [one[name] for name in _CORNERS]
            else:
                rows.append({"datum_id": datum, **one})
    schema: dict[str, Any] = {"datum_id": pl.String, "label_value": pl.String, "score": pl.Float64}
    schema |= dict.fromkeys((*_CORNERS, "truncated", "alpha"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema | {"occluded": pl.Int64, "box3d": pl.List(pl.Float64)})
    bare = frame["score"].null_count()
    if 0 < bare < frame.height:
        raise broken(
            look.given,
            None,
            f"{bare:,} of {frame.height:,} lines have no score",
            "Write it on every line, or on none.",
        )
    many = sum(map(len, regions.values())) // len(_CORNERS)
    said = (
        f"{many:,} regions {_REGION!r} are skipped: detections in them count as false positives "
        "here; dialect kitti ignores them."
    )
    datums = {"datum_id": ids, "regions": [*regions.values()]} if many else {"datum_id": ids}
    return Annotations(
        rows=frame.drop("score") if bare else frame,
        datums=pl.DataFrame(
            datums, schema_overrides={"datum_id": pl.String, "regions": pl.List(pl.Float64)}
        ),
        notes=(("regions_left_out", said, many),) if many else (),
    )


def _object(file: str, line: int, fields: list[str]) -> dict[str, Any]:
    if len(fields) not in _COUNTS:
        raise broken(
            file,
            line,
            f"{len(fields)} fields: {shown(fields)}",
            "Expected a class and 14 numbers; detections also a score.",
        )
    numbers = numbers_in(file, line, fields[1:])
    return {
        "label_value": fields[0],
        "score": numbers[14] if len(numbers) > 14 else None,
        **dict(zip(_CORNERS, numbers[3:7], strict=True)),
        "truncated": numbers[0],
        "alpha": numbers[2],
        "occluded": int(numbers[1]),
        # KITTI writes height, width, length, then the middle of the bottom, and rotation_y
        "box3d": [*numbers[10:13], numbers[9], numbers[8], numbers[7], numbers[13]],
    }


KITTI = Format("kitti", (".txt",), _detect, _read)
