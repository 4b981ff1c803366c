"""Tables of semantic segmentation: label maps, or masks and polygons of one label each."""

from __future__ import annotations

from .columns import (
    DATASET,
    DATUM_ID,
    HEIGHT,
    ISCROWD,
    LABEL_KEY,
    LABEL_VALUE,
    SCORE,
    WEIGHT,
    WIDTH,
)
from .contract import GROUND_TRUTHS, PREDICTIONS, Column, Table
from .geometry_columns import MASK, POLYGON, RASTER, RASTER_BAND, RASTER_CODING, RASTER_VALUE
from .wording import option

LABEL_MAP = Column(
    "raster",
    "raster",
    "Label indices: a path of a raster file (PNG, TIFF, GeoTIFF), or rows of pixels; one row a"
    " datum and label key. Beside label_value, a file or pixels of that label alone.",
    RASTER.aliases,
    nullable=True,
)
LABEL_MASK = Column(MASK.name, MASK.kind, MASK.about, MASK.aliases, nullable=True)
LABEL_POLYGON = Column(
    POLYGON.name,
    POLYGON.kind,
    POLYGON.about,
    tuple(alias for alias in POLYGON.aliases if alias not in MASK.aliases),
    nullable=True,
)
_BAND = Column(
    RASTER_BAND.name, "number", RASTER_BAND.about, RASTER_BAND.aliases, nullable=True, low=1.0
)
_VALUE = Column(
    RASTER_VALUE.name, "number", RASTER_VALUE.about, RASTER_VALUE.aliases, nullable=True
)
_CODING = Column(
    RASTER_CODING.name,
    RASTER_CODING.kind,
    RASTER_CODING.about,
    RASTER_CODING.aliases,
    nullable=True,
)
_OPTIONAL = (
    LABEL_KEY,
    LABEL_VALUE,
    LABEL_MAP,
    LABEL_MASK,
    LABEL_POLYGON,
    _BAND,
    _VALUE,
    _CODING,
    HEIGHT,
    WIDTH,
    DATASET,
)
_ONE_OF = ("raster", "mask", "polygon")
_OBJECTS = (SCORE, ISCROWD)  # what only tables of objects have
_EQUAL_PIXELS = ((WEIGHT, "pixels have no weights; every pixel counts once"),)
_NO_SCORES = (
    (
        SCORE,
        "pixels count whatever their score; scored masks of objects are"
        f" {option('task', 'detection')}",
    ),
)

SEGMENTATION_PREDICTIONS = Table(
    "segmentation",
    PREDICTIONS,
    (DATUM_ID,),
    _OPTIONAL,
    any_of=_ONE_OF,
    signs=_ONE_OF,
    unless=_OBJECTS,
    formats=("label maps",),
    shape="pixels",
    lack="no pixels were predicted",
    unread=_EQUAL_PIXELS + _NO_SCORES,
)
SEGMENTATION_GROUND_TRUTHS = Table(
    "segmentation",
    GROUND_TRUTHS,
    (DATUM_ID,),
    _OPTIONAL,
    any_of=_ONE_OF,
    signs=_ONE_OF,
    unless=_OBJECTS,
    like=("boxes",),
    formats=("label maps",),
    shape="pixels",
    lack="no pixels are labelled",
    unread=_EQUAL_PIXELS,
)
