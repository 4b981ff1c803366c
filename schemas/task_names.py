"""The tasks, by name."""

NAMES = (
    "classification",
    "detection",
    "retrieval",
    "segmentation",
    "panoptic",
    "text",
    "judged",
    "regression",
)
