"""Charts of a run as matplotlib figures.

Content is decided in :mod:`evalengine.report.charts`, as for the page.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import msgspec

from ..schemas.display import COLOURS, PLAIN, Areas, Band, Chart, Line, Points, Scale, Texts
from ..schemas.errors import OptionError, ResultError, not_installed, unknown
from ..schemas.wording import option
from .charts import KINDS, Numbers, Want, differences, drawn, frames_of, leads_of, names_of
from .tables import layout_of
from .text import shorten_distinctly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..scorecard.card import Scorecard

FORMATS = ("svg", "png", "pdf")
_WIDE, _TALL = 6.4, 4.4  # inches
_ROW = 0.28  # inches of a bar, and of a row of a matrix
_DPI = 150
_CHARACTERS = 110  # of a line of notes
_NAME = 40  # characters of a name of an axis or legend; longer ones are shortened
_TICKS = 8  # up to this many places, each has a tick


class Plots:
    """Matplotlib figures of a run, available as ``card.plot``.

    Each method returns a ``matplotlib.figure.Figure`` with title, units and support. Notebooks show
    it; ``savefig`` writes it to a file. ``label_value`` restricts it to one label, by default all
    are shown; ``iou_threshold`` selects a threshold of detection, by default 0.5; ``metric`` a
    metric, by default the first of the run's tables. ``baseline`` is another run, shown with dashed
    lines or hollow marks.

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
        run = Numbers(self._card.metrics, frames_of(self._card))
        return tuple(kind for kind in KINDS if drawn(kind, run, None, _want(self._card)))

    def precision_recall(
        self,
        *,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot precision by recall: one line per label, and one for all labels together."""
        return self.figure(
            "precision_recall", baseline, label_value=label_value, iou_threshold=iou_threshold
        )

    def roc(self, *, label_value: Any = None, baseline: Scorecard | None = None) -> Figure:
        """Plot true positive rate by false positive rate, one line per label."""
        return self.figure("roc", baseline, label_value=label_value)

    def calibration(self, *, baseline: Scorecard | None = None) -> Figure:
        """Plot accuracy by predicted confidence."""
        return self.figure("calibration", baseline)

    def actual(self, *, baseline: Scorecard | None = None) -> Figure:
        """Plot actual by predicted values: means of both per bin of predictions."""
        return self.figure("actual", baseline)

    def thresholds(
        self,
        *,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot precision, recall and F1 by score threshold, for all labels together or for one."""
        return self.figure(
            "thresholds", baseline, label_value=label_value, iou_threshold=iou_threshold
        )

    def ks(self, *, metric: str | None = None, baseline: Scorecard | None = None) -> Figure:
        """Plot metrics by cut-off k."""
        return self.figure("ks", baseline, metric=metric)

    def distribution(
        self, *, metric: str | None = None, baseline: Scorecard | None = None
    ) -> Figure:
        """Plot the distribution of per-datum values."""
        return self.figure("distribution", baseline, metric=metric)

    def confusion(self, *, label_value: Any = None, iou_threshold: float | None = None) -> Figure:
        """Plot the confusion matrix. With more than 20 labels, only the most frequent pairs."""
        return self.figure("confusion", None, label_value=label_value, iou_threshold=iou_threshold)

    def costs(
        self,
        *,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot the AP gained if one kind of error were removed. Needs the metric ``TIDE``."""
        return self.figure("costs", baseline, label_value=label_value, iou_threshold=iou_threshold)

    def labels(
        self,
        *,
        metric: str | None = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot a metric by label, worst first, with intervals if available."""
        return self.figure("labels", baseline, metric=metric, iou_threshold=iou_threshold)

    def slices(
        self,
        *,
        metric: str | None = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot a metric by slice, worst first, with intervals if available."""
        return self.figure("slices", baseline, metric=metric, iou_threshold=iou_threshold)

    def intervals(
        self,
        *,
        metric: str | None = None,
        label_value: Any = None,
        iou_threshold: float | None = None,
        baseline: Scorecard | None = None,
    ) -> Figure:
        """Plot numbers with their intervals as points: of the whole set, of labels, of slices."""
        return self.figure(
            "intervals",
            baseline,
            metric=metric,
            label_value=label_value,
            iou_threshold=iou_threshold,
        )

    def compare(self, other: Any, *, metric: str | None = None, draws: int | None = None) -> Figure:
        """Plot the differences from another run, with their intervals.

        Args:
            other: an earlier run, which is subtracted: a scorecard or the folder of a saved one.
            metric: plot this metric only.
            draws: number of resamples; default 1,000.
        """
        import evalengine

        comparison = evalengine.compare(other, self._card, names=["other", "this run"], draws=draws)
        charts = differences(comparison, metric)
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
        options = {name: value for name, value in chosen.items() if value is not None}
        unsupported = [name for name in options if name not in KINDS[kind].takes]
        if unsupported:
            raise OptionError(
                f"plot {kind!r} takes no {option(unsupported[0], options[unsupported[0]])}."
            )
        base = None if baseline is None else Numbers(baseline.metrics, frames_of(baseline))
        want = msgspec.structs.replace(_want(self._card), **options)
        charts = drawn(kind, Numbers(self._card.metrics, frames_of(self._card)), base, want)
        if not charts:
            raise ResultError(_describe_missing(self._card, kind, options))
        return figure_of(charts)


def _want(card: Scorecard) -> Want:
    first = layout_of(card.task, card.dialect).best_first
    return Want(card.directions, names_of(card), leads_of(card), best_first=first)


def _describe_missing(card: Scorecard, kind: str, given: dict[str, Any]) -> str:
    """Return the reason why a run has no such figure, and how to get it."""
    from ..metrics import has

    if given:
        message = ", ".join(f"{name} {value!r}" for name, value in given.items())
        available = Plots(card).kinds
        if kind in available:
            return f"this run has no {kind} plot of {message}."
    for why in card.missing.values():
        if any(why.startswith(f"{name!r}:") for name in KINDS[kind].fills):
            return f"this run has no data to plot {kind}: {why}"
    fills = [name for name in KINDS[kind].fills if has(card.task, name)]
    if fills:
        option_text = option("metrics", [*(card.options.metrics or ()), fills[0]])
        return f"this run has no data to plot {kind}: score again with {option_text}."
    way = KINDS[kind].otherwise
    return f"this run has no data to plot {kind}" + (f": {way}." if way else ".")


def figure_of(charts: list[Chart]) -> Figure:
    """Stack charts vertically in one figure.

    Raises:
        ResultError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ResultError(f"plots need {not_installed('matplotlib', 'plot')}.") from None

    class Drawing(Figure):
        """Figure that notebooks display automatically."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=_DPI)
            return out.getvalue()

    heights = [_height(chart) for chart in charts]
    figure = Drawing(figsize=(_WIDE, sum(heights)), layout="constrained")
    every = figure.subplots(len(charts), squeeze=False, height_ratios=heights)
    for axes, chart in zip(every[:, 0], charts, strict=True):
        _draw(axes, chart)
        pad = 22 if chart.y.names and not chart.x.names else 6  # room for a legend
        axes.set_title(chart.title, loc="left", fontsize="medium", wrap=True, pad=pad)
    notes = list(dict.fromkeys(chart.note for chart in charts if chart.note))
    if notes:
        message = "\n".join(line for note in notes for line in wrap(note, _CHARACTERS))
        figure.supxlabel(message, x=0.01, ha="left", fontsize="x-small", color="0.35")
    figure.set_label(" ".join(chart.alt for chart in charts))
    return figure


def _height(chart: Chart) -> float:
    if chart.x.names:
        return max(_TALL, 1.6 + _ROW * 1.3 * len(chart.y.names))
    return 1.5 + _ROW * len(chart.y.names) if chart.y.names else _TALL


def _draw(axes: Axes, chart: Chart) -> None:
    """Draw the marks of a chart, its scales and its legend."""
    legend: dict[str, list[Any]] = {}
    for mark in chart.marks:
        artist = _DRAW[type(mark)](axes, mark)
        if mark.legend:
            legend.setdefault(mark.legend, []).append(artist)
    x, y = chart.x, chart.y
    axes.set(xlabel=x.title, ylabel=y.title)
    if x.names:
        names = shorten_distinctly(x.names, _NAME)
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize="small")
        axes.set_xlim(-0.5, len(x.names) - 0.5)
    else:
        axes.set_xlim(*_room(x))
        axes.grid(axis="x", color="0.9")
        if x.ticks is not None and len(x.ticks) <= _TICKS:
            axes.set_xticks(x.ticks, x.texts or None)
    if y.names:
        axes.set_yticks(range(len(y.names)), shorten_distinctly(y.names, _NAME), fontsize="small")
        axes.set_ylim(len(y.names) - 0.5, -0.5)
        for place, text in enumerate(y.after):
            axes.annotate(
                f" {text}",
                (1, place),
                (2, 0),
                ("axes fraction", "data"),
                "offset points",
                va="center",
                fontsize="x-small",
            )
    else:
        axes.set_ylim(*_room(y))
        axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    if legend:
        axes.legend(
            [tuple(artists) for artists in reversed(legend.values())],
            shorten_distinctly(reversed(legend), _NAME),
            loc="lower left" if y.names else "upper left",
            bbox_to_anchor=(0, 1) if y.names else (1.01, 1),
            ncols=3 if y.names else 1,
            fontsize="small",
            frameon=False,
        )


def _room(scale: Scale) -> tuple[float, float]:
    """Return the limits of an axis, with a small margin for symbols."""
    edge = 0.02 * ((scale.high - scale.low) or 1.0)
    return scale.low - edge, scale.high + edge


def _colour(i: int) -> str:
    return "black" if i == PLAIN else COLOURS[i % len(COLOURS)]


def _line(axes: Axes, mark: Line) -> Any:
    y = [float("nan") if value is None else value for value in mark.y]
    dash: Any = (0, tuple(map(float, mark.dash.split()))) if mark.dash else "-"
    (line,) = axes.plot(
        mark.x,
        y,
        color=_colour(mark.colour),
        linestyle=dash,
        linewidth=mark.width * 0.85,
        alpha=mark.opacity,
        label=mark.legend or "_",
    )
    return line


def _band(axes: Axes, mark: Band) -> Any:
    low, high = (
        [float("nan") if value is None else value for value in bounds]
        for bounds in (mark.low, mark.high)
    )
    return axes.fill_between(mark.x, low, high, color=_colour(mark.colour), alpha=mark.opacity)


def _points(axes: Axes, mark: Points) -> Any:
    colour, symbol = _colour(mark.colour), "os^Dv+x_|"[mark.symbol]
    face = "none" if mark.hollow and symbol not in "+x_|" else colour
    edge = None if symbol in "+x_|" else colour
    sizes = [2.2 * radius**2 for radius in mark.radius]
    return axes.scatter(mark.x, mark.y, sizes, c=[face], marker=symbol, edgecolors=edge, zorder=3)


def _areas(axes: Axes, mark: Areas) -> Any:
    for one in mark.areas:
        axes.bar(
            one.left,
            one.high - one.low,
            one.right - one.left,
            one.low,
            align="edge",
            color=(_colour(one.colour), one.opacity),
            edgecolor="black" if one.outlined else "none",
        )


def _texts(axes: Axes, mark: Texts) -> None:
    for x, y, text in mark.texts:
        axes.text(x, y, text, ha="center", va="center", fontsize="small")


_DRAW: dict[type[Any], Callable[[Any, Any], Any]] = {
    Line: _line,
    Band: _band,
    Points: _points,
    Areas: _areas,
    Texts: _texts,
}
