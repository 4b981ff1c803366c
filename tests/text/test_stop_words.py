"""Words that token overlap excludes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import noted, refused
from text.scoring import score, values

import evalengine as ee
from evalengine.tasks.text.pairs import FUNCTION_WORDS

OURS, THEIRS = ["The cat sat, the end."], [["A cat SAT down"]]


def overlap(**named: Any) -> list[float | None]:
    """Return precision and recall of the only text."""
    card = score(OURS, THEIRS, metrics=["TokenPrecision", "TokenRecall"], **named)
    return [*values(card, "TokenPrecision"), *values(card, "TokenRecall")]


def test_instead_of_articles() -> None:
    assert overlap() == [2 / 3, 2 / 3]
    assert overlap(stop_words=[]) == [2 / 5, 2 / 4]
    assert overlap(stop_words=["the", "Sat"]) == [1 / 2, 1 / 3]
    assert overlap(stop_words={"end", "the"}) == [1.0, 2 / 4]


def test_instead_of_function_words() -> None:
    own = {"dialect": "continuous-eval"}
    assert overlap(**own) == overlap(stop_words=FUNCTION_WORDS, **own) == [2 / 3, 1.0]
    assert overlap(stop_words=["down"], **own) == [2 / 5, 2 / 3]


def test_words_are_normalised_like_tokens() -> None:
    ours, theirs = ["don't dont cannot the"], [["dont can"]]
    bare = score(ours, theirs, metrics=["TokenPrecision"], stop_words=["dont", "the"])
    assert values(bare, "TokenPrecision") == [0.0]
    marked = score(ours, theirs, metrics=["TokenPrecision"], stop_words=["don't"])
    assert values(marked, "TokenPrecision") == [1 / 4]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffThe\r\n\r\nsat\n".encode())
    assert overlap(stop_words=path) == overlap(stop_words=str(path)) == [1 / 2, 1 / 3]
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ee.OptionError, match="not UTF-8 text"):
        overlap(stop_words=path)
    with refused("file_missing", option="stop_words"):
        overlap(stop_words=tmp_path / "none.txt")


def test_refusals() -> None:
    with refused("option_value", option="stop_words", count=1):
        overlap(stop_words=["the", "in order"])
    with refused("option_value", option="stop_words", value=7):
        overlap(stop_words=["the", 7])


def test_notes() -> None:
    card = score(OURS, THEIRS, metrics=["TokenF1"], stop_words=["the", "The", "sat"])
    assert json.loads(card.metrics["parameters"][0]) == {"stop_words": 2}
    assert score(OURS, THEIRS, metrics=["TokenF1"]).metrics["parameters"][0] is None
    idle = score(OURS, THEIRS, metrics=["ExactMatch"], stop_words=["the"])
    noted(idle, "option_not_read", option="stop_words")
