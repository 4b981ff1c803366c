"""Ranked list of likely problems in a run or its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .analysis.diagnosis_table import Diagnosis
from .analysis.suspicions import FEW, Finding, confused, fits, label_errors, scored_apart
from .analysis.suspicions import labels as of_labels
from .analysis.worst import losses_of, shares, worst, worst_codes
from .finding_label_errors import FILTER_BY
from .held_runs import card_of, is_scored, own_ious, tallied_of
from .ingest.contracts import contract
from .ingest.names import recognise
from .ingest.problems import count_of
from .ingest.sources.tables import open_source
from .metrics import get as metric_of
from .plan.planner import filling, make_plan
from .report.summary import number
from .schemas.contract import DATUMS, GROUND_TRUTHS, PREDICTIONS, TABLE
from .schemas.errors import EvalengineError
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.tables import contracts
from .scorecard.card import Scorecard
from .slicing import found_slices
from .tasks.probabilities import NotProbabilities

if TYPE_CHECKING:
    from typing import Unpack

    from .schemas.named import Named

_FRAMES = {
    "outcomes": "labels of which more is missed or made up than of others",
    "confusion": "labels that others are taken for",
    "label_errors": "ground truths that are likely wrong",
}
"""Frames that are searched -> name of the finding."""
_DRAWS = 99
_P = 0.05


def diagnose(
    run: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> Diagnosis:
    """Find likely causes of errors in a run or in its tables, most likely first.

    Warnings come first. They are followed by labels that are confused with others, labels and
    slices that are worse than the rest by more than chance, ground truths that are likely wrong and
    the column values for which these are frequent, and duplicate datums, ordered by the share of
    all errors that they explain. Without such findings the worst datums are listed. Notes state
    which searches were not possible, and why.

    Args:
        run: predictions, as :func:`score` takes them; a scored run, or the folder of a saved one.
        ground_truths: if the run is predictions.
        datums: table of all datums; its columns are searched for slices.
        labels: table or list of declared classes.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.analysis.diagnosis_table.Diagnosis`, whose ``frame`` has ``finding``
        (String), ``share`` (Float64, approximate share of all errors that it explains; 1 for
        warnings), ``n`` (Int64, datums or rows) and ``more`` (String, the command for details).

    Raises:
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.diagnose("preds.parquet", "gts.parquet", datums="images.parquet")  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    given = run, ground_truths, chosen, datums, labels, storage_options
    held = chosen.memory_limit is None
    said: list[str] = []
    try:
        card = card_of(*given, showing=list(_FRAMES), held=held)
    except NotProbabilities as error:  # the rest can be told without judging labels
        card = card_of(*given, showing=list(_FRAMES)[:-1], held=held)
        said.append(_unlooked(_FRAMES["label_errors"], error))
    columns = _columns(datums, chosen, storage_options, card.task)
    said += _unkept(card) if is_scored(run) else []
    found = [Finding(warning, 1.0, 0, "check") for warning in card.warnings]
    frames = {name: card.frame(name) for name in _FRAMES if name in card.frames}
    looked = datums is not None or bool(chosen.by) or is_scored(run)
    slices = list(_slices(card, datums, said)) if looked else []
    found += _label_numbers(card)
    found += slices
    if "confusion" in frames:
        found += confused(frames["confusion"])
    if "outcomes" in frames:
        outcomes = frames["outcomes"]
        settings = make_plan(card.options, card.task).settings
        at = outcomes["iou_threshold"].min() if "iou_threshold" in outcomes.columns else None
        if at is not None:
            names = card.labels["label_value"]
            said += own_ious(settings, names, at, "pr_curve_iou_threshold")
        found += of_labels(outcomes)
        found += fits(outcomes, columns)
        found += scored_apart(outcomes, columns, [one.finding for one in slices])
    if "label_errors" in frames:
        found += label_errors(frames["label_errors"], _truths(card), columns, FILTER_BY)
    found += _twice(card, run, ground_truths, chosen, storage_options, said)
    if not any(one.share for one in found):
        found += _singles(card, said)
    frame = pl.DataFrame(
        sorted(found, key=lambda one: (-one.share, not one.n)),
        schema={"finding": pl.String, "share": pl.Float64, "n": pl.Int64, "more": pl.String},
        orient="row",
    )
    return Diagnosis(frame, said)


def _truths(card: Scorecard) -> int:
    """Ground truths in all; of runs without numbers of labels rows of their table."""
    rows = card.metrics.filter(pl.col("label_value").is_not_null() & pl.col("slice").is_null())
    return int(rows.unique("label_value")["support"].sum()) or card.read.get(GROUND_TRUTHS) or 1


def _unlooked(what: str, error: EvalengineError) -> str:
    """Return a note that a search was not possible, with the start of the error message."""
    why = re.split(r"[.:;](?:\s|$)", str(error), maxsplit=1)[0]
    return f"{what} were not looked for: {why}."


def _unkept(card: Scorecard) -> Iterator[str]:
    """Yield notes on searches that a scored run has no frame for."""
    for frame, what in _FRAMES.items():
        metrics = filling(card.task, frame)
        if metrics and frame not in card.frames:
            yield (
                f"{what} were not looked for: the run keeps no frame {frame}, which metric"
                f" {metrics[0].name} makes."
            )


def _label_numbers(card: Scorecard) -> Iterator[Finding]:
    """Find labels whose number is far below that of every other."""
    rows = card.metrics.filter(
        pl.col("slice").is_null()
        & pl.col("label_value").is_not_null()
        & pl.col("value").is_not_null()
    )
    keys = ["metric", "statistic", "iou_threshold", "score_threshold", "k", "area"]
    for _, one in rows.group_by(keys, maintain_order=True):
        metric = metric_of(card.task, one["metric"][0])
        if one.height < 3 or metric.better == "neither":
            continue
        ordered = one.sort("value", descending=metric.better == "lower")
        low, rest = ordered.row(0, named=True), ordered["value"][1:]
        values = rest.to_numpy()
        middle = float(np.median(values))
        spread = float(np.median(np.abs(values - middle)))
        gap = abs(middle - low["value"])
        if gap > 0.25 * abs(middle) and gap > 5 * max(spread, 0.02):
            support = int(one["support"].fill_null(0).sum())
            share = (low["support"] or 0) / max(support, 1) * gap / max(abs(middle), 1e-9)
            yield Finding(
                f"{low['metric']} of label {low['label_value']!r} is {number(low['value'])},"
                f" that of the others {number(middle)}",
                min(1.0, share), int(low["support"] or 0), "explain --number",
            )  # fmt: skip
            return


def _slices(card: Scorecard, datums: Any, said: list[str]) -> Iterator[Finding]:
    try:
        asked = Options(draws=_DRAWS)
        found = found_slices(
            card, None, asked, datums=datums, top=FEW, levels=2, least=None, alpha=0.95,
            confirm=False,
        )  # fmt: skip
    except EvalengineError as error:
        said.append(_unlooked("slices", error))
        return
    for row in found.frame.iter_rows(named=True):
        if row["p_adjusted"] is not None and row["p_adjusted"] > _P:
            continue
        mean = row["share"] * row["loss"] + (1 - row["share"]) * row["loss_elsewhere"]
        share = row["share"] * (row["loss"] - row["loss_elsewhere"]) / max(mean, 1e-12)
        value, elsewhere = (
            "undefined" if row[name] is None else number(row[name])
            for name in ("value", "elsewhere")
        )
        if value == elsewhere:
            continue
        yield Finding(
            f"datums with {row['slice']}: {row['metric']} {value}, elsewhere {elsewhere}",
            max(0.0, min(1.0, share)), row["size"], "slices",
        )  # fmt: skip


def _columns(
    datums: Any, options: Options, storage_options: dict[str, str] | None, task: str
) -> pl.DataFrame | None:
    """Return the datum ids with the further columns of the datums."""
    if datums is None:
        return None
    source = open_source(datums, storage_options=storage_options)
    frame = source.frame if source.datums is None else source.datums.lazy()
    schema = frame.collect_schema()
    exprs = recognise(schema, contracts(task)[DATUMS], options.columns)
    if "datum_id" not in exprs.exprs:
        return None
    known = {*exprs.exprs, *exprs.recognised}
    return frame.select(
        exprs.exprs["datum_id"].alias("datum_id"), *(name for name in schema if name not in known)
    ).collect()


def _twice(
    card: Scorecard,
    predictions: Any,
    ground_truths: Any,
    options: Options,
    storage_options: dict[str, str] | None,
    said: list[str],
) -> Iterator[Finding]:
    """Find datums all of whose rows also occur under another id."""
    if is_scored(predictions):
        said.append("duplicate datums were not looked for: a scored run keeps no tables.")
        return
    hashes = []
    known = contracts(card.task)
    first = TABLE if ground_truths is None else PREDICTIONS
    for role, given in ((first, predictions), (GROUND_TRUTHS, ground_truths)):
        if given is None:
            continue
        if role not in known:
            return
        try:
            source = open_source(given, storage_options=storage_options)
            schema = source.frame.collect_schema()
            own = contract(card.task, role, options, schema)
            exprs = recognise(schema, own, options.columns).exprs
        except EvalengineError as error:
            said.append(_unlooked("duplicate datums", error))
            return
        names = [name for name in exprs if name not in ("datum_id", "annotation_id")]
        if "datum_id" not in exprs or not names:
            return
        rows = source.frame.select(exprs[name].alias(name) for name in ("datum_id", *names))
        types = rows.collect_schema()
        simple = [n for n in names if not types[n].is_nested() and types[n] != pl.Object]
        if not simple:
            return
        row = rows.select("datum_id", row=pl.struct(simple).hash(seed=1))
        each = row.group_by("datum_id").agg(pl.col("row").sort().hash(seed=2).sum())
        hashes.append(each.collect(engine="streaming"))
    both = hashes[0]
    for more in hashes[1:]:
        both = both.join(more, on="datum_id", how="inner", suffix="_more")
    by = [name for name in both.columns if name != "datum_id"]
    groups = (
        both.group_by(by).agg(ids=pl.col("datum_id").sort()).filter(pl.col("ids").list.len() > 1)
    )
    copies = int(groups["ids"].list.len().sum()) - groups.height
    if not copies or copies > both.height / 2:
        return
    first = groups.sort(pl.col("ids").list.first())["ids"][0].to_list()[:2]
    yield Finding(
        f"{count_of(copies, 'datum')} with the rows of another one (duplicates), first"
        f" {first[1]!r} and {first[0]!r}",
        min(1.0, 3 * copies / both.height), copies, "check",
    )  # fmt: skip


def _singles(card: Scorecard, said: list[str]) -> Iterator[Finding]:
    try:
        tallied = tallied_of("the run", card, "single datums")
        losses = losses_of(tallied)
    except EvalengineError as error:
        said.append(_unlooked("single datums", error))
        return
    rows = worst(tallied, FEW, losses)
    each = shares(losses, worst_codes(losses, FEW)).tolist()
    for (one, why), share in zip(rows.select("datum_id", "why").rows(), each, strict=True):
        yield Finding(f"datum {one}: {why}", share, 1, "errors")
