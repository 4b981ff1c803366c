"""Fixtures of saved results, as written by the installed version of evalengine.

Commit c6d5482c wrote ``c6d5482c.zip``, next to this file, with this script. The archive is never
written again; a later version adds another one. Usage: ``python make.py FOLDER``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import evalengine as ee

DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")

PARTS_JOB = """
name = "boxes"
by = ["weather"]
metrics = ["AP", "mAP", "AR"]
gates = ["mAP[iou=0.5] >= 0.2"]

[inputs]
predictions = "tables/date={date}/predictions.parquet"
ground_truths = "tables/date={date}/truths.parquet"
partition = "date"

[outputs]
folder = "run"
history = "history"
"""

NIGHTS_JOB = """
name = "labels"
baseline = "last"
metrics = ["Accuracy", "F1", "ROCAUC"]
gates = ["Accuracy >= baseline - 0.2 surely", "F1[average=macro] >= 0.3"]

[variables]
date = "2026-11-19"

[inputs]
predictions = "tables/{date}.predictions.parquet"
ground_truths = "tables/truths.parquet"

[outputs]
folder = "runs/{date}"
history = "history"
"""


def labels(seed: int, right: float, n: int = 80) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return scores of three labels, with the same truths for every seed."""
    truth = np.random.default_rng(0).integers(0, 3, n)
    rng = np.random.default_rng(seed)
    best = np.where(rng.random(n) < right, truth, rng.integers(0, 3, n))
    scores = rng.integers(1, 40, (n, 3)).astype(float)
    scores[np.arange(n), best] += 40
    scores = (scores / scores.sum(1, keepdims=True)).round(3)
    names = np.array(["cat", "dog", "owl"])
    ids = np.repeat(np.arange(n), 3)
    predictions = pl.DataFrame(
        {"datum_id": ids, "label_value": np.tile(names, n), "score": scores.reshape(-1)}
    )
    truths = pl.DataFrame(
        {
            "datum_id": np.arange(n),
            "label_value": names[truth],
            "site": np.array(["north", "south"])[np.arange(n) % 2],
        }
    )
    return predictions, truths


def boxes(seed: int, miss: float, first: int = 0, n: int = 24) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return boxes near the true ones; some are missed, some match no object."""
    place = np.random.default_rng(first)
    datum = np.repeat(np.arange(first, first + n), 3)
    size = place.integers(8, 120, datum.size).astype(float)
    xmin = place.integers(0, 200, datum.size).astype(float)
    truths = pl.DataFrame(
        {
            "datum_id": datum,
            "label_value": place.choice(["car", "bus"], datum.size),
            "weather": np.where(datum % 3 == 0, "rain", "sun"),
            "xmin": xmin,
            "ymin": 10.0,
            "xmax": xmin + size,
            "ymax": 10.0 + size,
        }
    )
    rng = np.random.default_rng(seed)
    shift = pl.Series(rng.normal(0, 4, datum.size).round(1))
    there = pl.Series(rng.random(datum.size) >= miss)
    predictions = truths.with_columns(
        pl.col("xmin", "xmax") + shift,
        label_value=pl.when(pl.Series(rng.random(datum.size) < 0.1))
        .then(pl.lit("bus"))
        .otherwise("label_value"),
        score=pl.Series(rng.random(datum.size).round(3)),
    ).filter(there)
    return predictions, truths


def tracks(seed: int, lost: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return objects that move to the right, with tracks that miss frames and swap ids."""
    rng = np.random.default_rng(seed)
    rows = [(s, f, o) for s in ("a", "b") for f in range(12) for o in range(4)]
    sequence, frame, thing = (np.array(one) for one in zip(*rows, strict=True))
    x = thing * 40.0 + frame * 3.0
    truths = pl.DataFrame(
        {
            "sequence": sequence,
            "frame": frame,
            "object_id": thing,
            "label_value": "person",
            "xmin": x,
            "ymin": 0.0,
            "xmax": x + 20,
            "ymax": 40.0,
        }
    )
    swapped = np.where((frame > 6) & (thing < 2) & (sequence == "a"), 1 - thing, thing)
    shift = pl.Series(rng.normal(0, 2, frame.size).round(1))
    predictions = (
        truths.rename({"object_id": "track_id"})
        .with_columns(
            pl.col("xmin", "xmax") + shift,
            track_id=pl.Series(swapped),
            score=pl.Series(rng.random(frame.size).round(3)),
        )
        .filter(pl.Series(rng.random(frame.size) >= lost))
    )
    return predictions, truths


RUNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "classification": (
        lambda seed: labels(seed, 0.5 + seed / 10),
        {"by": "site", "metrics": ["Accuracy", "F1", "ROCAUC", "mROCAUC", "ConfusionMatrix"]},
    ),
    "detection": (
        lambda seed: boxes(seed, 0.4 / seed),
        {
            "by": "weather",
            "metrics": ["AP", "mAP", "AR", "Counts", "F1", "Outcomes"],
            "iou_thresholds": [0.5, 0.75],
            "score_thresholds": [0.5],
        },
    ),
    "tracking": (lambda seed: tracks(seed, 0.3 / seed), {}),
}
"""Task -> function that makes the tables of a seed, and the options."""


def write_night(folder: Path, place: int) -> None:
    """Write the tables of one night for both jobs."""
    day = DAYS[place]
    target = folder / "parts" / "tables" / f"date={day}"
    target.mkdir(parents=True)
    for name, table in zip(("predictions", "truths"), boxes(place, 0.2, 100 * place), strict=True):
        table.write_parquet(target / f"{name}.parquet")
    tables = folder / "nights" / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    predictions, truths = labels(10 + place, 0.6)
    predictions.write_parquet(tables / f"{day}.predictions.parquet")
    if place == 0:
        truths.write_parquet(tables / "truths.parquet")


def run_night(folder: Path, place: int) -> dict[str, Any]:
    """Run both jobs and return the values and gates of each."""
    parts = ee.run_job(folder / "parts" / "job.toml")
    nights = ee.run_job(folder / "nights" / "job.toml", variables={"date": DAYS[place]})
    return {
        "parts": [numbers(parts.card.metrics), parts.card.run["parts"]],
        "nights": [
            numbers(nights.card.metrics),
            [[one.gate, one.status, one.value, one.lower, one.upper] for one in nights.verdicts],
        ],
    }


def numbers(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return rows of metrics or differences without null columns."""
    rows = frame.to_dicts()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def main(folder: Path) -> None:
    """Write tables, runs, jobs, a comparison, thresholds, and the values of all of them."""
    folder.mkdir()
    expected: dict[str, Any] = {}
    for task, (tables, options) in RUNS.items():
        cards = []
        for seed, name in ((1, "first"), (2, "second")):
            predictions, truths = tables(seed)
            (folder / "tables").mkdir(exist_ok=True)
            predictions.write_parquet(folder / "tables" / f"{task}.{name}.parquet")
            truths.write_parquet(folder / "tables" / f"{task}.truths.parquet")
        os.chdir(folder)
        for name in ("first", "second"):
            sides = f"tables/{task}.{name}.parquet", f"tables/{task}.truths.parquet"
            cards.append(ee.score(*sides, task=task, **options))
        cards[0].save(folder / "runs" / task)
        expected[task] = [numbers(card.metrics) for card in cards]
        compared = ee.compare(*cards, draws=200)
        expected[f"compare {task}"] = numbers(compared.differences)
        if task == "classification":
            compared.save(folder / "comparison")
        if task == "detection":
            result = ee.find_thresholds(cards[0], metrics=["ThresholdAtMaxF"], draws=20)
            result.save(folder / "thresholds.json")
            kept = ee.score(
                "tables/detection.second.parquet",
                "tables/detection.truths.parquet",
                thresholds=folder / "thresholds.json",
                **options,
            )
            expected["thresholds"] = numbers(kept.metrics)
    for job, text in (("parts", PARTS_JOB), ("nights", NIGHTS_JOB)):
        (folder / job).mkdir()
        (folder / job / "job.toml").write_text(text)
    for place in range(2):
        write_night(folder, place)
        run_night(folder, place)
    with TemporaryDirectory() as later:  # the third night, which is not in the fixtures
        shutil.copytree(folder, later, dirs_exist_ok=True)
        write_night(Path(later), 2)
        expected |= run_night(Path(later), 2)
    shutil.rmtree(folder / "nights" / "runs" / DAYS[0])  # the baseline of the second night
    for lock in folder.glob("**/.*.lock"):
        lock.unlink()
    (folder / "expected.json").write_text(json.dumps(expected))
    os.chdir(folder.parent)
    shutil.make_archive(str(folder), "zip", folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
