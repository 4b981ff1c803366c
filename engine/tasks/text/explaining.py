"""The plan of a text run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: names of measures.
    """
    stems = ", stemmed" if settings.use_stemmer else ""
    return [
        f"tokens    ROUGE {settings.rouge_tokenizer}{stems}; BLEU {settings.tokenizer}",
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}",
        "mean      over datums with a prediction and a reference",
    ]
