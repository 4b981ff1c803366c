"""Differences of two runs, compared with other programs, plain loops, and chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine.schemas.tuning import tuned
from evalengine.statistics.comparing import count_tests
from evalengine.statistics.tests import adjusted

N = 150


def sides(
    seed: int, n: int = N, right: tuple[float, float] = (0.75, 0.8), alike: float = 0.7
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two runs of a classifier over the same rows, with partly shared mistakes."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(["cat", "dog", "fox"], n)
    luck = rng.random(n)
    tables = []
    for share in right:
        chance = np.where(rng.random(n) < alike, luck, rng.random(n))
        wrong = np.array([{"cat": "dog", "dog": "fox", "fox": "cat"}[one] for one in truth])
        said = np.where(chance < share, truth, wrong)
        ids = pl.format("row {}", pl.int_range(n)).alias("datum_id")
        table = pl.DataFrame({"actual": truth, "predicted": said}).with_columns(ids)
        tables.append(table.with_columns(site=pl.int_range(n) % 25))
    return tables[0], tables[1]


def compared(a: Any, b: Any, *more: Any, **options: Any) -> ee.Comparison:
    return ee.compare(a, b, *more, **{"draws": 400, "metrics": ["Accuracy"], **options})


def lead(comparison: ee.Comparison, metric: str = "Accuracy") -> dict[str, Any]:
    rows = comparison.differences.filter(
        pl.col("metric") == metric, pl.col("slice").is_null(), pl.col("label_value").is_null()
    )
    return rows.row(0, named=True)


# -- other programs --------------------------------------------------------------------------------


def queries() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return qrels and two runs from integers, so that another program has identical data."""
    qrels: dict[str, Any] = {}
    runs: list[dict[str, Any]] = [{}, {}]
    for q in range(24):
        qrels[f"q{q}"] = good = {f"d{(7 * q + 3 * j) % 12}": 1 for j in range(1 + q % 3)}
        for side, (scale, shift) in enumerate(((5, 1), (7, 3))):
            runs[side][f"q{q}"] = {
                f"d{d}": ((scale * d * d + shift * q * (d + 1)) % 13)
                + d / 100
                + (5.0 if side and f"d{d}" in good and q % 4 else 0)
                for d in range(12)
            }
    return qrels, runs


@pytest.mark.parametrize(
    ("metric", "a", "b", "t", "fisher"),
    [
        ("nDCG@10", 0.4536822932334674, 0.6188625956955311, 0.016470753990865852, 0.01698),
        ("MAP", 0.3285007816257816, 0.5001939033189032, 0.028672966577463203, 0.02902),
        ("MRR", 0.3653769841269841, 0.5959325396825396, 0.025788498027867063, 0.02741),
    ],
)
def test_retrieval_against_ranx(metric, a, b, t, fisher):
    """ranx 0.3.21: paired_student_t_test, fisher_randomization_test with 200,000 permutations."""
    qrels, runs = queries()
    given = {"ground_truths": qrels, "metrics": [metric], "draws": 4000}
    row = ee.compare(*runs, **given).differences.row(0, named=True)
    assert (row["a"], row["b"]) == pytest.approx((a, b), abs=1e-12)
    assert row["p"] == pytest.approx(fisher, abs=4 * np.sqrt(fisher / 4000))
    closed = ee.compare(*runs, **given, test="t").differences.row(0, named=True)
    assert closed["p"] == pytest.approx(t, abs=1e-9)


def test_of_accuracy_randomisation_is_mcnemars_test():
    """statsmodels 0.15: mcnemar(exact=True)."""
    gained, lost, exact = 5, 14, 0.063568115234375
    a, b = np.ones((2, 60), np.int64)
    a[:gained], b[gained : gained + lost] = 0, 0
    a[-12:], b[-12:] = 0, 0
    tables = [pl.DataFrame({"id": range(60), "actual": 1, "predicted": one}) for one in (a, b)]
    assert lead(compared(*tables, test="mcnemar"))["p"] == pytest.approx(exact, abs=1e-12)
    row = lead(compared(*tables, draws=4000))
    assert row["p"] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000))
    assert (row["wins"], row["ties"], row["losses"]) == (gained, 60 - gained - lost, lost)


# -- chance ----------------------------------------------------------------------------------------


def simulated(right: tuple[float, float], times: int = 200) -> pl.DataFrame:
    """Return differences of many pairs of such models; each pair is one slice of a comparison."""
    tables = []
    for side in zip(*(sides(seed, right=right, alike=0.5) for seed in range(times)), strict=True):
        named = [
            table.with_columns(pl.format("{} of {}", "datum_id", pl.lit(i)), pair=pl.lit(i))
            for i, table in enumerate(side)
        ]
        tables.append(pl.concat(named))
    rows = compared(*tables, by=["pair"]).differences
    return rows.filter(pl.col("slice") == "pair")


def test_equal_models_rarely_differ_significantly():
    rows = simulated((0.7, 0.7))
    assert rows.height == 200
    assert 0.02 <= (rows["p"] < 0.05).mean() <= 0.08
    within = (rows["lower"] <= 0) & (rows["upper"] >= 0)
    assert 0.9 <= within.mean() <= 0.98


def test_the_detectable_difference_is_found_four_times_in_five():
    promised = simulated((0.7, 0.7), times=20)["detectable"].mean()
    assert 0.05 < promised < 0.2
    assert 0.7 <= (simulated((0.7, 0.7 + promised))["p"] < 0.05).mean() <= 0.9


# -- differences -----------------------------------------------------------------------------------


def test_swapping_the_runs_mirrors_everything():
    a, b = sides(1)
    one = compared(a, b, metrics=["Accuracy", "F1"], draws=100).differences
    other = compared(b, a, metrics=["Accuracy", "F1"], draws=100).differences
    mirrored = other.with_columns(
        a=pl.col("b"),
        b=pl.col("a"),
        difference=-pl.col("difference"),
        lower=-pl.col("upper"),
        upper=-pl.col("lower"),
        wins=pl.col("losses"),
        losses=pl.col("wins"),
    )
    assert_frame_equal(one, mirrored, abs_tol=1e-12)


def test_equal_runs_have_no_difference():
    a, _ = sides(1)
    result = compared(a, a, metrics=["Accuracy", "F1"])
    rows = result.differences
    for name in ("difference", "lower", "upper", "se"):
        assert (rows[name] == 0).all()
    assert (rows["p"] == 1).all()
    assert (rows["wins"] == 0).all()
    assert (rows["losses"] == 0).all()
    assert result.flips.is_empty()
    assert "are equal" in result.verdict
    assert "Accuracy is 0.7733" in result.verdict


def test_wins_and_flips_are_those_of_a_plain_loop():
    a, b = sides(3)
    better, worse = [], []
    for of_a, of_b in zip(a.iter_rows(named=True), b.iter_rows(named=True), strict=True):
        right_a, right_b = (row["predicted"] == row["actual"] for row in (of_a, of_b))
        if right_b and not right_a:
            better.append(of_a["datum_id"])
        if right_a and not right_b:
            worse.append(of_a["datum_id"])
    assert better
    assert worse
    result = compared(a, b)
    row = lead(result)
    assert (row["wins"], row["losses"]) == (len(better), len(worse))
    assert row["ties"] == N - len(better) - len(worse)
    for word, ids in (("better", better), ("worse", worse)):
        some = result.flips.filter(change=word)
        assert sorted(some["datum_id"]) == sorted(ids)
        assert (some["b"] - some["a"] == (1.0 if word == "better" else -1.0)).all()


@pytest.mark.parametrize("cells", [1, 20_000, 4_000_000])
@pytest.mark.parametrize("dialect", ["standard", "coco", "voc2012", "dota"])
def test_flips_of_boxes_are_scores_of_single_images(dialect: str, cells: int) -> None:
    rng = np.random.default_rng(4)
    image, n = np.repeat(np.arange(14), 5), 70
    low, size = rng.integers(0, 60, (n, 2)), rng.integers(8, 40, (n, 2))
    tables = []
    for shift in (0, 2, 4):
        corners = np.c_[low + rng.integers(0, shift + 1, (n, 2)), low + size].astype(float)
        table = pl.DataFrame(corners, schema=["xmin", "ymin", "xmax", "ymax"])
        named = pl.Series(
            rng.choice(["a", "b", "c"], n) if shift else ["a", "b", "d", "d", "e"] * 14
        )
        tables.append(table.with_columns(datum_id=pl.Series(image), label_value=named))
    truth, a, b = tables
    a, b = (one.with_columns(score=pl.Series(rng.random(n))) for one in (a, b))
    given: dict[str, Any] = {"dialect": dialect, "metrics": ["mAP"], "task": "detection"}
    with tuned(group_cells=cells):
        result = ee.compare(a, b, ground_truths=truth, draws=20, **given).flips
    assert result.height > 4
    keys = ["iou_threshold", "area"]
    for (datum,), rows in result.group_by("datum_id"):
        for side, table in (("a", a), ("b", b)):
            here = pl.col("datum_id") == datum
            alone = ee.score(table.filter(here), truth.filter(here), **given).metrics
            both = rows.join(alone, on=keys, how="left", nulls_equal=True)
            assert both[side].to_list() == both["value"].to_list()


def test_datums_without_a_value_neither_win_nor_tie():
    a, b = sides(3)
    rows = compared(a, b, metrics=["Recall"]).differences
    of_cats = rows.filter(label_value="cat").row(0, named=True)
    cats = a.filter(actual="cat").height
    assert of_cats["wins"] + of_cats["ties"] + of_cats["losses"] == cats < N


def test_better_may_be_lower():
    texts = pl.DataFrame({"id": range(30), "reference": "one two three four"})
    a = texts.with_columns(text=pl.lit("one two three four"))
    b = texts.with_columns(text=pl.lit("one two five six"))
    result = ee.compare(a, b, metrics=["WER"], draws=100, names=["good", "bad"])
    row = lead(result, "WER")
    assert row["difference"] > 0
    assert (row["wins"], row["losses"]) == (0, 30)
    assert "worse than good" in result.verdict
    assert set(result.flips["change"]) == {"worse"}


def test_p_is_adjusted_within_aggregates_labels_and_slices():
    a, b = sides(4)
    rows = compared(a, b, metrics=["Accuracy", "Recall"], by=["site"], draws=60).differences
    sliced, labelled = pl.col("slice").is_not_null(), pl.col("label_value").is_not_null()
    kinds = rows.with_columns(kind=sliced.cast(pl.Int8) * 2 + labelled.cast(pl.Int8))
    assert kinds["kind"].n_unique() == 4
    for _, family in kinds.group_by("kind"):
        expected = adjusted(family["p"].fill_null(np.nan).to_numpy(), "holm")
        some = family["p_adjusted"].fill_null(np.nan).to_numpy()
        assert some == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_numbers_that_are_the_same_are_adjusted_once():
    a, b = sides(4)
    metrics = ["Accuracy", "Precision", "Recall", "F1"]
    rows = compared(a, b, metrics=metrics, draws=60).differences
    whole = rows.filter(pl.col("label_value").is_null())
    equal = pl.col("average").is_null() | (pl.col("average") == "micro")
    equal |= (pl.col("metric") == "Recall") & (pl.col("average") == "weighted")
    same, others = whole.filter(equal), whole.filter(~equal)
    assert same.height == 5
    assert same["p_adjusted"].n_unique() == same["p"].n_unique() == 1
    expected = adjusted(np.array([same["p"][0], *others["p"]]), "holm")
    assert [same["p_adjusted"][0], *others["p_adjusted"]] == pytest.approx(expected, abs=1e-12)
    labels = rows.filter(pl.col("label_value").is_not_null())  # different numbers, even if equal
    twice = pl.concat([labels, labels.with_columns(label_value=pl.lit("other"))])
    assert count_tests(twice) == 2 * count_tests(labels)


# -- the same answer, whatever the way -------------------------------------------------------------


def test_rows_threads_and_folders_change_nothing(tmp_path: Path):
    a, b = sides(5)
    options: dict[str, Any] = {"metrics": ["Accuracy", "F1"], "draws": 60}
    once = compared(a, b, **options)
    shuffled = compared(a.sample(fraction=1, shuffle=True, seed=1), b.reverse(), **options)
    threaded = compared(a, b, **options, threads=3)
    for name, table in (("a", a), ("b", b)):
        ee.score(table, metrics=["Accuracy", "F1"]).save(tmp_path / name)
    saved = compared(tmp_path / "a", tmp_path / "b", **options)
    mixed = compared(
        tmp_path / "a", ee.score(b, metrics=["Accuracy", "F1"]), names=["a", "b"], **options
    )
    for other in (shuffled, threaded, saved, mixed):
        assert_frame_equal(other.differences, once.differences, check_exact=True)
        assert_frame_equal(other.flips, once.flips, check_exact=True)


def test_a_comparison_comes_back_from_its_folder(tmp_path: Path):
    a, b = sides(5)
    result = compared(a, b)
    result.save(tmp_path / "kept")
    back = ee.load(tmp_path / "kept")
    assert_frame_equal(back.differences, result.differences)
    assert_frame_equal(back.flips, result.flips)
    assert (back.verdict, repr(back), back.runs) == (result.verdict, repr(result), result.runs)
    with refused("folder_used", ee.ResultError):
        result.save(tmp_path / "kept")


def test_clusters_are_swapped_and_resampled_as_units():
    """A cluster of copies of a datum has as much information as the datum."""
    a, b = sides(6, n=40)
    alone = lead(compared(a, b, draws=1000))
    copies = [
        pl.concat(
            table.with_columns(video=pl.col("datum_id"), datum_id=pl.format("{}/{}", "datum_id", i))
            for i in range(5)
        )
        for table in (a, b)
    ]
    independent = lead(compared(*copies, draws=1000))
    by_cluster = lead(compared(*copies, draws=1000, cluster="video"))
    for name in (
        "difference",
        "se",
        "p",
        "detectable",
    ):  # bounds are Tango's, of independent datums
        assert by_cluster[name] == pytest.approx(alone[name], abs=1e-12)
    assert independent["se"] < 0.6 * by_cluster["se"]
    assert independent["p"] < by_cluster["p"]


# -- more than two ---------------------------------------------------------------------------------


def test_three_runs_are_compared_by_pairs():
    a, b = sides(7, right=(0.6, 0.9))
    c = b.with_columns(predicted=pl.when(pl.int_range(N) < 3).then("actual").otherwise("predicted"))
    result = compared(a, b, c, names=["old", "new", "newer"], adjust="bh")
    rows = result.differences
    assert rows.select("run_a", "run_b").rows() == [
        ("old", "new"), ("old", "newer"), ("new", "newer"),
    ]  # fmt: skip
    pair = lead(compared(b, c))
    same = rows.filter(run_a="new", run_b="newer").row(0, named=True)
    for name in ("difference", "lower", "upper", "p"):
        assert same[name] == pair[name]
    assert "best Accuracy" in result.verdict
    assert "better than old" in result.verdict
    assert "significantly from new" in result.verdict


def test_label_keys_are_named_if_there_are_several():
    a, b = sides(8, n=40)
    runs = []
    for table in (a, b):
        said = table.select("datum_id", label_value="predicted")
        runs.append(
            pl.concat(said.with_columns(label_key=pl.lit(key)) for key in ("seen", "heard"))
        )
    true = a.select("datum_id", label_value="actual")
    truths = pl.concat(true.with_columns(label_key=pl.lit(key)) for key in ("seen", "heard"))
    shown = repr(
        compared(*runs, ground_truths=truths, metrics=["Accuracy", "F1"], task="classification")
    )
    for title in ("seen Accuracy", "heard Accuracy", "seen cat F1", "heard cat F1"):
        assert f"\n  {title} " in shown
    assert "label Accuracy" not in repr(compared(a, b))


def test_a_verdict_over_several_targets_is_on_their_mean():
    """If one target is equal in both runs and the other is worse, the runs are not equal."""
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"datum_id": range(40), "target": rng.normal(size=40)})
    error = pl.Series(rng.normal(size=40))

    def run(of_y: float) -> pl.DataFrame:
        sizes = (("x", 1.0), ("y", of_y))
        return pl.concat(
            rows.with_columns(label_key=pl.lit(key), prediction=pl.col("target") + size * error)
            for key, size in sizes
        )

    result = compared(run(1.0), run(3.0), task="regression", metrics=["MAE"])
    assert result.verdict.startswith("b is worse")
    same = compared(run(1.0), run(1.0), task="regression", metrics=["MAE"])
    assert "equal: MAE macro" in same.verdict


def test_a_verdict_over_several_label_keys_without_a_mean():
    """All label keys that differ are named; runs are equal only if all keys are."""
    a, b = sides(8, right=(0.6, 0.95), alike=0.9)

    def run(*tables: pl.DataFrame) -> pl.DataFrame:
        keyed = zip(("heard", "seen", "told"), tables, strict=True)
        return pl.concat(table.with_columns(label_key=pl.lit(key)) for key, table in keyed)

    asked: dict[str, Any] = {"task": "classification"}
    assert "are equal" in compared(run(a, a, a), run(a, a, a), **asked).verdict
    result = compared(run(a, a, b), run(a, b, a), **asked).verdict
    worse, better = (result.index(name) for name in ("told Accuracy", "seen Accuracy 0."))
    assert worse < better  # the worse key comes first
    assert "b is better than a" in result


def test_one_datum_has_no_interval():
    """As in a single run, a slice of one datum has no interval, whether or not the runs differ."""
    a, b = (table.with_columns(part=pl.int_range(N) < 1) for table in sides(2))
    reach = ["lower", "upper", "se", "detectable"]
    for first, second in ((a, a), (a, b)):
        result = compared(first, second, by="part", draws=40)
        for row in result.differences.iter_rows(named=True):
            alone = row["slice_value"] == "true"
            assert [row[name] is None for name in reach] == [alone] * 4
            assert row["p"] is not None
        assert any("for 1 number: a single datum" in note for note in result.notes)
    result = compared(a.head(1), a.head(1), draws=40)
    assert result.differences[reach].null_count().row(0) == (1,) * 4
    assert "equal: Accuracy" in result.verdict
    result = compared(a.head(3), a.head(3), cluster="part", draws=40)
    assert result.differences["lower"].null_count() == 0
    result = compared(a[1:9], a[1:9], cluster="part", draws=40)
    assert any("cluster of 'part'" in note for note in result.notes)
    assert not any("no interval" in note for note in compared(a, b, draws=40).notes)


def test_too_many_values_per_datum_are_noted() -> None:
    table = pl.DataFrame({"datum_id": range(50), "actual": [True, False] * 25})
    scores = [np.random.default_rng(i).random(50) for i in (1, 2)]
    runs = [table.with_columns(score=pl.Series(one)) for one in scores]
    with tuned(drawn_bytes=8 * 40):
        result = ee.compare(*runs, metrics=["Accuracy"], draws=20)
    assert result.differences["wins"].null_count() == 1
    assert not result.flips.height
    assert any("of 1 number" in one and "flips" in one for one in result.notes)
    assert result.differences["p"].null_count() == 0


def test_runs_keep_their_clusters(tmp_path: Path) -> None:
    """Runs scored by clusters are compared by clusters, not by datums."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"actual": rng.random(200) < 0.5, "datum_id": range(200)})
    table = table.with_columns(video=pl.col("datum_id") // 10)
    runs = [table.with_columns(score=pl.Series(rng.random(200))) for _ in range(2)]
    asked = {"metrics": ["Accuracy"], "intervals": 0.95, "draws": 100}
    folders = []
    for name, run in zip("ab", runs, strict=True):
        ee.score(run, cluster="video", **asked).save(tmp_path / name)
        folders.append(tmp_path / name)
    by_default = ee.compare(*folders, draws=100)
    said = ee.compare(*folders, draws=100, cluster="video")
    assert by_default.options.cluster == "video"
    assert_frame_equal(by_default.differences, said.differences)
    single = ee.score(runs[1], **asked)
    with refused("runs_differ", option="cluster"):
        ee.compare(folders[0], single, draws=100)
    with refused("options_conflict", options=["test", "cluster"]):
        ee.compare(*folders, draws=100, test="mcnemar")


def test_runs_may_have_tallies_that_others_do_not_have() -> None:
    """Frames of only one run change nothing, in either order."""
    tables = [f"examples/detection/{side}.parquet" for side in ("predictions", "groundtruths")]
    plain = ee.score(*tables, metrics=["AP", "mAP"])
    full = ee.score(*tables, metrics=["AP", "mAP", "ConfusionMatrix", "Outcomes", "Errors"])
    same = ee.compare(plain, plain, draws=20).differences
    assert_frame_equal(ee.compare(plain, full, draws=20).differences, same)
    assert_frame_equal(ee.compare(full, plain, draws=20).differences, same)


def test_options_of_only_one_run_are_reported_as_missing() -> None:
    tables = [f"examples/detection/{side}.parquet" for side in ("predictions", "groundtruths")]
    given: list[dict[str, Any]] = [{}, {"iou_thresholds": [0.5]}]
    runs = [ee.score(*tables, metrics=["mAP"], **more) for more in given]
    for order in (runs, runs[::-1]):
        with pytest.raises(ee.InputError, match=" without iou_thresholds=") as error:
            compared(*order)
        assert "None" not in str(error.value)


def test_common_keeps_datums_with_ground_truths() -> None:
    truths = pl.DataFrame({"id": range(300), "actual": [i % 3 for i in range(300)]})
    run = truths.rename({"actual": "predicted"})
    for common in (False, True):
        result = ee.compare(
            run[:200], run, ground_truths=truths, metrics=["Accuracy"], common=common
        )
        (text,) = [text for text in result.warnings if "many of 300" in text]
        assert ("common=True" in text) is common
