"""Synthetic objects and detections of them, as NumPy arrays.

Shared by the benchmark data (detection_data.py) and the bundled example
(examples/making/make_detection.py). Everything is drawn from the NumPy generator that is passed in,
so a seed fixes every number. Boxes are float64 [n, 4] arrays of corners (xmin, ymin, xmax, ymax) in
pixels, always with positive width and height and inside their image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Objects:
    """Ground truths, sorted by image: one entry per object in every array."""

    image: I64  # index of the image, 0 .. n_images - 1
    label: I64  # index of the class, 0 .. n_classes - 1
    box: F64  # [n, 4] corners, pixels


@dataclass(frozen=True)
class Detections:
    """Predictions, sorted by image and then by descending score, as detectors write them."""

    image: I64
    label: I64
    box: F64  # [n, 4] corners, pixels
    score: F64  # strictly between 0 and 1


@dataclass(frozen=True)
class Detector:
    """Quality and number of detections of the simulated detector."""

    found: float = 0.92  # share of objects that get at least one detection
    duplicates: float = 0.9  # mean number of further detections of a found object
    wrong_class: float = 0.09  # share of an object's detections with another class
    grid: float = 16.0  # box corners are multiples of 1 / grid pixels
    score_digits: int = 6


def zipf(n_classes: int, exponent: float = 1.0) -> F64:
    """Return class probabilities [n_classes], proportional to 1 / (rank + 2) ** exponent."""
    weight = 1.0 / (np.arange(n_classes) + 2.0) ** exponent
    return np.asarray(weight / weight.sum())


def spread(rng: np.random.Generator, n: int, total: int, shape: float, empty: float) -> I64:
    """Return counts [n] that sum to about `total`: gamma-Poisson, with a share `empty` of zeros."""
    rate = rng.gamma(shape, size=n) * (rng.random(n) >= empty)
    return np.asarray(rng.poisson(rate * (total / max(rate.sum(), 1e-9))), dtype=np.int64)


def draw_objects(
    rng: np.random.Generator,
    per_image: I64,
    size: F64,
    probability: F64,
    *,
    median_side: float = 48.0,
    digits: int = 2,
) -> Objects:
    """Make objects for images with `per_image` [n_images] objects and `size` [n_images, 2] pixels.

    About half of an image's objects share the class of its first one (a crowd of people, a row
    of cars). This gives many boxes per image and class, as in real data. Corners are
    rounded to `digits` decimals, as annotation tools write them.
    """
    image = np.repeat(np.arange(len(per_image)), per_image)
    label = rng.choice(len(probability), size=len(image), p=probability)
    first = np.repeat(np.cumsum(per_image) - per_image, per_image)
    label = np.where(rng.random(len(image)) < 0.5, label[first], label)

    side = median_side * np.exp(rng.normal(0.0, 0.95, len(image)))
    aspect = np.exp(rng.normal(0.0, 0.4, len(image)))
    extent = np.stack([side * aspect, side / aspect], axis=1)
    extent = np.clip(extent, 4.0, size[image] * 0.98)
    low = rng.random((len(image), 2)) * (size[image] - extent)
    box = np.round(np.concatenate([low, low + extent], axis=1), digits)
    return Objects(image, label.astype(np.int64), box)


def jitter(rng: np.random.Generator, box: F64, noise: F64) -> F64:
    """Shift centres and scale sides of boxes [n, 4]; `noise` [n] is relative to the side."""
    extent = box[:, 2:] - box[:, :2]
    centre = box[:, :2] + extent / 2 + rng.normal(size=(len(box), 2)) * noise[:, None] * extent
    extent = extent * np.exp(rng.normal(size=(len(box), 2)) * noise[:, None])
    return np.concatenate([centre - extent / 2, centre + extent / 2], axis=1)


def snap(box: F64, size: F64, grid: float) -> F64:
    """Clip boxes [n, 4] to their images' `size` [n, 2] and round corners to 1 / grid pixels.

    The binary grid keeps the JSON of other evaluators short and free of rounding noise; opposite
    corners stay two pixels apart.
    """
    low = np.clip(box[:, :2], 0.0, size - 2.0)
    high = np.minimum(np.maximum(box[:, 2:], low + 2.0), size)
    return np.round(np.concatenate([low, high], axis=1) * grid) / grid


def _scores(rng: np.random.Generator, logit: F64, digits: int) -> F64:
    score = 1.0 / (1.0 + np.exp(-logit - rng.normal(size=len(logit)) * 0.9))
    step = 10.0**-digits
    return np.asarray(np.round(np.clip(score, step, 1.0 - step), digits))


def detect(
    rng: np.random.Generator,
    objects: Objects,
    size: F64,
    probability: F64,
    background: I64,
    detector: Detector,
    *,
    silent: Bool | None = None,
    single_class: Bool | None = None,
    difficulty: F64 | None = None,
) -> Detections:
    """Return the detections of `objects` in images of `size` [n_images, 2].

    Found objects get one detection and some duplicates, with localisation from tight to poor, and
    higher scores for tighter boxes; `background` [n_images] further boxes hit no particular object
    and score low. Images marked `silent` get no detection at all; in images marked `single_class`
    all background has one class (more than any cap on boxes per class allows). `difficulty`
    [n_images] multiplies the localisation noise (bad weather, a dirty lens).
    """
    n_classes, n_images = len(probability), len(size)
    detected = np.flatnonzero(rng.random(len(objects.image)) < detector.found)
    copies = 1 + rng.poisson(detector.duplicates, len(detected))
    source = np.repeat(detected, copies)
    duplicate = np.arange(len(source)) != np.repeat(np.cumsum(copies) - copies, copies)

    # Tight for the first detection of an object, looser for its duplicates.
    noise = rng.gamma(1.3, 0.055, len(source)) * np.where(duplicate, 2.2, 1.0)
    if difficulty is not None:
        noise *= difficulty[objects.image[source]]
    near = jitter(rng, objects.box[source], noise)
    wrong = rng.random(len(source)) < detector.wrong_class
    other = (objects.label[source] + rng.integers(1, max(n_classes, 2), len(source))) % n_classes
    label = np.where(wrong, other, objects.label[source])
    logit = 2.2 - 13.0 * noise - 1.9 * duplicate - 1.3 * wrong

    image = np.repeat(np.arange(n_images), background)
    guess = rng.choice(n_classes, size=len(image), p=probability)
    main = rng.choice(n_classes, size=n_images, p=probability)
    main[objects.image[::-1]] = objects.label[::-1]  # the first object's class, if there is one
    same = rng.random(len(image)) < 0.3
    if single_class is not None:
        same |= single_class[image]
    guess = np.where(same, main[image], guess)
    side = 52.0 * np.exp(rng.normal(0.0, 0.9, len(image)))
    aspect = np.exp(rng.normal(0.0, 0.45, len(image)))
    half = np.stack([side * aspect, side / aspect], axis=1) / 2
    centre = rng.random((len(image), 2)) * size[image]
    far = np.concatenate([centre - half, centre + half], axis=1)

    image = np.concatenate([objects.image[source], image])
    label = np.concatenate([label, guess])
    box = snap(np.concatenate([near, far]), size[image], detector.grid)
    logit = np.concatenate([logit, np.full(len(far), -3.1)])
    score = _scores(rng, logit, detector.score_digits)

    order = np.lexsort((-score, image))
    if silent is not None:
        order = order[~silent[image[order]]]
    return Detections(image[order], label[order].astype(np.int64), box[order], score[order])
