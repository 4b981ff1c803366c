"""Charts of a run as matplotlib figures.

Content is decided in :mod:`evalengine.report.charts`, as for the page.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import msgspec

from ..schemas.errors import OptionError, ResultError, unknown
from ..schemas.wording import option
from .chart_shapes import Bar, Bars, Chart, Drawn, Line, Matrix, Numbers, Want, described, supported
from .charts import KINDS, differences, drawn, frames_of, names_of
from .summary import sections
from .svg import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..scorecard.card import Scorecard

FORMATS = ("svg", "png", "pdf")
_MARKS = "os^Dv+x_"
_WIDE, _TALL = 6.4, 4.4  # inches
_ROW = 0.28  # inches of a bar, and of a row of a matrix
_DPI = 150
_CHARACTERS = 110  # of a line of notes
_TICKS = 8  # up to this many places, each has a tick


class Plots:
    """Matplotlib figures of a run, available as ``card.plot``.

    Each method returns a ``matplotlib.figure.Figure`` with title, units and support. Notebooks show
    it; ``savefig`` writes it to a file.

    Args:
        card: the run.

    Raises:
        ResultError: raised by each method if matplotlib is not installed, or if the run has no data
            for the figure; the message names the metric to score with.
    """

    def __init__(self, card: Scorecard) -> None:
        self._card = card

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of figures that this run can make."""
        run = _numbers(self._card)
        return tuple(kind for kind in KINDS if drawn(kind, run, None, _want(self._card)))

    def precision_recall(
        self,
        *,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot precision by recall: one line per label, and one for all labels together.

        Args:
            label_value: plot this label only.
            iou_threshold: IoU threshold of detection; default 0.5.
            baseline: another run, plotted dashed.
        """
        return self.figure(
            "precision_recall", baseline, label_value=label_value, iou_threshold=iou_threshold
        )

    def roc(self, *, label_value: Any = None, baseline: Scorecard | None = None) -> Figure:
        """Plot true positive rate by false positive rate, one line per label.

        Args:
            label_value: plot this label only.
            baseline: another run, plotted dashed.
        """
        return self.figure("roc", baseline, label_value=label_value)

    def calibration(self, *, baseline: Scorecard | None = None) -> Figure:
        """Plot accuracy by predicted confidence.

        Args:
            baseline: another run, plotted dashed.
        """
        return self.figure("calibration", baseline)

    def actual(self, *, baseline: Scorecard | None = None) -> Figure:
        """Plot actual by predicted values: means of both per bin of predictions.

        Args:
            baseline: another run, plotted dashed.
        """
        return self.figure("actual", baseline)

    def thresholds(
        self,
        *,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot precision, recall and F1 by score threshold, for all labels together or for one.

        Args:
            label_value: plot this label.
            iou_threshold: IoU threshold of detection.
            baseline: another run, plotted dashed.
        """
        return self.figure(
            "thresholds", baseline, label_value=label_value, iou_threshold=iou_threshold
        )

    def ks(self, *, metric: str | None = None, baseline: Scorecard | None = None) -> Figure:
        """Plot metrics by cut-off k.

        Args:
            metric: plot this metric only.
            baseline: another run, plotted dashed.
        """
        return self.figure("ks", baseline, metric=metric)

    def distribution(
        self, *, metric: str | None = None, baseline: Scorecard | None = None
    ) -> Figure:
        """Plot the distribution of per-datum values.

        Args:
            metric: metric to plot; default the primary one.
            baseline: another run, plotted dashed.
        """
        return self.figure("distribution", baseline, metric=metric)

    def confusion(self, *, label_value: Any = None, iou_threshold: float | None = None) -> Figure:
        """Plot the confusion matrix. With more than 20 labels, only the most frequent pairs.

        Args:
            label_value: plot pairs of this label only.
            iou_threshold: IoU threshold of detection.
        """
        return self.figure("confusion", None, label_value=label_value, iou_threshold=iou_threshold)

    def costs(
        self,
        *,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot the AP gained if one kind of error were removed. Needs the metric ``TIDE``.

        Args:
            label_value: plot this label; default all labels together.
            iou_threshold: IoU threshold of detection; default 0.5.
            baseline: another run, plotted as hollow marks.
        """
        return self.figure("costs", baseline, label_value=label_value, iou_threshold=iou_threshold)

    def labels(
        self,
        *,
        metric: str | None = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot a metric by label, worst first, with intervals if available.

        Args:
            metric: metric to plot; default the first one of the table of labels.
            iou_threshold: IoU threshold of detection.
            baseline: another run, plotted as hollow marks.
        """
        if metric is None:
            tables = (section.labels for section in sections(self._card))
            metric = next((table.first for table in tables if table is not None), None)
        return self.figure("labels", baseline, metric=metric, iou_threshold=iou_threshold)

    def slices(
        self,
        *,
        metric: str | None = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot a metric by slice, worst first, with intervals if available.

        Args:
            metric: metric to plot; default the first one of the tables of slices.
            iou_threshold: IoU threshold of detection.
            baseline: another run, plotted as hollow marks.
        """
        return self.figure("slices", baseline, metric=metric, iou_threshold=iou_threshold)

    def compare(self, other: Any, *, metric: str | None = None, draws: int | None = None) -> Figure:
        """Plot the differences from another run, with their intervals.

        Args:
            other: an earlier run, which is subtracted: a scorecard or the folder of a saved one.
            metric: plot this metric only.
            draws: number of resamples; default 1,000.
        """
        import evalengine

        found = evalengine.compare(other, self._card, names=["other", "this run"], draws=draws)
        charts = differences(found, metric)
        if not charts:
            raise ResultError("the runs have no number in common that is defined.")
        return figure_of(charts)

    def figure(self, kind: str, baseline: Scorecard | None = None, **chosen: Any) -> Figure:
        """Return a figure by the name of its kind.

        Args:
            kind: one of :attr:`kinds`.
            baseline: another run.
            **chosen: ``label_value``, ``iou_threshold``, ``metric``.
        """
        if kind not in KINDS:
            raise unknown("plot", kind, KINDS)
        given = {name: value for name, value in chosen.items() if value is not None}
        idle = [name for name in given if name not in KINDS[kind].takes]
        if idle:
            raise OptionError(f"plot {kind!r} takes no {option(idle[0], given[idle[0]])}.")
        base = None if baseline is None else _numbers(baseline)
        want = msgspec.structs.replace(_want(self._card), **given)
        found = drawn(kind, _numbers(self._card), base, want)
        if not found:
            raise ResultError(_lacking(self._card, kind, given))
        return figure_of(found)


def _numbers(card: Scorecard) -> Numbers:
    return Numbers(card.metrics, frames_of(card))


def _want(card: Scorecard) -> Want:
    return Want(card.directions, names_of(card))


def _lacking(card: Scorecard, kind: str, given: dict[str, Any]) -> str:
    """Why there is no such figure of a run, and how to get it."""
    from ..metrics import has

    if given:
        said = ", ".join(f"{name} {value!r}" for name, value in given.items())
        whole = Plots(card).kinds
        if kind in whole:
            return f"this run has no {kind} plot of {said}."
    for why in card.lacking.values():
        if any(why.startswith(f"{name!r}:") for name in KINDS[kind].fills):
            return f"this run has no data to plot {kind}: {why}"
    fills = [name for name in KINDS[kind].fills if has(card.task, name)]
    if fills:
        asked = option("metrics", [*(card.options.metrics or ()), fills[0]])
        return f"this run has no data to plot {kind}: score again with {asked}."
    way = KINDS[kind].otherwise
    return f"this run has no data to plot {kind}" + (f": {way}." if way else ".")


def figure_of(charts: list[Drawn]) -> Figure:
    """Stack charts vertically in one figure.

    Raises:
        ResultError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ResultError(
            "plots need matplotlib, which is not installed: pip install 'evalengine[plot]'."
        ) from None

    class Shown(Figure):
        """A figure that a notebook shows by itself."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=_DPI)
            return out.getvalue()

    heights = [_height(chart) for chart in charts]
    made = Shown(figsize=(_WIDE, sum(heights)), layout="constrained")
    every = made.subplots(len(charts), squeeze=False, height_ratios=heights)
    for axes, chart in zip(every[:, 0], charts, strict=True):
        _DRAW[type(chart)](axes, chart)
        pad = 22 if isinstance(chart, Bars) and chart.across is None else 6  # room for a legend
        axes.set_title(chart.title, loc="left", fontsize="medium", wrap=True, pad=pad)
    notes = list(dict.fromkeys(chart.note for chart in charts if chart.note))
    if notes:
        said = "\n".join(line for note in notes for line in wrap(note, _CHARACTERS))
        made.supxlabel(said, x=0.01, ha="left", fontsize="x-small", color="0.35")
    made.set_label(" ".join(described(chart) for chart in charts))
    return made


def _height(chart: Drawn) -> float:
    if isinstance(chart, Matrix):
        return max(_TALL, 1.6 + _ROW * 1.3 * len(chart.rows))
    if isinstance(chart, Bars) and chart.across is None:
        return 1.5 + _ROW * len(chart.bars)
    return _TALL


def _lines(axes: Axes, chart: Chart) -> None:
    if chart.diagonal:
        ends = [max(chart.x.low, chart.y.low), min(chart.x.high, chart.y.high)]
        axes.plot(ends, ends, color="0.6", linestyle=":", linewidth=1)
    places: dict[str, int] = {}
    for line in chart.lines:
        i = places.setdefault(line.name, len(places))
        _line(axes, line, i)
    axes.set(xlabel=chart.x.title, ylabel=chart.y.title)
    axes.set_xlim(*_room(chart.x.low, chart.x.high))
    axes.set_ylim(*_room(chart.y.low, chart.y.high))
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    every = sorted({x for line in chart.lines for x in line.x})
    if len(every) <= _TICKS:
        axes.set_xticks(every)
    if any(axes.get_legend_handles_labels()[1]):
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize="small", frameon=False)


def _line(axes: Axes, line: Line, i: int) -> None:
    colour = "black" if line.whole else COLOURS[i % len(COLOURS)]
    y = [float("nan") if value is None else value for value in line.y]
    few = len(y) <= 25
    name = supported(line.name, line.support)
    axes.plot(
        line.x,
        y,
        color=colour,
        linestyle="--" if line.baseline else "-",
        linewidth=2.0 if line.whole else 1.4,
        alpha=0.7 if line.baseline else 1.0,
        marker=_MARKS[i % len(_MARKS)],
        markersize=4,
        markevery=None if few else max(1, len(y) // 6),
        label=f"{name}, baseline" if line.baseline else name,
    )
    if line.low is not None and line.high is not None:
        ends = zip(line.x, line.low, line.high, strict=True)
        for x, low, high in ends:
            if low is not None and high is not None:
                axes.plot([x, x], [low, high], color=colour, linewidth=1, alpha=0.6)


def _room(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis, with a little room for marks."""
    edge = 0.02 * ((high - low) or 1.0)
    return low - edge, high + edge


def _bars(axes: Axes, chart: Bars) -> None:
    if chart.across is not None:
        _histogram(axes, chart)
        return
    names = [supported(bar.name, bar.support) for bar in chart.bars]
    for place, bar in enumerate(chart.bars):
        _bar(axes, chart, bar, place)
    axes.set_yticks(range(len(names)), names, fontsize="small")
    axes.invert_yaxis()
    axes.set(xlabel=chart.axis.title)
    axes.set_xlim(*_room(chart.axis.low, chart.axis.high))
    if chart.reference is not None:
        axes.axvline(chart.reference[0], color="0.5", linestyle=":", label=chart.reference[1])
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    if any(bar.baseline is not None for bar in chart.bars):
        axes.scatter([], [], marker="D", facecolors="none", edgecolors="black", label="baseline")
    if axes.get_legend_handles_labels()[1]:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, fontsize="small", frameon=False
        )


_SAID = {"better": ("^", COLOURS[2]), "worse": ("v", COLOURS[1])}


def _bar(axes: Axes, chart: Bars, bar: Bar, place: int) -> None:
    if bar.value is None:
        axes.text(chart.axis.low, place, " undefined", va="center", fontsize="x-small")
        return
    if chart.dots:
        mark, colour = _SAID.get(bar.says, ("o", "0.35"))
        axes.plot(bar.value, place, mark, color=colour, label="_")
    else:
        axes.barh(place, bar.value, height=0.6, color=COLOURS[0], alpha=0.65)
    if bar.low is not None and bar.high is not None:
        axes.plot([bar.low, bar.high], [place, place], color="black", linewidth=1.2, marker="|")
    if bar.baseline is not None:
        axes.scatter(bar.baseline, place, marker="D", facecolors="none", edgecolors="black", s=24)
    said = f" {bar.value:.4g}" + (f" {bar.says}" if bar.says else "")
    axes.annotate(
        said,
        (1, place),
        (2, 0),
        ("axes fraction", "data"),
        "offset points",
        va="center",
        fontsize="x-small",
    )


def _histogram(axes: Axes, chart: Bars) -> None:
    assert chart.across is not None
    spans = [bar.span for bar in chart.bars if bar.span is not None]
    edges = [spans[0][0], *(high for _, high in spans)]
    values = [bar.value or 0.0 for bar in chart.bars]
    axes.stairs(values, edges, fill=True, color=COLOURS[0], alpha=0.75, label="this run")
    before = [bar.baseline for bar in chart.bars]
    if any(value is not None for value in before):
        axes.stairs(
            [value or 0.0 for value in before],
            edges,
            color="black",
            linestyle="--",
            label="baseline",
        )
        axes.legend(fontsize="small", frameon=False)
    axes.set(xlabel=chart.across.title, ylabel=chart.axis.title)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)


def _matrix(axes: Axes, chart: Matrix) -> None:
    shares = [[n / (sum(row) or 1) for n in row] for row in chart.counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, row in enumerate(chart.counts):
        for j, n in enumerate(row):
            if n:
                colour = "white" if shares[i][j] > 0.55 else "black"
                change = n - chart.before[i][j] if chart.before is not None else 0
                text = f"{n:,}\n{change:+,}" if change else f"{n:,}"
                axes.text(j, i, text, ha="center", va="center", fontsize="small", color=colour)
    axes.set_xticks(range(len(chart.columns)), chart.columns, rotation=45, ha="right")
    axes.set_yticks(range(len(chart.rows)), chart.rows)
    axes.tick_params(labelsize="small")
    axes.set(xlabel="predicted", ylabel="actual")


_DRAW: dict[type[Any], Callable[[Any, Any], None]] = {Chart: _lines, Bars: _bars, Matrix: _matrix}
