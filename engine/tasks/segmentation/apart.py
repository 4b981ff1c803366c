"""Label maps that hardly meet and would if told otherwise: other numbers, turned, void."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import polars as pl

from ...ingest.problems import Note
from ...schemas.errors import InputError
from ...schemas.tuning import tuning
from ...schemas.wording import option
from ...tally.datums import Labels
from ..pixels.histograms import Pairs
from ..pixels.maps import Pair, opened_pair
from ..pixels.rasters import quiet
from ..renamed import renamed

Array = np.ndarray[Any, Any]

_POOR, _GOOD = 0.4, 0.5  # mean IoU as they are, below which pixels are looked at, and otherwise
_LOOKED_AT = 4  # pairs
_VOID = 255
_TURNS: dict[str, Callable[[Array], Array]] = {
    "rows and columns exchanged": lambda pixels: pixels.T,
    "top and bottom exchanged": lambda pixels: pixels[::-1],
    "left and right exchanged": lambda pixels: pixels[:, ::-1],
}


def notes_of(
    pairs: list[Pair], counted: Pairs, codes: list[Array], labels: Labels, *, ignored: bool
) -> list[Note]:
    """What is to be said of maps that do not meet.

    Args:
        pairs: the maps.
        counted: pixels by pairs of indices of labels.
        codes: int64 [n] twice, label codes of those, -1 for none.
        labels: of the run.
        ignored: whether an index is ignored, by the user or by the coding of the files.
    """
    counts = pl.DataFrame({"mine": codes[1], "other": codes[0], "len": counted.count})
    counts = counts.group_by("mine", "other").agg(pl.col("len").sum())
    notes = [] if ignored else _void(counted)
    named = counts.filter((pl.col("mine") >= 0) & (pl.col("other") >= 0))
    values = labels.frame["label_value"]
    met = "pixels of the two sides are all labelled, but"
    told = renamed(named, values, met, 2, independent=False)
    if told is None:
        met = "labels of one side alone lie on each other, and"
        told = renamed(_alone(named), values, met, 1, independent=False)
    if told is None and _mean_iou(named) < _POOR:
        told = _turned(pairs)
    return notes + ([told] if told is not None else [])


def _alone(counts: pl.DataFrame) -> pl.DataFrame:
    """Pairs of labels of which neither is on the other side: masks that were scaled to be seen."""
    mine, other = pl.col("mine"), pl.col("other")
    both = counts["mine"].unique(), counts["other"].unique()
    return counts.filter(~mine.is_in(both[1].implode()) & ~other.is_in(both[0].implode()))


def _void(counted: Pairs) -> list[Note]:
    here = counted.truth == _VOID
    if not here.any() or (counted.found == _VOID).any():
        return []
    share = counted.count[here].sum() / counted.count.sum()
    return [
        Note(
            "maybe_void",
            f"index {_VOID} is in the ground truths alone ({share:.1%} of pixels) and counts as"
            f" a label. If it is void, {option('ignore_index', _VOID)} leaves it out.",
        )
    ]


def _mean_iou(counts: pl.DataFrame) -> float:
    """Mean IoU over the labels of the ground truths."""
    if not counts.height:
        return 0.0
    right = counts.filter(pl.col("mine") == pl.col("other")).select("other", right="len")
    found = counts.group_by("mine").agg(found=pl.col("len").sum())
    truth = counts.group_by("other").agg(truth=pl.col("len").sum())
    table = truth.join(right, on="other", how="left").join(
        found, left_on="other", right_on="mine", how="left"
    )
    shared = pl.col("right").fill_null(0)
    iou = shared / (pl.col("truth") + pl.col("found").fill_null(0) - shared)
    return float(table.select(iou.mean()).item())


def _turned(pairs: list[Pair]) -> Note | None:
    """A warning of maps that meet once those of one side are turned."""
    both = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
    looked = both[:: max(1, len(both) // _LOOKED_AT)][:_LOOKED_AT]
    read: list[tuple[Array, Array]] = []
    with quiet():
        for pair in looked:
            with ExitStack() as stack:
                try:
                    truth, found = opened_pair(pair, stack, resample=False)
                except InputError:
                    return None
                assert truth is not None
                assert found is not None
                if truth.whole.size <= tuning().window_pixels:
                    read.append((truth.read(truth.whole), found.read(found.whole)))
    if not read:
        return None
    before = _sampled(read)
    for said, turn in _TURNS.items():
        turned = [(truth, turn(found)) for truth, found in read]
        if any(truth.shape != found.shape for truth, found in turned):
            continue
        after = _sampled(turned)
        if after >= _GOOD and after >= 2 * before:
            return Note(
                "maps_turned",
                f"predictions seem to have {said}: in {len(read)} of them looked at, the mean IoU"
                f" is {before:.2f} as they are and {after:.2f} so. Write them as the ground truths"
                " are.",
                warning=True,
            )
    return None


def _sampled(read: list[tuple[Array, Array]]) -> float:
    """Mean IoU of some maps, by the values of their pixels."""
    sides = (np.concatenate([pair[i].ravel() for pair in read]).astype(np.int64) for i in (0, 1))
    other, mine = sides
    pairs = pl.DataFrame({"mine": mine, "other": other}).group_by("mine", "other").len()
    return _mean_iou(pairs)
