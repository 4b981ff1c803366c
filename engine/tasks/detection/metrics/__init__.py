"""Metrics of the task, a family a module."""

MODULES = (
    "averages",
    "counts",
    "errors",
    "frames",
    "keypoints",
    "thresholds",
    "calibration",
    "box_calibration",
    "true_positives",
)
"""Those that hold ``METRICS``, in their order."""
