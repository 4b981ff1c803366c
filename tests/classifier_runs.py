"""Classifier runs with planted mistakes, so that the result of a comparison is known."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

N = 400
BASE = frozenset(range(0, N, 10))
"""Datums that the baseline gets wrong: its accuracy is 0.9."""
WRONG = {
    "base": BASE,
    "same": BASE,
    # Three more in a hundred: too many for chance.
    "unlucky": (BASE - {0, 10, 20}) | {1, 51, 101, 151, 201, 251},
    "worse": BASE | set(range(1, N, 5)),
    "better": frozenset(range(0, N, 40)),
}


def write(folder: Path, name: str, wrong: Collection[int], ids: Collection[int] = range(N)) -> Path:
    """Write tables of predictions and ground truths, and return the path of the predictions."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = ["a" if i % 2 else "b" for i in ids]
    other = {"a": "b", "b": "a"}
    shared = {"datum_id": list(ids), "kind": ["x" if i % 3 else "y" for i in ids]}
    text = [other[label] if i in wrong else label for i, label in zip(ids, truth, strict=True)]
    pl.DataFrame({**shared, "label_value": text, "score": [1.0] * len(truth)}).write_parquet(
        folder / f"{name}.parquet"
    )
    pl.DataFrame({**shared, "label_value": truth}).write_parquet(folder / "truths.parquet")
    return folder / f"{name}.parquet"


def write_all(folder: Path) -> Path:
    """Write every planted run with its ground truths."""
    for name, wrong in WRONG.items():
        write(folder, name, wrong)
    return folder
