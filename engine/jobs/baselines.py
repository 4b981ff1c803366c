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
    """Numbers of an earlier run.

    Attributes:
        metrics: its metrics frame, or None.
        labels: its labels; None if only its metrics were kept.
        folder: its location, even if it no longer exists.
        finished: its end time, if known.
        run_id: its run id, if known.
        first: whether there is none because no earlier run passed its gates.
        card: its scorecard, if its result still exists.
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
        """Return the data of the baseline that a run keeps for later comparison: metrics, labels,
        tallies.
        """
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
        """Return the numbers for gates; label names are the run's if the baseline's were not
        kept.
        """
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
    """Return the baseline of a run.

    A repeated run keeps its baseline: the last run of that time may have been replaced, and later
    runs do not count. A run whose gates failed passes its baseline on to the run that replaces it:
    if every night uses the same folder, that is the only trace of the last one that passed.

    Args:
        warn: called with warnings.

    Raises:
        ResultError: the named folder contains no result, or no data for gates with ``surely``.
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
    """Return the newest run that passed, or the baseline of a failed run in this folder."""
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
    """Return the baseline that is stored with a run's numbers."""
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
