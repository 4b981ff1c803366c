"""The metrics that the tables at hand can carry: those that need scores need a column of them."""

from __future__ import annotations

from ...ingest.frames import Frames
from ...ingest.problems import Note, listing
from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...schemas.wording import option
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The metrics that can be computed, and what to tell about the others.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them; then none is left out silently.

    Raises:
        InputError: metrics that were named need scores, and there are none.
    """
    side = frames.predictions if frames.table is None else frames.table
    if frames.score_labels is not None or "score" in side.columns:
        return metrics, []
    needy = [metric.name for metric in metrics if "scores" in metric.needs]
    if not needy:
        return metrics, []
    names = listing(needy)
    if asked_for:
        raise InputError(
            f"{names}: no column 'score', which {'it needs' if len(needy) == 1 else 'they need'}."
            f" A column with another name is given by {option('columns', {'mine': 'score'})}, one"
            f" column a label by {option('score_columns')}; or leave these metrics out."
        )
    note = Note("no_scores", f"no column 'score': {names} are left out.", len(needy))
    return tuple(metric for metric in metrics if metric.name not in needy), [note]
