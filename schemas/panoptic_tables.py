"""Tables of panoptic segmentation: a row a segment, whose pixels a map of ids or a mask has."""

from __future__ import annotations

import msgspec

from .columns import AREA, DATASET, DATUM_ID, ISCROWD, LABEL_VALUE, SCORE
from .contract import GROUND_TRUTHS, PREDICTIONS, Column, Table
from .geometry_columns import MASK, RASTER_BAND

SEGMENT_ID = Column(
    "segment_id",
    "whole",
    "The segment's id in the map of its image, R + 256 G + 65536 B of a picture; empty in the row"
    " of an image without segments.",
    ("segment", "instance_id", "panoptic_id"),
    nullable=True,
    low=0.0,
)
ID_MAP = Column(
    "raster",
    "raster",
    "The map of segment ids: a path of a PNG or TIFF, or rows of pixels; the same in all rows of an"
    " image. 0 is void: no segment.",
    ("raster_path", "segmentation_path", "panoptic_path", "png"),
    nullable=True,
)
_LABEL = msgspec.structs.replace(
    LABEL_VALUE, about="The class; empty in the row of an image without segments.", nullable=True
)
_MASK = msgspec.structs.replace(MASK, nullable=True)
_BAND = msgspec.structs.replace(RASTER_BAND, nullable=True)
_CROWD = msgspec.structs.replace(
    ISCROWD,
    about="1 for a region of many objects, in which predictions of its label count for nothing.",
)
_AREA = msgspec.structs.replace(
    AREA, about="Annotated area in pixels, which dialect coco goes by.", nullable=True
)
_NO_SCORES = ((SCORE, "segments of an image do not overlap, and count whatever their score"),)

PANOPTIC_PREDICTIONS = Table(
    "panoptic",
    PREDICTIONS,
    (DATUM_ID, _LABEL),
    (SEGMENT_ID, ID_MAP, _MASK, _BAND, DATASET),
    any_of=("raster", "mask"),
    signs=("segment_id",),
    formats=("panoptic",),
    shape="segments",
    lack="no pixels of segments were predicted",
    unread=_NO_SCORES,
)
PANOPTIC_GROUND_TRUTHS = Table(
    "panoptic",
    GROUND_TRUTHS,
    (DATUM_ID, _LABEL),
    (SEGMENT_ID, ID_MAP, _MASK, _BAND, _CROWD, _AREA, DATASET),
    any_of=("raster", "mask"),
    signs=("segment_id",),
    formats=("panoptic",),
    shape="segments",
    like=("boxes",),
    lack="no segments have pixels",
)
