"""Several judgments of one datum: what there is to count, and what it counts, by most of them."""

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


def judgments(metric: str, none: str, *said: list[str], **more: Any) -> list[dict[str, Any]]:
    """Rows of one datum: a list of words a judgment, empty where there was nothing to judge."""
    return [
        row
        for n, words in enumerate(said)
        for row in listed(metric, words, none=none, judgment=n, **more)
    ]


def outcome(card: ee.Scorecard) -> tuple[float | None, str]:
    row = card.per_datum.row(0, named=True)
    return row["value"], row["status"]


def test_that_there_was_nothing_to_judge_is_a_vote():
    rows = judgments("Faithfulness", "claims", [], [], ["no"])
    assert outcome(score(rows)) == (None, "no_claims")
    assert outcome(score(rows, dialect="valor")) == (1.0, "scored")
    assert outcome(score(judgments("Faithfulness", "claims", [], ["no"], ["no"]))) == (
        0.0, "scored",
    )  # fmt: skip
    # Of a tie the first, whichever that is.
    assert outcome(score(judgments("Faithfulness", "claims", ["no"], []))) == (0.0, "scored")
    assert outcome(score(judgments("Faithfulness", "claims", [], ["no"]))) == (None, "no_claims")


def test_the_number_of_items_that_most_found_decides():
    rows = judgments("LLMContextRecall", "statements", ["yes"], ["no", "no"], ["no", "no"])
    card = score(rows)
    assert outcome(card) == (0.0, "scored")
    noted(card, "judgments_without_vote", metric="LLMContextRecall", count=1)
    # ragas takes the first then, and so does its dialect.
    assert outcome(score(rows, dialect="ragas")) == (1.0, "scored")
    rows = judgments("LLMContextRecall", "statements", ["yes"], [], [])
    assert outcome(score(rows)) == (None, "no_statements")
    alike = score(judgments("LLMContextRecall", "statements", ["yes"], ["no"]))
    assert not any("did not vote" in note for note in alike.notes)


def test_a_failed_judgment_has_no_say_in_what_there_was():
    failed = {"datum_id": 0, "metric": "Bias", "status": "timeout", "judgment_index": 2}
    rows = judgments("Bias", "opinions", [], [])
    assert outcome(score([*rows, failed], dialect="deepeval-4.3")) == (1.0, "scored")
    lone = [{**failed, "judgment_index": n} for n in range(2)]
    assert outcome(score([*lone, *judgments("Bias", "opinions", [])][:2])) == (None, "timeout")


def test_either_side_is_voted_on_by_itself():
    """Two of three judgments find no claim in the response; those of the reference stay."""
    name = "FactualCorrectness"
    rows = judgments(name, "response", [], ["yes"], [], step="response")
    rows += judgments(name, "reference", ["no"], ["no"], ["yes"], step="reference")
    value, status = outcome(score(rows))
    assert (value, status) == (0.0, "scored")
    rows = judgments(name, "response", ["yes", "yes"], ["no"], ["no"], step="response")
    rows += judgments(name, "reference", ["yes"], ["yes"], ["yes"], step="reference")
    assert outcome(score(rows)) == (0.0, "scored")


def test_nothing_on_either_side_is_called_by_one_word():
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
def test_votes_against_their_definition(said, random):
    """None is a judgment that failed."""
    rows = [
        row
        for n, words in enumerate(said)
        for row in (
            listed("Bias", words, none="opinions", judgment=n)
            if words is not None
            else [{"datum_id": 0, "metric": "Bias", "judgment_index": n, "status": "timeout"}]
        )
    ]
    random.shuffle(rows)
    sound = [words for words in said if words is not None]
    found = outcome(score(rows, dialect="deepeval-4.3"))
    if not sound:
        assert found == (None, "timeout")
        return
    empty = [not words for words in sound]
    nothing = Counter(empty).most_common(1)[0][0]
    if nothing:
        assert found == (1.0, "scored")
        return
    length = Counter(len(words) for words in sound if words).most_common(1)[0][0]
    alike = [words for words in sound if len(words) == length]
    decided = [Counter(column).most_common(1)[0][0] for column in zip(*alike, strict=True)]
    assert found == (pytest.approx(decided.count("no") / length), "scored")
