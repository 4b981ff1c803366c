"""Stable names of stored structs, and the code that a name stands for.

A file names structs as ``classification.units/1``: name and version. The name is declared at the
class (:func:`stored_as`); :data:`MODULES` says which module to import for it, so that reading one
task's tally imports that task only. Nothing in a file is ever imported by a path.

After a module or class is renamed, :data:`MODULES` changes, and nothing else. After fields are
renamed, removed or added, the version at the class is raised, and ``oldest`` says which versions
are still read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import msgspec

K = TypeVar("K", bound=type[msgspec.Struct])

MODULES = {
    "tally.counted_rows": ("counts.pairs",),
    "tally.counts": ("detection.confusion",),
    "tally.datums": ("datums", "labels"),
    "tally.grid": ("classification.grid",),
    "tally.paired_rows": ("regression.rows",),
    "tally.parts": ("bucket.head", "bucket.rows"),
    "tally.pixels": ("pixels.areas", "pixels.surfaces", "pixels.images", "pixels"),
    "tally.ranked": ("ranked.variants", "ranked"),
    "tally.scored_parts": ("bucket.scores",),
    "tally.segments": ("segments.rows", "segments"),
    "tally.stats": ("values.column", "values"),
    "tally.stats_parts": ("bucket.datums",),
    "tally.tracks": ("tracks.rows", "tracks"),
    "tally.units": ("classification.facts", "classification.units", "classification.scores"),
    "tasks.classification.tallies": ("classification.run",),
    "tasks.detection.errors": ("detection.errors",),
    "tasks.detection.examples": ("detection.examples",),
    "tasks.detection.point_counts": ("detection.keypoints",),
    "tasks.detection.tallies": ("detection.run",),
    "tasks.panoptic.tallies": ("panoptic.run",),
    "tasks.regression.tallies": ("regression.run",),
    "tasks.segmentation.tallies": ("segmentation.run",),
    "tasks.stats_views": ("values.run",),
    "tasks.tracking.tallies": ("tracking.run",),
}
"""Module -> names of the stored structs that it declares."""

BEFORE = {
    "tally.counted_rows:Crossings": "counts.pairs",
    "tally.counts:Counts": "detection.confusion",
    "tally.datums:Datums": "datums",
    "tally.datums:Labels": "labels",
    "tally.grid:Grid": "classification.grid",
    "tally.paired_rows:Paired": "regression.rows",
    "tally.pixels:Areas": "pixels.areas",
    "tally.pixels:Images": "pixels.images",
    "tally.pixels:Pixels": "pixels",
    "tally.pixels:Surfaces": "pixels.surfaces",
    "tally.ranked:Ranked": "ranked",
    "tally.ranked:Variants": "ranked.variants",
    "tally.segments:SegmentRows": "segments.rows",
    "tally.segments:Segments": "segments",
    "tally.stats:Column": "values.column",
    "tally.stats:Stats": "values",
    "tally.tracks:TrackRows": "tracks.rows",
    "tally.tracks:Tracks": "tracks",
    "tally.units:Facts": "classification.facts",
    "tally.units:Scored": "classification.scores",
    "tally.units:Units": "classification.units",
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
"""Module and class, as files written until 28 November 2026 name structs -> name, version 1."""

_PACKAGE = __name__.removesuffix("tally.registry")
_HOMES = {name: module for module, names in MODULES.items() for name in names}


class UnknownStructError(LookupError):
    """A struct in a file that this version does not have, or not with these fields."""


class Stored(NamedTuple):
    """A stored struct.

    Attributes:
        kind: the class.
        version: of its fields, as it is written.
        oldest: the oldest version that is read.
        renamed: fields of older files -> their name today.
        removed: fields of older files that are ignored.
    """

    kind: type[msgspec.Struct]
    version: int
    oldest: int
    renamed: Mapping[str, str]
    removed: Collection[str]

    def made(self, written: str, fields: Mapping[str, Any]) -> msgspec.Struct:
        """Create the struct from the fields of a file.

        Raises:
            UnknownStructError: a field is missing or unknown.
        """
        given = {
            self.renamed.get(name, name): value
            for name, value in fields.items()
            if name not in self.removed
        }
        try:
            return self.kind(**given)
        except TypeError as error:
            raise UnknownStructError(f"{written}: {error}") from error


DECLARED: dict[str, Stored] = {}
"""Structs by name, of the modules that are imported."""
_WRITTEN: dict[type, str] = {}


def stored_as(
    written: str,
    *,
    oldest: int | None = None,
    renamed: Mapping[str, str] | None = None,
    removed: Collection[str] = (),
) -> Callable[[K], K]:
    """Declare the name and version that a struct has in files.

    Args:
        written: such as ``classification.units/2``.
        oldest: the oldest version that is still read; only this one by default.
        renamed: fields of older files -> their name today.
        removed: fields of older files that are ignored.
    """
    name, _, version = written.partition("/")

    def declare(kind: K) -> K:
        lowest = int(version) if oldest is None else oldest
        DECLARED[name] = Stored(kind, int(version), lowest, renamed or {}, removed)
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
        raise TypeError(f"a tally cannot hold {kind.__name__}: it has no stored name") from None


def struct_of(written: str) -> Stored:
    """Find the struct that a file names, importing its module only if the name is known.

    Args:
        written: name and version, or module and class as files until 28 November 2026 have them.

    Raises:
        UnknownStructError: no such name, or a version that is not read.
    """
    before = BEFORE.get(written.removeprefix("evalengine."))
    name, _, version = (written if before is None else f"{before}/1").partition("/")
    if name not in _HOMES or not version.isdecimal():
        raise UnknownStructError(written)
    if name not in DECLARED:
        import_module(f"{_PACKAGE}{_HOMES[name]}")
    found = DECLARED[name]
    if not found.oldest <= int(version) <= found.version:
        raise UnknownStructError(written)
    return found
