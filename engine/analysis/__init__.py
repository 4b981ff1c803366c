"""Analyses of a scored run: errors, slices, calibration, thresholds, limits."""
