"""Metrics of tracking, by family."""

MODULES = ("numbers", "frames")
