"""Rules on labels and boxes of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import polars as pl

from ..ingest.both_sides import plain
from ..ingest.id_mismatch import numbers_of
from ..ingest.ids import is_signed
from ..ingest.problems import Note, count_of, listing
from ..ingest.rules import WARNING, Facts, Rule, apply
from ..schemas.arrays import Array
from ..schemas.wording import option
from ..tallies.datums import Datums, Labels

# Rules about labels that differ on overlapping objects: renamed, exchanged, or one-sided.

_SAME, _AGREED = 0.1, 0.7  # shares of pairs: of one label, and explained by other labels
_MANY, _SURELY = 30, 0.9  # pairs, and the share of fewer ones: of some, chance explains as much
_FEW_SAME, _TESTED = 0.2, 0.5  # the same shares if chance explains less in every shuffle
_SHUFFLES = 200
_SHUFFLED = 5_000  # pairs in a sample, at most
_OWN, _OTHER = 0.2, 0.6  # shares of an exchanged label's pairs: the same name, the other name
_EACH, _TOTAL = 5, 10  # pairs of each exchanged label, and of all
_PIXELS = 250  # of all exchanged or one-sided labels
_CHANCE = 1e-3  # that siblings confused half the time look exchanged, of any labels
_LIFT = 0.3  # by how much more often labels of one side overlap those of the other than the rest do
_LISTED = 8  # labels


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
            values={
                "labels": [list(pair) for pair in named.iter_rows()],
                "met": self.met,
                "same": self.same,
                **values,
            },
        )


def renamed(
    pairs: pl.DataFrame,
    values: pl.Series,
    beginning: str,
    least: int = 1,
    *,
    independent: bool = True,
) -> Note | None:
    """Return a warning if overlapping objects have different labels; otherwise None.

    Args:
        pairs: label codes ``mine`` of the predictions and ``other`` of the ground truths, and
            ``len``, number of overlaps; unique pairs.
        values: labels of the codes.
        beginning: beginning of the message: ``boxes ... overlap, but``.
        least: minimum number of labels that differ.
        independent: pairs are independent of each other, unlike pixels.
    """
    signals = _signals(*map(pl.Series.to_numpy, pairs.select("mine", "other", "len")))
    if not signals:
        return None
    counts = pairs.sort("len", "mine", "other", descending=[True, False, False])
    notes, _ = apply(RULES, "", signals, Pairs(counts, values, beginning, least, independent))
    return notes[0] if notes else None


def counted(mine: Array, other: Array) -> pl.DataFrame | None:
    """Count the pairs of labels of rows, as ``renamed`` reads them; None if they give no signal."""
    if not _signals(mine, other, np.ones(mine.size, np.int64)):
        return None
    return pl.DataFrame({"mine": mine, "other": other}).group_by("mine", "other").len()


def _signals(mine: Array, other: Array, n: Array) -> set[str]:
    """Signals of pairs: few of one label, labels that are rarely right, labels of one side."""
    if not n.size:
        return set()
    size = int(max(mine.max(), other.max())) + 1
    right = mine == other
    every = np.bincount(mine, n, size)
    hits = np.bincount(mine[right], n[right], size)
    signals = set()
    if hits.sum() <= _FEW_SAME * every.sum():
        signals.add("few_right")
    if np.count_nonzero((every >= _EACH) & (hits <= _OWN * every)) > 1:
        signals.add("rarely_right")
    theirs = np.bincount(other, minlength=size) > 0
    if ((every > 0) > theirs).any() and (theirs > (every > 0)).any():
        signals.add("one_sided")
    return signals


def _all_renamed(pairs: Pairs) -> Iterator[Facts]:
    """Nearly no pair has one label, and other labels explain most pairs."""
    total, same, best = pairs.whole, pairs.same, pairs.best
    agreed = int(best["len"].sum()) / total
    others = best["other"].n_unique()
    # If most overlap one label, any other label agrees with it: this is no evidence.
    if same > _FEW_SAME or 2 * others <= best.height or others < pairs.least:
        return
    enough = same <= _SAME and agreed >= (_AGREED if total >= _MANY else _SURELY)
    moved = int(best.filter(pl.col("mine") != pl.col("other"))["len"].sum()) / total
    tested = pairs.independent and moved >= _TESTED and best.height > 1
    if enough or (tested and _beyond_chance(pairs, agreed)):
        among = best["mine"].is_in(pairs.counts["other"].implode()).any()
        yield pairs.facts(best, known=bool(among), shift=_shift(best, pairs.values))


def _exchanged(pairs: Pairs) -> Iterator[Facts]:
    """Some labels are each other's in turn, and the others are right."""
    best = pairs.best
    right = pairs.counts.filter(pl.col("mine") == pl.col("other")).select("mine", own="len")
    best = best.join(right, on="mine", how="left", maintain_order="left")
    candidates = best.filter(
        (pl.col("mine") != pl.col("other"))
        & (pl.col("all") >= _EACH)
        & (pl.col("len") >= (_OTHER if pairs.independent else _AGREED) * pl.col("all"))
        & (pl.col("own").fill_null(0) <= _OWN * pl.col("all"))
    )
    candidates = _surely_exchanged(candidates, pairs.counts.height)
    while candidates.height:  # keep only labels that form a ring
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
    joined = counted.join(theirs, on="other", maintain_order="left")
    right = (joined["own"] + joined["right"]).to_numpy()
    of = right + (joined["len"] + joined["their"]).to_numpy()
    share = np.clip(right / of, 1e-12, 0.5)
    # Chernoff's bound: of halves, so few or fewer have a chance of exp(-of * (log 2 - entropy)).
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    return joined.filter(np.exp(of * (entropy - np.log(2))) * tests <= _CHANCE)


def _one_sided(pairs: Pairs) -> Iterator[Facts]:
    """Labels that only the predictions have overlap those that only the ground truths have."""
    counts = pairs.counts
    mine, other = counts["mine"].unique(), counts["other"].unique()
    ours = ~pl.col("mine").is_in(other.implode())
    theirs = ~pl.col("other").is_in(mine.implode())
    flagged = counts.with_columns(ours=ours, theirs=theirs)
    one_sided = flagged.filter("ours")
    both = one_sided.filter("theirs")
    names = [pairs.values.gather(both[name]).cast(pl.String) for name in ("mine", "other")]
    spelt = [plain(a) == plain(b) for a, b in zip(*names, strict=True)]  # there is a note of those
    others = ~pl.col("mine").is_in(
        both.filter(pl.Series(spelt, dtype=pl.Boolean))["mine"].implode()
    )
    one_sided, both = one_sided.filter(others), both.filter(others)
    rest = flagged.filter(~pl.col("ours"))
    n, of = int(both["len"].sum()), int(one_sided["len"].sum())
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
    if not is_signed(values):
        return 0
    mine, other = (values.gather(best[name]).cast(pl.Int64) for name in ("mine", "other"))
    steps = (other - mine).unique()
    return int(steps[0]) if len(steps) == 1 else 0


def _renaming(facts: Facts) -> tuple[dict[str, Any], str, str]:
    """Return the first labels and their counterparts, also as words, and the number of others."""
    labels = facts.values["labels"]
    first = {str(mine): other for mine, other in labels[:_LISTED]}
    more = f" and {len(labels) - _LISTED:,} more" if len(labels) > _LISTED else ""
    return first, ", ".join(f"{mine} to {other}" for mine, other in first.items()), more


def _describe_map(facts: Facts) -> str:
    shift, (first, names, more) = facts.values["shift"], _renaming(facts)
    cause = (
        f"The numbers of the predictions are {abs(shift)} too {'low' if shift > 0 else 'high'}:"
        " one side counts its classes from another number. "
        if shift
        else ""
    )
    if shift:  # a map would rename numbers on both sides
        remedy = f"write {option('label_format', [f'{shift:+d}'])}"
    elif facts.values["known"]:
        remedy = (
            f"rename those of the predictions in their table: {names}{more} ({option('label_map')}"
            " would rename both sides')"
        )
    else:
        remedy = f"map them: {option('label_map', first)}{more}"
    return (
        f"{facts.values['met']} {facts.values['same']:.0%} of these pairs have the same label, and"
        f" the numbers mean little. {cause}If the classes are the same, {remedy}."
    )


def _describe_exchanged(facts: Facts) -> str:
    _, names, more = _renaming(facts)
    return (
        f"labels {listing([one for one, _ in facts.values['labels']])} seem to be exchanged: each"
        f" is predicted where another is true, in {facts.count:,} pairs. If they are, rename those"
        f" of the predictions in their table: {names}{more}."
    )


def _describe_one_sided(facts: Facts) -> str:
    labels, (first, _, more) = facts.values["labels"], _renaming(facts)
    theirs = listing(list(dict.fromkeys(other for _, other in labels)))
    return (
        f"{count_of(len(labels), 'label')} of the predictions only"
        f" ({listing([one for one, _ in labels])}), and of the ground truths only {theirs}:"
        f" {facts.count:,} pairs count as wrong. If the classes are the same, map them:"
        f" {option('label_map', first)}{more}."
    )


# Rows of one side that are in another order under the same ids.

_ROWS_IN_STEP = 50  # rows from which order is evidence
_MAX_SAMPLE = 10_000  # rows from which chance is known
_STEP, _AT_CHANCE = 0.35, 0.25  # agreement above chance in another order, and that counts as chance
_IN_STEP = 0.8
_ORDERS: dict[str, Callable[[Array], Array]] = {
    "in reverse order": lambda rows: rows[::-1],
    "one row later": lambda rows: np.roll(rows, 1),
    "one row earlier": lambda rows: np.roll(rows, -1),
}


def out_of_step(ours: Array, theirs: Array, agree: Callable[[Array, Array], float]) -> Note | None:
    """Return a warning if rows agree by chance only, but well in another order; otherwise None.

    Args:
        ours: predictions [n].
        theirs: ground truths [n] of the same datums.
        agree: mean agreement of rows, 1 if all are equal.
    """
    if ours.size < _ROWS_IN_STEP:
        return None
    step = max(1, ours.size // _MAX_SAMPLE)
    some = theirs[::step]
    as_is = agree(ours[::step], some)
    chance = agree(np.random.default_rng(0).permutation(some), some)
    if not abs(as_is - chance) <= _AT_CHANCE:
        return None
    for description, order in _ORDERS.items():
        moved = agree(order(ours), theirs)
        if moved < max(_IN_STEP, chance + _STEP):
            continue
        # Truths that resemble themselves in that order, as alternating ones, are no evidence.
        if abs(agree(order(theirs), theirs) - chance) <= _AT_CHANCE:
            text = (
                f"predictions fit their ground truths no better than by chance ({as_is:.2f}), but"
                f" {description} they do ({moved:.2f}): are they attached to the right ids?"
            )
            facts = {"order": description, "agreement": as_is, "moved": moved}
            return Note("rows_out_of_step", text, facts=facts, warning=True)
    return None


RULES: tuple[Rule[Pairs], ...] = (
    Rule("labels_one_sided", {"one_sided"}, _one_sided, _describe_one_sided),
    Rule("labels_apart", {"few_right"}, _all_renamed, _describe_map),
    Rule("labels_exchanged", {"rarely_right"}, _exchanged, _describe_exchanged),
)
"""Rules in order; the first that fires is reported."""


# Warnings about boxes of a sample that would overlap in another unit or format, or with other
# labels.

_DATUMS = 200  # looked at, evenly spaced among those of both sides
_ROWS = 100  # of a datum and side
LEAST = 10  # boxes on each side, below which only few readings are tried
FEWEST = 3  # boxes from which other formats can be recognised
POOR, GOOD = 0.25, 0.5  # mean of the best IoU of each ground truth, as they are and otherwise
FAIR, _GAIN = 0.7, 0.25  # fit above which no other is tried; minimum gain of another
WELL = 0.8  # the latter of few boxes
_FEW_PAIRS = 4  # overlaps that reveal exchanged labels; three may be chance
_ON = 0.5  # IoU from which boxes overlap
_SHARE = 1.5  # coordinates up to here may be shares of an image
_FEW_PIXELS = 8.0  # medians from here on are not shares


_PAIRS = (("predictions", "ground truths"), ("ground truths", "predictions"))


class Rows(Protocol):
    """Rows of one side.

    Attributes:
        datum: integers [n], datum codes.
        label: int32 [n], label codes.
    """

    @property
    def datum(self) -> Array: ...

    @property
    def label(self) -> Array: ...

    def boxes(self, rows: Array) -> Array:
        """Corners of some rows, float64 [k, 4]."""
        ...


Reading = Callable[[Array], Array]
"""Reinterpretation of boxes, float64 [k, 4], read as corners."""


def _centred(boxes: Array, half: Array) -> Array:
    """Boxes about the first corner of others."""
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def _forms(
    actual: str, expected: str, numbers: str, form: str, other: str, reading: Reading
) -> tuple[str, str, Reading]:
    """Describe the apparent format of one side, and the alternative of the other."""
    ours, theirs = (option("box_format", one) for one in (form, other))
    return (
        f"have {actual} instead of {expected} ({numbers}{ours})",
        f"have {expected.removeprefix('the ')} instead of {actual} ({theirs})",
        reading,
    )


_WIDE = "widths and heights"
_READINGS: tuple[tuple[str, str, Reading], ...] = (
    _forms(
        "centres",
        "corners",
        "cx, cy, width, height: ",
        "cxcywh",
        "xywh",
        lambda boxes: _centred(boxes, (boxes[:, 2:] - boxes[:, :2]) / 2),
    ),
    _forms(
        _WIDE,
        "the second corners",
        "x, y, width, height: ",
        "xywh",
        "xyxy",
        lambda boxes: np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]),
    ),
    _forms(
        f"centres, {_WIDE}",
        "corners",
        "",
        "cxcywh",
        "xyxy",
        lambda boxes: _centred(boxes, boxes[:, 2:] / 2),
    ),
    ("have x and y exchanged", "", lambda boxes: boxes[:, [1, 0, 3, 2]]),
)
"""Apparent format of one side, alternative format of the other, and the first as a function."""


def overlap_warning(
    predictions: Rows,
    truths: Rows,
    datums: Datums,
    labels: Labels,
    scores: Callable[[Array], Array | None],
    *,
    whole: bool,
) -> Note | None:
    """Return a warning about boxes or labels that match only if reinterpreted, or None.

    Args:
        scores: returns the scores of rows of the predictions, float64 [k].
        whole: whether these are all datums, so that a few boxes are noted, too.
    """
    some = sample(predictions, truths, np.arange(len(datums), dtype=np.int64))
    if not some.ours.size:
        return _shifted_ids(predictions, truths, datums)
    best, at = some.best(some.iou(some.ours, some.theirs))
    as_is = float(best.mean())
    doubt = None
    if as_is < FAIR:
        doubt = other_box_form(some, as_is) or _form_of_some(predictions, truths, some, best)
    if as_is >= POOR:
        doubt = doubt or other_labels(some, labels, (best, at))
        return doubt or _scores_reversed(some, scores(some.rows), best, at)
    doubt = doubt or _shifted_ids(predictions, truths, datums)
    doubt = doubt or hardly_any(some, as_is, few=whole)
    return doubt or no_better_than_elsewhere(predictions, truths, len(datums), some, as_is)


def _form_of_some(predictions: Rows, truths: Rows, some: Sample, best: Array) -> Note | None:
    """Return a warning of datums whose boxes fit only in another unit or format, or None.

    Args:
        best: float64 [m], the largest IoU of each ground truth.
    """
    fits = np.bincount(some.datum, best) / np.maximum(np.bincount(some.datum), 1)
    here = np.bincount(some.datum) > 0
    poor = here & (fits < POOR)
    n, well = int(poor.sum()), int((fits >= GOOD).sum())
    if min(n, well) < max(_OF_EACH, _PART_OF_EACH * here.sum()):
        return None
    places = np.full(int(max(predictions.datum.max(), truths.datum.max())) + 1, -1, np.int64)
    places[: poor.size][poor] = np.flatnonzero(poor)
    rest = sample(predictions, truths, places)
    doubt = other_box_form(rest, fit(rest)) if rest.fewest >= _OF_SOME else None
    if doubt is None:
        return None
    message = f"in {n:,} of {int(here.sum()):,} datums looked at, {doubt.message}"
    return msgspec.structs.replace(doubt, message=message)


# Datums that fit and that do not, their share of all, and boxes of the latter on each side.
_OF_EACH, _PART_OF_EACH, _OF_SOME = 10, 0.2, 20


def _scores_reversed(some: Sample, scores: Array | None, best: Array, at: Array) -> Note | None:
    """Return a warning of scores that are lower for right boxes than for others, or None.

    It is a note if less than half of the boxes are right: annotations may be of hard objects only.

    Args:
        scores: float64 [k], of the predictions of the sample.
        best: float64 [m], the largest IoU of each ground truth.
        at: int64 [m], its prediction.
    """
    right = np.unique(at[(best >= _ON) & (some.our_labels[at] == some.their_labels)])
    if scores is None or right.size < _MANY or scores[right].mean() >= scores.mean():
        return None  # decides nearly all tables
    iou = some.iou(some.ours, some.theirs)
    wrong = np.ones(scores.size, bool)
    wrong[some.prediction[iou >= _TOUCHES]] = False
    wrong &= np.isin(some.our_labels, some.our_labels[right])
    wins = pairs = 0.0
    for label in np.unique(some.our_labels[right]):  # labels may differ in level
        mine = scores[right[some.our_labels[right] == label]]
        other = np.sort(scores[wrong & (some.our_labels == label)])
        low, high = (np.searchsorted(other, mine, side=side) for side in ("left", "right"))
        wins += float((low + high).sum()) / 2
        pairs += mine.size * other.size
    n = int(wrong.sum())
    if n < _MANY or wins > _REVERSED * pairs:
        return None
    return Note(
        "scores_reversed",
        "predictions: boxes that overlap a ground truth of their label have lower scores than boxes"
        f" that overlap none (ROC AUC {wins / pairs:.2f}). AP ranks the highest score first: if"
        " these are distances or errors, give their negatives.",
        warning=right.size >= n,
        facts={"auc": wins / pairs},
    )


_REVERSED = 0.25  # ROC AUC of right boxes and those that overlap nothing


def other_box_form(some: Sample, as_is: float = 0.0) -> Note | None:
    """Return a warning of boxes that fit much better in another unit or format, or None."""
    ours, theirs, fewest = some.ours, some.theirs, some.fewest
    boxes = {"predictions": ours, "ground truths": theirs}
    extreme = {name: np.abs(side) for name, side in boxes.items()}
    for name, other in _PAIRS:
        shares = extreme[name].max() <= _SHARE and (_extents(boxes[name]) > 0).any()
        if shares and np.median(extreme[other]) >= _FEW_PIXELS:
            return boxes_note(
                f"the {name} are within 0 to {_SHARE:g}, like shares of an image, and the {other}"
                " in pixels. Multiply x by the image's width and y by its height"
            )
    if fewest < FEWEST:
        return None
    good = max(good_fit(fewest), as_is + _GAIN)
    for name, other in _PAIRS:

        def fitted(reading: Reading, name: str = name) -> float:
            read = {**boxes, name: reading(boxes[name])}
            return fit(some, *read.values())

        for words, instead, reading in _READINGS:
            if fitted(reading) >= good:
                remedy = f", or the {other} {instead}" if instead else ""
                return boxes_note(
                    f"the {name} seem to {words}{remedy}. COCO's JSON always has x, y, width and"
                    " height, whatever the options: convert the boxes of the file that has others."
                    f" In tables, {option('box_format')} is for lists of both sides; to correct one"
                    " side, rename its columns to their meaning (cx, cy, box_width, box_height)"
                )
    for axis in (None, 0, 1) if fewest >= LEAST else ():
        turned = ours if axis is None else _mirrored(ours, axis)
        moved = _offset(turned[some.prediction], theirs[some.truth], theirs)
        if moved is None or fit(some, turned + moved) < good:
            continue
        if axis is not None:
            name = "xy"[axis]
            return boxes_note(
                f"the predictions overlap the ground truths once {name} is {moved[axis]:.4g} -"
                f" {name}: the images of one side were mirrored. Mirror its boxes"
            )
        return boxes_note(
            f"the predictions overlap the ground truths once {moved[0]:+.4g} is added to x and"
            f" {moved[1]:+.4g} to y: one side counts from another origin, as after a crop. Correct"
            " the coordinates of that side"
        )
    for scale in _scales(some) if fewest >= LEAST else ():  # a factor fits any few
        if fit(some, ours * scale) >= good:
            return boxes_note(
                f"the predictions overlap the ground truths once x is multiplied by about"
                f" {scale[0]:.3g} and y by about {scale[1]:.3g}: the images were scaled. Scale the"
                " boxes of one side",
                factors=scale[:2].tolist(),
            )
    return None


def hardly_any(some: Sample, as_is: float, *, few: bool = False) -> Note | None:
    """Return a warning of boxes that hardly overlap, or None.

    Args:
        few: note fewer than ten boxes on a side, if none overlaps.
    """
    least, most = (FEWEST, 0.0) if few and some.fewest < LEAST else (LEAST, _HARDLY)
    if some.fewest < least or as_is > most:
        return None
    if not (_extents(some.ours).any() and _extents(some.theirs).any()):
        return None
    if some.fewest < LEAST:
        message = "no predicted box overlaps a ground truth in the datums of both sides."
        return Note("boxes_apart", message, facts={"overlap": as_is})
    return boxes_note(
        "hardly any predicted box overlaps a ground truth. Compare both in one image: images, units"
        " or the order of corners may differ",
        overlap=as_is,
    )


_HARDLY = 0.02  # mean of the best IoU of each ground truth


def no_better_than_elsewhere(
    predictions: Rows, truths: Rows, n_datums: int, some: Sample, as_is: float
) -> Note | None:
    """Return a note of boxes that fit other datums as well as their own, or None.

    A model that finds nothing looks the same. If most datums fit one other datum well, their ids
    are permuted: a warning.

    Args:
        some: rows of the datums of both sides, as they are.
        as_is: their fit, below :data:`POOR`.
    """
    both = [np.bincount(side.datum, minlength=n_datums) > 0 for side in (predictions, truths)]
    common = np.flatnonzero(both[0] & both[1])
    if not as_is or common.size < _COMPARED or some.fewest < _BOXES:
        return None
    rng = np.random.default_rng(0)
    places = np.full(n_datums, -1, np.int64)
    fits, shares = [], []
    for i in range(_DEALS):
        places[common] = rng.permutation(common)
        if not i and fit(sample(truths, truths, places)) >= POOR:
            return None  # scenes that resemble each other, as of one camera, are no evidence
        other = sample(predictions, truths, places)
        best, _ = other.best(other.iou(other.ours, other.theirs))
        fits.append(best.mean())
        shares.append((best >= _ON).mean())
    best, _ = some.best(some.iou(some.ours, some.theirs))
    own, elsewhere = float((best >= _ON).mean()), float(np.mean(fits))
    if own > np.mean(shares) + _HARDLY or as_is > elsewhere + _SPREADS * np.std(fits):
        return None
    text = (
        "boxes overlap the ground truths of their own datums no better than those of others. Are"
        " the predictions attached to the right ids, and the coordinates of one image size?"
    )
    facts = {"overlap": as_is, "elsewhere": elsewhere}
    share = 0.0
    if common.size <= _SEARCHED:
        share = _of_others(predictions, truths, n_datums, common)
    if share < _MOST:
        return Note("boxes_apart", text, facts=facts)
    return boxes_note(
        f"in {share:.0%} of the datums looked at, the predictions fit the ground truths of another"
        " datum. They are attached to the wrong ids",
        **facts,
        share=share,
    )


def _of_others(predictions: Rows, truths: Rows, n_datums: int, common: Array) -> float:
    """Return the share of datums whose predictions fit the ground truths of another datum well."""
    at = np.arange(0, common.size, max(1, common.size // _SOUGHT))
    fitting = np.zeros(at.size, bool)
    for step in range(1, common.size):
        places = np.full(n_datums, -1, np.int64)
        places[common[at]] = common[(at + step) % common.size]
        one = sample(predictions, truths, places)
        best, _ = one.best(one.iou(one.ours, one.theirs))
        counts = np.bincount(one.datum, minlength=n_datums)
        well = (counts >= FEWEST) & (np.bincount(one.datum, best, n_datums) >= _WELL * counts)
        fitting |= well[places[common[at]]]
    return float(fitting.mean())


_SEARCHED, _SOUGHT = 500, 40  # common datums, at most, and those whose counterpart is sought
_WELL, _MOST = 0.6, 0.3  # fit of a counterpart; share of datums that have one, by chance below 0.15
_COMPARED, _BOXES = 20, 50  # datums of both sides, and boxes of each side
_DEALS, _SPREADS = 10, 3.0  # random assignments to datums; their standard deviations


def _scales(some: Sample) -> Iterator[Array]:
    """Yield factors that may lead from predictions to ground truths, float64 [4].

    Ratios of sizes and of the farthest corners, plain factors, and the best of these refined.
    """
    ours, theirs = some.ours, some.theirs
    sides = [[_extents(side), side[:, 2:]] for side in (ours, theirs)]
    with np.errstate(divide="ignore", invalid="ignore"):  # boxes without area have no factor
        ratios = [
            np.quantile(two, share, axis=0) / np.quantile(one, share, axis=0)
            for one, two, share in zip(*sides, (0.5, 0.99), strict=True)
        ]
    factors = [np.full(2, one) for one in _FACTORS]
    tried = [np.tile(one, 2) for one in (*ratios, *factors) if np.isfinite(one).all() and one.all()]
    fits = [fit(some, ours * scale) for scale in tried]
    scale = tried[int(np.argmax(fits))]
    yield scale
    for _ in range(_STEPS):
        best, at = some.best(some.iou(ours * scale, theirs))
        on = best > _TOUCHES
        mine, other = ours[at[on]].reshape(-1, 2), theirs[on].reshape(-1, 2)
        if len(mine) < LEAST or not mine.any(axis=0).all():
            return
        scale = np.tile((mine * other).sum(axis=0) / (mine * mine).sum(axis=0), 2)
        yield scale


_FACTORS = (1 / 10, 1 / 4, 1 / 3, 1 / 2, 2, 3, 4, 10)
_STEPS, _TOUCHES = 4, 0.1  # steps of refinement, and the IoU of pairs that it is made from


def _offset(ours: Array, theirs: Array, truths: Array) -> Array | None:
    """Return the commonest offset of ground truths from predictions of about their size, [4].

    Args:
        ours: float64 [n, 4], the prediction of each pair of one datum.
        theirs: float64 [n, 4], its ground truth.
        truths: float64 [m, 4].
    """
    corners = theirs - ours
    tolerance = _CLOSE * np.median(_extents(truths), axis=0)
    same = (np.abs(corners[:, 2:] - corners[:, :2]) <= tolerance).all(axis=1)
    offsets = corners[same][:_OFFSETS, :2]
    if not len(offsets):
        return None
    around = (np.abs(offsets[:, None] - offsets) <= tolerance).all(axis=2)
    common: Array = np.median(offsets[around[around.sum(axis=1).argmax()]], axis=0)
    return np.tile(common, 2)


def _mirrored(boxes: Array, axis: int) -> Array:
    """Boxes whose x (0) or y (1) is negated."""
    corners = boxes.reshape(-1, 2, 2) * np.where(np.arange(2) == axis, -1, 1)
    return np.sort(corners, axis=1).reshape(-1, 4)


_CLOSE = 0.1  # of the median width and height: boxes of one size, offsets that are one
_OFFSETS = 1_000  # that are compared with each other


def boxes_note(reason: str, **facts: Any) -> Note:
    """Return a warning of boxes that overlap too little."""
    return Note(
        "boxes_apart",
        f"boxes of the two sides overlap too little, and the numbers mean little: {reason}.",
        warning=True,
        facts=facts,
    )


def _shifted_ids(predictions: Rows, truths: Rows, datums: Datums) -> Note | None:
    """A warning of numbers in ids that are one higher or lower on one side."""
    text = datums.id.dtype == pl.String
    ids = numbers_of(datums.id) if text else datums.id
    if ids is None or not is_signed(ids):
        return None
    numbers = ids.cast(pl.Int64).to_numpy()
    order = np.argsort(numbers, kind="stable")
    for step in (1, -1):
        at = np.searchsorted(numbers[order], numbers + step)
        at = order[np.minimum(at, numbers.size - 1)]
        places = np.where(numbers[at] == numbers + step, at, -1)
        some = sample(predictions, truths, places)
        if some.fewest >= FEWEST and fit(some) >= good_fit(some.fewest):
            return boxes_note(
                f"they overlap once the ids of the predictions are changed by {step:+d}, so one"
                f" side counts them from another number; write"
                f" {option('id_format', [*['number'] * text, f'{step:+d}'])}"
            )
    return None


def other_labels(
    some: Sample, labels: Labels, nearest: tuple[Array, Array] | None = None
) -> Note | None:
    """Return a warning about overlapping boxes with different labels, with the label pairs.

    Args:
        nearest: the result of :meth:`Sample.best`, if known.
    """
    best, at = nearest or some.best(some.iou(some.ours, some.theirs))
    on = best >= _ON
    pairs = counted(some.our_labels[at[on]], some.their_labels[on])
    if pairs is None:
        return None
    few = pairs["len"].sum()
    if few < LEAST and not (few >= _FEW_PAIRS and _exchanged_boxes(pairs)):
        return None
    intro = "boxes of the two sides overlap, but"
    return renamed(pairs, labels.frame["label_value"], intro)


def _exchanged_boxes(pairs: pl.DataFrame) -> bool:
    """Return True if at least two labels are consistently paired with another label, one to one."""
    moved = pairs.filter(pl.col("mine") != pl.col("other")).height
    return (
        moved >= 2
        and moved == pairs.height == pairs["mine"].n_unique() == pairs["other"].n_unique()
    )


class Sample(NamedTuple):
    """Rows of some datums that both sides have.

    Attributes:
        ours: corners of predictions, float64 [k, 4].
        theirs: corners of ground truths, float64 [m, 4].
        our_labels: label codes, int32 [k].
        their_labels: label codes, int32 [m].
        prediction: int64 [n], prediction of each pair of one datum, by ground truth.
        truth: int64 [n], its ground truth.
        start: int64 [m], first pair of each ground truth; all have at least one.
        rows: int64 [k], rows of the predictions.
        datum: int64 [m], datum codes of the ground truths.
    """

    ours: Array
    theirs: Array
    our_labels: Array
    their_labels: Array
    prediction: Array
    truth: Array
    start: Array
    rows: Array
    datum: Array

    @property
    def fewest(self) -> int:
        """Number of boxes of the smaller side."""
        return min(len(self.ours), len(self.theirs))

    def iou(self, ours: Array, theirs: Array) -> Array:
        """Return the IoU of every pair, float64 [n], with other corners than the sample's."""
        iou = np.zeros(self.truth.size)
        mine, other = np.ascontiguousarray(ours.T), np.ascontiguousarray(theirs.T)
        areas = _area(*mine), _area(*other)
        for first in range(0, iou.size, _AT_ONCE):
            here = slice(first, first + _AT_ONCE)
            p, g = self.prediction[here], self.truth[here]
            low, high = np.maximum(mine[:2, p], other[:2, g]), np.minimum(mine[2:, p], other[2:, g])
            shared = _area(*low, *high)
            union = areas[0][p] + areas[1][g] - shared
            np.divide(shared, union, out=iou[here], where=union > 0)
        return iou

    def best(self, iou: Array) -> tuple[Array, Array]:
        """Return the largest IoU of each ground truth and its prediction, float64 and int64 [m]."""
        best = np.maximum.reduceat(iou, self.start) if iou.size else np.empty(0)
        at = np.flatnonzero(iou == np.repeat(best, np.diff(self.start, append=iou.size)))
        return best, self.prediction[at[np.searchsorted(at, self.start)]]


_AT_ONCE = 1 << 16  # pairs


def _area(x0: Array, y0: Array, x1: Array, y1: Array) -> Array:
    """Area of boxes, float64 [n]; 0 if their corners are not in order."""
    return np.maximum(x1 - x0, 0) * np.maximum(y1 - y0, 0)


def good_fit(fewest: int) -> float:
    """Return the fit from which another reading is named, given the boxes on the smaller side."""
    return GOOD if fewest >= LEAST else WELL


def sample(predictions: Rows, truths: Rows, places: Array) -> Sample:
    """Return rows of some datums that both sides have.

    Args:
        places: int64 [n_datums], ground-truth datum of each datum of the predictions; -1 for none.
    """
    n_datums = places.size
    here = np.bincount(predictions.datum, minlength=n_datums) > 0
    annotated = np.bincount(truths.datum, minlength=n_datums) > 0
    common = np.flatnonzero(here & (places >= 0) & annotated[places])
    chosen = common[:: max(1, common.size // _DATUMS)]
    sides = []
    for side, datums in ((predictions, chosen), (truths, places[chosen])):
        place = np.full(n_datums, -1, np.int64)
        place[datums] = np.arange(chosen.size)
        rows = np.flatnonzero(place[side.datum] >= 0)
        at = place[side.datum[rows]]
        order = np.argsort(at, kind="stable")
        rows, at = rows[order], at[order]
        few = np.arange(at.size) - np.searchsorted(at, np.arange(chosen.size))[at] < _ROWS
        sides.append((rows[few], at[few]))
    (rows, at), (truth_rows, truth_at) = sides
    first = np.searchsorted(at, np.arange(chosen.size))
    counts = np.bincount(at, minlength=chosen.size)[truth_at]
    start = np.cumsum(counts) - counts
    truth = np.repeat(np.arange(truth_rows.size), counts)
    prediction = np.arange(truth.size) - (start - first[truth_at])[truth]
    return Sample(
        predictions.boxes(rows),
        truths.boxes(truth_rows),
        predictions.label[rows],
        truths.label[truth_rows],
        prediction,
        truth,
        start,
        rows,
        truths.datum[truth_rows],
    )


def _extents(boxes: Array) -> Array:
    return boxes[:, 2:] - boxes[:, :2]


def fit(some: Sample, ours: Array | None = None, theirs: Array | None = None) -> float:
    """Return the mean over the ground truths of the best IoU that a prediction of their datum has.

    Args:
        ours: float64 [k, 4], corners of the predictions; those of the sample by default.
        theirs: float64 [m, 4], corners of the ground truths; those of the sample by default.
    """
    iou = some.iou(some.ours if ours is None else ours, some.theirs if theirs is None else theirs)
    return float(np.maximum.reduceat(iou, some.start).mean()) if iou.size else 0.0
