"""The plan of a judged run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: names of measures.
    """
    strict = "; values below the best count as the worst" if settings.strict_mode else ""
    return [
        f"words     made alike by {settings.rules.fold}; judgments of one item vote",
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}{strict}",
        "mean      over datums with a value; the rest is counted by its kind",
    ]
