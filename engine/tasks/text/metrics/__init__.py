"""Metrics of the task, a family a module."""

MODULES = ("rouge", "bleu", "edits", "similarity", "readability", "faithfulness")
"""Those that hold ``METRICS``, in their order."""
