"""Where a plan's work runs. Stages are plain functions handed to ``map`` over index ranges."""

from .threads import Threads, split

__all__ = ["Threads", "split"]
