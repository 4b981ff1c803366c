"""Pixels of two sides that meet: rows and their files, maps of indices, joint histograms."""
