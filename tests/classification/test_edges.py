"""Edge cases and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from classification.rows import (
    Sides,
    counts_by_cell,
    label_values,
    matrix_tables,
    score,
    two_tables,
)
from lazy_imports import LazyModule
from refusals import refused

import evalengine as ee

sklearn_metrics = LazyModule("sklearn.metrics")

SCORED = ["ROCAUC", "LogLoss"]


def sides(predictions: list[tuple[Any, ...]], truths: list[tuple[Any, ...]]) -> Sides:
    """Make long tables of (datum, label[, score])."""
    names = ["datum_id", "label_value", "score"]
    width = len(predictions[0])
    return (
        pl.DataFrame(predictions, schema=names[:width], orient="row"),
        pl.DataFrame(truths, schema=names[:2], orient="row"),
    )


GOOD = sides([(1, "a", 0.9), (1, "b", 0.1), (2, "a", 0.3), (2, "b", 0.7)], [(1, "a"), (2, "b")])


def changed(side: int, **columns: Any) -> Sides:
    """Replace columns of one side of the valid tables."""
    tables = list(GOOD)
    tables[side] = tables[side].with_columns(
        pl.Series(name, values) for name, values in columns.items()
    )
    return tuple(tables)


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        (
            changed(0, label_value=["a", "a", "a", "b"]),
            {},
            {
                "code": "repeated_values",
                "side": "predictions",
                "column": "label_value",
                "count": 2,
                "rows": [0, 1],
                "values": 1,
                "key": ["datum_id", "label_value"],
            },
        ),
        (
            changed(1, datum_id=[1, 1]),
            {},
            {
                "code": "repeated_values",
                "side": "ground_truths",
                "column": "datum_id",
                "count": 2,
                "rows": [0, 1],
                "values": 1,
                "key": ["datum_id"],
            },
        ),
        (
            changed(0, score=[0.9, float("nan"), 0.3, 0.7]),
            {},
            {
                "code": "not_finite",
                "side": "predictions",
                "column": "score",
                "count": 1,
                "rows": [1],
            },
        ),
        (
            changed(0, score=[0.9, 0.1, float("inf"), 0.7]),
            {},
            {
                "code": "not_finite",
                "side": "predictions",
                "column": "score",
                "count": 1,
                "rows": [2],
            },
        ),
        (
            changed(0, score=[0.9, 0.1, 1.5, -0.7]),
            {},
            {
                "code": "not_probabilities",
                "columns": ["score"],
                "rows": [2, 3],
                "count": 2,
                "first": (2, 0, 1.5),
            },
        ),
        (changed(0, datum_id=[7, 7, 8, 8]), {}, {"code": "no_common_id", "column": "datum_id"}),
        (
            tuple(table.drop("score", strict=False) for table in GOOD),
            {},
            {"code": "several_labels", "count": 2},
        ),
        (
            changed(1, label_value=["a", None]),
            {},
            {
                "code": "null_values",
                "side": "ground_truths",
                "column": "label_value",
                "count": 1,
                "rows": [1],
            },
        ),
    ],
)
def test_refused_tables(tables: Sides, options: dict[str, Any], message: dict[str, Any]) -> None:
    """Each problem names its column and rows."""
    with refused(**message):
        score(tables, SCORED if "score" in tables[0].columns else ["F1"], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0.0}, {"code": "option_value", "option": "beta"}),
        ({"beta": -1.0}, {"code": "option_value", "option": "beta"}),
        ({"beta": float("inf")}, {"code": "option_value", "option": "beta"}),
        ({"k": [0]}, {"code": "option_value", "option": "k", "value": 0}),
        ({"n_bins": 0}, {"code": "option_value", "option": "n_bins", "value": 0}),
        ({"max_fpr": 0.0}, {"code": "option_value", "option": "max_fpr"}),
        ({"max_fpr": 1.5}, {"code": "option_value", "option": "max_fpr"}),
        ({"average": "binary"}, {"code": "unknown_name", "value": "binary"}),
        (
            {"target_precision": 1.5},
            {"code": "option_value", "option": "target_precision", "value": 1.5},
        ),
        (
            {"decision_threshold": float("nan")},
            {"code": "option_value", "option": "decision_threshold"},
        ),
        (
            {"pr_curve_max_examples": -1},
            {"code": "option_value", "option": "pr_curve_max_examples", "value": -1},
        ),
        ({"score_thresholds": []}, {"code": "option_value", "option": "score_thresholds"}),
    ],
)
def test_refused_options(options: dict[str, Any], message: dict[str, Any]) -> None:
    """Values out of range."""
    with refused(**message):
        score(GOOD, SCORED, **options)


@pytest.mark.parametrize("metric", ["F0", "F-1", "Fx", "Finf", "Fnan"])
def test_an_invalid_beta_is_refused(metric: str) -> None:
    """F needs a finite beta above 0."""
    with pytest.raises(ee.OptionError, match="metric"):
        score(GOOD, [metric])


@pytest.mark.parametrize(
    "metric",
    ["MCC", "CohenKappaQuadratic", "TopKAccuracy", "LogLoss", "ECE", "ConfusionMatrix", "Outcomes"],
)
def test_metrics_of_one_label(metric: str) -> None:
    """Metrics that are undefined for several labels per datum are refused."""
    with pytest.raises(ee.OptionError, match=f"{metric}: undefined"):
        score(GOOD, [metric], multilabel=True)


@pytest.mark.parametrize("metric", ["ROCAUC", "AP", "LogLoss", "TopKAccuracy", "ROCCurve", "ECE"])
@pytest.mark.parametrize("several", [None, True])
def test_no_scores(metric: str, several: bool | None) -> None:
    """Without scores, a named metric of scores is refused; a default one is skipped."""
    tables = two_tables(["a", "b"], ["a", "a"])
    if several and metric in ("LogLoss", "TopKAccuracy", "ECE"):
        return
    with pytest.raises(ee.InputError, match="no column 'score'"):
        score(tables, [metric], multilabel=several)
    card = ee.score(*tables, task="classification", multilabel=several)
    assert set(card.metrics["metric"]) == {"Accuracy", "Precision", "Recall", "F1"}
    assert any("no column 'score'" in note for note in card.notes)


def test_several_labels_without_scores() -> None:
    """Every listed row is predicted."""
    tables = sides([(1, "a"), (1, "b"), (2, "b")], [(1, "a"), (1, "c"), (2, "b")])
    card = score(tables, ["Counts", "Accuracy", "F1"], multilabel=True)
    counts = {
        label: [card.value("Counts", statistic=s, label_value=label) for s in ("tp", "fp", "fn")]
        for label in "abc"
    }
    assert counts == {"a": [1, 0, 0], "b": [1, 1, 0], "c": [0, 0, 1]}
    assert card.value("Accuracy") == 0.5


def table(**columns: Any) -> Sides:
    """Make one table."""
    return (pl.DataFrame(columns),)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"actual": [[1, 0], [1]], "predicted": [[1, 0], [1, 0]]}, {}, "unequal length"),
        ({"actual": ["a", "b"], "score": [0.1, 0.9]}, {}, "positive_label"),
        ({"actual": ["a", "b"], "score": [0.1, 0.9]}, {"positive_label": "z"}, "no such label"),
        ({"actual": [1, 2, 3], "score": [0.1, 0.9, 0.2]}, {}, "3 labels"),
        ({"actual": [2, 3], "score": [0.1, 0.9]}, {}, "no label is 1"),
        ({"actual": [1, 0], "predicted": [1, 0]}, {"multilabel": True}, "two tables"),
        ({"actual": [0.5, 1], "score": [0.1, 0.9]}, {}, "not whole"),
    ],
)
def test_refused_single_tables(
    columns: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    """One table that is ambiguous or incomplete."""
    metrics = ["ROCAUC"] if "score" in columns else ["F1"]
    with pytest.raises(ee.InputError, match=message):
        score(table(**columns), metrics, **options)


@pytest.mark.parametrize(
    ("actual", "positive", "label"),
    [
        ([True, False, True, False], None, True),
        ([1, 0, 1, 0], None, 1),
        (["y", "n", "y", "n"], "y", "y"),
        ([1, 0, 1, 0], 0, 0),
    ],
)
def test_positive_labels(actual: list[Any], positive: Any, label: Any) -> None:
    """One row, for the label to which the score belongs."""
    card = score(
        table(actual=actual, score=[0.9, 0.8, 0.4, 0.1]),
        ["ROCAUC", "Counts"],
        positive_label=positive,
    )
    area = 0.75 if label != 0 else 0.25
    assert label_values(card, "ROCAUC") == {label: area}
    assert card.value("Counts", statistic="tp", label_value=label) == 1


def test_the_decision_threshold() -> None:
    """A score equal to the threshold is predicted, in the precision of the scores."""
    for dtype in (pl.Float64, pl.Float32):
        scores = pl.Series([0.7, 0.7, 0.69], dtype=dtype)
        card = score(table(actual=[1, 0, 1], score=scores), ["Counts"], decision_threshold=0.7)
        counts = [
            card.value("Counts", statistic=s, label_value=1) for s in ("tp", "fp", "fn", "tn")
        ]
        assert counts == [1, 1, 1, 0]


def test_equal_scores_and_one_class() -> None:
    """All tied: an area of one half. One class: null with a reason, and skipped by the mean."""
    truth, scores = ["a", "b", "a"], [[0.5, 0.5]] * 3
    for tables, more in matrix_tables(truth, scores, ["a", "b"]).values():
        card = score(tables, ["ROCAUC", "Accuracy", "mROCAUC"], **more)
        assert label_values(card, "ROCAUC") == {"a": 0.5, "b": 0.5}
        assert card.value("Accuracy") == 2 / 3  # the first of equal rows
    truth, scores = ["a", "a"], [[0.9, 0.1], [0.2, 0.8]]
    for tables, more in matrix_tables(truth, scores, ["a", "b"]).values():
        card = score(tables, ["ROCAUC", "mROCAUC", "MCC", "CohenKappa"], **more)
        assert label_values(card, "ROCAUC") == {"a": None, "b": None}
        assert card.value("mROCAUC") is None
        assert card.metrics.filter(pl.col("value").is_null())["reason"].null_count() == 0
        assert card.value("MCC") is None


@pytest.mark.parametrize(
    ("dialect", "present", "expected"),
    [
        ("standard", 0, (None, None, None)),
        ("standard", 1, (None, None, 1.0)),
        ("sklearn", 0, (None, None, 0.0)),
        ("sklearn", 1, (None, None, 1.0)),
        ("torchmetrics", 0, (0.0, 0.0, 0.0)),
        ("torchmetrics", 1, (0.0, 0.0, 1.0)),
    ],
)
def test_partial_areas_and_micro_averages_of_one_class(
    dialect: str, present: int, expected: tuple[float | None, ...]
) -> None:
    """Numbers of torchmetrics 1.9 and scikit-learn 1.9 if all labels are true, or none."""
    actual = pl.Series([["a", "b"][: 2 * present]] * 2, dtype=pl.List(pl.String))
    rows = pl.DataFrame({"actual": actual, "a": [0.5, 0.2], "b": [0.1, 0.3]})
    card = ee.score(
        rows,
        metrics=["PartialROCAUC", "mROCAUC", "mAP"],
        dialect=dialect,
        multilabel=True,
        score_columns=["a", "b"],
        average="micro",
    )
    assert card.value("PartialROCAUC", label_value="b") == expected[0]
    assert tuple(card.value(name, average="micro") for name in ("mROCAUC", "mAP")) == expected[1:]


def test_zeros_tie() -> None:
    """-0.0 equals 0.0, in areas and at thresholds."""
    card = score(
        table(actual=[1, 0], score=[-0.0, 0.0]),
        ["ROCAUC", "PrecisionRecallCurve"],
        score_thresholds=[0.0],
    )
    assert card.value("ROCAUC", label_value=1) == 0.5
    assert card.curves.select("tp", "fp").row(0) == (1, 1)


def test_unmatched_rows_count() -> None:
    """A ground truth without prediction is missed; the reverse is a false positive."""
    tables = sides([(1, "a", 0.9), (3, "a", 0.8)], [(1, "a"), (2, "a")])
    card = score(tables, ["Counts", "Recall", "Precision", "ConfusionMatrix", "Accuracy"])
    counts = [card.value("Counts", statistic=s, label_value="a") for s in ("tp", "fp", "fn", "tn")]
    assert counts == [1, 1, 1, 0]
    assert card.value("Accuracy") == 0.5
    assert counts_by_cell(card.confusion) == {
        ("label", "a", "a"): 1, ("label", "a", None): 1, ("label", None, "a"): 1,
    }  # fmt: skip


@pytest.mark.parametrize("empty", [0, 1])
def test_an_empty_side(empty: int) -> None:
    """An empty side is scored."""
    tables = list(GOOD)
    tables[empty] = tables[empty].clear()
    card = score(tuple(tables), ["Counts", "F1", "ROCAUC", "Accuracy", "PrecisionRecallCurve"])
    tp, fp, fn = (
        card.metrics.filter(pl.col("statistic") == s)["value"].sum() for s in ("tp", "fp", "fn")
    )
    assert (tp, fp, fn) == ((0, 0, 2) if empty == 0 else (0, 2, 0))
    assert card.value("Accuracy") == (0.0 if empty == 0 else None)


def test_label_map() -> None:
    """Labels that are mapped to one label count once per datum, with the best score."""
    tables = sides(
        [(1, "van", 0.2), (1, "car", 0.6), (1, "dog", 0.4), (2, "dog", 0.9), (2, "van", 0.1)],
        [(1, "van"), (2, "dog")],
    )
    metrics = ["Counts", "ROCAUC", "PrecisionRecallCurve"]
    card = score(tables, metrics, label_map={"van": "car"}, score_thresholds=[0.1, 0.5])
    plain = score(
        sides(
            [(1, "car", 0.6), (1, "dog", 0.4), (2, "dog", 0.9), (2, "car", 0.1)],
            [(1, "car"), (2, "dog")],
        ),
        metrics,
        score_thresholds=[0.1, 0.5],
    )
    assert card.metrics.equals(plain.metrics)
    assert card.curves.equals(plain.curves)
    keys = pl.Series("label_key", ["one", "two"])
    truths = pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "b"]}).with_columns(keys)
    to_one = {("one", "a"): ("k", "a"), ("two", "b"): ("k", "b")}
    with refused("several_labels", ee.InputError, count=1):
        score((truths.with_columns(score=pl.Series([0.5, 0.5])), truths), ["F1"], label_map=to_one)


def test_one_table_with_ids_keys_and_slices() -> None:
    """One table with datum ids, two label keys and a slice that is not a string."""
    rows = pl.DataFrame(
        {
            "datum_id": ["u", "u", "v", "v"],
            "label_key": ["k", "l", "k", "l"],
            "actual": ["a", "b", "b", "b"],
            "predicted": ["a", "a", "b", "b"],
            "site": [1, 1, 2, 2],
        }
    )
    card = score((rows,), ["Accuracy", "ConfusionMatrix"], by="site")
    values = {
        key: card.value("Accuracy", label_key=key, slice=None, slice_value=None) for key in "kl"
    }
    assert values == {"k": 1.0, "l": 0.5}
    assert card.value("Accuracy", label_key="l", slice="site", slice_value="1") == 0.0
    no_ids = rows.filter(label_key="k").drop("datum_id", "label_key")
    card = score((no_ids,), ["Accuracy"], by="site")
    assert card.value("Accuracy", slice="site", slice_value="2") == 1.0


def test_score_columns_under_label_keys() -> None:
    """Score columns belong to the key of their row, in one table and in two."""
    truths = pl.DataFrame(
        {"datum_id": [1, 2, 1], "label_key": ["k", "k", "l"], "label_value": ["a", "b", "b"]}
    )
    scores = {"p_a": [0.9, 0.8, 0.4], "p_b": [0.1, 0.2, 0.6]}
    columns = {"a": "p_a", "b": "p_b"}
    predictions = truths.drop("label_value").with_columns(
        **{n: pl.Series(v) for n, v in scores.items()}
    )
    single = predictions.with_columns(actual=truths["label_value"])
    cards = [
        score(inputs, ["Accuracy", "ROCAUC"], score_columns=columns)
        for inputs in ((predictions, truths), (single,))
    ]
    for card in cards:
        assert card.value("Accuracy", label_key="k") == 0.5
        assert card.value("Accuracy", label_key="l") == 1.0
        assert label_values(card, "ROCAUC", "k") == {"a": 1.0, "b": 1.0}


def test_the_predicted_column_next_to_score_columns() -> None:
    """The predicted column decides; the score of its label is shown and calibrated."""
    single = pl.DataFrame(
        {"actual": ["a", "b"], "predicted": ["b", "b"], "p_a": [0.9, 0.3], "p_b": [0.1, 0.7]}
    )
    card = score(
        (single,), ["Accuracy", "Outcomes", "ECE"], score_columns={"a": "p_a", "b": "p_b"}, n_bins=1
    )
    assert card.value("Accuracy") == 0.5
    shown = card.outcomes.filter(pl.col("score").is_not_null())
    assert dict(zip(shown["outcome"], shown["score"], strict=True)) == {
        "fp_misclassified": 0.1, "tp": 0.7,
    }  # fmt: skip
    assert card.value("ECE") == pytest.approx(abs(0.5 - (0.1 + 0.7) / 2))


@pytest.mark.parametrize("threshold", [1e300, -1e300])
def test_thresholds_beyond_single_precision(threshold: float) -> None:
    """They are outside the range of the scores, and no computation warns."""
    table = pl.DataFrame({"actual": [1, 0], "score": pl.Series([3e38, -3e38], dtype=pl.Float32)})
    card = ee.score(table, metrics=["PrecisionRecallCurve"], score_thresholds=[threshold])
    tp, fp = (1, 1) if threshold < 0 else (0, 0)
    assert card.curves.select("tp", "fp").row(0) == (tp, fp)


@pytest.mark.parametrize("keyed", [False, True])
def test_score_columns_without_a_row(keyed: bool) -> None:
    """Without rows nothing is predicted, with and without label keys."""
    wide = pl.DataFrame({"datum_id": [1], "p_a": [0.2], "p_b": [0.8]}).clear()
    truths = pl.DataFrame({"datum_id": [1, 2], "label_value": ["a", "b"]})
    if keyed:
        wide, truths = (side.with_columns(label_key=pl.lit("k")) for side in (wide, truths))
    card = ee.score(wide, truths, score_columns="p_*", metrics=["Recall", "ROCAUC"])
    assert card.value("Recall", label_value="a") == 0.0


@pytest.mark.parametrize("n_bins", [3, 5, 10, 15, 20, 100])
def test_confidences_on_the_edges_of_bins_begin_their_bins(n_bins: int) -> None:
    """Edges are i / n exactly, so 0.6 begins its bin with 5, 10 and 15 bins."""
    edges = [i / n_bins for i in range(n_bins)]
    rows = [(i, name, p) for i, edge in enumerate(edges) for name, p in (("a", edge), ("b", 0.0))]
    scores = pl.DataFrame(rows, ["datum_id", "label_value", "score"], orient="row")
    truths = pl.DataFrame({"datum_id": range(n_bins), "label_value": ["a"] * n_bins})
    card = ee.score(scores, truths, metrics=["Reliability"], n_bins=n_bins)
    share = card.curves if card.curves.height else card.metrics
    confidences = share.filter(pl.col("statistic") == "confidence")
    assert confidences["score_threshold"].to_list() == edges
    assert confidences["value"].to_list() == edges


@pytest.mark.parametrize("beta", [1 / 3, 0.1 + 0.2, 1e6, 1e17, 12345.678, 2.0])
def test_beta_is_not_rounded(beta: float) -> None:
    truth, predicted = ["a", "b", "a", "c", "a"], ["a", "a", "b", "c", "a"]
    tables = (
        pl.DataFrame({"datum_id": range(5), "label_value": labels, **more})
        for labels, more in ((predicted, {"score": [1.0] * 5}), (truth, {}))
    )
    card = ee.score(*tables, dialect="sklearn", beta=beta)
    name = next(metric for metric in card.metrics["metric"].unique() if metric.startswith("F"))
    want = sklearn_metrics.fbeta_score(truth, predicted, beta=beta, average="macro")
    assert card.value(name) == pytest.approx(want, rel=1e-15)
    f = ee.precision_recall_fscore(truth, predicted, beta=beta)[2]["score"]
    assert f == pytest.approx(want, rel=1e-15)


class TestSets:
    """One table with a list of all labels per datum."""

    def test_an_empty_list_is_a_datum_without_labels(self) -> None:
        table = pl.DataFrame({"actual": [["a", "b"], ["c"], []], "predicted": [["a"], ["c"], []]})
        metrics = ["Accuracy", "HammingLoss", "F1"]
        card = ee.score(table, multilabel=True, metrics=metrics, zero_division=1)
        assert card.value("Accuracy") == pytest.approx(2 / 3)
        assert card.value("HammingLoss") == pytest.approx(1 / 9)
        assert card.value("F1", average="samples") == pytest.approx((2 / 3 + 1 + 1) / 3)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (
                {"actual": ["a"], "predicted": [["a"]]},
                {"code": "not_lists", "side": "table", "column": "actual"},
            ),
            (
                {"actual": [["a"]], "score": [0.5]},
                {"code": "not_lists", "side": "table", "column": "score"},
            ),
            (
                {"actual": [["a"]], "predicted": [["a", "a"]]},
                {
                    "code": "repeated_in_list",
                    "side": "table",
                    "column": "predicted",
                    "count": 1,
                    "rows": [0],
                },
            ),
            (
                {"actual": [["a", None]], "predicted": [["a"]]},
                {
                    "code": "null_in_list",
                    "side": "table",
                    "column": "actual",
                    "count": 1,
                    "rows": [0],
                },
            ),
            (
                {"actual": [["a"]], "predicted": [["a"]], "label_key": ["k"]},
                {"code": "label_key_beside_lists", "side": "table", "column": "label_key"},
            ),
        ],
    )
    def test_refused(self, columns: dict[str, Any], message: dict[str, Any]) -> None:
        with refused(**message):
            ee.score(pl.DataFrame(columns), multilabel=True)

    def test_columns_of_scores_are_called_by_labels_in_lists(self) -> None:
        columns = {
            "actual": [["a", "b"], ["b"], []],
            "p_a": [0.9, 0.2, 0.1],
            "p_b": [0.1, 0.2, 0.3],
        }
        card = ee.score(pl.DataFrame(columns), multilabel=True, score_columns="p_*")
        assert card.labels["label_value"].to_list() == ["a", "b"]
        assert card.value("ROCAUC", label_value="b") == 0.0


@pytest.mark.parametrize("multilabel", [True, False])
@pytest.mark.parametrize("intervals", [None, 0.95])
def test_lists_without_any_label(multilabel: bool, intervals: float | None) -> None:
    table = {"datum_id": [1, 2], "actual": [[], []], "predicted": [[], []]}
    card = ee.score(table, metrics=["F1"], multilabel=multilabel, intervals=intervals)
    assert card.metrics["value"].drop_nulls().is_empty()
    assert [(one.code, one.severity) for one in card.findings] == [("no_rows", "warning")]


@pytest.mark.parametrize("labels", [None, ["a", "b"]])
def test_scores_of_no_datums(labels: list[str] | None) -> None:
    card = ee.score(np.zeros((0, 2)), np.zeros(0, int), task="classification", labels=labels)
    assert [one.code for one in card.findings] == ["no_rows"]


def test_lists_of_unequal_length_may_be_several_labels() -> None:
    table = {"actual": [["a", "b"], ["a"]], "predicted": [["a"], ["a"]]}
    with pytest.raises(ee.InputError, match="multilabel=True"):
        ee.score(table, task="classification", metrics=["F1"])
