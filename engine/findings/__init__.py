"""Findings: analyses of a run."""
