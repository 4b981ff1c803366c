"""Uncertainty of numbers: resamples of datums, intervals, comparisons."""
