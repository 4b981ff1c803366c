"""Executors of a plan. Stages are functions called over ranges of labels or datums."""

from .pools import Threads, split

__all__ = ["Threads", "split"]
