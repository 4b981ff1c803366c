"""Input contracts: what each side's table must and may hold, and the names recognised for it."""

from __future__ import annotations

import msgspec

from .errors import OptionError, unknown

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
        nullable: whether a row may leave it out.
        low: smallest value allowed, for numbers.
        unique: whether a value may stand in one row only.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()
    nullable: bool = False
    low: float | None = None
    unique: bool = False


class Table(msgspec.Struct, frozen=True):
    """The contract of one side of one task.

    Attributes:
        task: task name, or ``all``.
        side: one of the four table roles.
        required: columns that must be there.
        optional: columns used when they are there.
        key: columns that, as far as they are there, together may stand in one row only.
    """

    task: str
    side: str
    required: tuple[Column, ...]
    optional: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, required ones first."""
        return self.required + self.optional


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
ISCROWD = Column("iscrowd", "flag", "1 for a region of many objects (COCO).", ("is_crowd", "crowd"))
AREA = Column("area", "number", "Annotated area in squared pixels, for area ranges.", (), low=0.0)
IGNORE = Column(
    "ignore", "flag", "1 for a ground truth that is left out, where the dialect says so.", ()
)
ANNOTATION_ID = Column(
    "annotation_id",
    "id",
    "Names the ground truth in outcomes; unique.",
    ("ann_id", "gt_id"),
    unique=True,
)
WIDTH = Column(
    "width", "number", "Image width, pixels.", ("image_width", "img_width"), nullable=True
)
HEIGHT = Column(
    "height", "number", "Image height, pixels.", ("image_height", "img_height"), nullable=True
)

_BOX = (XMIN, YMIN, XMAX, YMAX)
_COMMON = (LABEL_KEY, DATASET, BOX_WIDTH, BOX_HEIGHT, BBOX)

DETECTION_PREDICTIONS = Table(
    "detection", PREDICTIONS, (DATUM_ID, LABEL_VALUE, SCORE, *_BOX), _COMMON
)
DETECTION_GROUND_TRUTHS = Table(
    "detection",
    GROUND_TRUTHS,
    (DATUM_ID, LABEL_VALUE, *_BOX),
    (*_COMMON, ISCROWD, IGNORE, AREA, ANNOTATION_ID),
)
# In a table of datums, ids and names stand side by side; so do they in a table of labels.
DATUM_ROW = Column(
    "datum_id",
    "id",
    "The datum.",
    ("image_id", "imageid", "img_id", "datum", "datum_uid", "image", "id"),
    unique=True,
)
FILE_NAME = Column(
    "file_name", "text", "Image file, shown in examples.", ("filename",), nullable=True
)
LABEL_ROW = Column(
    "label_value",
    "id",
    "The class.",
    ("category_id", "label", "class", "category", "class_id", "label_id", "id"),
)
LABEL_NAME = Column(
    "label_name",
    "text",
    "Shown beside the value.",
    ("category_name", "class_name", "name"),
    nullable=True,
)
SUPERCATEGORY = Column("supercategory", "text", "Group of labels.", (), nullable=True)
FREQUENCY = Column(
    "frequency", "text", "How common the label is (LVIS: r, c, f).", (), nullable=True
)

DATUM_TABLE = Table("all", DATUMS, (DATUM_ROW,), (DATASET, FILE_NAME, WIDTH, HEIGHT))
LABEL_TABLE = Table(
    "all",
    LABELS,
    (LABEL_ROW,),
    (LABEL_KEY, LABEL_NAME, SUPERCATEGORY, FREQUENCY),
    ("label_key", "label_value"),
)

TABLES: tuple[Table, ...] = (
    DETECTION_PREDICTIONS,
    DETECTION_GROUND_TRUTHS,
    DATUM_TABLE,
    LABEL_TABLE,
)


def table_for(task: str, side: str) -> Table:
    """The contract of one side of one task.

    Raises:
        OptionError: no task of that name.
    """
    for table in TABLES:
        if table.side == side and table.task in (task, "all"):
            return table
    tasks = {table.task for table in TABLES} - {"all"}
    raise OptionError(unknown("task", task, tasks))
