"""Coverage of intervals: samples of populations whose values are known.

    python benchmarks/interval_coverage.py [STUDY ...] [--sets N] [--draws N] [--quick]
        [--workers N] [--write-docs]

Every set is scored by ``ee.score`` with percentile intervals. Recentred and normal ones follow from
the same frame (``bias`` and ``se``) and are compared with ``method=`` in the first set of each
size; the others are separate runs. ``--quick`` takes few sets of the smaller samples.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import interval_coverage_data as data
import measuring
import numpy as np
import reporting
from interval_coverage_data import Number, Study

Array = np.ndarray[Any, Any]
Key = tuple[str, str, int, str]  # metric, kind of run, size, method
LEVEL = 0.95
WITHIN = 0.93, 0.97
FROM_DRAWS = ("percentile", "recentred", "normal")
WITH = ""
BY_THEORY = ("wilson", "delong")


@dataclass
class Coverage:
    """Intervals of one metric, or one for each label, by one method, over sets.

    Attributes:
        rows: label index, value, lower bound, upper bound, truth, and the mean of the resamples
            minus the value in standard errors (NaN without resamples), of each interval.
        missing: values without an interval.
    """

    rows: list[tuple[int, float, float, float, float, float]] = field(default_factory=list)
    missing: int = 0

    def columns(self) -> tuple[Array, ...]:
        return tuple(np.array(self.rows).T)

    @property
    def coverage(self) -> float:
        """Share of intervals that contain the population's value."""
        _, _, low, high, truth, _ = self.columns()
        return float(((low <= truth) & (truth <= high)).mean())

    @property
    def of_mean(self) -> float:
        """Share of intervals that contain the mean of the metric over sets of this size."""
        which, value, low, high, _, _ = self.columns()
        which = which.astype(int)
        mean = (np.bincount(which, value) / np.maximum(np.bincount(which), 1))[which]
        return float(((low <= mean) & (mean <= high)).mean())

    @property
    def own_bias(self) -> float:
        """Mean bias of the metric, in its standard deviations over sets."""
        which, value, _, _, truth, _ = self.columns()
        gap = value - truth
        spread = [gap[which == one].std() for one in np.unique(which)]
        return float(gap.mean() / np.mean(spread))


def derived_bounds(row: dict[str, Any], units: float) -> dict[str, tuple[float, float]]:
    """Derive other intervals from percentiles, all of metrics from 0 to 1.

    ``units`` is the number of clusters; infinite without.
    """
    from evalengine.statistics.intervals import resample_quantile

    low, high, bias = row["lower"], row["upper"], row["bias"]
    reach = float(resample_quantile(LEVEL, np.array([units]), 1)[0]) * row["se"]
    made = {
        "percentile": (low, high),
        "recentred": (low - bias, high - bias),
        "normal": (row["value"] - reach, row["value"] + reach),
    }
    return {name: (max(a, 0.0), min(b, 1.0)) for name, (a, b) in made.items()}


def rows_of(
    sides: data.Tables, numbers: tuple[Number, ...], **options: Any
) -> dict[str, list[dict[str, Any]]]:
    """Select the rows of each metric."""
    import evalengine as ee

    asked = [one.metric for one in numbers]
    frame = ee.score(*sides, metrics=asked, intervals=LEVEL, threads=1, **options).metrics
    return {one.metric: list(frame.filter(one.row).iter_rows(named=True)) for one in numbers}


Seen = tuple[Key, int, dict[str, Any], tuple[float, float] | None, float]
"""Key, label index, row, bounds if there are any, and truth."""


def sampled(study: Study, size: int, n_sets: int, draws: int) -> Iterator[Seen]:
    """Return every interval of every set."""
    truth = study.truth()
    for i in range(n_sets):
        sides = study.sample(np.random.default_rng((i, size)), size)
        for kind, other in {WITH: {}, **study.variants}.items():
            options = {**study.options, **other, "draws": draws, "seed": i}
            rows = rows_of(sides, study.numbers, **options, method="percentile")
            units = float(size) if options.get("cluster") else math.inf
            if i == 0:
                agree(study, sides, rows, options, units)
            for one in study.numbers:
                for j, row in enumerate(rows[one.metric]):
                    defined = row["lower"] is not None
                    made = derived_bounds(row, units) if defined else dict.fromkeys(FROM_DRAWS)
                    for method, both in made.items():
                        yield (one.title, kind, size, method), j, row, both, truth[one.metric][j]
            if kind == WITH:
                yield from others(study, sides, options, size, truth)


def others(
    study: Study,
    sides: data.Tables,
    options: dict[str, Any],
    size: int,
    truth: dict[str, list[float]],
) -> Iterator[Seen]:
    """Return intervals by methods that need separate runs."""
    for method in dict.fromkeys(m for one in study.numbers for m in one.methods):
        if method in BY_THEORY and options.get("cluster"):
            continue
        those = tuple(one for one in study.numbers if method in one.methods)
        rows = rows_of(sides, those, **options, method=method)
        for one in those:
            for j, row in enumerate(rows[one.metric]):
                defined = row["lower"] is not None
                both = (row["lower"], row["upper"]) if defined else None
                yield (one.title, WITH, size, method), j, row, both, truth[one.metric][j]


def agree(
    study: Study,
    sides: data.Tables,
    our_rows: dict[str, Any],
    options: dict[str, Any],
    units: float,
) -> None:
    """Fail if the derived bounds differ from those of ``method=``."""
    for method in ("recentred", "normal"):
        asked = rows_of(sides, study.numbers, **options, method=method)
        for metric, rows in asked.items():
            for row, plain in zip(rows, our_rows[metric], strict=True):
                if row["lower"] is not None:
                    own = row["lower"], row["upper"]
                    assert np.allclose(own, derived_bounds(plain, units)[method], atol=1e-12), (
                        metric,
                        method,
                    )


def measured(study: Study, sizes: tuple[int, ...], n_sets: int, draws: int) -> dict[Key, Coverage]:
    """Measure intervals over many sets."""
    out: dict[Key, Coverage] = {}
    for size in sizes:
        for key, j, row, both, truth in sampled(study, size, n_sets, draws):
            one = out.setdefault(key, Coverage())
            if both is None:
                one.missing += 1
                continue
            bias = row["bias"] / row["se"] if row["bias"] is not None and row["se"] else math.nan
            one.rows.append((j, row["value"], *both, truth, bias))
    return {key: one for key, one in out.items() if one.rows}


def default_of(study: Study, number: Number) -> str:
    """Return the default method of a metric."""
    from evalengine import metrics

    return metrics.get(study.task, number.metric.split("@")[0]).interval


def table_of(study: Study, results: dict[Key, Coverage]) -> tuple[str, list[str]]:
    """Format the table of a study, and list default intervals that miss too often or too seldom."""
    defaults = {one.title: default_of(study, one) for one in study.numbers}
    titles = list(defaults)
    rows, outside = [], []
    order = sorted(results, key=lambda key: (titles.index(key[0]), key[2], key[1] != WITH))
    for key in order:
        title, kind, size, method = key
        one = results[key]
        count = f"{size // 2:,}" if study.counted.startswith("ground") else f"{size:,}"
        default = method == defaults[title] and kind == WITH
        name = method if kind == WITH else f"{method}, {kind}"
        inside = WITHIN[0] <= one.coverage <= WITHIN[1]
        _, _, low, high, _, bias = one.columns()
        rows.append(
            [
                title,
                count,
                f"**{name}**" if default else name,
                f"{one.coverage:.3f}" + ("" if inside else " !"),
                f"{one.of_mean:.3f}",
                f"{(high - low).mean():.3f}",
                "" if np.isnan(bias).all() else f"{np.nanmean(bias):+.2f}",
                f"{one.own_bias:+.2f}",
                f"{one.missing}" if one.missing else "",
            ]
        )
        if default and not inside:
            outside.append(f"{title}, {count} {study.counted} ({method}: {one.coverage:.3f})")
    header = ["", study.counted, "method", "coverage", "of the mean", "mean width", "bias",
              "own bias", "none"]  # fmt: skip
    lines = reporting.table(header, rows).splitlines()
    lines[1] = lines[1].replace("---: | ---: |", "---: | --- |", 1)
    return "\n".join(lines), outside


def page(studies: dict[str, dict[Key, Coverage]], n_sets: int, draws: int, seconds: float) -> str:
    """Format the section as Markdown."""
    chance = math.sqrt(LEVEL * (1 - LEVEL) / n_sets)
    parts = [
        "## Coverage of intervals",
        f"Share of nominal 95 % intervals that contain the truth: {n_sets:,} random sets of each"
        f" size, {draws:,} resamples per set, so that a coverage is known to {chance:.3f}. The"
        " metric's default method is in bold; `!` marks a coverage outside of 0.93 to 0.97."
        " *Coverage* is of the population's number; *of the mean* is of the mean of the number"
        " over sets of this size. The two differ if the number itself is biased. Interpolated"
        " precision is too high in small sets, especially in the mean over many classes. Its"
        " intervals are for other sets of this size, not for an infinite set. Comparisons of runs"
        " over one set are not affected: the bias of both cancels. *Bias* is the mean of the"
        " resamples minus the number, in standard errors. *Own bias* is the mean of the number"
        " minus the population's, in deviations of the number. *None* counts numbers without an"
        " interval.",
    ]
    outside: list[str] = []
    for name, results in studies.items():
        study = data.STUDIES[name]
        text, missed = table_of(study, results)
        parts += [f"### {name.capitalize()}", study.about, text]
        outside += missed
    message = "; ".join(outside) if outside else "none"
    m = measuring.machine()
    parts += [
        f"Defaults outside of 0.93 to 0.97: {message}.",
        f"{m['system']}, Python {m['python']}, {time.strftime('%Y-%m-%d')};"
        f" {seconds:.0f} s of CPU. Repeat with `python benchmarks/interval_coverage.py"
        f" {' '.join(sys.argv[1:])}`.",
    ]
    return "\n\n".join(parts)


def study_of(
    name: str, n_sets: int, draws: int, smallest: bool
) -> tuple[dict[Key, Coverage], float]:
    """Return the intervals of a study, and the CPU seconds spent."""
    begun = time.process_time()
    study = data.STUDIES[name]
    results = measured(study, study.sizes[:1] if smallest else study.sizes, n_sets, draws)
    seconds = time.process_time() - begun
    print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return results, seconds


def main() -> int:
    """Measure, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("studies", nargs="*", metavar="STUDY", default=[])
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2, help="studies at once")
    parser.add_argument("--quick", action="store_true", help="30 sets of the smallest samples")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    given = parser.parse_args()
    unknown = set(given.studies) - set(data.STUDIES)
    if unknown:
        parser.error(f"no study {', '.join(unknown)}; there are {', '.join(data.STUDIES)}")
    names = given.studies or list(data.STUDIES)
    n_sets, draws = (30, 100) if given.quick else (given.sets, given.draws)
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        tasks = [pool.submit(study_of, name, n_sets, draws, given.quick) for name in names]
        made = dict(zip(names, (task.result() for task in tasks), strict=True))
    seconds = sum(seconds for _, seconds in made.values())
    text = page({name: results for name, (results, _) in made.items()}, n_sets, draws, seconds)
    print(text)
    if given.write_docs:
        reporting.write_docs("coverage", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
