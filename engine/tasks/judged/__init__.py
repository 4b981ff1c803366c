"""Judged metrics: a table of verdicts is encoded and measured here, without a judge."""
