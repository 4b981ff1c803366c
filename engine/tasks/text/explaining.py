"""The plan of a text run in words."""

from __future__ import annotations

from ...schemas.embedder import Embedding
from .measures import by_vectors
from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: names of measures.
    """
    stems = ", stemmed" if settings.use_stemmer else ""
    vectors = []
    if by_vectors(tuple(needs)):
        embedder = settings.embedder
        by = "of the tables"
        if isinstance(embedder, Embedding):
            by = f"by {embedder.model}, kept in {embedder.cache}"
        elif embedder is not None:
            by = f"by {embedder.name}"
        vectors = [f"vectors   {by}; cosine"]
    return [
        f"tokens    ROUGE {settings.rouge_tokenizer}{stems}; BLEU {settings.tokenizer}",
        *vectors,
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}",
        "mean      over datums with a prediction and a reference",
    ]
