"""Cross-checks of both sides: kinds of ids, common datums, empty sides, one-sided labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitions.cases import in_buckets
from small_tables import CORNERS, counted, ground_truths, kinds, load, note, predictions, refusal

import evalengine as ee
from evalengine.ingest.ids import distinct, has_repeats

REQUIRED = ["datum_id", "label_value", "score", *CORNERS]
EMPTY: dict[str, Any] = {
    "typed": predictions().clear(),
    "null dtypes": predictions().clear().cast(pl.Null),
    "no columns": pl.DataFrame(),
    "empty list": [],
    "empty dict": {},
    "wrong dtypes": predictions().clear().cast(pl.Boolean),
    "other ids": predictions().clear().cast({"datum_id": pl.String, "label_value": pl.Int64}),
    "aliases": predictions().clear().rename({"score": "conf", "datum_id": "image_id"}),
}


def test_integers_against_strings_are_refused_with_samples() -> None:
    message = refusal(predictions(datum_id=["1", "1", "2"]))
    assert message.has("types_differ", column="datum_id")
    assert "strings ('1', '2'); ground_truths integers" in message


def test_labels_of_different_kinds_are_refused_with_samples() -> None:
    message = refusal(predictions(label_value=[3, 4, 3]))
    assert message.has("types_differ", column="label_value")
    assert "integers (3, 4);" in message


def test_datums_of_another_kind_are_refused() -> None:
    assert "datums strings ('1', '2')" in refusal(datums=["1", "2"])


def test_sides_without_common_ids_are_refused_with_samples() -> None:
    message = refusal(predictions(datum_id=[7, 8, 9]))
    assert message.has("no_common_id", column="datum_id")
    assert "3 datums (7, 8, 9)" in message
    assert "ground truths 2 (1, 2)" in message


@pytest.mark.parametrize(
    ("ids", "difference"),
    [
        (["A", "A", "B"], "letter case"),
        ([" a", " a", "b "], "surrounding blanks"),
        (["img/a.jpg", "img/a.jpg", "img/b.jpg"], "folders and file extension"),
    ],
)
def test_the_reason_why_strings_do_not_match_is_reported(ids: list[str], difference: str) -> None:
    message = refusal(predictions(datum_id=ids), ground_truths(datum_id=["a", "a", "b"]))
    assert message.has("no_common_id", column="datum_id")
    assert difference in message
    assert "2 of 2 datums" in message


def test_ids_that_differ_only_in_unicode_form_are_reported() -> None:
    message = refusal(
        predictions(datum_id=["e\u0301", "e\u0301", "z\u0301"]),
        ground_truths(datum_id=["\u00e9", "\u00e9", "\u017a"]),
    )
    assert message.has("no_common_id", column="datum_id")
    assert "Unicode form" in message
    assert "2 of 2 datums" in message


def test_one_common_datum_is_enough() -> None:
    frames = load(predictions(datum_id=[7, 8, 2]))
    assert note(frames, "datums_without_predictions") == "1 datum without predictions: 1."
    assert counted(frames, "datums_without_ground_truths") == (2, [7, 8])


@pytest.mark.parametrize("name", EMPTY)
def test_no_predictions_are_legal(name: str) -> None:
    frame = load(EMPTY[name]).predictions
    assert frame.columns == REQUIRED
    assert frame.height == 0
    assert frame.schema["datum_id"] == pl.Int64
    assert frame.schema["label_value"] == pl.String
    assert all(frame.schema[column] == pl.Float64 for column in ["score", *CORNERS])


@pytest.mark.parametrize("name", EMPTY)
def test_no_ground_truths_are_legal(name: str) -> None:
    ours = predictions(datum_id=["a", "b", "c"], label_value=[1, 2, 3])
    frame = load(ours, EMPTY[name]).ground_truths
    assert set(frame.columns) >= set(REQUIRED) - {"score"}
    assert frame.schema["datum_id"] == pl.String
    assert frame.schema["label_value"] == pl.Int64


def test_two_empty_sides_are_legal() -> None:
    frames = load([], pl.DataFrame())
    assert frames.predictions.height == frames.ground_truths.height == 0
    assert frames.predictions.schema["datum_id"] == frames.ground_truths.schema["datum_id"]


def test_two_empty_sides_take_the_dtype_of_the_datums() -> None:
    frames = load([], [], datums=[1, 2, 3])
    assert frames.predictions.schema["datum_id"] == pl.Int64
    assert note(frames, "datums_without_predictions").startswith("3 datums without predictions")


def test_an_empty_table_without_a_required_column_is_refused() -> None:
    assert "'score' is missing" in refusal(predictions().clear().drop("score"))


def test_listed_datums_count_on_both_sides() -> None:
    frames = load(datums=[1, 2, 3, 4])
    assert counted(frames, "datums_without_predictions") == (2, [3, 4])
    assert counted(frames, "datums_without_ground_truths") == (2, [3, 4])


def test_datums_that_are_not_listed_are_noted() -> None:
    frames = load(datums=[1])
    found = [note for note in frames.notes if note.kind == "datums_not_listed"]
    assert [(note.count, note.lowest) for note in found] == [(1, (2,)), (1, (2,))]
    assert "predictions" in found[0].message
    assert "ground truths" in found[1].message


def test_labels_on_one_side_are_noted_with_names() -> None:
    frames = load(predictions(label_value=["cat", "cow", "hen"]))
    assert counted(frames, "labels_in_predictions_only") == (2, ["cow", "hen"])
    assert counted(frames, "labels_in_ground_truths_only") == (1, ["dog"])


def test_labels_that_differ_only_in_capitals_blanks_or_type_are_noted() -> None:
    frames = load(predictions(label_value=["Cat", " dog", "Cat"]))
    assert "no_common_label" in kinds(frames)
    message = note(frames, "labels_spelt_apart")
    assert '" dog": "dog"' in message
    assert '"Cat": "cat"' in message


def test_at_most_five_names_are_listed() -> None:
    table = predictions().clear(8).with_columns(
        datum_id=1, label_value=pl.Series(list("abcdefgh")), score=0.5,
        xmin=0.0, ymin=0.0, xmax=1.0, ymax=1.0,
    )  # fmt: skip
    assert counted(load(table), "labels_in_predictions_only") == (8, list("abcdefgh"))
    assert "and 3 more" in note(load(table), "labels_in_predictions_only")


def test_undeclared_labels_are_noted() -> None:
    frames = load(labels=["cat", "cow"])
    assert counted(frames, "labels_not_declared")[0] == 1
    assert "'dog'" in note(frames, "labels_not_declared")


def test_a_one_sided_label_key_that_can_match_is_noted() -> None:
    frames = load(predictions(label_key=["label", "label", "other"]))
    message = note(frames, "label_key_one_side")
    assert "column ('label', 'other')" in message
    assert "take 'label'" in message
    assert "label_key" not in frames.ground_truths.columns


def test_a_one_sided_label_key_that_cannot_match_is_refused() -> None:
    message = refusal(theirs=ground_truths(label_key=["class"] * 3))
    assert message.has("label_key_one_side")


def test_label_keys_without_a_common_one_are_noted() -> None:
    frames = load(predictions(label_key=["a"] * 3), ground_truths(label_key=["b"] * 3))
    assert "('a' against 'b')" in note(frames, "no_common_label_key")


def test_labels_of_one_name_under_two_keys_are_two_labels() -> None:
    frames = load(
        predictions(label_key=["a", "a", "b"], label_value=["x"] * 3),
        ground_truths(label_key=["a", "a", "a"], label_value=["x"] * 3),
    )
    assert note(frames, "labels_in_predictions_only").endswith("only: ('b', 'x').")


def test_sound_sides_have_no_note() -> None:
    assert kinds(load(datums=[1, 2], labels=["cat", "dog"])) == set()


ints = st.lists(st.one_of(st.integers(-50, 50), st.integers(-(2**63), 2**63 - 1)), max_size=30)
texts = st.lists(st.text(max_size=3), max_size=30)


@given(st.one_of(ints, texts))
def test_distinct_is_sorted_set(values: list[Any]) -> None:
    dtype = pl.String if values and isinstance(values[0], str) else pl.Int64
    series = pl.Series("x", values, dtype=dtype)
    order = (lambda v: v.encode()) if dtype == pl.String else (lambda v: v)
    assert distinct(series).to_list() == sorted(set(values), key=order)
    assert distinct(series).dtype == dtype
    assert has_repeats(series) == (len(set(values)) < len(values))
    chunked = pl.concat([series, series], rechunk=False)
    assert distinct(chunked).equals(distinct(series))


def test_distinct_near_the_ends_of_the_integers() -> None:
    for dtype, ends in ((pl.UInt64, [2**64 - 1, 2**64 - 3]), (pl.Int64, [-(2**63), -(2**63) + 2])):
        series = pl.Series("x", ends, dtype=dtype)
        assert distinct(series).to_list() == sorted(ends)
        assert distinct(series).dtype == dtype


def test_distinct_skips_nulls() -> None:
    assert distinct(pl.Series([3, None, 1, 3])).to_list() == [1, 3]
    assert distinct(pl.Series(["b", None, "a"])).to_list() == ["a", "b"]
    assert not has_repeats(pl.Series([1, None, None]))


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_labels_in_two_unicode_forms_are_noted(swapped: bool, lone: bool) -> None:
    names = ("caf\u00e9", "cafe\u0301")[:: -1 if swapped else 1]
    second = names[1] if lone else names[0]
    table = pl.DataFrame(
        {"y_true": [names[0], names[0], "dog"] * 2, "y_pred": [names[1], second, "dog"] * 2}
    )
    (one,) = [one for one in ee.score(table).findings if one.code == "labels_spelt_apart"]
    assert (one.severity, one.count) == ("warning", 1)
    assert r"cafe\u0301" in one.message
    assert "normalize('NFC')" in one.message
    ways = table.with_columns(pl.col("y_pred").replace({names[1]: names[0]})), table
    maps: list[dict[str, Any]] = [{}, {"label_map": {names[1]: names[0]}}]
    for way, options in zip(ways, maps, strict=True):
        card = ee.score(way, metrics=["Accuracy"], **options)
        assert card.value("Accuracy") == 1
        assert "labels_spelt_apart" not in {one.code for one in card.findings}


@pytest.mark.parametrize(
    ("name", "other"),
    [("cat", "cat\u200b"), ("cat", "\ufeffcat"), ("cat", "ca\u00adt"), ("t-shirt", "t\u2013shirt")],
)
def test_invisible_characters_and_dashes_are_a_warning(name: str, other: str) -> None:
    """Invisible ones also if the other side has both spellings."""
    both = [] if name == "t-shirt" else [([name, other], [name, name])]
    for actual, predicted in (([other, "dog"], [name, "dog"]), *both):
        card = ee.score(pl.DataFrame({"y_true": actual * 3, "y_pred": predicted * 3}))
        assert "labels_spelt_apart" in {one.code for one in card.findings}
        assert any(repr(name) in one for one in card.warnings)


def test_labels_with_leading_zeros_are_noted() -> None:
    def codes(predicted: list[str]) -> set[str]:
        table = pl.DataFrame({"actual": ["7", "12", "x0"], "predicted": predicted})
        return {one.code for one in ee.score(table, task="classification").findings}

    assert "labels_spelt_apart" in codes(["007", "012", "x0"])
    assert "labels_spelt_apart" not in codes(["70", "120", "x"])


@pytest.mark.parametrize("names", [("cat", "Cat", True), ("dog", "DOG ", True), ("a", "A", False)])
def test_capitals_next_to_small_letters(names: tuple[str, str, bool]) -> None:
    """Single letters may be separate classes."""
    name, other, warns = names
    table = pl.DataFrame({"y_true": [name] * 40, "y_pred": [name, name, other, name] * 10})
    for sides in (table, table.rename({"y_true": "y_pred", "y_pred": "y_true"})):
        findings = [one for one in ee.score(sides).findings if one.code == "labels_spelt_apart"]
        assert [one.severity for one in findings] == ["warning"] * warns
    both = pl.DataFrame({"y_true": [name, other] * 9, "y_pred": [name, other] * 9})
    assert "labels_spelt_apart" not in {one.code for one in ee.score(both).findings}


def test_a_label_in_other_capitals_may_be_another_class() -> None:
    """One of several labels gives a note; zeros count in fractions."""
    true = ["Pi", "Sigma", "alpha", "beta"] * 10
    table = pl.DataFrame({"y_true": true, "y_pred": ["pi", *true[1:]]})
    findings = [one for one in ee.score(table).findings if one.code == "labels_spelt_apart"]
    assert [one.severity for one in findings] == ["note"]
    shares = pl.DataFrame(
        {"y_true": ["5", "1", "2", "1"] * 9, "y_pred": ["0.5", "1", "2", "1"] * 9}
    )
    card = ee.score(shares, task="classification")
    assert "labels_spelt_apart" not in {one.code for one in card.findings}


def test_labels_in_other_capitals_on_both_sides_are_a_warning() -> None:
    """Neither side has both spellings; a label with another name is reported as well."""
    true = pl.Series(["billing", "technical", "account", "other"] * 15)
    found = true.replace(["billing", "technical"], ["BILLING", "tech-support"])
    findings = ee.score(pl.DataFrame({"y_true": true, "y_pred": found})).findings
    warned = {one.code: one.message for one in findings if one.severity == "warning"}
    assert {*warned} == {"labels_spelt_apart", "labels_one_sided"}
    assert 'label_map={"tech-support": "technical"}' in warned["labels_one_sided"]


def test_an_answer_in_other_capitals_among_hundreds_is_a_note() -> None:
    expected = [f"answer {i}" for i in range(300)]
    table = pl.DataFrame({"expected": expected, "output": ["Answer 0", *expected[1:]]})
    found = {one.code: one.severity for one in ee.score(table).findings}
    assert found["labels_spelt_apart"] == "note"


def test_labels_with_blanks_next_to_the_plain_ones_are_noted() -> None:
    for name, other in (("cat ", "cat"), ("cat", "cat ")):
        mine = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": [name, "cat", "dog"]})
        true = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": [other, "cat", "dog"]})
        findings = ee.score(mine, true, task="classification").findings
        (note,) = [one for one in findings if one.code == "labels_spelt_apart"]
        assert (note.severity, note.facts) == ("warning", {"count": 1, "blanks": True})
        card = ee.score(mine, true, task="classification", label_format=["blanks"])
        assert card.value("Accuracy") == 1.0
        assert "labels_spelt_apart" not in {one.code for one in card.findings}


def test_shifted_ids_are_reported_if_the_rows_then_agree() -> None:
    ids = pl.int_range(200, eager=True)
    labels = (ids * 7919 % 101 % 3).cast(pl.String)
    numbers = (ids * 7919 % 101).cast(pl.Float64)
    for name, values, task in (
        ("label_value", labels, "classification"),
        ("value", numbers, "regression"),
    ):
        true = pl.DataFrame({"datum_id": ids, name: values})
        moved = true.with_columns(pl.col("datum_id") + 7)
        card = ee.score(moved, true, task=task)
        (note,) = [one for one in card.findings if one.code == "ids_one_off"]
        assert (note.severity, note.facts["step"]) == ("warning", -7)
        fair = ee.score(moved, true, task=task, id_format=["-7"])
        window = pl.DataFrame({"datum_id": ids + 7, name: values.shift(-7).fill_null(values[0])})
        for one in (fair, ee.score(window, true, task=task)):
            assert "ids_one_off" not in {found.code for found in one.findings}


def test_scattered_ids_moved_by_more_than_one() -> None:
    ids = pl.int_range(200, eager=True) ** 2 * 10
    true = pl.DataFrame({"datum_id": ids, "label_value": "a"})
    moved = true.with_columns(pl.col("datum_id") + 7)
    with pytest.raises(ee.InputError) as caught:
        ee.score(moved, true, task="classification")
    assert "-7" in str(caught.value)


@pytest.mark.parametrize(
    ("mine", "true", "noted"),
    [
        (["NaN", "a", "b", "NaN"], ["a", "a", "b", "b"], [("predictions", 2, ["NaN"])]),
        (["a", "a", "b", "b"], ["a", "nan", "b", "None"], [("ground_truths", 1, ["nan"])]),
        (["None", "a", "b", "b"], ["None", "a", "b", "b"], []),
        (["a", "nano", "b", "b"], ["a", "nano", "b", "b"], []),
    ],
)
def test_texts_of_missing_values_among_labels_are_noted(mine: Any, true: Any, noted: Any) -> None:
    ours, theirs = (pl.DataFrame({"datum_id": range(4), "label_value": v}) for v in (mine, true))
    findings = ee.score(ours, theirs, task="classification").findings
    notes = [one for one in findings if one.code == "missing_as_label"]
    assert [tuple(one.facts[k] for k in ("side", "count", "labels")) for one in notes] == noted
    assert all(one.severity == "warning" for one in notes)


@pytest.mark.parametrize("bounded", [False, True])
def test_texts_of_lists_among_labels_are_a_warning(
    bounded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["['a', 'b']", '["c"]', "[UNK]", "b"] * 5
    rows = pl.DataFrame({"datum_id": range(20), "y_true": said, "y_pred": ["b"] * 20})
    rows.write_csv(tmp_path / "t.csv")
    if bounded:
        in_buckets(monkeypatch)
    card = ee.score(tmp_path / "t.csv", **({"memory_limit": "1GB"} if bounded else {}))
    assert ("buckets" in card.run) == bounded
    (one,) = [one for one in card.findings if one.code == "lists_as_labels"]
    assert (one.severity, one.count, one.facts["side"]) == ("warning", 10, "ground_truths")
    assert one.facts["labels"] == ['["c"]', "['a', 'b']"]
    named = {'["c"]': "c", "['a', 'b']": "a"}
    card = ee.score(tmp_path / "t.csv", label_map=named)
    assert "lists_as_labels" not in {one.code for one in card.findings}


def test_unsigned_ids_one_higher_are_a_warning() -> None:
    """Ids above the range of Int64 are not shifted to compare their labels."""
    ids = pl.Series([2**63 + i for i in range(20)], dtype=pl.UInt64)
    truths = pl.DataFrame({"datum_id": ids, "label_value": [0, 1] * 10})
    card = ee.score(truths.with_columns(pl.col("datum_id") + 1, score=0.5), truths)
    assert "ids_one_off" in {found.code for found in card.findings}


def test_boxes_of_unsigned_ids_that_do_not_overlap_are_scored() -> None:
    """Ids above the range of Int64 are not shifted to compare their boxes."""
    ids = pl.Series([2**63 + i for i in range(20)], dtype=pl.UInt64)
    corners = dict(zip(CORNERS, (0.0, 0.0, 5.0, 5.0), strict=True))
    truths = pl.DataFrame({"datum_id": ids, "label_value": [0] * 20}).with_columns(**corners)
    moved = truths.with_columns(pl.col(CORNERS) + 100.0, score=0.5)
    assert "boxes_apart" in {found.code for found in ee.score(moved, truths).findings}
