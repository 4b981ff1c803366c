"""Tables that are read but mean nothing: rows out of step, single tracks, swapped sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import noted, refused

import evalengine as ee

N = 60
IDS = pl.DataFrame({"datum_id": range(N)})
WORDS = ["red", "green", "blue", "cat", "dog", "cow", "sun", "moon", "sky", "sea"]


def codes(result: Any, severity: str = "warning") -> set[str]:
    return {one.code for one in result.findings if one.severity == severity}


def texts(rng: np.random.Generator, n: int = N) -> pl.Series:
    return pl.Series([" ".join(rng.choice(WORDS, 6)) + f" {i}" for i in rng.permutation(n)])


def sides(task: str, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame, str]:
    """Return predictions close to their ground truths, and the predicted column."""
    rng = np.random.default_rng(seed)
    if task == "text":
        made = texts(rng)
        return IDS.with_columns(text=made + " so"), IDS.with_columns(text=made), "text"
    if task == "regression":
        made = rng.normal(size=N)
        found = IDS.with_columns(prediction=made + rng.normal(size=N) / 100)
        return found, IDS.with_columns(target=made), "prediction"
    labels = pl.Series(rng.choice(list("abc"), N))
    found = IDS.with_columns(label_value=pl.Series(["a", "b", *labels[2:]]))
    return found, IDS.with_columns(label_value=labels), "label_value"


@pytest.mark.parametrize("task", ["text", "regression", "classification"])
@pytest.mark.parametrize("order", ["reverse", "later", "earlier", "random", "as is"])
def test_rows_out_of_step_are_reported(task: str, order: str) -> None:
    ours, theirs, name = sides(task)
    column = pl.col(name)
    moved = {
        "reverse": column.reverse(),
        "later": pl.concat([column.tail(1), column.head(N - 1)]),
        "earlier": pl.concat([column.tail(N - 1), column.head(1)]),
        "random": column.shuffle(seed=1),
        "as is": column,
    }
    card = ee.score(ours.with_columns(moved[order]), theirs, task=task)
    assert ("rows_out_of_step" in codes(card)) == (order not in ("random", "as is"))


def test_forecasts_of_the_last_value_and_alternating_labels_are_in_step() -> None:
    values = np.random.default_rng(3).normal(size=N)
    naive = pl.DataFrame({"target": values, "prediction": np.roll(values, 1)})
    assert "rows_out_of_step" not in codes(ee.score(naive))
    trend = pl.DataFrame({"target": np.arange(N) + 0.5, "prediction": -np.arange(N) - 0.5})
    assert "rows_out_of_step" not in codes(ee.score(trend))
    both = IDS.with_columns(label_value=pl.Series(["a", "b"] * (N // 2)))
    other = both.with_columns(label_value=pl.Series(["b", "a"] * (N // 2)))
    assert "rows_out_of_step" not in codes(ee.score(other, both))


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_the_other_class_are_reported(seed: int) -> None:
    """Reversed scores have a ROC AUC well above 0.1; unskilled and poor scores are accepted."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-rng.normal(size=400) * 1.5))
    true = (rng.random(400) < p).astype(int)
    card = ee.score(y_true=true, y_score=1 - p, metrics=["ROCAUC"])
    assert 0.1 < card.value("ROCAUC", label_value=1) < 0.4
    assert "scores_reversed" in codes(card)
    for score in (p, rng.random(400), np.clip(0.45 - true / 10 + rng.normal(size=400), 0, 1)):
        result = ee.score(y_true=true, y_score=score, metrics=["ROCAUC"])
        assert "scores_reversed" not in codes(result)


def binary(n: int, seed: int, base: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return true labels, and probabilities of label 1."""
    rng = np.random.default_rng(seed)
    true = (rng.random(n) < base).astype(int)
    prior = np.log(base / (1 - base))
    p = 1 / (1 + np.exp(-(2.4 * ((2 * true - 1) * 1.2 + rng.normal(size=n)) + prior)))
    return true, p


def test_reversed_scores_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    true, p = binary(2_000, 5)
    table = pl.DataFrame({"datum_id": range(2_000), "actual": true, "score": 1 - p})
    findings = ee.score(table, metrics=["ROCAUC"], memory_limit="4GB").findings
    assert [one.code for one in findings].count("scores_reversed") == 1
    right = table.with_columns(score=1 - pl.col("score"))
    for sound in (right, right.with_columns(score=pl.col("score").shuffle(1))):
        assert "scores_reversed" not in codes(
            ee.score(sound, metrics=["ROCAUC"], memory_limit="4GB")
        )


@pytest.mark.parametrize(("place", "code"), [(9, "scores_reversed"), (0, None), (-1, None)])
def test_relevant_documents_at_the_end_in_buckets(
    place: int, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relevant documents are at rank 10 of 10, at rank 1, or anywhere."""
    in_buckets(monkeypatch)
    queries, rng = 1_000, np.random.default_rng(2)
    doc = rng.integers(0, 10, queries) if place < 0 else np.full(queries, place)
    judged = pl.DataFrame({"query_id": range(queries), "doc_id": doc})
    run = pl.DataFrame({"query_id": range(queries)}).join(
        pl.DataFrame({"doc_id": range(10), "score": np.linspace(0.9, 0.1, 10)}), how="cross"
    )
    findings = ee.score(run, judged, metrics=["nDCG@10"], memory_limit="4GB").findings
    assert [one.code for one in findings if one.code == "scores_reversed"] == [code] * bool(code)


@pytest.mark.parametrize(("share", "warns"), [(0.02, False), (0.047, False), (0.2, True)])
def test_judgments_of_another_collection_in_buckets(
    share: float, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of all datums decides, not that of a bucket."""
    queries, rng = 1_500, np.random.default_rng(4)
    run = pl.DataFrame(
        {"query_id": np.repeat(np.arange(queries), 6), "doc_id": [*range(6)] * queries}
    )
    run = run.with_columns(score=pl.Series(rng.random(run.height)))
    other = pl.Series(rng.random(queries) < share)
    judged = run.with_columns(
        doc_id=pl.when(pl.col("query_id").is_in(other.arg_true().implode()))
        .then(pl.col("doc_id") + 100)
        .otherwise("doc_id"),
        relevance=pl.lit(1),
    ).drop("score")
    whole = ee.score(run, judged, metrics=["nDCG@10"])
    in_buckets(monkeypatch)
    bounded = ee.score(run, judged, metrics=["nDCG@10"], memory_limit="4GB")
    for card in (whole, bounded):
        assert ("judged_elsewhere" in codes(card)) == warns


@pytest.mark.parametrize("base", [0.5, 0.2])
def test_scores_of_the_predicted_label_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: float
) -> None:
    """They are confidences, also in buckets; after the repair there is no warning."""
    in_buckets(monkeypatch)
    true, p = binary(1_000, 3, base)
    table = pl.DataFrame(
        {
            "datum_id": range(1_000),
            "actual": true,
            "predicted": (p > 0.5).astype(int),
            "score": np.maximum(p, 1 - p),
        }
    )
    for card in bounded((table,), tmp_path):
        assert noted(card, "scores_of_predicted", count=1_000, severity="warning", label=1)
    right = pl.when(pl.col("predicted") == 1).then("score").otherwise(1 - pl.col("score"))
    for card in bounded((table.with_columns(score=right),), tmp_path):
        assert "scores_of_predicted" not in codes(card)
    named = table.with_columns(pl.col("actual", "predicted").replace_strict({0: "n", 1: "y"}))
    assert noted(ee.score(named, positive_label="y"), "scores_of_predicted", label="y")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [20, 60, 2_000])
def test_other_scores_are_not_those_of_the_predicted_label(seed: int, n: int) -> None:
    """Scores in [0.5, 1] of label 1, other thresholds, and another model are accepted."""
    true, p = binary(n, seed)
    _, noise = binary(n, seed + 100)
    rng = np.random.default_rng(seed)
    half, cut = 0.5 + p / 2, np.where(rng.random(n) < 0.5, 0.7, 0.8)
    cases = [
        (half, half > 0.75),
        (half, half > 0.9),
        (half, half > cut),  # a threshold per group
        (1 - p / 2, p > 0.5),  # of the other label
        (0.5 + noise / 2, p > 0.5),
        (0.5 + noise / 2, noise > 0.5),
        (0.5 + rng.random(n) / 2, p > 0.5),
        (0.5 + rng.random(n) / 2, rng.random(n) > 0.5),
        (np.maximum(noise, 1 - noise), noise > 0.5),  # without skill
        (np.ones(n), p > 0.5),
        (10 * np.maximum(p, 1 - p), p > 0.5),
        (p, p > 0.2),
    ]
    for score, predicted in cases:
        table = {"actual": true, "predicted": predicted.astype(int), "score": score}
        assert "scores_of_predicted" not in codes(ee.score(pl.DataFrame(table)))


def tracks() -> pl.DataFrame:
    frame = np.repeat(np.arange(6), 3)
    track = np.tile([1, 2, 3], 6)
    at = track * 50.0 + frame
    box = {"xmin": at, "ymin": at, "xmax": at + 20, "ymax": at + 20}
    return pl.DataFrame({"sequence": ["a"] * 18, "frame": frame, "track_id": track, **box})


def test_tracks_of_one_box_are_reported() -> None:
    single = tracks().with_columns(track_id=pl.int_range(pl.len()))
    assert noted(ee.score(single, tracks()), "tracks_of_one_box", side="predictions")
    assert noted(ee.score(tracks(), single), "tracks_of_one_box", side="ground_truths")
    first = tracks().filter(pl.col("frame") == 0)
    for ours, theirs in ((tracks(), tracks()), (single, single), (first, first)):
        assert "tracks_of_one_box" not in codes(ee.score(ours, theirs))


def test_tracks_without_a_sequence_are_not_images() -> None:
    bare = tracks().drop("sequence").with_columns(label_value=pl.lit("a"), score=pl.lit(0.5))
    with refused("column_missing", column="sequence"):
        ee.score(bare, bare.drop("score"))
    boxes = bare.with_columns(datum_id=pl.col("frame"))
    card = ee.score(boxes, boxes.drop("score"))
    assert card.task == "detection"
    assert [one.severity for one in card.findings if one.code == "unread_column"] == ["note"] * 2


def test_lines_of_text_are_not_a_table(tmp_path: Path) -> None:
    for name, said in (("p", "the cat sat\nso it goes on\n"), ("g", "a cat sat, or so\nit goes\n")):
        (tmp_path / f"{name}.txt").write_text(said)
    for task in (None, "text"):
        with refused("format_unknown", ee.ReadError):
            ee.score(tmp_path / "p.txt", tmp_path / "g.txt", task=task)
    table = "datum_id,text\n1,the cat sat on it\n2,so it goes on\n"
    (tmp_path / "p.txt").write_text(table)
    assert ee.score(tmp_path / "p.txt", tmp_path / "p.txt", task="text").value("ROUGE1") == 1


def test_swapped_tables_of_labels_are_questioned() -> None:
    truth = IDS.with_columns(label=pl.lit("a"))
    with refused("column_missing", side="ground_truths", swapped_with="prediction"):
        ee.score(truth, truth.rename({"label": "prediction"}))


def test_certainty_of_annotators_is_not_a_swap() -> None:
    rng = np.random.default_rng(0)
    truth = IDS.with_columns(label_value=pl.Series(rng.choice(["a", "b"], N)))
    steps = truth.with_columns(score=pl.Series(rng.choice([0.5, 0.75, 1.0], N)))
    assert noted(ee.score(truth, steps), "tables_swapped", severity="note")
    scores = truth.with_columns(score=pl.Series(rng.random(N)))
    assert noted(ee.score(truth, scores), "tables_swapped", severity="warning")


def test_repeated_documents_of_both_sides_are_reported_together() -> None:
    run = pl.DataFrame({"query_id": [1, 1], "doc_id": ["a", "a"], "score": [0.5, 0.4]})
    with refused("repeated_values", side="predictions", match=r"ground truths: a document"):
        ee.score(run, run.select("query_id", "doc_id", relevance=1))


def test_the_nearest_task_and_its_missing_column() -> None:
    ours = IDS.with_columns(guess=pl.lit("a"), score=0.5)
    theirs = IDS.with_columns(truth=pl.lit("a"))
    way = r'classification; .*columns=\{"guess": "label_value"\}'
    with refused("task_unknown", match=way) as info:
        ee.score(ours, theirs)
    assert len(str(info.value)) < 400
    with refused("task_unknown", match="write task= ") as info:
        ee.score({"a": [1], "b": [2]}, {"a": [1], "c": [2]})
    assert len(str(info.value)) < 300


def test_markers_of_missing_values_next_to_a_label_map() -> None:
    ours = IDS.with_columns(label_value=pl.Series(["a", "b", "c"] * 20))
    theirs = ours.with_columns(label_value=pl.Series(["a", "b", "NaN"] * 20))
    card = ee.score(ours, theirs, label_map={"a": "x"})
    assert noted(card, "missing_as_label", side="ground_truths", count=20)
    assert "missing_as_label" not in codes(ee.score(ours, theirs, label_map={"NaN": "c"}))


def bounded(case: tuple[pl.DataFrame, ...], folder: Path, **options: Any) -> list[ee.Scorecard]:
    """Score in memory, and in four buckets."""
    paths = [folder / f"{i}.parquet" for i in range(len(case))]
    for path, table in zip(paths, case, strict=True):
        table.write_parquet(path)
    limit = {"memory_limit": "1GB", "scratch": str(folder / "scratch")}
    return [ee.score(*paths, **options, **how) for how in ({}, limit)]


def test_rules_in_buckets_judge_all_datums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids off by one, markers of missing labels, sentinels and ties are few in each bucket."""
    in_buckets(monkeypatch)
    rng = np.random.default_rng(0)
    names = pl.Series([f"img_{i}" for i in range(1, N + 2)])
    labels = pl.Series(rng.choice(["a", "b"], N))
    moved = (
        pl.DataFrame({"datum_id": names[1:], "label_value": labels}),
        pl.DataFrame({"datum_id": names[:-1], "label_value": labels}),
    )
    for card in bounded(moved, tmp_path, task="classification"):
        assert noted(card, "ids_one_off", step=-1)
    marked = labels.to_frame("label_value").with_columns(
        label_value=pl.when(pl.int_range(N) % 10 == 0).then(pl.lit("NaN")).otherwise("label_value")
    )
    for card in bounded((IDS.hstack([labels.alias("label_value")]), IDS.hstack(marked)), tmp_path):
        assert noted(card, "missing_as_label", count=6)
    wide = pl.DataFrame({"datum_id": range(120)})
    target = np.where(np.arange(120) % 40 == 0, -999.0, rng.random(120))
    numbers = wide.with_columns(target=target, prediction=rng.random(120))
    for card in bounded((numbers,), tmp_path):
        assert noted(card, "sentinel_values", count=3, side="targets")
    rare = numbers.with_columns(target=pl.when(wide["datum_id"] == 0).then(-999.0).otherwise(0.5))
    for card in bounded((rare,), tmp_path):
        assert "sentinel_values" not in codes(card)


def test_buckets_count_tied_documents_of_all_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    query = np.repeat(np.arange(N), 2)
    tied = np.tile([1.0, 0.5], N)
    tied[1:14:2] = 1.0  # of seven queries
    run = pl.DataFrame({"query_id": query, "doc_id": np.tile(["a", "b"], N), "score": tied})
    judged = run.filter(pl.col("doc_id") == "a").select("query_id", "doc_id", relevance=1)
    for card in bounded((run, judged), tmp_path):
        assert noted(card, "tied_top_scores", count=7, severity="note")
