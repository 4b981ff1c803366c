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
    named=True,
)
SQUARED_SCALE = Column(
    "squared_scale",
    "number",
    "Mean squared error of the naive forecast in the series' training part, for RMSSE.",
    ("naive_mse", "rmsse_scale"),
    low=0.0,
    named=True,
)
LOWER = Column(
    "lower", "number", "Lower end of the prediction interval.", ("lower_bound", "lo"), named=True
)
UPPER = Column(
    "upper", "number", "Upper end of the prediction interval.", ("upper_bound", "hi"), named=True
)
GROUP = Column(
    "group_id", "id", "What rows are ranked within, for GroupSpearman.", ("group",), named=True
)
QUANTILES = Column(
    "q",
    "number",
    "A predicted quantile; its level stands in the name: q0.1, q0.5, q0.9.",
    numbered=r"(?:q|quantile)[_ ]?(0?\.\d+)",
    named=True,
)
SAMPLES = Column(
    "samples",
    "vector",
    "Draws of the predicted distribution: a list of as many numbers in every row, for CRPS.",
    ("ensemble", "draws"),
    named=True,
    way_out="Give every row a list of as many finite numbers, or remove the row.",
)
_KEY = ("datum_id", "label_key")

REGRESSION_PREDICTIONS = Table(
    "regression",
    PREDICTIONS,
    (VALUE_DATUM, renamed(PREDICTION, "value")),
    (LOWER, UPPER, QUANTILES, SAMPLES, LABEL_KEY, DATASET),
    key=_KEY,
    signs=("prediction",),
    shape="values",
    measured=("prediction",),
    unread=((WEIGHT, "weights are read from the ground truths; put the column there"),),
)
REGRESSION_GROUND_TRUTHS = Table(
    "regression",
    GROUND_TRUTHS,
    (VALUE_DATUM, renamed(TARGET, "value")),
    (SCALE, SQUARED_SCALE, GROUP, LABEL_KEY, DATASET, WEIGHT),
    key=_KEY,
    signs=("target",),
    measured=("target",),
)
REGRESSION_TABLE = Table(
    "regression",
    TABLE,
    (PREDICTION, TARGET),
    (
        LOWER,
        UPPER,
        QUANTILES,
        SAMPLES,
        SCALE,
        SQUARED_SCALE,
        GROUP,
        VALUE_DATUM,
        LABEL_KEY,
        DATASET,
        WEIGHT,
    ),
    key=_KEY,
    signs=("prediction", "target"),
    shape="values",
    measured=("prediction", "target"),
    values=(("prediction", "target"),),
)
