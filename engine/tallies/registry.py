"""Stable names of stored structs, and the classes they refer to.

A file names structs as ``classification.units/1``: name and version, declared at the class
(:func:`stored_as`). :data:`MODULES` maps names to modules, so that reading a tally imports only its
task. Files never name import paths. After renaming a module or class, change only :data:`MODULES`;
fields that were renamed or dropped go into ``changes``, and new fields have a default. Raise the
version only if that is not enough, and set ``oldest`` to the oldest readable one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import msgspec

K = TypeVar("K", bound=type[msgspec.Struct])
Changes = Mapping[int, Mapping[str, str | None]]

MODULES = {
    "tallies.counts": (
        "counts.pairs",
        "pixels.areas",
        "pixels.surfaces",
        "pixels.images",
        "pixels",
        "segments.rows",
        "segments",
        "tracks.rows",
        "tracks",
        "preferences.counts",
    ),
    "tallies.datums": ("datums", "labels"),
    "tallies.paired_values": ("regression.rows",),
    "tallies.ranked": ("detection.confusion", "ranked.variants", "ranked"),
    "tallies.sorted_scores": ("bucket.scores",),
    "tallies.stats": ("values.column", "values", "bucket.datums"),
    "tallies.stored": ("bucket.head", "bucket.rows"),
    "tallies.units": (
        "classification.grid",
        "classification.facts",
        "classification.units",
        "classification.scores",
    ),
    "tasks.classification.tallies": ("classification.run",),
    "tasks.detection.detailed": ("detection.examples",),
    "tasks.detection.errors": ("detection.errors",),
    "tasks.detection.point_counts": ("detection.keypoints",),
    "tasks.detection.tallies": ("detection.run",),
    "tasks.panoptic.spec": ("panoptic.run",),
    "tasks.preferences.spec": ("preferences.run",),
    "tasks.regression.spec": ("regression.run",),
    "tasks.segmentation.spec": ("segmentation.run",),
    "tasks.tracking.spec": ("tracking.run",),
    "tasks.per_datum": ("values.run",),
}
"""Module -> names of the stored structs that it declares."""

_BEFORE = {
    "tally.counted_rows:Crossings": "counts.pairs",
    "tally.counts:Counts": "detection.confusion",
    "tally.datums:Datums": "datums",
    "tally.datums:Labels": "labels",
    "tally.grid:Grid": "classification.grid",
    "tally.paired_rows:Paired": "regression.rows",
    "tally.pixels:Areas": "pixels.areas",
    "tally.pixels:Surfaces": "pixels.surfaces",
    "tally.pixels:Images": "pixels.images",
    "tally.pixels:Pixels": "pixels",
    "tally.ranked:Variants": "ranked.variants",
    "tally.ranked:Ranked": "ranked",
    "tally.segments:SegmentRows": "segments.rows",
    "tally.segments:Segments": "segments",
    "tally.stats:Column": "values.column",
    "tally.stats:Stats": "values",
    "tally.tracks:TrackRows": "tracks.rows",
    "tally.tracks:Tracks": "tracks",
    "tally.units:Facts": "classification.facts",
    "tally.units:Units": "classification.units",
    "tally.units:Scored": "classification.scores",
    "tasks.classification.tallies:Tallies": "classification.run",
    "tasks.detection.errors:Errors": "detection.errors",
    "tasks.detection.examples:Examples": "detection.examples",
    "tasks.detection.point_counts:PointCounts": "detection.keypoints",
    "tasks.detection.tallies:Tallies": "detection.run",
    "tasks.panoptic.tallies:Tallies": "panoptic.run",
    "tasks.regression.tallies:Tallies": "regression.run",
    "tasks.segmentation.tallies:Tallies": "segmentation.run",
    "tasks.stats_views:StatsTallies": "values.run",
    "tasks.tracking.tallies:Tallies": "tracking.run",
}
"""Module and class -> name. Files written until 28 November 2026 name version 1 of a struct so."""

_PACKAGE = __name__.removesuffix("tallies.registry")
_HOMES = {name: module for module, names in MODULES.items() for name in names}


class UnknownStructError(LookupError):
    """A struct in a file that this version does not have, or not with these fields."""


class Stored(NamedTuple):
    """A stored struct.

    Attributes:
        kind: the class.
        version: current version of its fields.
        oldest: oldest readable version.
        changes: version -> fields up to that version that were renamed or (None) are ignored.
    """

    kind: type[msgspec.Struct]
    version: int
    oldest: int
    changes: Changes

    def build(self, written: str, fields: Mapping[str, Any]) -> msgspec.Struct:
        """Create the struct from the fields of a file.

        Raises:
            UnknownStructError: a field is missing or unknown.
        """
        version = int(written.partition("/")[2] or 1)
        names: dict[str, str | None] = {name: name for name in fields}
        for last in sorted(self.changes):
            if version <= last:
                change = self.changes[last]
                names = {name: now and change.get(now, now) for name, now in names.items()}
        renamed = {now: fields[name] for name, now in names.items() if now}
        try:
            return self.kind(**renamed)
        except TypeError as error:
            raise UnknownStructError(f"{written}: {error}") from error


DECLARED: dict[str, Stored] = {}
"""Structs by name, of the modules that are imported."""
_WRITTEN: dict[type, str] = {}


def stored_as(
    written: str, *, oldest: int | None = None, changes: Changes | None = None
) -> Callable[[K], K]:
    """Declare the name and version that a struct has in files.

    Args:
        written: such as ``classification.units/2``.
        oldest: oldest readable version; only the current one by default.
        changes: version -> fields up to that version that were renamed or (None) are ignored.

    Raises:
        ValueError: another class has the name.
    """
    name, _, version = written.partition("/")

    def declare(kind: K) -> K:
        other = DECLARED.get(name)
        if other is not None and other.kind.__module__ != kind.__module__:
            raise ValueError(f"{name} is the stored name of {other.kind.__qualname__}")
        lowest = int(version) if oldest is None else oldest
        DECLARED[name] = Stored(kind, int(version), lowest, changes or {})
        _WRITTEN[kind] = written
        return kind

    return declare


def written_name(kind: type[msgspec.Struct]) -> str:
    """Return the name and version of a struct.

    Raises:
        TypeError: it was not declared with :func:`stored_as`.
    """
    try:
        return _WRITTEN[kind]
    except KeyError:
        raise TypeError(f"a tally cannot contain {kind.__name__}: it has no stored name") from None


def struct_of(written: str) -> Stored:
    """Return the struct that a file names; its module is imported only for known names.

    Args:
        written: name and version, or module and class as in files until 28 November 2026.

    Raises:
        UnknownStructError: no such name, or an unreadable version.
    """
    before = _BEFORE.get(written.removeprefix("evalengine."))
    name, _, version = (written if before is None else f"{before}/1").partition("/")
    if name not in _HOMES or not version.isdecimal():
        raise UnknownStructError(written)
    if name not in DECLARED:
        import_module(f"{_PACKAGE}{_HOMES[name]}")
    result = DECLARED[name]
    if not result.oldest <= int(version) <= result.version:
        raise UnknownStructError(written)
    return result
