"""Names of the true-positive errors of 3-D boxes, shared by metrics and tally."""

OF_FOUND = "true positives"
"""Need of true positives at ``pr_curve_iou_threshold`` with their errors."""
ANGLES = "angles"
"""Need of the angles at which objects are seen."""
READS = {"velocities": ("vx", "vy"), "attributes": ("attribute",), ANGLES: ("alpha",)}
"""Needs of columns that both sides must have."""
FOUND = "found"
"""Name of their tally among the additional tallies of a view."""
ERRORS = ("ATE", "ASE", "AOE", "AVE", "AAE")
"""The errors, in the order of :attr:`..tally.ranked.Ranked.values`."""
