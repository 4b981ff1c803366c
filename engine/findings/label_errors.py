"""Ground truths that are likely wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import polars as pl

from ..evaluation import planner
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..progress import Progress, reports_progress
from ..run import card_of_run, class_names, is_scored, refusal, refuse_tables
from ..schemas.contract import NAMES
from ..schemas.errors import ResultError, invalid, unknown
from ..schemas.label_errors import QUALITIES, REASONS, WAYS
from ..schemas.named import Named
from ..schemas.option_values import make_options
from ..schemas.options import Options
from ..schemas.wording import option
from . import FindingResult, with_boxes, with_names

# Result class of ``find_label_errors``.


class FoundLabelErrors(FindingResult, eq=False):
    """Ground truths that are likely wrong, most suspicious first.

    Attributes:
        rows: the first ``top`` rows of the ``label_errors`` frame, in order.
        n: number of suspicious ground truths, shown or not.
        names: label value, as text -> name of the class, if it has another.
    """

    rows: pl.DataFrame
    n: int
    names: dict[str, str]
    _name = "label_errors"

    def _heading(self) -> str:
        if not self.n:
            return "no label is suspicious"
        top = f", the {len(self):,} most suspicious" if len(self) < self.n else ""
        return f"{count_of(self.n, 'label')} may be wrong{top}"

    def _rows(self) -> pl.DataFrame:
        return self.rows

    def _table_rows(self) -> pl.DataFrame:
        rows = with_boxes(self.rows).drop(*_QUIET)
        rows = with_names(rows, ("label_value", "suggested"), self.names)
        return rows.drop("label_key") if rows["label_key"].n_unique() <= 1 else rows


_QUIET = ("normalized_margin", "confidence_weighted_entropy", "found_by")
"""Columns for programs only."""

# From a run to the ground truths that are likely wrong.

FRAME = "label_errors"
FILTER_BY, RANK_BY = "prune_by_noise_rate", QUALITIES[0]
_COLUMNS = dict(zip(QUALITIES, (QUALITIES[0], "given_score", QUALITIES[2]), strict=True))


@reports_progress
def find_label_errors(
    run: Any,
    ground_truths: Any = None,
    *,
    top: int | None = None,
    reasons: str | Sequence[str] | None = None,
    filter_by: str | None = None,
    rank_by: str | None = None,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundLabelErrors:
    """Find ground truths that are likely wrong, most suspicious first.

    Classification uses confident learning, which is most accurate with probabilities of a model
    that was not trained on these datums. Detection uses confident predictions that contradict
    ground truths, and outliers among the ground truths.

    Args:
        run: predictions, as :func:`evalengine.score` takes them, or a :class:`evalengine.Scorecard`
            or the folder of a saved one that has the metric ``LabelErrors``.
        ground_truths: if the run is predictions.
        top: maximum number; by default all.
        reasons: one or several to include: ``other label``, and in detection ``missing``,
            ``location``, ``duplicate``, ``unfound``, ``tiny``; by default all.
        filter_by: in classification, the method that selects datums: prune_by_class,
            prune_by_noise_rate (default), both, confident_learning, or argmax for all whose most
            probable label is another.
        rank_by: in classification, the label quality that orders them: normalized_margin (default),
            self_confidence or confidence_weighted_entropy.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.findings.label_errors.FoundLabelErrors`, whose ``rows`` have the
        columns of the ``label_errors`` frame.

    Raises:
        OptionError: no such reason, method or quality; options that do not apply to a scored run.
        ResultError: a task without label errors, or a scored run without the metric.

    Example:
        >>> import evalengine as ee
        >>> ee.find_label_errors("preds.parquet", "gts.parquet").rows  # doctest: +SKIP
    """
    for name, value, choices in (("filter_by", filter_by, WAYS), ("rank_by", rank_by, QUALITIES)):
        if value is not None and value not in choices:
            raise unknown(name, value, choices)
    reasons = (reasons,) if isinstance(reasons, str) else reasons
    for reason in reasons or ():
        if reason not in REASONS:
            raise unknown("reason", reason, REASONS)
    if top is not None and top < 1:
        raise invalid("top", top, "write 1 or more.")
    chosen = make_options(options, **named)
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    if is_scored(run):
        refuse_tables(tables)
    card = card_of_run(tables, chosen, showing=[FRAME], in_memory=False)
    filling = planner.filling(card.task, FRAME)
    if not filling:
        able = [task for task in NAMES if planner.filling(task, FRAME)]
        raise ResultError(
            f"labels are judged in {' and '.join(able)}; this run is {card.task}.",
            code="task_unfit",
            task=card.task,
        )
    if FRAME not in card.frames:
        if not is_scored(run):
            raise ResultError(refusal(FRAME, card.task, chosen, tables), code="not_kept")
        way = option("metrics", [one.name for one in filling])
        raise ResultError(f"the run keeps no label errors: score it with {way}.", code="not_kept")
    rows = card.frame(FRAME)
    notes = [] if is_scored(run) else list(card.notes)
    if card.options.multilabel:
        notes.append("datums may have several labels: label errors need exactly one per datum.")
    several_ways = rows["found_by"].null_count() < rows.height
    if rows.height and not several_ways:
        for name, value in (("filter_by", filter_by), ("rank_by", rank_by)):
            if value is not None:
                raise invalid(
                    name,
                    value,
                    f"label errors of {card.task} have one order, the most"
                    f" suspicious first: omit it, or choose by {option('reasons')}.",
                    code="option_unread",
                )
    if several_ways:
        rows = rows.filter(pl.col("found_by").str.split(" ").list.contains(filter_by or FILTER_BY))
        rows = rows.sort(_COLUMNS[rank_by or RANK_BY], "datum_id", "label_key")
    if reasons is not None:
        present: list[str] = sorted(rows["reason"].unique())
        rows = rows.filter(pl.col("reason").is_in(list(reasons)))
        if not rows.height and present:
            notes.append(f"no label error of these reasons; there are {', '.join(present)}.")
    first = rows if top is None else rows.head(top)
    return FoundLabelErrors(first, rows.height, dict(class_names(card)), messages=tuple(notes))
