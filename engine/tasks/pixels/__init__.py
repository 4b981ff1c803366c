"""Pixels of two sides: rows and their files, maps of indices, joint histograms."""
