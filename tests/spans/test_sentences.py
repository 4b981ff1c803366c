"""Sentences of two tables of tags: one-sided sentences, ids, slice columns and notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee

TAGS = ["B-PER", "I-PER", "O"]
TRUTH = pl.DataFrame({"datum_id": list("abcdef"), "tags": [TAGS] * 6, "domain": ["x", "y"] * 3})
OURS = TRUTH.drop("domain")


def score(ours: Any, theirs: Any = None, **options: Any) -> ee.Scorecard:
    return ee.score(ours, theirs, task="spans", metrics=["F1"], **options)


def test_sentences_of_one_side_are_reported() -> None:
    card = score(OURS.head(2), TRUTH)
    assert card.value("F1", average="micro") == 0.5
    assert any("4 sentences without predictions" in note for note in card.warnings)
    card = score(OURS, TRUTH.head(5))
    assert any("1 sentence without ground truths" in note for note in card.notes)
    assert not score(OURS, TRUTH).notes


def test_disjoint_ids_are_refused() -> None:
    with pytest.raises(ee.InputError) as refused:
        score(OURS.with_columns(datum_id="v" + pl.col("datum_id")), TRUTH)
    assert refused.value.code == "no_common_id"


@pytest.mark.parametrize("ids", [[1, 2, 3, 4, 5, 6], [0.5, 1, 2, 3, 4, 5]])
def test_ids_of_two_kinds_are_refused(ids: list[Any]) -> None:
    with pytest.raises(ee.InputError) as refused:
        score(OURS.with_columns(datum_id=pl.Series(ids)), TRUTH)
    assert refused.value.code == "types_differ"


def test_integers_of_two_widths_are_equal() -> None:
    ids = pl.Series([1, 2, 3, 4, 5, 6])
    narrow = OURS.with_columns(datum_id=ids.cast(pl.Int16))
    assert score(narrow, TRUTH.with_columns(datum_id=ids)).value("F1", average="micro") == 1


def test_cut_file_is_reported(tmp_path: Path) -> None:
    text = "a B-PER\nb O\n\n" * 8
    (tmp_path / "gold.conll").write_text(text)
    (tmp_path / "cut.conll").write_text(text[: len(text) // 2])
    card = score(tmp_path / "cut.conll", tmp_path / "gold.conll")
    assert any("4 sentences without predictions" in note for note in card.warnings)


def test_slices_of_either_table() -> None:
    ours = OURS.head(4).with_columns(length=pl.Series([1, 1, 2, 2]), domain=pl.lit("z"))
    card = score(ours, TRUTH, by=["domain", "length"])
    rows = card.metrics.filter(average="micro").select("slice", "slice_value", "value").rows()
    found = {row[:2]: row[2] for row in rows}
    assert found["length", "1"] == found["length", "2"] == 1
    assert {value for name, value in found if name == "domain"} == {"x", "y"}


def test_sentences_without_entities_are_not_missing() -> None:
    tags = [TAGS if i % 2 else ["O"] * 3 for i in range(400)]
    half = pl.DataFrame({"actual": tags, "predicted": tags})
    for card in (score(half), score(half, executor="processes")):
        assert card.value("F1", average="micro") == 1
        assert not card.notes
    report = ee.check(half, task="spans")
    assert not report.notes
    assert not report.warnings


WORDS = [
    ["The", "cat", "sat"],
    ["John", "ate", "pie"],
    ["Paris", "is", "big"],
    ["Ann", "ran", "off"],
]


def _written(path: Path, sentences: list[list[str]]) -> Path:
    blocks = (
        "".join(f"{word} {tag}\n" for word, tag in zip(s, TAGS, strict=True)) for s in sentences
    )
    path.write_text("\n".join(blocks))
    return path


def test_words_of_sentences_are_compared(tmp_path: Path) -> None:
    truth = _written(tmp_path / "truth.conll", WORDS)
    ours = tmp_path / "ours.conll"
    assert not score(_written(ours, WORDS), truth).warnings
    card = score(_written(ours, [*WORDS[:2], ["Paris", "was", "big"], WORDS[3]]), truth)
    (findings,) = card.findings
    assert (findings.code, findings.severity, findings.count) == ("words_differ", "warning", 1)
    assert (findings.facts["first"], findings.facts["words"]) == (2, 1)
    with pytest.raises(ee.InputError) as refused:
        score(_written(ours, [WORDS[0], *WORDS[2:]]), truth)
    assert (refused.value.code, refused.value.facts["first"]) == ("words_differ", 1)
    cut = score(_written(ours, WORDS[:3]), truth)
    assert "words_differ" not in {findings.code for findings in cut.findings}


def test_the_first_other_word_of_a_longer_sentence_is_shown(tmp_path: Path) -> None:
    longer, short = tmp_path / "longer.conll", tmp_path / "short.conll"
    longer.write_text("a O\nb O\nParis B-A\n\nX B-A\n")
    short.write_text("a O\nb O\n\n")
    with pytest.raises(ee.InputError) as refused:
        ee.score(longer, short, task="spans")
    assert refused.value.code == "words_differ"
    assert "token 2: 'Paris'" in str(refused.value)


@pytest.mark.parametrize(
    ("tags", "options"),
    [
        (["O", "O"], {}),
        (["O", "O"], {"dialect": "seqeval"}),
        (["O", "O"], {"dialect": "seqeval-strict"}),
        (["O", "O"], {"dialect": "nervaluate"}),
        (["I-A", "O"], {"scheme": "BILOU"}),
    ],
)
def test_tables_without_entities(tags: list[str], options: dict[str, Any]) -> None:
    card = ee.score(pl.DataFrame({"actual": [tags], "predicted": [tags]}), task="spans", **options)
    (findings,) = card.findings
    assert (findings.code, "2 tags" not in findings.message) == ("no_entities", True)


def test_messages_on_tags() -> None:
    odd = pl.DataFrame({"actual": [["X-PER"]], "predicted": [["X-PER"]]})
    with pytest.raises(ee.InputError, match=r"in sentence 0\. Tags are O"):
        score(odd)
    assert not any("standard" in note for note in score(odd, dialect="seqeval").warnings)
    known = pl.DataFrame({"actual": [["U-PER"]], "predicted": [["U-PER"]]})
    assert any("standard" in note for note in score(known, dialect="seqeval").warnings)
    with pytest.raises(ee.InputError, match="'tags' of both") as refused:
        score(OURS.rename({"tags": "guess"}), TRUTH.rename({"tags": "gold"}))
    assert refused.value.code == "column_missing"
