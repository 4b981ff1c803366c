"""The page of errors quotes messages that the package has."""

from __future__ import annotations

import re
from pathlib import Path

from test_wording import strings

ROOT = Path(__file__).parent.parent


def test_quoted_messages_are_those_of_the_package() -> None:
    """Each quoted part, between its ellipses, is in a string of the code; docstrings are none."""
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "docs" / "messages.md").read_text("utf-8"), re.M)
    quoted = [part.strip(" :") for row in rows for part in re.split("[`…]", row)]
    parts = {part for part in quoted if " " in part and not part.startswith(("(", ","))}
    assert len(parts) > 40
    said = "\0".join(text for _, text in strings())
    assert {part for part in parts if part not in said} == set()
