"""Dialects: named, frozen sets of rule choices. Data, not code paths."""

from .registry import Dialect, get, names

__all__ = ["Dialect", "get", "names"]
