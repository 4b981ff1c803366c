"""Scorecard: what ``score`` returns and ``load`` reads back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..exports import makers, who_has
from ..forked import refuse_cut_off
from ..schemas.errors import ResultError, unknown
from ..schemas.options import Options
from ..schemas.results import FRAMES, Finding, empty_frame
from ..schemas.wording import option
from .held import FrameFile, Paged

if TYPE_CHECKING:
    from ..report.plots import Plots


class Scorecard:
    """The numbers of one run, as frames made when they are first asked for.

    Attributes:
        task: the task that was scored.
        dialect: the rule set it was scored by.
        options: what the run was told, defaults filled in.
        labels: label_key, label_value, label_name (null where there is none).
        notes: what the reader of the numbers should know about the inputs.
        warnings: those of the notes that make the numbers meaningless.
        findings: the notes as data: code, severity, count and facts of each.
        primary: metric names to show first.
        directions: metric name -> ``higher`` or ``lower``, whichever is better.
        read: table -> rows that were read of it, and ``datums``.
        files: table -> files it was read from, where a glob, folder or list was given.
        tallied: what the numbers were made of, which comparing needs; None where a
            run in bounded memory is too large for it, in a copy, and in a loaded result, whose
            folder has it.
        folder: where a loaded result stands.
        lacking: frame of the report -> why this run has none, and how to get it.
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
        exports: Mapping[str, Callable[[Scorecard], Any]] | None = None,
        primary: tuple[str, ...] = (),
        directions: Mapping[str, str] | None = None,
        read: Mapping[str, int] | None = None,
        files: Mapping[str, int] | None = None,
        tallied: Any = None,
        folder: Path | None = None,
        page: Paged | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        """Keep providers, not frames.

        Args:
            task: the task that was scored.
            dialect: the rule set.
            options: what the run was told.
            frames: frame name -> what makes it; called once, when the frame is first asked for.
            labels: label_key, label_value, label_name.
            run: what goes into ``run.json``, plain values that JSON can hold; or what makes it,
                called once, when it is first asked for.
            notes: one sentence each.
            warnings: those of the notes that make the numbers meaningless.
            exports: shape name -> what makes it of this scorecard.
            primary: metric names to show first.
            directions: metric name -> ``higher`` or ``lower``.
            read: table -> rows that were read of it.
            files: table -> files, where there was more to read than one named file.
            tallied: what the numbers were made of.
            folder: where a loaded result stands.
            page: what makes the frames that the report draws from.
            findings: the notes as data.
        """
        strange = [name for name in frames if name not in FRAMES]
        if strange:
            raise unknown("frame", strange[0], FRAMES, error=ResultError)
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
        self._exports = dict(exports or {})
        self._made: dict[str, pl.DataFrame] = {}
        self._page = {} if page is None else dict(page.makers)
        self.lacking = {} if page is None else dict(page.lacking)
        self._run = run

    def __getstate__(self) -> dict[str, Any]:
        """Everything made, for ``pickle`` and ``copy``: frames, run, and names of the exports.

        What makes them holds the run's arrays and threads, which stay behind; a copy exports from
        its frames, as a loaded result does.
        """
        refuse_cut_off()
        made = {name: self.frame(name) for name in self.frames}
        every = {name: self.page_frame(name) for name in self.paged}
        page = {name: frame for name, frame in every.items() if frame is not None}
        return {**self.__dict__, "_made": made, "_providers": None, "_exports": None, "_page": page,
                "tallied": None, "_run": self.run, "exported": tuple(self._exports)}  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        exported = state.pop("exported")
        self.__dict__.update(state)
        self._providers = {name: frame.clone for name, frame in self._made.items()}
        page: dict[str, pl.DataFrame] = state["_page"]
        self._page = {name: frame.clone for name, frame in page.items()}
        known = makers(self.task, self.dialect)
        self._exports = {name: known[name] for name in exported if name in known}

    @property
    def run(self) -> dict[str, Any]:
        """Versions, input digests and row counts, timings."""
        if not isinstance(self._run, dict):
            self._run = dict(self._run() if callable(self._run) else self._run)
        return self._run

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the frames this run has, in the order of the contract."""
        return tuple(name for name in FRAMES if name in self._providers)

    def frame(self, name: str) -> pl.DataFrame:
        """One output frame; without rows where the run did not ask for it.

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

    def asked_frame(self, name: str) -> pl.DataFrame:
        """One output frame that the run was to make.

        Raises:
            ResultError: no frame has that name, or no metric that was asked for fills it; says
                which does.
        """
        if name in FRAMES and name not in self._providers:
            raise ResultError(self._not_asked(name), code="not_kept", frame=name)
        return self.frame(name)

    def _not_asked(self, name: str) -> str:
        """What to say of a frame that this run did not make."""
        from ..metrics import all_metrics

        filling = [one.name for one in all_metrics(self.task).values() if one.frame == name]
        if name == "limits":
            return f"this run did not make the frame {name!r}: score it with {option(name, True)}."
        if not filling:
            return f"{self.task} has no frame {name!r}; this run has {', '.join(self.frames)}."
        asked = option("metrics", [*(self.options.metrics or ()), filling[0]])
        return (
            f"this run did not make the frame {name!r}: {' or '.join(filling)} fills it. Score"
            f" again with {asked}."
        )

    def in_file(self, name: str) -> FrameFile | None:
        """The file of a frame that is too large to be held; None where it is held, or made."""
        provider = self._providers.get(name)
        return provider if isinstance(provider, FrameFile) and name not in self._made else None

    def height(self, name: str) -> int:
        """Rows of a frame; one that stands in a file is not read."""
        file = self.in_file(name)
        return self.frame(name).height if file is None else file.height

    @property
    def paged(self) -> tuple[str, ...]:
        """Names of the frames that the report draws from."""
        return tuple(self._page)

    def page_frame(self, name: str) -> pl.DataFrame | None:
        """A frame that the report draws from; None where this run has none: see ``lacking``."""
        make = self._page.get(name)
        if make is None:
            return None
        try:
            frame = make()
        except ResultError as error:
            del self._page[name]
            self.lacking[name] = error.said
            return None
        self._page[name] = frame.clone
        return frame

    def make(self) -> None:
        """Make all frames that do not stand in files."""
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
        """One row per point of a curve; refused where no metric that was asked for makes one."""
        return self.asked_frame("curves")

    @property
    def examples(self) -> pl.DataFrame:
        """Cells of the detailed curves, with examples."""
        return self.asked_frame("examples")

    @property
    def confusion(self) -> pl.DataFrame:
        """Sparse confusion counts."""
        return self.asked_frame("confusion")

    @property
    def outcomes(self) -> pl.DataFrame:
        """One row per prediction or missed ground truth."""
        return self.asked_frame("outcomes")

    @property
    def errors(self) -> pl.DataFrame:
        """What is wrong with single predictions, and what was missed."""
        return self.asked_frame("errors")

    @property
    def label_errors(self) -> pl.DataFrame:
        """Ground truths that are likely wrong, and objects that they likely lack."""
        return self.asked_frame("label_errors")

    @property
    def per_datum(self) -> pl.DataFrame:
        """One row per datum, metric, statistic and k."""
        return self.asked_frame("per_datum")

    @property
    def limits(self) -> pl.DataFrame:
        """How far each number could move by what the tables leave open."""
        return self.asked_frame("limits")

    def value(self, metric: str, **filters: Any) -> float | None:
        """One number of the metrics frame; None where it is undefined.

        Columns that are not named prefer the whole: the aggregate over labels, the whole set
        instead of a slice, all areas, the largest cap on detections, the macro average, the
        whole list instead of a cut-off.

        Args:
            metric: metric name, or the title that the tables have for it, such as COCO's AP50.
            **filters: value of any column of the metrics frame, or ``label_name``; None means
                null. Floats are compared within 1e-9.

        Raises:
            ResultError: no such row, or more than one; says which column decides.

        Example:
            >>> card.value("mAP", iou_threshold=0.5)
            >>> card.value("AP", label_value="cat", iou_threshold=0.75)
        """
        from ..report.layouts import by_title
        from .lookup import SHORT, one_value

        refuse_cut_off()
        settled = {SHORT.get(name, name) for name in filters}
        there = self.metrics["metric"].unique()
        named = by_title(self.task, self.dialect, metric, settled, there)
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
        """The numbers as a flat dict of plain floats, as MLflow, W&B and TensorBoard take it.

        A name is the metric with what it was taken at, then, behind a slash each, slice and label:
        ``mAP_iou_0.5``, ``F1_macro``, ``nDCG_10``, ``AP_iou_0.5/weather_rain``, ``F1/cat``;
        in a dialect with names of its own those, such as ``AP50``. All but letters, digits,
        ``_``, ``.``, ``-`` and ``/`` becomes ``_``. Names that would be one say ``parameters`` as
        well, or end in a dot and six digits of a hash of what they stand for.

        Args:
            prefix: before every name, such as ``val/``.
            step: kept under ``step``, with the prefix; not there unless given.
            labels: whether numbers of single labels are there; those of a metric that has no other
                numbers always are if it is of one label, or was named in ``metrics`` and its
                mean over labels (``mAP`` of ``AP``) is missing.
            slices: whether numbers of slices are there.
            intervals: whether ``_lower`` and ``_upper`` are, of numbers that have an interval.
            undefined: what stands for a number that is undefined, such as NaN; left out unless
                given.

        Example:
            >>> card.to_dict("val/")
            {'val/mAPAveragedOverIOUs': 0.49, 'val/mAP_iou_0.5': 0.74, 'val/mAR': 0.56}
        """
        from ..report.flat import as_dict

        refuse_cut_off()
        return as_dict(
            self, prefix, step, labels=labels, slices=slices, intervals=intervals,
            undefined=undefined,
        )  # fmt: skip

    def to_valor(self) -> list[dict[str, Any]]:
        """Valor's list of ``{"type", "value", "parameters"}``, with ``"label"`` where it has it."""
        exported: list[dict[str, Any]] = self._export("valor")
        return exported

    def to_phoenix(self) -> list[dict[str, Any]]:
        """Phoenix's list of ``{"name", "score", "kind", "direction"}``."""
        exported: list[dict[str, Any]] = self._export("phoenix")
        return exported

    def to_continuous_eval(self) -> list[dict[str, float]]:
        """continuous-eval's dict of scores for every row."""
        exported: list[dict[str, float]] = self._export("continuous_eval")
        return exported

    def to_panoptic(self) -> dict[str, Any]:
        """panopticapi's results: All, Things, Stuff and per_class."""
        exported: dict[str, Any] = self._export("panoptic")
        return exported

    def to_remem(self) -> tuple[dict[str, float], list[dict[str, float]]]:
        """REMem's pooled values, and its dict for every example."""
        exported: tuple[dict[str, float], list[dict[str, float]]] = self._export("remem")
        return exported

    def to_ragas(self) -> list[dict[str, float]]:
        """ragas' dict of scores for every row."""
        exported: list[dict[str, float]] = self._export("ragas")
        return exported

    def to_coco(self) -> Any:
        """pycocotools' names, stats and arrays; see ``evalengine.exports.coco``."""
        return self._export("coco")

    def to_lvis(self) -> Any:
        """lvis-api's names, stats and arrays; see ``evalengine.exports.lvis``."""
        return self._export("lvis")

    def to_kitti(self) -> dict[str, float]:
        """KITTI's AP and AOS in percent, under OpenPCDet's names."""
        exported: dict[str, float] = self._export("kitti")
        return exported

    def to_trec(self) -> str:
        """What ``trec_eval -q`` prints: lines of measure, query or ``all``, and value."""
        exported: str = self._export("trec")
        return exported

    def _export(self, name: str) -> Any:
        refuse_cut_off()
        if name not in self._exports:
            raise ResultError(
                f"to_{name}() has no shape for task {self.task} with dialect {self.dialect}:"
                f" {who_has(name)} has it."
            )
        return self._exports[name](self)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write the frames as Parquet and ``run.json`` into a folder, all or nothing.

        Args:
            directory: the folder to make.
            overwrite: replace an earlier result that stands there.

        Returns:
            the folder.
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
            sort: order of labels and slices: ``value`` (the worst first), ``label``, ``support``,
                or a column's title.
            top: rows of each table; 0 or ``all`` for every row.
            wide: every column, whatever the terminal's width.

        Raises:
            OptionError: no such format or column.
        """
        from ..report.look import look
        from ..report.show import show

        show(self, format, look=look(sort, top, wide=wide))

    def to_html(
        self, path: str | Path, *, baseline: Any = None, images: str | Path | None = None
    ) -> Path:
        """Write one HTML file about the run; see :func:`evalengine.report`.

        Args:
            path: the file, ending in .html.
            baseline: an earlier run, or the folder of a saved one.
            images: folder of pictures by datum id, shown small for the worst datums.

        Returns:
            the file.
        """
        import evalengine

        made: Path = evalengine.report(self, path, baseline=baseline, images=images)
        return made

    def __repr__(self) -> str:
        from ..report.summary import as_text

        refuse_cut_off()
        return as_text(self)

    def _repr_html_(self) -> str:
        from ..report.notebook import as_html

        refuse_cut_off()
        return as_html(self)


def load(directory: str | Path) -> Any:
    """The scorecard or comparison that was saved in a folder.

    Frames of a scorecard are read when they are asked for.

    Raises:
        ResultError: no result stands there, or parts of it are missing or cut short.

    Example:
        >>> import evalengine as ee
        >>> ee.load("runs/monday").value("mAP", iou_threshold=0.5)
    """
    from .comparisons import is_comparison, read_comparison
    from .storage import read

    refuse_cut_off()
    if is_comparison(directory):
        from ..statistics.comparison import Comparison

        return Comparison(**read_comparison(directory))
    return Scorecard(**read(directory))
