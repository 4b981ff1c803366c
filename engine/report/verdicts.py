"""Results of comparisons in sentences, and differences from a baseline."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..ingest.problems import count_of
from ..schemas.option_values import parse_intervals
from ..scorecard.lookup import KEYS
from ..statistics.comparing import count_tests
from ..statistics.paired import too_few
from ..statistics.tests import RANDOMISATION, least_adjusted
from .tables import USUAL_K, at_k, chosen, layout_of, titled
from .text import NONE, number, p_value, probability, signed

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..statistics.comparing import Margins
    from ..statistics.comparison import Comparison

# Sentences about the result of a comparison, and titles of its numbers.

_NAMED = 4
"""Maximum number of metrics that a sentence names."""
Titled = tuple[str, dict[str, Any]]
"""Title of a number, and its row in the frame of differences."""


def pairs(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the pairs of runs, in order."""
    return list(combinations(comparison.runs, 2))


def of_pair(comparison: Comparison, a: str, b: str) -> pl.DataFrame:
    """Return the differences of two runs."""
    return comparison.differences.filter(run_a=a, run_b=b)


def headline(comparison: Comparison, rows: pl.DataFrame) -> list[Titled]:
    """Return aggregates of the whole set, with the order and names of a single run's tables."""
    overall = rows.filter(pl.col("slice").is_null(), pl.col("label_value").is_null())
    result: list[Titled] = []
    placed: set[str] = set()
    for entry in layout_of(comparison.task, comparison.dialect).headline:
        placed.add(entry.metric)
        rows_of_entry = chosen(overall, entry).iter_rows(named=True)
        result += [(titled(entry, row), row) for row in rows_of_entry]
    rest = overall.filter(~pl.col("metric").is_in(list(placed)))
    result += [(title_of(row), row) for row in rest.iter_rows(named=True)]
    if overall["label_key"].drop_nulls().n_unique() < 2:
        return result
    return [(f"{row['label_key'] or ''} {called}".strip(), row) for called, row in result]


def title_of(row: dict[str, Any]) -> str:
    """Return a short title that identifies a number."""
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
    """Return 1 if run b is significantly better, -1 if significantly worse, else 0."""
    p, difference = row["p_adjusted"], row["difference"]
    if p is None or difference is None or p > 1 - comparison.level:
        return 0
    direction = comparison.directions.get(row["metric"], "higher")
    if direction == "neither" or difference == 0 or too_few(row.get("coverage")):
        return 0
    return 1 if (difference > 0) == (direction == "higher") else -1


def differs(comparison: Comparison, row: dict[str, Any]) -> bool:
    """Return True for a significant difference in a metric without a better direction."""
    p, neither = row["p_adjusted"], comparison.directions.get(row["metric"]) == "neither"
    tested = neither and p is not None and not too_few(row.get("coverage"))
    return tested and p <= 1 - comparison.level


def lead(comparison: Comparison) -> Titled | None:
    """Return the leading number of the first pair of runs; None if no number is defined.

    With several label keys, it is the number over all keys, otherwise the first that differs.
    """
    numbers = _defined_numbers(comparison, *pairs(comparison)[0])
    if not numbers:
        return None
    candidates = [line for line in numbers if line[1]["metric"] == numbers[0][1]["metric"]]
    candidates = [line for line in candidates if line[1]["k"] == USUAL_K] or candidates
    if len({row["label_key"] for _, row in candidates}) > 1:
        candidates = (
            [line for line in candidates if line[1]["label_key"] is None]
            or [line for line in candidates if not _equal(line[1])]
            or candidates
        )
    return candidates[0]


def _defined_numbers(comparison: Comparison, a: str, b: str) -> list[Titled]:
    """Return the defined headline numbers of two runs.

    If all numbers of labels are of one label, those without an aggregate are included.
    """
    rows = of_pair(comparison, a, b).filter(
        pl.col("difference").is_not_null(), pl.col("slice").is_null()
    )
    of_label = rows.filter(pl.col("label_value").is_not_null())
    if of_label.select("label_key", "label_value").n_unique() != 1:
        return headline(comparison, rows)
    aggregates = {*rows.filter(pl.col("label_value").is_null())["metric"]}
    single = [one for one in of_label["metric"] if not {one, f"m{one}"} & aggregates]
    overall = rows.filter(pl.col("label_value").is_null() | pl.col("metric").is_in(single))
    lines = headline(comparison, overall.with_columns(label_value=pl.lit(None, pl.String)))
    label = of_label["label_value"][0]
    return [
        (name, {**row, "label_value": label if row["metric"] in single else None})
        for name, row in lines
    ]


def _equal(row: dict[str, Any]) -> bool:
    """Return True if both runs have the same number in every resample."""
    return abs(row["difference"]) <= NONE and (row["se"] or 0.0) <= NONE


def same_number(
    frame: pl.DataFrame, row: dict[str, Any], free: Collection[str] = ()
) -> pl.DataFrame:
    """Return the rows of a frame for the same number as a row; the free columns may differ."""
    names = [n for n in frame.columns if (n in KEYS or n == "metric") and n not in free]
    return frame.filter(
        *(pl.col(name).eq_missing(pl.lit(row[name], frame.schema[name])) for name in names)
    )


def verdict(comparison: Comparison) -> str:
    """Return a sentence about the leading number."""
    leading = lead(comparison)
    if leading is None:
        return " ".join(_of_labels(comparison, a, b) for a, b in pairs(comparison))
    if len(comparison.runs) == 2 or comparison.directions.get(leading[1]["metric"]) == "neither":
        rows = same_number(comparison.differences, leading[1]).iter_rows(named=True)
        return " ".join(_of_pair(comparison, leading[0], row) for row in rows)
    return _of_many(comparison, *leading)


def _of_labels(comparison: Comparison, a: str, b: str) -> str:
    """Describe the labels that differ, for runs without an aggregate in common."""
    rows = of_pair(comparison, a, b).filter(pl.col("slice").is_null())
    rows = rows.filter(pl.col("label_value").is_not_null(), pl.col("difference").is_not_null())
    if not rows.height:
        return f"{a} and {b} have no aggregate in common that is defined."
    lines = [(f"{row['label_value']} {title_of(row)}", row) for row in rows.iter_rows(named=True)]
    sure = _surely_by(comparison, b, lines)
    return f"{a} and {b} have numbers of labels only, no aggregate." + (
        sure or f" None of the {count_of(len(lines), 'difference')} is significant."
    )


def _of_pair(comparison: Comparison, name: str, row: dict[str, Any]) -> str:
    a, b = row["run_a"], row["run_b"]
    if row["difference"] is None:
        return f"{a} and {b} cannot be compared by {name}, which is undefined."
    gaps = gaps_of(row)
    if gaps and too_few(row["coverage"]):
        return (
            f"No verdict on {name}: {gaps}, more than a tenth of those with a value. Over the"
            f" others {a} has {number(row['a'])} and {b} {number(row['b'])}."
        )
    if gaps:
        return f"{_of_covered(comparison, name, row)} Means are over the same datums: {gaps}."
    return _of_covered(comparison, name, row)


def gaps_of(row: dict[str, Any]) -> str:
    """Describe how many datums have a value in only one of the runs; may be empty."""
    many = {row[f"run_{side}"]: row.get(f"missing_{side}") or 0 for side in ("a", "b")}
    some = [f"{run} has no value for {count_of(n, 'datum')}" for run, n in many.items() if n]
    return " and ".join(some)


def _of_covered(comparison: Comparison, name: str, row: dict[str, Any]) -> str:
    """Describe a difference; numbers are in the order in which a sentence names the runs."""
    a, b = row["run_a"], row["run_b"]
    of_a, of_b = number(row["a"]), number(row["b"])
    if row["p"] is None and _equal(row):
        return f"{a} and {b} are equal: {name} is {number(row['a'])} in both."
    if row["p"] is None:
        return f"{b} has {name} {of_b} against {of_a}; whether that is luck is not known."
    same_metric = [
        line for line in _defined_numbers(comparison, a, b) if line[1]["metric"] == row["metric"]
    ]
    if all(_equal(one) for _, one in same_metric):
        return f"{a} and {b} are equal: {name} is {number(row['a'])} in both, in every resample."
    reach = [signed(row["difference"])]
    if row["lower"] is not None:
        interval = f"{signed(row['lower'])} to {signed(row['upper'])}"
        reach.append(f"{100 * comparison.level:g} % interval {interval}")
    reach.append(p_value(row["p"]))
    of_label = pl.col("label_value").is_null() == (row["label_value"] is None)
    overall = comparison.differences.filter(pl.col("slice").is_null(), of_label)
    many = count_tests(overall)
    if many > 1 and comparison.adjust != "none":
        adjusted = probability(row["p_adjusted"])
        reach[-1] += f", {adjusted} once adjusted for {many:,} numbers"
    words = f"{name} {of_b} against {of_a} ({', '.join(reach)})."
    sure = better(comparison, row)
    every = _defined_numbers(comparison, a, b)
    if sure:
        way = f"{b} is {'better' if sure > 0 else 'worse'} than {a}"
        of_others = [line for line in same_metric if line[1]["label_key"] != row["label_key"]]
        agreeing = of_others if row["label_key"] is not None else []
        contrary = [line for line in every if better(comparison, line[1]) == -sure]
        lines = [line for line in every if line in contrary or line in agreeing]
        others = _surely_by(comparison, b, lines)
        words = f"{way}{f' by {name}' * bool(contrary or agreeing)}: {words}"
        return f"{others.strip()} {words}" if contrary and sure > 0 else f"{words}{others}"
    others = _surely_by(comparison, b, every)
    first, by = f"{others.strip()} ".lstrip(), f" by {name}" if others else ""
    if differs(comparison, row):
        way = "higher" if row["difference"] > 0 else "lower"
        return f"{first}{b} is {way} than {a} by {name}, which has no better direction: {words}"
    words = f"{name} {of_a} against {of_b} ({', '.join(reach)})."  # the sentence names run a first
    if row["p"] <= 1 - comparison.level and comparison.adjust != "none":
        unsure = f"but not significantly among {many:,} numbers"
        intervals = parse_intervals(comparison.options)
        assert intervals is not None
        if (
            comparison.test == RANDOMISATION
            and least_adjusted(intervals.draws, many, comparison.adjust) > 1 - intervals.level
        ):
            unsure += f", for which {intervals.draws:,} resamples are too few"
        return f"{first}{a} and {b} may differ{by}, {unsure}: {words}"
    seen = row["detectable"]
    power = (
        f" A true difference of {number(seen)} or more would be detected four times out of five."
        if seen is not None and seen > NONE
        else ""
    )
    return f"{first}{a} and {b} do not differ significantly{by}: {words}{power}"


def _surely_by(comparison: Comparison, b: str, lines: list[Titled]) -> str:
    """Describe the numbers in which run b is significantly better or worse; may be empty."""
    by_direction: dict[str, list[str]] = {"worse": [], "better": []}
    for name, row in lines:
        if sure := better(comparison, row):
            by_direction["better" if sure > 0 else "worse"].append(name)
    parts = []
    for way, names in by_direction.items():
        if len(names) > _NAMED:
            names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1:,} more"]
        parts += [f"{way} by {_listed(names)}"] if names else []
    return f" {b} is significantly {' and '.join(parts)}." if parts else ""


def _of_many(comparison: Comparison, name: str, row: dict[str, Any]) -> str:
    """Describe the best of three or more runs, and which runs it significantly beats."""
    values = values_of(comparison, row)
    defined = {run: value for run, value in values.items() if value is not None}
    pick = max if comparison.directions.get(row["metric"], "higher") == "higher" else min
    best = pick(defined, key=lambda run: defined[run])
    below = beaten(comparison, row)[best]
    unlike = {
        one["run_a"] if one["run_b"] == best else one["run_b"]
        for one in same_number(comparison.differences, row).iter_rows(named=True)
        if best in (one["run_a"], one["run_b"]) and too_few(one.get("coverage"))
    }
    similar = [run for run in defined if run != best and run not in below and run not in unlike]
    clauses = [
        f"{words} {_listed([f'{run} ({number(defined[run])})' for run in defined if run in some])}"
        for words, some in (
            ("it is significantly better than", below),
            ("it does not differ significantly from", similar),
            ("too many datums have a value in one run only for a verdict against", unlike),
        )
        if some
    ]
    return f"{best} has the best {name}, {number(defined[best])}: {', and '.join(clauses)}."


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def values_of(comparison: Comparison, row: dict[str, Any]) -> dict[str, float | None]:
    """Return each run's value for a row of the differences."""
    values: dict[str, float | None] = {}
    for one in same_number(comparison.differences, row).iter_rows(named=True):
        values[one["run_a"]], values[one["run_b"]] = one["a"], one["b"]
    return values


def letters(comparison: Comparison) -> dict[str, str]:
    """Return one letter per run."""
    return {name: chr(ord("a") + i % 26) for i, name in enumerate(comparison.runs)}


def beaten(comparison: Comparison, row: dict[str, Any]) -> dict[str, list[str]]:
    """Return, for a row of the differences, the runs that each run is significantly better than."""
    result: dict[str, list[str]] = {name: [] for name in comparison.runs}
    for one in same_number(comparison.differences, row).iter_rows(named=True):
        sure = better(comparison, one)
        if sure > 0:
            result[one["run_b"]].append(one["run_a"])
        elif sure < 0:
            result[one["run_a"]].append(one["run_b"])
    return result


def ranks(beats: dict[str, list[str]]) -> dict[str, int]:
    """Return ranks: 1 plus the number of significantly better runs."""
    return {name: 1 + sum(name in worse for worse in beats.values()) for name in beats}


# Differences of numbers to the baseline, and their significance.

BETTER, WORSE, UNSURE, SAME = "better", "worse", "not significant", "same"
UNTESTED, NO_DIRECTION = "not tested", "no direction"
_NAMES = ("metric", *KEYS)
_SURE = {1: BETTER, -1: WORSE}


class Difference(msgspec.Struct, frozen=True):
    """Number compared with the baseline's.

    Attributes:
        before: the baseline's number; None if undefined.
        value: the change; None if either is undefined.
        lower: low end of the interval of the change; None without one.
        upper: high end of the interval of the change; None without one.
        reading: ``better``, ``worse``, ``not significant`` or ``same``; empty if it was not tested
            or no direction is better.
        unread: reason why ``reading`` is empty.
        adjusted: the adjusted p if the change is not significant although its interval excludes 0;
            otherwise None.
    """

    before: float | None
    value: float | None
    lower: float | None = None
    upper: float | None = None
    reading: str = ""
    unread: str = ""
    adjusted: float | None = None


class Differences:
    """Differences of a run to a baseline, by number.

    Args:
        comparison: of both, the baseline first; None if they could not be compared.
        margins: of both, if they are over different datums; otherwise None. Without either,
            differences have no interval.
    """

    def __init__(
        self, baseline: Scorecard, comparison: Comparison | None, margins: Margins | None = None
    ) -> None:
        self._comparison = comparison
        self._directions = baseline.directions
        self._before = {_key(row): row["value"] for row in baseline.metrics.iter_rows(named=True)}
        differences = margins.rows if comparison is None and margins is not None else None
        differences = comparison.differences if comparison is not None else differences
        self._drawn = (
            {} if differences is None else {_key(row): row for row in differences.rows(named=True)}
        )

    def of(self, row: dict[str, Any]) -> Difference | None:
        """Return the difference of the number in a row of the metrics frame; None if it is new."""
        key = _key(row)
        unread = NO_DIRECTION if self._directions.get(row["metric"]) == "neither" else UNTESTED
        drawn = self._drawn.get(key)
        if drawn is not None:
            bounds = drawn["lower"], drawn["upper"]
            reading = self._reading(drawn, row["metric"])
            only_unadjusted = (
                reading == UNSURE and None not in bounds and not bounds[0] <= 0 <= bounds[1]
            )
            adjusted = drawn.get("p_adjusted") if only_unadjusted else None
            return Difference(drawn["a"], drawn["difference"], *bounds, reading, unread, adjusted)
        if key not in self._before:
            return None
        before, now = self._before[key], row["value"]
        changed = None if before is None or now is None else now - before
        return Difference(before, changed, unread=unread)

    def _reading(self, drawn: dict[str, Any], metric: str) -> str:
        """Read a difference; without a comparison it is sure if its interval excludes 0."""
        comparison, lower, upper = self._comparison, drawn["lower"], drawn["upper"]
        direction = self._directions.get(metric, "higher")
        if direction == "neither" or drawn["difference"] is None or too_few(drawn.get("coverage")):
            return ""
        if comparison is not None:
            if abs(drawn["difference"]) <= NONE and abs(drawn["se"] or 0.0) <= NONE:
                return SAME
            return _SURE.get(better(comparison, drawn), UNSURE)
        if lower is None or upper is None:
            return ""
        if lower <= 0 <= upper:
            return UNSURE
        return BETTER if (lower > 0) == (direction == "higher") else WORSE


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    # Slices and labels are text in both runs, and floats were rounded the same way.
    return tuple(row.get(name) for name in _NAMES)
