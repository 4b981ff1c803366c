"""Input tables of every task and side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from .contract import (
    ALPHA,
    ANGLE,
    ANNOTATION_ID,
    AREA,
    BBOX,
    BOX3D,
    BOX_HEIGHT,
    BOX_WIDTH,
    DATASET,
    DATUM_ID,
    DATUM_ROW,
    DATUM_TABLE,
    GROUND_TRUTHS,
    HEAD_SIZE,
    HEIGHT,
    HUMAN,
    IGNORE,
    ISCROWD,
    KEYPOINTS,
    LABEL_KEY,
    LABEL_TABLE,
    LABEL_VALUE,
    MASK,
    NUM_KEYPOINTS,
    OBB,
    OCCLUDED,
    OF_SOLIDS,
    POLYGON,
    PREDICTIONS,
    RASTER,
    RASTER_BAND,
    RASTER_CODING,
    RASTER_VALUE,
    REGION_TABLE,
    SCORE,
    TABLE,
    TRAINING,
    TRUNCATED,
    WEIGHT,
    WIDTH,
    XMAX,
    XMIN,
    YMAX,
    YMIN,
    Column,
    OfMetrics,
    Table,
    renamed,
    words,
)
from .errors import unknown
from .wording import option

# Tables of classification: two long ones, or one of both sides.

_ROW_NAMES = ("id", "sample_id", "example_id", "row_id", "document_id", "doc_id", "text_id")
_TRUE_NAMES = words(
    "y_true true_label label_true actual_label target truth ground_truth gold gold_label"
    " reference_label expected expected_label"
)
_PREDICTED_NAMES = words("y_pred predicted_label pred_label label_pred predicted prediction pred")
_SCORE_NAMES = words(
    "y_score y_prob y_proba y_scores pred_score predicted_score pred_prob predicted_probability"
    " prediction_score"
)


CLASS_DATUM = renamed(DATUM_ID, *_ROW_NAMES)
CLASS_SCORE = renamed(SCORE, *_SCORE_NAMES)
PREDICTED_VALUE = renamed(LABEL_VALUE, *_PREDICTED_NAMES, about="The class predicted.")
TRUE_VALUE = renamed(LABEL_VALUE, "actual", *_TRUE_NAMES, about="The true class.")
ACTUAL = Column(
    "actual",
    "label",
    "The true label, or a list of them: one for each place of a sequence, or all true ones.",
    _TRUE_NAMES,
    kin=("label", "labels", "class", "category", "label_value", "y"),
)
PREDICTED = Column(
    "predicted", "label", "The label predicted, or a list of them.", (*_PREDICTED_NAMES, "output")
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
    multilabel_shape="sets",
    wide=("score",),
    values=(("predicted", "actual"), ("score", "actual")),
    kin_pairs=(("actual", "predicted"),),
)


# Tables of detection.

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
    (
        Column("track_id", "id", "", ("tracker_id", "tracklet_id")),
        "boxes are scored by image; tracks need the columns sequence, frame and track_id",
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
    predictions_sign=(SCORE.name, *SCORE.aliases),
    runs=True,
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

DETECTION_REGIONS = Table("detection", REGION_TABLE, (DATUM_ID, *_BOX), (BBOX,), shape="boxes")

# Tables of judged metrics: verdicts, one per row, and the input of a judge.

JUDGED_DATUM = renamed(
    DATUM_ID,
    "id",
    "sample_id",
    "example_id",
    "row_id",
    "question_id",
    "query_id",
    about="Which text, answer or query was judged.",
)
METRIC = Column(
    "metric",
    "text",
    "The metric that the verdict is for.",
    ("metric_name",),
    otherwise=" For verdicts on a question of your own, write 1 or 0 and name the task values.",
)
VERDICT = Column(
    "verdict",
    "verdict",
    "The judge's word: yes, no, ...; TP, FP, FN; a rating; null if there is none.",
    ("verdicts",),
    nullable=True,
)
STEP = Column(
    "step",
    "text",
    "Judged text: response or reference if a metric judges both; in a row of status empty the "
    "missing one.",
    nullable=True,
)
REFERENCE_INDEX = Column(
    "reference_index",
    "whole",
    "Which of several ground truths it was compared with, from 0; 0 if absent.",
    (),
    nullable=True,
    low=0.0,
)
ITEM_INDEX = Column(
    "item_index",
    "whole",
    "Place of the statement or context among those judged together; of contexts their rank.",
    ("item",),
    nullable=True,
    low=0.0,
)
JUDGMENT_INDEX = Column(
    "judgment_index",
    "whole",
    "Which of several judgments of the same item; most of them decide.",
    ("judgment",),
    nullable=True,
    low=0.0,
)
ITEMS = Column(
    "items",
    "whole",
    "How many items were to be judged together; another number of verdicts is an error.",
    ("n_items",),
    nullable=True,
    low=0.0,
)
STATEMENT = Column(
    "statement", "text", "The judged statement.", ("claim", "opinion"), nullable=True
)
REASON = Column("reason", "text", "The judge's reason.", ("analysis",), nullable=True)
STATUS = Column(
    "status",
    "text",
    "ok or null; empty if there was no text to judge; otherwise the kind of error.",
    nullable=True,
)
ERROR = Column("error", "text", "Message of the error.", ("error_message",), nullable=True)
INPUT_TOKENS = Column(
    "input_tokens", "number", "Tokens read by the judge.", ("prompt_tokens",), nullable=True
)
OUTPUT_TOKENS = Column(
    "output_tokens", "number", "Tokens written by the judge.", ("completion_tokens",), nullable=True
)

VERDICT_KEY = ("datum_id", "metric", "step", "reference_index", "item_index", "judgment_index")
"""Columns that together name one verdict; absent ones are equal in all rows."""

JUDGED_TABLE = Table(
    "judged",
    TABLE,
    (JUDGED_DATUM, METRIC, VERDICT),
    (
        STEP,
        REFERENCE_INDEX,
        ITEM_INDEX,
        JUDGMENT_INDEX,
        ITEMS,
        STATEMENT,
        REASON,
        STATUS,
        ERROR,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        DATASET,
    ),
    signs=("verdict",),
    shape="verdicts",
    long=True,
    unread=((WEIGHT, "verdicts have no weights; every datum counts once"),),
    made_of="judge_rows",
    made_by=(
        "evalengine judge run {data} --metric {metrics} --model NAME --base-url URL"
        " -o verdicts.parquet && evalengine score verdicts.parquet",
        "ee.judge({data}, metrics={metrics}, model=..., base_url=...).card",
    ),
)

JUDGED_HUMAN = Table(
    "judged",
    HUMAN,
    (JUDGED_DATUM,),
    (
        METRIC,
        Column(
            "value",
            "number",
            "The label: the metric's value of the datum, such as 1 or 0; null if not labelled yet.",
            ("label", "human_label", "human_score", "human", "rating"),
            nullable=True,
        ),
        VERDICT,
        Column(
            "annotator",
            "text",
            "Who labelled, if several people label the same datums.",
            ("rater", "labeller", "annotator_id", "rater_id"),
            nullable=True,
        ),
        Column(
            "label_weight",
            "number",
            "1 / probability that the row was chosen to be labelled; equal unless given.",
            (),
            nullable=True,
        ),
    ),
    any_of=("value", "verdict"),
)

# Tables of values: numbers per datum, under the user's names of metrics.

METRIC_NAME = Column("metric", "text", "What the value measures; any name.", ("metric_name",))
VALUE = Column(
    "value",
    "value",
    "The number, or true or false; null or NaN if there is none.",
    ("metric_value",),
    nullable=True,
)
EPOCH = Column(
    "epoch",
    "any",
    "Which of several rows of a datum and metric, that are averaged.",
    ("epochs",),
    repeats=True,
)
SAMPLE = Column(
    "sample", "any", "The same as epoch, under another name.", ("sample_index",), repeats=True
)
_VALUES_DATUM = renamed(JUDGED_DATUM, "segment_id", "task_id", about="Which datum the value is of.")

PASSES = re.compile(r"pass([@^])([1-9]\d{0,5})")
"""Metrics of samples: chance that one of k samples passes (@), or that all do (^)."""
VALUES_TABLE = Table(
    "values",
    TABLE,
    (_VALUES_DATUM, METRIC_NAME, VALUE),
    (EPOCH, SAMPLE, WEIGHT, DATASET),
    key=("datum_id", "metric", "epoch", "sample"),
    signs=("metric", "value"),
    formats=("samples",),
    defers=True,
    long=True,
    unpivoted=("metric", "value"),
    unread=(
        (
            Column("", "number", "An index of rows.", ("unnamed: 0",)),
            "it has no name, as the index of a data frame. If it is a metric, name it",
        ),
    ),
    of_metrics=(
        OfMetrics(
            PASSES.pattern,
            (
                Column(
                    "passed",
                    "flag",
                    "Whether the sample passed, for pass@k and pass^k; null if it was not run.",
                    ("is_correct", "correct", "passes", "success", "resolved"),
                    nullable=True,
                ),
            ),
            ("dataset",),
            ((WEIGHT, "pass@k and pass^k have no weights; every datum counts once"),),
        ),
    ),
    decided_by=("value_columns", "statistics"),
)
VALUES_TABLE_COLUMNS = ("datum_id", *(column.name for column in VALUES_TABLE.optional))
"""Columns of a wide table other than those of values."""


QUERY = Column("query", "text", "The question.", ("user_input", "question", "input"), nullable=True)
TEXT = Column(
    "text",
    "text",
    "The answer or text to judge.",
    ("response", "answer", "actual_output", "output", "prediction", "summary"),
    nullable=True,
)
CONTEXTS = Column(
    "contexts",
    "items",
    "Retrieved texts, best first.",
    ("retrieved_contexts", "retrieval_context", "context", "context_list", "retrieved"),
    nullable=True,
    way_out="Give each row a list of strings, as in Parquet and JSON Lines; for one string, as "
    "in CSV, pl.col('contexts').str.split('|') makes a list.",
)
REFERENCE = Column(
    "reference",
    "text_list",
    "The ground truth: a string, or a list of several.",
    words(
        "ground_truth ground_truths groundtruths ground_truth_answers expected_output references"
        " reference_answer"
    ),
    nullable=True,
)
SOURCE = Column(
    "source",
    "text",
    "The text that was summarised, for SummaryCoherence.",
    ("article", "source_text"),
    nullable=True,
)

JUDGE_ROWS = Table(
    "judged",
    "judge_rows",
    (),
    (JUDGED_DATUM, QUERY, TEXT, CONTEXTS, REFERENCE, SOURCE),
    key=("datum_id",),
    any_of=("query", "text", "contexts", "reference", "source"),
    lack="no column to judge",
    filtered=False,
)
"""Input of the judge stage; the metrics determine the required columns."""
JUDGE_REFERENCES = Table(
    "judged",
    "judge_references",
    (JUDGED_DATUM, renamed(TEXT, "reference", "ground_truth", about="One ground truth.")),
    filtered=False,
)
"""Ground truths of the judge stage as a separate table, one per row."""


# Tables of panoptic segmentation: a row a segment, whose pixels a map of ids or a mask has.

SEGMENT_ID = Column(
    "segment_id",
    "whole",
    "The segment's id in the map of its image, R + 256 G + 65536 B of a picture; empty in the row"
    " of an image without segments.",
    ("segment", "instance_id", "panoptic_id"),
    weak=("segment",),
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
    ISCROWD, about="1 for a region of many objects, in which predictions of its label are ignored."
)
_AREA = msgspec.structs.replace(
    AREA, about="Annotated area in pixels, which dialect coco goes by.", nullable=True
)
_NO_SCORES = ((SCORE, "segments of an image do not overlap, and count whatever their score"),)

_EQUAL_SEGMENTS = ((WEIGHT, "segments have no weights; every segment counts once"),)
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
    unread=(*_NO_SCORES, *_EQUAL_SEGMENTS),
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
    unread=_EQUAL_SEGMENTS,
)


# Tables of regression: predicted and true numbers, in one table or two.

VALUE_DATUM = renamed(DATUM_ID, "id", "sample_id", "example_id", "row_id")
_PREDICTED_NUMBER_NAMES = words(
    "y_pred predicted pred forecast y_hat yhat predicted_value prediction_value forecast_value"
    " predicted_mean estimate estimated fitted"
)
_TRUE_NUMBER_NAMES = words(
    "y_true actual truth ground_truth true_value actual_value observed observation expected gold y"
)
_LOWER_NAMES = words(
    "lower_bound lo yhat_lower y_lower pred_lower prediction_lower obs_ci_lower ci_lower lower_ci"
    " pi_lower prediction_interval_lower_bound lwr"
)
_UPPER_NAMES = words(
    "upper_bound hi yhat_upper y_upper pred_upper prediction_upper obs_ci_upper ci_upper upper_ci"
    " pi_upper prediction_interval_upper_bound upr"
)
_BEFORE = r"(?:.*[-_. ])?"  # models precede the level: AutoARIMA-lo-80, forecast_p10
_SHARE = r"0?\.\d+(?:e-\d+)?"
_PERCENT = r"\d{1,2}(?:\.\d+)?"
PREDICTION = Column(
    "prediction",
    "number",
    "The value predicted.",
    _PREDICTED_NUMBER_NAMES,
    kin=("mean", "predictions", "median", "0.5", "p50", "q0.5"),
)
TARGET = Column("target", "number", "The true value.", _TRUE_NUMBER_NAMES)
SCALE = Column(
    "scale",
    "number",
    "Mean absolute error of the naive forecast in the series' training part, for MASE.",
    ("naive_mae", "mase_scale"),
    low=0.0,
    named=True,
    steps=1,
)
SQUARED_SCALE = Column(
    "squared_scale",
    "number",
    "Mean squared error of the naive forecast in the series' training part, for RMSSE.",
    ("naive_mse", "rmsse_scale"),
    low=0.0,
    named=True,
    steps=2,
)
LOWER = Column(
    "lower",
    "number",
    "Lower end of the prediction interval.",
    _LOWER_NAMES,
    named=True,
    below="upper",
)
UPPER = Column("upper", "number", "Upper end of the prediction interval.", _UPPER_NAMES, named=True)
LOWERS = Column(
    "lo",
    "number",
    "Lower end of an interval of a level; the level is in the name: lo0.8, lo-80, lower_80.",
    numbered=rf"{_BEFORE}(?:lo|lower)[-_. ]?({_SHARE}|{_PERCENT})",
    named=True,
    below="hi",
)
UPPERS = Column(
    "hi",
    "number",
    "Upper end of an interval of a level: hi0.8, hi-80, upper_80.",
    numbered=rf"{_BEFORE}(?:hi|upper)[-_. ]?({_SHARE}|{_PERCENT})",
    named=True,
)
SERIES = Column(
    "series",
    "id",
    "Which series a forecast belongs to, for SeriesMASE and the training table.",
    ("unique_id", "series_id", "item_id", "ts_id", "time_series_id", "ts_key"),
    sliced=True,
)
TIME = Column(
    "time",
    "any",
    "When the value was, or will be.",
    ("ds", "timestamp", "date", "datetime", "target_time", "period", "order"),
    sliced=True,
)
CUTOFF = Column(
    "cutoff",
    "any",
    "When the forecast was made.",
    ("origin", "forecast_origin", "issue_time", "forecast_date", "window"),
    sliced=True,
)
HORIZON = Column(
    "horizon",
    "any",
    "How many steps ahead the forecast is.",
    ("step", "h", "steps_ahead", "lead_time", "lead", "forecast_step"),
    sliced=True,
)
GROUP = Column(
    "group_id",
    "id",
    "Group within which rows are ranked, for GroupSpearman.",
    ("group",),
    named=True,
)
QUANTILES = Column(
    "q",
    "number",
    "A predicted quantile; its level is in the name: q0.1, q10, p10, quantile_0.1, 0.1.",
    numbered=rf"(?:{_BEFORE}(?:ql?|quantile|p|percentile)[-_. ]?)?({_SHARE})"
    rf"|{_BEFORE}(?:ql?[-_. ]?(?=\d\d|\d\.)|(?:quantile|p|percentile)[-_. ]?)({_PERCENT})",
    unclear=rf"{_BEFORE}ql?[-_. ]?[1-9]",
    named=True,
    rising=True,
)
SAMPLES = Column(
    "samples",
    "vector",
    "Samples of the predicted distribution: equally many numbers in every row, for CRPS.",
    ("ensemble", "draws"),
    named=True,
    way_out="Give every row a list of as many finite numbers, or remove the row.",
)
_OF_DISTRIBUTIONS = (LOWER, UPPER, LOWERS, UPPERS, QUANTILES, SAMPLES)
_OF_FORECASTS = (SERIES, TIME, CUTOFF, HORIZON)
_FORECAST_COLUMNS = tuple(column.name for column in _OF_FORECASTS)
_KEY = ("datum_id", "label_key")
_ANSWERS = ("prediction", "q", "samples", "lower", "lo")
_KIN_PAIRS = tuple(("prediction", name) for name in _ANSWERS[1:])

REGRESSION_PREDICTIONS = Table(
    "regression",
    PREDICTIONS,
    (VALUE_DATUM,),
    (renamed(PREDICTION, "value"), *_OF_DISTRIBUTIONS, *_OF_FORECASTS, LABEL_KEY, DATASET),
    key=_KEY,
    id_columns=_FORECAST_COLUMNS,
    any_of=_ANSWERS,
    signs=("prediction",),
    shape="values",
    measured=("prediction",),
    kin_pairs=_KIN_PAIRS,
    unread=((WEIGHT, "weights are read from the ground truths; put the column there"),),
)
REGRESSION_GROUND_TRUTHS = Table(
    "regression",
    GROUND_TRUTHS,
    (VALUE_DATUM, renamed(TARGET, "value")),
    (SCALE, SQUARED_SCALE, GROUP, *_OF_FORECASTS, LABEL_KEY, DATASET, WEIGHT),
    key=_KEY,
    id_columns=_FORECAST_COLUMNS,
    signs=("target",),
    measured=("target",),
)
REGRESSION_TABLE = Table(
    "regression",
    TABLE,
    (TARGET,),
    (
        PREDICTION,
        *_OF_DISTRIBUTIONS,
        SCALE,
        SQUARED_SCALE,
        GROUP,
        *_OF_FORECASTS,
        VALUE_DATUM,
        LABEL_KEY,
        DATASET,
        WEIGHT,
    ),
    key=_KEY,
    id_columns=_FORECAST_COLUMNS,
    any_of=_ANSWERS,
    signs=("prediction", "target"),
    shape="values",
    measured=("prediction", "target"),
    kin_pairs=_KIN_PAIRS,
    values=(("prediction", "target"),),
)
REGRESSION_TRAINING = Table(
    "regression", TRAINING, (renamed(TARGET, "value"),), (SERIES, TIME, LABEL_KEY)
)


# Tables of retrieval: a query is the datum; retrieved documents are ids or texts.

QUERY_ID = Column(
    "query_id",
    "id",
    "Which query this belongs to.",
    ("qid", "query-id", "q_id", "topic_id", "topic", "queryid", "question_id"),
    kin=("query", "question", "id", "user_input"),
    weak=("topic",),
)
DOC_ID = Column(
    "doc_id",
    "id",
    "The document.",
    words("docno docid corpus-id corpus_id document_id doc did pid passage_id chunk_id item_id"),
    kin=("id", "document", "passage"),
)
RETRIEVAL_SCORE = renamed(
    SCORE, "similarity", "sim", about="Score of the document, higher is ranked first."
)
RANK = Column(
    "rank",
    "number",
    "Place in the list, lowest first; read if there is no score.",
    ("position", "ranking"),
)
RETRIEVED_TEXT = Column(
    "text",
    "text",
    "The chunk, passage or document itself.",
    ("chunk", "content", "contents", "passage", "context", "body", "page_content", "document"),
)
RELEVANCE = Column(
    "relevance",
    "number",
    "How relevant it was judged, 1 if absent; below 0 is not judged.",
    words("rel relevance_score relevancy judgment judgement grade label score gain"),
)
RETRIEVED = Column(
    "retrieved",
    "items",
    "Retrieved documents, best first: a list of ids or texts.",
    words(
        "retrieved_contexts retrieved_context retrieved_chunks retrieved_docs retrieved_documents"
        " retrieved_ids retrieved_context_ids retrieved_doc_ids"
    ),
    kin=("contexts", "predictions", "chunks"),
)
RELEVANT = Column(
    "relevant",
    "items",
    "Relevant documents: a list of ids or texts.",
    words(
        "reference_contexts ground_truth_context ground_truth_contexts gold_docs gold_documents"
        " gold_contexts relevant_docs relevant_documents relevant_ids reference_context_ids"
        " relevant_doc_ids relevant_contexts gold"
    ),
    kin=("contexts", "ground_truths", "reference"),
)
_QUERY = ("query", "queries")
_EQUAL_QUERIES = ((WEIGHT, "retrieval has no weights; every query counts once"),)

RETRIEVAL_PREDICTIONS = Table(
    "retrieval",
    PREDICTIONS,
    (QUERY_ID,),
    (DOC_ID, RETRIEVED_TEXT, RETRIEVAL_SCORE, RANK, DATASET),
    any_of=("doc_id", "text"),
    signs=("query_id",),
    formats=("trec", "mapping"),
    shape="ranked",
    datum="query_id",
    unit=_QUERY,
    lack="no column of retrieved documents",
    either=("doc_id", "text"),
    instead=(("score", "rank"),),
    unread=_EQUAL_QUERIES,
)
RETRIEVAL_GROUND_TRUTHS = Table(
    "retrieval",
    GROUND_TRUTHS,
    (QUERY_ID,),
    (DOC_ID, RETRIEVED_TEXT, RELEVANCE, DATASET),
    any_of=("doc_id", "text"),
    signs=("query_id",),
    formats=("trec", "mapping"),
    datum="query_id",
    unit=_QUERY,
    lack="no column of judged documents",
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
    values=(("retrieved", "relevant"),),
    shape="lists",
    datum="query_id",
    unit=_QUERY,
    unread=_EQUAL_QUERIES,
)


# Tables of semantic segmentation: label maps, or masks and polygons of one label each.

LABEL_MAP = Column(
    "raster",
    "raster",
    "Label indices: a path of a raster file (PNG, TIFF, GeoTIFF), or rows of pixels; one row per "
    "datum and label key. With label_value, a file or pixels of only that label.",
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
_RASTER_BAND = Column(
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
    _RASTER_BAND,
    _VALUE,
    _CODING,
    HEIGHT,
    WIDTH,
    DATASET,
)
_ONE_OF = ("raster", "mask", "polygon")
_OBJECTS = (SCORE, ISCROWD)  # columns only of tables of objects
_EQUAL_PIXELS = ((WEIGHT, "pixels have no weights; every pixel counts once"),)
_NO_MASK_SCORES = (
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
    unread=_EQUAL_PIXELS + _NO_MASK_SCORES,
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


# Tables of text: written texts, with one or more references each.

TEXT_DATUM = renamed(
    DATUM_ID,
    "id",
    "sample_id",
    "example_id",
    "row_id",
    "question_id",
    "query_id",
    "qid",
    "doc_id",
    "document_id",
    "text_id",
    "segment_id",
    "sentence_id",
)
_WRITTEN = words(
    "prediction predictions predicted response output answer candidate hypothesis actual_output"
    " generated generated_text generated_answer completion hyp mt translation summary"
    " prediction_text model_output"
)
_EXPECTED = words(
    "references reference_text reference_answer ground_truth ground_truths ground_truth_answer"
    " ground_truth_answers expected expected_output target targets gold gold_answer gold_text ref"
    " refs correct_answer answers reference_summary highlights"
)
CANDIDATE_TEXT = Column("text", "text", "The generated text.", _WRITTEN)
TRUE_TEXT = Column("text", "text", "A reference; a row each.", ("reference", *_EXPECTED, "answer"))
REFERENCE_TEXT = Column(
    "reference", "texts", "The reference: a text or a list of texts.", _EXPECTED
)
EMBEDDING = Column(
    "embedding",
    "vector",
    "The vector of the generated text: a list or array of numbers.",
    words(
        "embeddings vector text_embedding prediction_embedding response_embedding"
        " answer_embedding output_embedding generated_embedding candidate_embedding"
    ),
)
_TRUE_VECTORS = words(
    "reference_embeddings reference_vector ground_truth_embedding expected_embedding"
    " target_embedding gold_embedding"
)
TRUE_EMBEDDING = Column(
    "embedding",
    "vector",
    "The vector of a reference; a row each.",
    ("reference_embedding", *_TRUE_VECTORS, *EMBEDDING.aliases[:3]),
)
REFERENCE_EMBEDDING = Column(
    "reference_embedding",
    "vectors",
    "The vector of the reference, or a list of several.",
    _TRUE_VECTORS,
)
TEXT_CONTEXTS = Column(
    "contexts",
    "text_list",
    "Retrieved contexts of the text: a text or a list of texts, for DeterministicFaithfulness.",
    words("retrieved_contexts retrieved_context retrieval_context context context_list retrieved"),
    named=True,
)
_BY_VECTOR = (("text", "embedding"),)
_TEXT_UNREAD = (
    (WEIGHT, "text has no weights; every datum counts once"),
    (
        Column(
            "faithfulness",
            "number",
            "A metric of another tool.",
            words(
                "answer_relevancy response_relevancy context_precision context_recall"
                " context_entity_recall answer_correctness factual_correctness answer_similarity"
                " semantic_similarity noise_sensitivity comet bleurt bertscore"
                " llm_context_precision_with_reference llm_context_precision_without_reference"
            ),
        ),
        f"texts are scored. To summarise numbers of another tool, write {option('task', 'values')}",
    ),
)

TEXT_PREDICTIONS = Table(
    "text",
    PREDICTIONS,
    (TEXT_DATUM, CANDIDATE_TEXT),
    (EMBEDDING, TEXT_CONTEXTS, DATASET),
    signs=("text",),
    shape="references",
    stand_ins=_BY_VECTOR,
    unread=_TEXT_UNREAD,
    defers=True,
)
TEXT_GROUND_TRUTHS = Table(
    "text",
    GROUND_TRUTHS,
    (TEXT_DATUM, TRUE_TEXT),
    (TRUE_EMBEDDING, DATASET),
    signs=("text",),
    shape="vectors",
    stand_ins=_BY_VECTOR,
    unread=_TEXT_UNREAD,
    defers=True,
)
TEXT_TABLE = Table(
    "text",
    TABLE,
    (CANDIDATE_TEXT, REFERENCE_TEXT),
    (EMBEDDING, REFERENCE_EMBEDDING, TEXT_CONTEXTS, TEXT_DATUM, DATASET),
    key=("datum_id",),
    signs=("reference", "text"),
    shape="references",
    stand_ins=(("text", "embedding"), ("reference", "reference_embedding")),
    values=(("text", "reference"), ("embedding", "reference_embedding")),
    unread=_TEXT_UNREAD,
    defers=True,
)


# Tables of tracking: a row a box of an object in one frame of a sequence.

SEQUENCE = Column(
    "sequence",
    "id",
    "Which video or scene this belongs to.",
    ("sequence_id", "sequence_name", "seq", "video_id", "video", "video_name", "clip", "scene"),
    kin=(DATUM_ID.name, *DATUM_ID.aliases),
)
FRAME = Column(
    "frame",
    "whole",
    "Number of the frame in its sequence.",
    ("frame_id", "frame_index", "frame_number", "frame_no", "timestep"),
)
_NAMES = ("object_id", "track_id", "tracker_id", "instance_id", "tracklet_id", "gt_id")
OBJECT_ID = Column(
    "object_id",
    "id",
    "Which object of its sequence this is, the same in all frames.",
    _NAMES[1:],
    kin=("id", "annotation_id"),
)
TRACK_ID = Column(
    "track_id",
    "id",
    "Which track of its sequence this is, the same in all frames.",
    tuple(name for name in _NAMES if name != "track_id"),
    kin=("id",),
)
IGNORED = Column(
    "ignored",
    "flag",
    "1 for a ground truth that need not be found; a prediction that matches it is ignored.",
    ("ignore", "difficult"),
)
CONSIDERED = Column(
    "considered",
    "flag",
    "0 for a ground truth to skip, without its predictions (MOTChallenge).",
    (),
)
REGION = Column(
    "region",
    "flag",
    "1 for a region of objects that are not annotated one by one: a prediction without a match "
    "is ignored if more than half of it is inside.",
    ("iscrowd", "is_crowd", "crowd"),
)
FRAMES = Column(
    "frames",
    "whole",
    "Length of the sequence in frames; those with a box, if absent.",
    ("n_frames", "seqlength", "sequence_length"),
    nullable=True,
    low=0.0,
)
_TRACKING_COMMON = (LABEL_VALUE, DATASET, BBOX)
_TRACKING_SCORE = msgspec.structs.replace(
    SCORE, about="Confidence; not read by any metric.", nullable=True
)
_TRACKING_UNREAD = ((WEIGHT, "tracking has no weights; every box counts once"),)

TRACKING_PREDICTIONS = Table(
    "tracking",
    PREDICTIONS,
    (SEQUENCE, FRAME, TRACK_ID, *_BOX),
    (*_TRACKING_COMMON, _TRACKING_SCORE),
    key=("sequence", "frame", "track_id"),
    signs=("sequence", "frame", "track_id"),
    all_signs=True,
    formats=("tracks",),
    like=("mask", "polygon"),
    shape="boxes",
    datum="sequence",
    unit=("sequence", "sequences"),
    unread=_TRACKING_UNREAD,
    predictions_sign=("track_id",),
)
TRACKING_GROUND_TRUTHS = Table(
    "tracking",
    GROUND_TRUTHS,
    (SEQUENCE, FRAME, OBJECT_ID, *_BOX),
    (*_TRACKING_COMMON, IGNORED, CONSIDERED, REGION, OCCLUDED, TRUNCATED),
    key=("sequence", "frame", "object_id"),
    signs=("sequence", "frame", "object_id"),
    all_signs=True,
    formats=("tracks",),
    like=("mask", "polygon"),
    shape="boxes",
    datum="sequence",
    unit=("sequence", "sequences"),
    unread=_TRACKING_UNREAD,
)
# Other tasks may slice by columns of these names.
TRACKING_DATUMS = msgspec.structs.replace(
    DATUM_TABLE,
    task="tracking",
    required=(renamed(DATUM_ROW, "sequence", "sequence_id", "sequence_name", "seq", "video_id"),),
    optional=(*DATUM_TABLE.optional, FRAMES),
)


# Preferences: which of two models is preferred, one comparison per row.

PREFERENCES_TABLE = Table(
    "preferences",
    TABLE,
    (
        renamed(
            DATUM_ID,
            *("prompt_id", "question_id", "conversation_id", "conversation_hash", "id", "query_id"),
            about="The prompt that both models answered.",
        ),
        Column("model_a", "text", "The first model.", ("model_1", "left_model")),
        Column("model_b", "text", "The second model.", ("model_2", "right_model")),
        Column(
            "winner",
            "text",
            "a, b, tie or both_bad (a tie), or the name of one of the two models.",
            ("preference", "preferred", "chosen_model"),
            way_out="Write a, b, tie, both_bad, or the name of one of the row's models.",
        ),
    ),
    (DATASET,),
    unread=((WEIGHT, "preferences have no weights; every comparison counts once"),),
    shape="models",
    signs=("model_a", "model_b"),
    long=True,
    unit=("prompt", "prompts"),
)

A, B, TIE = "a", "b", "tie"
WINNERS = {
    **dict.fromkeys((A, "model_a"), A),
    **dict.fromkeys((B, "model_b"), B),
    **dict.fromkeys((TIE, "both_bad", "bothbad", "tie (bothbad)"), TIE),
}
"""Value of the column ``winner``, in lower case -> its meaning; otherwise it is a model."""

# Tables of spans: a row an entity of a text, or a segment of a recording; or tags of tokens.

SCHEMES = ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU")
"""Spellings of tags."""

SPAN_DATUM = renamed(
    DATUM_ID,
    *("sentence", "sentence_id", "doc_id", "document_id", "text_id", "id", "video", "video_id"),
    *("video-id", "clip", "recording", "audio_filename"),
    about="Which sentence, document or recording this belongs to.",
)
START = Column(
    "start",
    "number",
    "Where the span begins: number of a token or character, or seconds.",
    ("begin", "onset", "t-start", "t_start", "start_time", "start_char", "start_offset"),
    kin=("from", "first", "offset_start", "event_onset"),
)
END = Column(
    "end",
    "number",
    "Where the span ends, in the same unit: the first place that is not part of it, unless"
    " span_ends is inclusive.",
    ("stop", "offset", "t-end", "t_end", "end_time", "end_char", "end_offset"),
    kin=("to", "last", "offset_end", "event_offset"),
)
TAGS = Column(
    "tags",
    "items",
    "Tags of a sentence's tokens, such as B-PER, I-PER, O, in place of start, end and label_value.",
    ("ner_tags", "labels"),
)
_TAGS_ACTUAL = msgspec.structs.replace(
    ACTUAL, kind="items", about="The true tags of a sentence's tokens: B-PER, I-PER, O."
)
_TAGS_PREDICTED = msgspec.structs.replace(
    PREDICTED, kind="items", about="The predicted tags, as many."
)
_SPAN = (SPAN_DATUM, LABEL_VALUE, START, END)
_SENTENCES = ("sentence or recording", "sentences or recordings")
_SPANS_UNREAD = ((WEIGHT, "spans have no weights; every span counts once"),)

SPANS_PREDICTIONS = Table(
    "spans",
    PREDICTIONS,
    _SPAN,
    (SCORE, LABEL_KEY, DATASET, TAGS),
    signs=("start", "end"),
    all_signs=True,
    formats=("conll",),
    shape="ends",
    unit=_SENTENCES,
    unread=_SPANS_UNREAD,
    tags=("tags",),
)
BOUND_PATTERNS = {
    "start": r"(?i)(.+[_-])?(start|begin)([_-].+)?",
    "end": r"(?i)(.+[_-])?(end|stop)([_-].+)?",
}
"""Ends of spans -> patterns of names that are offered as these, such as ``start_frame``. They are
not read by themselves, since last frames often belong to the span.
"""
SPANS_GROUND_TRUTHS = msgspec.structs.replace(
    SPANS_PREDICTIONS,
    side=GROUND_TRUTHS,
    optional=(LABEL_KEY, DATASET, IGNORE, ANNOTATION_ID, TAGS),
)
DURATION = Column(
    "duration",
    "number",
    "Length of the recording, in the unit of start and end: spans after it are counted.",
    nullable=True,
)
SPANS_DATUMS = msgspec.structs.replace(
    DATUM_TABLE, task="spans", optional=(*DATUM_TABLE.optional, DURATION)
)
SPANS_TABLE = Table(
    "spans",
    TABLE,
    (_TAGS_ACTUAL, _TAGS_PREDICTED),
    (SPAN_DATUM, DATASET),
    key=("datum_id",),
    formats=("conll",),
    unit=_SENTENCES,
    tags=("actual", "predicted"),
    readings={"seqeval": "seqeval", "seqeval-strict": "strict", "nervaluate": "nervaluate"},
)


# Trajectories of agents: tool calls as lists, one row per datum; or one call per row.

TOOL_FIELDS = ("name", "tool_name", "tool")
"""Fields of a call that name its tool, in the order in which they are looked for."""
ARGUMENT_FIELDS = (
    "arguments",
    "args",
    "input",
    "tool_input",
    "tool_args",
    "input_parameters",
    "inputParameters",
    "params",
    "parameters",
    "kwargs",
)
"""Fields of a call with its arguments, likewise."""
PREDICTED_CALLS = Column(
    "predicted_trajectory",
    "calls",
    "The agent's tool calls in their order: structs with name (or tool_name) and arguments (or"
    " tool_input), the same as JSON, or names of tools.",
    ("tools_called", "tool_calls", "trajectory"),
    way_out="Give each row a list; an agent that called no tool has an empty one.",
)
REFERENCE_CALLS = Column(
    "reference_trajectory",
    "calls",
    "The expected tool calls, in the same form.",
    ("expected_tools", "expected_tool_calls", "expected_trajectory"),
    way_out=PREDICTED_CALLS.way_out,
)
_CALL_DATUM = renamed(
    JUDGED_DATUM, "trace_id", "task_id", about="Which task or conversation the calls belong to."
)
_CALL = (
    _CALL_DATUM,
    Column(
        "tool",
        "text",
        "The tool that was called.",
        ("tool_name", "function_name"),
        otherwise=" Lists of calls are read from one table with a row per datum: join both tables"
        " by id, with the lists as predicted_trajectory and reference_trajectory.",
    ),
)
_ABOUT_CALL = (
    Column(
        "step",
        "number",
        "Place of the call in the trajectory; the order of rows if absent.",
        ("step_index", "call_index"),
    ),
    Column(
        "arguments",
        "json",
        "Arguments of the call: a struct, or a JSON object as text; null for none.",
        words("tool_input tool_args args input_parameters inputParameters kwargs"),
        nullable=True,
        spare=("args", "kwargs"),
    ),
    DATASET,
)
_CALLS_UNREAD = ((WEIGHT, "trajectories have no weights; every datum counts once"),)

AGENTS_PREDICTIONS = Table(
    "agents", PREDICTIONS, _CALL, _ABOUT_CALL, signs=("tool",), unread=_CALLS_UNREAD
)
AGENTS_GROUND_TRUTHS = Table(
    "agents", GROUND_TRUTHS, _CALL, _ABOUT_CALL, signs=("tool",), unread=_CALLS_UNREAD
)
AGENTS_TABLE = Table(
    "agents",
    TABLE,
    (PREDICTED_CALLS, REFERENCE_CALLS),
    (_CALL_DATUM, DATASET),
    key=("datum_id",),
    signs=("predicted_trajectory", "reference_trajectory"),
    shape="lists",
    unread=_CALLS_UNREAD,
    of_calls={
        "predicted_trajectory": ("predicted", "prediction", "outputs", "output"),
        "reference_trajectory": ("actual", "expected", "reference", "reference_outputs"),
    },
)

# Input contracts of every task, by task and side.
#
# ``contract`` defines their structure.

TABLES: tuple[Table, ...] = (
    DETECTION_PREDICTIONS,
    DETECTION_GROUND_TRUTHS,
    DETECTION_REGIONS,
    SEGMENTATION_PREDICTIONS,
    SEGMENTATION_GROUND_TRUTHS,
    PANOPTIC_PREDICTIONS,
    PANOPTIC_GROUND_TRUTHS,
    TRACKING_PREDICTIONS,
    TRACKING_GROUND_TRUTHS,
    TRACKING_DATUMS,
    CLASSIFICATION_PREDICTIONS,
    CLASSIFICATION_GROUND_TRUTHS,
    CLASSIFICATION_TABLE,
    RETRIEVAL_PREDICTIONS,
    RETRIEVAL_GROUND_TRUTHS,
    RETRIEVAL_TABLE,
    JUDGED_TABLE,
    JUDGED_HUMAN,
    JUDGE_ROWS,
    JUDGE_REFERENCES,
    VALUES_TABLE,
    TEXT_PREDICTIONS,
    TEXT_GROUND_TRUTHS,
    TEXT_TABLE,
    REGRESSION_PREDICTIONS,
    REGRESSION_GROUND_TRUTHS,
    REGRESSION_TABLE,
    REGRESSION_TRAINING,
    PREFERENCES_TABLE,
    SPANS_PREDICTIONS,
    SPANS_GROUND_TRUTHS,
    SPANS_TABLE,
    SPANS_DATUMS,
    AGENTS_PREDICTIONS,
    AGENTS_GROUND_TRUTHS,
    AGENTS_TABLE,
    DATUM_TABLE,
    LABEL_TABLE,
)


@cache
def task_names() -> tuple[str, ...]:
    """The tasks that have contracts, in their order."""
    return tuple(dict.fromkeys(table.task for table in TABLES if table.task != "all"))


@cache
def contracts(task: str) -> Mapping[str, Table]:
    """Role to contract of every table a task knows."""
    matching = (table for table in reversed(TABLES) if table.task in (task, "all"))
    return MappingProxyType({table.side: table for table in matching})


@cache
def table_for(task: str, side: str) -> Table:
    """Return the contract of one side of one task.

    Raises:
        OptionError: no task of that name, or the task has no such table.
    """
    if task not in task_names():
        raise unknown("task", task, task_names())
    by_side = contracts(task)
    if side not in by_side:
        raise unknown(f"table of {task}", side, by_side)
    return by_side[side]
