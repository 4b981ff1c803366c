"""Names of what is known of true positives of 3-D boxes, that metrics and the tally share."""

OF_FOUND = "true positives"
"""Need of true positives at ``pr_curve_iou_threshold`` with their errors."""
ANGLES = "angles"
"""Need of the angles at which objects are seen."""
READS = {"velocities": ("vx", "vy"), "attributes": ("attribute",), ANGLES: ("alpha",)}
"""Needs of columns that both sides must have."""
FOUND = "found"
"""Name of their tally among those beside a view's."""
ERRORS = ("ATE", "ASE", "AOE", "AVE", "AAE")
"""The errors, in the order of :attr:`..tally.ranked.Ranked.values`."""
