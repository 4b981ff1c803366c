"""Text files with an object a line and blanks between fields."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .format import broken, text_of

_SHOWN = 60


def lines_of(file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number, from 1, and the fields of every non-empty line.

    Raises:
        ReadError: the file cannot be read, or is not UTF-8.
    """
    for number, line in enumerate(text_of(file).splitlines(), 1):
        fields = line.split()
        if fields:
            yield number, fields


def numbers_in(file: str, line: int, fields: list[str]) -> list[float]:
    """Parse fields as finite numbers.

    Raises:
        ReadError: another value; names file and line.
    """
    try:
        values = [float(field) for field in fields]
    except ValueError:
        values = [math.nan]
    if all(map(math.isfinite, values)):
        return values
    odd = next(field for field in fields if not is_number(field))
    raise broken(file, line, f"{odd!r} is not a number: {shown(fields)}", "Correct the line.")


def whole_in(file: str, line: int, fields: list[str]) -> list[int]:
    """Parse fields as whole numbers.

    Raises:
        ReadError: another value; names file and line.
    """
    values = numbers_in(file, line, fields)
    for field, value in zip(fields, values, strict=True):
        if not value.is_integer():
            raise broken(
                file, line, f"{field!r} is not a whole number: {shown(fields)}", "Correct the line."
            )
    return [int(value) for value in values]


def is_number(field: str | bytes) -> bool:
    """Return whether a field is a finite number."""
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def shown(fields: list[str]) -> str:
    """A line for a message, shortened."""
    text = " ".join(fields)
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
