"""Simulate candidate intervals of F1, MCC, kappa, balanced accuracy, macro F1, MAE and RMSE.

    python benchmarks/interval_candidates.py [--sets N] [--seconds S] [--store FILE] [--write-docs]

Candidates, loss and cells are fixed in docs/decisions/intervals.md. Set i of a cell depends only on
the cell and i, so that an interrupted run continues from FILE. Metrics of hard labels are computed
from confusion matrices, whose cells are resampled as Poisson counts. This is the bootstrap of
independent datums.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import reporting

from evalengine.statistics.intervals import (
    Sample,
    bca,
    normal_quantile,
    percentile,
    quantiles,
    resample_quantile,
    standard_errors,
    wilson,
)

Array = np.ndarray[Any, Any]
LEVEL, DRAWS, INNER = 0.95, 500, (200, 100)
Z = normal_quantile((1 + LEVEL) / 2)
CHUNK = 50  # sets between two writes of the store
ORACLE = 20_000  # sets that give the width of the sampling distribution

# Metrics of confusion matrices [..., actual, predicted]; label 1 is the rare one of two.


def f1(c: Array) -> Array:
    return 2 * c[..., 1, 1] / (2 * c[..., 1, 1] + c[..., 0, 1] + c[..., 1, 0])


def mcc(c: Array) -> Array:
    rows, columns = c.sum(-1), c.sum(-2)
    determinant = c[..., 0, 0] * c[..., 1, 1] - c[..., 0, 1] * c[..., 1, 0]
    return determinant / np.sqrt(rows.prod(-1) * columns.prod(-1))


def kappa(c: Array) -> Array:
    n = c.sum((-1, -2))
    agreed = np.trace(c, axis1=-2, axis2=-1) / n
    chance = (c.sum(-1) * c.sum(-2)).sum(-1) / n**2
    return (agreed - chance) / (1 - chance)


def recalls(c: Array) -> Array:
    return np.diagonal(c, axis1=-2, axis2=-1) / c.sum(-1)


def f1s(c: Array) -> Array:
    return 2 * np.diagonal(c, axis1=-2, axis2=-1) / (c.sum(-1) + c.sum(-2))


def mean_over_labels(values: Array) -> Array:
    """Average over labels; undefined labels are skipped."""
    defined = ~np.isnan(values)
    return np.where(defined, values, 0.0).sum(-1) / defined.sum(-1)


def balanced(c: Array) -> Array:
    return mean_over_labels(recalls(c))


def macro_f1(c: Array) -> Array:
    return mean_over_labels(f1s(c))


class Number(NamedTuple):
    """A metric, its range, and the metrics of labels that it averages."""

    of: Callable[[Array], Array]
    low: float
    labels: Callable[[Array], Array] | None = None


NUMBERS = {
    "F1": Number(f1, 0.0),
    "MCC": Number(mcc, -1.0),
    "CohenKappa": Number(kappa, -1.0),
    "BalancedAccuracy": Number(balanced, 0.0, recalls),
    "macro F1": Number(macro_f1, 0.0, f1s),
}

# Cells: populations, and the number of datums.


class Cell(NamedTuple):
    """Probabilities of a confusion matrix, number of datums, and its metrics."""

    chances: Array
    n: int
    numbers: tuple[str, ...]


def two(share: float, recall: float, false: float = 0.1) -> Array:
    return np.array([[(1 - share) * (1 - false), (1 - share) * false],
                     [share * (1 - recall), share * recall]])  # fmt: skip


def many(shares: Array, right: float) -> Array:
    """Return a cell of many labels; errors go to the other labels by their frequency."""
    shares = shares / shares.sum()
    other = np.tile(shares, (shares.size, 1)) * (1 - np.eye(shares.size))
    chances = (1 - right) * other / other.sum(1, keepdims=True) + right * np.eye(shares.size)
    return shares[:, None] * chances


TWO = "F1", "MCC", "CohenKappa", "BalancedAccuracy"
ZIPF = 1 / np.arange(1, 21)
CELLS: dict[str, Cell] = {
    **{
        f"{positives} of {share}, recall {recall}": Cell(
            two(share, recall), round(positives / share), TWO
        )
        for share in (0.2, 0.5, 0.05)
        for recall in (0.7, 0.9)
        for positives in (4, 10, 20, 50)
    },
    **{
        f"5 labels, {n}": Cell(many(np.ones(5), 0.7), n, ("macro F1", "BalancedAccuracy"))
        for n in (25, 50, 100, 500)
    },
    **{
        f"20 Zipf labels, {n}": Cell(many(ZIPF, 0.8), n, ("macro F1", "BalancedAccuracy"))
        for n in (200, 1000)
    },
}
VALIDATION = "0.05,", "1000"
"""Parts of names of cells that the choice ignores: rarer labels, and more datums."""


# Candidates. Each returns lower and upper bound.


class Set(NamedTuple):
    """A set: its matrix, value, resamples and delete-one values."""

    counts: Array
    number: Number
    point: float
    drawn: Array
    matrices: Array
    left_out: Array
    rng: Any


def delete_one(of: Callable[[Array], Array], c: Array) -> tuple[Array, Array]:
    """Return values without one datum of each cell, [..., cells], and the datums of each cell."""
    k = c.shape[-1]
    unit = np.eye(k * k).reshape(k * k, k, k)
    return of(np.maximum(c[..., None, :, :] - unit, 0.0)), c.reshape(*c.shape[:-2], k * k)


def jackknife_se(of: Callable[[Array], Array], c: Array) -> Array:
    values, n = delete_one(of, c)
    n = np.where(np.isnan(values), 0.0, n)
    values = np.where(np.isnan(values), 0.0, values)
    total = n.sum(-1)
    mean = (values * n).sum(-1) / total
    squares = (n * (values - mean[..., None]) ** 2).sum(-1)
    return np.sqrt((total - 1) / total * squares)


def sample_of(one: Set) -> Sample:
    return Sample(
        np.array([one.point]), LEVEL, (one.number.low, 1.0), one.drawn[:, None],
        one.left_out[:, None],
    )  # fmt: skip


def both(interval: Any) -> tuple[float, float]:
    return float(interval.lower[0]), float(interval.upper[0])


def by_percentile(one: Set) -> tuple[float, float]:
    return both(percentile(sample_of(one)))


def by_bca(one: Set) -> tuple[float, float]:
    return both(bca(sample_of(one)))


def scale_of(number: Number) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Logit of metrics from 0 to 1; Fisher's z, which is half of it, for those from -1."""
    low = number.low

    def out(x: Any) -> Any:
        share = (x - low) / (1 - low)
        return np.log(share / (1 - share))

    def back(y: Any) -> Any:
        return low + (1 - low) / (1 + np.exp(-y))

    return out, back


def transformed(one: Set) -> tuple[float, float]:
    """Bounds from the standard error of resamples on the logit (or Fisher's z) scale."""
    se = float(standard_errors(one.drawn[:, None])[0])
    return on_scale(one, se)


def by_delta(one: Set) -> tuple[float, float]:
    """Takahashi et al. 2022: normal, with the delta method's standard error (the jackknife's)."""
    se = float(jackknife_se(one.number.of, one.counts))
    return max(one.point - Z * se, one.number.low), min(one.point + Z * se, 1.0)


def delta_transformed(one: Set) -> tuple[float, float]:
    return on_scale(one, float(jackknife_se(one.number.of, one.counts)))


def on_scale(one: Set, se: float) -> tuple[float, float]:
    out, back = scale_of(one.number)
    low = one.number.low
    share = (one.point - low) / (1 - low)
    if not 0 < share < 1:
        return np.nan, np.nan
    reach = Z * se / (1 - low) / (share * (1 - share))
    return float(back(out(one.point) - reach)), float(back(out(one.point) + reach))


def studentised(one: Set) -> tuple[float, float]:
    """Bootstrap t with the jackknife's standard error in each resample."""
    if one.counts.shape[0] > 5:
        return np.nan, np.nan  # not computed: a jackknife of 400 cells in each resample
    se = jackknife_se(one.number.of, one.matrices)
    t = (one.drawn - one.point) / np.where(se > 0, se, np.nan)
    own = float(jackknife_se(one.number.of, one.counts))
    low, high = quantiles(t[:, None], np.array([0.975, 0.025]))[:, 0]
    return max(one.point - low * own, one.number.low), min(one.point - high * own, 1.0)


def calibrated(one: Set) -> tuple[float, float]:
    """Percentiles whose nominal level is set by a second bootstrap within each resample."""
    outer, inner = INNER
    if one.counts.shape[0] > 5:
        return np.nan, np.nan
    first = one.matrices[:outer]
    second = one.rng.poisson(first[:, None], (outer, inner, *one.counts.shape)).astype(float)
    values = one.number.of(second)
    below = ((values < one.point).sum(1) + (values == one.point).sum(1) / 2) / inner
    bounds = np.quantile(below, [0.025, 0.975])
    low, high = quantiles(one.drawn[:, None], np.clip(bounds, 0, 1))[:, 0]
    return float(low), float(high)


def jeffreys(one: Set) -> tuple[float, float]:
    """Goutte and Gaussier 2005: Dirichlet probabilities of cells, with 1/2 added to each."""
    shares = one.rng.gamma(one.counts + 0.5, size=(DRAWS, *one.counts.shape))
    low, high = np.nanquantile(one.number.of(shares), [0.025, 0.975])
    return float(low), float(high)


def wilsons(right: Array, n: Array) -> tuple[Array, Array, Array]:
    defined = n > 0
    point = np.where(defined, right / np.where(defined, n, 1), np.nan)
    nothing = np.zeros((0, point.size))
    bounds = wilson(Sample(point, LEVEL, (0, 1), nothing, nothing, trials=n))
    return point, bounds.lower, bounds.upper


def mover(one: Set) -> tuple[float, float]:
    """Wilson's bounds of the labels, combined (Zou and Donner 2008).

    F1 of a label is 2 J / (1 + J) for the share J = tp / (tp + fp + fn), which has Wilson's
    interval.
    """
    c = one.counts
    right = np.diagonal(c)
    if one.number.labels is recalls:
        point, low, high = wilsons(right, c.sum(1))
    elif one.number.of in (f1, macro_f1):
        point, low, high = (2 * j / (1 + j) for j in wilsons(right, c.sum(0) + c.sum(1) - right))
        if one.number.of is f1:
            return float(low[1]), float(high[1])
    else:
        return np.nan, np.nan
    defined = ~np.isnan(point)
    down, up = ((point - low)[defined] ** 2).sum(), ((high - point)[defined] ** 2).sum()
    many = defined.sum()
    return one.point - np.sqrt(down) / many, one.point + np.sqrt(up) / many


def fixed_labels(one: Set) -> tuple[float, float]:
    """Percentiles; a label that is missing in a resample keeps its value of all datums."""
    if one.number.labels is None:
        return by_percentile(one)
    values, own = one.number.labels(one.matrices), one.number.labels(one.counts)
    drawn = mean_over_labels(np.where(np.isnan(values), own, values))
    low, high = quantiles(drawn[:, None], np.array([0.025, 0.975]))[:, 0]
    return float(low), float(high)


CANDIDATES: dict[str, Callable[[Set], tuple[float, float]]] = {
    "percentile": by_percentile,
    "bca": by_bca,
    "transformed": transformed,
    "delta": by_delta,
    "delta transformed": delta_transformed,
    "studentised": studentised,
    "double bootstrap": calibrated,
    "Jeffreys": jeffreys,
    "Wilson": mover,
    "fixed labels": fixed_labels,
}

# Errors of regression: metrics, and candidates for positive metrics without an upper limit.

ERRORS: dict[str, Callable[[Any, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t5": lambda rng, n: rng.standard_t(5, n),
    "t2.5": lambda rng, n: rng.standard_t(2.5, n),
}
TRUE = {"normal": (0.7978846, 1.0), "t5": (0.9490168, 1.2909944), "t2.5": (1.2060281, 2.236068)}
"""Return the mean absolute value and the root of the variance."""
SIZES = 20, 30, 100
VALUES = "percentile", "bca", "log", "studentised", "log studentised"


def of_errors(error: Array, rng: Any, n: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Return bounds of MAE and RMSE by candidate; both are (roots of) means."""
    weights = rng.poisson(1.0, (DRAWS, n))
    out = {}
    for name, value, root in (("MAE", np.abs(error), 1), ("RMSE", error**2, 2)):
        total = weights.sum(1)
        mean = weights @ value / total
        variance = np.maximum(weights @ value**2 / total - mean**2, 0.0) / total
        drawn, se = mean ** (1 / root), np.sqrt(variance) / root * mean ** (1 / root - 1)
        point = value.mean() ** (1 / root)
        own = value.std() / np.sqrt(n) / root * value.mean() ** (1 / root - 1)
        left = ((value.sum() - value) / (n - 1)) ** (1 / root)
        sample = Sample(np.array([point]), LEVEL, (0.0, np.inf), drawn[:, None], left[:, None],
                        units=np.array([float(n)]))  # fmt: skip
        z = float(resample_quantile(LEVEL, sample.units, 1)[0])
        reach = z * float(standard_errors(drawn[:, None])[0]) / point
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nanquantile(np.where(se > 0, (drawn - point) / se, np.nan), [0.975, 0.025])
            log_t = np.where(se > 0, np.log(drawn / point) / (se / drawn), np.nan)
        log_t = np.nanquantile(log_t, [0.975, 0.025])
        out[name] = {
            "percentile": both(percentile(sample)),
            "bca": both(bca(sample)),
            "log": (point * np.exp(-reach), point * np.exp(reach)),
            "studentised": (max(point - t[0] * own, 0.0), point - t[1] * own),
            "log studentised": tuple(point * np.exp(-log_t * own / point)),
        }
    return out


# The simulation.

Counts = dict[str, dict[str, list[float]]]
"""Metric -> candidate -> sets, covered, too high, without an interval, sum of widths."""


def rng_of(name: str, i: int) -> Any:
    return np.random.default_rng([zlib.crc32(name.encode()), i])


def sets_of(name: str, first: int, last: int) -> Iterator[tuple[str, str, float, float, float]]:
    """Yield metric, candidate, lower and upper bound and truth of each interval."""
    if name.startswith("errors"):
        kind, n = name.split()[1].rstrip(","), int(name.split()[-1])
        for i in range(first, last):
            rng = rng_of(name, i)
            samples = of_errors(ERRORS[kind](rng, n), rng, n)
            for number, truth in zip(("MAE", "RMSE"), TRUE[kind], strict=True):
                for candidate, (low, high) in samples[number].items():
                    yield number, candidate, low, high, truth
        return
    cell = CELLS[name]
    for i in range(first, last):
        rng = rng_of(name, i)
        counts = rng.multinomial(cell.n, cell.chances.ravel()).reshape(cell.chances.shape)
        matrices = rng.poisson(counts, (DRAWS, *counts.shape)).astype(float)
        for name_of in cell.numbers:
            number = NUMBERS[name_of]
            left, n = delete_one(number.of, counts.astype(float))
            one = Set(
                counts.astype(float), number, float(number.of(counts.astype(float))),
                number.of(matrices), matrices, np.repeat(left, n.astype(int)), rng,
            )  # fmt: skip
            truth = float(number.of(cell.chances))
            for candidate, make in CANDIDATES.items():
                yield name_of, candidate, *make(one), truth


def oracle(name: str) -> dict[str, float]:
    """Return the width of the middle 95 % of the sampling distribution."""
    rng = rng_of(name, -1 % 2**32)
    if name.startswith("errors"):
        kind, n = name.split()[1].rstrip(","), int(name.split()[-1])
        error = ERRORS[kind](rng, ORACLE * n).reshape(ORACLE, n)
        values = {"MAE": np.abs(error).mean(1), "RMSE": np.sqrt((error**2).mean(1))}
    else:
        cell = CELLS[name]
        counts = rng.multinomial(cell.n, cell.chances.ravel(), ORACLE)
        counts = counts.reshape(ORACLE, *cell.chances.shape).astype(float)
        values = {number: NUMBERS[number].of(counts) for number in cell.numbers}
    return {key: float(np.ptp(np.nanquantile(v, [0.025, 0.975]))) for key, v in values.items()}


def loss(one: list[float], width: float) -> float:
    """|coverage - 0.95| + 0.1 |width ratio - 1|; a set without an interval is not covered."""
    sets, covered, _, none, widths = one
    ratio = widths / max(sets - none, 1) / width
    return abs(covered / sets - LEVEL) + 0.1 * abs(ratio - 1)


def tables(stored: dict[str, Any]) -> str:
    """Format the loss by metric and candidate, and the coverage by cell."""
    groups: dict[tuple[str, str, bool], list[float]] = {}
    for name, cell in stored.items():
        validation = any(part in name for part in VALIDATION)
        for number, of_number in cell["counts"].items():
            for candidate, one in of_number.items():
                if one[0] > one[3]:
                    value = loss(one, cell["width"][number])
                    groups.setdefault((number, candidate, validation), []).append(value)
    numbers = list(dict.fromkeys(number for number, _, _ in groups))
    names = [*CANDIDATES, *(one for one in VALUES if one not in CANDIDATES)]

    def shown(number: str, candidate: str) -> str:
        both = [groups.get((number, candidate, validation)) for validation in (False, True)]
        return " / ".join(f"{np.mean(one):.3f}" for one in both if one)

    lines = ["| candidate | " + " | ".join(numbers) + " |", "| --- |" + " ---: |" * len(numbers)]
    lines += [
        f"| {candidate} | " + " | ".join(shown(number, candidate) for number in numbers) + " |"
        for candidate in names
    ]
    return "\n".join(lines)


def details(stored: dict[str, Any]) -> str:
    """Format coverage, the share of too high lower bounds in brackets, and the width ratio."""
    names = [*CANDIDATES, *(one for one in VALUES if one not in CANDIDATES)]
    lines = ["| cell | number | " + " | ".join(names) + " |", "| --- | --- |"]
    lines[1] += " ---: |" * len(names)
    for name, cell in stored.items():
        for number, of_number in cell["counts"].items():
            row = []
            for candidate in names:
                one = of_number.get(candidate)
                if one is None or one[0] == one[3]:
                    row.append("")
                    continue
                sets, covered, high, none, widths = one
                ratio = widths / (sets - none) / cell["width"][number]
                row.append(f"{covered / sets:.3f} ({high / sets:.3f}) {ratio:.2f}")
            lines.append(f"| {name} | {number} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=2400.0, help="stop after")
    parser.add_argument("--store", type=Path, default=Path("interval_candidates.json"))
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args()
    np.seterr(divide="ignore", invalid="ignore")
    stored = json.loads(given.store.read_text()) if given.store.exists() else {}
    end = time.process_time() + given.seconds
    cells = [*CELLS, *(f"errors {kind}, {n}" for kind in ERRORS for n in SIZES)]
    for upto in range(CHUNK, given.sets + 1, CHUNK):
        for name in cells:
            cell = stored.setdefault(name, {"sets": 0, "counts": {}, "width": oracle(name)})
            if cell["sets"] >= upto or time.process_time() > end:
                continue
            for number, candidate, low, high, truth in sets_of(name, cell["sets"], upto):
                by_candidate = cell["counts"].setdefault(number, {})
                one = by_candidate.setdefault(candidate, [0, 0, 0, 0, 0.0])
                one[0] += 1
                if not high > low:
                    one[3] += 1
                    continue
                one[1] += int(low - 1e-12 <= truth <= high + 1e-12)
                one[2] += int(low - 1e-12 > truth)
                one[4] += float(high - low)
            cell["sets"] = upto
        given.store.write_text(json.dumps(stored))
        print(f"{upto} sets: {time.process_time():.0f} s", file=sys.stderr, flush=True)
    print(details(stored))
    print()
    print(tables(stored))
    if given.write_docs:
        reporting.write_docs("interval-candidates", tables(stored), reporting.PAGES.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
