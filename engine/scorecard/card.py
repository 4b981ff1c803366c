"""Scorecard, the result of ``score`` and ``load``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from .._version import __version__
from ..exports import makers, who_has
from ..forked import refuse_cut_off
from ..schemas.errors import ResultError, unknown
from ..schemas.options import Options
from ..schemas.results import FRAMES, Finding, empty_frame
from ..schemas.wording import option
from .storage import FrameFile, Paged

if TYPE_CHECKING:
    from ..exports.model_index import ModelIndex
    from ..report.plots import Plots


def _stacked(mine: Callable[[], pl.DataFrame], theirs: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of two frames, with the columns of both."""
    first, second = mine(), theirs()
    if first.schema.get("label_value") != second.schema.get("label_value"):
        second = second.cast({"label_value": first.schema["label_value"]})
    return pl.concat([first, second], how="diagonal_relaxed")


Exports = Mapping[str, Callable[["Scorecard"], Any]]


class Scorecard:
    """Numbers of one run, as frames computed on first access.

    Attributes:
        task: the scored task.
        dialect: the rule set.
        options: options of the run, with defaults filled in.
        labels: frame with label_key, label_value, label_name (null if unnamed).
        notes: information on the inputs, one sentence each; includes the warnings.
        warnings: notes that may make the numbers meaningless.
        findings: the notes as data: code, severity, count and facts.
        primary: names of the metrics to show first.
        directions: metric name -> ``higher`` or ``lower``, whichever is better.
        read: table -> number of rows read, and ``datums``.
        files: table -> number of files, for a glob, folder or list.
        tallied: the tally, required for comparisons. None if a run in bounded memory is too large
            for it, in a copy, and in a loaded result, whose folder contains it.
        folder: folder of a loaded result.
    """

    def __init__(
        self,
        *,
        task: str,
        dialect: str,
        options: Options,
        frames: Mapping[str, Callable[[], pl.DataFrame]],
        labels: pl.DataFrame,
        run: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        notes: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
        exports: Exports | Callable[[], Exports] | None = None,
        primary: tuple[str, ...] = (),
        directions: Mapping[str, str] | None = None,
        read: Mapping[str, int] | None = None,
        files: Mapping[str, int] | None = None,
        tallied: Any = None,
        folder: Path | None = None,
        page: Callable[[], Paged] = Paged,
        findings: tuple[Finding, ...] = (),
        content: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Store providers of frames instead of frames; the rest as the attributes of the class.

        Args:
            frames: frame name -> provider, called once, on first access.
            run: content of ``run.json``, JSON-compatible, or its provider, called once.
            exports: format name -> exporter of this scorecard; or their provider, called once.
            page: makes the providers of the report's frames, called once.
        """
        if strange := frames.keys() - {*FRAMES}:
            raise unknown("frame", min(strange), FRAMES, error=ResultError)
        self.task = task
        self.dialect = dialect
        self.options = options
        self.labels = labels
        self.notes = tuple(notes)
        self.warnings = tuple(warnings)
        self.findings = tuple(findings)
        self.primary = tuple(primary)
        self.directions = dict(directions or {})
        self.read = dict(read or {})
        self.files = dict(files or {})
        self.tallied = tallied
        self.folder = folder
        self._providers = dict(frames)
        self._given_exports = exports or {}
        self._made: dict[str, pl.DataFrame] = {}
        self._make_page = page
        self._content = content
        self._run = run

    def __getstate__(self) -> dict[str, Any]:
        """Return everything computed, for ``pickle`` and ``copy``: frames, run, export names.

        Providers are dropped, since they refer to the run's arrays and threads. A copy exports from
        its frames, like a loaded result.
        """
        refuse_cut_off()
        frames = {name: self.frame(name) for name in self.frames}
        every = {name: self.page_frame(name) for name in self.paged}
        page = {name: frame.clone for name, frame in every.items() if frame is not None}
        return {
            **self.__dict__,
            "_made": frames,
            "_providers": None,
            "_exports": {},
            "_given_exports": {},
            "_page": Paged(page, self._page.missing),
            "_make_page": Paged,
            "tallied": None,
            "_run": self.run,
            "_content": dict(self.content).copy,
            "exported": tuple(self._exports),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        exported = state.pop("exported")
        self.__dict__.update(state)
        self._providers = {name: frame.clone for name, frame in self._made.items()}
        exporters = makers(self.task, self.dialect)
        self._exports = {name: exporters[name] for name in exported if name in exporters}

    @property
    def run(self) -> dict[str, Any]:
        """Versions, input digests and row counts, timings."""
        if not isinstance(self._run, dict):
            self._run = dict(self._run() if callable(self._run) else self._run)
        return self._run

    @cached_property
    def content(self) -> Mapping[str, str]:
        """Digest of each table: 32 hexadecimal digits, or empty if it is not known.

        It is the sum, modulo 2^128, of the hashes of the rows, in the columns that the run reads:
        free of the order of rows and columns, file format, names of columns and width of integers.
        """
        return self._content()

    @property
    def version(self) -> str:
        """Version of evalengine that computed the numbers."""
        recorded = self._run.get("evalengine") if isinstance(self._run, dict) else None
        return str(recorded or __version__)

    @property
    def cite(self) -> str:
        """One line to cite: version, rules, digests of the tables, and the first number.

        ``evalengine verify`` tells whether tables give it.

        Example:
            >>> card.cite
            'evalengine 0.1.0 | detection coco | n 5,000 | pred 1f3a... gt 9c0e... | AP 0.4930'
        """
        from ..report.citing import line_of

        refuse_cut_off()
        return line_of(self)

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames this run has, in the order of the contract."""
        return tuple(name for name in FRAMES if name in self._providers)

    def frame(self, name: str) -> pl.DataFrame:
        """Return an output frame; empty if the run did not request it.

        Raises:
            ResultError: no frame has that name.
        """
        if name not in FRAMES:
            raise unknown("frame", name, FRAMES, error=ResultError)
        if name not in self._made:
            refuse_cut_off()
            provider = self._providers.get(name)
            label = self.labels.schema.get("label_value")
            self._made[name] = provider() if provider else empty_frame(name, label=label)
        return self._made[name]

    def require_frame(self, name: str) -> pl.DataFrame:
        """Return an output frame that the run requested.

        Raises:
            ResultError: no frame has that name, or no requested metric fills it; the message names
                one.
        """
        if name in FRAMES and name not in self._providers:
            raise ResultError(self._missing_frame_message(name), code="not_kept", frame=name)
        return self.frame(name)

    def _missing_frame_message(self, name: str) -> str:
        """Return the message for a frame that this run did not request."""
        from ..metrics import all_metrics

        filling = [one.name for one in all_metrics(self.task).values() if one.frame == name]
        ways = {"limits": True, "label_next": 100, "spread": "column"}
        option_name = "label_next" if name == "to_label" else name
        way = option(option_name, ways[option_name]) if option_name in ways else None
        if way is not None:
            return f"this run did not make the frame {name!r}: score it with {way}."
        if not filling:
            return f"{self.task} has no frame {name!r}; this run has {', '.join(self.frames)}."
        way = option("metrics", [*(self.options.metrics or ()), filling[0]])
        return (
            f"this run did not make the frame {name!r}: {' or '.join(filling)} fills it. Score"
            f" again with {way}."
        )

    def add_own(self, own: Scorecard, facts: dict[str, Any]) -> None:
        """Add the numbers of own metrics, scored as values, to this scorecard.

        Args:
            facts: what a saved run knows of them.
        """
        for name in ("metrics", "per_datum", *(["spread"] * ("spread" in own.frames))):
            theirs = partial(own.frame, name)
            mine = self._providers.get(name)
            self._providers[name] = theirs if mine is None else partial(_stacked, mine, theirs)
            self._made.pop(name, None)
        run = self._run
        self._run = lambda: {**(run() if callable(run) else run), "own_metrics": facts}
        self.directions |= own.directions
        self.notes += own.notes
        self.warnings += own.warnings
        self.findings += own.findings
        if self.tallied is not None:
            self.tallied = msgspec.structs.replace(self.tallied, own=own.tallied)

    def in_file(self, name: str) -> FrameFile | None:
        """Return the file of a frame too large for memory; None if the frame is in memory."""
        provider = self._providers.get(name)
        return provider if isinstance(provider, FrameFile) and name not in self._made else None

    def height(self, name: str) -> int:
        """Return the number of rows of a frame, without reading frames on disk."""
        file = self.in_file(name)
        return self.frame(name).height if file is None else file.height

    @property
    def paged(self) -> tuple[str, ...]:
        """Names of the frames used by the report."""
        return tuple(self._page.makers)

    @cached_property
    def _exports(self) -> Exports:
        """Exporters by name."""
        exports = self._given_exports
        return exports() if callable(exports) else exports

    @cached_property
    def _page(self) -> Paged:
        """Providers of the frames used by the report."""
        page = self._make_page()
        return Paged(dict(page.makers), dict(page.missing))

    @property
    def missing(self) -> Mapping[str, str]:
        """Frames used by the report that this run does not have: why, and how to get them."""
        return self._page.missing

    def page_frame(self, name: str) -> pl.DataFrame | None:
        """Return a frame used by the report; None if this run does not have it: see ``missing``."""
        make = self._page.makers.get(name)
        if make is None:
            return None
        try:
            frame = make()
        except ResultError as error:
            del self._page.makers[name]
            self._page.missing[name] = error.message
            return None
        self._page.makers[name] = frame.clone
        return frame

    def make(self) -> None:
        """Compute all frames that are not on disk."""
        for name in self.frames:
            if self.in_file(name) is None:
                self.frame(name)
        for name in self.paged:
            self.page_frame(name)

    @property
    def metrics(self) -> pl.DataFrame:
        """One row per number."""
        return self.frame("metrics")

    @property
    def curves(self) -> pl.DataFrame:
        """Curves, one row per point; ResultError if no requested metric produces them."""
        return self.require_frame("curves")

    @property
    def examples(self) -> pl.DataFrame:
        """Cells of the detailed curves, with examples."""
        return self.require_frame("examples")

    @property
    def confusion(self) -> pl.DataFrame:
        """Sparse confusion counts."""
        return self.require_frame("confusion")

    @property
    def outcomes(self) -> pl.DataFrame:
        """One row per prediction or missed ground truth."""
        return self.require_frame("outcomes")

    @property
    def errors(self) -> pl.DataFrame:
        """Wrong predictions and missed objects."""
        return self.require_frame("errors")

    @property
    def label_errors(self) -> pl.DataFrame:
        """Ground truths that are likely wrong, and objects that are likely missing from them."""
        return self.require_frame("label_errors")

    @property
    def per_datum(self) -> pl.DataFrame:
        """One row per datum, metric, statistic and k."""
        return self.require_frame("per_datum")

    @property
    def limits(self) -> pl.DataFrame:
        """Bounds: how far each number could move under choices that the tables do not specify."""
        return self.require_frame("limits")

    @property
    def to_label(self) -> pl.DataFrame:
        """Judged rows that people should label next, then those labelled already."""
        return self.require_frame("to_label")

    @property
    def spread(self) -> pl.DataFrame:
        """Differences of each number between the groups of a slice column."""
        return self.require_frame("spread")

    def value(self, metric: str, **filters: Any) -> float | None:
        """Return one number of the metrics frame; None if it is undefined.

        Columns that are not named default to the whole: the aggregate over labels, no slice, all
        areas, the largest cap on detections, the macro average, no cut-off.

        Args:
            metric: metric name, or its title in tables, such as COCO's AP50.
            **filters: value of any column of the metrics frame, or ``label_name``; None means null.
                Floats are compared within 1e-9.

        Raises:
            ResultError: no such row, or more than one; the message names the column to set.

        Example:
            >>> card.value("mAP", iou_threshold=0.5)
            >>> card.value("AP", label_value="cat", iou_threshold=0.75)
        """
        from ..report.tables import by_title
        from .lookup import SHORT, one_value

        refuse_cut_off()
        settled = {SHORT.get(name, name) for name in filters}
        named = by_title(self.task, self.dialect, metric, settled, self.metrics["metric"].unique())
        if named is not None:
            metric, filters = named[0], {**named[1], **filters}
        return one_value(self.metrics, self.labels, metric, filters)

    def to_dict(
        self,
        prefix: str = "",
        step: int | float | None = None,
        *,
        labels: bool = False,
        slices: bool = False,
        intervals: bool = True,
        undefined: float | None = None,
    ) -> dict[str, float]:
        """Return the numbers as a flat dict of floats, as used by MLflow, W&B and TensorBoard.

        A name is the metric with its thresholds, averages or cut-off, then slice and label, each
        after a
        slash: ``mAP_iou_0.5``, ``F1_macro``, ``nDCG_10``, ``AP_iou_0.5/weather_rain``, ``F1/cat``.
        Dialects with special names use them, such as ``AP50``. Characters other than letters,
        digits,
        ``_``, ``.``, ``-`` and ``/`` become ``_``. Names that would be equal also contain
        ``parameters``,
        or end in a dot and six hash digits.

        Args:
            prefix: prepended to every name, such as ``val/``.
            step: stored as ``step``, with the prefix; omitted by default.
            labels: include numbers per label. A metric without other numbers is always included if
                it has one label, or if it was named in ``metrics`` and its mean over labels
                (``mAP`` for ``AP``) is missing.
            slices: include numbers of slices.
            intervals: include ``_lower`` and ``_upper`` of numbers with an interval.
            undefined: value for undefined numbers, such as NaN; omitted by default.

        Example:
            >>> card.to_dict("val/")
            {'val/mAPAveragedOverIOUs': 0.49, 'val/mAP_iou_0.5': 0.74, 'val/mAR': 0.56}
        """
        from ..report.tables import as_dict

        refuse_cut_off()
        return as_dict(
            self,
            prefix,
            step,
            labels=labels,
            slices=slices,
            intervals=intervals,
            undefined=undefined,
        )

    def to_valor(self) -> list[dict[str, Any]]:
        """Return Valor's list of ``{"type", "value", "parameters"}``, some with ``"label"``."""
        return self._export("valor")

    def to_phoenix(self) -> list[dict[str, Any]]:
        """Phoenix's list of ``{"name", "score", "kind", "direction"}``."""
        return self._export("phoenix")

    def to_continuous_eval(self) -> list[dict[str, float]]:
        """continuous-eval's dict of scores for every row."""
        return self._export("continuous_eval")

    def to_panoptic(self) -> dict[str, Any]:
        """panopticapi's results: All, Things, Stuff and per_class."""
        return self._export("panoptic")

    def to_remem(self) -> tuple[dict[str, float], list[dict[str, float]]]:
        """REMem's pooled values, and its dict for every example."""
        return self._export("remem")

    def to_ragas(self) -> list[dict[str, float]]:
        """ragas' dict of scores for every row."""
        return self._export("ragas")

    def to_coco(self) -> Any:
        """pycocotools' names, stats and arrays; see ``evalengine.exports.coco``."""
        return self._export("coco")

    def to_lvis(self) -> Any:
        """lvis-api's names, stats and arrays; see ``evalengine.exports.coco``."""
        return self._export("lvis")

    def to_kitti(self) -> dict[str, float]:
        """KITTI's AP and AOS in percent, under OpenPCDet's names."""
        return self._export("kitti")

    def to_trec(self) -> str:
        """Return the output of ``trec_eval -q``: lines of measure, query or ``all``, and value."""
        return self._export("trec")

    def to_model_index(
        self,
        model_name: str,
        dataset_name: str,
        *,
        dataset_type: str | None = None,
        dataset_config: str | None = None,
        dataset_split: str | None = None,
        dataset_revision: str | None = None,
        task_type: str | None = None,
        task_name: str | None = None,
    ) -> ModelIndex:
        """Return the headline numbers as ``model-index`` of a Hugging Face model card.

        Args:
            model_name: name of the model.
            dataset_name: name of the data set for people.
            dataset_type: its id on the Hub; default: the name.
            dataset_config: its configuration.
            dataset_split: its split.
            dataset_revision: its revision.
            task_type: task on the Hub, such as image-classification; only its form is checked. By
                default that of the task, if the Hub has one.
            task_name: name of the task for people.

        Returns:
            a dict with the key ``model-index``, and ``to_yaml()``. Ends of intervals, support and
            the line to cite are ``args`` of a metric.

        Raises:
            OptionError: no ``task_type``, and the Hub has none for this task; or one that has not
                the form of the Hub's names.

        Example:
            >>> print(card.to_model_index("my-model", "COCO", dataset_split="val").to_yaml())
        """
        from ..exports.model_index import model_index

        refuse_cut_off()
        dataset = {
            "name": dataset_name,
            "type": dataset_type or dataset_name,
            "config": dataset_config,
            "split": dataset_split,
            "revision": dataset_revision,
        }
        return model_index(self, model_name, dataset, task_type=task_type, task_name=task_name)

    def to_openmetrics(
        self, labels: Mapping[str, str] | None = None, timestamp: float | None = None
    ) -> str:
        """Return all numbers as OpenMetrics text, for Prometheus and its node exporter.

        Gauges are ``evalengine_value``, ``_lower``, ``_upper`` and ``_support``. Their labels are
        task, dialect and the columns of the metrics frame. Undefined numbers are omitted.

        Args:
            labels: further labels, such as ``{"model": "v3"}``.
            timestamp: seconds since 1970; by default the time at which it is read.
        """
        from ..exports.monitoring import to_openmetrics

        refuse_cut_off()
        return to_openmetrics(self, labels, timestamp)

    def to_otlp(self, verdicts: pl.DataFrame | None = None) -> str:
        """Return rows per datum as OpenTelemetry events ``gen_ai.evaluation.result``.

        Each is a log record with gen_ai.evaluation.name, .score.value and gen_ai.response.id, the
        datum id. If all values of a metric are 0 or 1, .score.label is pass for the better one and
        fail for the other. Rows without a value have error.type, their status.

        Args:
            verdicts: table with datum_id, metric and reason; reasons become
                gen_ai.evaluation.explanation.

        Returns:
            one line of OTLP's JSON, as the file exporter writes and ``/v1/logs`` takes.

        Raises:
            ResultError: the run has no frame ``per_datum``.
        """
        from ..exports.monitoring import to_otlp

        refuse_cut_off()
        return to_otlp(self, verdicts)

    def _export(self, name: str) -> Any:
        refuse_cut_off()
        if name not in self._exports:
            raise ResultError(
                f"to_{name}() has no shape for task {self.task} with dialect {self.dialect}:"
                f" {who_has(name)} has it.",
                code="export_unfit",
                name=name,
            )
        return self._exports[name](self)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write the frames as Parquet and ``run.json`` into a folder, atomically.

        Args:
            directory: the folder to create.
            overwrite: replace an earlier result there.

        Returns:
            path of the folder.
        """
        from .storage import save

        return save(self, directory, overwrite=overwrite)

    @property
    def plot(self) -> Plots:
        """Figures of the run, by matplotlib (``evalengine[plot]``)."""
        from ..report.plots import Plots

        return Plots(self)

    def show(
        self,
        format: str = "table",
        *,
        sort: str | None = None,
        top: int | str | None = None,
        wide: bool = False,
    ) -> None:
        """Print the tables, as the command does.

        Args:
            format: ``table``, ``markdown``, ``json`` or ``csv``.
            sort: order of labels and slices: ``value`` (worst first), ``label``, ``support``, or a
                column title.
            top: rows per table; 0 or ``all`` for every row.
            wide: show every column, whatever the terminal's width.

        Raises:
            OptionError: no such format or column.
        """
        from ..report.show import show
        from ..report.tables import look

        show(self, format, look=look(sort, top, wide=wide))

    def to_html(
        self, path: str | Path, *, baseline: Any = None, images: str | Path | None = None
    ) -> Path:
        """Write an HTML report of the run; see :func:`evalengine.report`.

        Args:
            path: the file, ending in .html.
            baseline: an earlier run, or the folder of a saved one.
            images: folder of images named by datum id, shown as thumbnails for the worst datums.

        Returns:
            path of the file.
        """
        import evalengine

        return evalengine.report(self, path, baseline=baseline, images=images)

    def __repr__(self) -> str:
        from ..report.summary import as_text

        refuse_cut_off()
        return as_text(self)

    def _repr_html_(self) -> str:
        from ..report.show import in_notebook

        refuse_cut_off()
        return in_notebook(self)


def load(directory: str | Path) -> Any:
    """Load a saved scorecard or comparison from a folder.

    Frames of a scorecard are read on first access.

    Raises:
        ResultError: the folder has no result, or parts of it are missing or truncated.

    Example:
        >>> import evalengine as ee
        >>> ee.load("runs/monday").value("mAP", iou_threshold=0.5)
    """
    from .storage import is_comparison, read, read_comparison

    refuse_cut_off()
    if is_comparison(directory):
        from ..statistics.comparison import Comparison

        return Comparison(**read_comparison(directory))
    return Scorecard(**read(directory))
