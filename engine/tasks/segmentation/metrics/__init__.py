"""Metrics of the task, a family a module."""

MODULES = ("labels", "keys", "images", "surfaces", "frames")
"""Those that hold ``METRICS``, in their order."""
