"""Functions over bins or thresholds: calibration curve, counts, ranked gains."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...api import score
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError
from ..arrays import chosen, numbers
from .ranking import curve, of_positive


def calibration_curve(
    y_true: Any,
    y_prob: Any,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: str = "uniform",
) -> tuple[Array, Array]:
    """Compute the share of positives and the mean probability of every non-empty bin.

    Same as ``sklearn.calibration.calibration_curve``, but only with bins of equal width.
    """
    chosen("strategy", strategy, ("uniform",))
    scores = numbers("y_prob", y_prob)
    if ((scores < 0) | (scores > 1)).any():
        raise InputError("y_prob: probabilities lie between 0 and 1.")
    card = of_positive("Reliability", y_true, scores.astype(np.float64), pos_label, n_bins=n_bins)
    found = card.metrics.pivot("statistic", index="score_threshold", values="value")
    return found["accuracy"].to_numpy().copy(), found["confidence"].to_numpy().copy()


def confusion_matrix_at_thresholds(
    y_true: Any, y_score: Any, *, pos_label: Any = None, sample_weight: Any = None
) -> tuple[Array, Array, Array, Array, Array]:
    """Rows by truth and prediction at each threshold (tn, fp, fn, tp), and these, highest first."""
    frame = curve(y_true, y_score, pos_label, sample_weight, "ScorePrecisionRecallCurve")
    frame = frame.filter(pl.col("score_threshold").is_finite())
    counts = [frame[name].to_numpy().astype(np.float64) for name in ("tn", "fp", "fn", "tp")]
    at = frame["score_threshold"].to_numpy().astype(np.asarray(numbers("y_score", y_score)).dtype)
    return counts[0], counts[1], counts[2], counts[3], at


def ndcg_score(
    y_true: Any,
    y_score: Any,
    *,
    k: int | None = None,
    sample_weight: Any = None,
    ignore_ties: bool = False,
) -> float:
    """Mean over rows of nDCG of the columns' gains in ``y_true`` in the order of ``y_score``."""
    if sample_weight is not None:
        raise OptionError("sample_weight: rows count alike here; leave it None.")
    gains = numbers("y_true", y_true, dims=(2,))
    scores = numbers("y_score", y_score, rows=len(gains), dims=(2,))
    if gains.shape != scores.shape:
        raise InputError(f"y_true has the shape {gains.shape}, y_score {scores.shape}.")
    if (gains < 0).any():
        raise InputError("y_true: a gain is 0 or more.")
    row, column = np.indices(gains.shape).reshape(2, -1)
    # Break ties by descending column, as a reversed sort does.
    ids = {"query_id": row, "doc_id": column}
    run = pl.DataFrame(ids | {"score": scores.ravel().astype(np.float64)}).reverse()
    judged = pl.DataFrame(ids | {"relevance": gains.ravel().astype(np.float64)})
    card = score(
        run, judged, task="retrieval", metrics=["nDCG"], k=[k or gains.shape[1]],
        ties="input" if ignore_ties else "average", complete=True,
    )  # fmt: skip
    return float(card.value("nDCG", k=k or gains.shape[1]) or 0.0)
