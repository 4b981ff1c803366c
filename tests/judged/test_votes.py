"""Majority votes of several judgments on the items and their verdicts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged.tables import listed, table
from refusals import noted

import evalengine as ee


def score(rows: list[dict[str, Any]], **options: Any) -> ee.Scorecard:
    return ee.score(table(rows), task="judged", **options)


def judgments(
    metric: str, none: str, *words_of_judgments: list[str], **more: Any
) -> list[dict[str, Any]]:
    """Make rows of one datum from a list of words per judgment; empty lists are empty steps."""
    return [
        row
        for n, words in enumerate(words_of_judgments)
        for row in listed(metric, words, none=none, judgment=n, **more)
    ]


def outcome(card: ee.Scorecard) -> tuple[float | None, str]:
    row = card.per_datum.row(0, named=True)
    return row["value"], row["status"]


def test_an_empty_step_is_a_vote():
    rows = judgments("Faithfulness", "claims", [], [], ["no"])
    assert outcome(score(rows)) == (None, "no_claims")
    assert outcome(score(rows, dialect="valor")) == (1.0, "scored")
    assert outcome(score(judgments("Faithfulness", "claims", [], ["no"], ["no"]))) == (
        0.0, "scored",
    )  # fmt: skip
    # The first judgment wins a tie.
    assert outcome(score(judgments("Faithfulness", "claims", ["no"], []))) == (0.0, "scored")
    assert outcome(score(judgments("Faithfulness", "claims", [], ["no"]))) == (None, "no_claims")


def test_the_most_frequent_number_of_items_decides():
    rows = judgments("LLMContextRecall", "statements", ["yes"], ["no", "no"], ["no", "no"])
    card = score(rows)
    assert outcome(card) == (0.0, "scored")
    noted(card, "judgments_without_vote", metric="LLMContextRecall", count=1)
    # Ragas and its dialect use the first judgment.
    assert outcome(score(rows, dialect="ragas")) == (1.0, "scored")
    rows = judgments("LLMContextRecall", "statements", ["yes"], [], [])
    assert outcome(score(rows)) == (None, "no_statements")
    equal = score(judgments("LLMContextRecall", "statements", ["yes"], ["no"]))
    assert not any("did not vote" in note for note in equal.notes)


def test_a_failed_judgment_does_not_vote_on_empty_steps():
    failed = {"datum_id": 0, "metric": "Bias", "status": "timeout", "judgment_index": 2}
    rows = judgments("Bias", "opinions", [], [])
    assert outcome(score([*rows, failed], dialect="deepeval-4.3")) == (1.0, "scored")
    lone = [{**failed, "judgment_index": n} for n in range(2)]
    assert outcome(score([*lone, *judgments("Bias", "opinions", [])][:2])) == (None, "timeout")


def test_sides_are_voted_on_separately():
    """Two of three judgments find no claim in the response; the reference is unaffected."""
    name = "FactualCorrectness"
    rows = judgments(name, "response", [], ["yes"], [], step="response")
    rows += judgments(name, "reference", ["no"], ["no"], ["yes"], step="reference")
    value, status = outcome(score(rows))
    assert (value, status) == (0.0, "scored")
    rows = judgments(name, "response", ["yes", "yes"], ["no"], ["no"], step="response")
    rows += judgments(name, "reference", ["yes"], ["yes"], ["yes"], step="reference")
    assert outcome(score(rows)) == (0.0, "scored")


def test_empty_sides_have_one_status():
    rows = judgments("FactualCorrectness", "response", []) + judgments(
        "FactualCorrectness", "reference", []
    )
    assert outcome(score(rows)) == (None, "no_claims")
    both = [
        {"datum_id": 0, "metric": "ContextPrecision", "step": step, "status": "empty"}
        for step in ("contexts", "references")
    ]
    assert outcome(score(both)) == (None, "no_contexts_or_references")


WORDS = st.lists(st.sampled_from(["yes", "no"]), max_size=2)


@settings(max_examples=25)
@given(st.lists(st.one_of(WORDS, st.none()), min_size=1, max_size=5), st.randoms())
def test_votes_against_their_definition(words_of_judgments, random):
    """None represents a failed judgment."""
    rows = [
        row
        for n, words in enumerate(words_of_judgments)
        for row in (
            listed("Bias", words, none="opinions", judgment=n)
            if words is not None
            else [{"datum_id": 0, "metric": "Bias", "judgment_index": n, "status": "timeout"}]
        )
    ]
    random.shuffle(rows)
    valid = [words for words in words_of_judgments if words is not None]
    result = outcome(score(rows, dialect="deepeval-4.3"))
    if not valid:
        assert result == (None, "timeout")
        return
    empty = [not words for words in valid]
    mostly_empty = Counter(empty).most_common(1)[0][0]
    if mostly_empty:
        assert result == (1.0, "scored")
        return
    length = Counter(len(words) for words in valid if words).most_common(1)[0][0]
    voting = [words for words in valid if len(words) == length]
    decided = [Counter(column).most_common(1)[0][0] for column in zip(*voting, strict=True)]
    assert result == (pytest.approx(decided.count("no") / length), "scored")
