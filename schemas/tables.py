"""Input contracts: what each side's table must and may hold, and the names recognised for it."""

from __future__ import annotations

import msgspec

PREDICTIONS = "predictions"
GROUND_TRUTHS = "ground_truths"
DATUMS = "datums"
LABELS = "labels"

DEFAULT_LABEL_KEY = "label"


class Column(msgspec.Struct, frozen=True):
    """One column of an input table.

    Attributes:
        name: canonical name.
        kind: ``id`` (integer or string), ``text``, ``number``, ``flag``, ``list``, ``any``.
        about: one line for ``evalengine schemas``.
        aliases: names that users of other tools have for it, most common first; compared
            without case.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True):
    """The contract of one side of one task.

    Attributes:
        task: task name, or ``all``.
        side: one of the four table roles.
        required: columns that must be there.
        optional: columns used when they are there.
    """

    task: str
    side: str
    required: tuple[Column, ...]
    optional: tuple[Column, ...] = ()


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
    "score", "number", "Confidence, higher is more certain.", ("confidence", "conf", "prob", "probability")
)  # fmt: skip
DATASET = Column("dataset", "text", "Shown in examples.", ("dataset_name",))
XMIN = Column("xmin", "number", "Left edge, pixels.", ("x_min", "x1", "left", "x0", "box_xmin"))
YMIN = Column("ymin", "number", "Top edge, pixels.", ("y_min", "y1", "top", "y0", "box_ymin"))
XMAX = Column("xmax", "number", "Right edge, pixels.", ("x_max", "x2", "right", "box_xmax"))
YMAX = Column("ymax", "number", "Bottom edge, pixels.", ("y_max", "y2", "bottom", "box_ymax"))
BOX_WIDTH = Column(
    "box_width", "number", "Width as annotated, beside xmax: exact where xmax - xmin rounds.", ()
)
BOX_HEIGHT = Column(
    "box_height", "number", "Height as annotated, beside ymax: exact where ymax - ymin rounds.", ()
)
BBOX = Column(
    "bbox", "list", "Four numbers in one list or array; box_format says in which order.",
    ("box", "boxes", "bounding_box"),
)  # fmt: skip
ISCROWD = Column("iscrowd", "flag", "1 for a region of many objects (COCO).", ("is_crowd", "crowd"))
AREA = Column("area", "number", "Annotated area in squared pixels, for area ranges.", ())
ANNOTATION_ID = Column(
    "annotation_id", "id", "Names the ground truth in outcomes; unique.", ("ann_id", "gt_id")
)
WIDTH = Column("width", "number", "Image width, pixels.", ("image_width", "img_width"))
HEIGHT = Column("height", "number", "Image height, pixels.", ("image_height", "img_height"))

_BOX = (XMIN, YMIN, XMAX, YMAX)
_COMMON = (LABEL_KEY, DATASET, BOX_WIDTH, BOX_HEIGHT, BBOX)

DETECTION_PREDICTIONS = Table(
    "detection", PREDICTIONS, (DATUM_ID, LABEL_VALUE, SCORE, *_BOX), _COMMON
)
DETECTION_GROUND_TRUTHS = Table(
    "detection",
    GROUND_TRUTHS,
    (DATUM_ID, LABEL_VALUE, *_BOX),
    (*_COMMON, ISCROWD, AREA, ANNOTATION_ID),
)
DATUM_TABLE = Table("all", DATUMS, (DATUM_ID,), (DATASET, WIDTH, HEIGHT))
LABEL_TABLE = Table(
    "all",
    LABELS,
    (LABEL_VALUE,),
    (LABEL_KEY, Column("label_name", "text", "Shown beside the value.", ("category_name",))),
)

TABLES: tuple[Table, ...] = (
    DETECTION_PREDICTIONS,
    DETECTION_GROUND_TRUTHS,
    DATUM_TABLE,
    LABEL_TABLE,
)
