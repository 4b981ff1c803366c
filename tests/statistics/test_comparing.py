"""Comparisons checked against tests of other libraries, and against tables of resampled datums."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES, every_case
from polars.testing import assert_frame_equal, assert_series_equal
from random_tables import are_percentiles, identity, random_case, repeated, scored
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from scipy import stats

import evalengine as ee
from evalengine.kernels.datums import draw_weights, swap_bits
from evalengine.metrics.registry import all_metrics
from evalengine.report.verdicts import better, differs, lead
from evalengine.schemas.contract import NAMES
from evalengine.statistics.tests import (
    adjusted,
    cannot_be_significant,
    mcnemar,
    paired_t,
    randomisation_p,
)
from evalengine.tasks.encoding import hashes_of

DRAWS = 20

# -- p-values --------------------------------------------------------------------------------------

P = np.array([0.01, 0.04, 0.03, 0.005, 0.2, 0.03, 1.0])


def test_holm_as_statsmodels() -> None:
    """statsmodels 0.15.0: multipletests(p, method="holm")."""
    assert adjusted(P, "holm") == pytest.approx([0.06, 0.15, 0.15, 0.035, 0.4, 0.15, 1.0])


def test_benjamini_hochberg_as_scipy() -> None:
    assert adjusted(P, "bh") == pytest.approx(stats.false_discovery_control(P))
    assert (adjusted(P, "none") == P).all()


@pytest.mark.parametrize("how", ["holm", "bh"])
def test_untested_rows_are_not_counted(how: str) -> None:
    some = np.array([np.nan, 0.01, np.nan, 0.04])
    result = adjusted(some, how)
    assert np.isnan(result[[0, 2]]).all()
    assert result[[1, 3]] == pytest.approx(adjusted(some[[1, 3]], how))
    assert np.isnan(adjusted(np.full(3, np.nan), how)).all()


def test_one_is_added_to_the_draws_that_are_as_extreme() -> None:
    swaps = np.array([[0.1, 0.0, np.nan], [-0.5, 0.0, np.nan], [0.3, 0.0, np.nan]])
    result = randomisation_p(np.array([0.3, 0.2, 0.2]), swaps)
    assert result[:2] == pytest.approx([3 / 4, 1 / 4])
    assert np.isnan(result[2])


def test_ties_depend_on_the_size_of_the_values() -> None:
    """A difference of 0.001 between values of a million has at most ten exact digits."""
    seen, swaps = np.array([0.001]), np.array([[0.001 - 2e-10], [-0.001 + 2e-10], [0.0]])
    assert randomisation_p(seen, swaps) == pytest.approx([1 / 4])
    assert randomisation_p(seen, swaps, np.array([1e6])) == pytest.approx([3 / 4])


def test_ties_of_roots_of_sums_of_squares() -> None:
    """If all datums are swapped, RMSE of 0.7 and 267 differs by rounding of the larger squares."""
    seen, swaps = np.array([266.0332791391939]), np.array([[-266.033279137702], [195.0]])
    assert randomisation_p(seen, swaps, np.array([266.7])) == pytest.approx([2 / 3])


def queries(seed: int, n: int, gain: float = 0.0) -> tuple[pl.DataFrame, ...]:
    """Return two runs of six documents per query, and the judgments."""
    rng = np.random.default_rng(seed)
    pairs = pl.DataFrame(
        {"query_id": np.repeat(np.arange(n), 6), "doc_id": np.tile(np.arange(6), n)}
    )
    relevance = (rng.random(6 * n) < 0.3).astype(int)
    relevance[::6] = 1
    scores = rng.random((2, 6 * n)) + np.array([[0.0], [gain]]) * relevance
    runs = [pairs.with_columns(score=pl.Series(one)) for one in scores]
    return *runs, pairs.with_columns(relevance=pl.Series(relevance))


def compared(*sides: pl.DataFrame, **options: Any) -> dict[str, Any]:
    """Return the row of the only metric by which two runs are compared."""
    (row,) = ee.compare(*sides[:2], ground_truths=sides[2], **options).differences.iter_rows(
        named=True
    )
    return row


def by_query(side: pl.DataFrame, judged: pl.DataFrame) -> np.ndarray:
    values = ee.score(side, judged, metrics="nDCG@5").per_datum.sort("datum_id")["value"]
    return values.to_numpy()


@pytest.mark.parametrize("task", ["classification", "regression", "values"])
def test_other_weights_are_noted(task: str) -> None:
    value = pl.Series(np.random.default_rng(0).random(40))
    columns = {
        "classification": {"target": value > 0.3, "prediction": value > 0.5},
        "regression": {"target": value, "prediction": value + 0.1},
        "values": {"COMET": value},
    }
    frame = pl.DataFrame({"datum_id": range(40), **columns[task]})
    weighted = frame.with_columns(weight=1.0 + (pl.col("datum_id") == 7))

    def noted(*sides: pl.DataFrame) -> list[str]:
        options: dict[str, Any] = {"value_columns": ["COMET"]} if task == "values" else {}
        result = ee.compare(*sides, task=task, draws=20, **options)
        return [one for one in result.notes if "different weights" in one]

    assert "1 datum with" in noted(frame, weighted)[0]
    assert "first 7" in noted(frame, weighted)[0]
    assert noted(weighted, weighted.with_columns(pl.col("weight") * 2))
    assert not noted(frame, frame)
    assert not noted(weighted, weighted.sample(fraction=1.0, shuffle=True, seed=1))


def test_options_of_one_run_are_noted() -> None:
    frame = pl.DataFrame(
        {"datum_id": range(40), "target": ["a", "b"] * 20, "part": [0, 1, 1, 0] * 10}
    )
    frame = frame.with_columns(prediction=pl.Series(["a"] * 30 + ["b"] * 10))
    result = ee.compare(
        frame, frame, metrics="Accuracy", draws=20, spread="part", human="x.parquet"
    )
    assert sum("is not read" in one for one in result.notes) == 2


def test_students_t_as_scipy() -> None:
    first, second, judged = queries(1, 80, 0.2)
    row = compared(first, second, judged, metrics="nDCG@5", test="t")
    a, b = by_query(first, judged), by_query(second, judged)
    assert row["p"] == pytest.approx(stats.ttest_rel(b, a).pvalue, rel=1e-9)
    assert row["difference"] == pytest.approx((b - a).mean())
    assert (row["wins"], row["ties"], row["losses"]) == (
        (b > a).sum(),
        (b == a).sum(),
        (b < a).sum(),
    )
    result = stats.ttest_rel(b, a)
    assert row["se"] == pytest.approx(result.statistic**-1 * (b - a).mean())
    assert (row["lower"], row["upper"]) == pytest.approx(result.confidence_interval(0.95))
    # The difference that a two-sided test at 5 % detects in four of five cases.
    reach = stats.t.ppf(0.975, 79) + 0.841621234
    assert row["detectable"] == pytest.approx(reach * row["se"])


def test_a_p_of_t_is_never_below_zero() -> None:
    rng = np.random.default_rng(1)
    for n in range(15, 200):
        of_a, of_b = rng.random(n) * 0.1, 0.5 + rng.random(n) * 0.1
        assert 0 <= paired_t((of_a.mean(), of_b.mean(), of_a, of_b)) < 1e-12


@pytest.mark.parametrize("test", [paired_t, mcnemar])
def test_metrics_that_are_not_means_of_datums_have_no_p(test: Any) -> None:
    of_a, of_b = np.array([1.0, 0, 1, 1, 0]), np.array([1.0, 1, 0, 1, 1])
    a, b = of_a.mean(), of_b.mean()
    assert 0 < test((a, b, of_a, of_b)) <= 1
    assert np.isnan([test((a + 0.1, b, of_a, of_b)), test((a, b + 0.1, of_a, of_b))]).all()


def test_randomisation_is_that_over_all_swaps() -> None:
    """With eight queries, p is close to that over all 256 swaps."""
    first, second, judged = queries(2, 8, 0.2)
    a, b = by_query(first, judged), by_query(second, judged)
    signs = np.array(list(product((1, -1), repeat=8)))
    every = np.abs((signs * (b - a)).mean(axis=1))
    exact = (every >= abs((b - a).mean()) - 1e-12).mean()
    assert 0.01 < exact < 0.5
    row = compared(first, second, judged, metrics="nDCG@5", draws=4000)
    assert abs(row["p"] - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000) + 1 / 4000


# statsmodels 0.15.0: mcnemar([[both, a alone], [b alone, neither]], exact=True).
MCNEMAR = [((10, 3, 12, 75), 0.03515625), ((0, 0, 6, 4), 0.03125), ((5, 7, 7, 3), 1.0)]


@pytest.mark.parametrize(("counts", "p"), MCNEMAR)
def test_mcnemar_as_statsmodels(counts: tuple[int, ...], p: float) -> None:
    both, a_alone, b_alone, neither = counts
    right = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0)
    tables = [
        pl.DataFrame({"datum_id": range(sum(counts)), "actual": 1, "predicted": one})
        for one in right.T
    ]
    comparison = ee.compare(*tables, labels=[0, 1], metrics="Accuracy", test="mcnemar")
    (row,) = comparison.differences.iter_rows(named=True)
    assert row["p"] == pytest.approx(p)
    assert (row["wins"], row["losses"], row["ties"]) == (b_alone, a_alone, both + neither)


SACREBLEU = {"CorpusBLEU": BLEU, "chrF": CHRF}


@pytest.mark.parametrize("metric", SACREBLEU)
def test_as_sacrebleus_approximate_randomisation(metric: str) -> None:
    """The p-value of equally many swaps is within four standard errors of the two."""
    rng = np.random.default_rng(3)
    words = np.array([f"{a}{b}{c}" for a in "klmnp" for b in "aeiou" for c in "rst"])
    references = [rng.choice(words, rng.integers(8, 20)) for _ in range(120)]
    systems = [
        [
            " ".join(np.where(rng.random(one.size) < wrong, rng.choice(words, one.size), one))
            for one in references
        ]
        for wrong in (0.25, 0.235)
    ]
    spoken = [" ".join(one) for one in references]
    n = 2000
    named = [("one", systems[0]), ("two", systems[1])]
    test = PairedTest(named, {"M": SACREBLEU[metric]()}, [spoken], test_type="ar", n_samples=n)
    _, results = test()
    theirs = next(one for name, one in results.items() if name != "System")[1]
    tables = [
        pl.DataFrame({"datum_id": range(120), "text": t, "reference": spoken}) for t in systems
    ]
    comparison = ee.compare(*tables, dialect="sacrebleu", metrics=metric, draws=n)
    (row,) = comparison.differences.iter_rows(named=True)
    assert row["b"] == pytest.approx(theirs.score)
    assert 0.01 < theirs.p_value < 0.9
    p = theirs.p_value
    assert abs(row["p"] - p) < 4 * np.sqrt(2 * p * (1 - p) / n) + 1 / n


# -- every task ------------------------------------------------------------------------------------

MOVED = {"detection": "score", "classification": "score", "binary": "score",
         "segmentation": "raster", "retrieval": "score", "lists": "retrieved", "text": "text",
         "judged": "verdict", "panoptic": "label_value", "keypoints": "score", "seen": "score",
         "tracking": "xmin", "oriented": "score", "solid": "score", "centres": "score",
         "sets": "predicted", "regression": "prediction", "values": "value",
         "preferences": "winner", "entities": "label_value", "segments": "score",
         "agents": "predicted_trajectory"}  # fmt: skip


COUNTS = ("Counts", "KeypointCounts")  # 0 if a label is not resampled, of which tables have no row


SHARES = {metric.name for task in NAMES for metric in all_metrics(task).values() if metric.trials}


def by_rank(case: Case) -> Case:
    """Replace scores by mid-ranks from the top within each label."""
    side = case.sides[0]
    label = [name for name in ("label_key", "label_value", "predicted") if name in side.columns]
    scores = [name for name in side.columns if name == "score" or name.startswith("p_")]
    ranks = [pl.col(name).rank("average", descending=True) for name in scores]
    ranks = [rank.over(label) for rank in ranks] if label else ranks
    made = side.with_columns((rank * 2 + 1).pow(-1) for rank in ranks)
    return replace(case, sides=(made, *case.sides[1:]))


def pair(name: str, seed: int) -> tuple[Case, Case]:
    """Return two runs; one has a column of predictions in another order.

    Five metrics without slices are enough, because tests of single runs check all resamples.
    """
    case = random_case(name, seed)
    case = replace(case, options={**case.options, "by": []})
    if "metrics" in case.options:
        few = [*case.options["metrics"][:5]]
        case = replace(case, options={**case.options, "metrics": few})
    column = MOVED[name]
    side = case.sides[0]
    if column not in side.columns:  # complete score columns, or calls in rows
        column = next(one for one in side.columns if one.startswith("p_") or one == "tool")
    moved = side.with_columns(pl.col(column).shuffle(seed))
    if name == "tracking":  # boxes keep their width
        moved = moved.with_columns(xmax=pl.col("xmin") + 4)
    if (
        CASES[name][0] == "detection" or name == "segments"
    ):  # scores within a datum are distinct again
        within = pl.int_range(pl.len()).over("datum_id")
        moved = moved.with_columns(pl.col("score") + within / 1e6 + 5e-10)
    return case, Case((moved, *case.sides[1:]), case.options, case.datum, case.tables)


def of_tables(name: str, first: Case, second: Case, rows: pl.DataFrame, seed: int) -> np.ndarray:
    """Compute differences per resample from tables in which datums are repeated as resampled."""
    ids = pl.Series(first.ids, dtype=first.sides[0].schema[first.datum])
    weights = draw_weights(hashes_of(ids), seed, 0, DRAWS)
    result = []
    for of_draw in weights.T:
        times = dict(zip(ids, of_draw.tolist(), strict=True))
        values = [values_of(name, repeated(case, times), rows) for case in (first, second)]
        result.append(values[1] - values[0])
    return np.array(result)


def values_of(name: str, case: Case, rows: pl.DataFrame) -> np.ndarray:
    """Return the value of each row, NaN if such tables have none."""
    result = scored(name, case)
    own = [column for column in identity(result) if column in rows.columns]
    result = result.select(*own, "value")
    places = rows.select(own).with_row_index("place")
    joined = places.join(result, on=own, how="left", nulls_equal=True).sort("place")
    return joined["value"].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def comparison_of(name: str, first: Case, second: Case, **options: Any) -> ee.Comparison:
    given: dict[str, Any] = {**first.options, **first.tables, **options}
    if len(first.sides) == 2:
        given["ground_truths"] = first.sides[1]
    return ee.compare(first.sides[0], second.sides[0], task=CASES[name][0], **given)


def of_all_datums(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows for which no datum is missing; test_missing_values tests the others."""
    return rows.filter((pl.col("missing_a").fill_null(0) + pl.col("missing_b").fill_null(0)) == 0)


SOME = ["detection", "binary", "panoptic", "retrieval", "regression"]
"""Ranked rows, counts and means; tests of single runs check the resamples of all cases."""
some_cases = pytest.mark.parametrize("name", SOME)


@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom|All-NaN)")
@some_cases
def test_resamples_of_differences_are_repeated_datums(name: str) -> None:
    """Both runs have the same resamples."""
    first, second = pair(name, 31)
    comparison = comparison_of(name, first, second, intervals=0.9, draws=DRAWS, seed=5)
    rows = of_all_datums(comparison.differences)
    rows = rows.filter(pl.col("difference").is_not_null() & ~pl.col("metric").is_in(COUNTS))
    rows = rows.filter(pl.col("statistic").is_null() | (pl.col("statistic") != "share"))
    if name == "judged" and not rows.height:  # verdicts fail in one of the runs
        return
    assert rows.height
    result = of_tables(name, first, second, rows, 5)
    se = np.nanstd(result, axis=0, ddof=1)
    still = se < 1e-12  # of a single datum, or equal in all
    ours = rows["se"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    assert ours[~still] == pytest.approx(se[~still], abs=1e-9, nan_ok=True)
    shares = rows.select(pl.col("metric").is_in(SHARES) & pl.col("average").is_null())
    drawn = ~still & ~shares.to_series().to_numpy()  # others have Tango's interval
    bounds = rows.select("lower", "upper").cast(pl.Float64).fill_null(float("nan")).to_numpy()
    assert are_percentiles(bounds[drawn], result[:, drawn], 0.9).all()
    flat = rows.filter(pl.Series(still)).drop_nulls("lower")
    assert set(flat["metric"]) <= SHARES
    assert (flat["lower"] < flat["upper"]).all()


@some_cases
def test_swaps_are_datums_of_the_other_run(name: str) -> None:
    """p-values equal those of tables in which datums have the other run's predictions."""
    first, second = pair(name, 33)
    if name == "detection":  # no row is removed before rows are ranked
        first, second = (
            replace(one, options={**one.options, "dialect": "coco"}) for one in (first, second)
        )
    comparison = comparison_of(name, first, second, draws=DRAWS, seed=5)
    rows = of_all_datums(comparison.differences).filter(
        pl.col("p").is_not_null() & ~pl.col("metric").is_in(COUNTS)
    )
    rows = rows.filter(pl.col("statistic").is_null() | (pl.col("statistic") != "share"))
    task = CASES[name][0]
    ranks = [metric.name for metric in all_metrics(task).values() if metric.ranks]
    ranked = (
        rows.select(pl.col("metric").is_in(ranks) & pl.col("average").ne_missing("samples"))
        .to_series()
        .to_numpy()
    )  # a mean over datums ranks labels, not datums
    if name == "centres":  # boxes out of range are removed first
        rows = rows.filter(pl.Series(~ranked))
        ranked = ranked[~ranked]
    result = mixed_tables(name, first, second, rows)
    if ranked.any():
        result = np.where(ranked, mixed_tables(name, by_rank(first), by_rank(second), rows), result)
    theirs = randomisation_p(rows["difference"].to_numpy(), result)
    assert rows["p"].to_numpy() == pytest.approx(theirs, abs=1e-12)


def mixed_tables(name: str, first: Case, second: Case, rows: pl.DataFrame) -> np.ndarray:
    """Compute differences per resample from tables with the other run's predictions."""
    ids = pl.Series(first.ids, dtype=first.sides[0].schema[first.datum])
    swaps = swap_bits(hashes_of(ids), 5, 0, DRAWS).astype(bool)
    result = []
    for swap in swaps.T:
        other = pl.col(first.datum).is_in(ids.filter(pl.Series(swap)).implode())
        a, b = (
            Case((x.with_row_index("place").filter(~other)
                  .vstack(y.with_row_index("place").filter(other)).sort("place").drop("place"),
                  *first.sides[1:]),
                 first.options, first.datum, first.tables)
            for x, y in ((first.sides[0], second.sides[0]), (second.sides[0], first.sides[0]))
        )  # fmt: skip
        result.append(values_of(name, b, rows) - values_of(name, a, rows))
    return np.array(result)


@every_case
def test_a_run_compared_with_itself(name: str) -> None:
    """The difference is 0, without uncertainty and without evidence."""
    case, _ = pair(name, 34)
    comparison = comparison_of(name, case, case, draws=DRAWS)
    rows = comparison.differences.filter(pl.col("difference").is_not_null())
    for column, value in (("difference", 0), ("lower", 0), ("upper", 0), ("se", 0), ("p", 1)):
        assert set(rows[column].drop_nulls()) == {value}
    assert set(rows["wins"].drop_nulls()) | set(rows["losses"].drop_nulls()) <= {0}
    assert comparison.flips.height == 0


def test_the_verdict_names_other_significant_differences():
    qrels = {f"q{q}": {"good": 1, "fine": 1} for q in range(12)}
    b = {key: {"good": 3.0, "bad": 2.0, "fine": 1.0} for key in qrels}
    runs = [
        {key: {"good": 3.0, "fine": 2.0} for key in qrels},
        {**b, "q0": {"bad": 2.0, "good": 1}},
    ]
    asked = {"ground_truths": qrels, "draws": 200, "names": ["a", "b"], "metrics": ["MRR", "P@2"]}
    result = ee.compare(*runs, **asked)
    assert "MRR 1.0000 against 0.9583" in result.verdict
    assert result.verdict.index("worse by P@2") < result.verdict.index("MRR 1.0000 against 0.9583")
    assert "worse by" not in ee.compare(*runs, **{**asked, "metrics": ["MRR"]}).verdict


def test_metrics_of_only_one_run_are_reported_with_their_target() -> None:
    both = pl.DataFrame(
        {"datum_id": [1, 2] * 2, "label_key": ["x", "x", "y", "y"],
         "prediction": [1.5, 2, 3, 4.5], "target": [1.25, 2, 3, 4]}
    )  # fmt: skip
    notes = ee.compare(both, both.filter(label_key="x"), metrics=["MAE"], draws=DRAWS).notes
    assert any(note.startswith("skipped: 2 numbers") and "'MAE of y'" in note for note in notes)


def units(run: pl.DataFrame, how: str) -> pl.DataFrame:
    score = pl.col("score")
    return run.with_columns(score * 100 if how == "hundred" else (score / (1 - score)).log())


@pytest.mark.parametrize("how", ["hundred", "logits"])
@pytest.mark.parametrize("task", ["classification", "detection"])
def test_p_does_not_depend_on_units_of_scores(task: str, how: str) -> None:
    """Values are equal to the bit, because runs are mixed by ranks within each of them."""
    rng = np.random.default_rng(8)
    given: dict[str, Any] = {"draws": 60}
    if task == "classification":
        actual = rng.integers(0, 2, 120)
        runs = [
            pl.DataFrame({"datum_id": range(120), "actual": actual, "score": score})
            for score in 1 / (1 + np.exp(-actual * 1.2 - rng.normal(size=(2, 120))))
        ]
        given["metrics"] = ["ROCAUC", "AP", "PartialROCAUC"]
    else:
        truth = pl.DataFrame(
            {
                "datum_id": np.repeat(range(30), 3),
                "label_value": ["x", "y", "x"] * 30,
                "xmin": [0.0, 20.0, 40.0] * 30,
                "ymin": [0.0] * 90,
                "xmax": [10.0, 30.0, 50.0] * 30,
                "ymax": [10.0] * 90,
            }
        )
        runs = [
            truth.with_columns(
                xmin=pl.col("xmin") + pl.Series(rng.integers(0, 2, 90) * 9.0),
                score=pl.Series(rng.uniform(0.01, 0.99, 90)),
            )
            for _ in range(2)
        ]
        given |= {"ground_truths": truth, "metrics": ["AP", "mAP"], "task": "detection"}
    columns = ["metric", "label_value", "difference", "p"]
    plain = ee.compare(*runs, **given).differences
    other = ee.compare(runs[0], units(runs[1], how), **given).differences
    assert_frame_equal(plain.select(columns), other.select(columns), check_exact=True)
    turned = ee.compare(units(runs[1], how), runs[0], **given).differences
    assert_series_equal(turned["p"], plain["p"], check_exact=True)
    assert_series_equal(turned["difference"], -plain["difference"], check_exact=True)


def test_means_over_values_of_scores_are_mixed_as_they_are() -> None:
    """Brier scores compare values, which ranks would change."""
    rng = np.random.default_rng(4)
    actual = rng.integers(0, 2, 40)
    scores = np.clip(actual * 0.5 + rng.random((2, 40)) * 0.5, 0, 1)
    runs = [pl.DataFrame({"datum_id": range(40), "actual": actual, "score": s}) for s in scores]
    result = ee.compare(*runs, metrics=["Brier", "ROCAUC"], draws=200).differences
    row = result.row(by_predicate=pl.col("metric") == "Brier", named=True)
    gone = (scores[1] - actual) ** 2 - (scores[0] - actual) ** 2
    signs = 1 - 2 * swap_bits(hashes_of(pl.Series(range(40))), 0, 0, 200).astype(float)
    p = randomisation_p(np.array([gone.mean()]), (signs.T @ gone / 40)[:, None])
    assert row["p"] == pytest.approx(p[0])


@pytest.mark.parametrize("test", [paired_t, mcnemar])
def test_tests_of_means_check_both_means(test: Any) -> None:
    """A metric that is not a mean of its datums has no such test, in either run."""
    of_a, of_b = np.array([0.0, 1, 1, 0, 1, 0]), np.array([1.0, 1, 1, 1, 1, 0])
    a, b = of_a.mean(), of_b.mean()
    assert 0 < test((a, b, of_a, of_b)) < 1
    assert np.isnan(test((a + 0.1, b, of_a, of_b)))
    assert np.isnan(test((a, b + 0.1, of_a, of_b)))


@pytest.mark.parametrize(("clusters", "nothing"), [(1, True), (5, True), (6, False), (7, False)])
def test_few_clusters_are_never_significant(clusters: int, nothing: bool) -> None:
    """All but one of n clusters may be swapped in 2^(n-1) ways: below 0.05 from 6 on."""
    least = np.mean(
        [
            abs(np.dot(signs, np.ones(clusters))) >= clusters
            for signs in product((1, -1), repeat=clusters)
        ]
    )
    assert cannot_be_significant(clusters, 0.95) == (least > 0.05) == nothing


@pytest.mark.parametrize("test", ["t", "mcnemar"])
def test_tests_of_slices(test: str) -> None:
    rng = np.random.default_rng(6)
    actual = rng.integers(0, 2, 80)
    part = np.where(np.arange(80) < 50, "x", "y")
    result = [np.where(rng.random(80) < share, actual, 1 - actual) for share in (0.6, 0.8)]
    runs = [
        pl.DataFrame({"datum_id": range(80), "actual": actual, "predicted": one, "part": part})
        for one in result
    ]
    rows = ee.compare(*runs, metrics=["Accuracy"], by="part", test=test, draws=20).differences
    for row in rows.filter(pl.col("slice") == "part").iter_rows(named=True):
        a, b = ((one == actual)[part == row["slice_value"]].astype(float) for one in result)
        of = (a.mean(), b.mean(), a, b)
        assert row["p"] == pytest.approx((paired_t if test == "t" else mcnemar)(of))
    assert rows["p"].null_count() == 0


def test_numbers_without_a_direction_differ() -> None:
    rng = np.random.default_rng(3)
    run = pl.DataFrame(
        {"datum_id": range(60), "target": rng.random(60), "prediction": rng.random(60)}
    )
    moved = run.with_columns(pl.col("prediction") + rng.random(60))
    result = ee.compare(run, moved, metrics=["MeanError"], draws=200)
    row = result.differences.row(0, named=True)
    assert row["p"] < 0.05
    assert (better(result, row), differs(result, row)) == (0, True)
    assert not differs(result, {**row, "p_adjusted": 0.2})
    assert not differs(result, {**row, "coverage": 0.8})


def test_a_binary_table_has_a_verdict() -> None:
    rng = np.random.default_rng(2)
    actual = rng.integers(0, 2, 60)
    runs = [
        pl.DataFrame({"datum_id": range(60), "actual": actual, "score": actual * gain + noise})
        for gain, noise in ((0.0, rng.random(60)), (0.5, rng.random(60)))
    ]
    result = ee.compare(*runs, metrics=["ROCAUC"], draws=100)
    name, row = lead(result) or ("", {})
    assert (name, row["p"]) == ("ROCAUC", result.differences["p"][0])
    assert better(result, row) == 1


def test_the_verdict_includes_numbers_of_a_single_label() -> None:
    """ROCAUC improves and ECE worsens."""
    rng = np.random.default_rng(2)
    actual = (rng.random(2000) < 0.5).astype(int)
    noise = rng.random(2000)
    runs = [
        pl.DataFrame({"datum_id": range(2000), "actual": actual, "score": score})
        for score in (0.25 + 0.5 * (0.9 * noise + 0.1 * actual), 0.05 * noise + 0.02 * actual)
    ]
    result = ee.compare(*runs, metrics=["ROCAUC", "ECE"], draws=100)
    by_metric = {row["metric"]: row for row in result.differences.iter_rows(named=True)}
    assert {name: better(result, row) for name, row in by_metric.items()} == {
        "ROCAUC": 1,
        "ECE": -1,
    }
    name, row = lead(result) or ("", {})
    assert (name, row) == ("ROCAUC", by_metric["ROCAUC"])
    assert result.verdict.index("worse by ECE") < result.verdict.index("better than")
    means = ee.compare(*runs, metrics=["ROCAUC", "mROCAUC", "ECE"], draws=100)
    assert (lead(means) or ("",))[0] == "mROCAUC macro"


def test_labels_without_an_aggregate_have_a_verdict():
    rng = np.random.default_rng(6)
    truth = rng.choice(["a", "b", "c"], 300)
    tables = []
    for gain in (0.0, 1.0):
        scores = {name: rng.random(300) + gain * (truth == name) for name in "ab"}
        tables.append(pl.DataFrame({"y_true": truth, **scores, "c": 0.5}))
    asked = {"metrics": ["ROCAUC"], "score_columns": ["a", "b", "c"], "draws": 200}
    verdict = ee.compare(*tables, **asked).verdict
    assert "a ROCAUC and b ROCAUC" in verdict
    assert "significantly better" in verdict
    assert "None of the 3 differences" in ee.compare(tables[0], tables[0], **asked).verdict


def test_a_p_value_of_0_has_a_bound():
    n = 3000
    right = pl.DataFrame({"y_true": ["a", "b"] * n, "y_pred": ["a", "b"] * n})
    asked = {"metrics": ["Accuracy"], "test": "mcnemar"}
    result = ee.compare(right, right.with_columns(y_pred=pl.lit("a")), **asked)
    assert result.differences["p"][0] == 0
    assert "p < 1e-16" in result.verdict
    assert "p = 0" not in result.verdict
    assert " 0 " not in str(result).split("wins-ties-losses")[1].split("\n")[1][:60]


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**20, 2.0**40])
def test_the_unit_of_values_changes_no_test(scale: float) -> None:
    """Numbers are means of datums up to rounding, whether they are small or large."""
    rng = np.random.default_rng(0)
    target = rng.normal(size=30)
    error = rng.normal(0, 0.5, (2, 30))

    def compared(unit: float) -> pl.DataFrame:
        first, second = (
            pl.DataFrame(
                {
                    "datum_id": range(30),
                    "target": target * unit,
                    "prediction": (target + one) * unit,
                }
            )
            for one in error
        )
        metrics = ["MAE", "RMSE", "MSE"]
        return ee.compare(first, second, task="regression", metrics=metrics, test="t").differences

    plain, scaled = compared(1.0), compared(scale)
    assert scaled["p"].is_null().to_list() == [False, True, False]
    assert scaled["p"].drop_nulls().to_list() == pytest.approx(plain["p"].drop_nulls().to_list())
    power = np.array([1, 1, 2])
    ends = plain["lower"].to_numpy() * scale**power
    assert scaled["lower"].to_numpy() == pytest.approx(ends, rel=1e-9)
