"""Metrics of the task, a family a module."""

MODULES = ("gains", "precision", "judgments", "sets", "texts", "contexts", "users")
"""Those that hold ``METRICS``, in their order."""
