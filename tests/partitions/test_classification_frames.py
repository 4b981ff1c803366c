"""All frames of classification in buckets, bit for bit equal to a run in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from merging.label_sets import sets
from merging.parts import Case
from partitions import cases
from random_tables import of_each_kind
from sizes import tune

import evalengine as ee
from evalengine import metrics
from evalengine.outofcore import driver
from evalengine.tallies import scored_view
from evalengine.tasks.classification.dialects import ONE_LABEL_ONLY

Array = np.ndarray[Any, Any]

IN_FILES = metrics.names("classification")
OF_EACH_KIND = of_each_kind("classification", Case((), {"metrics": IN_FILES})).options["metrics"]
OF_SEVERAL = [name for name in IN_FILES if name not in ONE_LABEL_ONLY]


@pytest.fixture
def seed() -> int:
    """Return the seed of a test; pytest prints it on failure: ``EVALENGINE_TESTS_SEED=...``."""
    value = cases.next_seed()
    print(f"{cases.SEED}={value}")
    return value


def test_seeds_differ_and_can_be_repeated() -> None:
    assert len({cases.next_seed({cases.SEED: "new"}) for _ in range(5)}) > 1
    names = [f"tests/a.py::test[{i}] (call)" for i in range(5)]
    assert len({cases.next_seed({"PYTEST_CURRENT_TEST": name}) for name in names * 2}) == 5
    assert cases.next_seed({cases.SEED: "17"}) == 17


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make every run use buckets, and list how many sorted runs each merge has."""
    cases.in_buckets(monkeypatch)
    seen: list[int] = []
    real = scored_view.merge_score_runs

    def counting(runs: Any, *rest: Any) -> Any:
        given = list(runs)
        seen.append(len(given))
        return real(given, *rest)

    monkeypatch.setattr(scored_view, "merge_score_runs", counting)
    return seen


def weights(rng: np.random.Generator, n: int) -> pl.Series:
    """Return weights whose sum depends on the order; some are 0."""
    return pl.Series("weight", np.round(rng.random(n) * 3) * rng.random(n))


def one_table(seed: int, *, weighted: bool, named: bool) -> pl.DataFrame:
    """Return a binary table with ties and slice columns of strings and numbers."""
    rng = np.random.default_rng(seed)
    n, different = int(rng.integers(40, 90)), int(rng.choice([2, 9, 1000]))
    table = pl.DataFrame(
        {
            "actual": rng.integers(0, 2, n),
            "score": rng.integers(0, different, n) / different,
            "kind": rng.choice(["x", "ä", None], n).tolist(),
            "level": rng.integers(-2, 3, n),
        },
        schema_overrides={"kind": pl.String},
    )
    if named:
        table = table.with_columns(datum_id=pl.Series(rng.permutation(n)))
    return table.with_columns(weights(rng, n)) if weighted else table


@pytest.mark.parametrize(
    ("named", "weighted", "average"), [(False, True, "macro"), (True, False, "micro")]
)
def test_one_table(
    average: str, weighted: bool, named: bool, seed: int, tmp_path: Path, merged: list[int]
) -> None:
    """All metrics of one table whose rows are not ordered by id."""
    case = Case(
        (one_table(seed, weighted=weighted, named=named),),
        {"metrics": IN_FILES, "average": average, "by": ["kind", "level", "kind*level"]},
    )
    cases.same_as_in_memory(case, "classification", tmp_path, files=2)
    assert max(merged) > 1


def two_tables(
    seed: int, *, weighted: bool, several: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return scored labels, some missing, and one or several ground truths per datum."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 70))
    ids = rng.permutation(n)
    names = ids if rng.random() < 0.5 else np.array([f"d{i}" for i in ids])
    rows = pl.DataFrame({"datum_id": np.repeat(names, 3), "label_value": np.tile([3, 1, 2], n)})
    score = pl.Series(rng.integers(0, 5, 3 * n) / 4)
    rows = rows.with_columns(score=score.cast(pl.Float32 if rng.random() < 0.5 else pl.Float64))
    rows = rows.filter(pl.Series(rng.random(3 * n) < 0.8)).sample(
        fraction=1, shuffle=True, seed=seed
    )
    truths = pl.DataFrame(
        {"datum_id": names, "label_value": rng.integers(1, 5, n), "part": rng.integers(0, 3, n)}
    )
    if weighted:
        truths = truths.with_columns(weights(rng, n))
    truths = truths.filter(pl.Series(rng.random(n) < 0.8))
    if several:
        other = truths.with_columns(label_value=pl.col("label_value") % 4 + 1)
        truths = pl.concat([truths, other.gather_every(2)])
    return rows, truths


@pytest.mark.parametrize(
    ("dialect", "weighted", "average"),
    [("standard", False, "micro"), ("valor", True, "macro"), ("sklearn", True, "micro")],
)
def test_two_tables(
    average: str, weighted: bool, dialect: str, seed: int, tmp_path: Path, merged: list[int]
) -> None:
    options = {"metrics": IN_FILES, "average": average, "by": ["part"], "dialect": dialect}
    case = Case(two_tables(seed, weighted=weighted), options)
    cases.same_as_in_memory(case, "classification", tmp_path, files=2)
    assert max(merged) > 1


@pytest.mark.parametrize(("average", "weighted"), [("weighted", False), ("samples", True)])
def test_several_labels_per_datum(
    average: str, weighted: bool, seed: int, tmp_path: Path, merged: list[int]
) -> None:
    options = {"metrics": OF_SEVERAL, "average": average, "by": ["part"], "multilabel": True}
    case = Case(two_tables(seed, weighted=weighted, several=True), options)
    cases.same_as_in_memory(case, "classification", tmp_path, files=2)
    assert max(merged) > 1


def test_sets_of_labels(seed: int, tmp_path: Path, merged: list[int]) -> None:
    for more in range(2):
        (folder := tmp_path / str(more)).mkdir()
        cases.same_as_in_memory(sets(seed + more), "classification", folder, files=2)
    assert max(merged) > 1


@pytest.mark.parametrize(
    ("keys", "sides", "weighted"), [(1, 1, True), (1, 2, False), (2, 1, False), (2, 2, True)]
)
def test_score_columns_under_label_keys(
    keys: int, sides: int, weighted: bool, tmp_path: Path, merged: list[int]
) -> None:
    """A row has several scores, and a datum has one row per label key."""
    rng = np.random.default_rng(keys + 2 * sides)
    n = 50
    table = pl.DataFrame({f"p_{name}": rng.integers(0, 4, n) / 3 for name in "abc"})
    table = table.with_columns(label_key=pl.Series(rng.choice(["one", "two"][:keys], n)))
    truths = pl.Series("actual", rng.choice(["a", "b"], n))
    options = {"metrics": OF_EACH_KIND, "score_columns": "p_*", "average": "micro"}
    ids = pl.Series("datum_id", rng.permutation(n) // keys if sides == 1 else rng.permutation(n))
    if sides == 1 and keys == 2:  # a datum under both keys
        order = np.argsort(ids.to_numpy(), kind="stable")
        key = np.empty(n, dtype=object)
        key[order] = np.tile(["one", "two"], n // 2)
        table = table.with_columns(label_key=pl.Series(key.tolist()))
    weight = [weights(rng, n)] if weighted else []
    if sides == 1:
        case = Case((table.with_columns(truths, ids, *weight),), options)
    else:
        long = pl.DataFrame([ids, table["label_key"], truths.alias("label_value"), *weight])
        case = Case((table.with_columns(ids), long), options)
    cases.same_as_in_memory(case, "classification", tmp_path)
    assert max(merged) > 1


@pytest.mark.parametrize("weighted", [False, True])
def test_hard_labels_under_a_label_map(weighted: bool, tmp_path: Path, merged: list[int]) -> None:
    """Two labels are merged; there are no scores."""
    rng = np.random.default_rng(4)
    n = 60
    words = ["cat", "kitten", "dog"]
    table = pl.DataFrame({"actual": rng.choice(words, n), "predicted": rng.choice(words, n)})
    if weighted:
        table = table.with_columns(weights(rng, n))
    names = [name for name in IN_FILES if metrics.get("classification", name).needs == ("hard",)]
    options = {"metrics": [*names, "ConfusionMatrix"], "label_map": {"kitten": "cat"}}
    cases.same_as_in_memory(
        Case((table.with_columns(s=pl.int_range(n) % 3),), {**options, "by": ["s"]}),
        "classification",
        tmp_path,
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_scores(weighted: bool, tmp_path: Path, merged: list[int]) -> None:
    """A tie has more rows than a sorted run."""
    table = one_table(3, weighted=weighted, named=True).with_columns(score=pl.lit(0.5))
    options = {"metrics": OF_EACH_KIND, "average": "micro", "by": ["level"]}
    cases.same_as_in_memory(Case((table,), options), "classification", tmp_path)
    assert max(merged) > 1


def odd_table(weighted: bool) -> pl.DataFrame:
    """Return predicted labels and scores of three labels, in two data sets."""
    rng = np.random.default_rng(9)
    n = 60
    words = {name: rng.choice(["a", "b", "c"], n) for name in ("actual", "predicted")}
    score, dataset = rng.integers(0, 9, n) / 8, rng.choice(["x", "y"], n)
    table = pl.DataFrame({**words, "score": score, "dataset": dataset})
    return table.with_columns(weights(rng, n)) if weighted else table


def under_two_keys(weighted: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows, truths = two_tables(6, weighted=weighted)
    keys = [pl.lit(key).alias("label_key") for key in ("one", "two")]
    return pl.concat([rows.with_columns(key) for key in keys]), pl.concat(
        [truths.with_columns(key) for key in keys]
    )


ODD: dict[str, tuple[Any, dict[str, Any]]] = {
    "the score of what is predicted": (lambda w: (odd_table(w),), {"by": ["dataset"]}),
    "one label of three": (
        lambda w: (odd_table(w).drop("predicted"),),
        {"positive_label": "b", "average": "micro"},
    ),
    "a condition on slices": (
        lambda w: (odd_table(w),),
        {"where": "dataset != 'x'", "by": ["dataset"]},
    ),
    "declared labels": (
        lambda w: two_tables(7, weighted=w),
        {"labels": [9, 4, 3, 2, 1], "by": ["part"], "average": "micro"},
    ),
    "mapped labels": (lambda w: two_tables(7, weighted=w), {"label_map": {"3": "1"}}),
    "two keys": (under_two_keys, {"dialect": "valor", "average": "micro"}),
    "two keys, by part": (under_two_keys, {"by": ["part"]}),
    "phoenix": (lambda w: (odd_table(w),), {"dialect": "phoenix"}),
}


@pytest.mark.parametrize(
    ("name", "weighted"), [*((name, True) for name in ODD), (next(iter(ODD)), False)]
)
def test_odd_tables(name: str, weighted: bool, tmp_path: Path, merged: list[int]) -> None:
    draw, options = ODD[name]
    case = Case(draw(weighted), {"metrics": OF_EACH_KIND, **options})
    cases.same_as_in_memory(case, "classification", tmp_path)


SHOWN = ["ConfusionMatrix", "DetailedPrecisionRecallCurve", "Outcomes", "LabelErrors"]


@pytest.mark.parametrize(
    ("name", "most"),
    [("datasets", 0), ("datasets", 3), ("a condition on slices", 1), ("two keys, by part", 1)],
)
def test_examples_and_outcomes(name: str, most: int, tmp_path: Path, merged: list[int]) -> None:
    """The examples of a cell are its first datums by id over all buckets."""
    draw, options = ODD.get(name, (lambda w: (named_in_no_order(w),), {"by": ["dataset"]}))
    case = Case(draw(True), {"metrics": SHOWN, **options, "pr_curve_max_examples": most})
    card = cases.same_as_in_memory(case, "classification", tmp_path)
    assert card.examples["actual"].null_count() < card.examples.height  # of the confusion matrix
    assert card.examples["score_threshold"].null_count() < card.examples.height
    assert card.frame("outcomes").height


def named_in_no_order(weighted: bool) -> pl.DataFrame:
    """Return ``odd_table`` with shuffled ids that are strings."""
    table = odd_table(weighted)
    ids = np.random.default_rng(2).permutation(table.height)
    return table.with_columns(datum_id=pl.Series([f"d{i}" for i in ids]))


@pytest.mark.parametrize(("several", "most"), [(False, 0), (True, 2)])
def test_details_of_several_labels_per_datum(
    most: int, several: bool, seed: int, tmp_path: Path, merged: list[int]
) -> None:
    """A label that occurs in one datum is counted in all buckets."""
    rows, truths = two_tables(seed, weighted=False, several=several)
    rare = truths.head(1).with_columns(label_value=pl.lit(7, truths["label_value"].dtype))
    rows = rows.filter(pl.col("datum_id") != rare["datum_id"][0])
    options = {"metrics": SHOWN[1:2], "multilabel": several, "by": ["part"]}
    truths = pl.concat([truths[1:].filter(pl.col("datum_id") != rare["datum_id"][0]), rare])
    case = Case((rows, truths), {**options, "pr_curve_max_examples": most})
    cases.same_as_in_memory(case, "classification", tmp_path)


def test_a_condition_that_excludes_every_row(tmp_path: Path, merged: list[int]) -> None:
    rows, truths = two_tables(1, weighted=True)
    names = ["AP", "F1", *SHOWN]
    options = {"metrics": names, "by": ["part"], "where": "score > 7", "pr_curve_max_examples": 2}
    cases.same_as_in_memory(Case((rows, truths), options), "classification", tmp_path)
    assert not any(merged)


def test_many_groups_are_processed_in_chunks(tmp_path: Path, merged: list[int]) -> None:
    tune(group_cells=20)
    table = one_table(8, weighted=True, named=True).with_columns(level=pl.int_range(pl.len()) % 23)
    options = {"metrics": ["F1", "ROCAUC", "LogLoss", "Counts"], "by": ["level"]}
    card = cases.same_as_in_memory(Case((table,), options), "classification", tmp_path)
    assert card.metrics["slice_value"].n_unique() > 20


def test_processes_tally_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases.in_buckets(monkeypatch)
    case = Case(two_tables(2, weighted=True), {"metrics": OF_EACH_KIND, "by": ["part"]})
    cases.same_as_in_memory(case, "classification", tmp_path, executor="processes", threads=2)


def of_sequences() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    made = {name: [rng.integers(0, 3, 2).tolist() for _ in range(40)] for name in ("actual", "b")}
    return pl.DataFrame(made).rename({"b": "predicted"})


@pytest.mark.parametrize("named", [False, True])
def test_sequences(named: bool, tmp_path: Path, merged: list[int]) -> None:
    """Every row also has its own scores, in the order of the rows."""
    table = of_sequences()
    if named:
        ids = np.random.default_rng(2).permutation(table.height)
        table = table.with_columns(datum_id=pl.Series(ids))
    card = cases.same_as_in_memory(Case((table,), {"metrics": ["F1"]}), "classification", tmp_path)
    assert card.frame("per_datum").height == 3 * table.height


def weights_of_datums(seed: int) -> pl.DataFrame:
    """Return weights so different that rounding makes their sum depend on the order."""
    rng = np.random.default_rng(seed)
    n = 80
    return pl.DataFrame(
        {
            "datum_id": rng.permutation(n),
            "actual": rng.integers(0, 2, n),
            "score": rng.random(n),
            "weight": rng.random(n) * rng.choice([1.0, 2.0**52], n),
        }
    )


@pytest.mark.parametrize("metrics", [["AP"], ["PrecisionRecallCurve", "Accuracy", "F1"]])
@pytest.mark.parametrize("by", [[], ["level"]])
def test_weights_of_datums_add_up_in_any_order(
    metrics: list[str], by: list[str], tmp_path: Path, merged: list[int]
) -> None:
    """``valor`` counts every datum as a true negative, also datums without the label key."""
    level = pl.Series("level", np.random.default_rng(3).integers(0, 3, 80))
    table = weights_of_datums(14).with_columns(level)
    options = {"dialect": "valor", "metrics": metrics, "by": by}
    cases.same_as_in_memory(Case((table,), options), "classification", tmp_path)
    assert max(merged) > 1


def test_examples_of_cells(tmp_path: Path, merged: list[int]) -> None:
    options = {"metrics": ["ConfusionMatrix"], "pr_curve_max_examples": 2}
    case = Case((odd_table(weighted=False),), options)
    card = cases.same_as_in_memory(case, "classification", tmp_path)
    assert [frame for frame in card.frames if "confusion" in frame]


def test_frames_beyond_the_limit_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: list[int]
) -> None:
    """A curve with one row per score exceeds the limit."""
    monkeypatch.setattr(driver, "BASE", 10**9 - 10_000)
    table = one_table(8, weighted=True, named=True).with_columns(score=pl.int_range(pl.len()) / 100)
    paths = cases.write_sides(Case((table,), {}), tmp_path)
    how: dict[str, Any] = {"memory_limit": "1GB", "scratch": str(tmp_path / "s")}
    for name, notes in (("F1", 0), ("ScorePrecisionRecallCurve", 1)):
        card = ee.score(*paths, metrics=[name], by=["kind"], **how)
        facts = [one.facts for one in card.findings if one.code == "frames_beyond_limit"]
        assert facts == [{"largest": "curves"}] * notes
