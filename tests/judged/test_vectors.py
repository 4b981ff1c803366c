"""Recorded scores of Ragas and deepeval, reproduced by their dialects."""

from __future__ import annotations

import math
from typing import Any

import pytest
from judged.tables import listed, table
from reference_data import known_answers

import evalengine as ee

RAGAS = known_answers("text", "ragas.json")
EMPTY_STEP = {
    "AnswerRelevance": "statements",
    "Bias": "opinions",
    "Toxicity": "opinions",
    "Hallucination": "contexts",
    "ContextPrecision": "contexts",
    "ContextRecall": "statements",
    "ContextRelevance": "contexts",
    "Faithfulness": "claims",
    "LLMContextRecall": "statements",
}
DEEPEVAL = {
    "answer_relevancy": "AnswerRelevance",
    "bias": "Bias",
    "toxicity": "Toxicity",
    "hallucination": "Hallucination",
    "contextual_precision": "ContextPrecision",
    "contextual_recall": "ContextRecall",
    "faithfulness": "Faithfulness",
}


def scored(rows: list[dict[str, Any]], metric: str, **options: Any) -> float | None:
    return ee.score(table(rows), task="judged", metrics=[metric], **options).value(metric)


def deepeval_cases() -> list[Any]:
    return [
        pytest.param(dialect, name, case, id=f"{dialect}-{name}-{i}")
        for dialect, file in (("deepeval-4.1", "4_1_10"), ("deepeval-4.3", "4_3_1"))
        for name, cases in known_answers("text", f"deepeval_{file}.json").items()
        if name in DEEPEVAL
        for i, case in enumerate(cases)
    ]


@pytest.mark.parametrize(("dialect", "name", "case"), deepeval_cases())
def test_deepeval(dialect: str, name: str, case: dict[str, Any]) -> None:
    metric = DEEPEVAL[name]
    rows = listed(metric, case["verdicts"], none=EMPTY_STEP[metric])
    value = scored(
        rows,
        metric,
        dialect=dialect,
        strict_mode=case.get("strict_mode", False),
        penalize_ambiguous=case.get("penalize_ambiguous_claims", False),
    )
    assert value == pytest.approx(case["value"], abs=1e-15)


@pytest.mark.parametrize("file", ["4_1_10", "4_3_1"])
def test_deepeval_contextual_relevancy(file: str) -> None:
    dialect = f"deepeval-{file[:3].replace('_', '.')}"
    for case in known_answers("text", f"deepeval_{file}.json")["contextual_relevancy"]:
        words = [word for context in case["verdicts_per_context"] for word in context]
        rows = listed("ContextRelevance", words, none="contexts")
        assert scored(rows, "ContextRelevance", dialect=dialect) == pytest.approx(case["value"])


@pytest.mark.parametrize("case", RAGAS["factual_correctness"])
def test_ragas_factual_correctness(case: dict[str, Any]) -> None:
    name = "FactualCorrectness"
    sides = {
        "response": case["response_claims_supported_by_reference"],
        "reference": case["reference_claims_supported_by_response"],
    }
    rows = [
        row for side, words in sides.items() for row in listed(name, words, step=side, none=side)
    ]
    value = scored(rows, name, dialect="ragas", mode=case["mode"], beta=case["beta"])
    assert value == case["legacy"]["value"] == case["collections"]["value"]


@pytest.mark.parametrize("case", RAGAS["fbeta_score"])
def test_ragas_f_of_counts(case: dict[str, Any]) -> None:
    """The standard dialect equals F without rounding, except that 0 / 0 is undefined."""
    name = "FactualCorrectness"
    response = ["yes"] * case["tp"] + ["no"] * case["fp"]
    rows = listed(name, response, step="response", none="response")
    rows += listed(name, ["no"] * case["fn"], step="reference", none="reference")
    value = scored(rows, name, beta=case["beta"])
    empty = case["tp"] + case["fp"] + case["fn"] == 0
    assert value is None if empty else value == pytest.approx(case["value"], abs=1e-15)


@pytest.mark.parametrize(
    ("group", "field", "metric"),
    [
        ("llm_context_recall", "attributed", "LLMContextRecall"),
        ("context_precision", "verdicts", "ContextPrecision"),
        ("faithfulness", "verdicts", "Faithfulness"),
    ],
)
def test_ragas_shares(group: str, field: str, metric: str) -> None:
    for case in RAGAS[group]:
        value = scored(
            listed(metric, case[field], none=EMPTY_STEP[metric]), metric, dialect="ragas"
        )
        if case["value"] == "nan":
            assert value is None
        else:
            assert value == pytest.approx(case["value"], abs=1e-15)


@pytest.mark.parametrize("case", RAGAS["ensembler_majority"])
def test_ragas_majority(case: dict[str, Any]) -> None:
    """Items without one judgment are decided by the others; the first verdict wins a tie."""
    rows = [
        row
        for judgment, run in enumerate(case["runs"])
        for row in listed("ContextPrecision", run, judgment=judgment)
    ]
    for row in rows:
        row["items"] = None
    expected = scored(listed("ContextPrecision", case["value"]), "ContextPrecision")
    assert scored(rows, "ContextPrecision") == expected
    assert expected is not None
    assert not math.isnan(expected)
