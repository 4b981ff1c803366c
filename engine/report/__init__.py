"""A scorecard for people: what to show first, as text, HTML, Markdown or a terminal's table."""
