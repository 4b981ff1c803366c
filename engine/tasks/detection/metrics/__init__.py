"""Metrics of the task, a family a module."""

MODULES = ("averages", "counts", "frames")
"""Those that hold ``METRICS``, in their order."""
