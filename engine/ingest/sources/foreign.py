"""What detection tools write that is not read here, told by name and with what to bring instead."""

from __future__ import annotations


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
