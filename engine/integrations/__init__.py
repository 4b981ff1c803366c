"""Integrations: training loops, experiment trackers, schedulers.

One module per package, which only that module imports; evalengine itself imports none here.
"""
