"""What came out of a comparison, in sentences; and what its numbers are called."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from .grids import at_k, chosen, titled
from .layouts import layout_of

if TYPE_CHECKING:
    from ..statistics.comparison import Comparison

Titled = tuple[str, dict[str, Any]]
"""What a number is called, and its row of the differences."""


def pairs(comparison: Comparison) -> list[tuple[str, str]]:
    """The pairs of runs, in order."""
    return list(combinations(comparison.runs, 2))


def of_pair(comparison: Comparison, a: str, b: str) -> pl.DataFrame:
    """The differences of two runs."""
    return comparison.differences.filter(run_a=a, run_b=b)


def headline(comparison: Comparison, rows: pl.DataFrame) -> list[Titled]:
    """Aggregates of the whole set, as the tables of a single run order and call them."""
    whole = rows.filter(pl.col("slice").is_null(), pl.col("label_value").is_null())
    found: list[Titled] = []
    placed: set[str] = set()
    for entry in layout_of(comparison.task, comparison.dialect).headline:
        placed.add(entry.metric)
        rows_of_entry = chosen(whole, entry).iter_rows(named=True)
        found += [(titled(entry, row), row) for row in rows_of_entry]
    rest = whole.filter(~pl.col("metric").is_in(list(placed)))
    return found + [(title(row), row) for row in rest.iter_rows(named=True)]


def title(row: dict[str, Any]) -> str:
    """What tells a number apart, in few words."""
    parts = [at_k(row["metric"], row["k"]), row["statistic"], row["average"]]
    if row["iou_threshold"] is not None:
        parts.append(f"IoU {row['iou_threshold']:g}")
    if row["score_threshold"] is not None:
        parts.append(f"score {row['score_threshold']:g}")
    parts += [row["area"] if row["area"] != "all" else None]
    if row["max_detections"] is not None:
        parts.append(f"max {row['max_detections']}")
    return " ".join(str(part) for part in parts if part)


def better(comparison: Comparison, row: dict[str, Any]) -> int:
    """1 where run b is surely better, -1 where it is surely worse, else 0."""
    p, difference = row["p_adjusted"], row["difference"]
    if p is None or difference is None or p > 1 - comparison.level:
        return 0
    direction = comparison.directions.get(row["metric"], "higher")
    if direction == "neither" or difference == 0:
        return 0
    return 1 if (difference > 0) == (direction == "higher") else -1


def signed(value: float) -> str:
    """A difference with its sign, four decimals."""
    return f"{value:+.4f}"


def probability(p: float | None) -> str:
    """A p-value in two digits."""
    return "–" if p is None else f"{p:.2g}" if p >= 0.001 else f"{p:.1g}"


def verdict(comparison: Comparison) -> str:
    """A sentence for every pair of runs, on the number that leads the tables."""
    return " ".join(_of_pair(comparison, a, b) for a, b in pairs(comparison))


def _of_pair(comparison: Comparison, a: str, b: str) -> str:
    lines = headline(comparison, of_pair(comparison, a, b))
    lines = [line for line in lines if line[1]["difference"] is not None]
    if not lines:
        return f"{a} and {b} have no aggregate in common that is defined."
    name, row = lines[0]
    told = f"{name} {row['b']:.4f} against {row['a']:.4f}"
    level = f"{100 * comparison.level:g} %"
    if row["lower"] is None or row["p"] is None:
        return f"{b} has {told}; how sure that is cannot be told."
    reach = (
        f"{signed(row['difference'])}, {level} interval {signed(row['lower'])} to"
        f" {signed(row['upper'])}, p = {probability(row['p'])}"
    )
    many = comparison.differences["p"].drop_nulls().len()
    if many > 1 and row["p_adjusted"] is not None:
        reach += f", adjusted for {many:,} numbers {probability(row['p_adjusted'])}"
    sure = better(comparison, row)
    if sure:
        return f"{b} is {'better' if sure > 0 else 'worse'} than {a}: {told} ({reach})."
    if row["p"] <= 1 - comparison.level and many > 1:
        return f"{b} and {a} differ, but of so many numbers some do by luck: {told} ({reach})."
    seen = row["detectable"]
    power = (
        f" These {comparison.n:,} datums show a difference of {seen:.4f} in four of five cases."
        if seen
        else ""
    )
    return f"{a} and {b} cannot be told apart: {told} ({reach}).{power}"


def letters(comparison: Comparison) -> dict[str, str]:
    """A letter for every run."""
    return {name: chr(ord("a") + i % 26) for i, name in enumerate(comparison.runs)}


def beaten(comparison: Comparison, identity: dict[str, Any]) -> dict[str, list[str]]:
    """Of one number, the runs that each run is surely better than.

    Args:
        comparison: of the runs.
        identity: the columns that tell the number apart.
    """
    rows = comparison.differences.filter(
        *(
            pl.col(name).eq_missing(pl.lit(value, comparison.differences.schema[name]))
            for name, value in identity.items()
        )
    )
    found: dict[str, list[str]] = {name: [] for name in comparison.runs}
    for row in rows.iter_rows(named=True):
        sure = better(comparison, row)
        if sure > 0:
            found[row["run_b"]].append(row["run_a"])
        elif sure < 0:
            found[row["run_a"]].append(row["run_b"])
    return found


def ranks(beats: dict[str, list[str]]) -> dict[str, int]:
    """Ranks from what beats what: one more than the runs that are surely better than a run."""
    return {name: 1 + sum(name in worse for worse in beats.values()) for name in beats}
