"""What went wrong: the datums that a run does worst on."""
