"""Units (a datum under one label key each), and counts by unit."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...schemas.arrays import Array
from ...tally.datums import Labels
from ...tally.pixels import Images
from ..encoding import declared_labels
from ..pixels.sides import Side
from .naming import Seen

_DENSE = 1 << 16  # codes that a table of all of them is always made for


class Units(msgspec.Struct, frozen=True):
    """Compared units: datums under one label key each.

    Attributes:
        datum: int32 [u], datum code.
        key: int32 [u], code of the label key.
        keys: names of the keys, ascending.
    """

    datum: Array
    key: Array
    keys: pl.Series

    def of(self, side: Side) -> Array:
        """The unit of each row of a side, int64 [n]."""
        at = np.searchsorted(self._joint(self.datum, self.key), self._joint_of(side))
        return at.astype(np.int64)

    def _joint(self, datum: Array, key: Array) -> Array:
        joint: Array = datum.astype(np.int64) * len(self.keys) + key
        return joint

    def _joint_of(self, side: Side) -> Array:
        return self._joint(side.datum, _codes(side.key, self.keys))

    @staticmethod
    def among(sides: list[Side]) -> Units:
        """The units that some row is of, by datum and key."""
        keys = pl.concat([side.key for side in sides]).unique().sort()
        blank = Units(np.empty(0, np.int32), np.empty(0, np.int32), keys)
        joint = np.unique(np.concatenate([blank._joint_of(side) for side in sides]))
        many = max(1, len(keys))
        return Units((joint // many).astype(np.int32), (joint % many).astype(np.int32), keys)


def _codes(names: pl.Series, among: pl.Series) -> Array:
    if not len(names):
        return np.empty(0, np.int32)
    return names.cast(pl.Enum(among)).to_physical().cast(pl.Int32).to_numpy()


def seen_of(unit: Array, index: Array, pixels: Array, units: Units) -> tuple[Seen, Array]:
    """Return the distinct indices among some counts, and the distinct index of each count.

    Args:
        unit: int64 [n], unit of each count.
        index: int64 [n], its index.
        pixels: int64 [n], its pixels.
    """
    low = int(index.min()) if index.size else 0
    span = (int(index.max()) - low + 1) if index.size else 1
    key = units.key[unit].astype(np.int64)
    joint, inverse = distinct(key * span + (index - low), len(units.keys) * span)
    table = (
        pl.DataFrame({"seen": inverse, "pixels": pixels, "datum": units.datum[unit]})
        .group_by("seen")
        .agg(pl.col("pixels").sum(), datums=pl.col("datum").n_unique(), datum=pl.col("datum").min())
        .sort("seen")
    )
    seen = Seen(
        units.keys.gather(joint // span).alias("label_key"),
        joint % span + low,
        table["pixels"].to_numpy(),
        table["datum"].to_numpy(),
        table["datums"].to_numpy(),
    )
    return seen, inverse


def distinct(codes: Array, span: int) -> tuple[Array, Array]:
    """Return the distinct codes, and the index of each code among them.

    Args:
        codes: int64 [n], from 0.
        span: exclusive upper bound of the codes.

    Returns:
        int64 [m] ascending, and int64 [n].
    """
    if span > max(_DENSE, 8 * codes.size):
        return np.unique(codes, return_inverse=True)
    here = np.zeros(span, bool)
    here[codes] = True
    return np.flatnonzero(here), (np.cumsum(here) - 1)[codes]


def summed(place: Array, values: Array, size: int) -> Array:
    """Sums of values by place, int64 [size]."""
    out = np.zeros(size, np.int64)
    np.add.at(out, place, values)
    return out


def with_keys(labels: Labels, units: Units) -> Labels:
    """Return the labels, with the keys of units without labels added.

    Such a key has rows without values: all its pixels may be ignored, or background.
    """
    names = tuple(pl.Series([*labels.key_names, *units.keys], dtype=pl.String).unique().sort())
    code = {name: i for i, name in enumerate(names)}
    moved = np.array([code[name] for name in labels.key_names], np.int32)
    key = moved[labels.key] if moved.size else labels.key
    return Labels(labels.frame, key, names, labels.bare, labels.frequency)


def images_of(
    labels: Labels, units: Units, pixels: Array, right: Array, overlapping: Array
) -> Images:
    """One row a unit, under the codes that labels give their keys, all of which they have."""
    code = {name: i for i, name in enumerate(labels.key_names)}
    of_key = np.array([code[name] for name in units.keys.to_list()], np.int32)
    key = of_key[units.key] if of_key.size else np.empty(0, np.int32)
    return Images(units.datum, key, pixels, right, overlapping)


def declared_codes(frames: Frames, labels: Labels) -> Array | None:
    """Return a mask of the declared labels, bool [n_labels]; None without any."""
    if frames.labels is None or frames.labels.is_empty():
        return None
    declared = declared_labels(frames, labels.frame)
    key = ["label_key", "label_value"]
    hits = labels.frame.join(
        declared.select(key).with_columns(pl.lit(value=True).alias("declared")),
        on=key,
        how="left",
        maintain_order="left",
    )
    here: Array = hits["declared"].fill_null(value=False).to_numpy()
    return here
