"""Runs in bounded memory: rows shuffled to buckets by datum, tallied bucket by bucket."""

from .driver import large, run, told_of_memory, wanted

__all__ = ["large", "run", "told_of_memory", "wanted"]
