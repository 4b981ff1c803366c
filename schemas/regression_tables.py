"""Tables of regression: predicted and true numbers, in one table or two."""

from __future__ import annotations

from .columns import DATASET, DATUM_ID, LABEL_KEY, WEIGHT, renamed
from .contract import GROUND_TRUTHS, PREDICTIONS, TABLE, TRAINING, Column, Table

VALUE_DATUM = renamed(DATUM_ID, "id", "sample_id", "example_id", "row_id")
_PREDICTED_NAMES = (
    "y_pred", "predicted", "pred", "forecast", "y_hat", "yhat", "predicted_value",
    "prediction_value", "forecast_value", "predicted_mean", "estimate", "estimated", "fitted",
)  # fmt: skip
_TRUE_NAMES = (
    "y_true", "actual", "truth", "ground_truth", "true_value", "actual_value", "observed",
    "observation", "expected", "gold", "y",
)  # fmt: skip
_LOWER_NAMES = (
    "lower_bound", "lo", "yhat_lower", "y_lower", "pred_lower", "prediction_lower", "obs_ci_lower",
    "ci_lower", "lower_ci", "pi_lower", "prediction_interval_lower_bound", "lwr",
)  # fmt: skip
_UPPER_NAMES = (
    "upper_bound", "hi", "yhat_upper", "y_upper", "pred_upper", "prediction_upper", "obs_ci_upper",
    "ci_upper", "upper_ci", "pi_upper", "prediction_interval_upper_bound", "upr",
)  # fmt: skip
_BEFORE = r"(?:.*[-_. ])?"  # models stand before the level: AutoARIMA-lo-80, forecast_p10
_SHARE = r"0?\.\d+(?:e-\d+)?"
_PERCENT = r"\d{1,2}(?:\.\d+)?"
PREDICTION = Column(
    "prediction",
    "number",
    "The value predicted.",
    _PREDICTED_NAMES,
    kin=("mean", "predictions", "median", "0.5", "p50", "q0.5"),
)
TARGET = Column("target", "number", "The true value.", _TRUE_NAMES)
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
    "group_id", "id", "What rows are ranked within, for GroupSpearman.", ("group",), named=True
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
    "Draws of the predicted distribution: a list of as many numbers in every row, for CRPS.",
    ("ensemble", "draws"),
    named=True,
    way_out="Give every row a list of as many finite numbers, or remove the row.",
)
_OF_DISTRIBUTIONS = (LOWER, UPPER, LOWERS, UPPERS, QUANTILES, SAMPLES)
_OF_FORECASTS = (SERIES, TIME, CUTOFF, HORIZON)
_TOGETHER = tuple(column.name for column in _OF_FORECASTS)
_KEY = ("datum_id", "label_key")
_ANSWERS = ("prediction", "q", "samples", "lower", "lo")
_BESIDE = tuple(("prediction", name) for name in _ANSWERS[1:])

REGRESSION_PREDICTIONS = Table(
    "regression",
    PREDICTIONS,
    (VALUE_DATUM,),
    (renamed(PREDICTION, "value"), *_OF_DISTRIBUTIONS, *_OF_FORECASTS, LABEL_KEY, DATASET),
    key=_KEY,
    together=_TOGETHER,
    any_of=_ANSWERS,
    signs=("prediction",),
    shape="values",
    measured=("prediction",),
    beside=_BESIDE,
    unread=((WEIGHT, "weights are read from the ground truths; put the column there"),),
)
REGRESSION_GROUND_TRUTHS = Table(
    "regression",
    GROUND_TRUTHS,
    (VALUE_DATUM, renamed(TARGET, "value")),
    (SCALE, SQUARED_SCALE, GROUP, *_OF_FORECASTS, LABEL_KEY, DATASET, WEIGHT),
    key=_KEY,
    together=_TOGETHER,
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
    together=_TOGETHER,
    any_of=_ANSWERS,
    signs=("prediction", "target"),
    shape="values",
    measured=("prediction", "target"),
    beside=_BESIDE,
    values=(("prediction", "target"),),
)
REGRESSION_TRAINING = Table(
    "regression",
    TRAINING,
    (renamed(TARGET, "value"),),
    (SERIES, TIME, LABEL_KEY),
)
