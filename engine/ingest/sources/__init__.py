"""Formats to tables: whatever a user has becomes a Polars LazyFrame."""
