"""nuScenes' JSON of 3-D boxes: ``results`` maps every sample to its boxes, next to ``meta``.

A box has its centre (``translation``), ``size`` (width, length, height) and ``rotation`` (a
quaternion, real part first), in metres with z up. https://www.nuscenes.org/object-detection
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import polars as pl

from evalengine.schemas.errors import ReadError

from ..boxes_3d import SAID
from .json_rows import UNREADABLE, malformed
from .source import Source

_OF_JSON = re.compile(rb'("(?:[^"\\]|\\.)*")|\bNaN\b')
_FIELDS = (b'"results"', b'"translation"', b'"rotation"')


class _Box(msgspec.Struct):
    """One box of a sample; those of ground truths have no score, or -1."""

    translation: tuple[float, float, float]
    size: tuple[float, float, float]
    rotation: tuple[float, float, float, float]
    detection_name: str
    velocity: tuple[float | None, float | None] | None = None
    detection_score: float | None = None
    attribute_name: str | None = None
    num_pts: int | None = None
    ego_translation: tuple[float, float, float] | None = None

    def row(self, sample: str) -> tuple[Any, ...]:
        """The box in canonical columns, as :data:`_SCHEMA` has them."""
        w, x, y, z = self.rotation
        yaw = math.atan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z)
        wide, long, tall = self.size
        vx, vy = self.velocity or (None, None)
        score = None if self.detection_score == -1 else self.detection_score
        away = self.ego_translation
        far = None if away is None else math.hypot(away[0], away[1])
        numbers = [*self.translation, long, wide, tall, yaw]
        return (sample, self.detection_name, score, numbers, vx, vy, self.attribute_name, far,
                self.num_pts)  # fmt: skip


class _File(msgspec.Struct):
    results: dict[str, list[_Box]]


_SCHEMA: dict[str, Any] = {
    "datum_id": pl.String, "label_value": pl.String, "score": pl.Float64,
    SAID: pl.List(pl.Float64), "vx": pl.Float64, "vy": pl.Float64, "attribute": pl.String,
    "ego_distance": pl.Float64, "num_points": pl.Int64,
}  # fmt: skip
_OPTIONAL = ("score", "vx", "vy", "attribute", "ego_distance", "num_points")


def is_nuscenes(head: bytes) -> bool:
    return all(field in head for field in _FIELDS)


def read_nuscenes(buffer: Any, name: str) -> Source:
    """Read a file as one side; samples become datums if it contains ground truths.

    Raises:
        ReadError: not JSON, or boxes with missing or invalid fields.
    """
    text = bytes(buffer)
    if b"NaN" in text:  # which the kit writes for velocities that are not known
        text = _OF_JSON.sub(lambda found: found[1] or b"null", text)
    try:
        found = msgspec.json.decode(text, type=_File).results
    except msgspec.ValidationError as error:
        raise ReadError(
            f"{name}: not nuScenes' boxes: {error}. Needed of each are translation, size, rotation,"
            " detection_name and, of detections, detection_score."
        ) from None
    except UNREADABLE as error:
        raise malformed(error, text, 0, name) from None
    rows = [box.row(sample) for sample, boxes in found.items() for box in boxes]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    # The kit writes -1 and 0 for unknown; mixed with other values they are literal.
    unknown = {"num_points": -1, "ego_distance": 0}
    told = {one: frame[one].drop_nulls() for one in _OPTIONAL}
    told |= {one: told[one].filter(told[one] != known) for one, known in unknown.items()}
    frame = frame.drop([one for one, values in told.items() if values.is_empty()])
    scored = "score" in frame.columns
    datums = None if scored else pl.DataFrame({"datum_id": [*found]}, {"datum_id": pl.String})
    return Source(frame.lazy(), name, "nuscenes", (name,), datums=datums)
