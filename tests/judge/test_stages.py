"""Judging of every metric: rows to verdicts to numbers."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from judge.conftest import ROWS
from judge.server import given_of, serving
from refusals import noted

import evalengine as ee
from evalengine.judge.run import PLANS, TEXT, Failed, MetricSettings, NotAnswered, Row, judge_row


def values(judged: Any, metric: str) -> dict[str, Any]:
    rows = judged.card.per_datum.filter(pl.col("metric") == metric)
    return dict(rows.select("datum_id", "value").iter_rows())


EXPECTED = {
    "AnswerCorrectness": {"a": 1 / (1 + 0.5), "b": 1 / (1 + 0.5), "c": 1.0},
    "AnswerRelevance": {"a": 0.5, "b": 0.5, "c": 1.0},
    "Bias": {"a": 0.5, "b": 0.5, "c": 1.0},
    "Toxicity": {"a": 0.5, "b": 0.5, "c": 1.0},
    "Coherence": {"a": 4.0, "b": 4.0, "c": 4.0},
    "SummaryCoherence": {"a": 4.0, "b": 4.0, "c": 4.0},
    "ContextPrecision": {"a": 1.0, "b": 1.0, "c": None},
    "ContextRecall": {"a": 1.0, "b": 1.0, "c": 0.0},
    "ContextRelevance": {"a": 1.0, "b": 0.5, "c": None},
    "Faithfulness": {"a": 0.5, "b": 0.5, "c": 0.0},
    "Hallucination": {"a": 1.0, "b": 0.5, "c": None},
    "LLMContextRecall": {"a": 1.0, "b": 1.0, "c": 0.0},
    "FactualCorrectness": {"a": 2 / 3, "b": 2 / 3, "c": 1.0},
}
"""Calculated by hand, for a judge that answers no to items with "not" and yes otherwise."""


def test_every_metric_from_rows_to_numbers(server, judged, tmp_path):
    out = tmp_path / "verdicts.parquet"
    done = judged(server, list(PLANS), out=out)
    for metric, expected in EXPECTED.items():
        result = values(done, metric)
        assert result == {name: pytest.approx(value) for name, value in expected.items()}, metric
    loaded = ee.score(out, task="judged")
    assert loaded.metrics.drop("parameters").equals(done.card.metrics.drop("parameters"))
    assert done.usage.requests == len(server.requests)
    tokens = done.verdicts.select(pl.col("input_tokens", "output_tokens").sum()).row(0)
    assert tokens == (done.usage.input_tokens, done.usage.output_tokens)
    assert tokens[0] == 100 * done.usage.requests


def test_a_second_run_sends_nothing(server, judged):
    first = judged(server, list(PLANS))
    sent = len(server.requests)
    second = judged(server, list(PLANS))
    assert len(server.requests) == sent
    assert second.usage.requests == 0
    assert second.verdicts.equals(first.verdicts)


def test_offline_uses_only_the_cache(server, judged):
    first = judged(server, ["Bias"])
    offline = judged(server, ["Bias"], offline=True)
    assert offline.verdicts.equals(first.verdicts)
    lone = judged(server, ["Toxicity"], offline=True)
    # The opinions are cached by Bias, so only verdicts are missing.
    assert lone.verdicts["status"].to_list() == ["not_answered"] * 3
    noted(lone.card, "coverage", metric="Toxicity", count=3, rows=3)


def test_equal_requests_are_sent_once(server, judged):
    """Two metrics share statements of the text, two others opinions."""
    done = judged(server, ["AnswerRelevance", "AnswerCorrectness", "Bias", "Toxicity"])
    bodies = [json.dumps(body, sort_keys=True) for body in server.requests]
    assert len(bodies) == len(set(bodies))
    assert done.usage.cached > 0


def test_precision_needs_no_second_pass(server, judged):
    judged(server, ["FactualCorrectness"], mode="precision")
    premises = [given_of(body) for body in server.requests]
    texts = {given["text"] for given in premises if "text" in given}
    assert texts == set(ROWS["text"])  # claims are extracted only from the texts
    assert {g["premise"] for g in premises if "premise" in g} == {
        one for references in ROWS["reference"] for one in references
    }


@pytest.mark.parametrize("atomicity", ["low", "high"])
@pytest.mark.parametrize("coverage", ["low", "high"])
def test_atomicity_and_coverage_select_the_prompt_of_claims(server, judged, atomicity, coverage):
    done = judged(server, ["FactualCorrectness"], atomicity=atomicity, coverage=coverage)
    parameters = json.loads(done.card.metrics["parameters"][0])
    assert (parameters["atomicity"], parameters["coverage"]) == (atomicity, coverage)
    asked = {body["messages"][0]["content"] for body in server.requests}
    others = [
        (a, c) for a in ("low", "high") for c in ("low", "high") if (a, c) != (atomicity, coverage)
    ]
    from evalengine.judge.prompts import load_prompts

    prompts = load_prompts()
    used = prompts[f"claims_{atomicity}_{coverage}"].instructions.strip()
    assert any(used in system for system in asked)
    for a, c in others:
        assert not any(
            prompts[f"claims_{a}_{c}"].instructions.strip() in system for system in asked
        )


def test_judgments_vote(tmp_path):
    """Two of three judgments say no, and the majority decides."""
    from judge.server import Answer, reply

    def script(body: dict[str, Any], before: int) -> Answer:
        content = reply(body)
        if "verdicts" in content and counts.setdefault(json.dumps(given_of(body)), 0) > 0:
            for verdict in content["verdicts"]:
                verdict["verdict"] = "no"
        if "verdicts" in content:
            counts[json.dumps(given_of(body))] += 1
        return Answer(json.dumps(content))

    counts: dict[str, int] = {}
    with serving(script) as server:
        done = ee.judge(
            ROWS.head(1),
            metrics="Hallucination",
            model="m",
            base_url=server.url,
            cache=str(tmp_path / "c"),
            judgments=3,
            concurrency=1,
        )
        assert len(server.requests) == 3
    assert done.verdicts["verdict"].to_list() == ["contradicted", "agrees", "agrees"]
    assert done.verdicts["judgment_index"].to_list() == [0, 1, 2]
    assert done.card.value("Hallucination") == 0.0


def test_hallucination_means_the_same_under_every_dialect(server, judged):
    """A yes in deepeval is our no, so the table has explicit words."""
    value = judged(server, ["Hallucination"]).card.value("Hallucination")
    old = judged(server, ["Hallucination"], scoring={"dialect": "deepeval-4.1"})
    new = judged(server, ["Hallucination"], scoring={"dialect": "deepeval-4.3"})
    assert value == pytest.approx(0.75)
    # There the row without contexts is 0 in version 4.1 and 1 in version 4.3.
    assert old.card.value("Hallucination") == pytest.approx(1.5 / 3)
    assert new.card.value("Hallucination") == pytest.approx((0.0 + 0.5 + 1.0) / 3)
    assert (old.card.directions, new.card.directions) == (
        {"Hallucination": "lower"},
        {"Hallucination": "higher"},
    )


def test_references_in_a_separate_table(server, judged):
    rows = ROWS.drop("reference")
    references = ROWS.select("datum_id", pl.col("reference").alias("text")).explode("text")
    one = judged(server, ["AnswerCorrectness"])
    two = judged(server, ["AnswerCorrectness"], data=rows, references=references)
    assert two.verdicts.equals(one.verdicts)
    assert two.usage.requests == 0


def test_a_reference_may_be_a_string(server, judged):
    rows = ROWS.with_columns(pl.col("reference").list.first()).drop("datum_id")
    done = judged(server, ["ContextRecall"], data=rows)
    assert done.verdicts["datum_id"].to_list() == [0, 1, 2]


def test_null_texts_are_errors_and_empty_texts_are_not(server, judged):
    rows = pl.DataFrame({"text": [None, "", "  "]}, schema={"text": pl.String})
    done = judged(server, ["Bias", "Coherence"], data=rows)
    assert server.requests == []
    status = done.card.per_datum.select("metric", "value", "status").rows()
    assert status == [
        ("Bias", None, "missing_input"),
        ("Bias", 0.0, "scored"),
        ("Bias", 0.0, "scored"),
        ("Coherence", None, "missing_input"),
        ("Coherence", None, "no_text"),
        ("Coherence", None, "no_text"),
    ]


@pytest.mark.parametrize("kind", [Failed, NotAnswered])
def test_an_unanswered_step_precedes_a_failed_one(kind):
    """The extraction from the text is unanswered, and that from a ground truth failed."""
    metric = "FactualCorrectness"
    row = Row("a", {"query": "q", TEXT: "some text", "contexts": None}, ("a truth",))
    plan = PLANS[metric]
    first = next(extract for extract in plan.extracts if extract.of == TEXT)

    def ask(name: str, given: dict[str, Any], judgment: int) -> list[Any]:
        if given["text"] == "some text":
            raise NotAnswered("pending", "not asked yet")
        raise kind("malformed_reply", "broken")

    (record,) = judge_row(row, MetricSettings(metric), ask)
    assert (record["step"], record["status"]) == (first.none, "pending")
