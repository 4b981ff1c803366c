"""Spans: entities in texts, segments in time."""
