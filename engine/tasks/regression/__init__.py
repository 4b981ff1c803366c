"""Regression: predicted numbers against true ones."""
