"""Values of random tables of many tasks, compared bit by bit with a file, on every platform.

Metrics with logarithms, exponentials or matrix products are excluded: their last bits depend on the
C library and on BLAS. ``python tests/test_known_bits.py`` writes the file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalengine as ee

FILE = Path(__file__).with_name("known_bits.json")
FRAMES = ("metrics", "per_datum")
Draw = Callable[[random.Random], tuple[list[pl.DataFrame], dict[str, Any]]]


def _boxes(draw: random.Random, n: int = 40) -> list[pl.DataFrame]:
    truths: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for datum in range(n):
        for _ in range(draw.randrange(1, 6)):
            x, y, w, h = (100 * draw.random() + 1 for _ in range(4))
            row = {"datum_id": datum, "label_value": draw.choice("abc")}
            truths.append({**row, "xmin": x, "ymin": y, "xmax": x + w, "ymax": y + h})
            for _ in range(draw.randrange(3)):
                dx, dy = 20 * draw.random(), 20 * draw.random()
                found.append(
                    {**row, "score": draw.random(), "xmin": x + dx, "ymin": y + dy}
                    | {"xmax": x + dx + w, "ymax": y + dy + h}
                )
    return [pl.DataFrame(found), pl.DataFrame(truths)]


def detection(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    return _boxes(draw), {"dialect": "coco"}


def detection_slices(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    names = ["AP", "mAP", "AR"]
    sides = [one.with_columns(slice=pl.col("datum_id") % 3) for one in _boxes(draw)]
    return sides, {"metrics": names, "by": ["slice"]}


def classification(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    labels = ["a", "b", "c", "d"]
    rows = [
        {"datum_id": datum, "label_value": label, "score": draw.random()}
        for datum in range(150)
        for label in labels
    ]
    truths = [
        {"datum_id": datum, "label_value": draw.choice(labels), "weight": draw.random()}
        for datum in range(150)
    ]
    names = ["Accuracy", "Precision", "Recall", "F1", "ROCAUC", "AveragePrecision", "Brier"]
    return [pl.DataFrame(rows), pl.DataFrame(truths)], {"metrics": names}


def regression(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    rows = [
        {"datum_id": i, "prediction": 9 * draw.random(), "target": 9 * draw.random()}
        | {"weight": draw.random(), "group": i % 4}
        for i in range(300)
    ]
    names = ["MAE", "RMSE", "R2", "MedianAE", "MeanError"]
    return [pl.DataFrame(rows)], {"task": "regression", "metrics": names, "by": ["group"]}


def retrieval(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    run, judged = [], []
    for query in range(20):
        for doc in range(30):
            run.append({"query_id": query, "doc_id": doc, "score": draw.random()})
            if draw.random() < 0.2:
                judged.append({"query_id": query, "doc_id": doc, "relevance": 1})
    names = ["MAP", "MRR", "P@5", "Recall@10", "RPrecision"]
    return [pl.DataFrame(run), pl.DataFrame(judged)], {"metrics": names}


def text(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    def words() -> str:
        return " ".join(draw.choice("abcdefgh") for _ in range(draw.randrange(3, 15)))

    rows = [{"datum_id": i, "text": words(), "reference": words()} for i in range(15)]
    return [pl.DataFrame(rows)], {"metrics": ["ROUGE1", "ROUGE2", "ROUGEL", "TER", "chrF"]}


def values(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    rows = [
        {"datum_id": i, "metric": draw.choice(["x", "y"]), "value": draw.random(), "g": i % 5}
        for i in range(200)
    ]
    return [pl.DataFrame(rows)], {"task": "values", "by": ["g"]}


def spans(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    truths, found = [], []
    for datum in range(60):
        for i in range(draw.randrange(1, 4)):
            start = 20 * i + draw.randrange(8)
            row = {"datum_id": datum, "label_value": draw.choice("abc"), "start": start}
            truths.append({**row, "end": start + draw.randrange(2, 9)})
            found.append({**truths[-1], "start": start - draw.randrange(2), "score": draw.random()})
    return [pl.DataFrame(found), pl.DataFrame(truths)], {"task": "spans"}


def segmentation(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    def side() -> pl.DataFrame:
        maps = [[[draw.randrange(4) for _ in range(12)] for _ in range(9)] for _ in range(10)]
        return pl.DataFrame({"datum_id": range(10), "raster": maps})

    return [side(), side()], {"task": "segmentation"}


def tracking(draw: random.Random) -> tuple[list[pl.DataFrame], dict[str, Any]]:
    truths, found = [], []
    for frame in range(40):
        for one in range(4):
            x, y = 50 * one + 9 * draw.random(), 9 * draw.random()
            row = {"sequence": "s", "frame": frame, "xmin": x, "ymin": y}
            truths.append({**row, "xmax": x + 30, "ymax": y + 40, "object_id": one})
            if draw.random() < 0.9:
                dx = 12 * draw.random()
                track = one + 4 * (draw.random() < 0.1)
                found.append({**row, "xmax": x + 30 + dx, "ymax": y + 40, "track_id": track})
    names = ["MOTA", "MOTP", "IDF1", "IDP", "IDR", "DetA", "LocA"]
    return [pl.DataFrame(found), pl.DataFrame(truths)], {"task": "tracking", "metrics": names}


CASES: dict[str, Draw] = {
    one.__name__: one
    for one in (
        detection,
        detection_slices,
        classification,
        regression,
        retrieval,
        text,
        values,
        spans,
        segmentation,
        tracking,
    )
}


def bits(name: str, **how: Any) -> list[str]:
    """Return the values of a case as hexadecimal floats, in the order of the frames."""
    sides, options = CASES[name](random.Random(name))
    card = ee.score(*sides, **options, **how)
    found = [card.frame(frame)["value"] for frame in FRAMES if frame in card.frames]
    return [float(one).hex() for one in pl.concat(found).drop_nulls()]


@pytest.mark.parametrize("name", CASES)
def test_values_equal_the_file_to_the_bit(name: str) -> None:
    assert bits(name) == json.loads(FILE.read_text())[name].split()


def test_the_file_has_enough_numbers() -> None:
    stored = json.loads(FILE.read_text())
    assert {*stored} == {*CASES}
    assert len(" ".join(stored.values()).split()) >= 500


if __name__ == "__main__":
    known = {name: " ".join(bits(name)) for name in CASES}
    FILE.write_text(json.dumps(known, indent=1) + "\n")
