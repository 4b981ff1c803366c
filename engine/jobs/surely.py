"""Data for gates with ``surely``: intervals of numbers and of differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from .. import tasks
from ..comparing import margins
from ..held_runs import tallied_of
from ..schemas.errors import OptionError, ResultError
from ..schemas.intervals import LEVEL
from ..schemas.options import Options
from ..schemas.results import frame_schema
from ..scorecard.card import Scorecard
from ..scorecard.lookup import KEYS
from ..scorecard.storage import kept_bytes
from ..statistics.comparison import Comparison
from ..statistics.margins import Margins, apart
from .gates import Gate
from .verdicts import Compare, Numbers

_ASKED = ("draws", "seed", "method", "cluster")


def with_intervals(options: Options, gates: Sequence[Gate]) -> Options:
    """Add intervals to the options of a run, if gates need them and they were not requested."""
    wanted = [gate for gate in gates if gate.surely]
    if options.drawn or not wanted:
        return options
    given = any(getattr(options, name) is not None for name in _ASKED)
    own = given or not all(gate.needs_baseline for gate in wanted)
    return options.replace(intervals=LEVEL) if own else options


def needing_margins(gates: Sequence[Gate]) -> list[Gate]:
    """Gates that are about the difference to a baseline and its interval."""
    return [gate for gate in gates if gate.surely and gate.needs_baseline]


def refuse_workers(gates: Sequence[Gate], executor: str | None) -> None:
    """Refuse gates on differences for runs by workers, before any work.

    Raises:
        OptionError: the tallies stay with the workers.
    """
    needing = needing_margins(gates)
    if needing and executor not in (None, "threads"):
        raise OptionError(
            f"gate {needing[0].text!r}: with executor {executor!r} what comparing needs is not"
            " kept: score in memory, or leave surely out.",
            code="options_conflict",
            options=["executor", "surely"],
        )


def can_be_compared(earlier: Scorecard) -> bool:
    """Return whether a result has its tallies."""
    return earlier.tallied is not None or (
        earlier.folder is not None and kept_bytes(earlier.folder) > 0
    )


def hold(gates: Sequence[Gate], earlier: Scorecard) -> None:
    """Load a baseline's data for gates before any work: its folder may be replaced by the run.

    Raises:
        ResultError: it has no tallies for comparison.
    """
    _ = earlier.metrics
    needing = needing_margins(gates)
    if needing and not can_be_compared(earlier):
        raise ResultError(f"gate {needing[0].text!r}: {unkept(earlier)}", code="not_kept")
    if needing or (keeping(gates, earlier.task) and can_be_compared(earlier)):
        earlier.tallied = tallied_of("the baseline", earlier)


def answer_apart(earlier: Scorecard | None, card: Scorecard) -> bool | None:
    """Return whether the means of a run and its baseline are over different datums.

    Their numbers are then not comparable, and gates use the common datums. None if a run does not
    have the required tallies.
    """
    if earlier is None or earlier.task != card.task or not _leaves_out(card.task):
        return False
    if not can_be_compared(earlier) or not can_be_compared(card):
        return None
    return apart(tallied_of("the baseline", earlier), tallied_of("this run", card))


def _leaves_out(task: str) -> bool:
    does = tasks.get(task)
    return does.unanswered is not None or does.common is not None


def keeping(gates: Sequence[Gate], task: str) -> bool:
    """Return whether gates need the tallies of a baseline, or are better with them."""
    about = any(gate.needs_baseline for gate in gates)
    return bool(needing_margins(gates)) or (about and _leaves_out(task))


def unkept(earlier: Scorecard | None) -> str:
    """Why a baseline has no difference with an interval, and the way out."""
    where = f" {earlier.folder}" if earlier is not None and earlier.folder is not None else ""
    return (
        f"the baseline{where} keeps nothing to compare"
        " with (its tally was too large, or an earlier version made it): score"
        " it again, or leave surely out."
    )


def compare_with(earlier: Scorecard | None, card: Scorecard) -> Compare:
    """Return a function that computes intervals of a run's differences to its baseline.

    Args:
        earlier: the baseline, if its result still exists.
    """

    def compare(metrics: Collection[str], slices: Collection[str]) -> Margins | str:
        if earlier is None or not can_be_compared(earlier):
            return unkept(earlier)
        if not can_be_compared(card):
            raise ResultError(
                "a gate with baseline and surely: this run does not keep what comparing needs, as"
                " its tally is too large: score it in memory, or leave surely out.",
                code="not_kept",
            )
        return margins(earlier, card, metrics=metrics, by=slices)

    return compare


def refuse_own_intervals(gates: Sequence[Gate]) -> None:
    """Refuse gates of comparisons on the interval of a single number.

    Raises:
        OptionError: a comparison has only intervals of differences.
    """
    for gate in gates:
        if gate.surely and not gate.needs_baseline:
            raise OptionError(
                f"gate {gate.text!r}: a comparison has intervals of differences alone: write"
                f" {gate.operator} baseline - 0.01 surely, or gate the number where the run is"
                " scored.",
                code="gate_unfit",
            )


def compared_numbers(
    comparison: Comparison, labels: pl.DataFrame | None
) -> tuple[Numbers, Numbers, Margins]:
    """Return the numbers of both runs of a comparison, and their differences, for gates.

    Args:
        labels: names of labels, if known.
    """
    rows = comparison.differences
    if labels is None:
        labels = rows.select("label_key", "label_value").drop_nulls().unique(maintain_order=True)
        labels = labels.with_columns(pl.lit(None, pl.String).alias("label_name"))
    empty = frame_schema("metrics", label=rows.schema["label_value"])

    def of(column: str) -> Numbers:
        found = rows.select(
            *(
                pl.col(column).alias("value")
                if name == "value"
                else pl.col(name)
                if name in ("metric", "support", *KEYS)
                else pl.lit(None, dtype).alias(name)
                for name, dtype in empty.items()
            )
        )
        return Numbers(
            comparison.task,
            found,
            labels,
            comparison.dialect,
            datums=lambda column, value: comparison.n if column is None else None,
        )

    return of("a"), of("b"), Margins(rows, comparison.level)
