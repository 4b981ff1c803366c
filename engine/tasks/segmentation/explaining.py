"""The plan of a segmentation run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: what must be tallied.
    """
    left = [
        f"{name} {index}"
        for name, index in (
            ("ignored index", settings.ignore_index),
            ("background", settings.background),
        )
        if index is not None
    ]
    grid = "resampled to the ground truth's grid" if settings.resample else "on one grid"
    return [
        f"match     pixel by pixel, {grid}; {', '.join(left) or 'every index a label'}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        f"mean      over labels that are {settings.rules.means} (mIOU), per label key",
    ]
