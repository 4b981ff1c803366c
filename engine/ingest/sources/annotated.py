"""Annotations as a source of rows."""

from __future__ import annotations

import polars as pl

from ..annotations.format import Format, Look
from ..problems import count_of
from .source import Source


def open_annotations(format_: Format, look: Look) -> Source:
    """Read a format as a source, with a note on it.

    Raises:
        ReadError: a file does not fit the format; names file and line.
        InputError: the files contradict each other.
    """
    read = format_.read(look)
    rows, images = read.rows.height, read.datums.height
    own = read.rows.select(pl.col(format_.datum).alias("datum_id"))
    bare = images - read.datums.join(own, on="datum_id", how="semi").height
    tracks = format_.datum == "sequence"
    objects = count_of(rows, "box", "boxes") if tracks else count_of(rows, "object")
    datums = count_of(images, "sequence" if tracks else "image")
    empty = f", {bare:,} without any" if bare else ""
    why = f", since {read.evidence}" if read.evidence else ""
    said = f"{look.given} is read as {format_.title}{why}: {objects} in {datums}{empty}."
    return Source(
        read.rows.lazy(),
        f"{format_.title} {look.given}",
        "tracks" if tracks else "annotations",
        look.of(*format_.suffixes),
        datums=read.datums,
        labels=read.labels,
        notes=(("format_recognised", said, rows), *read.notes),
        warnings=read.warnings,
        shares=read.shares,
        firsts=read.firsts,
        points=read.points,
        pixels=read.pixels,
        found=None if read.found is None else read.found.lazy(),
    )
