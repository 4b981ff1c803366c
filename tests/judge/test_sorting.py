"""Replies that sort statements, null references, and additional columns of the input."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.conftest import ROWS
from judge.server import Answer, reply, serving
from refusals import refused

import evalengine as ee
from evalengine.judge.prompts import BadReply, load_prompts, parse, places

PROMPT = load_prompts()["answer_correctness"]
LISTED = {"response_statements": ["a", "b", "c"], "reference_statements": ["x", "y", "z"]}


def sorted_as(tp: list[str], fp: list[str], fn: list[str]) -> dict[str, list[str]]:
    return {"TP": tp, "FP": fp, "FN": fn}


def placed(reply: dict[str, list[str]]) -> list[tuple[str, str, int | None]]:
    return [(v.word, v.part, v.place) for v in parse(json.dumps(reply), PROMPT, LISTED)]


def test_statements_have_their_place_in_the_list():
    assert placed(sorted_as(["c"], ["B ", "a"], ["z"])) == [
        ("TP", "response", 2),
        ("FP", "response", 1),
        ("FP", "response", 0),
        ("FN", "reference", 2),
    ]
    # A reworded statement takes a free place.
    assert [place for _, _, place in placed(sorted_as(["b"], ["else", "a"], ["other", "y"]))] == [
        1, 2, 0, 0, 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "reply", [sorted_as(["a", "a", "a"], [], []), sorted_as(["a", "b"], ["a"], []),
              sorted_as(["a", "b", "c"], [], ["x", "X"])],
)  # fmt: skip
def test_a_repeated_statement_is_a_bad_reply(reply):
    with pytest.raises(BadReply) as error:
        placed(reply)
    assert error.value.kind == "extra_verdicts"


TEXTS = st.lists(st.sampled_from("abcd"), max_size=6)


@settings(max_examples=40)
@given(TEXTS, st.data())
def test_places_are_taken_once(listed, data):
    replied = data.draw(st.lists(st.sampled_from("abcdE"), max_size=len(listed)))
    taken, repeated = places(replied, listed)
    assert len(taken) == len(replied) == len(set(taken))
    assert set(taken) <= set(range(len(listed)))
    for statement, place in zip(replied, taken, strict=True):
        if replied.count(statement) <= listed.count(statement):
            assert listed[place] == statement
    no_others = set(replied) <= set(listed)
    excess = any(replied.count(s) > listed.count(s) for s in set(replied))
    assert bool(repeated) == (no_others and excess)


def judged_by(tmp_path: Any, answers: list[dict[str, Any]], **more: Any) -> Any:
    """Judge one row with three statements on both sides by scripted judgments."""
    rows = pl.DataFrame({"query": ["q"], "text": ["a. b. c."], "reference": ["x. y. z."],
                         "contexts": [["k"]]})  # fmt: skip
    remaining = iter(answers)

    def script(body: dict[str, Any], before: int) -> Answer:
        usual = reply(body)
        return Answer(json.dumps(usual if "statements" in usual else next(remaining)))

    with serving(script) as server:
        named = {"model": "m", "base_url": server.url, "cache": str(tmp_path / "c"), **more}
        return ee.judge(rows, judgments=len(answers), concurrency=1, **named)


def test_votes_are_on_the_same_statement(tmp_path):
    """Two of three judgments call each statement wrong."""
    votes = [(["a."], ["b.", "c."]), (["b."], ["a.", "c."]), (["c."], ["a.", "b."])]
    answers = [sorted_as(tp, fp, []) for tp, fp in votes]
    done = judged_by(tmp_path, answers, metrics="AnswerCorrectness")
    assert done.card.value("AnswerCorrectness") == 0.0
    of_a = done.verdicts.filter(statement="a.")
    assert of_a["item_index"].to_list() == [0, 0, 0]


def test_a_statement_missing_in_one_judgment_is_outvoted(tmp_path):
    answers = [sorted_as(["a.", "b.", "c."], [], [missing]) for missing in ("x.", "y.", "z.")]
    done = judged_by(tmp_path, answers, metrics="AnswerCorrectness")
    assert done.card.value("AnswerCorrectness") == 1.0
    missed = done.verdicts.filter(step="reference")
    assert missed.select("item_index", "items").rows() == [(0, 3), (1, 3), (2, 3)]


def test_replies_without_a_statement_vote(tmp_path):
    last = [{"classifications": [{"statement": "s", "reason": "", "attributed": 0}]}]
    done = judged_by(tmp_path, [{"classifications": []}] * 2 + last, metrics="LLMContextRecall")
    row = done.card.per_datum.row(0, named=True)
    assert (row["value"], row["status"]) == (None, "no_statements")


@pytest.mark.parametrize("reference", [[None], [["x.", None]], [[None]]])
@pytest.mark.parametrize("dialect", ["standard", "valor"])
def test_a_null_ground_truth_is_missing(server, judged, reference, dialect):
    kind = pl.String if reference == [None] else pl.List(pl.String)
    rows = ROWS.head(1).with_columns(reference=pl.Series(reference, dtype=kind))
    metrics = ["AnswerCorrectness", "ContextPrecision", "ContextRecall"]
    done = judged(server, metrics, data=rows, scoring={"dialect": dialect})
    assert server.requests == []
    assert done.card.per_datum["status"].to_list() == ["missing_input"] * 3
    assert all(error.startswith("reference null") for error in done.verdicts["error"])


def test_a_null_in_the_table_of_references_is_missing(server, judged):
    rows = ROWS.drop("reference")
    references = pl.DataFrame({"datum_id": ["a", "a", "b"], "text": ["x.", None, "y."]})
    done = judged(server, ["ContextRecall"], data=rows, references=references)
    # The third datum has no ground truths and no contexts.
    statuses = done.card.per_datum["status"].to_list()
    assert statuses == ["missing_input", "scored", "no_contexts_or_references"]


def test_additional_columns_are_available_for_slices(server, judged, tmp_path):
    rows = ROWS.with_columns(
        topic=pl.Series(["x", "y", "y"], dtype=pl.Categorical), year=pl.Series([1, 2, 2]),
        status=pl.lit("draft"), tags=pl.lit(["t"]),
    )  # fmt: skip
    out = tmp_path / "v.parquet"
    done = judged(server, ["Bias"], data=rows, out=out, scoring={"by": ["topic*year"]})
    assert done.card.metrics["slice_value"].to_list() == [None, "x*1", "y*2"]
    card = ee.score(out, by=["topic", "year"])
    assert card.metrics.filter(slice="topic")["support"].to_list() == [1, 2]
    assert done.verdicts.columns[-2:] == ["topic", "year"]
    assert done.verdicts.schema["year"] == pl.Int64
    assert set(done.verdicts["status"]) == {"ok"}


@pytest.mark.parametrize("by", ["topics", "tags", "status"])
def test_slices_by_missing_columns_are_refused_before_anything_is_sent(server, judged, by):
    rows = ROWS.with_columns(topic=pl.lit("x"), tags=pl.lit(["t"]), status=pl.lit("draft"))
    with refused("column_missing", column=by):
        judged(server, ["Bias"], data=rows, scoring={"by": [by]})
    assert server.requests == []
