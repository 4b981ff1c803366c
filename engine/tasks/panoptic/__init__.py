"""Panoptic segmentation: segments of things and stuff, and how many of them were found how well."""
