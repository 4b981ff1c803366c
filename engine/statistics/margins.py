"""Intervals of differences between a run and an earlier one, over the same data or others, for
gates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ..plan.summary import Tallied
from ..schemas.arrays import Array
from ..schemas.option_values import FEW_CLUSTERS, Wanted
from ..tally.stats_parts import skip
from .compared_datums import answered_by_one, shared_codes
from .comparing import IDENTITY, Single, coverage_of, pair, singles_of, with_unmoved
from .missing import Slices, over_common_values
from .paired import numbers


class Margins(msgspec.Struct, frozen=True):
    """Differences between a run and an earlier one: the run minus the earlier one.

    Attributes:
        rows: one row per number that both have, with the columns that identify it and ``a``
            (earlier), ``b``, ``difference``, ``lower``, ``upper``, ``support``, ``missing_a``,
            ``missing_b`` and ``coverage``.
        level: confidence of the intervals, in (0, 1).
        told: remark on how much the data of the runs differ, or that they are too few; may be
            empty.
    """

    rows: pl.DataFrame
    level: float
    told: str = ""


def margins(first: Tallied, second: Tallied, differing: int, asked: Wanted) -> Margins:
    """Compute the differences of the numbers of two runs, with bootstrap intervals.

    A datum has the same weight in both runs, so that shared datums cancel and others vary
    independently. This covers runs over the same datums (paired resamples), over disjoint datums
    (independent resamples), and everything between. If means skip datums without a prediction,
    shared
    datums that only one run answers are dropped, as in every comparison.

    Args:
        first: the earlier run.
        second: the run.
        differing: number of shared datums whose ground truths differ.
        asked: interval options.
    """
    lone = answered_by_one(first, second)
    whole = shared_codes(first, second)[:2]
    compared = [np.where(left, -1, code) for left, code in zip(lone, whole, strict=True)]
    made = over_common_values((first, second), compared, skip)
    runs = made or [first, second]
    drawn = [
        numbers(
            run,
            lambda drawing, computed: drawing.by_chance(computed, asked.draws, asked.seed),
            ~left if left.any() else None,
        )
        for run, left in zip(runs, lone, strict=True)
    ]
    same = first.tallies.datums.id.equals(second.tallies.datums.id)
    rows, *_ = pair(drawn[0], drawn[1], None, asked, recentred=not same)
    n = 1 + max(int(code.max(initial=-1)) for code in compared)
    slices = Slices(runs[0], compared[0], n, IDENTITY) if same else None
    codes = compared[0], compared[1]
    rows, _ = with_unmoved(
        rows, asked, (first, second), codes, slices, lambda: _of_datums(runs, compared, n)
    )
    gapped = made is not None or bool(lone[0].any() or lone[1].any())
    both = (first, second)
    columns = coverage_of(rows, both, whole, compared, skip, gapped=gapped)
    return Margins(
        rows.with_columns(columns),
        asked.level,
        _told(first, second, differing, int(lone[1].sum())),
    )


def apart(first: Tallied, second: Tallied) -> bool:
    """Return True if the means of two runs cover different subsets of their shared datums."""
    lone = answered_by_one(first, second)
    if any(one.any() for one in lone):
        return True
    return over_common_values((first, second), shared_codes(first, second)[:2], skip) is not None


def _of_datums(runs: Sequence[Tallied], codes: Sequence[Array], n: int) -> tuple[Single, Single]:
    first, second = (singles_of(run, code, n)[0] for run, code in zip(runs, codes, strict=True))
    return first, second


def _told(first: Tallied, second: Tallied, differing: int, lone: int) -> str:
    """Describe how far the data of two runs differ, and if they are too few."""
    ids, others = second.tallies.datums.id, first.tallies.datums.id
    alike = ids.dtype.is_integer() == others.dtype.is_integer()
    both = int(ids.is_in(others.implode()).sum()) if alike else 0
    said = []
    if not both == len(ids) == len(others):
        said.append(f"{both:,} of {len(ids):,} datums are among the baseline's {len(others):,}")
    if lone:
        said.append(f"{lone:,} datums that one of the two runs answers alone are left out of both")
    if differing:
        said.append(f"{differing:,} datums have other ground truths")
    clusters = np.unique(second.tallies.datums.keys).size
    if clusters < FEW_CLUSTERS:
        said.append(f"of {clusters} clusters or datums intervals are often too narrow")
    return ", ".join(said)
