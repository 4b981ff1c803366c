"""Classification in buckets, bit for bit equal to a run in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from merging.parts import Case
from partitions import cases
from refusals import noted

import evalengine as ee

METRICS = ["Accuracy", "Precision", "Recall", "F1", "Jaccard", "BalancedAccuracy", "MCC",
           "CohenKappa", "HammingLoss", "Counts", "ROCAUC", "mROCAUC",
           "PrecisionRecallCurve"]  # fmt: skip
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    cases.in_buckets(monkeypatch)


def listed(seed: int, kind: str) -> Case:
    """Return tables with tied scores.

    Kinds: ``listed`` has some labels per datum, ``grid`` all labels, ``one`` a single label and
    ``hard`` predicted labels without scores.
    """
    rng = np.random.default_rng(seed)
    n = 40
    ids = rng.permutation(n)
    if kind == "one":
        table = pl.DataFrame({"actual": rng.integers(0, 2, n), "score": rng.integers(0, 6, n) / 5})
        return Case((table,), {"metrics": METRICS})
    if kind == "hard":
        words = ["a", "b", "c"]
        table = pl.DataFrame({"actual": rng.choice(words, n), "predicted": rng.choice(words, n)})
        return Case((table,), {"metrics": METRICS[:10]})
    rows = pl.DataFrame({"datum_id": np.repeat(ids, 3), "label_value": np.tile([3, 1, 2], n)})
    rows = rows.with_columns(score=pl.Series(rng.integers(0, 5, 3 * n) / 4).cast(pl.Float32))
    truths = pl.DataFrame({"datum_id": ids, "label_value": rng.integers(1, 5, n)})
    if kind == "listed":
        rows = rows.filter(pl.Series(rng.random(rows.height) < 0.7))
        truths = truths.filter(pl.Series(rng.random(n) < 0.8))
        rows = rows.sample(fraction=1, shuffle=True, seed=seed)
    return Case((rows, truths), {"metrics": METRICS, "score_thresholds": [0.25, 0.5]})


@pytest.mark.parametrize("dialect", ["standard", "valor", "sklearn"])
@pytest.mark.parametrize("kind", ["listed", "grid", "one", "hard"])
def test_buckets_are_as_in_memory(kind: str, dialect: str, tmp_path: Path) -> None:
    case = listed(2, kind)
    case.options["dialect"] = dialect
    cases.same_as_in_memory(case, "classification", tmp_path, files=2)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("keys", [0, 1, 2])
def test_score_columns_under_label_keys(sides: int, keys: int, tmp_path: Path) -> None:
    """Buckets have only some label keys or no predictions; one label has no ground truth."""
    rng = np.random.default_rng(sides + keys)
    n = 12
    table = pl.DataFrame({f"p_{name}": rng.integers(0, 4, n) / 3 for name in "abc"})
    truths = pl.Series(rng.choice(["a", "b"], n))
    if keys:
        key = pl.Series(rng.choice(["first", "second"][:keys], n))
        table = table.with_columns(label_key=key)
    options = {"metrics": METRICS, "score_columns": "p_*"}
    if sides == 1:
        case = Case((table.with_columns(actual=truths),), options)
    else:
        ids = pl.Series("datum_id", rng.permutation(n))
        wide = table.with_columns(ids)
        long = wide.select(cs.exclude("^p_.*$")).with_columns(label_value=truths)
        case = Case((wide.head(3), long), options)
    card = cases.same_as_in_memory(case, "classification", tmp_path)
    assert "'c'" in noted(card, "labels_in_predictions_only").message


@pytest.mark.parametrize("twice", [1, 2, 3, 4, 8])
def test_repeated_values_make_one_message(twice: int, tmp_path: Path) -> None:
    """The count is over all buckets, however the repeats are distributed."""
    predictions, truths = listed(7, "grid").sides
    given = cases.write_sides(
        Case((predictions, pl.concat([truths, truths.head(twice)])), {}), tmp_path
    )
    messages = []
    for limit in ({}, {"memory_limit": "1GB", "scratch": str(tmp_path / "scratch")}):
        with pytest.raises(ee.InputError) as failure:
            ee.score(*given, task="classification", metrics=["F1"], **limit)
        messages.append(str(failure.value))
    assert messages[0] == messages[1]
    assert f"{2 * twice} rows" in messages[0]


@pytest.mark.parametrize("by", [[], ["s"]])
@pytest.mark.parametrize("every", [False, True])
def test_weights_of_zero_are_noted_over_all_buckets(
    every: bool, by: list[str], tmp_path: Path
) -> None:
    """A label or slice with only zero weights in one bucket is not noted."""
    n = 30
    truths = pl.DataFrame({"datum_id": range(n), "label_value": [i % 3 for i in range(n)]})
    weight = pl.Series([0.0 if every or i % 3 == 1 else float(i == 2) for i in range(n)])
    sides = (
        truths.with_columns(score=0.5),
        truths.with_columns(
            weight=pl.when(pl.int_range(n) == 3).then(float(not every)).otherwise(weight),
            s=pl.int_range(n) // 10,
        ),
    )
    case = Case(sides, {"metrics": ["F1", "ROCAUC"], "by": by})
    card = cases.same_as_in_memory(case, "classification", tmp_path)
    notes = [note for note in card.notes if "weight" in note]
    assert len(notes) == (1 if every or not by else 2)


def test_a_condition_that_excludes_every_score(tmp_path: Path) -> None:
    case = listed(3, "listed")
    case.options["where"] = "score > 7"
    case.options["metrics"] = ["F1", "ROCAUC", "PrecisionRecallCurve"]
    cases.same_as_in_memory(case, "classification", tmp_path)


@pytest.mark.parametrize(
    ("scores", "at"), [((3.0, -1.0), 0.5), ((3.0, 0.5), 2.0), ((0.5, 0.5), -0.1)]
)
def test_thresholds_that_do_not_fit_all_scores(
    scores: tuple[float, float], at: float, tmp_path: Path
) -> None:
    """Buckets differ in which scores are outside [0, 1]."""
    rng = np.random.default_rng(5)
    score = [*scores, *rng.random(58)]
    table = pl.DataFrame({"datum_id": range(60), "actual": rng.integers(0, 2, 60), "score": score})
    options = {"metrics": ["Accuracy"], "decision_threshold": at}
    card = cases.same_as_in_memory(Case((table,), options), "classification", tmp_path)
    whole = ee.score(table, task="classification", **options)
    assert card.findings == whole.findings


@pytest.mark.parametrize(
    ("kind", "k", "noted"),
    [
        ("grid", 2, False),
        ("grid", 3, True),
        ("grid", 5, True),
        ("incomplete", 3, False),
        ("listed", 5, False),
        ("one", 2, True),
    ],
)
def test_cut_offs_of_all_labels(kind: str, k: int, noted: bool, tmp_path: Path) -> None:
    case = listed(3, "grid" if kind == "incomplete" else kind)
    case.options["metrics"] = [f"TopKAccuracy@{k}"]
    if kind in ("grid", "incomplete"):  # without the label that has no scores
        truth = case.sides[1].with_columns(pl.col("label_value").clip(1, 3))
        rows = case.sides[0][1:] if kind == "incomplete" else case.sides[0]
        case = Case((rows, truth), case.options)
    card = cases.same_as_in_memory(case, "classification", tmp_path)
    notes = [one.facts["k"] for one in card.findings if one.code == "cut_offs_of_all_labels"]
    assert notes == [[k]] * noted
    assert card.value("TopKAccuracy") == 1.0 or not noted
