"""Labels with more rows than memory holds, cut into ranges of scores that all buckets share.

A bucket's rows of a label are in order already: by descending score, then descending tie, then
datum. A sample of the rows of all buckets tells where ranges of about equal size begin; which rows
of a bucket fall into a range is found by binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..tally.ranked import Ranked
from ..tally.ranked_groups import of_rows, with_datums

Array = np.ndarray[Any, Any]


class Key(msgspec.Struct, frozen=True, order=True):
    """What orders the rows of a label; ascending.

    Attributes:
        ordered: the score, negative.
        ordered_tie: likewise what orders equal scores; 0 where nothing does.
        datum: code of the datum in the whole.
    """

    ordered: float
    ordered_tie: float
    datum: int


class ScoreRange(msgspec.Struct, frozen=True):
    """The rows of one label in a range of keys.

    Attributes:
        number: which, of ``of``.
        of: how many there are.
        first: key at which it begins; None for the first.
        after: that at which the next one does; None for the last.
    """

    number: int
    of: int
    first: Key | None
    after: Key | None


def keys_of(ranked: Ranked, codes: Array, every: int) -> list[Key]:
    """The keys of some rows of one label, evenly spaced.

    Args:
        ranked: the rows of one bucket.
        codes: int32 [datums], their codes in the whole.
        every: rows from one key to the next.
    """
    some = slice(every // 2, None, every)
    tie = ranked.tie[some] if ranked.tie.size else np.zeros(ranked.score[some].size)
    rows = zip(ranked.score[some], tie, codes[ranked.datum[some]], strict=True)
    return [Key(-float(score), -float(own), int(datum)) for score, own, datum in rows]


def ranges_of(buckets: Sequence[tuple[Ranked, Array]], most: int) -> list[ScoreRange]:
    """Ranges of about so many rows of a label; at least one.

    Args:
        buckets: the rows of the label in each, and the codes of its datums in the whole.
        most: rows of a range, about.
    """
    rows = sum(ranked.score.size + ranked.gt_datum.size for ranked, _ in buckets)
    every = max(1, most // (4 * len(buckets)))
    keys = sorted(key for ranked, codes in buckets for key in keys_of(ranked, codes, every))
    n = max(1, -(-rows // most))
    chosen = [keys[at * len(keys) // n] for at in range(1, n) if keys]
    cuts = [None, *dict.fromkeys(chosen), None]
    return [ScoreRange(i, len(cuts) - 1, cuts[i], cuts[i + 1]) for i in range(len(cuts) - 1)]


def place(ranked: Ranked, codes: Array, key: Key) -> int:
    """How many rows of one label come before a key.

    Args:
        ranked: the rows of one bucket.
        codes: int32 [datums], ascending, the codes of its datums in the whole.
        key: where to look.
    """
    begin, end = 0, ranked.score.size
    for values, value in ((ranked.score, -key.ordered), (ranked.tie, -key.ordered_tie)):
        if values.size:  # descending; of ties there may be none
            rising = values[begin:end][::-1]
            begin, end = (
                end - int(np.searchsorted(rising, value, "right")),
                end - int(np.searchsorted(rising, value, "left")),
            )
    datum = np.searchsorted(codes, key.datum)
    return begin + int(np.searchsorted(ranked.datum[begin:end], datum, "left"))


def within(ranked: Ranked, codes: Array, span: ScoreRange) -> Ranked:
    """The rows of one bucket that fall into a range, datums under their codes in the whole.

    Ground truths have no score: each range takes an equal share of them.

    Args:
        ranked: rows of one label.
        codes: int32 [datums], ascending, the codes of their datums in the whole.
        span: which.
    """
    n, m = ranked.score.size, ranked.gt_datum.size
    rows = (
        0 if span.first is None else place(ranked, codes, span.first),
        n if span.after is None else place(ranked, codes, span.after),
    )
    truths = span.number * m // span.of, (span.number + 1) * m // span.of
    return with_datums(of_rows(ranked, rows, truths), codes)
