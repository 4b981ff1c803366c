"""torchmetrics' classes that the engine computes: change the import, keep the calls.

Batches are kept as columns, and torch is not imported: results are floats and arrays, and tensors
where torch is imported already.
"""

from __future__ import annotations

from .classification import (
    AUROC,
    Accuracy,
    AveragePrecision,
    CalibrationError,
    CohenKappa,
    ConfusionMatrix,
    F1Score,
    FBetaScore,
    MatthewsCorrCoef,
    Precision,
    Recall,
)
from .detection import MeanAveragePrecision

__all__ = [
    "AUROC",
    "Accuracy",
    "AveragePrecision",
    "CalibrationError",
    "CohenKappa",
    "ConfusionMatrix",
    "F1Score",
    "FBetaScore",
    "MatthewsCorrCoef",
    "MeanAveragePrecision",
    "Precision",
    "Recall",
]
