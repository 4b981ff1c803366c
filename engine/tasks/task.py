"""What a task is to the rest of the engine: one struct, whose fields are all that is called of it.

What only some tasks can do is a field that is None for the others. ``Any`` stands for what is a
task's own: its settings, its tallies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import polars as pl

from ..dialects import Dialect
from ..ingest.collecting import Prepared
from ..ingest.frames import Frames
from ..ingest.problems import Note
from ..metrics import Metric
from ..schemas.options import Options
from ..tally.common_values import Fill
from ..tally.draws import Draws
from ..tally.parts import Place
from .contents import Contents
from .limits import Limit
from .workers import Workers

if TYPE_CHECKING:
    from ..metrics.thresholds import Curve

Array = np.ndarray[Any, Any]
Needs = frozenset[str]
Cuts = Mapping[str, set[int | None]]
"""Need -> cut-offs at which it is wanted; None stands for the whole list."""

Sample = tuple[pl.DataFrame, pl.DataFrame | None, dict[str, Any]]
"""Predictions, ground truths and options of a tiny run."""

EachView = Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]]
"""Calls a function with slice column, group names and view, for each view."""


class Fit(Protocol):
    """Which metrics the tables can carry, and what is said of the others."""

    def __call__(
        self, metrics: tuple[Metric, ...], frames: Frames, settings: Any, *, asked_for: bool
    ) -> tuple[tuple[Metric, ...], list[Note]]: ...


def as_planned(
    metrics: tuple[Metric, ...], frames: Frames, settings: Any, *, asked_for: bool
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
    """A frame that is not made of cells.

    Args:
        frame: its name.
        tallies: what the run left behind.
        settings: the run's settings.
        each_view: calls a function with slice column (None for the whole set), group names and
            view of each, and returns the results in order.
        cuts: need -> the cut-offs at which it is wanted.
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
        column: which, of what is needed; None where nothing scales.
        with_highest: settings that know that value.
    """

    column: Callable[[Needs], str | None]
    with_highest: Callable[[Any, float], Any]


class LateNotes(msgspec.Struct, frozen=True):
    """Notes that only the merged tally can tell.

    Attributes:
        kinds: of notes of single parts that they take the place of.
        notes: of a tally.
    """

    kinds: tuple[str, ...]
    notes: Callable[[Any], list[Note]]


class MayFit(Protocol):
    """Which metrics rows may carry, by the distinct values of some columns; and what else."""

    def __call__(
        self, metrics: tuple[Metric, ...], needs: Needs, ahead: pl.DataFrame, *, asked_for: bool
    ) -> tuple[tuple[Metric, ...], bool]: ...


class FitLate(Protocol):
    """What :class:`Fit` tells, of tables whose parts are tallied already."""

    def __call__(
        self,
        metrics: tuple[Metric, ...],
        rows: Mapping[str, int],
        settings: Any,
        *,
        asked_for: bool,
    ) -> tuple[tuple[Metric, ...], list[Note]]: ...


class TallyPart(Protocol):
    """The tally of a part, and what was found in its rows."""

    def __call__(
        self, frames: Frames, settings: Any, needs: Needs, workers: Workers, *, several: bool
    ) -> tuple[Any, Any]: ...


class Unanswered(msgspec.Struct, frozen=True):
    """Datums with ground truths and without a prediction leave means, where options say no other.

    Attributes:
        counted: of a tally the datums that enter means, bool [n_datums].
        leaves: whether such datums leave means, by the run's settings.
        way: what counts them, as the end of a sentence; empty where nothing does.
    """

    counted: Callable[[Any], Array]
    leaves: Callable[[Any], bool] = lambda settings: True
    way: str = ""


class Ranking(msgspec.Struct, frozen=True):
    """Scores as ranks within a run, for metrics that depend on the order of scores.

    Attributes:
        by_rank: the tally with ranks in place of scores; from the tally, the run's settings and
            the datums that are compared, bool [n_datums] or None for all.
        by_value: whether a metric depends on the values of scores, and not only on their order or
            on what was decided before; from a tally, the run's settings and the metric.
    """

    by_rank: Callable[[Any, Any, Array | None], Any]
    by_value: Callable[[Any, Any, Metric], bool]


class Common(msgspec.Struct, frozen=True):
    """Means leave out datums without a value, so that runs are compared over those that all have.

    Attributes:
        values: tallies of all runs in which each value is undefined that some run has not, or
            filled; from the tallies, the place of each datum among those compared (-1 for others)
            and the fill. None if no run lacks a value that another has.
        fills: whether missing values can be filled.
    """

    values: Callable[[Sequence[Any], Sequence[Array], Fill], list[Any] | None]
    fills: bool = True


class ToldByRows(msgspec.Struct, frozen=True):
    """Tasks whose rows say which metrics they carry: parts tell what they found.

    Attributes:
        columns: whose distinct values are looked at before parts are tallied.
        may_fit: the metrics that these values allow.
        fit: the metrics that all parts together carry.
        tally: of a part.
        findings: type of what a part found.
        together: the findings of all parts.
        notes: what is said of them.
    """

    columns: tuple[str, ...]
    may_fit: MayFit
    fit: FitLate
    tally: TallyPart
    findings: type
    together: Callable[[Sequence[Any]], Any]
    notes: Callable[[Any, Any, Needs], list[Note]]


class InParts(msgspec.Struct, frozen=True):
    """How a tally is made and seen whose parts stay in files.

    Attributes:
        things: what is written of the tally of a part, by name.
        of_parts: the tally whose parts the files are.
        bytes_on_disk: of a unit and of a scored row, for metrics, settings, needs, first rows by
            role and the number of slices; None where :attr:`Task.scratch_row` tells.
        shown: how many rows the frame of single datums has.
        of_few: the tally of a few datums after the other, in the order of that frame, with the
            cut-offs to show; None where that frame is made of the whole tally.
        judged: of a tally that single datums are judged from, and of metrics: the same in memory,
            where it is in files; None where those of files are judged as they are.
    """

    things: Callable[[Any, Any, Sequence[Metric]], dict[str, Any]]
    of_parts: Callable[[Sequence[str], Place, Any], Any]
    bytes_on_disk: BytesOnDisk | None = None
    shown: Callable[[Any, Cuts], int] | None = None
    of_few: Callable[[Any, Cuts], Iterator[tuple[Any, Cuts]]] | None = None
    judged: Callable[[Any, Any], Any] | None = None


class PageFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame that the report draws from, made of the tally of a run.

    Attributes:
        name: of the frame, as the report knows it.
        metrics: whose rows it holds.
        options: those that are not the run's, from its tally.
        tallied: whether the default set tallies what the metrics need, since that costs next to
            nothing; else the frame is made where the run's own metrics need it too.
        then: from the rows to those that are drawn.
    """

    name: str
    metrics: tuple[str, ...]
    options: Callable[[Any], dict[str, Any]] = lambda tallies: {}
    tallied: bool = True
    then: Callable[[pl.DataFrame], pl.DataFrame] | None = None


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """What every single datum is judged by.

    Attributes:
        metric: the number, by the name that people are told; what it was made with stands in
            ``made_with``.
        made_with: options of the number, plain values.
        value: float64 [n_datums], NaN where undefined.
        higher: whether higher values are better.
        best: datums with this value have nothing wrong, and are not among the worst; None where
            any may be.
        nothing: what NaN counts as in a change, where it says that nothing is wrong; None where it
            says that nothing is known.
        counted: bool [n_datums], whose NaN says that nothing is wrong, where others may have it
            because nothing is known.
        ties: what orders datums of equal value: for codes int64 [m] columns float64 [m], the first
            deciding first, higher ones worse, NaN the least.
        why: for codes int64 [m] a short sentence each.
        weight: float64 [n_datums], how much each counts in numbers of many; None for all alike.
        rows: of a frame of rows of errors those that the number counts, and what is told of the
            others; None where it counts them all, or none.
        by_score: whether these are listed by score, of one datum; else as they stand.
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
    """The curves of each draw of a block, of labels and of all labels of a key as one, from a view
    of a tally in files; None where they cannot be had."""

    def __call__(
        self, view: Any, settings: Any, draws: Draws
    ) -> Iterator[tuple[Curve, Curve]] | None: ...


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task.

    Attributes:
        name: what users write.
        settings: the options with every default of the dialect filled in.
        default_metrics: what is computed unless metrics are named.
        fit: which metrics the tables can carry.
        tally: encode, match and count checked tables.
        merge: tallies of parts.
        view: a tally by groups of datums, which metrics are computed from.
        cells_per_group: about how many numbers are held for one group.
        own_frames: frames that are not made of cells.
        explain: the steps of a run in words.
        samples: tiny runs that reach every kernel but those of large tables.
        losses: what single datums are judged by, for the worst of them.
        contents: what single datums hold, for people to look at.
        limits: choices that the tables leave open, and how far they move numbers.
        no_limits: why there are none, as the end of a sentence; empty where nothing is to be said.
        warm_large: runs the kernels that only large tables reach.
        examine: looks for what only encoding finds, and adds notes to the frames.
        needs_all_rows: why only all rows together tell what tables hold; empty where the first
            ones do.
        scaling: metrics that scale by a value of the whole input.
        late_notes: what only the merged tally tells.
        told_by_rows: rows say which metrics they carry.
        by_labels: whether parts are merged by groups of labels: the tally is ``ranked``.
        drawn: the view of a block of draws of a view's datums, whose groups are draws; None where
            numbers of draws are computed one draw after the other.
        one_draw: the view of one draw, from a view of a tally in memory and how often each datum
            counts, where it can share what the view has found; None where ``view`` makes it.
        truth: of a tally, a number for each datum that differs where its ground truths do, uint64
            [n_datums].
        curve: from a view to the points that score thresholds are chosen among; None where
            nothing is scored.
        drawn_curves: the same points in draws, of datums whose keys are in files; None where such
            keys are held.
        in_parts: seeing a tally whose parts stay in files.
        unanswered: means leave out datums without a prediction; None where all there is counts.
        common: means leave out datums without a value; None where every datum has one.
        ranking: scores as ranks; None where nothing is scored.
        page: what the report draws from beside the run's own frames.
        growth: bytes held for a byte of the input, where they are many.
        scratch_row: bytes on the disk of a row beyond its columns, where no more has been seen:
            rows go as tallies come, and these are merged again.
    """

    name: str
    settings: Callable[[Options, Dialect], Any]
    default_metrics: Callable[[Any, Dialect], tuple[str, ...]]
    tally: Callable[[Frames, Any, Needs, Workers], Any]
    merge: Merge
    view: View
    cells_per_group: Callable[[Any, Any], int]
    own_frames: OwnFrames
    explain: Callable[[Any, Needs], list[str]]
    samples: Callable[[], Iterable[Any]]
    losses: JudgeDatums
    contents: Contents
    fit: Fit = as_planned
    limits: tuple[Limit, ...] = ()
    no_limits: str = ""
    warm_large: Callable[[], None] | None = None
    examine: Callable[[Frames, Any, Needs, Workers], None] | None = None
    needs_all_rows: NeedsAllRows | None = None
    scaling: Scaling | None = None
    late_notes: LateNotes | None = None
    told_by_rows: ToldByRows | None = None
    by_labels: bool = False
    drawn: Callable[[Any, Draws], Any] | None = None
    one_draw: Callable[[Any, Array], Any] | None = None
    truth: Callable[[Any], Array] | None = None
    curve: PointsOf | None = None
    drawn_curves: DrawnCurves | None = None
    in_parts: InParts | None = None
    unanswered: Unanswered | None = None
    common: Common | None = None
    ranking: Ranking | None = None
    page: tuple[PageFrame, ...] = ()
    growth: int | None = None
    scratch_row: int | None = None
