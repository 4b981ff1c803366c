"""Tables of regression: predicted and true numbers, in one table or two."""

from __future__ import annotations

from .columns import DATASET, DATUM_ID, LABEL_KEY, WEIGHT, renamed
from .contract import GROUND_TRUTHS, PREDICTIONS, TABLE, Column, Table

VALUE_DATUM = renamed(DATUM_ID, "id", "sample_id", "example_id", "row_id")
_PREDICTED_NAMES = (
    "y_pred", "predicted", "pred", "forecast", "y_hat", "yhat", "predicted_value",
    "prediction_value", "estimate", "estimated", "fitted",
)  # fmt: skip
_TRUE_NAMES = (
    "y_true", "actual", "truth", "ground_truth", "true_value", "actual_value", "observed",
    "observation", "expected", "gold", "y",
)  # fmt: skip
PREDICTION = Column("prediction", "number", "The value predicted.", _PREDICTED_NAMES)
TARGET = Column("target", "number", "The true value.", _TRUE_NAMES)
SCALE = Column(
    "scale",
    "number",
    "Mean absolute error of the naive forecast in the series' training part, for MASE.",
    ("naive_mae", "mase_scale"),
    low=0.0,
)
SQUARED_SCALE = Column(
    "squared_scale",
    "number",
    "Mean squared error of the naive forecast in the series' training part, for RMSSE.",
    ("naive_mse", "rmsse_scale"),
    low=0.0,
)
LOWER = Column("lower", "number", "Lower end of the prediction interval.", ("lower_bound", "lo"))
UPPER = Column("upper", "number", "Upper end of the prediction interval.", ("upper_bound", "hi"))
_KEY = ("datum_id", "label_key")

REGRESSION_PREDICTIONS = Table(
    "regression",
    PREDICTIONS,
    (VALUE_DATUM, renamed(PREDICTION, "value")),
    (LOWER, UPPER, LABEL_KEY, DATASET),
    key=_KEY,
    signs=("prediction",),
    measured=("prediction",),
    unread=((WEIGHT, "weights are read from the ground truths; put the column there"),),
)
REGRESSION_GROUND_TRUTHS = Table(
    "regression",
    GROUND_TRUTHS,
    (VALUE_DATUM, renamed(TARGET, "value")),
    (SCALE, SQUARED_SCALE, LABEL_KEY, DATASET, WEIGHT),
    key=_KEY,
    signs=("target",),
    measured=("target",),
)
REGRESSION_TABLE = Table(
    "regression",
    TABLE,
    (PREDICTION, TARGET),
    (LOWER, UPPER, SCALE, SQUARED_SCALE, VALUE_DATUM, LABEL_KEY, DATASET, WEIGHT),
    key=_KEY,
    signs=("prediction", "target"),
    measured=("prediction", "target"),
    values=(("prediction", "target"),),
)
