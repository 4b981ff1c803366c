"""Interface of a task.

Arguments of these names are the same in all tasks:

    frames: checked tables. Encoding and tallying consume them, except their notes.
    settings: those of the run, of the task's type.
    needs: names of what the metrics need tallied.
    requested: the user named the metrics.
    tallies, parts: a tally, and tallies of disjoint sets of datums.
    group: int32 [n_datums], group of each datum, -1 for none; None for a single group.
    weights: int64 [n_datums], multiplicity of each datum in a resample; None for 1.
    column, names, view: slice column (None for the whole set), names of its groups, and their view.
    cuts: need -> requested cut-offs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import polars as pl

from ..dialects import Dialect, TaskSettings
from ..ingest.collecting import Prepared
from ..ingest.frames import Frames
from ..ingest.problems import Note
from ..metrics import Metric
from ..schemas.arrays import Array
from ..schemas.options import Options
from ..tallies.draws import Draws
from ..tallies.stats import Fill
from ..tallies.stored import Place
from .contents import Contents
from .encoding import Workers

if TYPE_CHECKING:
    from ..metrics.thresholds import Curve

# Bounds: how far the numbers of a task could move under choices that tables do not specify.

EXACT, AT_MOST, AT_LEAST = "exact", "at most", "at least"
"""Some choice leads to both ends and none beyond; none leads beyond; some may lead beyond."""
RANGE, UNKNOWN = "range", "unknown"
"""Only the metric's range is known; not even the range is known."""

Facts = dict[str, Any]
"""Facts about a choice, JSON-compatible."""
Bound = Callable[[str], str]
"""From the name of a metric to one of the five words above."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Input for bounds: all rows of some datums.

    Attributes:
        frames: checked tables.
        settings: the run's settings.
        facts: facts of the whole run.
        tallies: tally of these tables.
        run: computes the tally of other tables and settings, without modifying them.
    """

    frames: Frames
    settings: Any
    facts: Facts
    tallies: Any
    run: Callable[[Frames, Any], Any]
    workers: Workers


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that the tables do not specify.

    Its effect is computed per datum, so that bounds of parts combine to those of the whole.

    Attributes:
        name: ties, cap or unjudged.
        why: description of both extremes, half a sentence.
        facts: computes the facts of a part's tables; None if they have no such choice.
        whole: merges the facts of all parts.
        settings: maps the run's settings and facts to those of each extreme.
        extremes: computes the tally at each extreme; bounds are the minimum and maximum over their
            numbers and the run's.
        bound: describes the bounds, from settings, facts and the tallies of the whole; None if
            there is no choice after all.
    """

    name: str
    why: str
    facts: Callable[[Frames, Any], Facts | None]
    whole: Callable[[Sequence[Facts]], Facts]
    settings: Callable[[Any, Facts], tuple[Any, ...]]
    extremes: Callable[[Given], Iterator[Any]]
    bound: Callable[[Any, Facts, Sequence[Any]], Bound | None]


def any_of(facts: Sequence[Facts]) -> Facts:
    """Combine facts with "or"."""
    return {name: any(one[name] for one in facts) for name in facts[0]}


# Task interface. Optional abilities may be None; ``Any`` is used for settings and tallies of tasks.

Needs = frozenset[str]
Cuts = Mapping[str, set[int | None]]
"""Need -> requested cut-offs; None for the whole list."""

Sample = tuple[Any, Any, dict[str, Any]]
"""Predictions, ground truths and options of a tiny run; tables, arrays or None."""

EachView = Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]]
"""Calls a function with slice column, group names and view, for each view."""


class Fit(Protocol):
    """Return the metrics that the tables support, and notes on the others."""

    def __call__(
        self, metrics: tuple[Metric, ...], frames: Frames, settings: Any, *, requested: bool
    ) -> tuple[tuple[Metric, ...], list[Note]]: ...


def as_planned(
    metrics: tuple[Metric, ...], frames: Frames, settings: Any, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """The :class:`Fit` of tasks whose tables carry all metrics."""
    return metrics, []


class View(Protocol):
    """A tally by groups of datums; ``group`` and ``weights`` are arrays of one entry a datum."""

    def __call__(
        self,
        tallies: Any,
        settings: Any,
        group: Any = None,
        n_groups: int = 1,
        weights: Array | None = None,
        threads: Workers | None = None,
    ) -> Any: ...


class OwnFrames(Protocol):
    """Build a frame that does not consist of cells.

    Args:
        frame: its name.
        each_view: calls a function with slice column (None for the whole set), group names and
            view of each, and returns the results in order.
        cuts: need -> requested cut-offs.
    """

    def __call__(
        self, frame: str, tallies: Any, settings: Any, each_view: EachView, *, cuts: Cuts
    ) -> pl.DataFrame: ...


class Merge(Protocol):
    """The tally of parts of disjoint datums, to the bit that of one run over all their rows."""

    def __call__(self, parts: Sequence[Any], settings: Any) -> Any: ...


BytesOnDisk = Callable[
    [Sequence[Metric], Any, Needs, Mapping[str, pl.DataFrame], int], tuple[int, int]
]

NeedsAllRows = Callable[[Prepared, Mapping[str, pl.DataFrame], Any, Options], str]
"""From tables, the first rows of each, settings and options."""


class Scaling(msgspec.Struct, frozen=True):
    """Metrics that scale by the highest value of a column of the whole input.

    Attributes:
        column: the column, for given needs; None if no need scales.
        with_highest: adds that value to settings.
    """

    column: Callable[[Needs], str | None]
    with_highest: Callable[[Any, float], Any]


class LateNotes(msgspec.Struct, frozen=True):
    """Notes that require the merged tally.

    Attributes:
        kinds: notes of single parts that they replace.
        notes: builds the notes of a tally, settings and needs.
    """

    kinds: tuple[str, ...]
    notes: Callable[[Any, Any, Needs], list[Note]]


class MayFit(Protocol):
    """Return the metrics that rows may support, by the distinct values of some columns."""

    def __call__(
        self, metrics: tuple[Metric, ...], needs: Needs, ahead: pl.DataFrame, *, requested: bool
    ) -> tuple[tuple[Metric, ...], bool]: ...


class FitLate(Protocol):
    """:class:`Fit` for tables whose parts are already tallied."""

    def __call__(
        self,
        metrics: tuple[Metric, ...],
        rows: Mapping[str, int],
        settings: Any,
        *,
        requested: bool,
    ) -> tuple[tuple[Metric, ...], list[Note]]: ...


class TallyPart(Protocol):
    """Return the tally of a part, and findings on its rows."""

    def __call__(
        self, frames: Frames, settings: Any, needs: Needs, workers: Workers, *, several: bool
    ) -> tuple[Any, Any]: ...


class Unanswered(msgspec.Struct, frozen=True):
    """Handling of datums with ground truths but without a prediction, which means skip by default.

    Attributes:
        counted: returns the datums that enter means, bool [n_datums].
        leaves: returns True if means skip such datums under the run's settings.
        advice: advice to count them, as the end of a sentence; may be empty.
    """

    counted: Callable[[Any], Array]
    leaves: Callable[[Any], bool] = lambda settings: True
    advice: str = ""


class Ranking(msgspec.Struct, frozen=True):
    """Replacement of scores by ranks within a run, for metrics that depend on their order.

    Attributes:
        by_rank: returns the tally with ranks as scores, from the tally, the run's settings and the
            compared datums, bool [n_datums] or None for all.
        by_value: returns True if a metric depends on score values and not just on their order or on
            earlier decisions, from a tally, the run's settings and the metric.
    """

    by_rank: Callable[[Any, Any, Array | None], Any]
    by_value: Callable[[Any, Any, Metric], bool]


class Common(msgspec.Struct, frozen=True):
    """Restriction of compared runs to datums for which all have a value.

    Attributes:
        values: returns tallies in which a value missing from one run is undefined in all, or
            filled; from the tallies, the index of each datum among those compared (-1 for others)
            and the fill. None if no run is missing a value that another has.
        fills: missing values can be filled.
        ranges: returns the range of a metric from a tally; None for the declared one.
        worst_of_datums: needs of unbounded metrics whose worst value the tally has per datum;
            ``values`` replaces an infinite fill by it.
    """

    values: Callable[[Sequence[Any], Sequence[Array], Fill], list[Any] | None]
    fills: bool = True
    ranges: Callable[[Any, Metric], tuple[float, float]] | None = None
    worst_of_datums: frozenset[str] = frozenset()


class FittedByRows(msgspec.Struct, frozen=True):
    """Functions of tasks whose rows determine the metrics: findings are collected per part.

    Attributes:
        columns: columns whose distinct values are read before parts are tallied.
        may_fit: returns the metrics that these values allow.
        fit: returns the metrics that all parts together support.
        tally: tallies a part.
        findings: type of a part's findings.
        merge: merges the findings of all parts.
        notes: builds notes from findings.
    """

    columns: tuple[str, ...]
    may_fit: MayFit
    fit: FitLate
    tally: TallyPart
    findings: type
    merge: Callable[[Sequence[Any]], Any]
    notes: Callable[[Any, Any, Needs], list[Note]]


class InParts(msgspec.Struct, frozen=True):
    """Functions for tallies whose parts are on disk.

    Attributes:
        things: returns the file entries of a part's tally, by name.
        of_parts: returns the tally of the parts in files.
        bytes_on_disk: bytes of a unit and of a scored row, for metrics, settings, needs, first rows
            by role and the number of slices; None to use :attr:`Task.scratch_row`.
        rows: returns the number of rows of the per-datum frame.
        of_few: yields tallies of a few datums in the order of that frame, with the cut-offs to
            show; None if that frame is built from the whole tally.
        judged: returns an in-memory tally for assessing single datums, from a tally on disk and
            metrics; None if tallies on disk can be used directly.
    """

    things: Callable[[Any, Any, Sequence[Metric]], dict[str, Any]]
    of_parts: Callable[[Sequence[str], Place, Any], Any]
    bytes_on_disk: BytesOnDisk | None = None
    rows: Callable[[Any, Cuts], int] | None = None
    of_few: Callable[[Any, Cuts], Iterator[tuple[Any, Cuts]]] | None = None
    judged: Callable[[Any, Any], Any] | None = None


class PageFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame for the report, built from the tally of a run.

    Attributes:
        name: name in the report.
        metrics: metrics whose rows it contains.
        options: overrides of the run's options, from its tally.
        tallied: the default set tallies the needs of the metrics, which is cheap; otherwise the
            frame is built only if the run's metrics need the same.
        then: converts the rows, with the tally, to those displayed.
    """

    name: str
    metrics: tuple[str, ...]
    options: Callable[[Any], dict[str, Any]] = lambda tallies: {}
    tallied: bool = True
    then: Callable[[pl.DataFrame, Any], pl.DataFrame] | None = None


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """Loss of every single datum.

    Attributes:
        metric: display name of the number; its parameters are in ``made_with``.
        made_with: options of the number, plain values.
        value: float64 [n_datums], NaN if undefined.
        higher: higher values are better.
        best: datums with this value have no error and are not among the worst; None if any may be.
        nothing: replacement for NaN in differences if NaN means "no error"; None if it means
            unknown.
        counted: bool [n_datums], datums whose NaN means "no error", if it means unknown for others.
        ties: sort keys of datums of equal value: for codes int64 [m] columns float64 [m], the first
            key first, higher is worse, NaN last.
        why: for codes int64 [m] a short sentence each.
        weight: float64 [n_datums], weight of each in aggregates; None if equal.
        rows: selects the rows of an errors frame that the number counts, with remarks on the
            others; None if it counts all, or no rows.
        by_score: these rows are listed by score within a datum; otherwise in their order.
    """

    metric: str
    made_with: dict[str, Any] = {}
    value: Array
    higher: bool
    best: float | None = None
    nothing: float | None = None
    counted: Array | None = None
    ties: Callable[[Array], Sequence[Array]]
    why: Callable[[Array], list[str]]
    weight: Array | None = None
    rows: Callable[[pl.DataFrame], tuple[pl.DataFrame, list[str]]] | None = None
    by_score: bool = True


class JudgeDatums(Protocol):
    """The number that judges single datums, from a tally in memory; or why there is none."""

    def __call__(
        self,
        tallies: Any,
        settings: Any,
        metrics: Sequence[Metric],
        dialect: Dialect,
        *,
        cuts: Cuts,
    ) -> Losses | str: ...


class PointsOf(Protocol):
    """The points of every label's curve, or of all labels of a key as one; [group, label] flat."""

    def __call__(self, view: Any, settings: Any, *, pooled: bool) -> Curve: ...


class DrawnCurves(Protocol):
    """Yield the curves of each resample of a block, per label and per key with labels pooled.

    The view is of a tally on disk.
    """

    def __call__(self, view: Any, settings: Any, draws: Draws) -> Iterator[tuple[Curve, Curve]]: ...


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task.

    Attributes:
        name: public name.
        settings: struct of a run's settings.
        fit: returns the metrics that the tables support.
        tally: encodes, matches and counts checked tables.
        merge: merges tallies of parts.
        view: returns a tally by groups of datums, from which metrics are computed.
        cells_per_group: approximate numbers in memory per group, for so many labels, settings and
            needs.
        cells_by_datum: same if each datum is a group, for tallies, settings and needs, int64
            [n_datums]; None if all datums have equally many.
        own_frames: builds frames that do not consist of cells.
        explain: describes the steps of a run.
        samples: tiny runs that use every kernel except those of large tables.
        losses: returns the loss of single datums, for the worst of them.
        contents: contents of single datums for display.
        limits: choices that the tables do not specify, and their effect on numbers.
        no_limits: why there are none, as the end of a sentence; may be empty.
        warm: functions of ``kernels.warm`` for the kernels used only by files and large tables.
        examine: what of ``tally`` can refuse tables or add notes; None if all of it.
        outcome_bytes: returns bytes of a row's outcomes beyond the usual, as they are stored and in
            runs in memory.
        needs_all_rows: returns why the kind of content depends on all rows; empty if the first rows
            suffice.
        scaling: metrics that scale by a value of the whole input.
        late_notes: notes that require the merged tally.
        fitted_by_rows: set if rows determine the metrics.
        by_labels: parts are merged by groups of labels: the tally is ``ranked``.
        drawn: returns the view of a block of resamples, which are its groups; None to compute one
            resample after another.
        one_draw: returns the view of one resample, from a view of a tally in memory and the
            multiplicity of each datum, sharing cached results; None to use ``view``.
        truth: returns a number per datum that differs if its ground truths do, uint64 [n_datums];
            or float64, equal up to rounding if these are numbers, NaN if they are unknown. None if
            the tally does not have them.
        weights: returns the total weight of each datum, float64 [n_datums], or None if all are 1.
        curve: maps a view to the points among which score thresholds are chosen; None without
            scores.
        drawn_curves: same points per resample, for datums whose keys are on disk; None if keys are
            in memory.
        in_parts: functions for tallies in parts on disk.
        unanswered: set if means skip datums without a prediction; None if all datums count.
        common: set if means skip datums without a value; None if every datum has one.
        truths: runs have ground truths, which comparisons require to be the same.
        ranking: replacement of scores by ranks; None without scores.
        page: frames for the report, in addition to the run's frames.
        growth: bytes in memory per byte of input, if large.
        plain_growth: the same, at most, of a run in memory without slices and intervals.
        judge: values are those of a judge, which human labels may correct.
        fairness: name of a criterion -> metrics whose largest difference between groups it is.
        scratch_row: maximum observed bytes on disk of a row, in addition to its columns: rows are
            written as tallies, and these are merged again.
    """

    name: str
    settings: type[TaskSettings]
    tally: Callable[[Frames, Any, Needs, Workers], Any]
    merge: Merge
    view: View
    cells_per_group: Callable[[int, Any, Needs], int]
    cells_by_datum: Callable[[Any, Any, Needs], Array] | None = None
    own_frames: OwnFrames
    explain: Callable[[Any, Needs], list[str]]
    samples: Callable[[], Iterable[Any]]
    losses: JudgeDatums
    contents: Contents
    fit: Fit = as_planned
    limits: tuple[Limit, ...] = ()
    no_limits: str = ""
    warm: tuple[str, ...] = ()
    examine: Callable[[Frames, Any, Needs, Workers], object] | None = None
    outcome_bytes: Callable[[Any, Needs], tuple[int, int]] = lambda settings, needs: (0, 0)
    needs_all_rows: NeedsAllRows | None = None
    scaling: Scaling | None = None
    late_notes: LateNotes | None = None
    fitted_by_rows: FittedByRows | None = None
    by_labels: bool = False
    drawn: Callable[[Any, Draws], Any] | None = None
    one_draw: Callable[[Any, Array], Any] | None = None
    truth: Callable[[Any], Array | None] | None = None
    weights: Callable[[Any], Array | None] = lambda tallies: None
    curve: PointsOf | None = None
    drawn_curves: DrawnCurves | None = None
    in_parts: InParts | None = None
    unanswered: Unanswered | None = None
    common: Common | None = None
    truths: bool = True
    ranking: Ranking | None = None
    page: tuple[PageFrame, ...] = ()
    growth: int | None = None
    plain_growth: float = 5.5
    judge: bool = False
    fairness: Mapping[str, tuple[str, ...]] = {}
    scratch_row: int | None = None
