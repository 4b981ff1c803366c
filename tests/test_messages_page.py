"""The page of errors quotes messages that the package has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_quoted_messages_are_those_of_the_package() -> None:
    """Each quoted part, between its ellipses, is in a string of the code; docstrings are none."""
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "docs" / "messages.md").read_text("utf-8"), re.M)
    quoted = [part.strip(" :") for row in rows for part in re.split("[`…]", row)]
    parts = {part for part in quoted if " " in part and not part.startswith(("(", ","))}
    assert len(parts) > 40
    said = []
    for path in (path for name in ("engine", "schemas") for path in (ROOT / name).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        said += [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ]
    assert {part for part in parts if not any(part in one for one in said)} == set()
