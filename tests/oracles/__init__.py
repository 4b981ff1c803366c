"""Slow, obvious reference implementations that share nothing with the engine."""
