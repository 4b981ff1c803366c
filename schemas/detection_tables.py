"""Tables of detection."""

from __future__ import annotations

import msgspec

from .columns import (
    ANNOTATION_ID,
    AREA,
    BBOX,
    BOX_HEIGHT,
    BOX_WIDTH,
    DATASET,
    DATUM_ID,
    IGNORE,
    ISCROWD,
    LABEL_KEY,
    LABEL_VALUE,
    OCCLUDED,
    SCORE,
    TRUNCATED,
    WEIGHT,
    XMAX,
    XMIN,
    YMAX,
    YMIN,
)
from .contract import GROUND_TRUTHS, PREDICTIONS, Table
from .geometry_columns import (
    ALPHA,
    ANGLE,
    BOX3D,
    HEAD_SIZE,
    KEYPOINTS,
    MASK,
    NUM_KEYPOINTS,
    OBB,
    OF_SOLIDS,
    POLYGON,
    RASTER,
    RASTER_BAND,
    RASTER_VALUE,
)

_SCORE = msgspec.structs.replace(SCORE, otherwise=" Ultralytics writes it with save_conf=True.")
_BOX = (XMIN, YMIN, XMAX, YMAX)
# A row with one of these needs no box.
_SHAPES = tuple(
    msgspec.structs.replace(column, nullable=True)
    for column in (POLYGON, OBB, BOX3D, MASK, KEYPOINTS, RASTER, RASTER_BAND, RASTER_VALUE)
)
_COMMON = (LABEL_KEY, DATASET, BOX_WIDTH, BOX_HEIGHT, BBOX, *_SHAPES, *OF_SOLIDS[:-1], ALPHA)
_SEEN = tuple(msgspec.structs.replace(one, nullable=True) for one in (OCCLUDED, TRUNCATED))

_UNREAD = (
    (WEIGHT, "detection has no sample weights"),
    (
        ANGLE,
        "boxes are compared upright; of oriented ones give cx, cy, w, h, angle and angle_format, or"
        " four corners in a column polygon",
    ),
)

DETECTION_PREDICTIONS = Table(
    "detection",
    PREDICTIONS,
    (DATUM_ID, LABEL_VALUE, _SCORE, *_BOX),
    _COMMON,
    signs=("xmin", "ymin", "xmax", "ymax", "bbox"),
    formats=("coco", "annotations", "images", "nuscenes"),
    shape="boxes",
    unread=_UNREAD,
    as_written=("voc2007", "voc2012", "voc-detectron2", "voc-mmdetection", "dota", "mmrotate"),
    found_by=(SCORE.name, *SCORE.aliases),
)
DETECTION_GROUND_TRUTHS = Table(
    "detection",
    GROUND_TRUTHS,
    (DATUM_ID, LABEL_VALUE, *_BOX),
    (
        *(*_COMMON, OF_SOLIDS[-1], NUM_KEYPOINTS, HEAD_SIZE, ISCROWD, IGNORE, *_SEEN, AREA),
        ANNOTATION_ID,
    ),
    signs=("xmin", "ymin", "xmax", "ymax", "bbox"),
    formats=("coco", "annotations", "images", "nuscenes"),
    shape="boxes",
    unread=_UNREAD,
)

# Classification: common names of a row, the truth, the prediction, and its confidence.
