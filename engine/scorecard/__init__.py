"""Scorecards: result frames in memory and on disk, and look-up of numbers."""
