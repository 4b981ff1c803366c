"""Classification: labels are encoded, matched and tallied here."""
