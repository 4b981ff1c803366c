"""Contracts: columns, recognised names and rules of a table."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


def words(text: str) -> tuple[str, ...]:
    """Split a list of names at blanks."""
    return tuple(text.split())


# The tasks, by name.

NAMES = words(
    "classification detection retrieval segmentation panoptic tracking text judged regression"
    " values preferences spans agents"
)


# Structure of a contract: columns, their recognised names, and rules of a table.

PREDICTIONS = "predictions"
GROUND_TRUTHS = "ground_truths"
TABLE = "table"
"""Role of a single table that contains both sides."""
REGION_TABLE = "regions"
"""Role of a table of regions in which nothing counts."""
TRAINING = "training"
"""Role of a model's training data, for numbers relative to it."""
HUMAN = "human"
"""Role of human labels of judged rows."""
DATUMS = "datums"
LABELS = "labels"

DEFAULT_LABEL_KEY = "label"
ROW = "__evalengine_row"
"""Additional column of a side that is part of a larger one: row number in the whole, int64."""


class Column(msgspec.Struct, frozen=True):
    """One column of an input table.

    Attributes:
        name: canonical name.
        kind: ``id`` (integer or string), ``label`` (integer, string or boolean, or a list of
            those), ``items`` (a list of integers or strings), ``text``, ``texts`` (a string or a
            list of strings), ``text_list`` (the same, converted to a list), ``verdict`` (string,
            number or boolean, stored as text), ``number``, ``whole`` (an integer), ``flag``,
            ``list``, ``any`` (no list), ``vector`` (a list or array of numbers), ``vectors`` (the
            same, or a list of several),
            ``value`` (a number or boolean; NaN is a null).
        about: one line for ``evalengine schemas``.
        aliases: names in other tools, most common first; compared without case.
        nullable: rows may be null.
        low: smallest value allowed, for numbers.
        high: largest value allowed, for numbers; positive values must be at least 1 / high.
        unique: a value may occur in one row only.
        single: single precision is kept.
        kin: names that may mean this column or something else: suggested, never used automatically.
        otherwise: alternative if the column is missing.
        weak: aliases that other tables use for slices: not a sign of the task in a table whose rows
            are identified by another id column, unless the first name in ``either`` is present; if
            there is no ``either``, a sign only next to one of ``any_of``.
        named: ignored if not requested by name.
        way_out: advice if its type does not fit, instead of the advice for its kind.
        spare: aliases that often name something else: read only if there is no other alias, one of
            them is a text or a struct, and no second one is.
        numbered: regular expression of user's names that are such a column each; its matching group
            is a level, a fraction or in percent, which is appended to the contract's name. Empty
            for a single column.
        unclear: regular expression of user's names that may be further such columns.
        below: column (of the same level) whose values these may not exceed.
        rising: values increase with the level; otherwise a note is added.
        sliced: read only if slices, clusters or metrics request it.
        steps: power of the steps of a training series of which it is the mean; 0 for other columns.
        null_meaning: meaning of its nulls, if the user's table has no such column.
        repeats: tells apart rows that repeat a key on purpose.
        booleans: of an id: booleans, as CSV files have them, are accepted as 1 and 0.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    unique: bool = False
    single: bool = False
    kin: tuple[str, ...] = ()
    otherwise: str = ""
    weak: tuple[str, ...] = ()
    named: bool = False
    way_out: str = ""
    spare: tuple[str, ...] = ()
    numbered: str = ""
    unclear: str = ""
    below: str = ""
    rising: bool = False
    sliced: bool = False
    steps: int = 0
    null_meaning: str = ""
    repeats: bool = False
    booleans: bool = False


class OfMetrics(msgspec.Struct, frozen=True):
    """Other columns of a table, if all requested metrics have such names.

    Attributes:
        names: regular expression of the names.
        required: columns that are required, next to that of datums.
        optional: names of the optional columns that remain.
        unread: see :class:`Table`, in addition to those of the table.
    """

    names: str
    required: tuple[Column, ...]
    optional: tuple[str, ...] = ()
    unread: tuple[tuple[Column, str], ...] = ()


class Table(msgspec.Struct, frozen=True):
    """The contract of one side of one task.

    Attributes:
        task: task name, or ``all``.
        side: one of the table roles.
        required: columns that must be present.
        optional: columns used if present.
        key: columns whose combination, as far as present, must be unique.
        any_of: columns of which at least one must be present.
        multilabel_key: the key if the option ``multilabel`` is True.
        signs: columns that identify the task: one of them suffices.
        unless: columns whose presence excludes the task.
        like: formats of other tasks for which its columns may be mistaken.
        formats: source formats that identify the task.
        shape: joint content of several columns, by the name under which ``inputs`` finds and checks
            it: ``boxes``, ``pair``; may be empty.
        wide: column replaced by ``score_columns``, if scores may have one column per label.
        datum: column that identifies datums; renamed to ``datum_id`` once checked.
        unit: word for one datum, and for several.
        lack: beginning of the message if all of ``any_of`` are missing.
        either: columns of which both sides use the first that both have.
        instead: pairs of columns; the second is read only if the first is missing.
        long: several rows of the single table form one datum.
        unread: columns that users may expect to count and that are ignored, each with the reason;
            their presence is reported.
        stand_ins: pairs of a required column and its substitute: if a table has only the second,
            the second is required instead.
        defers: all signs are needed to identify the task, and any other task that the columns fit
            has priority: texts may occur next to labels and lists.
        all_signs: all signs are needed to identify the task, since a single one may occur in tables
            of another.
        filtered: the option ``where`` can filter its rows.
        multilabel_shape: the shape if the option ``multilabel`` is True.
        values: columns for plain values of both sides, row by row: pairs of a column of answers and
            one of truths; the first pair whose kinds match the values is used.
        kin_pairs: pairs of columns; the kin names of the first are accepted if no other column
            qualifies and the second is present.
        id_columns: columns that identify a datum jointly.
        predictions_sign: for a task whose annotations are converted, the column that one side of
            them has if it is the predictions, and its other names; empty for other tasks.
        runs: rows of one datum may be of several runs of a model, told apart by columns such as
            epoch.
        made_of: side of the task that a command converts to this one; may be empty.
        made_by: that command, and the call in Python, with placeholders for data and metrics.
        measured: columns that are signs only if their values are fractional numbers; then tasks for
            which they would be labels are excluded.
        as_written: dialects that compare unmodified corners of Pascal VOC files.
        unpivoted: columns replaced by the option ``value_columns``, if rows have a column per
            metric.
        of_metrics: columns of tables for some metrics.
        decided_by: options that identify the task.
        of_calls: column of tool calls -> further names, which no other task reads of such columns.
        tags: columns of lists of tags, all of them needed; a table that has them is replaced by
            tables of spans.
        readings: dialect -> how it reads tags.
    """

    task: str
    side: str
    required: tuple[Column, ...]
    optional: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    multilabel_key: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    unless: tuple[Column, ...] = ()
    like: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    shape: str = ""
    wide: tuple[str, ...] = ()
    datum: str = "datum_id"
    unit: tuple[str, str] = ("datum", "datums")
    lack: str = "no column of predictions"
    either: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    long: bool = False
    unread: tuple[tuple[Column, str], ...] = ()
    stand_ins: tuple[tuple[str, str], ...] = ()
    defers: bool = False
    all_signs: bool = False
    filtered: bool = True
    multilabel_shape: str = ""
    values: tuple[tuple[str, str], ...] = ()
    kin_pairs: tuple[tuple[str, str], ...] = ()
    measured: tuple[str, ...] = ()
    id_columns: tuple[str, ...] = ()
    predictions_sign: tuple[str, ...] = ()
    as_written: tuple[str, ...] = ()
    unpivoted: tuple[str, ...] = ()
    of_metrics: tuple[OfMetrics, ...] = ()
    decided_by: tuple[str, ...] = ()
    of_calls: Mapping[str, tuple[str, ...]] = {}
    tags: tuple[str, ...] = ()
    readings: Mapping[str, str] = {}
    runs: bool = False
    made_of: str = ""
    made_by: tuple[str, str] = ("", "")

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, required ones first."""
        return self.required + self.optional

    @property
    def names(self) -> frozenset[str]:
        """The canonical names of all columns."""
        return frozenset([column.name for column in self.columns])


# Columns that several tasks share.

DATUM_ID = Column(
    "datum_id",
    "id",
    "Which image, document or row this belongs to.",
    ("image_id", "imageid", "img_id", "datum", "datum_uid", "image", "file_name", "filename"),
    kin=("image_path", "img_path", "file_path"),
)
LABEL_VALUE = Column(
    "label_value",
    "id",
    "The class.",
    words("category_id label class category class_name category_name class_id label_id name"),
    booleans=True,
)
LABEL_KEY = Column(
    "label_key", "text", "The kind of label, if there are several; 'label' if absent.", ()
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
    "Width as annotated, next to xmax: exact if xmax - xmin rounds.",
    (),
    low=0.0,
)
BOX_HEIGHT = Column(
    "box_height",
    "number",
    "Height as annotated, next to ymax: exact if ymax - ymin rounds.",
    (),
    low=0.0,
)
BBOX = Column(
    "bbox",
    "list",
    "Four numbers in one list or array, in the order of box_format.",
    ("box", "boxes", "bounding_box"),
)
ISCROWD = Column(
    "iscrowd",
    "flag",
    "1 for a region of many objects (COCO; Open Images' groups).",
    ("is_crowd", "crowd", "is_group_of", "isgroupof", "group_of"),
)
AREA = Column("area", "number", "Annotated area in squared pixels, for area ranges.", (), low=0.0)
IGNORE = Column(
    "ignore", "flag", "1 for a ground truth to skip, in dialects that do so.", ("difficult",)
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
    "weight",
    "number",
    "How much the datum counts; 1 if absent.",
    ("sample_weight", "weights"),
    low=0.0,
    high=1e50,  # products of four sums of a billion of them are floats (MCC)
)


def renamed(column: Column, *aliases: str, about: str | None = None) -> Column:
    """Return the column with further aliases."""
    return msgspec.structs.replace(
        column,
        aliases=tuple(dict.fromkeys((*column.aliases, *aliases))),
        about=about or column.about,
    )


# Columns of geometry beyond boxes: polygons, masks and raster files.

POLYGON = Column(
    "polygon",
    "polygon",
    "Rings of x, y in pixels (the first outside, the rest holes), several polygons, flat rings as"
    " in COCO, WKB, WKT or GeoJSON.",
    ("polygons", "segmentation", "geometry", "wkb", "wkt", "outline"),
)
OBB = Column(
    "obb",
    "vector",
    "Oriented box: centre x and y, width, height and angle of the width, in the unit and "
    "direction of angle_format. Or columns cx, cy, w, h, angle.",
    ("oriented_box", "rotated_box", "rotated_bbox", "rbox", "rbbox", "xywhr"),
    way_out="Give each row one list of five numbers, or write columns cx, cy, w, h and angle.",
)
ANGLE = Column("angle", "number", "Turn of a box.", ("theta", "rotation", "yaw"))
BOX3D = Column(
    "box3d",
    "vector",
    "3-D box: centre x, y and z, length (along its heading), width, height and yaw; angle_format "
    "gives the up axis and the measure of yaw. Or its eight corners, points in any order; or "
    "columns cx, cy, cz, length, width, height, yaw.",
    ("box_3d", "bbox_3d", "bbox3d", "boxes_3d", "cuboid"),
    nullable=True,
    way_out="Give each row one list of seven numbers, or write columns cx, cy, cz, length, width,"
    " height and yaw.",
)
YAW = Column("yaw", "number", "Turn of a 3-D box.", ("rotation_y", "rotation_z", "heading"))
VX, VY = (
    Column(
        f"v{axis}",
        "number",
        f"Velocity along {axis} of a 3-D box, metres per second; null if unknown.",
        (f"velocity_{axis}",),
        nullable=True,
    )
    for axis in "xy"
)
ATTRIBUTE = Column(
    "attribute",
    "text",
    "Activity of a 3-D box (nuScenes' attribute); null or empty if there is none.",
    ("attribute_name",),
    nullable=True,
)
EGO_DISTANCE = Column(
    "ego_distance",
    "number",
    "Distance of a 3-D box's centre from the vehicle on the ground, metres: beyond the range of "
    "its label it does not count (nuScenes).",
    ("ego_dist",),
    low=0.0,
)
NUM_POINTS = Column(
    "num_points",
    "number",
    "Points of lidar and radar in a 3-D box; ground truths of 0 do not count (nuScenes),"
    " of -1, unknown, they do.",
    ("num_pts",),
    low=-1.0,
)
HEIGHT_2D = Column(
    "height_2d",
    "number",
    "How high a 3-D box is in its image, pixels (KITTI); taken from boxes in pixels, if absent.",
    (),
    nullable=True,
    low=0.0,
)
ALPHA = Column(
    "alpha",
    "number",
    "Angle at which an object is seen, radians; -10 if unknown (KITTI).",
    ("observation_angle",),
    nullable=True,
)
OF_SOLIDS = (VX, VY, ATTRIBUTE, EGO_DISTANCE, HEIGHT_2D, NUM_POINTS)
"""Columns that are read only for 3-D boxes."""
MASK = Column(
    "mask",
    "mask",
    "Run-length mask: a struct of size (height, width) and counts as in COCO, compressed or not;"
    " or of size and row-major runs; or rows of pixels.",
    ("masks", "rle", "segmentation", "segmentation_mask"),
)
OF_BOX = 0.53
"""The share of its box that a person of no annotated area is taken to fill, as in xtcocotools."""
KEYPOINTS = Column(
    "keypoints",
    "keypoints",
    "x, y, visibility of every keypoint, one after the other. A ground-truth point counts if "
    "visibility is above 0; the third number of predictions is not read. Or columns x_1, y_1, "
    "v_1, x_2, ...",
    ("keypoint", "pose", "landmarks"),
)
NUM_KEYPOINTS = Column(
    "num_keypoints",
    "number",
    "Labelled keypoints; a ground truth of 0 is skipped, as a crowd is. Counted if absent.",
    (),
    low=0.0,
)
HEAD_SIZE = Column(
    "head_size",
    "number",
    "Size of a person's head, the unit of distances in PCKh; MPII's is 0.6 of the diagonal of "
    "the head's box.",
    ("headsize", "head_length"),
    nullable=True,
    low=0.0,
)
RASTER = Column(
    "raster",
    "text",
    "Path of a raster file (PNG, TIFF, GeoTIFF): its set pixels are the mask, or in semantic"
    " segmentation the index of a label.",
    ("raster_path", "mask_path", "mask_file", "segmentation_path", "label_map"),
)
RASTER_BAND = Column(
    "raster_band", "number", "Band of the raster to read, from 1; 1 if absent.", ("band",), low=1.0
)
RASTER_VALUE = Column(
    "raster_value",
    "number",
    "Pixel value that is the object; every value but 0 if absent.",
    ("pixel_value", "instance_value"),
)
RASTER_CODING = Column(
    "raster_coding",
    "text",
    "Coding of the file's pixels, if they are not indices of labels: cityscapes-ids, "
    "cityscapes-train-ids, ade20k, voc-indices, colors, ...",
)


# Additional tables for every task: all datums, declared labels.

# In a table of datums, ids and names are in adjacent columns, as in a table of labels.
DATUM_ROW = Column(
    "datum_id",
    "id",
    "The datum.",
    words(
        "image_id imageid img_id datum datum_uid image query_id qid query-id q_id topic_id topic"
        " queryid question_id id"
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
    booleans=True,
)
LABEL_NAME = Column(
    "label_name",
    "text",
    "Shown next to the value.",
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
    "Labels that the datum is known to show, with or without a row.",
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
    "Boxes (xmin, ymin, xmax, ymax, one after the other) of regions in which objects are not "
    "annotated: predictions there are ignored (KITTI's DontCare).",
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
