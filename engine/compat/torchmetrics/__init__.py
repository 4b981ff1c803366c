"""torchmetrics' classes that the engine computes: change the import, keep the calls.

Batches are kept as columns, and torch is not imported: results are floats and arrays, and tensors
where torch is imported already.
"""

from __future__ import annotations

from .detection import MeanAveragePrecision

__all__ = ["MeanAveragePrecision"]
