"""The plan of a classification run in words."""

from __future__ import annotations

from .settings import Settings

_STEPS = {
    "hard": "hard predictions (argmax, or the predicted column) against truths",
    "scores": "scored labels against truths, sorted once per label",
    "probabilities": "log loss, Brier and calibration sums per datum",
    "ranks": "rank of the true label per datum",
}


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: what must be tallied.
    """
    lines = [f"match     {said}" for need, said in _STEPS.items() if need in needs]
    lines.append(
        f"tally     {len(settings.score_thresholds)} score thresholds,"
        f" {'several labels' if settings.multilabel else 'one label'} a datum and key"
    )
    return lines
