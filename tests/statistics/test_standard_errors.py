"""Standard errors and intervals, compared with theory and with sacrebleu's bootstrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from scipy import stats

import evalengine as ee

N, DRAWS, VIDEOS = 300, 2000, 30
# The relative error of a standard deviation of B resamples is 1 / sqrt(2 B). The tolerance is four
# times that, and as much again for terms of 1 / N that theory ignores.
WITHIN = 4 / np.sqrt(2 * DRAWS) + 4 / N


def retrieval(rng: np.random.Generator) -> tuple[pl.DataFrame, ...]:
    """Return runs of ten documents, good for queries of some videos and bad for others."""
    query = np.repeat(np.arange(N), 10)
    good = np.repeat(rng.random(VIDEOS) * 0.8, N // VIDEOS)
    run = pl.DataFrame({"query_id": query, "doc_id": np.tile(np.arange(10), N)})
    relevance = (rng.random(10 * N) < np.repeat(good, 10)).astype(int)
    relevance[::10] = 1
    found = run.with_columns(score=pl.Series(rng.random(10 * N)))
    return found, run.with_columns(relevance=pl.Series(relevance))


def words(rng: np.random.Generator, n: int) -> tuple[list[str], list[str]]:
    """Return references of some twenty words, and texts in which some words differ."""
    vocabulary = np.array([f"{a}{b}{c}" for a in "klmnp" for b in "aeiou" for c in "rst"])
    references = [rng.choice(vocabulary, rng.integers(8, 30)) for _ in range(n)]
    texts = []
    for reference in references:
        wrong = rng.random(reference.size) < rng.random() * 0.6
        texts.append(np.where(wrong, rng.choice(vocabulary, reference.size), reference))
    return [" ".join(text) for text in texts], [" ".join(one) for one in references]


def text(rng: np.random.Generator) -> tuple[pl.DataFrame, ...]:
    texts, references = words(rng, N)
    return (pl.DataFrame({"datum_id": range(N), "text": texts, "reference": references}),)


def judged(rng: np.random.Generator) -> tuple[pl.DataFrame, ...]:
    """Five verdicts per datum."""
    yes = rng.random((N, 5)) < np.repeat(rng.random(VIDEOS), N // VIDEOS)[:, None]
    return (
        pl.DataFrame(
            {
                "datum_id": np.repeat(np.arange(N), 5),
                "metric": pl.repeat("AnswerRelevance", 5 * N, eager=True),
                "item_index": np.tile(np.arange(5), N),
                "verdict": np.where(yes.ravel(), "yes", "no"),
            }
        ),
    )


TASKS: dict[str, tuple[Any, list[str]]] = {
    "retrieval": (retrieval, ["nDCG@5", "MAP", "MRR", "P@3"]),
    "text": (text, ["ROUGE1", "ROUGEL", "BLEU"]),
    "judged": (judged, ["AnswerRelevance"]),
}


def means_of(card: ee.Scorecard) -> pl.DataFrame:
    """Return rows of metrics and the values of single datums, lists in the order of ids."""
    names = ["metric", "statistic", "k"]
    by_id = card.per_datum.sort(pl.col("datum_id").cast(pl.Int64))
    values = by_id.group_by(names, maintain_order=True).agg(pl.col("value").alias("values"))
    rows = card.metrics.join(values, on=names, nulls_equal=True, maintain_order="left")
    assert rows.height == card.metrics.height > 0
    return rows


@pytest.mark.parametrize("task", TASKS)
def test_of_means(task: str) -> None:
    """The standard error is the deviation of the values divided by the square root of n."""
    tables, metrics = TASKS[task]
    sides = tables(np.random.default_rng(3))
    card = ee.score(*sides, task=task, metrics=metrics, intervals=95, draws=DRAWS, method="normal")
    for row in means_of(card).iter_rows(named=True):
        values = np.array(row["values"])
        assert values.size == N
        assert row["value"] == pytest.approx(values.mean())
        expected = values.std() / np.sqrt(N)
        assert row["se"] == pytest.approx(expected, rel=WITHIN)
        assert abs(row["bias"]) < 4 * expected / np.sqrt(DRAWS)
        reach = 1.959963984540054 * row["se"]
        assert (row["lower"], row["upper"]) == pytest.approx(
            (row["value"] - reach, row["value"] + reach)
        )


@pytest.mark.parametrize("task", TASKS)
def test_of_means_over_clusters(task: str) -> None:
    """Deviations are summed within a cluster before they are squared."""
    tables, metrics = TASKS[task]
    datum = "query_id" if task == "retrieval" else "datum_id"
    videos = pl.DataFrame({datum: range(N), "video": np.arange(N) // (N // VIDEOS)})
    sides = tables(np.random.default_rng(4))
    asked = {"task": task, "metrics": metrics, "intervals": 95, "draws": DRAWS, "datums": videos}
    card = ee.score(*sides, **asked, cluster="video")
    by_datum = ee.score(*sides, **asked).metrics["se"]
    for row, alone in zip(means_of(card).iter_rows(named=True), by_datum, strict=True):
        values = np.array(row["values"])
        gaps = (values - values.mean()).reshape(VIDEOS, -1).sum(axis=1)
        expected = np.sqrt((gaps**2).sum()) / N
        assert row["se"] == pytest.approx(expected, rel=WITHIN + 1 / VIDEOS)
        if task != "text":  # whose datums are independent
            assert row["se"] > 1.5 * alone


@pytest.mark.parametrize("method", ["jackknife", "bca", "percentile", "recentred"])
def test_other_methods_on_a_mean(method: str) -> None:
    """They agree with Student's interval within the error of resamples and of the jackknife."""
    sides = retrieval(np.random.default_rng(6))
    card = ee.score(*sides, metrics="nDCG@5", intervals=0.95, draws=DRAWS, method=method)
    (row,) = means_of(card).iter_rows(named=True)
    values = np.array(row["values"])
    se = values.std(ddof=1) / np.sqrt(N)
    # A percentile bound is known to 2.7 / sqrt(B) deviations, a jackknife of 200 parts to 5 %.
    within = 4 * 0.05 * 1.97 if method == "jackknife" else 4 * 2.7 / np.sqrt(DRAWS)
    assert row["se"] == pytest.approx(se, rel=4 * 0.05)
    assert abs(row["lower"] - (values.mean() - 1.97 * se)) < within * se
    assert abs(row["upper"] - (values.mean() + 1.97 * se)) < within * se


def test_wilson_of_shares_of_datums() -> None:
    """Labels have it; averages do not, because a datum may be in them twice."""
    rng = np.random.default_rng(7)
    actual = rng.choice(list("abc"), 200)
    predicted = np.where(rng.random(200) < 0.7, actual, rng.choice(list("abc"), 200))
    metrics = ["Accuracy", "Precision", "Recall", "Jaccard", "F2"]
    table = pl.DataFrame({"actual": actual, "predicted": predicted})
    rows = ee.score(table, metrics=metrics, intervals=0.9, method="wilson").metrics
    right = (actual == predicted).sum()
    expected = {("Accuracy", None): (right, 200)}
    for label in "abc":
        predicted_here, there = predicted == label, actual == label
        both = (predicted_here & there).sum()
        expected["Precision", label] = both, predicted_here.sum()
        expected["Recall", label] = both, there.sum()
        expected["Jaccard", label] = both, (predicted_here | there).sum()
    for row in rows.iter_rows(named=True):
        counts = expected.get((row["metric"], row["label_value"]))
        if counts is None or row["average"] is not None:
            assert row["lower"] is None
            assert "proportions of datums" in row["reason"]
            continue
        ours = row["lower"], row["upper"]
        assert ours == pytest.approx(
            stats.binomtest(*map(int, counts)).proportion_ci(0.9, method="wilson")
        )


BOOTSTRAP = 4000
SACREBLEU = {"CorpusBLEU": BLEU, "chrF": CHRF, "TER": TER}


@pytest.mark.parametrize("metric", SACREBLEU)
def test_as_sacrebleus_bootstrap(metric: str) -> None:
    """Two bootstraps of as many resamples agree: Poisson weights, and n of n texts.

    Half of a 95 % interval is 1.96 deviations, known to 0.085 * sqrt(1000 / B / 2) of them: within
    four times that of both the widths agree, and within 4 * sqrt(2 / B) deviations the means.
    """
    texts, references = words(np.random.default_rng(8), 150)
    scorer = SACREBLEU[metric]()
    theirs = scorer.corpus_score(texts, [references], n_bootstrap=BOOTSTRAP)
    table = pl.DataFrame({"text": texts, "reference": references})
    card = ee.score(
        table,
        dialect="sacrebleu",
        metrics=metric,
        intervals=95,
        draws=BOOTSTRAP,
        method="percentile",
    )
    (row,) = card.metrics.iter_rows(named=True)
    assert row["value"] == pytest.approx(theirs.score)
    deviation = row["se"]
    half = (row["upper"] - row["lower"]) / 2
    exact = 0.085 * np.sqrt(1000 / BOOTSTRAP / 2)
    assert abs(half - theirs._ci) < 4 * np.sqrt(2) * exact * deviation
    mean = row["value"] + row["bias"]
    assert abs(mean - theirs._mean) < 4 * np.sqrt(2 / BOOTSTRAP) * deviation
