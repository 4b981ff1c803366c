"""Frames that are not made of cells: which they are, and outcomes of hard predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from ...exports.phoenix import automatic_positive
from ...kernels.sums import ExactSums
from ...metrics import get
from ...metrics.label_averages import in_use
from ...schemas.arrays import Array
from ...schemas.asked import in_name
from ...schemas.label_errors import OTHER_LABEL, WAYS
from ...schemas.results import empty_frame, frame_schema
from ...tally.scored_view import ScoredView
from .binary import find_label
from .confusion import confusion_examples, confusion_frame
from .detailed import detailed_frames
from .settings import Settings
from .tallies import Tallies
from .views import EachView, view

# Likely wrong labels of ground truths, by confident learning.
#
# Probabilities of a label are compared with their mean over the datums given that label. This
# estimates how many datums of each given label have another true label, and which ones.
#
# Source: C. Northcutt, L. Jiang, I. Chuang, "Confident Learning: Estimating Uncertainty in
# Dataset Labels" (JAIR 70, 2021); the filters and the three quality scores are those of cleanlab
# 2.9
# (``filter.find_label_issues``, ``rank.get_label_quality_scores``), with one difference: datums
# tied
# with the last one picked are picked too.


_ALIKE = 1e-6
"""Probabilities closer than this are treated as equal."""
_LEAST = 2 * _ALIKE
_NEVER = 2.0
"""Threshold of labels that no datum is given: no probability reaches it."""


class _Judged(NamedTuple):
    """Datums of one label key whose labels are assessed.

    Attributes:
        datum_id: ids [m].
        given: int64 [m], index of the given label.
        chance: float64 [m, labels], probabilities.
    """

    datum_id: pl.Series
    given: Array
    chance: Array

    @property
    def own(self) -> Array:
        """Probability of the given label, float64 [m]."""
        own: Array = self.chance[np.arange(self.given.size), self.given]
        return own


def label_errors_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the ``label_errors`` frame: datums whose given label is likely wrong.

    Empty for multi-label data, or if scores do not cover all labels.
    """
    labels, id_dtype = tallies.labels, tallies.datums.id_dtype
    empty = empty_frame("label_errors", label=labels.dtype, datum=id_dtype)
    if tallies.scored is None or settings.multilabel or tallies.units.truth_start is not None:
        return empty
    found = [empty]
    for key in range(len(labels.key_names)):
        codes = np.flatnonzero(labels.key == key)
        # One score a datum is that of one of two labels.
        one = not tallies.scored.several
        if codes.size >= 2 and not (one and (codes.size > 2 or tallies.scored.only not in codes)):
            found.append(_of_key(tallies, key, codes, empty))
    return pl.concat(found).sort(
        ["label_key", "suspicion", "datum_id"], descending=[False, True, False]
    )


def _of_key(tallies: Tallies, key: int, codes: Array, empty: pl.DataFrame) -> pl.DataFrame:
    n = codes.size
    sums, counts = ExactSums(n), np.zeros(n, np.int64)
    for block in _blocks(tallies, key, codes):
        sums.add(block.own, block.given)
        counts += np.bincount(block.given, minlength=n)
    mean = sums.rounded() / np.maximum(counts, 1)
    limit = np.maximum(np.where(counts > 0, mean, _NEVER), _LEAST)
    joint = np.zeros((n, n), np.int64)
    for block in _blocks(tallies, key, codes):
        guess, sure = sure_labels(block.chance, limit)
        np.add.at(joint, (block.given[sure], guess[sure]), 1)
    kept = to_prune(calibrated(joint, counts))
    cuts = _cuts(tallies, key, codes, kept, counts)
    frames = [_rows(block, limit, cuts) for block in _blocks(tallies, key, codes)]
    if not frames:
        return empty
    found = pl.concat(frames)
    value = tallies.labels.frame["label_value"]
    made = found.with_columns(
        label_key=pl.lit(tallies.labels.key_names[key]),
        label_value=value.gather(codes[found["given"].to_numpy()]),
        suggested=value.gather(codes[found["other"].to_numpy()]),
        reason=pl.lit(OTHER_LABEL),
    )
    schema = empty.schema
    missing = [pl.lit(None).alias(name) for name in schema if name not in made.columns]
    return made.with_columns(missing).select(list(schema)).cast(schema)


def _blocks(tallies: Tallies, key: int, codes: Array) -> Iterator[_Judged]:
    """Datums of a key that have a label and scores, a part of the run after the other."""
    place = np.full(len(tallies.labels), -1, np.int64)
    place[codes] = np.arange(codes.size)
    for part in [tallies] if tallies.parts is None else tallies.parts.shown():
        units, scored = part.units, part.scored
        assert scored is not None
        chance = np.zeros((len(units), codes.size))
        seen = np.zeros(len(units), np.bool_)
        unit = slice(None) if scored.unit_codes is None else scored.unit_codes
        if scored.label_codes is None:
            chance[unit, place[scored.only]] = scored.score
            chance[unit, 1 - place[scored.only]] = 1 - scored.score
            seen[unit] = True
        else:
            column = place[scored.label_codes]
            rows = np.flatnonzero(column >= 0)
            of = rows if scored.unit_codes is None else scored.unit_codes[rows]
            chance[of, column[rows]] = scored.score[rows]
            seen[of] = True
        judged = np.flatnonzero(seen & (units.truth >= 0) & (place[units.truth] >= 0))
        ids = part.datums.id.gather(units.datum_of(judged)).alias("datum_id")
        yield _Judged(ids, place[units.truth[judged]], chance[judged])


def sure_labels(chance: Array, limit: Array) -> tuple[Array, Array]:
    """Return the confident label of each datum, int64 [m], and a mask of those with one.

    Args:
        chance: float64 [m, labels], probabilities.
        limit: float64 [labels], threshold of confidence per label.
    """
    reached = chance >= limit - _ALIKE
    several = reached.sum(axis=1)
    return np.where(several > 1, chance.argmax(axis=1), reached.argmax(axis=1)), several > 0


def calibrated(joint: Array, counts: Array) -> Array:
    """Calibrate the confident joint to integers over all datums, int64 [given, sure].

    Args:
        joint: int64 [given, sure], datums with a confident label.
        counts: int64 [given], all datums.
    """
    filled = joint.T.astype(np.float64, order="C")
    np.fill_diagonal(filled, np.maximum(filled.diagonal(), 1))
    # Turned, so that the sum adds in cleanlab's order: halves are rounded by its last bit.
    of_all = filled / np.maximum(filled.sum(axis=0), 1e-100) * counts
    of_all = of_all / max(of_all.sum(), 1e-100) * counts.sum()
    return np.stack([_whole(row) for row in of_all.T])


def _whole(row: Array) -> Array:
    """Numbers rounded so that their sum is the rounded sum."""
    made: Array = row.round()
    wanted = row.sum().round()
    while abs(lacking := wanted - made.sum()) > _ALIKE:
        order = np.argsort(row - made)  # of equal ones whichever NumPy's sort, and cleanlab, takes
        changed = (order[::-1] if lacking > 0 else order)[: int(abs(lacking))]
        made[changed] += np.sign(lacking)
    whole: Array = made.astype(np.int64)
    return whole


def to_prune(joint: Array) -> Array:
    """Return how many datums of each given label to keep and to assign to others, [other, given].

    Args:
        joint: int64 [given, sure], calibrated.
    """
    counts = joint.T.astype(np.float64)
    kept = np.maximum(counts.diagonal(), 1)
    others = np.maximum(np.count_nonzero(counts, axis=0) - 1, 1)
    counts = np.maximum(counts - (kept - counts.diagonal()) / others, 0)
    np.fill_diagonal(counts, kept)
    pruned: Array = counts.astype(np.int64)
    return pruned


class _Cuts(NamedTuple):
    """Thresholds for datums of each given label to be picked.

    Attributes:
        own: float64 [given], highest probability of the given label; -inf for none.
        margin: (given, other) -> minimum by which the other is more probable.
    """

    own: Array
    margin: dict[tuple[int, int], float]


def _cuts(tallies: Tallies, key: int, codes: Array, kept: Array, counts: Array) -> _Cuts:
    n = codes.size
    pairs = [
        (given, other)
        for other, given in np.argwhere(kept > 0).tolist()
        if given != other and counts[given] > 1
    ]
    wanted = {given: int(counts[given] - kept[given, given]) for given in range(n)}
    lowest: dict[int, Array] = {g: np.zeros(0) for g, m in wanted.items() if m and counts[g] > 1}
    highest = {pair: np.zeros(0) for pair in pairs}
    for block in _blocks(tallies, key, codes):
        order = np.argsort(block.given, kind="stable")
        start = np.searchsorted(block.given[order], np.arange(n + 1))
        own = block.own
        for given in lowest:
            rows = order[start[given] : start[given + 1]]
            lowest[given] = np.sort(np.r_[lowest[given], own[rows]])[: wanted[given]]
        for given, other in pairs:
            rows = order[start[given] : start[given + 1]]
            more = np.r_[highest[given, other], block.chance[rows, other] - own[rows]]
            highest[given, other] = np.sort(more)[::-1][: kept[other, given]]
    limit = np.full(n, -np.inf)
    for given, values in lowest.items():
        limit[given] = values[-1]
    return _Cuts(limit, {pair: float(values[-1]) for pair, values in highest.items()})


def _rows(block: _Judged, limit: Array, cuts: _Cuts) -> pl.DataFrame:
    """Datums whose label is not the most probable one, and how each way takes them."""
    own, m = block.own, np.arange(block.given.size)
    raised = block.chance.copy()
    raised[m, block.given] += _ALIKE
    rows = np.flatnonzero(raised.argmax(axis=1) != block.given)
    chance, given, own = block.chance[rows], block.given[rows], own[rows]
    others = chance.copy()
    others[np.arange(rows.size), given] = -np.inf
    other = others.argmax(axis=1)
    guess, sure = sure_labels(chance, limit)
    by_class = own <= cuts.own[given]
    by_noise = np.zeros(rows.size, np.bool_)
    for (label, rival), least in cuts.margin.items():
        by_noise |= (given == label) & (chance[:, rival] - own >= least)
    ways = by_class, by_noise, by_class & by_noise, sure & (guess != given), own > -np.inf
    names = [
        pl.when(pl.Series(way)).then(pl.lit(name)) for name, way in zip(WAYS, ways, strict=True)
    ]
    margin = (own - chance[np.arange(rows.size), other] + 1) / 2
    return pl.DataFrame({"datum_id": block.datum_id.gather(rows)}).with_columns(
        given=given,
        other=other,
        score=chance[np.arange(rows.size), other],
        given_score=own,
        normalized_margin=margin,
        confidence_weighted_entropy=_weighted_entropy(chance, own),
        suspicion=1 - margin,
        found_by=pl.concat_str(names, separator=" ", ignore_nulls=True),
    )


def _weighted_entropy(chance: Array, own: Array) -> Array:
    """Entropy over the probability of the given label, turned so that low is bad, float64 [m]."""
    logs = np.log(np.where(chance > 0, chance, 1))
    weighed = -(chance * logs).sum(axis=1) / np.log(chance.shape[1]) / np.maximum(own, _ALIKE)
    turned: Array = np.log(weighed + 1) / np.maximum(weighed, _ALIKE)
    return turned


# Rows of label sequences: precision, recall and F of every row by itself, as Phoenix has them.


_CELLS = 4_000_000  # counts of (row, label) held at once


def per_datum_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the per-datum frame: one row per sequence and metric, of the requested average.

    Rows whose labels are 0 and 1 are scored for label 1, unless an average or positive label was
    given
    (Phoenix).
    """
    if tallies.parts is not None:  # all rows of a datum are in one part
        every = [per_datum_frame(part, settings, each_view) for part in tallies.parts.shown()]
        in_turn = pl.col("metric").cast(pl.Enum(_names(settings)))
        return pl.concat(every).sort(in_turn, "datum_id")
    blank = pl.DataFrame(schema={"value": pl.Float64})
    n, n_labels = len(tallies.datums), max(1, len(tallies.labels))
    schema = frame_schema("per_datum", datum=tallies.datums.id_dtype)
    each = max(1, _CELLS // n_labels)
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in _names(settings)}
    for first in range(0, n, each):
        last = min(first + each, n)
        code = np.arange(n, dtype=np.int32)
        group = np.where((code >= first) & (code < last), code - first, -1).astype(np.int32)
        of_rows = view(tallies, settings, group, last - first)
        for name, found in parts.items():
            value = _values(of_rows, settings, name)
            found.append(
                pl.DataFrame(
                    {
                        "datum_id": tallies.datums.id[first:last],
                        "metric": pl.Series([name]).new_from_index(0, last - first),
                        "value": pl.Series(value, nan_to_null=True),
                    }
                )
            )
    frame = pl.concat([part for found in parts.values() for part in found]) if n else blank
    empty = [pl.lit(None).alias(name) for name in schema if name not in frame.columns]
    undefined = pl.col("value").is_null()
    status = pl.when(undefined).then(pl.lit("undefined")).otherwise(pl.lit("scored"))
    return (
        frame.with_columns(*empty)
        .with_columns(status.alias("status"))
        .select(list(schema))
        .cast(schema)  # type: ignore[arg-type]
    )


def _names(settings: Settings) -> tuple[str, str, str]:
    """The metrics of a row, in their order."""
    return "Precision", "Recall", f"F{in_name(settings.beta)}"


def _values(of_rows: ScoredView, settings: Settings, name: str) -> Array:
    """Return the metric of every row, float64 [rows]; NaN if undefined."""
    compute = get("classification", name).compute
    assert compute is not None
    cells = {
        cell.columns.get("average"): np.asarray(cell.columns["value"])
        for cell in compute(of_rows, settings)
    }
    averaged, labelled = cells[settings.average], cells[None]
    if not averaged.size:
        return np.full(of_rows.n_groups, np.nan)
    values = of_rows.labels.frame["label_value"].to_list()
    if settings.positive_label is not None:
        code = find_label(of_rows.labels.frame["label_value"], settings.positive_label)
        return np.asarray(labelled[:, code])
    bits = [code for code, value in enumerate(values) if value in (0, 1)]
    if automatic_positive([values[code] for code in bits], None, settings.average) is None:
        return np.asarray(averaged[:, 0])
    used = in_use(of_rows)
    binary = (used.sum(axis=1) == 2) & used[:, bits].all(axis=1)
    return np.where(binary, labelled[:, bits[-1]], averaged[:, 0])


def examples_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Examples of the detailed curve, then of the confusion matrix; of whichever was asked for."""
    parts = []
    if tallies.details:
        parts += detailed_frames(tallies, settings, each_view)
    if tallies.confusion_examples:
        parts += confusion_examples(tallies, settings, each_view)
    if not parts:
        return empty_frame("examples", label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return pl.concat(parts)


_OUTCOMES = pl.Enum(["tp", "fp_misclassified", "fp_hallucination", "fn_misclassified", "fn_missed"])


def outcomes_frame(tallies: Tallies, settings: Settings, each_view: EachView) -> pl.DataFrame:
    """Build the outcomes frame: one row per hard prediction, and per truth without one."""
    labels, datums = tallies.labels, tallies.datums
    schema = frame_schema("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if tallies.units.hard is None:
        return empty_frame("outcomes", label=labels.dtype, datum=datums.id_dtype)
    if tallies.parts is None:
        rows = _outcomes_of(tallies)
    else:  # all rows of a datum are in one part; short until they are in order
        parts = (_outcomes_of(part) for part in tallies.parts.shown())
        rows = pl.concat(list(parts)).sort("datum_id", maintain_order=True)
    label = rows["label"]
    made = {
        "datum_id": rows["datum_id"],
        "label_key": labels.frame["label_key"].gather(label),
        "label_value": labels.frame["label_value"].gather(label),
        "outcome": rows["outcome"].cast(pl.String),
        "score": rows["score"],
    }
    frame = pl.DataFrame(made)
    missing = [pl.lit(None).alias(name) for name in schema if name not in made]
    return frame.with_columns(missing).select(list(schema)).cast(schema)  # type: ignore[arg-type]


def _outcomes_of(part: Tallies) -> pl.DataFrame:
    """Outcomes of one tally in the order of its datums: datum_id, label code, outcome, score."""
    units = part.units
    assert units.hard is not None
    hit = (units.truth == units.hard) & (units.hard >= 0)
    score = units.hard_score
    parts = []
    for outcome, mask, code in (
        ("tp", hit, units.hard),
        ("fp_misclassified", ~hit & (units.hard >= 0) & (units.truth >= 0), units.hard),
        ("fp_hallucination", (units.hard >= 0) & (units.truth < 0), units.hard),
        ("fn_misclassified", ~hit & (units.hard >= 0) & (units.truth >= 0), units.truth),
        ("fn_missed", (units.hard < 0) & (units.truth >= 0), units.truth),
    ):
        rows = np.flatnonzero(mask)
        predicted = not outcome.startswith("fn")
        parts.append(
            pl.DataFrame(
                {
                    "datum": units.datum_of(rows),
                    "label": code[rows],
                    "outcome": pl.Series([outcome], dtype=_OUTCOMES).new_from_index(0, rows.size),
                    "score": pl.Series(score[rows], nan_to_null=True)
                    if predicted and score is not None
                    else pl.Series([None], dtype=pl.Float64).new_from_index(0, rows.size),
                },
                schema_overrides={"label": pl.Int32, "datum": pl.Int32},
            )
        )
    ordered = pl.concat(parts).sort("datum", maintain_order=True)
    datum_id = part.datums.id.gather(ordered["datum"]).alias("datum_id")
    return ordered.select(datum_id, "label", "outcome", "score")


MAKERS: dict[str, Callable[[Tallies, Settings, EachView], pl.DataFrame]] = {
    "confusion": confusion_frame,
    "examples": examples_frame,
    "label_errors": label_errors_frame,
    "outcomes": outcomes_frame,
    "per_datum": per_datum_frame,
}
"""Frame name -> function that builds it."""


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: EachView,
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: one of :data:`MAKERS`."""
    make = MAKERS.get(frame)
    if make is None:
        return empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)
    return make(tallies, settings, each_view)
