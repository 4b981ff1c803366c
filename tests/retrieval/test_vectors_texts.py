"""Recorded values of REMem, continuous-eval and Ragas on texts, in their export formats."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import polars as pl
import pytest
from reference_data import known_answers
from retrieval.matching import one

import evalengine as ee
from evalengine.tasks.encoding import sentences_of

TEXTS = pl.List(pl.String)
EXPRESSION = re.compile(r"' '\.join\(f'w\{i\}' for i in range\((\d+)\)\)")
"""Expression that represents a long text in the recorded files."""


def table(retrieved: list[list[str]], relevant: list[list[str]]) -> pl.DataFrame:
    """Make a table with one row per query."""
    schema = {"retrieved": TEXTS, "relevant": TEXTS}
    return pl.DataFrame({"retrieved": retrieved, "relevant": relevant}, schema=schema)


def texts(value: Any) -> list[str]:
    """Return listed texts, or the long text of an expression."""
    if isinstance(value, list):
        return value
    match = EXPRESSION.fullmatch(value)
    assert match is not None, value
    return [" ".join(f"w{i}" for i in range(int(match[1])))]


def test_remem() -> None:
    compared = 0
    for case in known_answers("retrieval", "remem_retrieval.json")["metrics"]:
        if "error" in case["recall"]:  # without queries it divides by zero
            continue
        golds = case["gold_docs"]  # it drops lists without relevant documents
        lists = table(case["retrieved_chunks"][: len(golds)], golds)
        card = ee.score(lists, dialect="remem", k=case["k_list"])
        pooled, examples = card.to_remem()
        parts = [case[name] for name in ("recall", "recall_all", "ndcg_any")]
        assert pooled == {k: v for part in parts for k, v in part["pooled"].items()}, case["name"]
        wanted = [
            {k: v for row in rows for k, v in row.items()}
            for rows in zip(*(part["examples"] for part in parts), strict=True)
        ]
        assert examples == [pytest.approx(row, abs=1e-12) for row in wanted], case["name"]
        compared += 1
    assert compared == 11


FIXED = {"", "Date: 2024-01-01", "user: note: buy milk"}
"""Chunks that REMem finds in unrelated texts, unlike the standard dialect."""


def test_remem_chunks() -> None:
    for pair in known_answers("retrieval", "remem_retrieval.json")["is_chunk_from_original"]:
        sides = table([[pair["chunk"]]], [[pair["original"]]])
        card = ee.score(sides, dialect="remem", metrics="RetrievalRecallAll@1")
        assert (card.value("RetrievalRecallAll@1") == 1.0) == pair["match"], pair
        expected = pair["match"] and pair["chunk"] not in FIXED
        assert one(pair["chunk"], pair["original"], "chunk_from_original") == expected, pair


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
        if "error" in wanted:  # without ground truths its nDCG divides by zero
            wanted = {"average_precision": 0.0, "reciprocal_rank": 0.0, "ndcg": 0.0}
        wanted = wanted | case["token_count_approx"]
        sides = (texts(case["retrieved_context"]), texts(case["ground_truth_context"]))
        card = ee.score(
            table([sides[0]], [sides[1]]), dialect="continuous-eval", match=rule, metrics=metrics
        )
        assert card.to_continuous_eval() == [pytest.approx(wanted, abs=1e-12)], case["name"]


def _as_ragas(outcome: dict[str, Any]) -> float:
    """Return the value, or NaN if Ragas fails."""
    value = outcome["value"]
    return math.nan if value is None or value == "nan" else value


SHOWN = {
    "id_based_context_pr": ("id_based_context_precision", "id_based_context_recall"),
    "non_llm_context_pr_levenshtein": (
        "non_llm_context_precision_with_reference", "non_llm_context_recall",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHOWN)
def test_ragas(kind: str) -> None:
    """Matching by ids, and by Levenshtein similarity of texts."""
    for case in known_answers("text", "ragas.json")[kind]:
        sides = list(case)[:2]
        dtypes = dict.fromkeys(sides, TEXTS if kind.startswith("non_llm") else None)
        frame = pl.DataFrame({name: [case[name]] for name in sides}, schema=dtypes)
        (ours,) = ee.score(frame, dialect="ragas").to_ragas()
        values = [_as_ragas(case[name]) for name in ("precision", "recall")]
        wanted = dict(zip(SHOWN[kind], values, strict=True))
        assert ours == pytest.approx(wanted, abs=1e-12, nan_ok=True), case


def test_ragas_counts_repeated_references() -> None:
    frame = table([["Paris is the capital."]], [["Paris is the capital."] * 2 + ["Bananas."]])
    (ours,) = ee.score(frame, dialect="ragas").to_ragas()
    assert ours["non_llm_context_recall"] == pytest.approx(2 / 3)


def test_sentences_of_punkt() -> None:
    for row in known_answers("retrieval", "continuous_eval_retrieval.json")["rows"]:
        for side, expected in (
            ("retrieved_context", row["sentences_retrieved"]),
            ("ground_truth_context", row["sentences_gt"]),
        ):
            given = texts(row[side])
            sentences, start = sentences_of(pl.Series(given, dtype=pl.String))
            parts = [sentences[int(a) : int(b)].to_list() for a, b in itertools.pairwise(start)]
            assert parts == ([given] if expected == "one sentence" else expected), row["name"]


def test_levenshtein_of_ragas() -> None:
    """Thresholds around the similarity; Ragas uses ">=" for precision and ">" for recall."""
    for case in known_answers("text", "ragas.json")["string"]:
        similarity = case["levenshtein"]["value"]
        sides = case["response"], case["reference"]
        for above in (-1e-9, 1e-9):
            limit = min(similarity + above, 1.0) if above > 0 else similarity + above
            passes = one(*sides, "levenshtein", "continuous-eval", threshold=limit)
            assert passes == (above < 0 or similarity == 1.0), case
