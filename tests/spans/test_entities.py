"""Entities: known answers of seqeval, nervaluate and sed_eval, and valid and invalid tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee

KNOWN = Path(__file__).parents[1] / "known_answers" / "spans" / "answers.json.gz"
NAMES = ("Precision", "Recall", "F1")
OUTCOMES = ("correct", "incorrect", "partial", "missed", "spurious")


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return json.loads(gzip.decompress(KNOWN.read_bytes()))


def tags(rows: list[Any]) -> pl.DataFrame:
    """Return sets of sentences as one table, with a column of set numbers."""
    made = [
        (one.split(), other.split(), str(i))
        for i, row in enumerate(rows)
        for one, other in zip(row[0], row[1], strict=True)
    ]
    schema = {"actual": pl.List(pl.String), "predicted": pl.List(pl.String), "set": pl.String}
    return pl.DataFrame(made, schema=schema, orient="row")


def numbers(card: ee.Scorecard) -> dict[tuple[Any, ...], tuple[float | None, int]]:
    """Return values and support by set, metric, label, average and statistic."""
    rows = card.metrics.filter(pl.col("slice") == "set").iter_rows(named=True)
    key = ("slice_value", "metric", "label_value", "average", "statistic")
    return {tuple(row[name] for name in key): (row["value"], row["support"]) for row in rows}


def close(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) <= 1e-15


def compare(rows: list[Any], given: dict[Any, Any], empty: int = 0) -> None:
    for i, (_, _, answers) in enumerate(rows):
        for average in ("micro", "macro", "weighted"):
            expected = answers.get(f"{average} {empty}", answers.get(average))
            for name, value in zip(NAMES, expected, strict=True):
                ours = given.get((str(i), name, None, average, None))
                assert ours is None or close(ours[0], value), (i, name, average)
                assert ours is not None or not answers["labels"]
        for label, (*values, support) in answers["labels"].items() if not empty else ():
            for name, value in zip(NAMES, values, strict=True):
                ours = given[str(i), name, label, None, None]
                assert close(ours[0], value), (i, name, label)
                assert ours[1] == support


@pytest.mark.parametrize("empty", [0, 1])
def test_seqeval(expected: dict[str, Any], empty: int) -> None:
    """Malformed chunks, unknown prefixes and 0 / 0 are treated as in seqeval 1.2.2."""
    rows = expected["lenient"]
    card = ee.score(
        tags(rows), task="spans", dialect="seqeval", metrics=NAMES, by=["set"], zero_division=empty
    )
    compare(rows, numbers(card), empty)
    assert "tags_unknown_to_dialect" in {one.code for one in card.findings}


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"])
def test_seqeval_strict(expected: dict[str, Any], scheme: str) -> None:
    rows = expected["strict"][scheme]
    card = ee.score(tags(rows), task="spans", dialect="seqeval-strict", scheme=scheme, by=["set"])
    compare(rows, numbers(card))


def judged(rows: list[Any], given: dict[Any, Any]) -> None:
    for i, (*_, answers) in enumerate(rows):
        for label, schemas in ((None, answers["all"]), *answers["labels"].items()):
            average = "micro" if label is None else None
            for schema, values in schemas.items():
                statistics = [("Counts", f"{schema} {outcome}") for outcome in OUTCOMES]
                statistics += [(name, schema) for name in NAMES]
                for (name, statistic), value in zip(statistics, values, strict=True):
                    ours = given.get((str(i), name, label, average, statistic), (0.0, 0))
                    assert close(ours[0], value), (i, label, name, statistic)


def test_nervaluate_of_tags(expected: dict[str, Any]) -> None:
    rows = expected["nervaluate"]
    judged(rows, numbers(ee.score(tags(rows), task="spans", dialect="nervaluate", by=["set"])))


@pytest.mark.parametrize("percent", [1.0, 50.0])
def test_nervaluate_of_spans(expected: dict[str, Any], percent: float) -> None:
    """Nested and overlapping spans may be in any order; their ends are inclusive."""
    rows = [row for row in expected["dicts"] if row[2] == percent]
    sides = [
        pl.DataFrame(
            [
                (f"{i}/{j}", *span)
                for i, row in enumerate(rows)
                for j, document in enumerate(row[side])
                for span in document
            ],
            schema=["datum_id", "start", "end", "label_value"],
            orient="row",
        )
        for side in (1, 0)
    ]
    ids = [(f"{i}/{j}", str(i)) for i in range(len(rows)) for j in range(3)]
    datums = pl.DataFrame(ids, schema=["datum_id", "set"], orient="row")
    card = ee.score(
        *sides,
        datums=datums,
        dialect="nervaluate",
        span_ends="inclusive",
        min_overlap_percentage=percent,
        by=["set"],
    )
    assert card.task == "spans"
    judged(rows, numbers(card))


def test_nervaluate_takes_rows_in_their_order() -> None:
    """This is the documented exception to independence of row order."""
    truth = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "start": [0], "end": [10]})
    found = pl.DataFrame(
        {"datum_id": [0, 0], "label_value": ["a", "a"], "start": [0, 0], "end": [5, 10]}
    )
    right = [
        ee.score(side, truth, dialect="nervaluate").value(
            "Counts", statistic="strict correct", average="micro"
        )
        for side in (found, found.reverse())
    ]
    assert right == [0, 1]


def test_nervaluate_pairs_an_inexact_span_with_the_first_that_it_overlaps() -> None:
    spans = {"datum_id": [0, 0], "label_value": ["a", "a"], "start": [0, 4], "end": [5, 9]}
    found = {"datum_id": [0, 0], "label_value": ["b", "a"], "start": [3, 4], "end": [6, 9]}
    card = ee.score(pl.DataFrame(found), pl.DataFrame(spans), dialect="nervaluate")
    for outcome, n in (("correct", 1), ("incorrect", 1), ("missed", 0), ("spurious", 0)):
        statistic = f"strict {outcome}"
        assert card.value("Counts", statistic=statistic, average="micro") == n


def test_sed(expected: dict[str, Any]) -> None:
    """Events are matched within the collar, by maximum matching; NaN of sed_eval is null."""
    for share in (0.5, 0.2):
        rows = [row for row in expected["sed"] if row[2] == share]
        sides = [
            pl.DataFrame(
                [(f"{i}/{e[0]}", *e[1:]) for i, row in enumerate(rows) for e in row[side]],
                schema=["datum_id", "start", "end", "label_value"],
                orient="row",
            )
            for side in (1, 0)
        ]
        ids = [(f"{i}/{name}", str(i)) for i in range(len(rows)) for name in ("f1", "f2")]
        datums = pl.DataFrame(ids, schema=["datum_id", "set"], orient="row")
        card = ee.score(
            *sides, datums=datums, dialect="sed", percentage_of_length=share, by=["set"]
        )
        given = numbers(card)
        for i, (*_, answers) in enumerate(rows):
            for k, name in enumerate(NAMES):
                for average, value in (("micro", "overall"), ("macro", "macro")):
                    ours = given.get((str(i), name, None, average, None), (None, 0))
                    assert close(ours[0], answers[value][k]), (i, name, average)
                for label, values in answers["labels"].items():
                    ours = given.get((str(i), name, label, None, None), (None, 0))
                    assert close(ours[0], values[k]), (i, name, label)


def test_standard_reads_every_scheme() -> None:
    """The same entities in every scheme have the same values; 0 / 0 is undefined."""
    plain = ["B-PER I-PER O B-LOC B-LOC"]
    spelled = [
        "B-PER L-PER O U-LOC U-LOC",
        "B-PER E-PER O S-LOC S-LOC",
        "I-PER I-PER O B-LOC B-LOC",
    ]
    for one in spelled:
        table = pl.DataFrame({"actual": [plain[0].split()], "predicted": [one.split()]})
        card = ee.score(table, task="spans")
        assert card.value("F1", average="micro") == 1.0
        assert card.metrics["iou_threshold"].is_null().all()
    none = pl.DataFrame({"actual": [["B-A", "O"]], "predicted": [["O", "O"]]})
    assert ee.score(none, task="spans").value("Precision", label_value="A") is None
    assert ee.score(none, task="spans", dialect="seqeval").value("Precision", label_value="A") == 0


def test_sentences_without_entities_are_datums() -> None:
    table = pl.DataFrame(
        {"actual": [["O"], [], ["B-A"]], "predicted": [["O"], [], ["B-A"]], "lang": ["x", "y", "x"]}
    )
    card = ee.score(table, task="spans", by=["lang"])
    assert card.run["datums"] == 3
    assert card.notes == ()
    assert card.value("F1", average="micro", slice_value="x") == 1.0
    assert set(card.metrics["slice_value"].drop_nulls()) == {"x"}


@pytest.mark.parametrize(
    ("actual", "predicted", "options", "code"),
    [
        ([["O", "B-A"]], [["O"]], {}, "tokens_differ"),
        ([["O", None]], [["O", "O"]], {}, "null_values"),
        ([["O", "X-A"]], [["O", "O"]], {}, "unknown_tags"),
        ([["PER"]], [["O"]], {}, "unknown_tags"),
        ([[["O"]]], [["O"]], {}, "column_missing"),
        ([["U-A"]], [["O"]], {"dialect": "seqeval-strict"}, "unknown_tags"),
        ([["E-A"]], [["O"]], {"dialect": "nervaluate"}, "unknown_tags"),
        ([["B-A"]], [["O"]], {"dialect": "seqeval", "scheme": "IOB2"}, "option_unfit"),
    ],
)
def test_refused_tags(actual: Any, predicted: Any, options: dict[str, Any], code: str) -> None:
    table = pl.DataFrame({"actual": actual, "predicted": predicted})
    with pytest.raises((ee.InputError, ee.OptionError)) as error:
        ee.score(table, task="spans", **options)
    assert error.value.code == code


def test_impossible_spans_are_refused() -> None:
    good = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "start": [3], "end": [5]})
    with pytest.raises(ee.InputError) as error:
        ee.score(good.with_columns(end=pl.lit(2)), good)
    assert error.value.code == "inverted_spans"
    empty = good.with_columns(end=pl.lit(3))
    card = ee.score(empty, empty)
    assert card.value("F1", average="micro") == 1.0
    assert [one.count for one in card.findings if one.code == "empty_spans"] == [1, 1]
    inclusive = ee.score(empty, good.with_columns(end=pl.lit(3)), span_ends="inclusive")
    assert inclusive.value("F1", average="micro") == 1.0


def test_repeated_spans_count_once() -> None:
    truth = pl.DataFrame(
        {"datum_id": [0, 0], "label_value": ["a", "b"], "start": [3, 0], "end": [5, 2]}
    )
    card = ee.score(pl.concat([truth, truth]), truth)
    assert card.value("Precision", average="micro") == 1.0
    assert {one.code: one.count for one in card.findings}["repeated_spans"] == 2


def test_spans_that_a_label_map_makes_equal_count_once() -> None:
    truth = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "start": [3], "end": [5]})
    found = pl.concat([truth, truth.with_columns(label_value=pl.lit("b"))])
    card = ee.score(found, truth, label_map={"b": "a"})
    assert card.value("Precision", average="micro") == 1.0
    keyed = ee.score(found, truth, label_map={"b": ("other", "a")})
    assert keyed.metrics.filter(metric="Precision", average="micro")["value"].to_list() == [1, 0]


def test_repeated_spans_of_which_one_is_ignored_count_in_any_order() -> None:
    found = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "start": [0], "end": [2]})
    truth = pl.concat([found, found]).with_columns(ignore=pl.Series([1, 0]))
    for side in (truth, truth.reverse()):
        card = ee.score(found, side, metrics=["Recall"])
        (row,) = card.metrics.filter(average="micro").iter_rows(named=True)
        assert (row["value"], row["support"]) == (1.0, 1)


def test_seqeval_does_not_read_scores() -> None:
    """Repeated and empty spans count alike with and without scores; the highest is cut."""
    truth = pl.DataFrame(
        {"datum_id": [0, 0], "label_value": ["a", "a"], "start": [3, 5], "end": [3, 6]}
    )
    found = pl.concat([truth, truth]).with_columns(score=pl.Series([0.2, 0.9, 0.8, 0.1]))
    for side in (found.drop("score"), found, found.reverse()):
        card = ee.score(side, truth, task="spans", dialect="seqeval")
        assert card.value("F1", average="micro") == 1.0
        assert {one.code: one.count for one in card.findings}["repeated_spans"] == 2
    cut = ee.score(found, truth, dialect="seqeval", score_thresholds=[0.5], metrics=["F1"])
    assert cut.value("F1", average="micro") == 1.0


def test_an_empty_side() -> None:
    truth = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "start": [3], "end": [5]})
    for ours, theirs in ((truth.clear(), truth), (truth, truth.clear())):
        card = ee.score(ours, theirs, task="spans", dialect="seqeval")
        assert card.value("F1", average="micro") == 0.0
    card = ee.score(truth, truth.clear(), task="spans")
    assert {*card.metrics.filter(average="weighted")["reason"]} == {"no ground truth"}
    wrong = truth.with_columns(label_value=pl.lit("b"))
    (reason,) = ee.score(wrong, truth, task="spans").metrics.filter(
        metric="Precision", average="weighted"
    )["reason"]
    assert reason == "no label with ground truth has a value"


def test_tasks_are_distinguished() -> None:
    """Spans are not classified rows, and token labels without a task remain classification."""
    truth = pl.DataFrame({"datum_id": [0], "label_value": ["a"], "start": [3], "end": [5]})
    assert ee.score(truth, truth).task == "spans"
    assert ee.score(truth.drop("start", "end"), truth.drop("start", "end")).task == "classification"


def test_conll(tmp_path: Path) -> None:
    """Sides are two files or one; the last columns are the tags."""
    gold, found, both = (tmp_path / name for name in ("gold.txt", "found.conll", "both.txt"))
    gold.write_text("-DOCSTART- -X- O\n\nEU NNP B-ORG\nin IN O\n\nPeter NN B-PER\nB NN I-PER\n")
    found.write_text("EU\tB-ORG\nin\tO\n\nPeter\tB-PER\nB\tO\n")
    both.write_text("EU B-ORG B-ORG\nin O O\n\n\nPeter B-PER B-PER\nB I-PER O\n\n")
    for sides in ((found, gold), (both,)):
        card = ee.score(*sides)
        assert (card.task, card.run["datums"]) == ("spans", 2)
        assert card.value("F1", average="micro") == 0.5
    both.write_text(
        "EU B-ORG B-ORG\nin O O\nbroken\n\nPeter B-PER B-PER\nB I-PER O\n" + "a O O\n" * 99
    )
    with pytest.raises(ee.ReadError) as error:
        ee.score(both, task="spans")
    assert error.value.code == "file_malformed"
    found.write_text("EU\tB-ORG\n\nPeter\tB-PER\nB\tO\n")
    with pytest.raises(ee.InputError) as wrong:
        ee.score(found, gold)
    assert wrong.value.code == "tokens_differ"
