"""What ``score`` returns: frames, on disk and looked up."""
