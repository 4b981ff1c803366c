"""Implementation of ``find_limits``."""

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
    """Compute how far each number could move under choices that the tables do not determine.

    ``ties``: the order of equal scores, per label in detection and per query in retrieval. ``cap``,
    in detection: without the cap on detections. ``unjudged``, in retrieval: every retrieved
    document without a judgment, in queries that have some, gets any of the grades that occur in the
    judgments, or no grade.

    Args:
        run: predictions, as :func:`score` takes them, or a :class:`Scorecard` or the folder of a
            saved one that was scored with ``limits``.
        ground_truths: if the run is predictions.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.analysis.limit_table.FoundLimits`, whose ``frame`` has one row per number
        and kind of choice: the key columns of the ``metrics`` frame, ``value``, ``limit`` (String),
        ``lowest`` and ``highest`` (Float64), and ``bound`` (String), which qualifies these two:

        - ``exact``: both are reached and never passed.
        - ``at most``: never passed, but perhaps not reached, such as nDCG with several possible
          grades.
        - ``at least``: the extremes of the choices tried; others may go further. In detection if
          two equal scores belong to one datum, so that their matches change as well, or if some hit
          at one IoU threshold and others at another.
        - ``range``: the range of the metric itself, null if unbounded; no tighter bound is known.
        - ``unknown``: both are null.

    Raises:
        ResultError: a task without such choices, or a scored run without limits.
        OptionError: options that contradict those of a scored run.
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
