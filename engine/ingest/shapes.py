"""Shapes: groups of a contract's columns with common checks, such as boxes or a pair of labels.

A contract in ``schemas.tables`` names its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from . import box_checks, ends, label_maps, pairs, ranked, references, segments, vectors, verdicts
from .boxes import BOX_NAMES, LENGTH, Boxes
from .finding import Finder
from .geometry_columns import GEOMETRY_NAMES, check_first, check_last, find_objects, has_objects

if TYPE_CHECKING:
    from .checks import Check


def _nothing(check: Check, seen: Mapping[str, Any]) -> None:
    """A shape without a check of its own."""


class Shape(msgspec.Struct, frozen=True):
    """Group of columns with common checks.

    Attributes:
        together: canonical columns found by ``find`` and named together.
        find: recognises them; problems go to the finder's list.
        present: whether a table has them, for inferring the task.
        first: checked before nulls.
        helpers: columns that only checks need, and the word for each in messages.
        low_hint: question if one of the columns is too low.
    """

    together: tuple[str, ...] = ()
    find: Callable[[Finder, str | None, str | None], Boxes] | None = None
    present: Callable[[Finder], bool] | None = None
    screen: Callable[[pl.DataFrame], list[pl.Expr]] = lambda frame: []
    first: Callable[[Check, Mapping[str, Any]], None] = _nothing
    last: Callable[[Check, Mapping[str, Any]], None] = _nothing
    helpers: Mapping[str, str] = msgspec.field(default_factory=dict)
    low_hint: str = ""


SHAPES: dict[str, Shape] = {
    "": Shape(),
    "boxes": Shape(
        together=(*BOX_NAMES, "bbox", *GEOMETRY_NAMES, "keypoints", "box3d"),
        find=find_objects,
        present=has_objects,
        screen=box_checks.screen,
        first=check_first,
        last=check_last,
        helpers={LENGTH: "length"},
        low_hint=" (are the boxes corners rather than extents?)",
    ),
    "pixels": Shape(first=label_maps.check_rows),
    "segments": Shape(first=segments.check_segments),
    "pair": Shape(screen=pairs.screen, first=pairs.check_lists),
    "sets": Shape(first=pairs.check_sets),
    "ranked": Shape(first=ranked.check_order),
    "lists": Shape(first=ranked.check_items),
    "verdicts": Shape(last=verdicts.check_verdicts),
    "references": Shape(first=references.check_references),
    "vectors": Shape(first=vectors.check_vectors),
    "values": Shape(first=vectors.check_vectors, last=ends.check_ends),
}
"""Shape by the name a contract gives it."""
