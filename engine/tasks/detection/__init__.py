"""Detection: boxes are encoded, matched and tallied here."""
