"""Contracts: input tables, output frames, options and errors. Imports nothing of the engine."""
