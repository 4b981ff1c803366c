"""Runs in bounded memory: rows shuffled to buckets by datum, tallied bucket by bucket."""

from .driver import describe_memory, large, run, wanted

__all__ = ["describe_memory", "large", "run", "wanted"]
