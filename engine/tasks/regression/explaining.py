"""The plan of a regression run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: columns that are read.
    """
    return [
        "match     rows of both sides by datum and label key",
        f"tally     {', '.join(sorted(needs))} of every row",
        "sums      exact, over rows with a prediction and a target, each times its weight",
    ]
