"""Matches and sentences of continuous-eval 0.3.14, chunks of REMem, ragas' similarity.

Chunks on which we differ by default from REMem are named below. Of ragas only the similarity is
compared here: it compares with ">=" for precision and ">" for recall.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from known import known_answers
from retrieval.matching import laid_out, match, one, tables

from evalengine.tasks.retrieval.texts import token_counts
from evalengine.tasks.sentences import sentences_of

FIXED = {"", "Date: 2024-01-01", "user: note: buy milk"}
"""Chunks that the reference finds in texts which they are no part of."""


def rows() -> list[dict[str, Any]]:
    found = known_answers("retrieval", "continuous_eval_retrieval.json")["rows"]
    for row in found:
        for side in ("retrieved_context", "ground_truth_context"):
            if isinstance(row[side], str):  # an expression that makes one long text
                size = int(row[side].split("range(")[1].rstrip(")"))
                row[side] = [" ".join(f"w{i}" for i in range(size))]
    return found


@pytest.mark.parametrize("rule", ["exact_chunk", "exact_sentence", "rouge_chunk", "rouge_sentence"])
def test_continuous_eval(rule):
    for row in rows():
        sides = [row["retrieved_context"]], [row["ground_truth_context"]]
        table = np.array(tables(match(*sides, rule, "continuous-eval"))[0], bool)
        precision, recall = (table.any(axis).mean() if table.size else 0.0 for axis in (1, 0))
        known = row["precision_recall_f1"][rule]
        assert precision == pytest.approx(known["context_precision"], abs=1e-15), row["name"]
        assert recall == pytest.approx(known["context_recall"], abs=1e-15), row["name"]


def test_sentences_of_punkt():
    for row in rows():
        for side, known in (
            ("retrieved_context", row["sentences_retrieved"]),
            ("ground_truth_context", row["sentences_gt"]),
        ):
            if known == "one sentence":
                known = [row[side]]
            found, start = sentences_of(pl.Series(row[side], dtype=pl.String))
            parts = [found[int(a) : int(b)].to_list() for a, b in itertools.pairwise(start)]
            assert parts == known, row["name"]


def test_token_count():
    for row in rows():
        counts = token_counts(*laid_out([row["retrieved_context"]]))
        assert counts.tolist() == [row["token_count_approx"]["num_tokens"]], row["name"]


def test_chunks_of_remem():
    for pair in known_answers("retrieval", "remem_retrieval.json")["is_chunk_from_original"]:
        sides = pair["chunk"], pair["original"]
        assert one(*sides, "chunk_from_original", "remem") == pair["match"], pair
        expected = pair["match"] and pair["chunk"] not in FIXED
        assert one(*sides, "chunk_from_original") == expected, pair


def test_levenshtein_of_ragas():
    for case in known_answers("text", "ragas.json")["string"]:
        known = case["levenshtein"]["value"]
        sides = case["response"], case["reference"]
        for above in (-1e-9, 1e-9):
            limit = min(known + above, 1.0) if above > 0 else known + above
            passes = one(*sides, "levenshtein", "continuous-eval", threshold=limit)
            assert passes == (above < 0 or known == 1.0), case
