"""Metrics of the task, a family a module."""

MODULES = ("errors", "distributions")
"""Modules that define ``METRICS``, in their order."""

SYMBOLS = {
    r"n": "rows, weighted if there are weights",
    r"p_i": "prediction",
    r"t_i": "target",
    r"e_i": "error",
    r"\bar{p}": "their mean",
    r"\bar{t}": "mean of the targets",
    r"\bar{e}": "mean of the errors",
    r"\delta": "huber_delta",
    r"f": "n_features",
    r"\rho": "tweedie_power",
    r"d(t_i, p_i)": "deviance of one row, as in TweedieDeviance",
    r"l_q(t_i, p_i)": "loss of one row, as in Pinball",
    r"t_{(q)}": "the targets' own quantile",
    r"q": "quantile: the option, or the level in a column's name",
    r"p_{iq}": "predicted quantile",
    r"Q": "the levels there are",
    r"l_i": "lower end",
    r"u_i": "upper end",
    r"\lambda": "level of the interval",
    r"x_{ij}": "sample j of row i",
    r"m": "samples of a row",
    r"a_i": "rank of the prediction, ties by their mean",
    r"c_i": "rank of the target, ties by their mean",
    r"n_c": "pairs of rows in the same order on both sides",
    r"n_d": "pairs in opposite orders",
    r"n_t": "pairs of different targets",
    r"n_p": "pairs of different predictions",
    r"n_0": "pairs of different targets and equal predictions",
    r"G": "groups in which neither side is constant",
    r"s_i": "scale of the row's series: the mean absolute error of the naive forecast in training",
    r"s_i^2": "the mean squared one",
    r"K": "series",
    r"n_k": "rows of one",
    r"b": "one of ten bins of rows by prediction",
    r"n_b": "rows in it",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "WAPE=weightedmeanabsolutepercentageerror,wmape,nd MedianAE=mdae MeanError=meanbiaserror"
    " Pearson=pearsoncorrcoef,pearsonr Spearman=spearmancorrcoef Kendall=kendallrankcorrcoef"
    " Concordance=concordancecorrcoef CRPS=continuousrankedprobabilityscore"
    " R2=coefficientofdetermination,r^2,rsquared,nse,nashsutcliffe"
    " AdjustedR2=adjr2,adjustedrsquared"
)
"""Metrics, each with its names in other tools, squeezed."""

_NEGATED = "It is {} with its sign changed."

CLOSE: dict[str, str] = {
    **{
        f"neg{name}": _NEGATED.format(f"'{ours}'")
        for name, ours in (
            ("meanabsoluteerror", "MAE"),
            ("meansquarederror", "MSE"),
            ("rootmeansquarederror", "RMSE"),
            ("meansquaredlogerror", "MSLE"),
            ("rootmeansquaredlogerror", "RMSLE"),
            ("medianabsoluteerror", "MedianAE"),
            ("meanabsolutepercentageerror", "MAPE"),
            ("maxerror", "MaxError"),
            ("meanpoissondeviance", "PoissonDeviance"),
            ("meangammadeviance", "GammaDeviance"),
        )
    },
    "wis weightedintervalscore": (
        "With a median and pairs of quantiles it equals 'CRPSFromQuantiles'."
    ),
    "bias": "The mean of prediction - target is 'MeanError'.",
    "tweediedeviancescore": "Write metric 'TweedieDeviance' with tweedie_power.",
    "wql": "It is 'CRPSFromQuantiles' divided by the mean of |target|.",
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""
