"""What is most likely wrong in a run or its tables, of everything that is looked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from .analysis.worst import losses_of, shares, worst, worst_codes
from .held_runs import card_of, is_scored, tallied_of
from .ingest.names import recognise
from .ingest.problems import count_of
from .ingest.sources.tables import open_source
from .metrics import get as metric_of
from .plan.planner import filling
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
"""Frames that are looked at, and what for."""
_SURE = 4.0
"""Standard deviations from what chance would make, from which something is told."""
_SUSPICIOUS = 0.5
_DRAWS = 99
_FEW = 5
_P = 0.05


class _Finding(NamedTuple):
    """Something that is likely wrong.

    Attributes:
        finding: in words.
        share: of all that is wrong, how much of it this explains, about, in [0, 1].
        n: datums, rows or ground truths that it is about.
        more: the command that tells more.
    """

    finding: str
    share: float
    n: int
    more: str


def diagnose(
    predictions: Any,
    ground_truths: Any = None,
    *,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    **named: Unpack[Named],
) -> pl.DataFrame:
    """What is most likely wrong in a run or in its tables, the likeliest first.

    Warnings stand first. Then come labels that others are taken for, labels and slices of the
    datums that are worse than the rest by more than chance, ground truths that are likely wrong and
    where they gather, and duplicate datums; ordered by how much of all that is wrong they
    explain. Where nothing stands out, the worst single datums do. What needs rows or single datums
    that the run does not hold, as in bounded memory, stands last, with the reason.

    Args:
        predictions: as :func:`score` takes them; or a scored run, or the folder of a saved one.
        ground_truths: of predictions that are not scored yet.
        datums: table of all datums; its columns are searched for slices.
        labels: table or list of declared classes.
        options: options to start from; those named here win.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        ``finding`` (String), ``share`` (Float64, about how much of what is wrong it explains; 1 for
        warnings, 0 for what could not be looked for, which stands last),
        ``n`` (Int64, datums or rows), ``more`` (String, the command to go on with).

    Raises:
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.diagnose("preds.parquet", "gts.parquet", datums="images.parquet")  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    given = predictions, ground_truths, chosen, datums, labels, storage_options
    found, held = [], chosen.memory_limit is None
    try:
        card = card_of(*given, showing=list(_FRAMES), held=held)
    except NotProbabilities as error:  # the rest can be told without judging labels
        card = card_of(*given, showing=list(_FRAMES)[:-1], held=held)
        found.append(_unlooked(_FRAMES["label_errors"], error, "label-errors"))
    columns = _columns(datums, chosen, storage_options, card.task)
    found += _unkept(card) if is_scored(predictions) else []
    found += [_Finding(said, 1.0, 0, "check") for said in card.warnings]
    found += _confused(card)
    found += _labels(card)
    found += _label_numbers(card)
    found += _slices(card, datums, chosen)
    found += _label_errors(card, columns)
    found += _twice(card, predictions, ground_truths, chosen, storage_options)
    if not any(one.share for one in found):
        found += _singles(card)
    return pl.DataFrame(
        sorted(found, key=lambda one: (-one.share, not one.n)),
        schema={"finding": pl.String, "share": pl.Float64, "n": pl.Int64, "more": pl.String},
        orient="row",
    )


def _unlooked(what: str, error: EvalengineError, more: str) -> _Finding:
    """That something was not looked for, and why in a few words: its own command tells them all."""
    why = re.split(r"[.:;](?:\s|$)", str(error), maxsplit=1)[0]
    return _Finding(f"{what} were not looked for: {why}", 0.0, 0, more)


def _unkept(card: Scorecard) -> Iterator[_Finding]:
    """What cannot be looked for in a run that was scored without the metrics that tell it."""
    for frame, what in _FRAMES.items():
        metrics = filling(card.task, frame)
        if metrics and frame not in card.frames:
            yield _Finding(
                f"{what} were not looked for: the run keeps no frame {frame}, which metric"
                f" {metrics[0].name} makes", 0.0, 0, "score",
            )  # fmt: skip


def _excess(inside: float, n: float, wrong: float, every: float) -> tuple[float, float]:
    """How many more are wrong inside than outside would make, and in standard deviations."""
    outside = (wrong - inside + 0.5) / (every - n + 1)
    spread = (max(n, 1) * outside * (1 - min(outside, 1.0)) + 0.25) ** 0.5
    return inside - n * outside, (inside - n * outside) / spread


def _confused(card: Scorecard) -> Iterator[_Finding]:
    """Labels most of whose ground truths are taken for one other."""
    if "confusion" not in card.frames:
        return
    rows = card.frame("confusion").filter(pl.col("slice").is_null())
    for name in ("iou_threshold", "score_threshold"):
        rows = rows.filter(pl.col(name).is_null() | (pl.col(name) == pl.col(name).min()))
    actual = rows.drop_nulls("actual")
    known = dict(actual.group_by("actual").agg(pl.col("count").sum()).rows())
    others = actual.drop_nulls("predicted").filter(pl.col("actual") != pl.col("predicted"))
    missed = float(rows.filter(pl.col("actual").ne_missing(pl.col("predicted")))["count"].sum())
    taken = {(a, p): n for a, p, n in others.select("actual", "predicted", "count").rows()}
    predicted = dict(others.group_by("predicted").agg(pl.col("count").sum()).rows())
    for (a, p), n in taken.items():
        rest = predicted[p] - n
        more, sure = _excess(n, known[a], n + rest, sum(known.values()))
        if n < 3 or sure < _SURE or n < 0.15 * known[a]:
            continue
        back = taken.get((p, a), 0)
        swapped = back >= 0.15 * known.get(p, 1) and back >= 3
        if swapped and str(p) < str(a):
            continue
        said = f"label {a!r} is taken for {p!r}: {n:,.0f} of {known[a]:,.0f}"
        if swapped:
            said += f", and {p!r} for {a!r}: {back:,.0f} of {known[p]:,.0f}; names changed places?"
            more += back
        yield _Finding(said, min(1.0, more / max(missed, 1)), int(n), "errors --rows")


def _labels(card: Scorecard) -> Iterator[_Finding]:
    """Labels of which more is missed, or more is made up, than of the others."""
    if "outcomes" not in card.frames:
        return
    rows = card.frame("outcomes").filter(pl.col("outcome") != "ignored")
    at = pl.col("iou_threshold")
    rows = rows.filter(at.is_null() | (at == at.min()))
    side = pl.when(pl.col("outcome").str.starts_with("fn")).then(pl.lit("missed")).when(
        pl.col("outcome").str.starts_with("fp")).then(pl.lit("false"))  # fmt: skip
    rows = rows.with_columns(side=side)
    total = rows["side"].drop_nulls().len()
    yield from _turned(rows, total)
    for kind, said in (("missed", "of its ground truths missed"), ("false", "predictions false")):
        own = rows.filter(pl.col("side").is_null() | (pl.col("side") == kind))
        table = own.group_by("label_value").agg(
            n=pl.len(), wrong=(pl.col("side") == kind).fill_null(False).sum()
        )
        wrong, every = int(table["wrong"].sum()), int(table["n"].sum())
        for label, n, bad in table.rows():
            more, sure = _excess(bad, n, wrong, every)
            if sure >= _SURE and more >= 3:
                yield _Finding(
                    f"label {label!r}: {bad:,} of {n:,} {said},"
                    f" {(wrong - bad) / max(every - n, 1):.0%} of all others",
                    min(1.0, more / max(total, 1)), bad, "explain --number",
                )  # fmt: skip


def _turned(rows: pl.DataFrame, total: int) -> Iterator[_Finding]:
    """Labels whose wrong predictions score higher than their right ones."""
    scored = rows.drop_nulls("score").filter(~pl.col("outcome").str.starts_with("fn"))
    for (label,), own in scored.group_by("label_value", maintain_order=True):
        right = own["outcome"] == "tp"
        n, m = int(right.sum()), int((~right).sum())
        if min(n, m) < _FEW:
            continue
        wins = (
            float(own["score"].rank().filter(right).sum()) - n * (n + 1) / 2
        )  # Mann and Whitney 1947
        below, spread = n * m / 2 - wins, (n * m * (n + m + 1) / 12) ** 0.5
        if below > _SURE * spread:
            yield _Finding(
                f"label {label!r}: wrong predictions score higher than right ones (area under the"
                f" ROC curve {wins / (n * m):.2f}); scores turned round?",
                min(1.0, max(m / max(total, 1), 2 * below / (n * m))), m, "explain --number",
            )  # fmt: skip


def _label_numbers(card: Scorecard) -> Iterator[_Finding]:
    """Labels whose number lies far below that of every other."""
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
            yield _Finding(
                f"{low['metric']} of label {low['label_value']!r} is {number(low['value'])},"
                f" that of the others {number(middle)}",
                min(1.0, share), int(low["support"] or 0), "explain --number",
            )  # fmt: skip
            return


def _slices(card: Scorecard, datums: Any, options: Options) -> Iterator[_Finding]:
    if datums is None and not options.by:
        return
    try:
        asked = Options(draws=_DRAWS)
        found = found_slices(
            card, None, asked, datums=datums, top=_FEW, levels=2, least=None, alpha=0.95,
            confirm=False,
        )  # fmt: skip
    except EvalengineError as error:
        yield _unlooked("slices", error, "slices")
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
        yield _Finding(
            f"datums with {row['slice']}: {row['metric']} {value}, elsewhere {elsewhere}",
            max(0.0, min(1.0, share)), row["size"], "slices",
        )  # fmt: skip


def _columns(
    datums: Any, options: Options, storage_options: dict[str, str] | None, task: str
) -> pl.DataFrame | None:
    """Ids of datums, and what is known of them beside."""
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


def _label_errors(card: Scorecard, columns: pl.DataFrame | None) -> Iterator[_Finding]:
    """Ground truths that are likely wrong, and the values of the datums where they gather."""
    if "label_errors" not in card.frames:
        return
    rows = card.frame("label_errors").filter(pl.col("suspicion") >= _SUSPICIOUS)
    support = card.metrics.filter(pl.col("label_value").is_not_null() & pl.col("slice").is_null())
    counted = int(support.unique("label_value")["support"].sum())
    every_truth = counted or card.read.get(GROUND_TRUTHS) or 1  # of runs without numbers of labels
    for reason, some in rows.group_by("reason", maintain_order=True):
        share = some.height / (some.height + every_truth)
        kind = f"{reason[0]} ({count_of(some.height, 'ground truth')} that may be wrong)"
        yield _Finding(kind, share / 2, some.height, "label-errors")
        if columns is None or columns["datum_id"].dtype != some["datum_id"].dtype:
            continue
        joined = some.join(columns, on="datum_id", how="left")
        for name in columns.columns[1:]:
            if not 1 < columns[name].n_unique() <= 50:
                continue
            every = dict(columns[name].value_counts().rows())
            for value, n in joined[name].value_counts().rows():
                if value is None:
                    continue
                expected = some.height * every[value] / columns.height
                sure = (n - expected) / max(expected, 0.5) ** 0.5
                if sure >= _SURE and n > 2:
                    yield _Finding(
                        f"{name} = {value}: {n:,} of {count_of(some.height, 'ground truth')} that"
                        f" may be wrong ({reason[0]}) are there, {expected:.0f} by chance",
                        min(1.0, share + (n - expected) / some.height * share), n, "label-errors",
                    )  # fmt: skip


def _twice(
    card: Scorecard,
    predictions: Any,
    ground_truths: Any,
    options: Options,
    storage_options: dict[str, str] | None,
) -> Iterator[_Finding]:
    """Datums all of whose rows stand under another id as well."""
    if is_scored(predictions):
        said = "duplicate datums were not looked for: a scored run keeps no tables"
        yield _Finding(said, 0.0, 0, "check")
        return
    hashes = []
    known = contracts(card.task)
    for role, given in ((PREDICTIONS, predictions), (GROUND_TRUTHS, ground_truths)):
        if given is None:
            continue
        own = known.get(TABLE) if ground_truths is None else known.get(role)
        if own is None:
            return
        try:
            source = open_source(given, storage_options=storage_options)
            exprs = recognise(source.frame.collect_schema(), own, options.columns).exprs
        except EvalengineError as error:
            yield _unlooked("duplicate datums", error, "check")
            return
        names = [name for name in exprs if name not in ("datum_id", "annotation_id")]
        if "datum_id" not in exprs or not names:
            return
        rows = source.frame.select(exprs[name].alias(name) for name in ("datum_id", *names))
        schema = rows.collect_schema()
        simple = [n for n in names if not schema[n].is_nested() and schema[n] != pl.Object]
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
    yield _Finding(
        f"{count_of(copies, 'datum')} with the rows of another one (duplicates), first"
        f" {first[1]!r} and {first[0]!r}",
        min(1.0, 3 * copies / both.height), copies, "check",
    )  # fmt: skip


def _singles(card: Scorecard) -> Iterator[_Finding]:
    try:
        tallied = tallied_of("the run", card, "single datums")
        losses = losses_of(tallied)
    except EvalengineError as error:
        yield _unlooked("single datums", error, "errors")
        return
    rows = worst(tallied, _FEW, losses)
    each = shares(losses, worst_codes(losses, _FEW)).tolist()
    for (one, why), share in zip(rows.select("datum_id", "why").rows(), each, strict=True):
        yield _Finding(f"datum {one}: {why}", share, 1, "errors")
