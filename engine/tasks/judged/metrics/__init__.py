"""Metrics of the task, a family a module."""

MODULES = ("answers", "contexts", "ragas")
"""Those that hold ``METRICS``, in their order."""
