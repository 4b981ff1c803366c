"""Likely faults of a run and its tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np
import polars as pl

from ..evaluation.paging import losses_of, shares, worst, worst_codes
from ..evaluation.planner import filling, make_plan
from ..ingest.infer import recognise
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..ingest.recognise import contract
from ..ingest.sources.tables import open_source
from ..metrics import get as metric_of
from ..report.text import number
from ..run import card_of_run, is_scored, own_ious, tallied_of
from ..schemas.contract import DATUMS, GROUND_TRUTHS, PREDICTIONS, TABLE
from ..schemas.errors import EvalengineError
from ..schemas.named import Named
from ..schemas.option_values import make_options
from ..schemas.options import Options
from ..schemas.tables import contracts
from ..scorecard.card import Scorecard
from ..tasks.scores import NotProbabilities
from . import FindingResult
from .label_errors import FILTER_BY
from .slices import find_slices

# Result class of ``diagnose``.


class Diagnosis(FindingResult, eq=False):
    """Likely causes of a run's errors, most likely first.

    Attributes:
        frame: ``finding`` (String, a sentence), ``share`` (Float64, approximate share of all errors
            that it explains), ``n`` (Int64, affected datums, rows or ground truths) and ``more``
            (String, the command that shows details).
        top: number of findings shown; None for all.
    """

    frame: pl.DataFrame
    top: int | None = None
    _name = "findings"

    @property
    def displayed(self) -> pl.DataFrame:
        """The first of them."""
        return self.frame if self.top is None else self.frame.head(self.top)

    def first(self, top: int) -> Diagnosis:
        """The same, of which so many are shown."""
        return Diagnosis(self.frame, top, messages=self.messages)

    def _heading(self) -> str:
        if not len(self):
            return "no findings"
        left = len(self) - self.displayed.height
        displayed = f", the first {self.displayed.height:,}" if left else ""
        return f"{count_of(len(self), 'finding')}{displayed}, by the share of errors each explains"

    def _rows(self) -> pl.DataFrame:
        return self.displayed

    def __len__(self) -> int:
        return self.frame.height


# Suspicious labels, column values and rows in the frames of a run.

SURE = 4.0
"""Standard deviations above chance from which a finding is reported."""
FEW = 5
_SUSPICIOUS = 0.5
_VALUES = 50  # limit of a column whose values are tested one by one
_OVERLAP, _GAP = 0.05, 0.1  # least reported differences in IoU and in score


class Finding(NamedTuple):
    """Something that is likely wrong.

    Attributes:
        finding: sentence for display.
        share: approximate share of all errors that it explains, in [0, 1].
        n: affected datums, rows or ground truths.
        more: command that shows details.
    """

    finding: str
    share: float
    n: int
    more: str


def _excess(inside: float, n: float, wrong: float, every: float) -> tuple[float, float]:
    """Return the excess of errors inside over the rate outside: as a count, and in standard
    deviations.
    """
    outside = (wrong - inside + 0.5) / (every - n + 1)
    spread = (max(n, 1) * outside * (1 - min(outside, 1.0)) + 0.25) ** 0.5
    return inside - n * outside, (inside - n * outside) / spread


def confused(frame: pl.DataFrame) -> Iterator[Finding]:
    """Labels most of whose ground truths are taken for one other."""
    rows = frame.filter(pl.col("slice").is_null())
    for name in ("iou_threshold", "score_threshold"):
        rows = rows.filter(pl.col(name).is_null() | (pl.col(name) == pl.col(name).min()))
    actual = rows.drop_nulls("actual")
    totals = dict(actual.group_by("actual").agg(pl.col("count").sum()).rows())
    others = actual.drop_nulls("predicted").filter(pl.col("actual") != pl.col("predicted"))
    missed = float(rows.filter(pl.col("actual").ne_missing(pl.col("predicted")))["count"].sum())
    confusions = {(a, p): n for a, p, n in others.select("actual", "predicted", "count").rows()}
    predicted = dict(others.group_by("predicted").agg(pl.col("count").sum()).rows())
    for (a, p), n in confusions.items():
        rest = predicted[p] - n
        excess, sure = _excess(n, totals[a], n + rest, sum(totals.values()))
        if n < 3 or sure < SURE or n < 0.15 * totals[a]:
            continue
        back = confusions.get((p, a), 0)
        swapped = back >= 0.15 * totals.get(p, 1) and back >= 3
        if swapped and str(p) < str(a):
            continue
        message = f"label {a!r} is taken for {p!r}: {n:,.0f} of {totals[a]:,.0f}"
        if swapped:
            message += (
                f", and {p!r} for {a!r}: {back:,.0f} of {totals[p]:,.0f}; names changed places?"
            )
            excess += back
        yield Finding(message, min(1.0, excess / max(missed, 1)), int(n), "errors --rows")


def _counted(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Outcomes that count, at the lowest IoU threshold."""
    rows, at = outcomes.filter(pl.col("outcome") != "ignored"), pl.col("iou_threshold")
    return rows.filter(at.is_null() | (at == at.min()))


def suspicious_labels(frame: pl.DataFrame) -> Iterator[Finding]:
    """Labels of which more is missed, or more is made up, than of the others."""
    rows = _counted(frame)
    side = (
        pl.when(pl.col("outcome").str.starts_with("fn"))
        .then(pl.lit("missed"))
        .when(pl.col("outcome").str.starts_with("fp"))
        .then(pl.lit("false"))
    )
    rows = rows.with_columns(side=side)
    total = rows["side"].drop_nulls().len()
    yield from _turned(rows, total)
    for kind, description in (
        ("missed", "of its ground truths missed"),
        ("false", "predictions false"),
    ):
        side_rows = rows.filter(pl.col("side").is_null() | (pl.col("side") == kind))
        table = side_rows.group_by("label_value").agg(
            n=pl.len(), wrong=(pl.col("side") == kind).fill_null(False).sum()
        )
        wrong, every = int(table["wrong"].sum()), int(table["n"].sum())
        for label, n, bad in table.rows():
            excess, sure = _excess(bad, n, wrong, every)
            if sure >= SURE and excess >= 3:
                yield Finding(
                    f"label {label!r}: {bad:,} of {n:,} {description},"
                    f" {(wrong - bad) / max(every - n, 1):.0%} of all others",
                    min(1.0, excess / max(total, 1)),
                    bad,
                    "explain --number",
                )


def _turned(rows: pl.DataFrame, total: int) -> Iterator[Finding]:
    """Labels whose wrong predictions score higher than their right ones."""
    scored = rows.drop_nulls("score").filter(~pl.col("outcome").str.starts_with("fn"))
    for (label,), label_rows in scored.group_by("label_value", maintain_order=True):
        right = label_rows["outcome"] == "tp"
        n, m = int(right.sum()), int((~right).sum())
        if min(n, m) < FEW:
            continue
        wins = (
            float(label_rows["score"].rank().filter(right).sum()) - n * (n + 1) / 2
        )  # Mann and Whitney 1947
        below, spread = n * m / 2 - wins, (n * m * (n + m + 1) / 12) ** 0.5
        if below > SURE * spread:
            yield Finding(
                f"label {label!r}: wrong predictions score higher than right ones (area under the"
                f" ROC curve {wins / (n * m):.2f}); scores turned round?",
                min(1.0, max(m / max(total, 1), 2 * below / (n * m))),
                m,
                "explain --number",
            )


def label_errors(
    frame: pl.DataFrame, every_truth: int, columns: pl.DataFrame | None, way: str
) -> Iterator[Finding]:
    """Find ground truths that are likely wrong, and the column values for which they are frequent.

    Args:
        frame: ``label_errors``.
        every_truth: number of ground truths.
        columns: datum ids and further columns of the datums.
        way: method to use if label errors were found by several; otherwise the suspicion decides.
    """
    ways = pl.col("found_by")
    by_suspicion = ways.is_null() & (pl.col("suspicion") >= _SUSPICIOUS)
    rows = frame.filter(by_suspicion | ways.str.split(" ").list.contains(way).fill_null(False))
    for reason, some in rows.group_by("reason", maintain_order=True):
        share = some.height / (some.height + every_truth)
        least = f", suspicion {_SUSPICIOUS:g} or more" if some["found_by"].null_count() else ""
        kind = f"{reason[0]} ({count_of(some.height, 'ground truth')} that may be wrong{least})"
        yield Finding(kind, share / 2, some.height, "label-errors")
        if columns is None or columns["datum_id"].dtype != some["datum_id"].dtype:
            continue
        joined = some.join(columns, on="datum_id", how="left")
        for name in columns.columns[1:]:
            if not 1 < columns[name].n_unique() <= _VALUES:
                continue
            every = dict(columns[name].value_counts().rows())
            for value, n in joined[name].value_counts().rows():
                if value is None:
                    continue
                expected = some.height * every[value] / columns.height
                sure = (n - expected) / max(expected, 0.5) ** 0.5
                if sure >= SURE and n > 2:
                    yield Finding(
                        f"{name} = {value}: {n:,} of {count_of(some.height, 'ground truth')} that"
                        f" may be wrong ({reason[0]}) are there, {expected:.0f} by chance",
                        min(1.0, share + (n - expected) / some.height * share),
                        n,
                        "label-errors",
                    )


def fits(outcomes: pl.DataFrame, columns: pl.DataFrame | None) -> Iterator[Finding]:
    """Find labels and column values whose hits overlap their ground truths less than others.

    Such boxes are too large, too small or shifted, but still count as hits.
    """
    rows = _counted(outcomes).filter(pl.col("outcome") == "tp").drop_nulls("iou")
    lost = float((1 - rows["iou"]).sum())
    for group, n, mean, elsewhere in _differing_groups(rows, pl.col("iou"), columns, by_label=True):
        if elsewhere - mean >= _OVERLAP:
            yield Finding(
                f"{group}: boxes that hit overlap by {mean:.2f}, elsewhere by {elsewhere:.2f}"
                " (IoU); too large, too small or shifted?",
                min(1.0, n * (elsewhere - mean) / max(lost, 1e-9)),
                n,
                "errors --rows",
            )


def miscalibrated_groups(
    outcomes: pl.DataFrame, columns: pl.DataFrame | None, reported: Collection[str]
) -> Iterator[Finding]:
    """Find column values for which scores are calibrated differently than elsewhere.

    Args:
        columns: datum ids and further columns of the datums.
        reported: display texts of the worst slices, which are not reported again.
    """
    rows = _counted(outcomes).filter(~pl.col("outcome").str.starts_with("fn")).drop_nulls("score")
    gap = pl.col("score") - (pl.col("outcome") == "tp")
    every = float(rows.select(gap.abs().sum()).item())
    for group, n, mean, elsewhere in _differing_groups(rows, gap, columns, by_label=False):
        if abs(mean - elsewhere) >= _GAP and not any(one.startswith(group) for one in reported):
            yield Finding(
                f"{group}: scores are {mean:+.2f} from the share that is right, elsewhere"
                f" {elsewhere:+.2f}; scored by another model, or on another scale?",
                min(1.0, n * abs(mean - elsewhere) / max(every, 1e-9)),
                n,
                "calibration --by",
            )


def _differing_groups(
    rows: pl.DataFrame, value: pl.Expr, columns: pl.DataFrame | None, *, by_label: bool
) -> Iterator[tuple[str, int, float, float]]:
    """Yield groups of rows whose mean differs from that of all others by more than chance.

    Yields:
        display name, number of rows, their mean, mean of the others.
    """
    rows = rows.with_columns(__value=value.cast(pl.Float64))
    names = {"label_value": "label"} if by_label else {}
    if columns is not None and columns["datum_id"].dtype == rows["datum_id"].dtype:
        extra_columns = [name for name in columns.columns[1:] if name not in rows.columns]
        rows = rows.join(columns.select("datum_id", *extra_columns), on="datum_id", how="left")
        names |= {name: name for name in extra_columns if 1 < columns[name].n_unique() <= _VALUES}
    x = pl.col("__value")
    n, total, squares = rows.select(pl.len(), s=x.sum(), q=(x * x).sum()).row(0)
    for name, title in names.items():
        each = rows.drop_nulls(name).group_by(name, maintain_order=True)
        for level, k, s, q in each.agg(pl.len(), s=x.sum(), q=(x * x).sum()).rows():
            if min(k, n - k) < FEW:
                continue
            mean, elsewhere = s / k, (total - s) / (n - k)
            spread = max(q / k - mean**2, 0) / k
            spread += max((squares - q) / (n - k) - elsewhere**2, 0) / (n - k)
            if abs(mean - elsewhere) >= SURE * max(spread, 1e-12) ** 0.5:
                message = (
                    f"label {level!r}" if title == "label" else f"datums with {title} = {level}"
                )
                yield message, k, mean, elsewhere


# Ranked list of likely problems in a run or its tables.

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
        run: predictions, as :func:`evalengine.score` takes them; a scored run, or the folder of a
            saved one.
        ground_truths: if the run is predictions.
        datums: table of all datums; its columns are searched for slices.
        labels: table or list of declared classes.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        **named: any field of :class:`evalengine.Options`.

    Returns:
        :class:`evalengine.findings.diagnose.Diagnosis`, whose ``frame`` has ``finding``
        (String), ``share`` (Float64, approximate share of all errors that it explains; 1 for
        warnings), ``n`` (Int64, datums or rows) and ``more`` (String, the command for details).

    Raises:
        InputError: the tables break their contract.

    Example:
        >>> import evalengine as ee
        >>> ee.diagnose("preds.parquet", "gts.parquet", datums="images.parquet")  # doctest: +SKIP
    """
    chosen = make_options(options, **named)
    tables = Tables(run, ground_truths, datums, labels, storage_options)
    in_memory = chosen.memory_limit is None
    notes: list[str] = []
    try:
        card = card_of_run(tables, chosen, showing=list(_FRAMES), in_memory=in_memory)
    except NotProbabilities as error:  # the rest does not need label errors
        card = card_of_run(tables, chosen, showing=list(_FRAMES)[:-1], in_memory=in_memory)
        notes.append(_unlooked(_FRAMES["label_errors"], error))
    columns = _columns(datums, chosen, storage_options, card.task)
    notes += _unkept(card) if is_scored(run) else []
    findings = [Finding(warning, 1.0, 0, "check") for warning in card.warnings]
    frames = {name: card.frame(name) for name in _FRAMES if name in card.frames}
    looked = datums is not None or bool(chosen.by) or is_scored(run)
    slices = list(_slices(card, datums, notes)) if looked else []
    findings += _label_numbers(card)
    findings += slices
    if "confusion" in frames:
        findings += confused(frames["confusion"])
    if "outcomes" in frames:
        outcomes = frames["outcomes"]
        settings = make_plan(card.options, card.task).settings
        at = outcomes["iou_threshold"].min() if "iou_threshold" in outcomes.columns else None
        if at is not None:
            names = card.labels["label_value"]
            notes += own_ious(settings, names, at, "pr_curve_iou_threshold")
        findings += suspicious_labels(outcomes)
        findings += fits(outcomes, columns)
        findings += miscalibrated_groups(outcomes, columns, [one.finding for one in slices])
    if "label_errors" in frames:
        # Ground truths in all; of runs without numbers of labels rows of their table.
        rows = card.metrics.filter(pl.col("label_value").is_not_null(), pl.col("slice").is_null())
        truths = int(rows.unique("label_value")["support"].sum())
        truths = truths or card.read.get(GROUND_TRUTHS) or 1
        findings += label_errors(frames["label_errors"], truths, columns, FILTER_BY)
    findings += _twice(card, tables, chosen, notes)
    if not any(one.share for one in findings):
        findings += _singles(card, notes)
    frame = pl.DataFrame(
        sorted(findings, key=lambda one: (-one.share, not one.n)),
        schema={"finding": pl.String, "share": pl.Float64, "n": pl.Int64, "more": pl.String},
        orient="row",
    )
    return Diagnosis(frame, messages=tuple(notes))


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
                min(1.0, share),
                int(low["support"] or 0),
                "explain --number",
            )
            return


def _slices(card: Scorecard, datums: Any, notes: list[str]) -> Iterator[Finding]:
    try:
        slices = find_slices(card, datums=datums, top=FEW, levels=2, options=Options(draws=_DRAWS))
    except EvalengineError as error:
        notes.append(_unlooked("slices", error))
        return
    for row in slices.frame.iter_rows(named=True):
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
            max(0.0, min(1.0, share)),
            row["size"],
            "slices",
        )


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
    used = {*exprs.exprs, *exprs.recognised}
    return frame.select(
        exprs.exprs["datum_id"].alias("datum_id"), *(name for name in schema if name not in used)
    ).collect()


def _twice(
    card: Scorecard, tables: Tables, options: Options, notes: list[str]
) -> Iterator[Finding]:
    """Find datums all of whose rows also occur under another id.

    A label and a rounded probability are equal by chance in many datums, so that rows need more:
    more digits, longer texts, or several numbers or rows per datum.
    """
    predictions, ground_truths = tables.predictions, tables.ground_truths
    if is_scored(predictions):
        notes.append("duplicate datums were not looked for: a scored run keeps no tables.")
        return
    hashes, telling = [], False
    tables_of_task = contracts(card.task)
    first = TABLE if ground_truths is None else PREDICTIONS
    for role, table in ((first, predictions), (GROUND_TRUTHS, ground_truths)):
        if table is None:
            continue
        if role not in tables_of_task:
            return
        try:
            source = open_source(table, storage_options=tables.storage_options)
            schema = source.frame.collect_schema()
            columns = contract(card.task, role, options, schema)
            exprs = recognise(schema, columns, options.columns).exprs
        except EvalengineError as error:
            notes.append(_unlooked("duplicate datums", error))
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
        telling = telling or _telling(rows, {name: types[name] for name in simple})
    if not telling:
        return
    joined = hashes[0]
    for side_hashes in hashes[1:]:
        joined = joined.join(side_hashes, on="datum_id", how="inner", suffix="_more")
    by = [name for name in joined.columns if name != "datum_id"]
    groups = (
        joined.group_by(by).agg(ids=pl.col("datum_id").sort()).filter(pl.col("ids").list.len() > 1)
    )
    copies = int(groups["ids"].list.len().sum()) - groups.height
    if not copies or copies > joined.height / 2:
        return
    first = groups.sort(pl.col("ids").list.first())["ids"][0].to_list()[:2]
    yield Finding(
        f"{count_of(copies, 'datum')} with the rows of another one (duplicates), first"
        f" {first[1]!r} and {first[0]!r}",
        min(1.0, 3 * copies / joined.height),
        copies,
        "check",
    )


_DIGITS, _LONG = 6, 20  # of numbers and texts that are rarely equal by chance


def _telling(rows: pl.LazyFrame, types: Mapping[str, Any]) -> bool:
    """Return whether the rows of a datum are hardly ever those of another one by chance."""
    if sum(dtype.is_numeric() for dtype in types.values()) > 3:
        return True
    signs = [pl.len() > 2 * pl.col("datum_id").n_unique()]
    kinds = pl.lit(1.0)  # of rows, if columns were independent
    for name, dtype in types.items():
        kinds *= pl.col(name).approx_n_unique().cast(pl.Float64)
        if dtype.is_float():
            rest = pl.col(name) - pl.col(name).round(_DIGITS)
            signs.append((rest.abs() > 0.1 * 10**-_DIGITS).any())
        elif dtype == pl.String:
            signs.append(pl.col(name).str.len_chars().mean() > _LONG)
    signs.append(2 * kinds > pl.len().cast(pl.Float64) ** 2)  # fewer than one pair by chance
    matches = rows.select(pl.any_horizontal(signs)).collect(engine="streaming")
    return bool(matches.item())


def _singles(card: Scorecard, notes: list[str]) -> Iterator[Finding]:
    try:
        tallied = tallied_of("the run", card, "single datums")
        losses = losses_of(tallied)
    except EvalengineError as error:
        notes.append(_unlooked("single datums", error))
        return
    rows = worst(tallied, FEW, losses)
    each = shares(losses, worst_codes(losses, FEW)).tolist()
    for (one, why), share in zip(rows.select("datum_id", "why").rows(), each, strict=True):
        yield Finding(f"datum {one}: {why}", share, 1, "errors")
