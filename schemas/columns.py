"""Columns that several tasks share."""

from __future__ import annotations

import msgspec

from .contract import Column

DATUM_ID = Column(
    "datum_id",
    "id",
    "Which image, document or row this belongs to.",
    ("image_id", "imageid", "img_id", "datum", "datum_uid", "image", "file_name", "filename"),
)
LABEL_VALUE = Column(
    "label_value",
    "id",
    "The class.",
    ("category_id", "label", "class", "category", "class_name", "category_name", "class_id",
     "label_id", "name"),
)  # fmt: skip
LABEL_KEY = Column(
    "label_key", "text", "The kind of label, where there are several; 'label' if absent.", ()
)
SCORE = Column(
    "score",
    "number",
    "Confidence, higher is more certain.",
    ("confidence", "conf", "prob", "probability"),
    single=True,
)
DATASET = Column("dataset", "text", "Shown in examples.", ("dataset_name",), nullable=True)
XMIN = Column("xmin", "number", "Left edge, pixels.", ("x_min", "x1", "left", "x0", "box_xmin"))
YMIN = Column("ymin", "number", "Top edge, pixels.", ("y_min", "y1", "top", "y0", "box_ymin"))
XMAX = Column("xmax", "number", "Right edge, pixels.", ("x_max", "x2", "right", "box_xmax"))
YMAX = Column("ymax", "number", "Bottom edge, pixels.", ("y_max", "y2", "bottom", "box_ymax"))
BOX_WIDTH = Column(
    "box_width",
    "number",
    "Width as annotated, beside xmax: exact where xmax - xmin rounds.",
    (),
    low=0.0,
)
BOX_HEIGHT = Column(
    "box_height",
    "number",
    "Height as annotated, beside ymax: exact where ymax - ymin rounds.",
    (),
    low=0.0,
)
BBOX = Column(
    "bbox", "list", "Four numbers in one list or array; box_format says in which order.",
    ("box", "boxes", "bounding_box"),
)  # fmt: skip
ISCROWD = Column(
    "iscrowd",
    "flag",
    "1 for a region of many objects (COCO; Open Images' groups).",
    ("is_crowd", "crowd", "is_group_of", "isgroupof", "group_of"),
)
AREA = Column("area", "number", "Annotated area in squared pixels, for area ranges.", (), low=0.0)
IGNORE = Column(
    "ignore",
    "flag",
    "1 for a ground truth that is left out, where the dialect says so.",
    ("difficult",),
)
ANNOTATION_ID = Column(
    "annotation_id",
    "id",
    "Names the ground truth in outcomes; unique.",
    ("ann_id", "gt_id"),
    unique=True,
)
OCCLUDED = Column("occluded", "number", "Level of occlusion, 0 to 3 (KITTI).", ("occlusion",))
TRUNCATED = Column(
    "truncated",
    "number",
    "Share of the object beyond the image, 0 to 1 (KITTI); in tracking a level, 0 to 2.",
    ("truncation",),
    single=True,
)
WIDTH = Column(
    "width", "number", "Image width, pixels.", ("image_width", "img_width"), nullable=True
)
HEIGHT = Column(
    "height", "number", "Image height, pixels.", ("image_height", "img_height"), nullable=True
)

WEIGHT = Column(
    "weight", "number", "How much the datum counts; 1 if absent.", ("sample_weight", "weights"),
    low=0.0, high=1e50,  # products of four sums of a billion of them are floats (MCC)
)  # fmt: skip


def renamed(column: Column, *aliases: str, about: str | None = None) -> Column:
    """Return the column with further aliases."""
    return msgspec.structs.replace(
        column,
        aliases=tuple(dict.fromkeys((*column.aliases, *aliases))),
        about=about or column.about,
    )
