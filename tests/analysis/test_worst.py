"""The worst datums of a run, compared with scoring each datum separately and sorting."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.evaluation.paging import losses_of, worse_since, worst, worst_codes
from evalengine.run import tallied_of
from evalengine.schemas.errors import ResultError
from evalengine.tasks.task import Losses

Tables = tuple[Any, Any]


def _detection(seed: int) -> Tables:
    r = np.random.default_rng(seed)
    n = 120
    corner = r.integers(0, 60, (n, 2)).astype(float)
    size = r.integers(10, 30, (n, 2))
    truths = pl.DataFrame(
        {
            "datum_id": r.integers(0, 25, n),
            "label_value": r.choice(["a", "b", "<script>"], n),
            "xmin": corner[:, 0],
            "ymin": corner[:, 1],
            "xmax": corner[:, 0] + size[:, 0],
            "ymax": corner[:, 1] + size[:, 1],
            "iscrowd": r.random(n) < 0.1,
        }
    )
    moved = truths.sample(n, seed=seed, with_replacement=True).drop("iscrowd")
    off = r.integers(-6, 7, n)
    ours = moved.with_columns(
        pl.col("xmin") + off, pl.col("xmax") + off, score=pl.Series(r.integers(0, 20, n) / 20)
    )
    beyond = ours.head(3).with_columns(datum_id=pl.Series([100, 101, 100]))
    return pl.concat([ours, beyond]), truths


def _classification(seed: int) -> Tables:
    r = np.random.default_rng(seed)
    n, labels = 60, ["a", "b", 'it\'s "c"']
    scores = r.dirichlet(np.ones(3), n).round(2)
    ours = pl.DataFrame(
        {"datum_id": np.repeat(np.arange(n), 3), "label_value": labels * n, "score": scores.ravel()}
    )
    return ours, pl.DataFrame({"datum_id": np.arange(n), "label_value": r.choice(labels, n)})


def _retrieval(seed: int) -> Tables:
    r = np.random.default_rng(seed)
    n = 20
    ours = pl.DataFrame(
        {
            "query_id": [f"q{q:02}" for q in range(n) for _ in range(15)],
            "doc_id": [f"d{d}" for _ in range(n) for d in r.permutation(30)[:15]],
            "score": r.integers(0, 10, n * 15).astype(float),
        }
    )
    truths = pl.DataFrame(
        {
            "query_id": [f"q{q:02}" for q in range(n) for _ in range(3)],
            "doc_id": [f"d{d}" for _ in range(n) for d in r.permutation(30)[:3]],
            "relevance": r.integers(0, 3, n * 3),
        }
    )
    return ours, truths


def _text(seed: int) -> Tables:
    r = np.random.default_rng(seed)
    words = np.array(["the", "cat", "sat", "on", "a", "mat", "and", "so", "did", "dogs"])
    texts, meant = ([" ".join(r.choice(words, 6)) for _ in range(40)] for _ in range(2))
    ids = [f"t'{i}\"" for i in range(40)]
    return (
        pl.DataFrame({"datum_id": ids, "text": texts}),
        pl.DataFrame({"datum_id": ids, "text": meant}),
    )


def _judged(seed: int) -> Tables:
    r = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "datum_id": np.repeat(np.arange(30), 4),
            "metric": ["Bias"] * 120,
            "verdict": r.choice(["yes", "no"], 120),
        }
    )
    return table, None


def _segmentation(seed: int) -> Tables:
    r = np.random.default_rng(seed)
    sides = [
        pl.DataFrame({"datum_id": range(12), "raster": r.integers(0, 3, (12, 6, 6)).tolist()})
        for _ in range(2)
    ]
    return sides[0], sides[1]


def _only(tables: Tables, one: Any) -> Tables:
    """The rows of a single datum."""
    name = "query_id" if "query_id" in tables[0].columns else "datum_id"
    ours, theirs = (None if side is None else side.filter(pl.col(name) == one) for side in tables)
    return ours, theirs


def _counts(card: Any) -> dict[str, float]:
    """Counts summed over all labels."""
    rows = card.metrics.filter(pl.col("metric") == "Counts", pl.col("label_value").is_not_null())
    sums = rows.group_by("statistic").agg(pl.col("value").sum())
    return dict(sums.rows())


def _f1(tables: Tables, row: dict[str, Any]) -> float:
    content = json.loads(row["parameters"])
    card = ee.score(
        *tables,
        task="detection",
        metrics=["Counts"],
        iou_thresholds=[content["iou_threshold"]],
        score_thresholds=[content["score_threshold"]],
    )
    n = _counts(card)
    whole = 2 * n.get("tp", 0) + n.get("fp", 0) + n.get("fn", 0)
    return 2 * n.get("tp", 0) / whole if whole else math.nan


def _wrong_score(tables: Tables, row: dict[str, Any]) -> float:
    best = tables[0].sort("score", descending=True, maintain_order=True).row(0, named=True)
    right = best["label_value"] == tables[1]["label_value"][0]
    return math.nan if right else best["score"]


def _single(metric: str, **options: Any) -> Callable[[Tables, dict[str, Any]], float]:
    def value(tables: Tables, row: dict[str, Any]) -> float:
        ours, theirs = tables
        result = ee.score(ours, theirs, metrics=[metric], **options).value(metric.split("@")[0])
        return math.nan if result is None else result

    return value


CASES: dict[str, tuple[Callable[[int], Tables], dict[str, Any], Any, bool, float | None]] = {
    "detection": (_detection, {}, _f1, True, 1.0),
    "wrong label": (_classification, {}, _wrong_score, False, None),
    "log loss": (
        _classification,
        {"metrics": ["Accuracy", "LogLoss"]},
        _single("LogLoss"),
        False,
        0.0,
    ),
    "retrieval": (_retrieval, {}, _single("nDCG@10"), True, 1.0),
    "text": (_text, {"metrics": ["WER", "ROUGE1"]}, _single("WER"), False, 0.0),
    "judged": (_judged, {}, _single("Bias"), False, 0.0),
    "segmentation": (_segmentation, {"metrics": ["mIOU"]}, None, True, 1.0),
}
"""Tables, options, value of a single datum, whether higher is better, the value without errors."""


def _ids(tables: Tables) -> list[Any]:
    name = "query_id" if "query_id" in tables[0].columns else "datum_id"
    sides = [side[name] for side in tables if side is not None]
    result: list[Any] = pl.concat(sides).unique().sort().to_list()
    return result


@pytest.mark.parametrize(("seed", "name"), [*enumerate(CASES)])
def test_worst_matches_datums_scored_separately(seed: int, name: str) -> None:
    make, options, single, higher, best = CASES[name]
    tables = make(seed)
    card = ee.score(*tables, **options)
    ids = _ids(tables)
    result = worst(tallied_of("run", card), n=1000)
    assert result["datum_id"].n_unique() == result.height
    first = result.row(0, named=True)
    if single is None:
        frame = card.per_datum.filter(pl.col("metric") == "mIOU")
        values = dict(frame.select("datum_id", "value").rows())
    else:
        values = {one: single(_only(tables, one), first) for one in ids}
    wanted = {
        one: value
        for one, value in values.items()
        if not math.isnan(value) and (best is None or value != best)
    }
    assert dict(result.select("datum_id", "value").rows()) == pytest.approx(wanted, abs=1e-12)
    order = sorted(wanted.values(), reverse=not higher)
    assert result["value"].to_list() == pytest.approx(order, abs=1e-12)
    assert result.null_count().drop("parameters").row(0) == (0, 0, 0, 0)
    assert worst(tallied_of("run", card), n=7).equals(result.head(7))


@pytest.mark.parametrize("name", list(CASES))
def test_loaded_runs_have_the_same_worst_datums(name: str, tmp_path: Any) -> None:
    make, options, *_ = CASES[name]
    card = ee.score(*make(3), **options)
    stored = worst(tallied_of("run", card))
    card.save(tmp_path / "run")
    assert worst(tallied_of("run", ee.load(tmp_path / "run"))).equals(stored)


def _losses(value: Any, ties: Any = None, **more: Any) -> Losses:
    columns = [] if ties is None else [np.asarray(ties, np.float64)]
    return Losses(
        metric="M",
        value=np.asarray(value, np.float64),
        higher=True,
        ties=lambda codes: [column[codes] for column in columns],
        why=lambda codes: ["" for _ in codes],
        **more,
    )


def test_ties_are_ranked_by_other_errors_then_by_id() -> None:
    value = [0.5, 0.0, 0.0, math.nan, 0.0, 1.0, 0.0]
    losses = _losses(value, [9, 1, math.nan, 9, 3, 9, 1], best=1.0)
    for n in (0, 1, 2, 3, 4, 5, 50):
        assert worst_codes(losses, n).tolist() == [4, 1, 6, 2, 0][:n]


def test_undefined_and_faultless_datums_are_not_worst() -> None:
    assert worst_codes(_losses([math.nan, math.nan]), 5).tolist() == []
    assert worst_codes(_losses([1.0, 1.0], best=1.0), 5).tolist() == []
    assert worst_codes(_losses([1.0, 0.9]), 5).tolist() == [1, 0]


def test_messages() -> None:
    box = {"xmin": [0.0], "ymin": [0.0], "xmax": [9.0], "ymax": [9.0]}
    truths = pl.DataFrame({"datum_id": [1], "label_value": ["a"], **box})
    truths = pl.concat([truths, truths.with_columns(xmin=50.0, xmax=59.0)])
    ours = pl.concat([truths.head(1), truths.head(1).with_columns(label_value=pl.lit("b"))])
    result = worst(tallied_of("run", ee.score(ours.with_columns(score=0.7), truths)))
    assert result["why"][0].split(", ") == ["1 of 2 objects missed", "1 false positive"]
    maps = [[[0, 0], [0, 1]], [[0, 1], [1, 1]]]
    ours, truths = (pl.DataFrame({"datum_id": [1], "raster": [one]}) for one in maps)
    result = worst(tallied_of("run", ee.score(ours, truths, metrics=["mIOU"])))
    message = "50 % of the pixels wrong, most of 0: 0 of its 1 missed, 2 too many"
    assert result["why"].to_list() == [message]
    table = pl.DataFrame({"actual": ["cat", "dog"], "predicted": ["<script>", "dog"]})
    result = worst(tallied_of("run", ee.score(table)))
    (why,) = result["why"]
    assert "<script>" in why
    assert "cat" in why
    assert result["datum_id"].to_list() == [0]
    run = pl.DataFrame({"query_id": ["a"] * 3, "doc_id": ["x", "y", "z"], "score": [3.0, 2, 1]})
    judged = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["z", "x"], "relevance": [1, 0]})
    result = worst(tallied_of("run", ee.score(run, judged)))
    assert result["why"][0].endswith("rank 3")


def test_queries_without_relevant_documents_are_not_worst() -> None:
    run = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["x", "x"], "score": [1.0, 1.0]})
    judged = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["y", "y"], "relevance": [1, 0]})
    result = worst(tallied_of("run", ee.score(run, judged)))
    assert result.select("datum_id", "why").rows() == [("a", "no relevant document retrieved")]


def test_several_labels_are_ranked_by_f1() -> None:
    ours = pl.DataFrame(
        {
            "datum_id": [1, 1, 1, 2, 2, 2],
            "label_value": ["a", "b", "c"] * 2,
            "score": [0.9, 0.8, 0.1, 0.9, 0.1, 0.1],
        }
    )
    truths = pl.DataFrame({"datum_id": [1, 1, 2], "label_value": ["a", "c", "a"]})
    result = worst(tallied_of("run", ee.score(ours, truths, multilabel=True)))
    assert result.select("datum_id", "value", "why").rows() == [
        (1, 0.5, "1 of 2 labels missed, 1 predicted that are wrong")
    ]


def test_the_worst_of_several_keys_counts() -> None:
    ours = pl.DataFrame(
        {
            "datum_id": [1, 1, 1, 1],
            "label_key": ["animal", "animal", "sky", "sky"],
            "label_value": ["cat", "dog", "blue", "grey"],
            "score": [0.6, 0.4, 0.1, 0.9],
        }
    )
    truths = pl.DataFrame(
        {"datum_id": [1, 1], "label_key": ["animal", "sky"], "label_value": ["dog", "blue"]}
    )
    result = worst(tallied_of("run", ee.score(ours, truths)))
    assert result.select("value", "why").rows() == [(0.9, "sky: predicted grey (0.9), is blue")]


def test_the_score_threshold_is_that_of_the_highest_f1() -> None:
    tables = _detection(5)
    card = ee.score(*tables)
    parameters = losses_of(tallied_of("run", card)).made_with
    grid = tables[0]["score"].unique().sort().to_list()
    counts = ee.score(*tables, metrics=["Counts"], iou_thresholds=[0.5], score_thresholds=grid)
    rows = counts.metrics.filter(pl.col("metric") == "Counts", pl.col("label_value").is_not_null())
    table = rows.group_by("score_threshold", "statistic").agg(pl.col("value").sum())
    wide = table.pivot("statistic", index="score_threshold", values="value").with_columns(
        f1=2 * pl.col("tp") / (2 * pl.col("tp") + pl.col("fp") + pl.col("fn"))
    )
    best = wide.sort("f1", "score_threshold", descending=[True, True])
    assert parameters == {"iou_threshold": 0.5, "score_threshold": best["score_threshold"][0]}
    result = ee.find_thresholds(card, metrics="ThresholdAtMaxF", draws=20).frame
    assert (
        result.filter(pl.col("average") == "micro")["threshold"].item()
        == parameters["score_threshold"]
    )


def test_scores_without_labels_rank_no_datum() -> None:
    ours, truths = _classification(0)
    card = ee.score(ours, truths, metrics=["ROCAUC"])
    with pytest.raises(ResultError, match="Accuracy or LogLoss"):
        worst(tallied_of("run", card))


def test_runs_without_a_tally_are_refused() -> None:
    card = copy.copy(ee.score(*_classification(0)))
    with refused("not_kept", ResultError, step="comparing"):
        tallied_of("run", card)


def test_a_million_rows_cost_little() -> None:
    r = np.random.default_rng(0)
    table = pl.DataFrame({"actual": r.integers(0, 2, 1_000_000), "score": r.random(1_000_000)})
    tallied = tallied_of("run", ee.score(table, metrics=["Accuracy"]))
    begun = time.process_time()
    result = worst(tallied)
    assert time.process_time() - begun < 1.0
    scores = table["score"].to_numpy()
    actual = table["actual"].to_numpy()
    wrong = (scores >= 0.5) != (actual == 1)
    sure = np.where(scores >= 0.5, scores, 1 - scores)
    assert result["value"].to_list() == np.sort(sure[wrong])[::-1][:50].tolist()


def test_worse_since() -> None:
    """The largest change comes first; datums wrong before or right now are skipped."""
    truths = pl.DataFrame({"datum_id": range(5), "label_value": ["a"] * 5})

    def run(*scores: float) -> ee.Scorecard:
        rows = [(i, label, s) for i, score in enumerate(scores)
                for label, s in (("a", score), ("b", 1 - score))]  # fmt: skip
        result = pl.DataFrame(rows, schema=["datum_id", "label_value", "score"], orient="row")
        return ee.score(result, truths)

    before, now = run(0.9, 0.9, 0.9, 0.4, 0.6), run(0.9, 0.2, 0.7, 0.8, 0.1)
    result = worse_since(before.tallied, now.tallied)
    assert result["datum_id"].to_list() == [4, 1]
    assert result["before"].to_list() == [0.0, 0.0]
    assert result["value"].to_list() == pytest.approx([0.9, 0.8])
    assert worse_since(before.tallied, now.tallied, 1)["datum_id"].to_list() == [4]
    assert worse_since(before.tallied, before.tallied).is_empty()
    same = worse_since(before.tallied, now.tallied).drop("before")
    whole = worst(now.tallied).filter(pl.col("datum_id").is_in(same["datum_id"].implode()))
    assert same.sort("datum_id").equals(whole.sort("datum_id"))
