"""Semantic segmentation: encoding of label maps and masks, pixel-wise comparison, counts."""
