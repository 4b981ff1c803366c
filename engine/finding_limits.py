"""From tables to how far each number could move by what the tables leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .analysis.limit_table import FoundLimits
from .held_runs import card_of, is_scored, refuse_tables
from .plan import planner
from .plan.limits import FRAME, refuse
from .schemas.errors import ResultError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.wording import option

if TYPE_CHECKING:
    from typing import Unpack

    from .schemas.named import Named


def find_limits(
    run: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> FoundLimits:
    """How far each number could move by what the tables leave open.

    ``ties``: the order of equal scores, in detection of a label and in retrieval of a query.
    ``cap``, in detection: without the cap on detections. ``unjudged``, in retrieval: every
    retrieved document without a judgment, in queries that have some, is given any of the grades
    that the judgments have, or none.

    Args:
        run: predictions, as :func:`score` takes them, or a :class:`Scorecard` or the folder of a
            saved one that was scored with ``limits``.
        ground_truths: of predictions that are not scored yet.
        datums: table of all datums, likewise.
        labels: table or list of declared classes, likewise.
        options: options to start from; those named here win.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.analysis.limit_table.FoundLimits`, whose ``frame`` has a row for each
        number and limit: the columns that tell numbers apart in the ``metrics`` frame, ``value``,
        ``limit`` (String), ``lowest`` and ``highest`` (Float64), and ``bound`` (String), which
        tells what these two are:

        - ``exact``: some choice leads to each, none beyond.
        - ``at most``: none leads beyond, but perhaps none to the end, as of nDCG with several
          grades to give.
        - ``at least``: what was tried; others may lead beyond. In detection where two of the equal
          scores are of one datum, so that what they hit changes as well, or where some hit at one
          IoU threshold and others at another.
        - ``range``: of the metric itself, null where that does not end; nothing more is known.
        - ``unknown``: not even that, both null.

    Raises:
        ResultError: a task without such choices, or a scored run that keeps no limits.
        OptionError: options beside a scored run that are not its own.
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.find_limits("run.txt", "qrels.txt", metrics=["nDCG@10"]).frame  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    if is_scored(run):
        refuse_tables(ground_truths=ground_truths, labels=labels, datums=datums)
    else:
        chosen = chosen.replace(limits=True)
    card = card_of(run, ground_truths, chosen, datums, labels, storage_options, held=False)
    if FRAME not in card.frames:
        refuse(planner.make_plan(card.options, card.task))
        raise ResultError(
            f"the run keeps no limits, and not the rows to compute them from: score it with"
            f" {option('limits', True)}, or give the tables.",
            code="not_kept",
        )
    return FoundLimits(card.frame(FRAME))
