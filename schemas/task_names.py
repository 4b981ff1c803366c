"""The tasks, by name."""

NAMES = ("classification", "detection", "retrieval", "segmentation", "text", "judged")
