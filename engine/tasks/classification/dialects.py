"""Classification dialects and settings: undefined values and label sets of each reference."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ...dialects import Aims, Dialect, check_costs, of_task
from ...schemas.contract import words
from ...schemas.display import Entry, Layout, Spread
from ...schemas.errors import OptionError
from ...schemas.option_values import LabelThresholds
from ...schemas.options import Options
from ...schemas.wording import option


class ClassificationRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        zero_division: value of precision, recall, F and the like if they are 0 / 0; None for
            undefined and excluded from averages.
        neither: precision, recall and F of labels that are neither true nor predicted anywhere;
            None to treat them like any other.
        unused_in_means: declared labels that are neither true nor predicted anywhere enter means;
            they always do with several labels per datum.
        weightless_mean: a weighted mean over labels without any weight is their plain mean.
        nan_spreads: a zero_division of NaN makes means NaN; otherwise they skip such labels.
        f_from_ratios: F is computed from precision and recall after zero_division filled them, and
            is 0 if both are; otherwise from counts.
        curve_undefined: precision, recall and F1 of curve rows if they are 0 / 0, or None.
        curve_f1_needs_hits: F1 of curve rows is undefined without true positives.
        curve_every_datum: true negatives of curves are all other datums, also those without data
            under the label's key.
        listed_labels: labels that are only listed (never true, never the hard prediction) get
            rows; otherwise they are ignored, unless a datum may have several labels.
        declared_labels_only: averages are over exactly the declared labels, if any.
        auc_without_negatives: ROC AUC of a label that all datums have, or None.
        auc_without_positives: ROC AUC of a label that no datum has, or None.
        auc_without_predictions: ROC AUC of labels whose key has no prediction at all, or None.
        auc_mean_needs_all: the macro mean is undefined if one label's area is.
        precision_without_positives: average precision of a label that no datum has, or None.
        absent_precision_means: such labels enter its means in single-label data; torchmetrics
            excludes them unless all datums have the first label.
        degenerate: Matthews' correlation if a marginal is empty, or None.
        top_k_first_row: of tied scores the first row ranks higher; otherwise the larger label.
        bins_to_upper_edge: calibration bins include their upper edge, with the edges of
            ``numpy.linspace``; otherwise they include the lower one.
    """

    zero_division: float | None = None
    neither: float | None = None
    unused_in_means: bool = True
    weightless_mean: bool = False
    nan_spreads: bool = False
    f_from_ratios: bool = False
    curve_undefined: float | None = None
    curve_f1_needs_hits: bool = False
    curve_every_datum: bool = False
    listed_labels: bool = True
    declared_labels_only: bool = False
    auc_without_negatives: float | None = None
    auc_without_positives: float | None = None
    auc_without_predictions: float | None = None
    auc_mean_needs_all: bool = False
    precision_without_positives: float | None = None
    absent_precision_means: bool = True
    degenerate: float | None = None
    top_k_first_row: bool = True
    bins_to_upper_edge: bool = False


ONE_LABEL_ONLY = words(
    "BalancedAccuracy BalancedAccuracyAdjusted MCC CohenKappa CohenKappaLinear"
    " CohenKappaQuadratic TopKAccuracy mROCAUCOneVsOne LogLoss Brier ECE ECECalibrated RMSCE MCE"
    " Reliability ConfusionMatrix Outcomes"
)
"""Metrics of one true label against one prediction a datum, without meaning for several."""


class Settings(Aims, frozen=True, kw_only=True):
    """Settings of a classification run: the dialect's rules, and options with defaults filled in.

    Attributes:
        positive_label: positive class of binary tables, or None for 1 / true.
        zero_division: NaN for undefined.
        examples_given: the user requests examples of confusion matrices.
        relabelled: labels are mapped, so that one may be listed twice.
    """

    rules: ClassificationRules
    average: str
    positive_label: Any
    zero_division: float
    score_thresholds: tuple[float, ...]
    decision_threshold: float
    multilabel: bool
    k: tuple[int, ...]
    n_bins: int
    max_fpr: float
    top_share: float
    thresholds: LabelThresholds = ()
    thin_curves: bool
    pr_curve_max_examples: int
    examples_given: bool
    relabelled: bool

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        check_costs(values)
        if values["average"] == "samples" and not options.multilabel:
            raise OptionError(
                f"{option('average', 'samples')} is a mean over datums of several labels each: give"
                f" {option('multilabel', True)}, or another average.",
                code="option_unfit",
                option="average",
            )
        wrong = [name for name in options.metrics or () if name in ONE_LABEL_ONLY]
        if options.multilabel and wrong:
            raise OptionError(
                f"{', '.join(wrong)}: undefined if a datum may have several labels; remove"
                f" {option('multilabel', True)}, or these metrics.",
                code="option_unfit",
                option="metrics",
                value=wrong,
            )
        if values["zero_division"] is None:
            values["zero_division"] = math.nan
        values["examples_given"] = options.pr_curve_max_examples is not None
        values["relabelled"] = options.label_map is not None


_HARD = ("Accuracy", "Precision", "Recall", "F")
_ALL = (*_HARD, "ROCAUC", "mROCAUC")
_DEFAULTS = {
    "score_thresholds": tuple(i / 20 for i in range(1, 20)),
    "pr_curve_max_examples": 1,
    "decision_threshold": 0.5,
    "beta": 1.0,
    "average": "macro",
    "k": (1, 5),
    "n_bins": 15,
    "max_fpr": 0.1,
}
_VALOR_RULES = ClassificationRules(
    zero_division=0.0,
    neither=-1.0,
    curve_undefined=-1.0,
    curve_f1_needs_hits=True,
    curve_every_datum=True,
    auc_without_negatives=1.0,
    auc_without_predictions=0.0,
)

DIALECTS = of_task(
    "classification",
    Dialect(
        name="standard",
        about="Valor's metric set, scikit-learn's arithmetic; undefined numbers are null.",
        rules=ClassificationRules(),
        metrics=_ALL,
        defaults=_DEFAULTS,
        export="valor",
    ),
    Dialect(
        name="sklearn",
        about="scikit-learn: labels are truth and argmax together, undefined is 0.",
        rules=ClassificationRules(
            zero_division=0.0,
            weightless_mean=True,
            listed_labels=False,
            declared_labels_only=True,
            auc_mean_needs_all=True,
            precision_without_positives=0.0,
            degenerate=0.0,
            top_k_first_row=False,
            bins_to_upper_edge=True,
        ),
        metrics=_ALL,
        defaults=_DEFAULTS,
        undefined=0.0,
        export="valor",
    ),
    Dialect(
        name="phoenix",
        about="Phoenix's PrecisionRecallFScore: precision, recall and F-beta of label columns.",
        rules=ClassificationRules(
            zero_division=0.0, listed_labels=False, nan_spreads=True, f_from_ratios=True
        ),
        metrics=("Precision", "Recall", "F"),
        defaults=_DEFAULTS,
        undefined=0.0,
        export="phoenix",
    ),
    Dialect(
        name="valor",
        about="Valor's service and core: 0 if undefined, -1 in curves.",
        rules=_VALOR_RULES,
        metrics=_ALL,
        defaults=_DEFAULTS,
        undefined=-1.0,
        export="valor",
    ),
    Dialect(
        name="valor-lite",
        about="valor-lite 0.39: undefined is 0, means run over all labels.",
        rules=ClassificationRules(
            zero_division=0.0,
            curve_undefined=0.0,
            auc_without_negatives=0.0,
            auc_without_positives=0.0,
        ),
        metrics=_ALL,
        defaults=_DEFAULTS,
        undefined=0.0,
        export="valor",
    ),
    Dialect(
        name="torchmetrics",
        about="torchmetrics: undefined is 0, means skip labels without any count.",
        rules=ClassificationRules(
            zero_division=0.0,
            unused_in_means=False,
            listed_labels=False,
            auc_without_negatives=0.0,
            auc_without_positives=0.0,
            precision_without_positives=0.0,
            absent_precision_means=False,
            degenerate=0.0,
        ),
        metrics=_ALL,
        defaults=_DEFAULTS,
        undefined=0.0,
        export="valor",
    ),
)


# Layout of classification results, by label.

_CLASSES = Layout(
    headline=(),
    # F1 comes first: it falls for labels with misses; precision falls for labels that gain them.
    label_columns=tuple(Entry(name, name) for name in ("F1", "Precision", "Recall")),
    slice_columns=(),
    tables=(Spread("Reliability", "score_threshold", "bin from"),),
)

LAYOUTS: dict[str | None, Layout] = {None: _CLASSES}
"""Dialect -> layout; None is the task's own."""
