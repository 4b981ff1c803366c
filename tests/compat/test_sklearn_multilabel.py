"""compat.sklearn with indicator matrices of several labels per row, against scikit-learn itself."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from compat.test_sklearn import both
from lazy_imports import LazyModule

sk = LazyModule("sklearn.metrics")

SEEDS = range(int(os.environ.get("EVALENGINE_EXAMPLES", "2")))


def random_matrices(seed: int) -> tuple[np.random.Generator, Any, Any, dict[str, Any]]:
    """Make matrices with rows and columns without labels, and weights of 0."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 12)), int(rng.integers(2, 6))
    truth, predicted = (rng.random(shape) < rng.choice([0, 0.2, 0.5, 0.9, 1]) for _ in range(2))
    if rng.random() < 0.3:
        truth[:, rng.integers(shape[1])] = rng.integers(2)
    whole = rng.integers(0, 4, shape[0])
    weight = [None, rng.choice([0.0, 0.5, 1.0, 2.25], shape[0]).tolist(), whole][rng.integers(3)]
    if weight is not None and not (np.any(weight) and truth.any() and predicted.any()):
        weight = None
    kind = [bool, int, float][rng.integers(3)]
    return rng, truth.astype(kind), predicted.astype(kind), {"sample_weight": weight}


@pytest.mark.parametrize("seed", SEEDS)
def test_hard_predictions(seed: int) -> None:
    rng, truth, predicted, weight = random_matrices(seed)
    n_labels = truth.shape[1]
    for normalize in (True, False):
        both("accuracy_score", truth, predicted, **weight, normalize=normalize)
        both("zero_one_loss", truth, predicted, **weight, normalize=normalize)
    both("hamming_loss", truth, predicted, **weight)
    some = rng.permutation(n_labels)[: rng.integers(1, n_labels + 1)].tolist()
    for labels in (None, some):
        both("multilabel_confusion_matrix", truth, predicted, **weight, labels=labels)
        both("classification_report", truth, predicted, **weight, labels=labels, output_dict=True,
             zero_division=["warn", 0, 1, np.nan][rng.integers(4)])  # fmt: skip
    both("classification_report", truth, predicted)
    for average in ("micro", "macro", "weighted", "samples", None):
        for fill in ("warn", 0, 1, np.nan):
            labels = [None, some][rng.integers(2)]
            more = {**weight, "average": average, "zero_division": fill, "labels": labels}
            beta = float(rng.choice([0.5, 1.0, 2.0]))
            both("precision_recall_fscore_support", truth, predicted, beta=beta, **more)
            name = ["precision_score", "recall_score", "f1_score"][rng.integers(3)]
            both(name, truth, predicted, **more)
            if fill in ("warn", 0, 1):
                both("jaccard_score", truth, predicted, **more)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores(seed: int) -> None:
    rng, truth, _, weight = random_matrices(seed + 1000)
    scores = (
        rng.integers(0, 2 + seed % 9, truth.shape) / 10 if seed % 2 else rng.random(truth.shape)
    )
    for average in ("micro", "macro", "weighted", "samples", None):
        if truth.any() or average != "weighted":  # otherwise scikit-learn returns the integer 0
            both("roc_auc_score", truth, scores, **weight, average=average)
            both("average_precision_score", truth, scores, **weight, average=average)
    if truth.any(axis=0).all() and not truth.all(axis=0).any():
        both("roc_auc_score", truth, scores, average=None, max_fpr=0.4)
