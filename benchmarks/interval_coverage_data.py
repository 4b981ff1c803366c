"""Populations with known values, and samples of them, for benchmarks/interval_coverage.py.

Either every value follows from the distribution of rows, or the population is finite. Then values
are computed from all of it, and samples are taken from it with replacement. All random numbers come
from the given NumPy generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]
Tables = tuple[pl.DataFrame, ...]
POPULATION = 20_000  # datums of a finite population
MAKING = 8  # seed of finite populations


@dataclass(frozen=True)
class Number:
    """A metric with an interval.

    Attributes:
        metric: name of the metric.
        title: heading on the page.
        row: selection of rows of the frame ``metrics``: one or (for several labels) more.
        methods: kinds of intervals in addition to those that follow from resamples.
    """

    metric: str
    title: str
    row: pl.Expr
    methods: tuple[str, ...] = ("bca",)


@dataclass(frozen=True)
class Study:
    """Samples of one population.

    Attributes:
        task: task of the metrics.
        about: description of its datums.
        counted: unit of ``sizes``.
        sizes: datums of a sample.
        numbers: metrics whose intervals are measured.
        sample: function of a number of datums; returns arguments of ``score``.
        truth: values of the rows in the population, in the order of each metric's rows.
        options: options of every run.
        variants: options of additional runs, whose intervals are shown as well.
    """

    task: str
    about: str
    counted: str
    sizes: tuple[int, ...]
    numbers: tuple[Number, ...]
    sample: Callable[[np.random.Generator, int], Tables]
    truth: Callable[[], dict[str, list[float]]]
    options: dict[str, Any] = field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


# -- classification --------------------------------------------------------------------------------

LABELS = np.array(["a", "b", "c"])
SHARES = np.array([0.6, 0.3, 0.1])
CONFUSED = np.array([[0.85, 0.10, 0.05], [0.20, 0.75, 0.05], [0.20, 0.20, 0.60]])
"""Share of predicted labels among the datums of each label."""
SEPARATION = 1.0  # how many standard deviations positives score above negatives
POSITIVE = 0.3


def labelled(rng: np.random.Generator, n: int) -> Tables:
    """Return one label and one prediction per datum."""
    actual = rng.choice(3, n, p=SHARES)
    predicted = (rng.random(n)[:, None] > CONFUSED.cumsum(axis=1)[actual]).sum(axis=1)
    return (pl.DataFrame({"actual": LABELS[actual], "predicted": LABELS[predicted]}),)


def of_labelled() -> dict[str, list[float]]:
    joint = SHARES[:, None] * CONFUSED
    f1 = 2 * joint.diagonal() / (joint.sum(axis=0) + joint.sum(axis=1))
    return {"Accuracy": [float(joint.trace())], "F1": [float(f1.mean())]}


def scored(rng: np.random.Generator, n: int) -> Tables:
    """Return scores that are normal for either class."""
    actual = (rng.random(n) < POSITIVE).astype(np.int64)
    if actual.min() == actual.max():
        actual[0] = 1 - actual[0]
    return (pl.DataFrame({"actual": actual, "score": rng.normal(size=n) + SEPARATION * actual}),)


def of_scored() -> dict[str, list[float]]:
    return {"ROCAUC": [NormalDist().cdf(SEPARATION / math.sqrt(2))]}


FRAMES = 20  # of a video


def filmed(rng: np.random.Generator, n: int) -> Tables:
    """Return frames of n videos; the difficulty of frames is that of their video."""
    right = rng.random((n, FRAMES)) < rng.beta(4, 1, n)[:, None]
    actual = rng.integers(0, 2, (n, FRAMES))
    columns = {"actual": actual, "predicted": np.where(right, actual, 1 - actual)}
    video = np.repeat(np.arange(n), FRAMES)
    named = {name: np.where(values.ravel(), "x", "y") for name, values in columns.items()}
    return (pl.DataFrame({"datum_id": np.arange(n * FRAMES), **named, "video": video}),)


# -- finite populations ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows of a table by datum.

    Attributes:
        table: all rows, datum by datum.
        start: int64 [n + 1], offset of each datum's rows.
        datum: column of datum ids.
    """

    table: pl.DataFrame
    start: Array
    datum: str

    @classmethod
    def of(cls, table: pl.DataFrame, datum: str) -> Rows:
        """Return rows of datums 0, 1, ..., in that order."""
        return cls(table, np.searchsorted(table[datum], np.arange(POPULATION + 1)), datum)

    def at(self, datums: Array) -> pl.DataFrame:
        """Return rows of some datums; repeated datums become separate ones."""
        many = (self.start[1:] - self.start[:-1])[datums]
        bounds = many.cumsum()
        place = np.arange(int(many.sum())) + np.repeat(self.start[datums] - bounds + many, many)
        name = pl.Series(self.datum, np.repeat(np.arange(datums.size), many))
        return self.table[place].with_columns(name)


def drawn_from(
    sides: tuple[Rows, ...], rng: np.random.Generator, n: int, frames: int = 1
) -> Tables:
    """Return rows of n datums, or of n videos of so many successive datums."""
    first = rng.integers(0, POPULATION // frames, n) * frames
    datums = (first[:, None] + np.arange(frames)).ravel()
    return tuple(side.at(datums) for side in sides)


def of_all(
    sides: tuple[Rows, ...], numbers: tuple[Number, ...], **options: Any
) -> dict[str, list[float]]:
    """Return values of the complete population."""
    import evalengine as ee

    tables = [side.table for side in sides]
    frame = ee.score(*tables, metrics=[one.metric for one in numbers], **options).metrics
    return {one.metric: frame.filter(one.row)["value"].to_list() for one in numbers}


# -- retrieval and text ----------------------------------------------------------------------------

DEPTH = 15


@cache
def queries() -> tuple[Rows, ...]:
    """Return runs of fifteen documents; queries differ in difficulty, all have a relevant one."""
    rng = np.random.default_rng(MAKING)
    rank = np.arange(DEPTH)
    chance = rng.beta(1.5, 1.5, (POPULATION, 1)) * 0.7 * np.exp(-rank / 6)
    relevance = (rng.random(chance.shape) < chance) * rng.integers(1, 3, chance.shape)
    none = np.flatnonzero(relevance.sum(axis=1) == 0)
    relevance[none, rng.integers(0, DEPTH, none.size)] = 1
    table = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(POPULATION), DEPTH),
            "doc_id": np.tile(rank, POPULATION),
            "score": np.tile((DEPTH - rank).astype(float), POPULATION),
            "relevance": relevance.ravel(),
        }
    )
    sides = table.drop("relevance"), table.drop("score")
    return tuple(Rows.of(side, "query_id") for side in sides)


@cache
def pairs() -> tuple[Rows, ...]:
    """Return references of 6 to 30 words of a vocabulary of 200, and texts that differ."""
    rng = np.random.default_rng(MAKING)
    vocabulary = np.array([f"w{i}" for i in range(200)])
    length = rng.integers(6, 31, POPULATION)
    start = np.concatenate([[0], length.cumsum()])
    wrong = rng.random(start[-1]) < np.repeat(rng.random(POPULATION) * 0.6, length)
    common = rng.zipf(1.3, (2, start[-1])) % 200
    words = vocabulary[np.where(wrong, common[1], common[0])], vocabulary[common[0]]
    text, reference = ([" ".join(side[a:b]) for a, b in pairwise(start)] for side in words)
    table = pl.DataFrame({"datum_id": range(POPULATION), "text": text, "reference": reference})
    return (Rows.of(table, "datum_id"),)


# -- detection -------------------------------------------------------------------------------------

CLASSES, MANY_CLASSES = 5, 40
A_CLASS = 0.5  # ground truths of a class on an image
SIDE, DISTANCE_PX = 40.0, 100.0  # of a box; distance between boxes, so that none overlap


@cache
def images(classes: int = CLASSES, frames: int = 1, *, zipf: bool = False) -> tuple[Rows, ...]:
    """Return boxes of some classes on many images, and detections."""
    tables = scene(np.random.default_rng(MAKING), POPULATION, (0.0,), classes, frames, zipf=zipf)
    return tuple(Rows.of(side, "datum_id") for side in tables)


def scene(
    rng: np.random.Generator,
    n: int,
    gains: tuple[float, ...],
    classes: int = CLASSES,
    frames: int = 1,
    *,
    zipf: bool = False,
) -> Tables:
    """Return images with boxes, and detections of detectors of different skill.

    Hard images have fewer hits, with lower scores, for all detectors.

    Args:
        frames: successive images that are equally hard.
        zipf: class i is as frequent as 1 / i; otherwise all classes are as frequent.

    Returns:
        predictions of each detector, then ground truths.
    """
    hard = np.repeat(rng.normal(size=n // frames), frames)
    shares = 1 / np.arange(1, classes + 1) if zipf else np.ones(classes)
    share = shares / shares.mean()
    image, label = _scattered(rng, A_CLASS * share, n)
    return (
        *(_detected(rng, image, label, hard, gain, share) for gain in gains),
        _boxes(image, label, np.zeros(image.size)),
    )


def _detected(
    rng: np.random.Generator, image: Array, label: Array, hard: Array, gain: float, share: Array
) -> pl.DataFrame:
    detected = rng.random(image.size) < _logistic(1.2 + gain - 0.8 * hard[image])
    iou = rng.beta(6, 2, image.size)
    hits = _boxes(image, label, SIDE * (1 - iou) / (1 + iou)).filter(pl.Series(detected))
    score = 1.5 * iou - 0.4 * hard[image] + rng.normal(size=image.size)
    image, label = _scattered(rng, 0.4 * share, hard.size)
    false = _boxes(image, label, np.full(image.size, 100 * DISTANCE_PX))
    every = np.concatenate([score[detected], rng.normal(-0.5, 1.0, image.size)])
    predictions = pl.concat([hits, false]).with_columns(score=pl.Series(_logistic(every)))
    return predictions.sort("datum_id", maintain_order=True)


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _scattered(rng: np.random.Generator, mean: Array, n: int) -> tuple[Array, Array]:
    """Return image and label of objects, given their number per image and class."""
    many = rng.poisson(mean, (n, mean.size)).ravel()
    cell = np.repeat(np.arange(many.size), many)
    return cell // mean.size, cell % mean.size


def _boxes(image: Array, label: Array, shift: Array) -> pl.DataFrame:
    """Return boxes side by side, shifted to the right by given distances."""
    first = np.searchsorted(image, image)  # of the image
    left = (np.arange(image.size) - first) * DISTANCE_PX + shift
    corners = {"xmin": left, "ymin": 0.0, "xmax": left + SIDE, "ymax": SIDE}
    return pl.DataFrame({"datum_id": image, "label_value": label, **corners})


# -- all of them -----------------------------------------------------------------------------------

_AP = pl.col("metric") == "AP"
_ACCURACY = Number(
    "Accuracy", "accuracy", pl.col("metric") == "Accuracy", ("bca", "jackknife", "wilson")
)
_F1 = Number("F1", "F1, macro", (pl.col("metric") == "F1") & (pl.col("average") == "macro"))
_AUC = Number("ROCAUC", "ROC AUC", pl.col("metric") == "ROCAUC", ("bca", "delong"))
_NDCG = (Number("nDCG@10", "nDCG@10", pl.col("metric") == "nDCG", ("bca", "jackknife")),)
_BLEU = (Number("CorpusBLEU", "BLEU", pl.col("metric") == "CorpusBLEU"),)
_BOXES = (
    Number("AP", "AP at IoU 0.5, of a class", _AP & (pl.col("iou_threshold") == 0.5)),
    Number(
        "mAPAveragedOverIOUs",
        "mAP over IoU and five classes",
        pl.col("metric") == "mAPAveragedOverIOUs",
    ),
)
_ALL = (
    Number(
        "mAPAveragedOverIOUs",
        "mAP over IoU and 40 classes",
        pl.col("metric") == "mAPAveragedOverIOUs",
    ),
)
STUDIES: dict[str, Study] = {
    "labels": Study(
        "classification",
        "Three labels, 60, 30 and 10 % of the datums; numbers follow from the shares.",
        "datums",
        (100, 1000),
        (_ACCURACY, _F1),
        labelled,
        of_labelled,
    ),
    "scores": Study(
        "classification",
        "Normal scores of two classes, 30 % positives.",
        "datums",
        (100, 1000),
        (_AUC,),
        scored,
        of_scored,
    ),
    "queries": Study(
        "retrieval",
        "Queries with fifteen documents, out of 20,000.",
        "queries",
        (100, 1000),
        _NDCG,
        lambda rng, n: drawn_from(queries(), rng, n),
        lambda: of_all(queries(), _NDCG),
    ),
    "texts": Study(
        "text",
        "Texts of 6 to 30 words, out of 20,000.",
        "texts",
        (100, 500),
        _BLEU,
        lambda rng, n: drawn_from(pairs(), rng, n),
        lambda: of_all(pairs(), _BLEU),
    ),
    "videos": Study(
        "classification",
        "Videos of 20 frames, some of them harder than others; frames of a video are as hard.",
        "videos",
        (10, 30, 100),
        (_ACCURACY,),
        filmed,
        lambda: {"Accuracy": [0.8]},
        {"cluster": "video"},
        {"without cluster=": {"cluster": None}},
    ),
    "boxes": Study(
        "detection",
        "Images with half a box of each of five classes, out of 20,000.",
        "ground truths a class",
        (20, 200, 2000),
        _BOXES,
        lambda rng, n: drawn_from(images(), rng, n),
        lambda: of_all(images(), _BOXES),
        {"labels": range(CLASSES)},
    ),
    "classes": Study(
        "detection",
        "The same with 40 classes: the excess of the AP of each does not average out.",
        "ground truths a class",
        (20, 200),
        _ALL,
        lambda rng, n: drawn_from(images(MANY_CLASSES), rng, n),
        lambda: of_all(images(MANY_CLASSES), _ALL),
        {"labels": range(MANY_CLASSES)},
    ),
}
