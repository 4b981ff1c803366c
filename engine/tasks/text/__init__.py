"""Text: what was written is held against its references and measured here."""
