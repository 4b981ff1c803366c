"""False alarms of gates that are evaluated every night, and the night of their first pass.

    python benchmarks/nightly_alarms.py [--sets N] [--nights N] [--cells NAME ...] [--write-docs]

Set i of a cell depends only on i. A set is a job of many nights. A false alarm is a night on which
a gate at the true value passes (lower bound above it), or its opposite does. ``surely`` is the
exact interval of one night, ``always`` the confidence sequence up to it.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import reporting

Array = np.ndarray[Any, Any]
LEVEL = 0.95
MARGIN = 0.02
DATUMS = 200
"""Datums of a night."""


def shares(rng: np.random.Generator, nights: int, share: float, spread: float = 0.0) -> Array:
    """Return right or wrong datums, 0 or 1, whose share may vary between nights."""
    level = share + spread * rng.choice([-1.0, 1.0], nights)
    return (rng.random((nights, DATUMS)) < level[:, None]).astype(float)


def judged(rng: np.random.Generator, nights: int) -> Array:
    """Return scores of a judge, a third of them 1."""
    scores = rng.beta(4, 2, (nights, DATUMS))
    return np.where(rng.random(scores.shape) < 1 / 3, 1.0, scores)


def f1(rng: np.random.Generator, nights: int) -> Array:
    """Return F1 of a label with 40 positives, found in 70 %, and falsely in 5 % of the others."""
    hits, strays = rng.binomial(40, 0.7, nights), rng.binomial(160, 0.05, nights)
    return 2 * hits / (40 + hits + strays)


def area(rng: np.random.Generator, nights: int) -> Array:
    """Return the area under a ROC curve of 20 positives and 180 negatives, near 0.95."""
    negative, positive = rng.normal(0, 1, (nights, 180)), rng.normal(2.326, 1, (nights, 20))
    return np.asarray((positive[:, :, None] > negative[:, None]).mean(axis=(1, 2)))


def outages(rng: np.random.Generator, nights: int) -> Array:
    """Return a value near 0.85, but 0.3 in every fiftieth night."""
    return np.where(rng.random(nights) < 0.02, 0.3, rng.normal(0.85, 0.01, nights))


CELLS: dict[str, tuple[str, Callable[[np.random.Generator, int], Array]]] = {
    "accuracy 0.8": ("datums", lambda rng, n: shares(rng, n, 0.8)),
    "accuracy 0.98": ("datums", lambda rng, n: shares(rng, n, 0.98)),
    "judged scores": ("datums", judged),
    "accuracy 0.75 or 0.85 by night": ("datums", lambda rng, n: shares(rng, n, 0.8, 0.05)),
    "the same, with clusters": ("nights", lambda rng, n: shares(rng, n, 0.8, 0.05).mean(axis=1)),
    "F1": ("nights", f1),
    "ROC AUC 0.95": ("nights", area),
    "MAE, skewed by night": ("nights", lambda rng, n: rng.gamma(4, 0.25, n)),
    "outage every 50 nights": ("nights", outages),
}


def measured(cell: str, sets: int, nights: int) -> dict[str, float]:
    """Return shares of sets with a false alarm, and the median night of a true pass."""
    from evalengine.statistics.intervals import clopper_pearson
    from evalengine.statistics.sequences import Night, counted, look

    of, make = CELLS[cell]
    seed = zlib.crc32(cell.encode())
    truth = float(make(np.random.default_rng([seed, 0, 0]), 40_000).mean())
    high, low, surely, first = [], [], [], []
    for i in range(sets):
        values = make(np.random.default_rng([seed, 1, i]), nights)
        kept: list[Night] = []
        above, below, passed = False, False, np.inf
        for night, value in enumerate(values, 1):
            counts = counted(value, (0.0, 1.0)) if of == "datums" else None
            kept.append(Night(float(np.mean(value)), counts))
            alarms = look(kept, LEVEL)
            if alarms.bounds is not None:
                above |= alarms.bounds[0] > truth
                below |= alarms.bounds[1] < truth
                if alarms.bounds[0] > truth - MARGIN:
                    passed = min(passed, night)
        high.append(above)
        low.append(below)
        first.append(passed)
        if of == "datums" and cell != "judged scores":
            bounds = [clopper_pearson(float(value.mean()), value.size, LEVEL) for value in values]
            surely.append(any(end[0] > truth for end in bounds))
    return {
        "high": float(np.mean(high)),
        "low": float(np.mean(low)),
        "surely": float(np.mean(surely)) if surely else np.nan,
        "first": float(np.median(first)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--cells", nargs="*", default=[*CELLS], choices=[*CELLS])
    parser.add_argument("--write-docs", action="store_true")
    given = parser.parse_args()
    begin, rows = time.perf_counter(), []
    for cell in given.cells:
        one = measured(cell, given.sets, given.nights)
        surely = "" if np.isnan(one["surely"]) else f"{one['surely']:.3f}"
        first = f"{one['first']:.0f}" if np.isfinite(one["first"]) else f"> {given.nights}"
        figures = f"{one['high']:.3f}", f"{one['low']:.3f}", surely, first
        rows.append([cell, CELLS[cell][0], *figures])
        print(f"{cell}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    header = ["number", "sequence over", "low end too high", "high end too low"]
    table = reporting.table([*header, "`surely`, low end", f"nights to truth - {MARGIN}"], rows)
    print(table)
    if given.write_docs:
        reporting.write_docs("nightly-alarms", table, Path(reporting.PAGES).parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
