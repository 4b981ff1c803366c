"""Any table to checked frames: names, dtypes, conditions, checks, slices, label maps."""
