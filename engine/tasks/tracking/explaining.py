"""The plan of a tracking run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: what must be tallied.
    """
    at = settings.overlap
    lines = {
        "hota": f"match     HOTA: one assignment a frame, at {len(settings.alphas)} IoU thresholds",
        "clear": f"match     CLEAR: IoU of {at:g} or more, pairs of the frame before first",
        "identity": f"match     identity: one track an object, IoU of {at:g} or more",
        "events": "list      what became of every box",
    }
    told = [line for need, line in lines.items() if need in needs]
    return [*told, "tally     by sequence and label", "sum       over sequences and labels"]
