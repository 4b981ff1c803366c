"""Messages quoted on the page of errors exist in the package."""

from __future__ import annotations

import re

from sources import ROOT, source


def test_quoted_messages_are_those_of_the_package() -> None:
    """Each quoted part between ellipses is in a string of the code that is not a docstring."""
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "docs" / "messages.md").read_text("utf-8"), re.M)
    quoted = [part.strip(" :") for row in rows for part in re.split("[`…]", row)]
    parts = {part for part in quoted if " " in part and not part.startswith(("(", ","))}
    assert len(parts) > 40
    message = "\0".join(text for _, text in source().strings)
    assert {part for part in parts if part not in message} == set()


def test_all_warnings_are_listed_by_code() -> None:
    """Every note that the code raises to a warning has a row, and every code in a row exists."""
    page = (ROOT / "docs" / "messages.md").read_text("utf-8").split("## All warnings")[1]
    rows = re.findall(r"^\| (`.+?) \|", page.split("\n## ")[0], re.M)
    listed = {code for row in rows for code in re.findall("`(.+?)`", row)}
    of_notes = {"several_models", "spans_not_read", "unread_columns_differ", "mappings_swapped"}
    assert listed >= source().warnings | of_notes | {
        "labels_apart",
        "labels_exchanged",
        "labels_one_sided",
    }
    assert len(source().warnings) > 25
    assert listed <= source().words | {"datums_without_predictions"}  # composed of the side's name
