"""Executors of a plan. Stages are functions called over ranges of labels or datums."""

from .threads import Threads, split

__all__ = ["Threads", "split"]
