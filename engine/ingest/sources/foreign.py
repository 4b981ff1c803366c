"""What detection tools write that is not read here, told by name and with what to bring instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def foreign(head: bytes) -> str | None:
    """What a file is by its first bytes, and what to bring instead; None where nothing tells.

    Args:
        head: its first bytes.
    """
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"<":
        return None
    return (
        "is XML, and neither an annotation of Pascal VOC (<annotation>) nor of CVAT"
        " (<annotations> with images or tracks). Bring one of these, or a table."
    )


def foreign_object(thing: Any) -> str | None:
    """What an object in memory is that is no table, and the way out; None where nothing tells."""
    kind = type(thing)
    if kind.__name__ == "COCO" and isinstance(getattr(thing, "dataset", None), Mapping):
        return (
            f"a {kind.__module__.split('.')[0]}.COCO object is no table. Give the path of the file"
            " it was made from."
        )
    if (
        isinstance(thing, Mapping)
        and "annotations" in thing
        and {*thing} <= {"images", "annotations", "categories", "info", "licenses", "type"}
    ):
        return (
            "a dict with 'annotations' is COCO's JSON, which is read from files. Write it with"
            " json.dump and give the path; results are an array in a file of their own."
        )
    return None
