"""Random batches in every form that a training loop may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

Rng = np.random.Generator


class Run(NamedTuple):
    """Both sides of all datums, with the arguments of ``score``.

    Attributes:
        sides: predictions and ground truths; or one table.
        cut: sides, first and last datum -> that range of them.
        n: number of datums.
        options: options of the collector and of ``score``.
        given: ``labels`` and the like.
        own: whether datums have ids.
    """

    sides: tuple[Any, ...]
    cut: Callable[[Any, int, int], Any]
    n: int
    options: dict[str, Any]
    given: Mapping[str, Any] = MappingProxyType({})
    own: bool = False


class Tensor:
    """Tensor-like object on a device and with a gradient."""

    def __init__(self, values: Any, where: str = "cuda") -> None:
        self.values, self.where = np.asarray(values), where
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Tensor:
        return Tensor(self.values[at], self.where)

    def detach(self) -> Tensor:
        return Tensor(self.values, "attached to nothing")

    def cpu(self) -> Tensor:
        assert self.where == "attached to nothing"
        return Tensor(self.values, "cpu")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.where != "cpu":
            raise RuntimeError("take it off the graph and its device first")
        return self.values


def _slice(side: Any, first: int, last: int) -> Any:
    return side[first:last]


def _of_datums(side: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    key = next(name for name in ("datum_id", "query_id") if name in side.columns)
    return side.filter(pl.col(key).is_between(first, last, closed="left"))


def images(rng: Rng, *, masks: bool = False, tensors: bool = False) -> Run:
    """Return lists of dicts: crowds, empty images, ties."""
    n, labels = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    wrap = Tensor if tensors else np.asarray
    predictions, truth = [], []
    for _ in range(n):
        a, b = rng.integers(0, 6, 2) * (rng.random(2) < 0.8)
        sides = []
        for count in (a, b):
            corner = rng.integers(0, 12, (count, 2))
            boxes = np.c_[corner, corner + rng.integers(1, 14, (count, 2))].astype(float)
            one = {"boxes": wrap(boxes), "labels": wrap(rng.integers(0, labels, count))}
            if masks:
                pixels = np.zeros((count, 26, 26), bool)
                for mask, (x, y, right, low) in zip(pixels, boxes.astype(int), strict=True):
                    mask[y:low, x:right:2] = True
                one["masks"] = wrap(pixels)
            sides.append(one)
        scores = rng.integers(1, 6, a) / 8
        sides[0]["scores"] = wrap(scores.astype(np.float32))
        predictions.append(sides[0])
        truth.append(sides[1])
    return Run((predictions, truth), _slice, n, {"task": "detection", "dialect": "coco"})


def classes(rng: Rng) -> Run:
    n, labels = int(rng.integers(1, 30)), int(rng.integers(1, 5))
    names = [f"c{i}" for i in range(labels)]
    truth = rng.integers(0, labels, n)
    form = rng.integers(0, 4)
    if form == 0:
        scores = rng.integers(1, 9, (n, labels)) / 8
        given = {"labels": names} if rng.random() < 0.5 else {"labels": range(labels)}
        return Run((Tensor(scores), truth), _slice, n, {"task": "classification"}, given)
    if form == 1:
        scores = rng.integers(0, 9, n) / 8
        return Run((scores, (truth % 2).tolist()), _slice, n, {"task": "classification"})
    if form == 2:
        sides = [[names[i] for i in rng.integers(0, labels, n)], [names[i] for i in truth]]
        return Run(tuple(sides), _slice, n, {"task": "classification"})
    table = pl.DataFrame({"actual": truth, "predicted": rng.integers(0, labels, n),
                          "weight": rng.integers(1, 5, n) / 2})  # fmt: skip
    return Run((table,), _slice, n, {"task": "classification"}, own=True)


def maps(rng: Rng) -> Run:
    n = int(rng.integers(1, 6))
    sides: tuple[list[Any], ...] = ([], [])
    for _ in range(n):
        shape = tuple(rng.integers(1, 7, 2))
        kind = rng.choice(["u1", "i8", "u2"])
        for side in sides:
            side.append(rng.integers(0, 3, shape).astype(kind))
    options = {"task": "segmentation", "ignore_index": 2} if rng.random() < 0.3 else {}
    return Run(sides, _slice, n, options)


def texts(rng: Rng) -> Run:
    n = int(rng.integers(1, 12))
    words = np.array(["the", "cat", "sat", "on", "a", "mat"])
    predictions, truth = (
        [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(n)] for _ in range(2)
    )
    several = [[one, "a cat"] for one in truth] if rng.random() < 0.5 else truth
    return Run((predictions, several), _slice, n, {"task": "text"})


def rankings(rng: Rng) -> Run:
    n = int(rng.integers(2, 12))
    rows = n * int(rng.integers(1, 6))
    tables = []
    for column, numbers in (("score", rng.integers(0, 5, rows) / 4),
                            ("relevance", rng.integers(0, 3, rows))):  # fmt: skip
        ids = {"query_id": rng.integers(0, n, rows), "doc_id": rng.integers(0, 9, rows)}
        ids["query_id"][0] = 0
        table = pl.DataFrame({**ids, column: numbers})
        tables.append(table.unique(["query_id", "doc_id"], keep="first", maintain_order=True))
    return Run(tuple(tables), _of_datums, n, {"task": "retrieval"}, own=True)


FORMS: dict[str, Callable[[Rng], Run]] = {
    "images": images,
    "tensors": lambda rng: images(rng, tensors=True),
    "masks": lambda rng: images(rng, masks=True),
    "classes": classes,
    "maps": maps,
    "texts": texts,
    "rankings": rankings,
}
