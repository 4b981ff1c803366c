"""Runs in bounded memory: rows shuffled to buckets by datum, tallied bucket by bucket."""

from .driver import describe_memory, large, plan_buckets, run

__all__ = ["describe_memory", "large", "plan_buckets", "run"]
