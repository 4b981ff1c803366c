"""Dialects: named, frozen sets of rule choices. Data, not code paths."""

from .registry import Dialect, chosen, get, names

__all__ = ["Dialect", "chosen", "get", "names"]
