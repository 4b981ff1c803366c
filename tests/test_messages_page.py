"""The page of errors quotes messages that the package has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_quoted_messages_are_those_of_the_package() -> None:
    """Each quoted part, between its ellipses, is in the text of some message."""
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "docs" / "messages.md").read_text("utf-8"), re.M)
    quoted = [part.strip(" :") for row in rows for part in re.split("[`…]", row)]
    parts = {part for part in quoted if " " in part and not part.startswith(("(", ","))}
    assert len(parts) > 40
    said = " ".join(
        node.value
        for folder in ("engine", "schemas")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert {part for part in parts if part not in said} == set()
