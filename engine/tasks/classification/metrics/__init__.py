"""Metrics of the task, a family a module."""

MODULES = ("counts", "ranking", "thresholds", "probability", "curves", "frames")
"""Those that hold ``METRICS``, in their order."""
