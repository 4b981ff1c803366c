"""Runs in bounded memory: rows dealt out to buckets by datum, tallied bucket by bucket, merged."""

from .driver import Done, run, told_of_memory, wanted

__all__ = ["Done", "run", "told_of_memory", "wanted"]
