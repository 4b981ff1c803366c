"""Metrics of the task, a family a module."""

MODULES = (
    "errors",
    "relative",
    "scaled",
    "correlation",
    "ranks",
    "deviance",
    "quantiles",
    "intervals",
    "shapes",
)
"""Those that hold ``METRICS``, in their order."""
