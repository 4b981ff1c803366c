"""What detection tools write that is not read here, told by name and with what to bring instead."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_TABLE = (
    "Bring the files of all images into one table with datum_id (the image), label_value (the"
    " class), the box in pixels, and score for predictions"
)
_SHARES = (-0.5, 1.5)  # where coordinates of YOLO lie, however far a box reaches over the edge


def foreign(head: bytes) -> str | None:
    """What a file is by its first bytes, and what to bring instead; None where nothing tells.

    Args:
        head: its first bytes.
    """
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"<":
        if b"<annotation>" in start or b"<annotation " in start:
            return (
                "is an annotation file of Pascal VOC (XML, a file an image), which is not read."
                f" {_TABLE}; xmin, ymin, xmax, ymax may stand as they are."
            )
        return f"is XML, which is not read. {_TABLE}."
    return _of_text(start.split(b"\n", 1)[0].strip())


def _of_text(line: bytes) -> str | None:
    """A line of words and numbers with spaces between: one object of YOLO, VOC and their kin."""
    fields = line.split(b" ")
    numbers = [_number(field) for field in fields[1:]]
    if len(numbers) < 4 or None in numbers:
        return None
    shares = all(_SHARES[0] <= number <= _SHARES[1] for number in numbers if number is not None)
    if shares and fields[0].isdigit():
        return (
            "looks like a label file of YOLO (a class and numbers, one object a line), which is not"
            f" read. {_TABLE}; its centres and extents are shares of the image, so multiply x by"
            " its width and y by its height."
        )
    if len(numbers) in (4, 5):
        return (
            "looks like a text file of detections as Pascal VOC's and kindred tools have them (an"
            " image or a class, a score and four corners, one object a line), which is not read."
            f" {_TABLE}."
        )
    return None


def _number(field: bytes) -> float | None:
    try:
        number = float(field)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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
