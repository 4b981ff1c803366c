"""Two sides of label map files: matching images and pixel codings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from evalengine.geometry.grids import opened
from evalengine.schemas.contract import GROUND_TRUTHS, LABELS, PREDICTIONS
from evalengine.schemas.errors import InputError
from evalengine.schemas.options import Options
from evalengine.schemas.wording import option

from ..schemas.arrays import Array
from .annotations.format import broken, text_of
from .id_forms import written
from .label_map_sets import (
    COLOUR_MAP,
    COLOURED,
    GREY,
    LISTED,
    MAPS,
    OWN_COLOURS,
    SETS,
    VOID,
    LabelSet,
    colour_of,
    numbers_of,
    packed,
)
from .mismatch import around
from .problems import count_of
from .sources.source import Source

SET = "label_set"
"""The fact of a table of labels that names the data set it is of."""
_LOOKED_AT = 8  # images a side
_PIXELS = 1 << 16  # of an image, evenly spread
_COLOURS = 256  # more of them make a picture
_BANDS = (3, 4)  # of pictures in colours
_TRAINED = "TrainIds"


def open_set(name: str) -> Source | None:
    """Return the labels of a known data set; None if the name is unknown, or that of a file."""
    found = SETS.get(name)
    if found is None or not found.labels or os.path.exists(name):
        return None
    rows = {"label_value": found.labels, "index": range(1, len(found.labels) + 1)}
    return Source(pl.LazyFrame(rows), f"the labels of {found.title}", facts={SET: name})


class _Side:
    """Files of one side, of which a few are inspected.

    Args:
        table: ``datum_id`` and ``raster``.
    """

    def __init__(self, role: str, source: Source, table: pl.DataFrame) -> None:
        self.role, self.source, self.table = role, source, table
        self.some: list[str] = []
        """Ids of the images that are looked into."""

    @property
    def called(self) -> str:
        """Its role in words."""
        return self.role.replace("_", " ")

    @property
    def named(self) -> bool:
        """Return whether its single file was given directly, not found in a folder or by a glob."""
        given, found = self.source.description, self.source.files[0]
        return os.path.basename(given) == os.path.basename(found)

    @cached_property
    def maps(self) -> dict[str, Array]:
        """Some pixels of images by id: indices, or packed colours; unreadable ones aside."""
        files = dict(self.table.iter_rows())
        found = {}
        for one in self.some:
            try:
                with opened(files[one]) as dataset:
                    pixels = dataset.read()
            except OSError:
                continue  # told of once all are read
            if pixels.dtype.kind not in "iub":
                continue
            step = max(1, math.isqrt(pixels[0].size // _PIXELS))
            some = pixels[:, ::step, ::step].astype(np.int64)
            if len(some) in _BANDS:
                some[0] |= some[1] << 8 | some[2] << 16
            found[one] = some[0]
        return found

    @cached_property
    def _header(self) -> tuple[int, dict[int, tuple[int, ...]]]:
        """Bands of the first file that opens, and its palette."""
        for one in self.some:
            try:
                with opened(dict(self.table.iter_rows())[one]) as dataset:
                    kinds = dataset.colorinterp
                    return dataset.count, dataset.colormap(1) if kinds[0].name == "palette" else {}
            except OSError:
                continue
        return 1, {}

    @property
    def picture(self) -> bool:
        """Return whether its files have colour bands."""
        return self._header[0] in _BANDS

    @property
    def spread(self) -> bool:
        """Return whether its files have Pascal VOC's palette."""
        palette = self._header[1]
        return len(palette) > 1 and all(
            packed(palette[i][:3]) == COLOUR_MAP[i] for i in (1, 2, 15, 255) if i in palette
        )

    @cached_property
    def values(self) -> Array:
        """Distinct values of the pixels looked at."""
        seen = [pl.Series(pixels.ravel()).unique() for pixels in self.maps.values()]
        return pl.concat([pl.Series([], dtype=pl.Int64), *seen]).unique().sort().to_numpy()

    @property
    def grey(self) -> bool:
        """Return whether its pictures have three equal bands."""
        return self.picture and bool((self.values % packed((1, 1, 1)) == 0).all())

    def codings(self, known: LabelSet) -> list[str]:
        """Return the codings of a set that contain all observed values."""
        names = [one.name for one in known.codings if one.colours == self.picture]
        if self.grey:
            names += [f"{one.name}-{GREY}" for one in known.codings if not one.colours]
        return [name for name in names if (numbers_of(name, self.values, {}) >= VOID).all()]

    def labelled(self, coding: str) -> int:
        """Count the observed values that are labels in a coding."""
        return int((numbers_of(coding, self.values, {}) != VOID).sum())


def read_alike(sources: dict[str, Source], options: Options) -> None:
    """Unify the image names of both sides, and detect the coding of their pixels.

    Known data sets are recognised by file names, palettes and colours; the coding of a side by its
    values. The user's labels take precedence.

    Args:
        sources: by role; modified in place.
        options: with an ignored or background index, indices are read unchanged.

    Raises:
        InputError: pictures with unknown colours.
        ReadError: a list of labels next to the files that cannot be read.
    """
    sides = [
        _Side(role, sources[role], sources[role].frame.collect())
        for role in (GROUND_TRUTHS, PREDICTIONS)
        if role in sources and sources[role].format == "raster"
    ]
    if not sides:
        return
    swapped = _swapped(sides)
    warned = _same_images(sides)
    if LABELS not in sources and any(side.picture for side in sides):
        listed = _listed(sides)
        if listed is not None:
            sources[LABELS] = listed
    labels = sources.get(LABELS)
    forced = SETS.get(labels.facts.get(SET, "")) if labels is not None else None
    raw = forced is None and (
        labels is not None or options.ignore_index is not None or options.background is not None
    )
    known = forced or _recognised(sides)
    coloured = labels is not None and "color" in labels.frame.collect_schema()
    said = ""
    if known is None or raw:
        codings = {side.role: _plain(side, coloured) for side in sides}
        if known is not None and known.labels and labels is None:
            said = (
                f"these seem to be label maps of {known.title}, and indices are read as they are,"
                f" since ignore_index or background says so. {option('labels', known.name)} names"
                " its labels."
            )
    else:
        codings, said = _chosen(known, sides)
        if known.labels and labels is None:
            sources[LABELS] = open_set(known.name)  # type: ignore[assignment]
    for side in sides:
        table, coding = side.table, codings[side.role]
        if coding:
            table = table.with_columns(raster_coding=pl.lit(coding))
        side.source.frame = table.lazy()
        sources[side.role] = side.source
    if said:
        told = ("label_maps_recognised", said, sides[0].table.height)
        sides[0].source.notes = (*sides[0].source.notes, told)
    sides[0].source.warnings = (*sides[0].source.warnings, *swapped, *warned)


def _same_images(sides: list[_Side]) -> list[tuple[str, str, int | None]]:
    """Assign common ids to the images of both sides, and select the inspected images.

    Returns:
        A warning if two files are compared that were not given directly.
    """
    warned: list[tuple[str, str, int | None]] = []
    names = [side.table["datum_id"].to_list() for side in sides]
    for known in SETS.values():
        images = [[known.image(name.rsplit("/", 1)[-1]) for name in own] for own in names]
        if all(None not in own and len({*own}) == len(own) for own in images):
            names = images
            break
    if len(names) == 2 and not {*names[0]} & {*names[1]}:
        if all(len(own) == 1 for own in names):
            if not all(side.named for side in sides):
                warned = [_lone_pair(sides)]
            names = [names[0], names[0]]
        names = _without_ends(names) or names
    for side, own in zip(sides, names, strict=True):
        side.table = side.table.with_columns(pl.Series("datum_id", own, dtype=pl.String))
    common = sorted({*names[0]} & {*names[-1]}) or names[0]
    every = max(1, len(common) // _LOOKED_AT)
    for side, own in zip(sides, names, strict=True):
        there = common if common[0] in own else own
        side.some = there[::every][:_LOOKED_AT]
    return warned


def _swapped(sides: list[_Side]) -> list[tuple[str, str, int | None]]:
    """Return a warning if only the predictions' files are named like ground truths."""
    if len(sides) < 2:
        return []
    truths, found = (side.table["raster"].to_list() for side in sides)
    signs = [(f"*{end}", _ends_in(end)) for end in MAPS]
    signs += [(f"{folder}/", _lies_in(folder)) for folder in _OF_TRUTHS]
    for shown, says in signs:
        if all(map(says, found)) and not any(map(says, truths)):
            said = (
                f"the label maps of the predictions are called {shown}, as data sets call their"
                f" ground truths, and those of the ground truths are not ({truths[0]!r}): are the"
                " two sides swapped? The predictions come first."
            )
            return [("tables_swapped", said, None)]
    return []


_OF_TRUTHS = ("gtFine", "gtCoarse", "SegmentationClass", "SegmentationObject")
"""Folders in which data sets keep the label maps of their ground truths."""


def _ends_in(end: str) -> Callable[[str], bool]:
    return lambda file: os.path.splitext(os.path.basename(file))[0].endswith(end)


def _lies_in(folder: str) -> Callable[[str], bool]:
    return lambda file: folder in os.path.dirname(os.path.abspath(file)).split(os.sep)


def _lone_pair(sides: list[_Side]) -> tuple[str, str, int | None]:
    """The warning of one file on each side, of two names, that were found in folders."""
    truth, found = (side.table["raster"][0] for side in sides)
    said = (
        f"each side holds one label map, and their names differ: {found!r} of the predictions is"
        f" compared with {truth!r} of the ground truths as if both were of one image. If they are,"
        " name the files instead of their folders."
    )
    return "one_file_each", said, 1


def _without_ends(names: list[list[str]]) -> list[list[str]] | None:
    """Remove common prefixes and suffixes of each side, if the names then match."""
    pattern = around(*(pl.Series(own) for own in names))
    if pattern is None:
        return None
    cut = [
        pl.Series("id", own).to_frame().select(written(pl.col("id"), [pattern]))["id"].to_list()
        for own in names
    ]
    if any(len({*own}) < len(own) for own in cut):
        return None
    met = len({*cut[0]} & {*cut[1]})
    return cut if 2 * met >= min(map(len, cut)) else None


def _recognised(sides: list[_Side]) -> LabelSet | None:
    """The set that files are of, by their names, else by colours or the ground truths' palette."""
    names = [name for side in sides for name in side.table["datum_id"].to_list()]
    for known in SETS.values():
        named = known.stem and all(map(known.image, names))
        if named and (sides[0].spread or not known.spread) and all(map(_has(known), sides)):
            return known
    pictures = [side for side in sides if side.picture and not side.grey]
    if pictures:
        return next((one for one in _BY_COLOURS if all(map(_has(one), sides))), None)
    return COLOURED if sides[0].spread and all(map(_has(COLOURED), sides)) else None


_BY_COLOURS = (SETS["cityscapes"], COLOURED)


def _has(known: LabelSet) -> Any:
    return lambda side: bool(side.codings(known))


def _plain(side: _Side, coloured: bool) -> str:
    """Return the coding of a side of an unknown data set.

    Args:
        coloured: whether a table of labels has colours.

    Raises:
        InputError: unknown colours.
    """
    if not side.picture:
        return ""
    if coloured:
        return OWN_COLOURS
    if side.codings(COLOURED):
        return COLOURED.codings[1].name
    if side.grey:
        return GREY
    n = side.values.size
    palette = {*COLOURED.codings[1].of}
    odd = [one for one in side.values.tolist() if one not in palette]
    first = ", ".join(f"({one & 255}, {one >> 8 & 255}, {one >> 16})" for one in odd[:3])
    file = dict(side.table.iter_rows())[side.some[0]]
    why = (
        f"They have {n:,} colours: are they pictures rather than label maps, resized with"
        " interpolation, or once JPEG?"
        if n > _COLOURS
        else "If they are the colours of labels, say so:"
    )
    raise InputError(
        f"{side.called}: {file!r} holds colours ({count_of(len(odd), 'colour')} of no known"
        f" palette, first {first}), and label maps hold indices of labels. {why}"
        f" {option('labels')} with a table of label_value and color (#804080 or 128,64,128), or"
        f" {LISTED} beside the folder, as CVAT writes it, with lines such as road:128,64,128.",
        code="values_unlabelled",
        side=side.role,
        count=len(odd),
        values=odd[:3],
    )


def _chosen(known: LabelSet, sides: list[_Side]) -> tuple[dict[str, str], str]:
    """Return the coding of each side of a known set, and a note."""
    codings: dict[str, str] = {}
    evidence = ""
    for side in sides:
        fitting = side.codings(known)
        if not fitting:  # told with the values, once all are counted
            fitting = [one.name for one in known.codings if one.colours == side.picture]
        if side.role == GROUND_TRUTHS or len(fitting) == 1:
            files = side.table["raster"].head(1).to_list()
            trained = [name for name in fitting if "train" in name and _TRAINED in files[0]]
            codings[side.role] = [*trained, *fitting, known.codings[0].name][0]
            continue
        shares = {name: _agreement(sides, codings, name) for name in fitting}
        best = max(fitting, key=lambda name: (shares[name], side.labelled(name)))
        codings[side.role] = best
        shown = ", ".join(f"{_title(name)} {share:.1%}" for name, share in shares.items())
        evidence = f" (pixels of {count_of(len(side.some), 'image')} that agree: {shown})"
    read = "; ".join(
        f"{role.replace('_', ' ')} hold {_title(coding)}"
        + (evidence if role == PREDICTIONS else "")
        for role, coding in codings.items()
    )
    what = f"labels of {known.title}" if known.labels else f"indices in {known.title}"
    return codings, (
        f"label maps are read as {what}: {read}. Void counts nowhere. {option('ignore_index', 255)}"
        f" or {option('labels')} reads indices as they are."
    )


def _title(coding: str) -> str:
    base = coding.removesuffix(f"-{GREY}")
    one = next(c for known in SETS.values() for c in known.codings if c.name == base)
    return one.title + (" as grey pictures" if base != coding else "")


def _agreement(sides: list[_Side], codings: dict[str, str], coding: str) -> float:
    """The share of labelled pixels looked at that agree, if predictions have a coding."""
    if GROUND_TRUTHS not in codings:
        return 0.0
    agreeing = counted = 0
    for one, true in sides[0].maps.items():
        found = sides[1].maps.get(one)
        if found is None or found.shape != true.shape:
            continue
        pairs = pl.DataFrame({"true": true.ravel(), "found": found.ravel()})
        pairs = pairs.group_by("true", "found").len()
        truth = numbers_of(codings[GROUND_TRUTHS], pairs["true"].to_numpy(), {})
        there, n = truth != VOID, pairs["len"].to_numpy()
        agreeing += int(
            n[there & (truth == numbers_of(coding, pairs["found"].to_numpy(), {}))].sum()
        )
        counted += int(n[there].sum())
    return agreeing / counted if counted else 0.0


def _listed(sides: list[_Side]) -> Source | None:
    """Read the labels and colours of a list next to the files, as CVAT writes it.

    Raises:
        ReadError: an invalid line.
    """
    for side in sides:
        folder = os.path.dirname(side.table["raster"][0])
        for place in (folder, os.path.dirname(folder)):
            file = os.path.join(place, LISTED)
            if os.path.isfile(file):
                return _read_list(file)
    return None


def _read_list(file: str) -> Source:
    rows = []
    for number, line in enumerate(text_of(file).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, sign, rest = line.partition(":")
        colour = rest.split(":")[0]
        if not sign or colour_of(colour) is None:
            raise broken(file, number, f"{line[:60]!r} is not a label and colour",
                         "Write lines such as road:128,64,128.")  # fmt: skip
        rows.append({"label_value": name, "color": colour})
    said = f"labels and their colours are those of {file}."
    return Source(pl.LazyFrame(rows), file, notes=(("labels_listed", said, len(rows)),))
