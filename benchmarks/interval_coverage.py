"""How often intervals hold the truth: samples of populations whose numbers are known.

    python benchmarks/interval_coverage.py [STUDY ...] [--sets N] [--draws N] [--quick]
        [--write-docs]

Every set is scored by ``ee.score`` with percentile intervals; recentred and normal ones follow from
the same frame (``bias`` and ``se``) and are held against ``method=`` in the first set of each
size; others are runs of their own. ``--quick`` takes few sets of the smaller samples.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import interval_coverage_data as data
import measuring
import numpy as np
import reporting
from interval_coverage_data import Number, Study

Array = np.ndarray[Any, Any]
Key = tuple[str, str, int, str]  # number, kind of run, size, method
PAGE = measuring.HERE.parent / "docs" / "benchmarks.md"
LEVEL = 0.95
WITHIN = 0.93, 0.97
FROM_DRAWS = ("percentile", "recentred", "normal")
WITH = "as it should be"


@dataclass
class Found:
    """Intervals of one number by one method, over sets.

    Attributes:
        hits: whether each holds the truth.
        widths: of each.
        biases: mean of the draws less the number, in standard errors; empty without draws.
        missing: numbers without an interval.
    """

    hits: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    biases: list[float] = field(default_factory=list)
    missing: int = 0

    def add(self, low: float, high: float, bias: float | None, truth: float) -> None:
        self.hits.append(low <= truth <= high)
        self.widths.append(high - low)
        if bias is not None:
            self.biases.append(bias)

    @property
    def coverage(self) -> float:
        return sum(self.hits) / len(self.hits)


def ends(row: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Intervals that follow from those of percentiles, all of numbers from 0 to 1."""
    low, high, bias = row["lower"], row["upper"], row["bias"]
    reach = NormalDist().inv_cdf((1 + LEVEL) / 2) * row["se"]
    made = {
        "percentile": (low, high),
        "recentred": (low - bias, high - bias),
        "normal": (row["value"] - reach, row["value"] + reach),
    }
    return {name: (max(a, 0.0), min(b, 1.0)) for name, (a, b) in made.items()}


def rows_of(
    study: Study, sides: data.Tables, numbers: tuple[Number, ...], **options: Any
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each number."""
    import evalengine as ee

    asked = [one.metric for one in numbers]
    frame = ee.score(*sides, metrics=asked, intervals=LEVEL, threads=1, **options).metrics
    return {one.metric: list(frame.filter(one.row).iter_rows(named=True)) for one in numbers}


def sampled(
    study: Study, size: int, n_sets: int, draws: int
) -> Iterator[tuple[Key, dict[str, Any], tuple[float, float], float]]:
    """Key, row, ends and truth of every interval of every set."""
    truth = study.truth()
    for i in range(n_sets):
        sides = study.sample(np.random.default_rng((i, size)), size)
        for kind, other in {WITH: {}, **study.apart}.items():
            options = {**study.options, **other, "draws": draws, "seed": i}
            found = rows_of(study, sides, study.numbers, **options, method="percentile")
            for one in study.numbers:
                for row, real in zip(found[one.metric], truth[one.metric], strict=True):
                    if row["lower"] is None:
                        yield (one.title, kind, size, ""), row, (math.nan, math.nan), real
                        continue
                    for method, both in ends(row).items():
                        yield (one.title, kind, size, method), row, both, real
            if i == 0:
                agree(study, sides, found, options)
            if kind != WITH:
                continue
            for method in dict.fromkeys(m for one in study.numbers for m in one.methods):
                if method in ("wilson", "delong") and study.options.get("cluster"):
                    continue
                those = tuple(one for one in study.numbers if method in one.methods)
                found = rows_of(study, sides, those, **options, method=method)
                for one in those:
                    for row, real in zip(found[one.metric], truth[one.metric], strict=True):
                        if row["lower"] is not None:
                            both = row["lower"], row["upper"]
                            yield (one.title, kind, size, method), row, both, real


def agree(
    study: Study,
    sides: data.Tables,
    found: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Fail where the ends that follow are not those of ``method=``."""
    for method in ("recentred", "normal"):
        asked = rows_of(study, sides, study.numbers, **options, method=method)
        for metric, rows in asked.items():
            for row, plain in zip(rows, found[metric], strict=True):
                if row["lower"] is not None:
                    own = row["lower"], row["upper"]
                    assert np.allclose(own, ends(plain)[method], atol=1e-12), (metric, method)


def measured(study: Study, sizes: tuple[int, ...], n_sets: int, draws: int) -> dict[Key, Found]:
    """What intervals do in many sets."""
    out: dict[Key, Found] = {}
    missing: dict[tuple[str, str, int], int] = {}
    for size in sizes:
        for key, row, (low, high), truth in sampled(study, size, n_sets, draws):
            if math.isnan(low):
                missing[key[:3]] = missing.get(key[:3], 0) + 1
                continue
            se = row["se"]
            bias = row["bias"] / se if row["bias"] is not None and se else None
            out.setdefault(key, Found()).add(low, high, bias, truth)
    for key, one in out.items():
        one.missing = missing.get(key[:3], 0)
    return out


def default_of(number: Number) -> str:
    """The method that its metric has unless another is asked for."""
    from evalengine import metrics

    for task in ("classification", "retrieval", "text", "detection"):
        if metrics.has(task, number.metric.split("@")[0]):
            return metrics.get(task, number.metric.split("@")[0]).interval
    raise ValueError(number.metric)


def table_of(study: Study, found: dict[Key, Found]) -> tuple[str, list[str]]:
    """The table of a study, and the default intervals in it that miss too often or too seldom."""
    defaults = {one.title: default_of(one) for one in study.numbers}
    rows, outside = [], []
    for (title, kind, size, method), one in found.items():
        count = f"{size // 2:,}" if study.counted.startswith("ground") else f"{size:,}"
        default = method == defaults[title]
        inside = WITHIN[0] <= one.coverage <= WITHIN[1]
        bias = f"{np.mean(one.biases):+.2f}" if one.biases else ""
        name = f"{method}, {kind}" if kind != WITH else method
        rows.append(
            [
                title,
                count,
                f"**{name}**" if default and kind == WITH else name,
                f"{one.coverage:.3f}" if inside else f"{one.coverage:.3f} !",
                f"{np.mean(one.widths):.3f}",
                bias,
                f"{one.missing}" if one.missing else "",
            ]
        )
        if default and kind == WITH and not inside:
            outside.append(f"{title} of {count} {study.counted} ({method}: {one.coverage:.3f})")
    header = ["", study.counted, "method", "coverage", "mean width", "mean bias in SE", "none"]
    lines = reporting.table(header, rows).splitlines()
    lines[1] = "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    return "\n".join(lines), outside


def page(studies: dict[str, dict[Key, Found]], n_sets: int, draws: int, seconds: float) -> str:
    """The section, as Markdown."""
    chance = math.sqrt(LEVEL * (1 - LEVEL) / n_sets)
    parts = [
        "## Coverage of intervals",
        f"How often nominal 95 % intervals hold the truth: {n_sets:,} random sets of each size,"
        f" {draws:,} draws a set, so that a coverage is known to about {chance:.3f}. In bold the"
        " method that the metric has unless another is asked for; `!` marks what is not within 0.93"
        " and 0.97. *Bias* is the mean of the draws less the number, in standard errors: of"
        " interpolated precision draws lie above it, which recentring takes away. *None* counts"
        " numbers without an interval.",
    ]
    outside: list[str] = []
    for name, found in studies.items():
        study = data.STUDIES[name]
        text, missed = table_of(study, found)
        parts += [f"### {name.capitalize()}", study.about, text]
        outside += missed
    said = "; ".join(outside) if outside else "none"
    m = measuring.machine()
    parts += [
        f"Defaults outside of 0.93 to 0.97: {said}.",
        f"{m['system']}, Python {m['python']}, {time.strftime('%Y-%m-%d')};"
        f" {seconds:.0f} s of CPU. Repeat with `python benchmarks/interval_coverage.py"
        f" {' '.join(sys.argv[1:])}`.",
    ]
    return "\n\n".join(parts)


def main() -> int:
    """Measure, print, and write the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("studies", nargs="*", metavar="STUDY", default=[])
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="30 sets of the smallest samples")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks.md")
    given = parser.parse_args()
    unknown = set(given.studies) - set(data.STUDIES)
    if unknown:
        parser.error(f"no study {', '.join(unknown)}; there are {', '.join(data.STUDIES)}")
    n_sets, draws = (30, 100) if given.quick else (given.sets, given.draws)
    studies = {}
    begun = time.process_time()
    for name in given.studies or data.STUDIES:
        study = data.STUDIES[name]
        sizes = study.sizes[:1] if given.quick else study.sizes
        started = time.process_time()
        studies[name] = measured(study, sizes, n_sets, draws)
        print(f"{name}: {time.process_time() - started:.0f} s", file=sys.stderr, flush=True)
    text = page(studies, n_sets, draws, time.process_time() - begun)
    print(text)
    if given.write_docs:
        reporting.write_docs("coverage", text, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
