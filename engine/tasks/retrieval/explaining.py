"""The plan of a retrieval run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: names of measures.
    """
    rule = settings.match or f"{settings.default_match} (texts), equality (ids)"
    over = "all judged queries" if settings.complete else "queries in both tables"
    return [
        f"match     {rule}; equal scores by {settings.ties}",
        f"tally     {len(needs)} measures a query: {', '.join(sorted(needs))}",
        f"mean      over {over}",
    ]
