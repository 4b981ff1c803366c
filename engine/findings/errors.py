"""Errors of a run: its worst datums and the rows responsible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import msgspec
import polars as pl

from ..atomic import guarding, refuse
from ..evaluation import planner
from ..evaluation.paging import losses_of, worst
from ..evaluation.summary import judged_of
from ..ingest.infer import recognise
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..ingest.sources.tables import open_source
from ..progress import Progress, reports_progress, step
from ..report.text import number
from ..run import (
    card_of_run,
    class_names,
    is_scored,
    open_tables,
    own_ious,
    refusal,
    refuse_own,
    refuse_tables,
    score_opened,
    tallied_of,
)
from ..schemas.contract import DATUM_TABLE
from ..schemas.errors import ResultError, invalid, unknown
from ..schemas.named import Named
from ..schemas.option_values import make_options
from ..schemas.options import Options
from ..schemas.wording import in_python, option
from ..scorecard.card import Scorecard
from ..tasks.task import Losses
from . import FindingResult, with_boxes, with_names

# Result class of ``find_errors``.


class FoundErrors(FindingResult, eq=False):
    """Errors of a run, worst first.

    Attributes:
        datums: the worst datums, see :func:`evalengine.evaluation.paging.worst`:
            ``datum_id, metric, value, why, parameters``.
        rows: wrong rows of these datums: the rows of the ``errors`` frame that the metric of
            ``datums`` counts, at its IoU and score threshold. None in tasks that judge whole
            datums, and for a scored run that has no such frame.
        rowless: reason why ``rows`` is None; otherwise None.
        n: number of datums of the run.
        row_messages: notes on rows that are not included, options marked as in ``messages``.
        names: label value, as text -> name of the class, if it has another.
    """

    datums: pl.DataFrame
    rows: pl.DataFrame | None
    n: int
    rowless: str | None = None
    row_messages: tuple[str, ...] = ()
    names: dict[str, str] = msgspec.field(default_factory=dict)
    _images: Callable[[], pl.DataFrame | None] | None = None
    _name = "datums"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, one sentence each."""
        return tuple(map(in_python, (*self.messages, *self.row_messages)))

    def write(self, form: str, path: str | Path) -> int:
        """Write ``rows`` as tasks for an image annotation tool.

        Args:
            form: ``label-studio``, ``cvat`` (for images 1.1), or ``coco``, which FiftyOne reads,
                with the properties of each error as attributes.
            path: the file, written atomically.

        Returns:
            number of images.

        Raises:
            ResultError: there are no rows; the message gives the reason.
            InputError: image sizes that the format needs are unknown.
        """
        from ..exports.review import write

        refuse(path, self.inputs)
        if self.rows is None:
            raise ResultError(f"there are no rows to plot: {self.rowless}.", code="not_kept")
        images = None if self._images is None else self._images()
        return write(self.rows, images, form, path)

    def _heading(self) -> str:
        if not len(self):
            return f"no errors in {count_of(self.n, 'datum')}"
        first = self.datums.row(0, named=True)
        made_with = msgspec.json.decode(first["parameters"]) if first["parameters"] else {}
        at = ", ".join(
            f"{name.replace('_', ' ')} {number(value) if isinstance(value, float) else value}"
            for name, value in made_with.items()
        )
        by = first["metric"] + (f" ({at})" if at else "")
        few = f"{len(self):,} " if len(self) > 1 else ""
        return f"the {few}worst of {count_of(self.n, 'datum')}, by {by}"

    def _rows(self) -> pl.DataFrame:
        return self.datums

    def _table_rows(self) -> pl.DataFrame:
        name = self.datums["metric"][0] if len(self) else "value"
        return self.datums.select("datum_id", pl.col("value").alias(name), "why")


class ErrorRows(FindingResult, eq=False):
    """Display of the wrong rows."""

    of: FoundErrors
    _name = "errors"

    def _heading(self) -> str:
        return self.of._heading()

    def _rows(self) -> pl.DataFrame:
        return self.of.datums if self.of.rows is None else self.of.rows

    def _table_rows(self) -> pl.DataFrame:
        rows = with_boxes(self._rows())
        same = [name for name in ("label_key", "iou_threshold") if rows[name].n_unique() <= 1]
        return with_names(rows.drop(same), ("label_value", "annotation_label"), self.of.names)

    def __len__(self) -> int:
        return len(self.of)


# Implementation of ``find_errors``: the worst datums and their wrong rows.


FRAME = "errors"
_TOLD = ("datum_id", "width", "height", "file_name")
ORDERS = ("loss", "score")
"""By how wrong their datums are, or by how sure predictions were."""


@reports_progress
@guarding
def find_errors(
    run: Any,
    ground_truths: Any = None,
    *,
    top: int = 50,
    sort: str = "loss",
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundErrors:
    """Find the errors of a run, worst datums first.

    Args:
        run: a :class:`evalengine.Scorecard`, the folder of a saved one, or predictions, as
            :func:`evalengine.score` takes them. A scored run has rows of errors only if it has the
            metric that produces them (``Errors`` in detection).
        ground_truths: if the run is predictions.
        top: maximum number of datums, and of rows.
        sort: order of the rows: ``loss``, by the loss of their datums, or ``score``, by the score
            of predictions, missed ground truths last.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.findings.errors.FoundErrors`: ``datums``, and ``rows`` in tasks
        whose rows are right or wrong: the rows that the metric of ``datums`` counts.

    Raises:
        OptionError: an order of rows that the scored run does not have; options that contradict
            those of a scored run.
        ResultError: a run whose tally was too large to keep.

    Example:
        >>> import evalengine as ee
        >>> ee.find_errors("preds.parquet", "gts.parquet").rows  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    if top < 1:
        raise invalid("top", top, "write 1 or more.")
    if sort not in ORDERS:
        raise unknown("sort", sort, ORDERS)
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    if is_scored(run):
        refuse_tables(tables, datums=False)
    else:
        step("scoring")
    card, losses, ranking = _judged(tables, chosen)
    n = ranking.height if card.read.get("datums") is None else card.read["datums"]
    at = losses.made_with.get("iou_threshold")
    settings = planner.make_plan(card.options, card.task).settings
    notes = (
        *(() if is_scored(run) else card.notes),
        *own_ious(settings, card.labels["label_value"], at, "iou_thresholds"),
    )
    filled_by = [one.name for one in planner.filling(card.task, FRAME)]
    rowless = None
    if not filled_by:
        rowless = f"in {card.task} datums are wrong as wholes, not row by row"
    elif FRAME not in card.frames:
        reason = f"score it with {option('metrics', filled_by[:1])}"
        if not is_scored(run):
            reason = refusal(FRAME, card.task, chosen, tables).rstrip(".") or reason
        rowless = f"the run keeps no rows of errors ({reason})"
    if rowless is not None:
        if sort != "loss":
            raise invalid("sort", sort, f"{rowless}; omit it.", code="option_unread")
        return FoundErrors(ranking.head(top), None, n, rowless=rowless, messages=notes)
    counted = card.frame(FRAME)
    row_notes: list[str] = []
    if losses.rows is not None:
        counted, row_notes = losses.rows(counted)
    place = ranking.select("datum_id", place=pl.int_range(pl.len()))
    by = ["place", "score"] if losses.by_score else ["place"]
    by = ["score", "place"] if sort == "score" else by
    falling = [one == "score" for one in by]
    rows = counted.join(place, on="datum_id", how="left", maintain_order="left")
    rows = rows.sort(by, descending=falling, nulls_last=True, maintain_order=True).drop("place")
    images = partial(_images, tables, chosen)
    return FoundErrors(
        ranking.head(top),
        rows.head(top),
        n,
        _images=images,
        messages=notes,
        row_messages=tuple(row_notes),
        names=dict(class_names(card)),
    )


def _judged(tables: Tables, options: Options) -> tuple[Scorecard, Losses, pl.DataFrame]:
    """Return the scorecard of a run, its losses, and the datums, worst first."""
    with ExitStack() as disk:
        if is_scored(tables.predictions):
            card = card_of_run(tables, options, settable=["columns"])
        else:
            opened = open_tables(tables, options)
            plan, parts = opened.plan, opened.plan.does.in_parts
            bounded = options.memory_limit is not None and bool(planner.filling(plan.task, FRAME))
            bounded &= parts is None or parts.judged is not None
            frames = [FRAME, "per_datum"] if bounded else [FRAME]
            opened.plan = planner.showing(plan, frames)
            card = score_opened(opened, in_memory=not bounded, disk=disk if bounded else None)
        tallied = tallied_of("the run", card, "finding errors")
        refuse_own(tallied, options)
        step("searching for errors")
        judged = judged_of(tallied.plan, tallied.tallies)
        tallied = msgspec.structs.replace(tallied, tallies=judged)
        losses = losses_of(tallied)
        return card, losses, worst(tallied, len(tallied.tallies.datums), losses)


def _images(tables: Tables, options: Options) -> pl.DataFrame | None:
    """Return ids, sizes and names of images, from the table of datums or the ground truths."""
    rows = None
    for table in (tables.datums, tables.ground_truths):
        if table is not None and rows is None:
            source = open_source(table, storage_options=tables.storage_options)
            datums = None if source.datums is None else source.datums.lazy()
            rows = source.frame if table is tables.datums and datums is None else datums
    if rows is None:
        return None
    schema = rows.collect_schema()
    exprs = dict(recognise(schema, DATUM_TABLE, options.columns).exprs)
    return rows.select(exprs[name].alias(name) for name in _TOLD if name in exprs).collect()
