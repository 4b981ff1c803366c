"""Input contracts: what each side's table must and may hold, and the names recognised for it."""

from __future__ import annotations

import msgspec

from .errors import OptionError, unknown

PREDICTIONS = "predictions"
GROUND_TRUTHS = "ground_truths"
TABLE = "table"
"""The role of one table that holds both sides."""
DATUMS = "datums"
LABELS = "labels"

DEFAULT_LABEL_KEY = "label"


class Column(msgspec.Struct, frozen=True):
    """One column of an input table.

    Attributes:
        name: canonical name.
        kind: ``id`` (integer or string), ``label`` (integer, string or boolean, or a list of
            those), ``items`` (a list of integers or strings), ``text``, ``number``, ``flag``,
            ``list``, ``any``.
        about: one line for ``evalengine schemas``.
        aliases: names that users of other tools have for it, most common first; compared
            without case.
        nullable: whether a row may leave it out.
        low: smallest value allowed, for numbers.
        unique: whether a value may stand in one row only.
        single: whether single precision stays as it is.
        kin: names that may mean this column or something else: offered, never taken.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...] = ()
    nullable: bool = False
    low: float | None = None
    unique: bool = False
    single: bool = False
    kin: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True):
    """The contract of one side of one task.

    Attributes:
        task: task name, or ``all``.
        side: one of the table roles.
        required: columns that must be there.
        optional: columns used when they are there.
        key: columns that, as far as they are there, together may stand in one row only.
        any_of: columns of which at least one must be there.
        multilabel_key: the key instead, where the option ``multilabel`` is true.
        signs: columns that tell the task; it follows from a table that has one of them.
        formats: source formats that tell the task.
        shape: what the columns make together beyond single columns, by the name under which
            ``inputs`` knows how to find and check it: ``boxes``, ``pair``; empty for nothing.
        wide: what ``score_columns`` replaces, where scores may stand in a column per label.
        datum: the column that names datums; once checked, every task's is called ``datum_id``.
        unit: word for one datum, and for several.
        lack: what to say first where none of ``any_of`` is there.
        either: columns of which both sides are read by the first that both have.
        instead: pairs of columns of which the second is read only where the first is not there.
        unread: columns that users may expect to count here and that do not, each with the reason;
            their presence is told.
    """

    task: str
    side: str
    required: tuple[Column, ...]
    optional: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    multilabel_key: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    shape: str = ""
    wide: tuple[str, ...] = ()
    datum: str = "datum_id"
    unit: tuple[str, str] = ("datum", "datums")
    lack: str = "nothing was predicted"
    either: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[Column, str], ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, required ones first."""
        return self.required + self.optional

    @property
    def names(self) -> frozenset[str]:
        """The canonical names of all columns."""
        return frozenset(column.name for column in self.columns)


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

WEIGHT = Column(
    "weight", "number", "How much the datum counts; 1 if absent.", ("sample_weight", "weights"),
    low=0.0,
)  # fmt: skip
_BOX = (XMIN, YMIN, XMAX, YMAX)
_COMMON = (LABEL_KEY, DATASET, BOX_WIDTH, BOX_HEIGHT, BBOX)

_NO_WEIGHTS = ((WEIGHT, "detection has no sample weights"),)

DETECTION_PREDICTIONS = Table(
    "detection",
    PREDICTIONS,
    (DATUM_ID, LABEL_VALUE, SCORE, *_BOX),
    _COMMON,
    signs=("xmin", "ymin", "xmax", "ymax", "bbox"),
    formats=("coco",),
    shape="boxes",
    unread=_NO_WEIGHTS,
)
DETECTION_GROUND_TRUTHS = Table(
    "detection",
    GROUND_TRUTHS,
    (DATUM_ID, LABEL_VALUE, *_BOX),
    (*_COMMON, ISCROWD, IGNORE, AREA, ANNOTATION_ID),
    signs=("xmin", "ymin", "xmax", "ymax", "bbox"),
    formats=("coco",),
    shape="boxes",
    unread=_NO_WEIGHTS,
)

# Classification: what its users call a row, the truth, what was predicted, and how sure it was.
_ROW_NAMES = ("id", "sample_id", "example_id", "row_id", "document_id", "doc_id", "text_id")
_TRUE_NAMES = (
    "y_true", "true_label", "label_true", "actual_label", "target", "truth", "ground_truth",
    "gold", "gold_label", "reference_label", "expected", "expected_label",
)  # fmt: skip
_PREDICTED_NAMES = (
    "y_pred", "predicted_label", "pred_label", "label_pred", "predicted", "prediction", "pred",
)  # fmt: skip
_SCORE_NAMES = (
    "y_score", "y_prob", "y_proba", "y_scores", "pred_score", "predicted_score", "pred_prob",
    "predicted_probability", "prediction_score",
)  # fmt: skip


def _also(column: Column, *aliases: str, about: str | None = None) -> Column:
    """The same column where users have more names for it."""
    return msgspec.structs.replace(
        column,
        aliases=tuple(dict.fromkeys((*column.aliases, *aliases))),
        about=about or column.about,
    )


CLASS_DATUM = _also(DATUM_ID, *_ROW_NAMES)
CLASS_SCORE = _also(SCORE, *_SCORE_NAMES)
PREDICTED_VALUE = _also(LABEL_VALUE, *_PREDICTED_NAMES, about="The class predicted.")
TRUE_VALUE = _also(LABEL_VALUE, *_TRUE_NAMES, about="The true class.")
ACTUAL = Column(
    "actual",
    "label",
    "The true label, or a list of them: one for each place of a sequence.",
    _TRUE_NAMES,
    kin=("label", "labels", "class", "category", "label_value", "y"),
)
PREDICTED = Column(
    "predicted",
    "label",
    "The label predicted, or as long a list of them.",
    (*_PREDICTED_NAMES, "output"),
)
_CLASS_KEY = ("datum_id", "label_key", "label_value")

CLASSIFICATION_PREDICTIONS = Table(
    "classification",
    PREDICTIONS,
    (CLASS_DATUM, PREDICTED_VALUE),
    (CLASS_SCORE, LABEL_KEY, DATASET),
    key=_CLASS_KEY,
    signs=("label_value",),
    wide=("label_value", "score"),
    unread=((WEIGHT, "sample weights are read from the ground truths; put the column there"),),
)
CLASSIFICATION_GROUND_TRUTHS = Table(
    "classification",
    GROUND_TRUTHS,
    (CLASS_DATUM, TRUE_VALUE),
    (LABEL_KEY, DATASET, WEIGHT),
    key=("datum_id", "label_key"),
    multilabel_key=_CLASS_KEY,
    signs=("label_value",),
)
CLASSIFICATION_TABLE = Table(
    "classification",
    TABLE,
    (ACTUAL,),
    (PREDICTED, CLASS_SCORE, CLASS_DATUM, LABEL_KEY, DATASET, WEIGHT),
    key=("datum_id", "label_key"),
    any_of=("predicted", "score"),
    signs=("actual",),
    shape="pair",
    wide=("score",),
)
# Retrieval: a query is the datum; what it retrieved is named by id or is a text.
QUERY_ID = Column(
    "query_id",
    "id",
    "Which query this belongs to.",
    ("qid", "query-id", "q_id", "topic_id", "topic", "queryid", "question_id"),
    kin=("query", "question", "id", "user_input"),
)
DOC_ID = Column(
    "doc_id",
    "id",
    "The document.",
    ("docno", "docid", "corpus-id", "corpus_id", "document_id", "doc", "did", "pid", "passage_id",
     "chunk_id", "item_id"),
    kin=("id", "document", "passage"),
)  # fmt: skip
RETRIEVAL_SCORE = _also(
    SCORE, "similarity", "sim", about="Score of the document, higher is ranked first."
)
RANK = Column(
    "rank", "number", "Place in the list, lowest first; read where there is no score.",
    ("position", "ranking"),
)  # fmt: skip
TEXT = Column(
    "text", "text", "The chunk, passage or document itself.",
    ("chunk", "content", "contents", "passage", "context", "body", "page_content", "document"),
)  # fmt: skip
RELEVANCE = Column(
    "relevance",
    "number",
    "How relevant it was judged, 1 if absent; below 0 is not judged.",
    ("rel", "relevance_score", "relevancy", "judgment", "judgement", "grade", "label", "score",
     "gain"),
)  # fmt: skip
RETRIEVED = Column(
    "retrieved",
    "items",
    "What was retrieved, best first: a list of ids or texts.",
    ("retrieved_contexts", "retrieved_context", "retrieved_chunks", "retrieved_docs",
     "retrieved_documents", "retrieved_ids", "retrieved_context_ids", "retrieved_doc_ids"),
    kin=("contexts", "predictions", "chunks"),
)  # fmt: skip
RELEVANT = Column(
    "relevant",
    "items",
    "What should have been retrieved: a list of ids or texts.",
    ("reference_contexts", "ground_truth_context", "ground_truth_contexts", "gold_docs",
     "gold_documents", "gold_contexts", "relevant_docs", "relevant_documents", "relevant_ids",
     "reference_context_ids", "relevant_doc_ids", "relevant_contexts", "gold"),
    kin=("contexts", "ground_truths", "reference"),
)  # fmt: skip
_QUERY = ("query", "queries")
_EQUAL_QUERIES = ((WEIGHT, "retrieval has no weights; every query counts once"),)

RETRIEVAL_PREDICTIONS = Table(
    "retrieval",
    PREDICTIONS,
    (QUERY_ID,),
    (DOC_ID, TEXT, RETRIEVAL_SCORE, RANK, DATASET),
    any_of=("doc_id", "text"),
    signs=("query_id",),
    formats=("trec", "mapping"),
    shape="ranked",
    datum="query_id",
    unit=_QUERY,
    lack="nothing was retrieved",
    either=("doc_id", "text"),
    instead=(("score", "rank"),),
    unread=_EQUAL_QUERIES,
)
RETRIEVAL_GROUND_TRUTHS = Table(
    "retrieval",
    GROUND_TRUTHS,
    (QUERY_ID,),
    (DOC_ID, TEXT, RELEVANCE, DATASET),
    any_of=("doc_id", "text"),
    signs=("query_id",),
    formats=("trec", "mapping"),
    datum="query_id",
    unit=_QUERY,
    lack="nothing was judged",
    either=("doc_id", "text"),
    unread=_EQUAL_QUERIES,
)
RETRIEVAL_TABLE = Table(
    "retrieval",
    TABLE,
    (RETRIEVED, RELEVANT),
    (QUERY_ID, DATASET),
    key=("query_id",),
    signs=("retrieved", "relevant"),
    shape="lists",
    datum="query_id",
    unit=_QUERY,
    unread=_EQUAL_QUERIES,
)
# In a table of datums, ids and names stand side by side; so do they in a table of labels.
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
    CLASSIFICATION_PREDICTIONS,
    CLASSIFICATION_GROUND_TRUTHS,
    CLASSIFICATION_TABLE,
    RETRIEVAL_PREDICTIONS,
    RETRIEVAL_GROUND_TRUTHS,
    RETRIEVAL_TABLE,
    DATUM_TABLE,
    LABEL_TABLE,
)


def task_names() -> tuple[str, ...]:
    """The tasks that have contracts, in their order."""
    return tuple(dict.fromkeys(table.task for table in TABLES if table.task != "all"))


def contracts(task: str) -> dict[str, Table]:
    """Role to contract of every table a task knows."""
    return {table.side: table for table in reversed(TABLES) if table.task in (task, "all")}


def table_for(task: str, side: str) -> Table:
    """The contract of one side of one task.

    Raises:
        OptionError: no task of that name, or the task has no such table.
    """
    if task not in task_names():
        raise OptionError(unknown("task", task, task_names()))
    known = contracts(task)
    if side not in known:
        raise OptionError(unknown(f"table of {task}", side, known))
    return known[side]
