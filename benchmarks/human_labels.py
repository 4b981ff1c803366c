"""Coverage of the intervals of a judge's metrics corrected by human labels.

    python benchmarks/human_labels.py [--sets 2000]

Prints a Markdown table for docs/benchmarks/intervals.md: sets of verdicts and labels from a known
truth, and how often each 95 % interval contains it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec
import numpy as np

from evalengine.schemas.arrays import Array
from evalengine.statistics.human import (
    Labelled,
    corrected,
    mean_of_labels,
    proportion,
    rogan_gladen,
    to_label,
)

TRUTH, SENSITIVITY, SPECIFICITY = 0.7, 0.92, 0.75
LABELS, RATIOS = (30, 50, 100, 200), (0.1, 1.0, 3.0)
CLUSTER = 20
RANGE = (0.0, 1.0)


def judged(truth: Array, rng: np.random.Generator) -> Array:
    """Return verdicts on rows that are truly positive or not."""
    chance = rng.random(truth.size)
    return np.where(truth, chance < SENSITIVITY, chance > SPECIFICITY).astype(float)


def independent(n: int, ratio: float, rng: np.random.Generator) -> Labelled:
    """Return n randomly labelled rows, and n / ratio unlabelled ones."""
    rows = n + round(n / ratio)
    truth = rng.random(rows) < TRUTH
    place = np.sort(rng.choice(rows, n, replace=False))
    return Labelled(judged(truth, rng), place, truth[place].astype(float))


def clustered(n: int, ratio: float, rng: np.random.Generator) -> Labelled:
    """Return such rows in clusters of 20, whose share of positives varies."""
    rows = n + round(n / ratio)
    cluster = np.arange(rows) // CLUSTER
    share = rng.beta(7, 3, cluster[-1] + 1)
    truth = rng.random(rows) < share[cluster]
    place = np.sort(rng.choice(rows, n, replace=False))
    return Labelled(judged(truth, rng), place, truth[place].astype(float), cluster=cluster)


def in_strata(n: int, ratio: float, rng: np.random.Generator) -> Labelled:
    """Return rows with half of the labels at random, the others those of ``to_label``."""
    import polars as pl

    rows = n + round(n / ratio)
    truth = (rng.random(rows) < TRUTH).astype(float)
    verdicts = judged(truth == 1, rng)
    place = np.sort(rng.choice(rows, n // 2, replace=False))
    first = Labelled(verdicts, place, truth[place])
    ids = pl.Series(np.arange(rows))
    frame = to_label(first, ids, n - n // 2, int(rng.integers(1 << 30)))
    assert frame is not None
    frame = frame.sort("datum_id")
    place, weight = (frame[name].to_numpy() for name in ("datum_id", "label_weight"))
    return Labelled(verdicts, place, truth[place], weight=weight)


DESIGNS = {"random rows": independent, "clusters": clustered, "rows of to_label": in_strata}


def estimates(data: Labelled) -> Iterator[tuple[str, float, float]]:
    """Yield names and bounds of the intervals."""
    data = msgspec.structs.replace(data, verdicts=True, binary=True)
    f = data.judged
    reach = 1.96 * np.sqrt(f.mean() * (1 - f.mean()) / f.size)
    yield "judge", f.mean() - reach, f.mean() + reach
    sensitivity = proportion(data, data.own == 1, data.label == 1)
    specificity = proportion(data, data.own == 0, data.label == 0)
    yield "labels", *mean_of_labels(data, RANGE)[1:3]
    yield "corrected", *corrected(data, RANGE)[1:3]
    if sensitivity.n and specificity.n:
        yield "rogan_gladen", *rogan_gladen(data, sensitivity, specificity)[1:3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2000)
    sets = parser.parse_args().sets
    names = ("judge", "labels", "corrected", "rogan_gladen")
    print(
        f"| design | labels | labels / others | {' | '.join(names)} | width, labels | corrected |"
    )
    print(f"| --- | ---: | ---: |{' ---: |' * (len(names) + 2)}")
    for title, design in DESIGNS.items():
        for n in LABELS:
            for ratio in RATIOS:
                rng = np.random.default_rng([n, round(10 * ratio)])
                bounds: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
                for _ in range(sets):
                    for name, low, high in estimates(design(n, ratio, rng)):
                        if not np.isnan(low):
                            bounds[name].append((low, high))
                cells, widths = [], {}
                for name in names:
                    ends = np.array(bounds[name]).reshape(-1, 2)
                    if len(ends) < sets / 20:
                        cells.append("none")
                        continue
                    hit = ((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)).mean()
                    few = f" ({len(ends) / sets:.0%})" if len(ends) < sets else ""
                    cells.append(f"{hit:.3f}{few}")
                    widths[name] = f"{np.diff(ends).mean():.3f}"
                wide = " | ".join(widths.get(name, "") for name in ("labels", "corrected"))
                print(f"| {title} | {n} | {ratio:g} | {' | '.join(cells)} | {wide} |")


if __name__ == "__main__":
    main()
