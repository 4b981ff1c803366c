"""Chosen score thresholds, compared with trying every distinct score.

The counts at a threshold come from ``PrecisionRecallCurve``, which computes them in another way (a
histogram by threshold). Rules are tried in Python. Held-out values are compared with runs over each
half of the datums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from merging.parts import Case
from merging.test_parts import CASES
from partitions.cases import in_buckets, next_seed, write_sides
from polars.testing import assert_frame_equal
from refusals import refused
from unsliced_cases import plain

import evalengine as ee
from evalengine.tallies.datums import half_of
from evalengine.tasks.encoding import draw_keys

AIMS: dict[str, Any] = {
    "target_precision": 0.5, "target_recall": 0.4, "target_fpr": 0.3, "beta": 0.5,
    "false_positive_cost": 1.0, "miss_cost": 2.0,
}  # fmt: skip


class Point(NamedTuple):
    """Counts at a threshold."""

    threshold: float
    tp: float
    fp: float
    fn: float
    tn: float | None

    @property
    def f(self) -> float:
        bottom = 1.25 * self.tp + 0.25 * self.fn + self.fp
        return 1.25 * self.tp / bottom if bottom else math.nan

    @property
    def precision(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else math.nan

    @property
    def recall(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else math.nan

    @property
    def fpr(self) -> float:
        assert self.tn is not None
        return self.fp / (self.fp + self.tn) if self.fp + self.tn else math.nan


def best(points: list[Point], merit: Callable[[Point], float]) -> Point | None:
    """Return the highest threshold among those with the largest merit."""
    fit = [point for point in points if not math.isnan(merit(point))]
    return max(fit, key=lambda point: (merit(point), point.threshold), default=None)


def _cheapest(points: list[Point]) -> Point | None:
    found = best(points, lambda p: -(p.fp + 2 * p.fn))
    if found is None:
        return None
    total = found.tp + found.fn
    if 2 * total <= found.fp + 2 * found.fn:
        top = max(point.threshold for point in points)
        negatives = None if found.tn is None else found.fp + found.tn
        return Point(float(np.nextafter(np.float32(top), np.inf)), 0.0, 0.0, total, negatives)
    return found


def _equal(point: Point) -> float:
    if point.tn is not None:
        return -abs(point.fpr - (1 - point.recall))
    return -abs(point.fp - point.fn) if point.tp else math.nan


TRIED: dict[str, Callable[[list[Point]], Point | None]] = {
    "ThresholdAtMaxF": lambda points: best(points, lambda p: p.f if p.tp + p.fn else math.nan),
    "ThresholdAtPrecision": lambda points: min(
        (p for p in points if p.precision >= 0.5), default=None
    ),
    "ThresholdAtRecall": lambda points: max((p for p in points if p.recall >= 0.4), default=None),
    "ThresholdAtFPR": lambda points: min(
        (p for p in points if p.tn is not None and p.fpr <= 0.3), default=None
    ),
    "ThresholdAtCost": _cheapest,
    "ThresholdAtEqualError": lambda points: best(points, _equal),
}


def scores_of(case: Case) -> list[float]:
    """Return all distinct scores."""
    side = case.sides[0]
    columns = [one for one in side.columns if one == "score" or one.startswith("p_")]
    found = pl.concat([side[one].cast(pl.Float64).rename("s") for one in columns]).drop_nulls()
    return found.unique().sort().to_list()


Curves = dict[tuple[Any, ...], list[Point]]


def curves_of(case: Case, task: str, thresholds: list[float]) -> Curves:
    """Return every label's points at given thresholds, and those of its key under None."""
    frame = ee.score(
        *case.sides, task=task, **case.options, **case.tables, metrics=["PrecisionRecallCurve"],
        score_thresholds=thresholds,
    ).curves  # fmt: skip
    if "area" in frame.columns:
        frame = frame.filter(pl.col("area").is_null() | (pl.col("area") == "all"))
    found: Curves = {}
    for row in frame.filter(pl.col("slice").is_null()).iter_rows(named=True):
        tn = row.get("tn")
        point = Point(row["score_threshold"], row["tp"], row["fp"], row["fn"], tn)
        found.setdefault((row["label_key"], row["label_value"]), []).append(point)
    return {label: _steps(points) for label, points in found.items()}


def _steps(points: list[Point]) -> list[Point]:
    """Return the thresholds whose counts differ from those of the next higher one."""
    points = sorted(points, reverse=True)
    above = [(0, 0), *((point.tp, point.fp) for point in points)]
    return [p for p, before in zip(points, above, strict=False) if (p.tp, p.fp) != before]


def halves_of(case: Case, seed: int) -> list[Case]:
    """Return the tables of both halves of the datums."""
    made = []
    for half in (False, True):

        def kept(table: Any, half: bool = half) -> Any:
            if isinstance(table, list) or case.datum not in table.columns:
                return table
            ids = table[case.datum].unique()
            keys = draw_keys(ids, pl.DataFrame(), None)
            mine = ids.filter(pl.Series(half_of(keys, seed) == half)).implode()
            return table.filter(pl.col(case.datum).is_in(mine))

        tables = {name: kept(table) for name, table in case.tables.items()}
        made.append(Case(tuple(map(kept, case.sides)), case.options, case.datum, tables))
    return made


def reaching(points: list[Point], threshold: float) -> Point | None:
    return min((point for point in points if point.threshold >= threshold), default=None)


def check(name: str, seed: int) -> None:
    case = plain(name, seed)
    task = CASES[name][0]
    result = ee.find_thresholds(
        *case.sides, task=task, **case.options, **case.tables, **AIMS, draws=20, seed=seed
    )
    scores = scores_of(case)
    curves = curves_of(case, task, scores)
    rows = {
        (row["metric"], row["label_key"], row["label_value"]): row
        for row in result.frame.iter_rows(named=True)
        if row["average"] is None
    }
    assert rows
    halves = [curves_of(half, task, scores) for half in halves_of(case, seed)]
    held_out = 0
    for (metric, *label), row in rows.items():
        points = curves.get(tuple(label), [])
        seen = row["reason"] != "no scored row"
        expected = TRIED[metric](points) if seen else None
        place = (seed, metric, label)
        if expected is None:
            assert row["threshold"] is None, place
            continue
        if row["threshold"] != expected.threshold:
            # Scores of datums that do not count add no points.
            same = reaching(points, row["threshold"])
            assert same is not None, place
            assert same[1:] == expected[1:], place
        ours = row["tp"], row["fp"], row["fn"]
        assert ours == expected[1:4], place
        assert row["tn"] is None or row["tn"] == expected.tn, place
        chosen = [TRIED[metric](half.get(tuple(label), [])) for half in halves]
        if None in chosen or row["held_out_tp"] is None:
            # Held-out values are missing if and only if one half chooses no threshold.
            assert row["held_out_tp"] is None, place
            assert None in chosen, place
            continue
        held_out += 1
        counts = np.zeros(2)
        for point, other in zip(chosen, reversed(halves), strict=True):
            assert point is not None
            there = reaching(other.get(tuple(label), []), point.threshold)
            counts += (0, 0) if there is None else (there.tp, there.fp)
        assert (row["held_out_tp"], row["held_out_fp"]) == tuple(counts), place
    assert held_out


@pytest.mark.parametrize("name", ["detection", "keypoints", "classification"])
def test_every_score_is_tried(name: str) -> None:
    check(name, 0)


def asked(case: Case, task: str, *sides: Any, **how: Any) -> Any:
    given = {**case.options, **case.tables, **AIMS, "draws": 20}
    return ee.find_thresholds(*(sides or case.sides), task=task, **given, **how)


@pytest.mark.parametrize("name", ["detection", "classification"])
def test_of_buckets(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs through files choose the same thresholds, with the same intervals."""
    case, task = plain(name, next_seed()), CASES[name][0]
    sides = write_sides(case, tmp_path, files=2)
    whole = asked(case, task, *sides)
    in_buckets(monkeypatch)
    bounded = asked(case, task, *sides, memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert_frame_equal(whole.frame, bounded.frame, check_exact=True)
    if name == "classification":
        assert whole.frame["recall_lower"].count()


@pytest.mark.parametrize("name", ["detection", "classification"])
def test_of_saved_runs(name: str, tmp_path: Path) -> None:
    case, task = plain(name, 3), CASES[name][0]
    whole = asked(case, task)
    ee.score(*case.sides, task=task, **case.options, **case.tables).save(tmp_path / "run")
    loaded = ee.find_thresholds(tmp_path / "run", **AIMS, draws=20)
    assert_frame_equal(whole.frame, loaded.frame, check_exact=True)


def test_intervals_are_of_weighted_datums() -> None:
    """For each resample the threshold is chosen again, and rates are taken at the original one."""
    case = plain("detection", 8)
    found = asked(case, "detection", metrics=["ThresholdAtMaxF"]).frame
    card = ee.score(
        *case.sides, **case.options, **case.tables, metrics=["ThresholdAtMaxF"], beta=0.5,
        intervals=0.95, draws=20, method="percentile",
    ).metrics  # fmt: skip
    own = card.filter(pl.col("statistic") == "threshold", pl.col("slice").is_null())
    rows = found.filter(pl.col("average").is_null()).join(own, on="label_value", how="inner")
    rows = rows.filter(pl.col("lower") < pl.col("upper"))  # otherwise no resample moves it
    assert rows.height
    for side in ("lower", "upper"):
        np.testing.assert_array_equal(rows[side], rows[f"{side}_right"])
    held = found.filter(pl.col("average").is_null(), pl.col("precision_lower").is_not_null())
    assert held.height
    for row in held.iter_rows(named=True):
        theirs = ee.score(
            *case.sides, **{**case.options, "iou_thresholds": [0.5]}, **case.tables,
            metrics=["Precision", "Recall"], score_thresholds=[row["threshold"]], intervals=0.95,
            draws=20, method="percentile",
        ).metrics.filter(
            pl.col("label_value") == row["label_value"], pl.col("slice").is_null(),
            pl.col("area").is_null() | (pl.col("area") == "all"),
        )  # fmt: skip
        for metric in ("Precision", "Recall"):
            bounds = theirs.filter(pl.col("metric") == metric).select("lower", "upper").row(0)
            name = metric.lower()
            assert bounds == (row[f"{name}_lower"], row[f"{name}_upper"]), (row, metric)


def test_a_sure_threshold_keeps_its_target_and_an_overfitted_one_does_not() -> None:
    """Noise reaches a precision of 0.9 only by chance, and misses it on held-out data."""
    rng = np.random.default_rng(0)
    noise = pl.DataFrame({"actual": rng.random(400) < 0.5, "score": rng.random(400)})
    row = ee.find_thresholds(noise, metrics="ThresholdAtMaxF").frame.row(0, named=True)
    assert row["flattery"] == pytest.approx(row["f"] - row["held_out_f"])
    assert row["flattery"] > 0
    place = noise.with_columns(score=pl.col("score") / 2 + pl.col("actual") / 2)
    row = ee.find_thresholds(place, metrics="ThresholdAtPrecision").frame.row(0, named=True)
    assert row["kept"] is True
    assert row["tp"] == row["held_out_tp"] == noise["actual"].sum()


def test_thresholds_in_text_have_their_counts() -> None:
    rng = np.random.default_rng(7)
    close = 0.5 + np.arange(40) * 1e-7
    scores = {"tied": np.full(40, 0.5), "close": close, "any": rng.random(40)}
    for name, score in scores.items():
        actual = rng.random(40) < score
        result = ee.find_thresholds(pl.DataFrame({"actual": actual, "score": score}))
        table = result._table_rows()
        assert table.height == 6
        printed = table["threshold"].to_list()
        assert (len(printed[0]) == 6) == (name == "any")
        for text, row in zip(printed, result.frame.iter_rows(named=True), strict=True):
            if row["threshold"] is not None:
                at = score >= float(text)
                assert ((at & actual).sum(), (at & ~actual).sum()) == (row["tp"], row["fp"]), name
        assert all(text in repr(result) for text in printed)


def test_refusals(tmp_path: Path) -> None:
    table = pl.DataFrame({"actual": [True, False] * 20, "score": np.linspace(0, 1, 40)})
    with refused("option_value", option="metrics", value=["Accuracy"]):
        ee.find_thresholds(table, metrics=["Accuracy"])
    ranked = pl.DataFrame({"query_id": [1], "doc_id": [1], "score": [0.5]})
    of_lists = ee.score(ranked, ranked.drop("score"))
    with refused("task_unfit", task="retrieval"):
        ee.find_thresholds(of_lists)
    with refused("option_unread", option="method", value="bca"):
        ee.find_thresholds(table, method="bca", intervals=0.95)
    with refused("option_value", options=["false_positive_cost", "miss_cost"]):
        ee.find_thresholds(table, false_positive_cost=0, miss_cost=0)
    unscored = ee.score(pl.DataFrame({"actual": ["a", "b"], "predicted": ["a", "a"]}))
    with refused("not_kept", ee.ResultError):
        ee.find_thresholds(unscored)
    result = ee.find_thresholds(table)
    with refused("ambiguous"):
        result.save(tmp_path / "t.json")
    with refused("format_unknown"):
        result.save(tmp_path / "t.txt", "ThresholdAtMaxF")
    box = {"xmin": [0.0], "ymin": [0.0], "xmax": [9.0], "ymax": [9.0]}
    truth = pl.DataFrame({"datum_id": [1], "label_value": ["a"], **box})
    card = ee.score(truth.with_columns(score=0.5), truth, metrics=["Counts"])
    with refused("not_kept", ee.ResultError, option="pr_curve_iou_threshold", value=0.61):
        ee.find_thresholds(card, pr_curve_iou_threshold=0.61)


BOX = {"xmin": [0.0], "ymin": [0.0], "xmax": [9.0], "ymax": [9.0]}
EMPTY = pl.DataFrame({"datum_id": [1], "label_value": ["a"], **BOX, "score": [0.5]})


@pytest.mark.parametrize("find", [ee.find_thresholds, ee.find_calibration])
def test_nearly_empty_tables(find: Callable[..., Any]) -> None:
    """Frames always have the same schema; missing data give no rows."""
    truth = EMPTY.drop("score")
    full = find(EMPTY, truth, draws=20)
    for ours, theirs, rows in ((EMPTY[:0], truth[:0], 0), (EMPTY, truth[:0], 1)):
        found = find(ours, theirs, draws=20)
        assert found.frame.schema == full.frame.schema
        assert len(found) == rows * len(full)
    none = pl.DataFrame({"actual": [], "score": []}, {"actual": pl.Boolean, "score": pl.Float64})
    assert find(none, draws=20).frame.height == 0
    alike = find(pl.DataFrame({"actual": [True, False] * 5, "score": 0.5}), draws=20).frame
    assert {"threshold": 0.5, "ece": 0.0}.items() & alike.row(0, named=True).items()
    one_class = find(pl.DataFrame({"actual": [True] * 5, "score": 0.5}), draws=20).frame
    assert one_class.height == alike.height


@pytest.mark.parametrize("find", [ee.find_thresholds, ee.find_calibration])
def test_sides_by_name(find: Callable[..., Any]) -> None:
    actual, score = [True, False, True] * 9, [0.9, 0.2, 0.4] * 9
    named = find(y_true=actual, y_score=score, draws=20)
    table = pl.DataFrame({"actual": actual, "score": score})
    for row, other in zip(
        named.frame.iter_rows(named=True), find(table, draws=20).frame.iter_rows(named=True),
        strict=True,
    ):  # fmt: skip
        assert row | {"label_value": None} == other | {"label_value": None}
    with refused("given_twice", options=["y_true", "y_pred", "y_score"]):
        find(table, y_true=actual)


def test_tables_of_tasks_without_thresholds() -> None:
    ranked = pl.DataFrame({"query_id": [1], "doc_id": [1], "score": [0.5]})
    with refused("task_unfit", task="retrieval"):
        ee.find_thresholds(ranked, ranked.drop("score"))
    with refused("task_unfit", task="retrieval"):
        ee.find_calibration(ranked, ranked.drop("score"))


def test_tracks_have_no_thresholds() -> None:
    tracks = [f"examples/tracking/{side}.parquet" for side in ("tracks", "truth")]
    with refused("task_unfit", task="tracking"):
        ee.find_thresholds(*tracks)
    with refused("task_unfit", task="tracking"):
        ee.find_calibration(*tracks)
    with refused("task_unfit", ee.ResultError, task="tracking"):
        ee.find_limits(*tracks)


def test_other_errors_keep_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("evalengine.findings.thresholds.search", broken)
    with pytest.raises(KeyError, match="a bug"):
        ee.find_thresholds(EMPTY, EMPTY.drop("score"), draws=20)


@pytest.mark.parametrize("find", [ee.find_thresholds, ee.find_calibration])
def test_weights_of_rows_in_files_have_intervals(
    find: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = np.random.default_rng(0)
    columns = {
        "actual": r.integers(0, 2, 60),
        "score": r.random(60).round(1),
        "weight": r.random(60),
    }
    path = tmp_path / "table.parquet"
    pl.DataFrame({"datum_id": np.arange(60), **columns}).write_parquet(path)
    whole = find(path, draws=20)
    in_buckets(monkeypatch)
    bounded = find(path, draws=20, memory_limit="1GB", scratch=str(tmp_path / "s"))
    assert_frame_equal(bounded.frame, whole.frame, rel_tol=1e-9, abs_tol=1e-12)
    assert sum(bounded.frame[name].count() for name in bounded.frame.columns if "lower" in name)
