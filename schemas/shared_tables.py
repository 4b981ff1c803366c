"""Additional tables for every task: all datums, declared labels."""

from __future__ import annotations

from .columns import DATASET, HEIGHT, LABEL_KEY, WIDTH
from .contract import DATUMS, LABELS, Column, Table

# In a table of datums, ids and names are in adjacent columns, as in a table of labels.
DATUM_ROW = Column(
    "datum_id",
    "id",
    "The datum.",
    (
        "image_id",
        "imageid",
        "img_id",
        "datum",
        "datum_uid",
        "image",
        "query_id",
        "qid",
        "query-id",
        "q_id",
        "topic_id",
        "topic",
        "queryid",
        "question_id",
        "id",
    ),
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
INDEX = Column(
    "index",
    "id",
    "Value of the label's pixels in label maps; without it labels are in order of index.",
    ("label_index", "pixel_value", "train_id"),
    nullable=True,
)
COLOR = Column(
    "color",
    "text",
    "Colour of the label's pixels in pictures: #804080 or 128,64,128.",
    ("colour", "rgb"),
    nullable=True,
)
ISTHING = Column(
    "isthing",
    "flag",
    "1 for countable things, 0 for stuff, in panoptic segmentation.",
    ("is_thing", "thing"),
    nullable=True,
)
FREQUENCY = Column(
    "frequency", "text", "How common the label is (LVIS: r, c, f).", (), nullable=True
)

_LISTS = "Give one list of labels a row, an empty one for none."
POSITIVE_LABELS = Column(
    "positive_labels",
    "items",
    "Labels that the datum is known to show, with or without a row of their own.",
    ("pos_category_ids", "positive_category_ids"),
    way_out=_LISTS,
)
NEGATIVE_LABELS = Column(
    "negative_labels",
    "items",
    "Labels that the datum is known not to show.",
    ("neg_category_ids", "negative_category_ids"),
    way_out=_LISTS,
)
PARTIAL_LABELS = Column(
    "partial_labels",
    "items",
    "Labels of which not every object of the datum is annotated.",
    ("not_exhaustive_category_ids", "not_exhaustive_labels"),
    way_out=_LISTS,
)
REGIONS = Column(
    "regions",
    "vector",
    "Boxes (xmin, ymin, xmax, ymax, one after the other) of regions in which objects are"
    " not annotated: predictions there count for nothing (KITTI's DontCare).",
    ("dontcare",),
    nullable=True,
)

DATUM_TABLE = Table(
    "all",
    DATUMS,
    (DATUM_ROW,),
    (DATASET, FILE_NAME, WIDTH, HEIGHT, POSITIVE_LABELS, NEGATIVE_LABELS, PARTIAL_LABELS, REGIONS),
)
LABEL_TABLE = Table(
    "all",
    LABELS,
    (LABEL_ROW,),
    (LABEL_KEY, LABEL_NAME, SUPERCATEGORY, FREQUENCY, INDEX, COLOR, ISTHING),
    ("label_key", "label_value"),
)
