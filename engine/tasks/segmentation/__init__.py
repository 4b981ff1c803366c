"""Semantic segmentation: label maps and masks are encoded, met pixel by pixel and counted here."""
