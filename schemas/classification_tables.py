"""Tables of classification: two long ones, or one of both sides."""

from __future__ import annotations

from .columns import DATASET, DATUM_ID, LABEL_KEY, LABEL_VALUE, SCORE, WEIGHT, renamed
from .contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table

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
    "predicted",
    "label",
    "The label predicted, or a list of them.",
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
    multilabel_shape="sets",
    wide=("score",),
    values=(("predicted", "actual"), ("score", "actual")),
    beside=(("actual", "predicted"),),
)
