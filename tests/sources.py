"""Strings and warnings in the source of the package, parsed once for all tests of messages."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Source(NamedTuple):
    """Contents of the files in ``engine`` and ``schemas``.

    Attributes:
        strings: place and text of every string with a space, without docstrings.
        words: all strings in ``engine``.
        warnings: codes of the notes that ``engine`` raises to warnings.
    """

    strings: list[tuple[str, str]]
    words: set[str]
    warnings: set[str]


@cache
def source() -> Source:
    """Parse all files."""
    found = Source([], set(), set())
    for path in (path for name in ("engine", "schemas") for path in (ROOT / name).rglob("*.py")):
        docstrings = set()
        in_engine = path.is_relative_to(ROOT / "engine")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Expr):
                docstrings.add(node.value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if " " in node.value and node not in docstrings:
                    found.strings.append((f"{path}:{node.lineno}", node.value))
                if in_engine:
                    found.words.add(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and in_engine:
                first = node.args[0] if node.args else None
                warns = any(keyword.arg == "warning" for keyword in node.keywords)
                if isinstance(first, ast.Constant) and (
                    (node.func.id == "Note" and warns) or node.func.id == "tied_notes"
                ):
                    found.warnings.add(str(first.value))
    return found
