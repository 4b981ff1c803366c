"""What the columns of a contract make together, by name: boxes, a pair of labels.

A contract in ``schemas.tables`` names its shape; finding columns and checking rows ask the shape
for what single columns cannot tell.
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
    """What a table's columns make together.

    Attributes:
        together: canonical columns that are found by ``find`` and spoken of together.
        find: recognises them; what is wrong goes to the finder's problems.
        present: whether a table has them, for inferring the task.
        screen: aggregates that are conspicuous where a row is wrong.
        first: checked before nulls.
        last: checked after all single columns.
        helpers: columns that only checks need, and the word for each in messages.
        low_hint: what to ask where one of the columns is too low.
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
