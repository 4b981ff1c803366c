"""Examples of the detailed curve per slice, and of the cells of the confusion matrix."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
from classification.rows import score
from classification.strategies import Drawn, by_bytes, drawn, modest
from hypothesis import given
from hypothesis import strategies as st
from output_frames import of_slice
from polars.testing import assert_frame_equal

import evalengine as ee

DETAILED = "DetailedPrecisionRecallCurve"


@modest
@given(drawn(), st.integers(0, 3), st.sampled_from(["standard", "valor"]))
def test_slices_match_their_datums_scored_separately(
    tables: Drawn, most: int, dialect: str
) -> None:
    """Counts and examples, in order."""
    options: dict[str, Any] = {
        "dialect": dialect, "pr_curve_max_examples": most, "score_thresholds": [0.25, 0.6],
    }  # fmt: skip
    names = [DETAILED, "ConfusionMatrix"]
    card = score(tables.frames(), names, by="part", datums=tables.datum_table(), **options)
    plain = score(tables.frames(), names, **options)
    assert_frame_equal(of_slice(card.examples), plain.examples)
    for group in sorted(set(tables.groups.values())):
        inside = [datum for datum, name in tables.groups.items() if name == group]
        mine = of_slice(card.examples, "part", group).drop("slice", "slice_value")
        part = tables.on(inside)
        if not part.predictions and not part.truths:
            assert mine.is_empty()
            continue
        both = {row[0] for row in part.predictions} & {row[0] for row in part.truths}
        if part.predictions and part.truths and not both:
            continue  # such tables are refused
        single = score(part.frames(), names, **options).examples.drop("slice", "slice_value")
        assert_frame_equal(mine, single)


@modest
@given(drawn(several=True), st.integers(0, 2))
def test_several_labels_per_datum(tables: Drawn, most: int) -> None:
    options: dict[str, Any] = {"multilabel": True, "pr_curve_max_examples": most}
    card = score(tables.frames(), [DETAILED], by="part", datums=tables.datum_table(), **options)
    rows = of_slice(card.examples)
    cells = ["label_key", "label_value", "score_threshold", "outcome", "observation"]
    for row in rows.group_by(cells).agg(pl.len(), pl.first("count"), pl.first("datum_id")).rows():
        assert row[-3] == max(1, min(row[-2], most))
        assert (row[-1] is None) == (min(row[-2], most) == 0)
    totals = rows.unique([*cells]).group_by(cells[:3]).agg(pl.col("count").sum())
    units = {(datum, key) for datum, key, *_ in [*tables.predictions, *tables.truths]}
    expected = Counter(key for _, key in units)
    for key, _, _, total in totals.rows():
        assert total == expected[key]


@modest
@given(drawn(), st.integers(0, 3))
def test_examples_of_the_confusion_matrix(tables: Drawn, most: int) -> None:
    """The first datums of each cell, up to the option; counts are those of the matrix."""
    card = score(tables.frames(), ["ConfusionMatrix"], pr_curve_max_examples=most)
    cell = ["label_key", "actual", "predicted"]
    oracle = tables.oracle()
    members: dict[tuple[Any, ...], list[Any]] = {}
    for unit in oracle.units:
        datum, key = unit
        true = next(iter(oracle.true.get(unit, set())), None)
        guess = next(iter(oracle.predicted(unit)), None)
        members.setdefault((key, true, guess), []).append((datum, oracle.scores.get(unit, {})))
    counts = {tuple(row[:3]): row[3] for row in card.confusion.select(*cell, "count").rows()}
    assert counts == {of: len(datums) for of, datums in members.items()}
    order = {datum: at for at, datum in enumerate(sorted(tables.datums, key=by_bytes))}
    cells: dict[tuple[Any, ...], list[Any]] = {}
    for row in card.examples.iter_rows(named=True):
        of = tuple(row[name] for name in cell)
        assert row["count"] == counts[of]
        assert row["score_threshold"] is None
        kind = (
            ("fp", "hallucinations") if of[1] is None
            else ("fn", "no_predictions") if of[2] is None
            else ("tp", "all") if of[1] == of[2]
            else ("fn", "misclassifications")
        )  # fmt: skip
        assert (row["outcome"], row["observation"]) == kind
        assert row["label_value"] == (of[2] if of[1] is None else of[1])
        cells.setdefault(of, []).append((row["datum_id"], row["score"]))
    assert set(cells) == set(members)
    for of, datums in members.items():
        first = sorted(datums, key=lambda pair: order[pair[0]])[:most]
        expected = [(datum, scores.get(of[2])) for datum, scores in first] or [(None, None)]
        assert cells[of] == expected


GUESSES = pl.DataFrame(
    {"datum_id": [1, 2, 4], "label_value": ["a", "b", "a"], "score": [0.9, 0.7, 0.6]}
)
TRUTHS = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": ["a", "a", "b"]})


def test_examples_need_the_option() -> None:
    """Without the option ConfusionMatrix has only counts; with it no other metric is needed."""
    assert "examples" not in score((GUESSES, TRUTHS), ["ConfusionMatrix"]).frames
    both = score((GUESSES, TRUTHS), ["ConfusionMatrix", DETAILED])
    assert both.examples["actual"].null_count() == both.examples.height
    of_curve = score((GUESSES, TRUTHS), [DETAILED], pr_curve_max_examples=1)
    assert both.examples.equals(of_curve.examples)
    both_examples = score((GUESSES, TRUTHS), ["ConfusionMatrix", DETAILED], pr_curve_max_examples=1)
    assert both_examples.examples["actual"].null_count() < both_examples.examples.height


def test_to_valor() -> None:
    card = score((GUESSES, TRUTHS), ["ConfusionMatrix"], pr_curve_max_examples=2, dialect="valor")
    counts, examples = card.to_valor()
    assert counts["type"] == "ConfusionMatrix"
    assert counts["value"]["confusion_matrix"] == {"a": {"a": 1, "b": 1}}
    assert examples == {
        "type": "ConfusionMatrixWithExamples",
        "value": {
            "confusion_matrix": {
                "a": {
                    "a": {"count": 1, "examples": [{"datum_id": 1, "score": 0.9}]},
                    "b": {"count": 1, "examples": [{"datum_id": 2, "score": 0.7}]},
                }
            },
            "unmatched_predictions": {
                "a": {"count": 1, "examples": [{"datum_id": 4, "score": 0.6}]}
            },
            "unmatched_ground_truths": {"b": {"count": 1, "examples": [{"datum_id": 3}]}},
        },
        "parameters": {"label_key": "label"},
    }
    silent = score((GUESSES, TRUTHS), ["ConfusionMatrix"], pr_curve_max_examples=0)
    cell = silent.to_valor()[1]["value"]["confusion_matrix"]["a"]["a"]
    assert cell == {"count": 1, "examples": []}


def test_to_valor_separates_curve_and_matrix(tmp_path: Any) -> None:
    """Slices and the confusion matrix do not change the detailed curve, before and after saving."""
    part = TRUTHS.with_columns(part=pl.Series(["x", "y", "y"]))
    single = score((GUESSES, TRUTHS), [DETAILED], pr_curve_max_examples=2).to_valor()
    card = score((GUESSES, part), [DETAILED, "ConfusionMatrix"], by="part", pr_curve_max_examples=2)
    assert [entry for entry in card.to_valor() if entry["type"] == DETAILED] == single
    card.save(tmp_path / "run")
    again = ee.load(tmp_path / "run")
    assert again.examples.equals(card.examples)
    assert again.to_valor() == card.to_valor()


def test_binary_table_and_no_scores() -> None:
    """A table with only a predicted column has no scores."""
    rows = pl.DataFrame({"actual": ["a", "b", "b"], "predicted": ["a", "a", "b"]})
    card = score((rows,), ["ConfusionMatrix"], pr_curve_max_examples=1)
    assert card.examples["datum_id"].to_list() == [0, 1, 2]
    assert card.examples["score"].null_count() == 3
    empty = score((GUESSES.head(0), TRUTHS), ["ConfusionMatrix"], pr_curve_max_examples=1)
    assert empty.examples["observation"].to_list() == ["no_predictions", "no_predictions"]
