"""Runs in bounded memory: rows shuffled to buckets by datum, tallied bucket by bucket."""
