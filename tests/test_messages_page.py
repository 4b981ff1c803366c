"""The page of errors quotes messages that the package has."""

from __future__ import annotations

import ast
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


def test_all_warnings_are_listed_by_code() -> None:
    """Every note that the code makes a warning has a row, and every code in a row exists."""
    page = (ROOT / "docs" / "messages.md").read_text("utf-8").split("## All warnings")[1]
    rows = re.findall(r"^\| (`.+?) \|", page.split("\n## ")[0], re.M)
    listed = {code for row in rows for code in re.findall("`(.+?)`", row)}
    texts: set[str] = set()
    made: set[str] = set()
    for path in (ROOT / "engine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                warns = any(keyword.arg == "warning" for keyword in node.keywords)
                if isinstance(first, ast.Constant) and (
                    (node.func.id == "Note" and warns) or node.func.id == "tied_notes"
                ):
                    made.add(str(first.value))
    of_notes = {"several_models", "spans_not_read", "unread_columns_differ", "mappings_swapped"}
    assert listed >= made | of_notes | {"labels_apart", "labels_exchanged", "labels_one_sided"}
    assert len(made) > 25
    assert listed <= texts | {"datums_without_predictions"}  # made of the side's name
