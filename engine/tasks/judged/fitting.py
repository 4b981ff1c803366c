"""The metrics of a run: those asked for, or those that the table has verdicts of."""

from __future__ import annotations

from ...inputs.frames import Frames
from ...inputs.problems import Note, count_of, listing
from ...metrics.registry import Metric, has, names
from ...schemas.contract import TABLE
from ...schemas.errors import InputError, did_you_mean
from ...schemas.wording import option
from .encode import metric_names
from .settings import Settings


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The metrics asked for, or all that the table has verdicts of.

    Args:
        metrics: as planned.
        frames: checked tables.
        settings: the run's settings.
        asked_for: whether the user named them.

    Raises:
        InputError: the table has rows, and verdicts of no metric that is known.
    """
    written = frames.sides[TABLE]["metric"].value_counts()
    strange = {
        name: int(n) for name, n in written.sort("metric").iter_rows() if not has("judged", name)
    }
    there = set(metric_names(written["metric"]).values())
    notes = []
    if strange:
        if not there and not asked_for:
            raise InputError(
                f"column 'metric' names no judged metric: {listing(strange)}."
                f"{did_you_mean(next(iter(strange)), names('judged'))} `evalengine metrics --task"
                " judged` lists them; correct the column."
            )
        rows = count_of(sum(strange.values()), "row")
        said = f"{rows} of metrics that are not known left out: {listing(strange)}."
        notes.append(Note("unknown_metrics", said, len(strange)))
    fitting = metrics if asked_for else tuple(metric for metric in metrics if metric.name in there)
    read = {name for metric in fitting for name in metric.params}
    notes += [
        Note("option_not_read", f"{option(name)} is not read by any of the metrics.")
        for name in settings.given
        if name not in read
    ]
    undecided = any(words.ambiguous for words in settings.rules.words.values())
    if settings.penalize_ambiguous and "penalize_ambiguous" in read and not undecided:
        said = "is read by dialects that know undecided verdicts, deepeval's, alone."
        notes.append(Note("option_not_read", f"{option('penalize_ambiguous')} {said}"))
    return fitting, notes
