"""The tasks, by name."""

NAMES = (
    "classification",
    "detection",
    "retrieval",
    "segmentation",
    "panoptic",
    "tracking",
    "text",
    "judged",
    "regression",
)
