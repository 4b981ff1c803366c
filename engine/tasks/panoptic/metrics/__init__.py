"""Metrics of panoptic segmentation, by family."""

MODULES = ("quality", "frames")
