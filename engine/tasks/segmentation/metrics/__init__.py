"""Metrics of the task, a family a module."""

MODULES = ("labels", "keys", "images", "frames")
"""Those that hold ``METRICS``, in their order."""
