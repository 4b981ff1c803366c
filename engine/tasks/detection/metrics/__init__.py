"""Metrics of the task, a family a module."""

MODULES = ("averages", "counts", "errors", "frames", "thresholds")
"""Those that hold ``METRICS``, in their order."""
