"""Where a plan's work runs. Stages are functions called over ranges of labels or datums."""

from .threads import Threads, split

__all__ = ["Threads", "split"]
