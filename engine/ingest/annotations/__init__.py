"""Annotations and detections as other tools write them: one format a file, all in one table."""
