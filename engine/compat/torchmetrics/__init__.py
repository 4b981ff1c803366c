"""Classes of torchmetrics that the engine computes: change the import, keep the calls.

Batches are kept as columns, and torch is not imported. Results are floats and arrays, or tensors if
torch is already imported.
"""

from __future__ import annotations

from .metric import (
    AUROC,
    Accuracy,
    AveragePrecision,
    CalibrationError,
    CohenKappa,
    ConfusionMatrix,
    F1Score,
    FBetaScore,
    MatthewsCorrCoef,
    MeanAveragePrecision,
    Precision,
    Recall,
)

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
