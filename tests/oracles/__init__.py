"""Slow reference implementations that share no code with the engine."""
