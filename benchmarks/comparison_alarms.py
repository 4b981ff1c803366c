"""False alarms and power of ``compare``: equally good runs, and runs that differ.

    python benchmarks/comparison_alarms.py [CASE ...] [--sets N] [--draws N] [--quick]
        [--workers N] [--write-docs]

Every set has its own ground truths and two runs over them. A test at 5 % finds 5 % of equal runs
different. Among other runs it finds as many as the smallest detectable difference predicts: at that
difference, four in five sets.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import NormalDist
from typing import Any

import interval_coverage_data as data
import measuring
import numpy as np
import polars as pl
import reporting

Array = np.ndarray[Any, Any]
Tables = tuple[pl.DataFrame, ...]
LEVEL = 0.05
ALARMS = 0.03, 0.07
NORMAL = NormalDist()
MANY = 20_000  # datums from which true differences are computed


@dataclass(frozen=True)
class Case:
    """Pairs of runs.

    Attributes:
        title: heading on the page.
        metric: metric of the comparison.
        counted: unit of ``size``.
        size: datums (or videos) of a set.
        make: function of generator, size and gain of the second run; returns both runs, and ground
            truths if those are a separate table.
        gain: gain of the second run in unequal pairs.
        options: options of every comparison.
    """

    title: str
    metric: str
    counted: str
    size: int
    make: Callable[[np.random.Generator, int, float], Tables]
    gain: float
    options: dict[str, Any] = field(default_factory=dict)


def answered(rng: np.random.Generator, n: int, gain: float) -> Tables:
    """Return datums, some of which are hard for both runs."""
    chance = rng.beta(4, 1, n)
    actual = rng.integers(0, 2, n)
    return tuple(_labels(rng, actual, one) for one in (chance, chance + gain * (1 - chance)))


def _labels(rng: np.random.Generator, actual: Array, chance: Array, **more: Any) -> pl.DataFrame:
    predicted = np.where(rng.random(actual.size) < chance, actual, 1 - actual)
    ids = np.arange(actual.size)
    return pl.DataFrame({"datum_id": ids, "actual": actual, "predicted": predicted, **more})


def filmed(rng: np.random.Generator, n: int, gain: float) -> Tables:
    """Return frames of n videos; each run is good at some of them."""
    video = np.repeat(np.arange(n), data.FRAMES)
    actual = rng.integers(0, 2, video.size)
    skill = 1.5 + rng.normal(size=n) + 0.7 * rng.normal(size=(2, n))
    skill[1] += gain
    chances = 1 / (1 + np.exp(-skill[:, video]))
    return tuple(_labels(rng, actual, chance, video=video) for chance in chances)


def searched(rng: np.random.Generator, n: int, gain: float) -> Tables:
    """Return queries of fifteen documents, ranked by relevance and noise."""
    relevance = (rng.random((n, data.DEPTH)) < rng.beta(1.5, 4, (n, 1))).astype(np.int64)
    relevance[:, 0] = 1
    pairs = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(n), data.DEPTH),
            "doc_id": np.tile(np.arange(data.DEPTH), n),
        }
    )
    runs = [
        pairs.with_columns(
            score=pl.Series((better * relevance + rng.normal(size=relevance.shape)).ravel())
        )
        for better in (1.0, 1.0 + gain)
    ]
    return *runs, pairs.with_columns(relevance=pl.Series(relevance.ravel()))


def spoken(rng: np.random.Generator, n: int, gain: float) -> Tables:
    """Return references, and texts of two systems with replaced words, more in hard ones."""
    length = rng.integers(6, 31, n)
    reference = rng.zipf(1.3, length.sum()) % 200
    hard = np.repeat(rng.random(n) * 0.6, length)
    said = [
        np.where(
            rng.random(reference.size) < hard * share,
            rng.zipf(1.3, reference.size) % 200,
            reference,
        )
        for share in (1.0, 1.0 - gain)
    ]
    cuts = length.cumsum()[:-1]
    references, *texts = (
        [" ".join(map(str, words)) for words in np.split(one, cuts)] for one in (reference, *said)
    )
    return tuple(
        pl.DataFrame({"datum_id": range(n), "text": text, "reference": references})
        for text in texts
    )


CASES: dict[str, Case] = {
    "answers": Case("accuracy", "Accuracy", "datums", 300, answered, 0.3),
    "videos": Case(
        "accuracy of frames, cluster=video", "Accuracy", "videos of 20 frames", 40, filmed, 0.5,
        {"cluster": "video"},
    ),
    "frames": Case(
        "accuracy of frames, without cluster=", "Accuracy", "videos of 20 frames", 40, filmed, 0.5
    ),
    "queries": Case("nDCG@10", "nDCG@10", "queries", 150, searched, 0.35),
    "texts": Case("BLEU", "CorpusBLEU", "texts", 150, spoken, 0.12),
    "boxes": Case(
        "mAP over IoU, five classes",
        "mAPAveragedOverIOUs",
        "images",
        150,
        lambda rng, n, gain: data.scene(rng, n, (0.0, gain)),
        0.5,
        {"labels": range(data.CLASSES)},
    ),
}  # fmt: skip


@dataclass
class Alarms:
    """Results of the comparisons of one case.

    Attributes:
        alarms: share of equal runs with a significant difference.
        covered: share of intervals of the difference of equal runs that contain 0.
        detectable: mean of the smallest detectable difference.
        difference: true difference of the other runs, from many datums.
        significant: share of the other runs with a significant difference.
        promised: share that the detectable difference predicts.
    """

    alarms: float
    covered: float
    detectable: float
    difference: float
    significant: float

    @property
    def promised(self) -> float:
        z = NORMAL.inv_cdf(1 - LEVEL / 2)
        shift = self.difference / self.detectable * (z + NORMAL.inv_cdf(0.8))
        return NORMAL.cdf(shift - z) + NORMAL.cdf(-shift - z)


def compared(case: Case, tables: Tables, **options: Any) -> dict[str, Any]:
    """Return the row of a comparison."""
    import evalengine as ee

    truths: dict[str, Any] = {"ground_truths": tables[2]} if len(tables) > 2 else {}
    if case.counted == "images":  # some have no box in any table
        truths["datums"] = pl.DataFrame({"datum_id": range(case.size)})
    given = {**case.options, **options, **truths, "metrics": case.metric, "threads": 1}
    (row,) = ee.compare(*tables[:2], **given).differences.iter_rows(named=True)
    return row


def true_difference(case: Case) -> float:
    """Compute the difference over very many datums, which are the population."""
    import evalengine as ee

    tables = case.make(np.random.default_rng(data.MAKING), MANY, case.gain)
    kept = {name: value for name, value in case.options.items() if name == "labels"}
    values = [
        ee.score(run, *tables[2:], metrics=case.metric, **kept).metrics["value"][0]
        for run in tables[:2]
    ]
    return float(values[1] - values[0])


def measured(case: Case, n_sets: int, draws: int) -> Alarms:
    """Measure equal runs and unequal ones."""
    rows: dict[float, list[dict[str, Any]]] = {0.0: [], case.gain: []}
    for i in range(n_sets):
        for gain, results in rows.items():
            tables = case.make(np.random.default_rng((i, int(gain > 0))), case.size, gain)
            results.append(compared(case, tables, draws=draws, seed=i))
    equal, different = (pl.DataFrame(results) for results in rows.values())
    return Alarms(
        alarms=float((equal["p"] <= LEVEL).mean()),
        covered=float(((equal["lower"] <= 0) & (equal["upper"] >= 0)).mean()),
        detectable=float(different["detectable"].mean()),
        difference=true_difference(case),
        significant=float((different["p"] <= LEVEL).mean()),
    )


def page(results: dict[str, Alarms], n_sets: int, draws: int, seconds: float) -> str:
    """Format the section as Markdown."""
    rows = []
    for name, one in results.items():
        case = CASES[name]
        inside = ALARMS[0] <= one.alarms <= ALARMS[1]
        rows.append(
            [
                case.title,
                f"{case.size} {case.counted}",
                f"{one.alarms:.3f}" + ("" if inside else " !"),
                f"{one.covered:.3f}",
                f"{one.detectable:.3f}",
                f"{one.difference:.3f}",
                f"{one.significant:.3f}",
                f"{one.promised:.3f}",
            ]
        )
    header = ["", "of", "false alarms", "0 inside", "detectable", "difference", "distinguished",
              "promised"]  # fmt: skip
    chances = [math.sqrt(p * (1 - p) / n_sets) for p in (LEVEL, 0.8)]
    m = measuring.machine()
    return "\n\n".join(
        [
            "## False alarms and power of comparisons",
            f"{n_sets:,} random pairs of equally good runs, and as many with a better second run;"
            f" {draws:,} resamples. *False alarms*: equal runs with p of at most 0.05, known to"
            f" {chances[0]:.3f}; `!` marks a share outside of 0.03 to 0.07. *0 inside*: 95 %"
            " intervals of their difference that contain 0. *Distinguished*: the better runs with p"
            f" of at most 0.05, known to {chances[1]:.3f}. *Promised*: the mean share predicted by"
            " the smallest detectable difference, for the true *difference* of"
            f" {MANY:,} datums. With few clusters, swaps find slightly less than that, because"
            " their spread includes the difference.",
            reporting.table(header, rows),
            f"{m['system']}, Python {m['python']}, {time.strftime('%Y-%m-%d')}; {seconds:.0f} s of"
            f" CPU. Repeat with `python benchmarks/comparison_alarms.py {' '.join(sys.argv[1:])}`.",
        ]
    )


def case_of(name: str, n_sets: int, draws: int) -> tuple[Alarms, float]:
    """Return the results of a case, and the CPU seconds spent."""
    begun = time.process_time()
    result = measured(CASES[name], n_sets, draws)
    seconds = time.process_time() - begun
    print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return result, seconds


def main() -> int:
    """Measure, print, and write the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=[])
    parser.add_argument("--sets", type=int, default=800)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2, help="cases at once")
    parser.add_argument("--quick", action="store_true", help="20 sets")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks/")
    given = parser.parse_args()
    unknown = set(given.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    names = given.cases or list(CASES)
    n_sets = 20 if given.quick else given.sets
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        tasks = [pool.submit(case_of, name, n_sets, given.draws) for name in names]
        made = dict(zip(names, (task.result() for task in tasks), strict=True))
    seconds = sum(seconds for _, seconds in made.values())
    text = page({name: one for name, (one, _) in made.items()}, n_sets, given.draws, seconds)
    print(text)
    if given.write_docs:
        reporting.write_docs("comparisons", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
