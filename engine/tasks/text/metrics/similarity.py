"""Semantic similarity."""

from __future__ import annotations

from .parts import metric

METRICS = (
    metric(
        "SemanticSimilarity",
        "semantic_similarity",
        definition="cosine of the vectors of text and reference, of the most similar reference; 1"
        " from the threshold on and else 0 where there is one; mean over datums",
        formula=r"\max_r \frac{u \cdot v_r}{\lVert u \rVert\, \lVert v_r \rVert}",
        source="ragas 0.4.3; Salton & McGill 1983",
        reads=("embedding", "reference_embedding"),
        params=("embedder", "similarity_threshold"),
        aliases=(
            "semantic_similarity",
            "cosine_similarity",
            "embedding_similarity",
            "AnswerSimilarity",
            "answer_similarity",
        ),
        range=(-1.0, 1.0),
    ),
)
