"""Contracts: input tables, output frames, options and errors. Imports no engine module."""
