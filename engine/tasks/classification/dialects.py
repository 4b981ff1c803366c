"""Classification dialects: undefined values, label sets and defaults of each reference."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect
from ...schemas.layouts import Entry, Layout, Spread


class ClassificationRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        zero_division: value of precision, recall, F and the like if they are 0 / 0; None for
            undefined and excluded from averages.
        neither: precision, recall and F of labels that are neither true nor predicted anywhere;
            None to treat them like any other.
        unused_in_means: declared labels that are neither true nor predicted anywhere enter means.
        weightless_mean: a weighted mean over labels without any weight is their plain mean.
        nan_spreads: a zero_division of NaN makes means NaN; otherwise they skip such labels.
        f_from_ratios: F is computed from precision and recall after zero_division filled them, and
            is 0 if both are; otherwise from counts.
        curve_undefined: precision, recall and F1 of curve rows if they are 0 / 0, or None.
        curve_f1_needs_hits: F1 of curve rows is undefined without true positives.
        curve_every_datum: true negatives of curves are all other datums, also those without data
            under the label's key.
        listed_labels: labels that are only listed (never true, never the hard prediction) get
            rows; otherwise they are ignored.
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


class ClassificationDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set; ``F`` means F-beta at the requested ``beta``.
        score_thresholds: thresholds of curves, computed as i / 20.
        pr_curve_max_examples: examples per cell of the detailed curves.
        decision_threshold: score from which a label counts as predicted, if argmax does not decide.
        beta: weight of recall in F.
        average: average used by single-number exports.
        k: cut-offs of top-k accuracy.
        n_bins: bins of calibration errors.
        max_fpr: upper false-positive rate of partial areas.
    """

    metrics: tuple[str, ...]
    score_thresholds: tuple[float, ...] = tuple(i / 20 for i in range(1, 20))
    pr_curve_max_examples: int = 1
    decision_threshold: float = 0.5
    beta: float = 1.0
    average: str = "macro"
    k: tuple[int, ...] = (1, 5)
    n_bins: int = 15
    max_fpr: float = 0.1


_HARD = ("Accuracy", "Precision", "Recall", "F")
_ALL = ClassificationDefaults(metrics=(*_HARD, "ROCAUC", "mROCAUC"))
_VALOR_RULES = ClassificationRules(
    zero_division=0.0,
    neither=-1.0,
    curve_undefined=-1.0,
    curve_f1_needs_hits=True,
    curve_every_datum=True,
    auc_without_negatives=1.0,
    auc_without_predictions=0.0,
)

DIALECTS = {
    d.name: d
    for d in (
        Dialect(
            name="standard",
            task="classification",
            about="Valor's metric set, scikit-learn's arithmetic; undefined numbers are null.",
            rules=ClassificationRules(),
            defaults=_ALL,
            undefined=None,
            export="valor",
        ),
        Dialect(
            name="sklearn",
            task="classification",
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
            defaults=_ALL,
            undefined=0.0,
            export="valor",
        ),
        Dialect(
            name="phoenix",
            task="classification",
            about="Phoenix's PrecisionRecallFScore: precision, recall and F-beta of label columns.",
            rules=ClassificationRules(
                zero_division=0.0, listed_labels=False, nan_spreads=True, f_from_ratios=True
            ),
            defaults=ClassificationDefaults(metrics=("Precision", "Recall", "F")),
            undefined=0.0,
            export="phoenix",
        ),
        Dialect(
            name="valor",
            task="classification",
            about="Valor's service and core: 0 if undefined, -1 in curves.",
            rules=_VALOR_RULES,
            defaults=_ALL,
            undefined=-1.0,
            export="valor",
        ),
        Dialect(
            name="valor-lite",
            task="classification",
            about="valor-lite 0.39: undefined is 0, means run over all labels.",
            rules=ClassificationRules(
                zero_division=0.0,
                curve_undefined=0.0,
                auc_without_negatives=0.0,
                auc_without_positives=0.0,
            ),
            defaults=_ALL,
            undefined=0.0,
            export="valor",
        ),
        Dialect(
            name="torchmetrics",
            task="classification",
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
            defaults=_ALL,
            undefined=0.0,
            export="valor",
        ),
    )
}


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
