"""The earlier run that gates speak of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from ..schemas.errors import ResultError
from ..scorecard.card import Scorecard, load
from .loading import LAST, LoadedJob
from .records import BASELINE_FILE, BASELINE_FOLDER, Success, last_passed, read_success
from .surely import can_be_compared, hold, keeping, needing_margins, unkept
from .verdicts import PASSED, Numbers


class Baseline(msgspec.Struct, frozen=True):
    """An earlier run's numbers.

    Attributes:
        metrics: its metrics frame; None where there is none.
        labels: its labels; None where only its metrics were kept.
        folder: where it stands, or stood.
        finished: when it was finished, where that is known.
        run_id: its run id, where that is known.
        first: whether there is none because no earlier run passed its gates.
        card: it, where its result still stands.
    """

    metrics: pl.DataFrame | None = None
    labels: pl.DataFrame | None = None
    folder: str | None = None
    finished: str | None = None
    run_id: str | None = None
    first: bool = False
    card: Scorecard | None = None

    @property
    def kept(self) -> Scorecard | None:
        """What a run keeps of it to be compared with again: metrics, labels and what made them."""
        card = self.card
        if card is None or not can_be_compared(card):
            return None
        return Scorecard(
            task=card.task,
            dialect=card.dialect,
            options=card.options,
            frames={"metrics": lambda: card.metrics},
            labels=card.labels,
            run=card.run,
            directions=card.directions,
            read=card.read,
            folder=card.folder,
        )

    def numbers(self, card: Scorecard) -> Numbers | None:
        """What gates look at; label names are the run's own where the baseline's were not kept."""
        if self.metrics is None:
            return None
        labels = card.labels if self.labels is None else self.labels
        return Numbers(card.task, self.metrics, labels)


def baseline_of(
    loaded: LoadedJob,
    folder: Path,
    run_id: str,
    before: Success | None,
    warn: Callable[[str], None],
) -> Baseline:
    """The baseline of a run.

    A run that is repeated keeps the baseline it had: what was the last run then may since have
    been replaced, and runs that came later are no earlier ones. A run whose gates failed hands its
    own baseline on to the run that takes its place: where every night has the same folder, that is
    all there is of the last one that passed.

    Args:
        loaded: the job.
        folder: the run's.
        run_id: the run's.
        before: the mark in its folder, of this run or another.
        warn: called with what is worth a warning.

    Raises:
        ResultError: the named folder holds no result, or not what gates with ``surely`` need.
    """
    found = _baseline_of(loaded, folder, run_id, before, warn)
    if found.card is not None and keeping(loaded.gates, found.card.task):
        if loaded.job.baseline != LAST:
            hold(loaded.gates, found.card)
        elif needing_margins(loaded.gates) and not can_be_compared(found.card):
            warn(unkept(found.card))
    return found


def _baseline_of(
    loaded: LoadedJob,
    folder: Path,
    run_id: str,
    before: Success | None,
    warn: Callable[[str], None],
) -> Baseline:
    wanted = loaded.job.baseline
    if wanted is None:
        return Baseline()
    if before is not None and (before.run_id, before.baseline) == (run_id, wanted):
        if before.baseline_folder is None:
            return Baseline(first=True)
        kept = folder / BASELINE_FILE
        if kept.is_file():
            return _kept(folder, before)
    if wanted == LAST:
        return _last(loaded, folder, run_id, before, warn)
    card = load(loaded.beside(wanted))
    success = read_success(Path(loaded.beside(wanted)))
    finished, its_id = (None, None) if success is None else (success.finished, success.run_id)
    return Baseline(card.metrics, card.labels, loaded.beside(wanted), finished, its_id, card=card)


def _last(
    loaded: LoadedJob,
    folder: Path,
    run_id: str,
    before: Success | None,
    warn: Callable[[str], None],
) -> Baseline:
    """The newest run that passed, or the one that a failed run in this folder was held against."""
    until = before.finished if before is not None and before.run_id == run_id else None
    found = last_passed(loaded.matching(loaded.earlier), loaded.job.name, run_id, until, warn)
    if (
        before is not None
        and (before.job, before.baseline) == (loaded.job.name, LAST)
        and before.gates != PASSED
        and before.baseline_folder is not None
        and (folder / BASELINE_FILE).is_file()
        and (found is None or (before.baseline_finished or "") > found[1].finished)
    ):
        if before.baseline_id != run_id:
            return _kept(folder, before)
        warn("the last run that passed is this one, which cannot be its own baseline")
    if found is None:
        return Baseline(first=True)
    card = load(found[0])
    success = found[1]
    return Baseline(
        card.metrics, card.labels, str(found[0]), success.finished, success.run_id, card=card
    )


def _kept(folder: Path, before: Success) -> Baseline:
    """The baseline that stands beside a run's numbers."""
    metrics = _read(folder / BASELINE_FILE)
    kept = folder / BASELINE_FOLDER
    return Baseline(
        metrics,
        None,
        before.baseline_folder,
        before.baseline_finished,
        before.baseline_id,
        card=load(kept) if kept.is_dir() else None,
    )


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ResultError(f"{path} cannot be read: {error}.") from error
