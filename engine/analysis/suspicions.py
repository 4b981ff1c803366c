"""Suspicious labels, column values and rows in the frames of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import polars as pl

from ..ingest.problems import count_of

SURE = 4.0
"""Standard deviations above chance from which a finding is reported."""
FEW = 5
_SUSPICIOUS = 0.5
_VALUES = 50  # of a column, at most, where its values are looked at one by one
_OVERLAP, _GAP = 0.05, 0.1  # least differences in IoU and in score that are told


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
    known = dict(actual.group_by("actual").agg(pl.col("count").sum()).rows())
    others = actual.drop_nulls("predicted").filter(pl.col("actual") != pl.col("predicted"))
    missed = float(rows.filter(pl.col("actual").ne_missing(pl.col("predicted")))["count"].sum())
    taken = {(a, p): n for a, p, n in others.select("actual", "predicted", "count").rows()}
    predicted = dict(others.group_by("predicted").agg(pl.col("count").sum()).rows())
    for (a, p), n in taken.items():
        rest = predicted[p] - n
        more, sure = _excess(n, known[a], n + rest, sum(known.values()))
        if n < 3 or sure < SURE or n < 0.15 * known[a]:
            continue
        back = taken.get((p, a), 0)
        swapped = back >= 0.15 * known.get(p, 1) and back >= 3
        if swapped and str(p) < str(a):
            continue
        said = f"label {a!r} is taken for {p!r}: {n:,.0f} of {known[a]:,.0f}"
        if swapped:
            said += f", and {p!r} for {a!r}: {back:,.0f} of {known[p]:,.0f}; names changed places?"
            more += back
        yield Finding(said, min(1.0, more / max(missed, 1)), int(n), "errors --rows")


def _counted(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Outcomes that count, at the lowest IoU threshold."""
    rows, at = outcomes.filter(pl.col("outcome") != "ignored"), pl.col("iou_threshold")
    return rows.filter(at.is_null() | (at == at.min()))


def labels(frame: pl.DataFrame) -> Iterator[Finding]:
    """Labels of which more is missed, or more is made up, than of the others."""
    rows = _counted(frame)
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
            if sure >= SURE and more >= 3:
                yield Finding(
                    f"label {label!r}: {bad:,} of {n:,} {said},"
                    f" {(wrong - bad) / max(every - n, 1):.0%} of all others",
                    min(1.0, more / max(total, 1)), bad, "explain --number",
                )  # fmt: skip


def _turned(rows: pl.DataFrame, total: int) -> Iterator[Finding]:
    """Labels whose wrong predictions score higher than their right ones."""
    scored = rows.drop_nulls("score").filter(~pl.col("outcome").str.starts_with("fn"))
    for (label,), own in scored.group_by("label_value", maintain_order=True):
        right = own["outcome"] == "tp"
        n, m = int(right.sum()), int((~right).sum())
        if min(n, m) < FEW:
            continue
        wins = (
            float(own["score"].rank().filter(right).sum()) - n * (n + 1) / 2
        )  # Mann and Whitney 1947
        below, spread = n * m / 2 - wins, (n * m * (n + m + 1) / 12) ** 0.5
        if below > SURE * spread:
            yield Finding(
                f"label {label!r}: wrong predictions score higher than right ones (area under the"
                f" ROC curve {wins / (n * m):.2f}); scores turned round?",
                min(1.0, max(m / max(total, 1), 2 * below / (n * m))), m, "explain --number",
            )  # fmt: skip


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
                        min(1.0, share + (n - expected) / some.height * share), n, "label-errors",
                    )  # fmt: skip


def fits(outcomes: pl.DataFrame, columns: pl.DataFrame | None) -> Iterator[Finding]:
    """Find labels and column values whose hits overlap their ground truths less than others.

    Such boxes are too large, too small or shifted, but still count as hits.
    """
    rows = _counted(outcomes).filter(pl.col("outcome") == "tp").drop_nulls("iou")
    lost = float((1 - rows["iou"]).sum())
    for said, n, mean, elsewhere in _apart(rows, pl.col("iou"), columns, by_label=True):
        if elsewhere - mean >= _OVERLAP:
            yield Finding(
                f"{said}: boxes that hit overlap by {mean:.2f}, elsewhere by {elsewhere:.2f} (IoU);"
                " too large, too small or beside?",
                min(1.0, n * (elsewhere - mean) / max(lost, 1e-9)), n, "errors --rows",
            )  # fmt: skip


def scored_apart(
    outcomes: pl.DataFrame, columns: pl.DataFrame | None, known: Collection[str]
) -> Iterator[Finding]:
    """Find column values for which scores are calibrated differently than elsewhere.

    Args:
        columns: datum ids and further columns of the datums.
        known: display texts of the worst slices, which are not reported again.
    """
    rows = _counted(outcomes).filter(~pl.col("outcome").str.starts_with("fn")).drop_nulls("score")
    gap = pl.col("score") - (pl.col("outcome") == "tp")
    every = float(rows.select(gap.abs().sum()).item())
    for said, n, mean, elsewhere in _apart(rows, gap, columns, by_label=False):
        if abs(mean - elsewhere) >= _GAP and not any(one.startswith(said) for one in known):
            yield Finding(
                f"{said}: scores lie {mean:+.2f} from the share that is right, elsewhere"
                f" {elsewhere:+.2f}; scored by another model, or on another scale?",
                min(1.0, n * abs(mean - elsewhere) / max(every, 1e-9)), n, "calibration --by",
            )  # fmt: skip


def _apart(
    rows: pl.DataFrame, value: pl.Expr, columns: pl.DataFrame | None, *, by_label: bool
) -> Iterator[tuple[str, int, float, float]]:
    """Yield groups of rows whose mean differs from that of all others by more than chance.

    Yields:
        display name, number of rows, their mean, mean of the others.
    """
    rows = rows.with_columns(__value=value.cast(pl.Float64))
    names = {"label_value": "label"} if by_label else {}
    if columns is not None and columns["datum_id"].dtype == rows["datum_id"].dtype:
        more = [name for name in columns.columns[1:] if name not in rows.columns]
        rows = rows.join(columns.select("datum_id", *more), on="datum_id", how="left")
        names |= {name: name for name in more if 1 < columns[name].n_unique() <= _VALUES}
    x = pl.col("__value")
    n, total, squares = rows.select(pl.len(), s=x.sum(), q=(x * x).sum()).row(0)
    for name, shown in names.items():
        each = rows.drop_nulls(name).group_by(name, maintain_order=True)
        for own, k, s, q in each.agg(pl.len(), s=x.sum(), q=(x * x).sum()).rows():
            if min(k, n - k) < FEW:
                continue
            mean, elsewhere = s / k, (total - s) / (n - k)
            spread = max(q / k - mean**2, 0) / k
            spread += max((squares - q) / (n - k) - elsewhere**2, 0) / (n - k)
            if abs(mean - elsewhere) >= SURE * max(spread, 1e-12) ** 0.5:
                said = f"label {own!r}" if shown == "label" else f"datums with {shown} = {own}"
                yield said, k, mean, elsewhere
