"""Metrics of both sides, compared with their definition in plain Python."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalengine as ee

WORDS = st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=4)
REFERENCE = st.fixed_dictionaries({"response": WORDS, "reference": WORDS})
DATUMS = st.lists(st.lists(REFERENCE, min_size=1, max_size=3), min_size=1, max_size=5)


def answer_correctness(tp: int, fp: int, fn: int, beta: float) -> float | None:
    return tp / (tp + 0.5 * (fp + fn)) if tp else 0.0


def factual_correctness(tp: int, fp: int, fn: int, beta: float) -> float | None:
    below = (1 + beta**2) * tp + beta**2 * fn + fp
    return (1 + beta**2) * tp / below if below else None


FORMULAS = {"AnswerCorrectness": answer_correctness, "FactualCorrectness": factual_correctness}


def rows_of(metric: str, datums: list[list[dict[str, list[str]]]]) -> list[dict[str, Any]]:
    return [
        {
            "datum_id": datum,
            "metric": metric,
            "reference_index": place,
            "step": step,
            "item_index": item,
            "verdict": word,
        }
        for datum, references in enumerate(datums)
        for (place, sides), step in product(enumerate(references), ("response", "reference"))
        for item, word in enumerate(sides[step])
    ]


@settings(max_examples=12)
@given(DATUMS, st.sampled_from(list(FORMULAS)), st.sampled_from([0.5, 1.0, 2.0]), st.randoms())
def test_the_best_ground_truth_counts(datums, metric, beta, random):
    rows = rows_of(metric, datums)
    random.shuffle(rows)
    card = ee.score(pl.DataFrame(rows), task="judged", beta=beta)
    results = dict(card.per_datum.select("datum_id", "value").iter_rows())
    for datum, references in enumerate(datums):
        values = [
            FORMULAS[metric](
                sides["response"].count("yes"),
                sides["response"].count("no"),
                sides["reference"].count("no"),
                beta,
            )
            for sides in references
        ]
        defined = [value for value in values if value is not None]
        assert results[datum] == (pytest.approx(max(defined)) if defined else None)
