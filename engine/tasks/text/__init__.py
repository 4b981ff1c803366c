"""Text: comparison of written texts with references."""
