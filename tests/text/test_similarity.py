"""Semantic similarity of vectors in tables: values, undefined ones, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_data import known_answers
from refusals import noted, refused
from text.scoring import values

import evalengine as ee

NAME = "SemanticSimilarity"


class Table:
    """Embedder with vectors of a few texts."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.known = vectors

    def encode(self, texts: list[str]) -> Any:
        return np.array([self.known[text] for text in texts], float)


def test_ragas_vectors() -> None:
    cases = known_answers("text", "ragas.json")["semantic_similarity"]
    assert len(cases) == 7
    for case in cases:
        if "embeddings" in case:
            card = ee.score(
                {"text": [case["response"]], "reference": [case["reference"]]},
                metrics=NAME,
                embedder=Table(case["embeddings"]),
            )
        else:
            card = ee.score(
                {
                    "embedding": [case["response_embedding"]],
                    "reference_embedding": [case["reference_embedding"]],
                },
                similarity_threshold=case["threshold"],
            )
        (result,) = values(card, NAME)
        if case["value"] == "nan":
            assert result is None
            assert card.per_datum["status"].to_list() == ["zero_vector"]
            assert card.metrics["reason"][0].endswith("all zeros")
        elif case.get("threshold") == 0.0:
            assert case["value"] == 0.0  # ragas treats a threshold of 0 as none
            assert result == 1.0
        else:
            assert result == pytest.approx(case["value"], abs=1e-12)


@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(-1e150, 1e150), min_size=3, max_size=3),
            st.lists(
                st.lists(st.floats(-1e-150, 1e-150), min_size=3, max_size=3), min_size=1, max_size=3
            ),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_best_cosine(rows: list[tuple[list[float], list[list[float]]]]) -> None:
    table = {"embedding": [a for a, _ in rows], "reference_embedding": [b for _, b in rows]}
    result = values(ee.score(table, task="text"), NAME)
    for (ours, references), value in zip(rows, result, strict=True):
        defined = [one for one in (_cosine(ours, other) for other in references) if one is not None]
        assert (value is None) == (not defined)
        if defined:
            assert value == pytest.approx(max(defined), abs=1e-12)


def _cosine(a: list[float], b: list[float]) -> float | None:
    if not any(a) or not any(b):
        return None
    a, b = ([x / max(map(abs, one)) for x in one] for one in (a, b))
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.hypot(*a) * math.hypot(*b))


@pytest.mark.parametrize("dtype", [pl.List(pl.Float32), pl.Array(pl.Float64, 2), pl.List(pl.Int8)])
def test_forms_of_columns(dtype: pl.DataType) -> None:
    ours, theirs = [[1, 0], [3, 4], [0, 0]], [[1, 0], [4, 3], [1, 1]]
    table = pl.DataFrame(
        {"embedding": ours, "reference_embedding": theirs},
        schema={"embedding": dtype, "reference_embedding": dtype},
    )
    assert values(ee.score(table), NAME) == [1.0, 0.96, None]
    left = pl.DataFrame(
        {"datum_id": ["a", "b", "c"], "vector": ours}, schema_overrides={"vector": dtype}
    )
    right = pl.DataFrame(
        {"datum_id": ["c", "b", "a", "b"], "embedding": [*theirs[::-1], [0, 1]]},
        schema_overrides={"embedding": dtype},
    )
    card = ee.score(left, right)
    assert card.task == "text"
    assert values(card, NAME) == [1.0, 0.96, None]


def test_means_slices_and_coverage(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "embedding": [[1.0, 0.0], [1.0, 2.0], [0.0, 0.0], [3.0, 4.0]],
            "reference_embedding": [[[1.0, 0.0]], [[2.0, 1.0], [0.0, 0.0]], [[1.0, 0.0]], []],
            "half": ["a", "a", "b", "b"],
        }
    )
    card = ee.score(table, by="half")
    assert card.value(NAME) == pytest.approx(0.9)
    assert card.value(NAME, slice="half", slice_value="a") == pytest.approx(0.9)
    row = card.metrics.filter(pl.col("slice_value") == "b").row(0, named=True)
    assert (row["value"], row["support"], row["scored"]) == (None, 1, 0)
    assert row["reason"].endswith("all zeros")
    assert card.per_datum["status"].to_list() == [
        "scored", "scored", "zero_vector", "no_reference",
    ]  # fmt: skip
    above = ee.score(table, similarity_threshold=0.8)
    assert values(above, NAME) == [1.0, 1.0, None, None]
    assert json.loads(above.metrics["parameters"][0]) == {"similarity_threshold": 0.8}
    card.save(tmp_path / "run")
    assert ee.load(tmp_path / "run").value(NAME) == card.value(NAME)


def test_texts_and_vectors_in_one_table() -> None:
    table = pl.DataFrame(
        {
            "text": ["a b", "c"],
            "reference": [["a b", "x"], ["d"]],
            "embedding": [[1.0, 0.0], [0.0, 1.0]],
            "reference_embedding": [[1.0, 0.0], [0.0, 1.0]],
        }
    )
    card = ee.score(table)
    assert card.value("ROUGE1") == 0.5
    assert card.value(NAME) == 1.0
    broken = table.with_columns(embedding=pl.Series([[1.0, math.nan], [0.0, 1.0]]))
    assert ee.score(broken, metrics="ROUGE1").value("ROUGE1") == 0.5  # not read at all
    assert set(ee.score(table, metrics="cosine_similarity").metrics["metric"]) == {NAME}


def test_null_vectors_skipped() -> None:
    table = pl.DataFrame(
        {
            "embedding": [[1.0], None, [1.0]],
            "reference_embedding": [[[2.0]], [[1.0]], [[3.0], None]],
        }
    )
    with refused("null_in_list", column="reference_embedding", count=1):
        ee.score(table)
    with refused("null_values", column="embedding", count=1):
        ee.score(table)
    assert values(ee.score(table, nulls="skip"), NAME) == [1.0, None, 1.0]


@pytest.mark.parametrize(
    ("ours", "code", "rows"),
    [
        ([[1.0, 2.0], [1.0, math.nan]], "not_finite", [1]),
        ([[1.0, 2.0], [1.0, math.inf]], "not_finite", [1]),
        ([[None, 2.0], [1.0, 2.0]], "not_finite", [0]),
        ([[1.0, 2.0], [1.0, 2.0, 3.0]], "wrong_length", [1]),
        ([[1.0, 2.0], []], "wrong_length", [1]),
        ([[], []], "wrong_length", [0, 1]),
        ([[1.0, 2.0], None], "null_values", [1]),
        (["a", "b"], "wrong_dtype", None),
    ],
)  # fmt: skip
def test_refusals(ours: Any, code: str, rows: list[int] | None) -> None:
    facts = {"column": "embedding"} | ({"rows": rows, "count": len(rows)} if rows else {})
    table = pl.DataFrame({"datum_id": ["a", "b"], "embedding": ours}, strict=False)
    theirs = table.with_columns(embedding=pl.Series([[1.0, 2.0], [1.0, 2.0]]))
    with refused(code, **facts):
        ee.score(table, theirs, task="text")
    both = table.with_columns(reference_embedding=theirs["embedding"])
    with refused(code, **facts):
        ee.score(both, task="text")


def test_sides_that_do_not_fit() -> None:
    three = {"embedding": [[1.0, 0.0, 0.0]], "reference_embedding": [[1.0, 0.0]]}
    with refused("lengths_differ", counts=[3, 2]):
        ee.score(three)
    with refused("mixed_sides"):
        ee.score({"text": ["a"], "reference_embedding": [[1.0]]}, task="text", nulls="refuse")
    with refused("metric_unfit", metrics=["SemanticSimilarity"]):
        ee.score({"text": ["a"], "reference": ["a"]}, metrics=[NAME])
    with refused("option_value", option="similarity_threshold", value=1.5):
        ee.score(three, similarity_threshold=1.5)
    card = ee.score({"text": ["a"], "reference": ["a"]}, similarity_threshold=0.5)
    noted(card, "option_not_read", option="similarity_threshold")
