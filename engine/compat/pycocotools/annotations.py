"""Annotations, a dict each: columns of them, and errors that name those that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from ...kernels.keypoints import Points
from ...schemas.arrays import Array
from ...schemas.errors import InputError

Annotation = dict[str, Any]

_SHOWN = 3


def column(rows: Sequence[Annotation], key: str, what: str = "results") -> list[Any]:
    """Return one value of each row.

    Raises:
        InputError: rows without it, or that are not dicts.
    """
    try:
        return list(map(itemgetter(key), rows))
    except (KeyError, TypeError, IndexError):
        pass
    refuse(rows, [not isinstance(row, Mapping) for row in rows], "that are not dicts", what)
    refuse(rows, [key not in row for row in rows], f"without {key!r}", what)
    return [row[key] for row in rows]


def refuse(rows: Sequence[Annotation], wrong: Sequence[bool], why: str, what: str) -> None:
    """Raise if any row is wrong.

    Args:
        wrong: flag per row, [n].
        why: follows their number: ``without ...``, ``whose ...``.
        what: name of the rows in the message.

    Raises:
        InputError: gives the count and the first rows.
    """
    at = [i for i, is_wrong in enumerate(wrong) if is_wrong]
    if at:
        shown = "; ".join(f"row {i}, {_short(rows[i])}" for i in at[:_SHOWN])
        raise InputError(
            f"{what}: {len(at):,} of {len(rows):,} {why}, first (rows count from 0): {shown}."
        )


def _short(row: Any) -> str:
    told = repr(row)
    return told if len(told) <= 100 else f"{told[:97]}..."


def numbers(rows: Sequence[Annotation], values: Sequence[Any], key: str, what: str) -> Array:
    """Convert values to finite numbers, float64 [n].

    Args:
        rows: rows of the values, for errors.
        key: name of the values, for errors.
        what: name of the rows, for errors.

    Raises:
        InputError: rows whose value is not a finite number.
    """
    try:
        found = np.fromiter(values, np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        found = np.array([_number(value) for value in values], np.float64)
    wrong: list[bool] = (~np.isfinite(found)).tolist()
    if any(wrong):
        refuse(rows, wrong, f"whose {key!r} is not a finite number", what)
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def boxes(rows: Sequence[Annotation], what: str) -> Array:
    """x, y, width and height, float64 [n, 4]."""
    given = column(rows, "bbox", what)
    try:
        fours = {*map(len, given)} <= {4}
    except TypeError:
        fours = False
    if not fours:
        short = [not hasattr(box, "__len__") or len(box) != 4 for box in given]
        refuse(rows, short, "whose 'bbox' is not four numbers", what)
    try:
        found = np.fromiter(chain.from_iterable(given), np.float64, 4 * len(given))
    except (TypeError, ValueError, OverflowError):
        found = np.array([_number(value) for box in given for value in box], np.float64)
    found = found.reshape(-1, 4)
    finite = np.isfinite(found)
    if not finite.all():
        odd = [not all(four) for four in finite.tolist()]
        refuse(rows, odd, "whose 'bbox' is not four finite numbers", what)
    return found


def points(rows: Sequence[Annotation], k: int, what: str) -> Points:
    """Return the keypoints of rows.

    Args:
        k: number of keypoints per row.
        what: name of the rows, for errors.

    Raises:
        InputError: rows with another number of keypoints, or numbers that are not finite.
    """
    given = column(rows, "keypoints", what)
    odd = [not hasattr(one, "__len__") or len(one) != 3 * k for one in given]
    refuse(rows, odd, f"whose 'keypoints' are not {k} times x, y and visibility", what)
    try:
        found = np.fromiter(chain.from_iterable(given), np.float64, 3 * k * len(given))
    except (TypeError, ValueError, OverflowError):
        found = np.array([_number(value) for one in given for value in one], np.float64)
    finite = np.isfinite(found.reshape(len(given), 3 * k))
    odd = [not all(row) for row in finite.tolist()] if not finite.all() else []
    refuse(rows, odd, "whose 'keypoints' are not finite", what)
    return Points(np.arange(len(given) + 1, dtype=np.int64) * (3 * k), found)
