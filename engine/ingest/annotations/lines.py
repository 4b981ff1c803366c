"""Text with one object per line: DOTA, KITTI's boxes and KITTI's tracks.

DOTA has one file per image. After lines that begin with ``imagesource:`` and ``gsd:``, a line is
four corners in pixels, a class and a difficulty: https://captain-whu.github.io/DOTA/dataset.html

KITTI has one file per image. A line is a class, truncation, occlusion, angle, the box in pixels
(xmin, ymin, xmax, ymax), seven numbers of a 3-D box, and a score in results. Tracks have one file
per sequence, with frame and id before the class:
https://www.cvlibs.net/datasets/kitti/eval_object.php
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from ..geometry import CORNER_NAMES
from .format import (
    OBJECTS,
    RINGS,
    Annotations,
    Format,
    Look,
    image_ids,
    images_of,
    is_number,
    lines_of,
    numbers_in,
    polygon_row,
    scored_or_not,
    whole_in,
    without_empty,
    wrong_fields,
)
from .tracks import REGION, sequences_of, without_ids


class _Lines(NamedTuple):
    """Lines of numbers around a word.

    Attributes:
        counts: possible numbers of fields.
        word: index of the class.
        expected: the fields, for messages.
        headers: beginnings of lines before the first object.
        tested: fields of the first line that identify the format.
    """

    counts: tuple[int, int]
    word: int
    expected: str
    headers: tuple[str, ...] = ()
    tested: int = 99

    def fit(self, head: bytes) -> bool:
        """Return whether the first line that is no header has these fields."""
        text = head.decode("utf-8", "replace")
        for fields in map(str.split, text.splitlines()):
            if fields and not self._is_header(fields):
                numbers = [one for at, one in enumerate(fields[: self.tested]) if at != self.word]
                return (
                    len(fields) in self.counts
                    and not is_number(fields[self.word])
                    and all(map(is_number, numbers))
                )
        return text.lower().startswith(self.headers)

    def _is_header(self, fields: list[str]) -> bool:
        return fields[0].lower().startswith(self.headers)

    def objects(self, file: str) -> Iterator[tuple[int, list[str], list[float]]]:
        """Yield the number, the fields and the numbers of every line."""
        for line, fields in lines_of(file):
            if self._is_header(fields):
                continue
            if len(fields) not in self.counts:
                raise wrong_fields(file, line, fields, self.expected)
            rest = fields[: self.word] + fields[self.word + 1 :]
            yield line, fields, numbers_in(file, line, rest)


_CORNERS = 8
_DOTA = _Lines(
    (_CORNERS + 1, _CORNERS + 2),
    _CORNERS,
    "Expected eight coordinates, a class and, optionally, the difficulty.",
    ("imagesource:", "gsd:"),
    _CORNERS,
)
_KITTI = _Lines((15, 16), 0, "Expected a class and 14 numbers; detections also a score.")
_TRACKS = _Lines(
    (17, 18), 2, "Expected a frame, an id, a class and 14 numbers; results also a score."
)


def _read_dota(look: Look) -> Annotations:
    files = look.of(".txt")
    ids = image_ids(look, files, below="labelTxt")
    rows: list[dict[str, Any]] = []
    for file, datum in zip(files, ids, strict=True):
        for _, fields, numbers in _DOTA.objects(file):
            ring = [
                [x, y] for x, y in zip(numbers[:_CORNERS:2], numbers[1:_CORNERS:2], strict=True)
            ]
            difficult = int(numbers[_CORNERS]) if len(numbers) > _CORNERS else None
            row = {"datum_id": datum, "label_value": fields[_CORNERS], **polygon_row(ring)}
            rows.append({**row, "difficult": difficult})
    schema = {name: dtype for name, dtype in OBJECTS.items() if name != "score"}
    frame = pl.DataFrame(rows, schema=schema | {"polygon": RINGS, "difficult": pl.Int64})
    return Annotations(rows=without_empty(frame, ["difficult"]), datums=images_of(ids))


def _of_kitti(numbers: list[float]) -> dict[str, Any]:
    """The score and the box of a line, from the numbers behind its class."""
    score = numbers[14] if len(numbers) > 14 else None
    return {"score": score, **dict(zip(CORNER_NAMES, numbers[3:7], strict=True))}


def _read_kitti(look: Look) -> Annotations:
    files = look.of(".txt")
    ids = image_ids(look, files, below="label_2")
    rows: list[dict[str, Any]] = []
    regions: dict[str, list[float]] = {datum: [] for datum in ids}
    for file, datum in zip(files, ids, strict=True):
        for _, (label, *_), numbers in _KITTI.objects(file):
            if label == REGION:
                regions[datum] += numbers[3:7]
                continue
            rows.append(
                {
                    "datum_id": datum,
                    "label_value": label,
                    **_of_kitti(numbers),
                    "truncated": numbers[0],
                    "alpha": numbers[2],
                    "occluded": int(numbers[1]),
                    # Written are height, width, length, the middle of the bottom, and rotation_y.
                    "box3d": [*numbers[10:13], numbers[9], numbers[8], numbers[7], numbers[13]],
                }
            )
    schema = OBJECTS | dict.fromkeys(("truncated", "alpha"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema | {"occluded": pl.Int64, "box3d": pl.List(pl.Float64)})
    many = sum(map(len, regions.values())) // len(CORNER_NAMES)
    message = (
        f"{many:,} regions {REGION!r} are skipped: detections in them count as false positives "
        "here; dialect kitti ignores them."
    )
    datums = images_of(ids)
    if many:
        column = pl.Series("regions", [*regions.values()], dtype=pl.List(pl.Float64))
        datums = datums.with_columns(column)
    return Annotations(
        rows=scored_or_not(frame, look),
        datums=datums,
        notes=(("regions_left_out", message, many),) if many else (),
    )


def _read_tracks(look: Look) -> Annotations:
    files = look.of(".txt")
    names = sequences_of(files, look)
    rows: list[dict[str, Any]] = []
    for file, name in zip(files, names, strict=True):
        regions = 0
        for line, fields, numbers in _TRACKS.objects(file):
            frame, own = whole_in(file, line, fields[:2])
            region = fields[2] == REGION
            regions += region
            rows.append(
                {
                    "sequence": name,
                    "frame": frame,
                    "object_id": -regions if region else own,  # each region is one by itself
                    "label_value": fields[2],
                    **_of_kitti(numbers[2:]),
                    "truncated": int(numbers[2]),
                    "occluded": int(numbers[3]),
                    "region": region,
                }
            )
    schema: dict[str, Any] = {"sequence": pl.String, "frame": pl.Int64, "object_id": pl.Int64}
    schema |= {name: dtype for name, dtype in OBJECTS.items() if name != "datum_id"}
    schema |= {"truncated": pl.Int64, "occluded": pl.Int64, "region": pl.Boolean}
    table = pl.DataFrame(rows, schema=schema)
    lone = (pl.col("object_id") < 0) & ~pl.col("region")
    return without_ids(table, images_of(names), negative=lone)


DOTA = Format("dota", (".txt",), _read_dota, _DOTA.fit)
KITTI = Format("kitti", (".txt",), _read_kitti, _KITTI.fit)
KITTI_TRACKS = Format("kitti-tracking", (".txt",), _read_tracks, _TRACKS.fit, datum="sequence")
