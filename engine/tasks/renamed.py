"""Rules about labels that differ on overlapping objects: renamed, exchanged, or one-sided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..ingest.label_spelling import plain
from ..ingest.problems import Note, count_of, listing
from ..ingest.rules import WARNING, Facts, Rule, apply
from ..schemas.arrays import Array
from ..schemas.wording import option

_SAME, _AGREED = 0.1, 0.7  # shares of pairs: of one label, and explained by other labels
_MANY, _SURELY = 30, 0.9  # pairs, and the share of fewer ones: of some, chance explains as much
_FEW_SAME, _TESTED = 0.2, 0.5  # the same shares if chance explains less in every shuffle
_SHUFFLES = 200
_SHUFFLED = 5_000  # pairs at most, which stand for all
_OWN, _OTHER = 0.2, 0.6  # shares of an exchanged label's pairs: of its own name, of the other one
_EACH, _TOTAL = 5, 10  # pairs of each exchanged label, and of all
_PIXELS = 250  # of all exchanged or one-sided labels
_CHANCE = 1e-3  # that siblings confused half the time look exchanged, of any labels
_LIFT = 0.3  # by how much more often labels of one side overlap those of the other than the rest do
_SHOWN = 8  # labels


class Pairs(msgspec.Struct, frozen=True):
    """Evidence from overlapping objects about the labels of both sides.

    Attributes:
        counts: label codes ``mine`` of the predictions and ``other`` of the ground truths, and
            ``len``, number of overlaps; unique pairs, most frequent first.
        values: labels of the codes.
        met: beginning of the message.
        least: minimum number of labels that differ; a single label may overlap another by chance.
        independent: pairs are independent; pixels of one region are not, so chance explains more.
    """

    counts: pl.DataFrame
    values: pl.Series
    met: str
    least: int
    independent: bool

    @property
    def whole(self) -> int:
        """All pairs."""
        return int(self.counts["len"].sum())

    @property
    def total(self) -> int:
        """Pairs that labels must differ in: more of pixels, of which a region has many."""
        return _TOTAL if self.independent else _PIXELS

    @property
    def same(self) -> float:
        """Share of pairs of one label."""
        right = self.counts.filter(pl.col("mine") == pl.col("other"))
        return int(right["len"].sum()) / self.whole

    @property
    def best(self) -> pl.DataFrame:
        """The label that each one overlaps most, with ``all`` its pairs."""
        every = self.counts.group_by("mine").agg(all=pl.col("len").sum())
        first = self.counts.unique("mine", keep="first", maintain_order=True)
        return first.join(every, on="mine", maintain_order="left")

    def facts(self, chosen: pl.DataFrame, **values: Any) -> Facts:
        """Return the facts of a mapping of labels, one per row of ``mine`` and ``other``.

        The mapping is one-to-one: among labels that overlap the same other one, the first in count.
        """
        single = chosen.sort("len", descending=True, maintain_order=True).unique(
            "other", keep="first", maintain_order=True
        )
        named = single.sort("mine").select(
            pl.lit(self.values.gather(single.sort("mine")[name])).alias(name)
            for name in ("mine", "other")
        )
        return Facts(
            severity=WARNING,
            count=int(chosen["len"].sum()),
            of=self.whole,
            values={"labels": [list(pair) for pair in named.iter_rows()], "met": self.met,
                    "same": self.same, **values},
        )  # fmt: skip


def renamed(
    pairs: pl.DataFrame, values: pl.Series, met: str, least: int = 1, *, independent: bool = True
) -> Note | None:
    """Return a warning if overlapping objects have different labels; otherwise None.

    Args:
        pairs: label codes ``mine`` of the predictions and ``other`` of the ground truths, and
            ``len``, number of overlaps; unique pairs.
        values: labels of the codes.
        met: beginning of the message: ``boxes ... lie on each other, but``.
        least: minimum number of labels that differ.
        independent: pairs are independent of each other, unlike pixels.
    """
    signals = _signals(*map(pl.Series.to_numpy, pairs.select("mine", "other", "len")))
    if not signals:
        return None
    counts = pairs.sort("len", "mine", "other", descending=[True, False, False])
    notes, _ = apply(RULES, "", signals, Pairs(counts, values, met, least, independent))
    return notes[0] if notes else None


def _signals(mine: Array, other: Array, n: Array) -> set[str]:
    """Signals of pairs: few of one label, labels that are rarely right, labels of one side."""
    if not n.size:
        return set()
    size = int(max(mine.max(), other.max())) + 1
    right = mine == other
    every = np.bincount(mine, n, size)
    own = np.bincount(mine[right], n[right], size)
    signals = set()
    if own.sum() <= _FEW_SAME * every.sum():
        signals.add("few_right")
    if np.count_nonzero((every >= _EACH) & (own <= _OWN * every)) > 1:
        signals.add("rarely_right")
    theirs = np.bincount(other, minlength=size) > 0
    if ((every > 0) > theirs).any() and (theirs > (every > 0)).any():
        signals.add("one_sided")
    return signals


def _all_renamed(pairs: Pairs) -> Iterator[Facts]:
    """Nearly no pair has one label, and other labels explain most pairs."""
    whole, same, best = pairs.whole, pairs.same, pairs.best
    agreed = int(best["len"].sum()) / whole
    others = best["other"].n_unique()
    # If most overlap one label, any other label agrees with it, so that this explains nothing new.
    if same > _FEW_SAME or 2 * others <= best.height or others < pairs.least:
        return
    enough = same <= _SAME and agreed >= (_AGREED if whole >= _MANY else _SURELY)
    moved = int(best.filter(pl.col("mine") != pl.col("other"))["len"].sum()) / whole
    tested = pairs.independent and moved >= _TESTED and best.height > 1
    if enough or (tested and _beyond_chance(pairs, agreed)):
        known = best["mine"].is_in(pairs.counts["other"].implode()).any()
        yield pairs.facts(best, known=bool(known), shift=_shift(best, pairs.values))


def _exchanged(pairs: Pairs) -> Iterator[Facts]:
    """Some labels are each other's in turn, and the others are right."""
    best = pairs.best
    own = pairs.counts.filter(pl.col("mine") == pl.col("other")).select("mine", own="len")
    best = best.join(own, on="mine", how="left", maintain_order="left")
    candidates = best.filter(
        (pl.col("mine") != pl.col("other"))
        & (pl.col("all") >= _EACH)
        & (pl.col("len") >= (_OTHER if pairs.independent else _AGREED) * pl.col("all"))
        & (pl.col("own").fill_null(0) <= _OWN * pl.col("all"))
    )
    candidates = _surely_exchanged(candidates, pairs.counts.height)
    while candidates.height:  # a ring is left: whatever leads out of it goes
        ring = candidates.filter(
            pl.col("other").is_in(candidates["mine"].implode())
            & pl.col("mine").is_in(candidates["other"].implode())
        )
        if ring.height == candidates.height:
            break
        candidates = ring
    if candidates.height > 1 and int(candidates["len"].sum()) >= pairs.total:
        yield pairs.facts(candidates, known=True, shift=0)


def _surely_exchanged(candidates: pl.DataFrame, tests: int) -> pl.DataFrame:
    """Return candidates that are right too rarely to be similar labels that are merely confused.

    Args:
        candidates: labels ``mine`` that overlap ``other``, in ``len`` pairs, and the same label in
            ``own`` pairs.
        tests: number of label pairs that could look exchanged.
    """
    counted = candidates.with_columns(pl.col("own").fill_null(0))
    theirs = counted.select(other="mine", their="len", right="own")
    both = counted.join(theirs, on="other", maintain_order="left")
    right = (both["own"] + both["right"]).to_numpy()
    of = right + (both["len"] + both["their"]).to_numpy()
    share = np.clip(right / of, 1e-12, 0.5)
    # Chernoff's bound: of halves, so few or fewer have a chance of exp(-of * (log 2 - entropy)).
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    return both.filter(np.exp(of * (entropy - np.log(2))) * tests <= _CHANCE)


def _one_sided(pairs: Pairs) -> Iterator[Facts]:
    """Labels that only the predictions have overlap those that only the ground truths have."""
    counts = pairs.counts
    mine, other = counts["mine"].unique(), counts["other"].unique()
    ours = ~pl.col("mine").is_in(other.implode())
    theirs = ~pl.col("other").is_in(mine.implode())
    flagged = counts.with_columns(ours=ours, theirs=theirs)
    alone = flagged.filter("ours")
    both = alone.filter("theirs")
    names = [pairs.values.gather(both[name]).cast(pl.String) for name in ("mine", "other")]
    spelt = [plain(a) == plain(b) for a, b in zip(*names, strict=True)]  # there is a note of those
    both = both.filter(~pl.Series(spelt, dtype=pl.Boolean))
    rest = flagged.filter(~pl.col("ours"))
    n, of = int(both["len"].sum()), int(alone["len"].sum())
    if not n or not rest.height:
        return
    elsewhere = int(rest.filter("theirs")["len"].sum()) / int(rest["len"].sum())
    right = int(rest.filter(pl.col("mine") == pl.col("other"))["len"].sum())
    signs = {*pairs.values.gather(mine).to_list()}, {*pairs.values.gather(other).to_list()}
    few = n < pairs.total or n / of < max(_OTHER, elsewhere + _LIFT)
    if signs not in _SIGNS and (few or 2 * right < int(rest["len"].sum())):
        return
    best = both.unique("mine", keep="first", maintain_order=True)
    if int(best["len"].sum()) >= _OTHER * of or signs in _SIGNS:
        yield pairs.facts(best, known=False, shift=0)


_SIGNS = (
    ({-1, 1}, {0, 1}),
    ({0, 1}, {-1, 1}),
    ({"-1", "1"}, {"0", "1"}),
    ({"0", "1"}, {"-1", "1"}),
)
"""Two ways to write the classes of a binary problem."""


def _beyond_chance(pairs: Pairs, agreed: float) -> bool:
    """Return True if shuffled labels never agree as well."""
    counts = pairs.counts
    n = counts["len"].to_numpy()
    n = np.rint(n * min(1.0, _SHUFFLED / n.sum())).astype(np.int64)
    mine, other = (
        np.repeat(np.unique(counts[name].to_numpy(), return_inverse=True)[1], n)
        for name in ("mine", "other")
    )
    width = int(other.max()) + 1
    rng = np.random.default_rng(0)
    for _ in range(_SHUFFLES):
        cells = np.bincount(
            mine * width + rng.permutation(other), minlength=(mine.max() + 1) * width
        )
        if cells.reshape(-1, width).max(axis=1).sum() >= agreed * mine.size:
            return False
    return True


def _shift(best: pl.DataFrame, values: pl.Series) -> int:
    """The difference of all numbers of labels if it is one; else 0."""
    if not values.dtype.is_integer():
        return 0
    mine, other = (values.gather(best[name]).cast(pl.Int64) for name in ("mine", "other"))
    steps = (other - mine).unique()
    return int(steps[0]) if len(steps) == 1 else 0


def _say(facts: Facts) -> str:
    labels, shift = facts.values["labels"], facts.values["shift"]
    first = {str(mine): other for mine, other in labels[:_SHOWN]}
    more = f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
    cause = (
        f"The numbers of the predictions are {abs(shift)} too {'low' if shift > 0 else 'high'}:"
        " one side counts its classes from another number. "
        if shift
        else ""
    )
    if shift:  # a map would rename numbers on both sides
        way = f"write {option('label_format', [f'{shift:+d}'])}"
    elif facts.values["known"]:
        shown = ", ".join(f"{a} to {b}" for a, b in first.items())
        way = (
            f"rename those of the predictions in their table: {shown}{more} ({option('label_map')}"
            " would rename both sides')"
        )
    else:
        way = f"map them: {option('label_map', first)}{more}"
    return (
        f"{facts.values['met']} {facts.values['same']:.0%} of these pairs have the same label, and"
        f" the numbers mean little. {cause}If the classes are the same, {way}."
    )


def _say_exchanged(facts: Facts) -> str:
    labels = facts.values["labels"]
    shown = ", ".join(f"{mine} to {other}" for mine, other in labels[:_SHOWN])
    more = f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
    return (
        f"labels {listing([one for one, _ in labels])} seem to be exchanged: predictions of each"
        f" overlap another of them in {facts.count:,} pairs. If they are, rename those of the"
        f" predictions in their table: {shown}{more}."
    )


def _say_one_sided(facts: Facts) -> str:
    labels = facts.values["labels"]
    first = {str(mine): other for mine, other in labels[:_SHOWN]}
    more = f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
    theirs = listing(list(dict.fromkeys(other for _, other in labels)))
    return (
        f"{count_of(len(labels), 'label')} of the predictions only"
        f" ({listing([one for one, _ in labels])}) where the ground truths have {theirs}, which the"
        f" predictions never have: {facts.count:,} pairs count as wrong. If the classes are the"
        f" same, map them: {option('label_map', first)}{more}."
    )


RULES: tuple[Rule[Pairs], ...] = (
    Rule("labels_one_sided", {"one_sided"}, _one_sided, _say_one_sided),
    Rule("labels_apart", {"few_right"}, _all_renamed, _say),
    Rule("labels_exchanged", {"rarely_right"}, _exchanged, _say_exchanged),
)
"""Rules in order; the first that fires is reported."""
