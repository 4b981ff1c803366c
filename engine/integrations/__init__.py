"""Where evaluation is called from: training loops, trackers of experiments, schedulers.

A module for each package, which it alone imports: nothing here is loaded by evalengine itself.
"""
