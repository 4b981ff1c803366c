"""REMem's, continuous-eval's and ragas' answers on texts, from tables to their own shapes."""

from __future__ import annotations

import math
import re
from typing import Any

import polars as pl
import pytest
from known import known_answers

import evalengine as ee

TEXTS = pl.List(pl.String)
EXPRESSION = re.compile(r"' '\.join\(f'w\{i\}' for i in range\((\d+)\)\)")
"""How a long text is written in the vectors."""


def table(retrieved: list[list[str]], relevant: list[list[str]]) -> pl.DataFrame:
    """One row a query."""
    schema = {"retrieved": TEXTS, "relevant": TEXTS}
    return pl.DataFrame({"retrieved": retrieved, "relevant": relevant}, schema=schema)


def texts(value: Any) -> list[str]:
    """Texts as they stand, or one long text made by its expression."""
    if isinstance(value, list):
        return value
    found = EXPRESSION.fullmatch(value)
    assert found is not None, value
    return [" ".join(f"w{i}" for i in range(int(found[1])))]


def test_remem() -> None:
    compared = 0
    for case in known_answers("retrieval", "remem_retrieval.json")["metrics"]:
        if "error" in case["recall"]:  # no queries: it divides by zero, we have no rows
            continue
        golds = case["gold_docs"]
        if len(case["retrieved_chunks"]) < len(golds):
            continue
        card = ee.score(
            table(case["retrieved_chunks"][: len(golds)], golds),
            dialect="remem",
            k=case["k_list"],
        )
        pooled, examples = card.to_remem()
        parts = [case[name] for name in ("recall", "recall_all", "ndcg_any")]
        assert pooled == {k: v for part in parts for k, v in part["pooled"].items()}, case["name"]
        wanted = [
            {k: v for row in rows for k, v in row.items()}
            for rows in zip(*(part["examples"] for part in parts), strict=True)
        ]
        assert examples == [pytest.approx(row, abs=1e-12) for row in wanted], case["name"]
        compared += 1
    assert compared >= 8


def test_remem_chunks() -> None:
    for pair in known_answers("retrieval", "remem_retrieval.json")["is_chunk_from_original"]:
        card = ee.score(
            table([[pair["chunk"]]], [[pair["original"]]]),
            dialect="remem",
            metrics="RetrievalRecallAll@1",
        )
        assert (card.value("RetrievalRecallAll@1") == 1.0) == pair["match"], pair


@pytest.mark.parametrize("rule", ["exact_chunk", "exact_sentence", "rouge_chunk", "rouge_sentence"])
def test_continuous_eval_precision_recall_f1(rule: str) -> None:
    for case in known_answers("retrieval", "continuous_eval_retrieval.json")["rows"]:
        sides = (texts(case["retrieved_context"]), texts(case["ground_truth_context"]))
        card = ee.score(table([sides[0]], [sides[1]]), dialect="continuous-eval", match=rule)
        wanted = case["precision_recall_f1"][rule]
        assert card.to_continuous_eval() == [pytest.approx(wanted, abs=1e-12)], case["name"]


@pytest.mark.parametrize("rule", ["exact_chunk", "rouge_chunk"])
def test_continuous_eval_ranked(rule: str) -> None:
    metrics = ["MAP", "MRR", "nDCG", "TokenCount"]
    for case in known_answers("retrieval", "continuous_eval_retrieval.json")["rows"]:
        wanted = case["ranked"][rule]
        if "error" in wanted:  # without ground truths its nDCG divides by zero; ours is 0
            wanted = {"average_precision": 0.0, "reciprocal_rank": 0.0, "ndcg": 0.0}
        wanted = wanted | case["token_count_approx"]
        sides = (texts(case["retrieved_context"]), texts(case["ground_truth_context"]))
        card = ee.score(
            table([sides[0]], [sides[1]]), dialect="continuous-eval", match=rule, metrics=metrics
        )
        assert card.to_continuous_eval() == [pytest.approx(wanted, abs=1e-12)], case["name"]


def _as_ragas(outcome: dict[str, Any]) -> float:
    """Its value; where it fails, nothing is defined."""
    value = outcome["value"]
    return math.nan if value is None or value == "nan" else value


def test_ragas_ids() -> None:
    for case in known_answers("text", "ragas.json")["id_based_context_pr"]:
        frame = pl.DataFrame({name: [case[name]] for name in list(case)[:2]})
        (found,) = ee.score(frame, dialect="ragas").to_ragas()
        wanted = {
            "id_based_context_precision": _as_ragas(case["precision"]),
            "id_based_context_recall": _as_ragas(case["recall"]),
        }
        assert found == pytest.approx(wanted, abs=1e-12, nan_ok=True), case


def test_ragas_texts() -> None:
    for case in known_answers("text", "ragas.json")["non_llm_context_pr_levenshtein"]:
        sides = ("retrieved_contexts", "reference_contexts")
        frame = pl.DataFrame(
            {name: [case[name]] for name in sides}, schema=dict.fromkeys(sides, TEXTS)
        )
        (found,) = ee.score(frame, dialect="ragas").to_ragas()
        wanted = {
            "non_llm_context_precision_with_reference": _as_ragas(case["precision"]),
            "non_llm_context_recall": _as_ragas(case["recall"]),
        }
        assert found == pytest.approx(wanted, abs=1e-12, nan_ok=True), case


def test_ragas_counts_a_reference_given_twice_twice() -> None:
    frame = table([["Paris is the capital."]], [["Paris is the capital."] * 2 + ["Bananas."]])
    (found,) = ee.score(frame, dialect="ragas").to_ragas()
    assert found["non_llm_context_recall"] == pytest.approx(2 / 3)
