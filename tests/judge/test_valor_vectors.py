"""Recorded replies of valor-lite and Valor, parsed here and scored by the dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from reference_data import known_answers

import evalengine as ee
from evalengine.judge.judging import verdict_table
from evalengine.judge.prompts import BadReply, load_prompts, parse
from evalengine.judge.run import PLANS, Failed, MetricSettings, Outcome, Row, Spent, judge_row

PROMPTS = load_prompts()
KEYS = {"SummaryCoherence": "rating", "Coherence": "rating"}


def scripted(replies: list[Any]) -> Any:
    """Return a function that answers calls in order, without repeats after bad replies."""
    remaining: Iterator[Any] = iter(replies)

    def ask(name: str, given: dict[str, Any], judgment: int) -> list[Any]:
        answer = next(remaining)
        text = answer if isinstance(answer, str) else json.dumps(answer)
        try:
            return parse(text, PROMPTS[name], given)
        except BadReply as error:
            raise Failed(error.kind, str(error)) from None

    return ask


def scored(metric: str, inputs: dict[str, Any], replies: list[Any]) -> tuple[float | None, str]:
    given = {
        "query": inputs.get("query", ""),
        "text": inputs.get("response", inputs.get("summary")),
        "contexts": inputs.get("context", inputs.get("predicted_context")),
        "source": inputs.get("text"),
    }
    references = tuple(inputs.get("groundtruths", inputs.get("groundtruth_context")) or ())
    row = Row(0, given, references)
    if given["text"] == "":
        replies = replies[1:]  # no request is needed for an empty text
    records = judge_row(row, MetricSettings(metric), scripted(replies))
    table = verdict_table([row], [Outcome(records, Spent())])
    card = ee.score(table, task="judged", metrics=[metric], dialect="valor")
    return card.value(metric), str(card.per_datum["status"][0])


def lite_cases() -> list[Any]:
    named = {name.lower(): name for name in PLANS}
    return [
        pytest.param(named[group.replace("_", "")], case, id=f"{group}-{i}")
        for group, cases in known_answers("text", "valor_lite.json").items()
        if group not in ("meta", "json_parsing")
        for i, case in enumerate(cases)
    ]


@pytest.mark.parametrize(("metric", "case"), lite_cases())
def test_valor_lite(metric: str, case: dict[str, Any]) -> None:
    value, status = scored(metric, case["inputs"], case["llm_responses"])
    if case["error"] is None:
        assert value == pytest.approx(case["value"], abs=1e-15)
    else:
        assert value is None
        assert status in {
            "missing_verdicts", "extra_verdicts", "wrong_vocabulary", "malformed_reply",
            "no_contexts",
        }  # fmt: skip


@pytest.mark.parametrize("case", known_answers("text", "valor_lite.json")["json_parsing"])
def test_valor_lite_json(case: dict[str, Any]) -> None:
    value, status = scored("Bias", case["inputs"], case["llm_responses"])
    assert value == case["value"]
    assert (status == "scored") == (case["error"] is None)


@pytest.mark.parametrize(
    "case", known_answers("valor", "llm_guided.json")["cases"], ids=lambda case: case["id"]
)
def test_valor_llm_guided(case: dict[str, Any]) -> None:
    named = {name.lower(): name for name in PLANS}
    metric = named[case["metric"].replace("_", "")]
    value, status = scored(metric, case["inputs"], case["llm_replies_in_order"])
    if "error" in case:
        assert value is None
        assert status != "scored"
    else:
        assert value == pytest.approx(case["expected"], abs=1e-15)


def test_the_format_of_valor() -> None:
    table = pl.DataFrame(
        {
            "datum_id": ["x", "x", "y", "z"],
            "metric": ["Bias", "Bias", "Bias", "Coherence"],
            "verdict": ["yes", "no", None, "4"],
            "status": ["ok", "ok", "timeout", "ok"],
        }
    )
    assert ee.score(table, dialect="valor", task="judged").to_valor() == [
        {"type": "Bias", "value": 0.5, "parameters": {"datum_uid": "x"}},
        {
            "type": "Error",
            "value": {"type": "Bias", "message": "timeout"},
            "parameters": {"datum_uid": "y"},
        },
        {"type": "Coherence", "value": 4, "parameters": {"datum_uid": "z"}},
    ]
