"""Preferences: which of two models people or a judge prefer, prompt by prompt."""
