"""Tracking: objects followed through the frames of sequences, and how well tracks follow them."""
