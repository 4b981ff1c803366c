"""From metrics that are asked for to a plan, from a plan to tallies, from tallies to frames."""
