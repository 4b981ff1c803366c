"""Labels that lie on each other and are called otherwise: which is which, and what mends it."""

from __future__ import annotations

import polars as pl

from ..ingest.problems import Note
from ..schemas.wording import option

_SAME, _AGREED = 0.1, 0.7  # shares of pairs: of one label, and explained by other labels
_MANY, _SURELY = 30, 0.9  # pairs, and the share of fewer ones: of some, chance explains as much
_SHOWN = 8  # labels


def renamed(pairs: pl.DataFrame, values: pl.Series, met: str, least: int = 1) -> Note | None:
    """A warning of labels that differ wherever both sides meet; None where they do not.

    Args:
        pairs: label codes ``mine`` of the predictions and ``other`` of the ground truths, and
            ``len``, how often they meet; each pair once.
        values: what codes stand for.
        met: what meets, for the message: ``boxes ... lie on each other, but``.
        least: labels that have to be told apart; of one alone much may lie on another.
    """
    whole = int(pairs["len"].sum())
    if not whole:
        return None
    pairs = pairs.sort("len", "mine", "other", descending=[True, False, False])
    same = int(pairs.filter(pl.col("mine") == pl.col("other"))["len"].sum()) / whole
    best = pairs.unique("mine", keep="first", maintain_order=True)
    agreed = int(best["len"].sum()) / whole
    others = best["other"].n_unique()
    # Where most lie on one label, any other label agrees with it: that explains nothing.
    enough = _AGREED if whole >= _MANY else _SURELY
    if same > _SAME or agreed < enough or 2 * others <= best.height or others < least:
        return None
    named = best.with_columns(
        pl.lit(values.gather(best["mine"])).alias("mine"),
        pl.lit(values.gather(best["other"])).alias("other"),
    ).sort("mine")
    first = {str(a): b for a, b in named.head(_SHOWN).select("mine", "other").iter_rows()}
    more = f" and {named.height - len(first):,} more" if named.height > len(first) else ""
    shift = _shift(named)
    cause = (
        f"The numbers of the predictions are {abs(shift)} too {'low' if shift > 0 else 'high'}:"
        " one side counts its classes from another number. "
        if shift
        else ""
    )
    if shift:  # a map would rename numbers on both sides
        way = f"write {option('label_format', [f'{shift:+d}'])}"
    elif best["mine"].is_in(pairs["other"].implode()).any():
        shown = ", ".join(f"{a} to {b}" for a, b in first.items())
        way = (
            f"rename those of the predictions in their table: {shown}{more} ({option('label_map')}"
            " would rename both sides')"
        )
    else:
        way = f"map them: {option('label_map', first)}{more}"
    return Note(
        "labels_apart",
        f"{met} {same:.0%} of these pairs have the same label, and the numbers mean little."
        f" {cause}If the classes are the same, {way}.",
        warning=True,
    )


def _shift(named: pl.DataFrame) -> int:
    """By how much all numbers of labels differ alike; 0 of others."""
    if not named["mine"].dtype.is_integer():
        return 0
    steps = (named["other"].cast(pl.Int64) - named["mine"].cast(pl.Int64)).unique()
    return int(steps[0]) if len(steps) == 1 else 0
