"""Tally: pairs of numbers, and the errors of single datums."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import numpy as np

from ...ingest.frames import Frames
from ...ingest.problems import Note, note_of
from ...schemas.arrays import Array
from ...tally.paired_values import Paired
from ...tally.stats import Column, Fill, Stats, row_places
from ..counted import merge_by
from ..encoding import Workers
from ..rules import out_of_step
from .dialects import INTERVALS, QUANTILES, SAMPLES, SCALES, Settings, read_of
from .encode import STATUS, Tallies, encode_batch
from .metrics.distributions import of_quantiles, of_samples, winkler

ERROR = "AbsoluteError"
"""The number of single datums that have a prediction."""
_OTHERS = {
    SAMPLES: ("CRPS", of_samples),
    QUANTILES: ("CRPSFromQuantiles", of_quantiles),
    INTERVALS: ("Winkler", winkler),
}
"""Input of distributions -> per-datum number if there is no prediction."""


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        needs: columns that metrics read in addition to predictions and targets.
    """
    begun = time.perf_counter()
    here = {name for side in frames.sides.values() for name in side.columns}
    read = [] if "prediction" in here else read_of(here)
    error = _OTHERS[read[0]][0] if read else ERROR
    batch = encode_batch(frames)
    if settings.training is None:  # else a rule names the series
        _note_zero_scale(frames, batch)
    _warn_of_units(frames, batch)
    _warn_of_sentinels(frames, batch.paired)
    matched = time.perf_counter()
    stats = stats_of(batch.present, batch.paired, error, settings)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return msgspec.structs.replace(batch, stats=stats, seconds=seconds)


def _note_zero_scale(frames: Frames, batch: Tallies) -> None:
    """Add a note of rows whose scale is 0."""
    for name in SCALES:
        if name not in batch.paired.beside:
            continue
        zero = np.flatnonzero(batch.paired.beside[name] == 0)
        if zero.size:
            ids = batch.datums.id.gather(np.unique(batch.paired.datum[zero])[:5]).to_list()
            words = ("row", "rows", f"whose {name!r} is 0, so that numbers with it are undefined")
            frames.notes.append(note_of("zero_scale", int(zero.size), words, ids))


_LEAST, _LOOKED_AT, _LINEAR = 20, 100_000, 0.9  # rows, rows at most, correlation
_TARGETS = 20  # looked at, at most


def _correlation(ours: Array, theirs: Array) -> float:
    """Return Pearson's correlation; 0 if one side is constant."""
    a, b = ours - ours.mean(), theirs - theirs.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


def _warn_of_units(frames: Frames, batch: Tallies) -> None:
    """Add a warning of predictions in another unit: far off, but on a line with the targets."""
    paired, names = batch.paired, batch.labels.key_names
    for code, name in enumerate(names[:_TARGETS]):
        own = slice(None) if len(names) == 1 else paired.key == code
        target, prediction = paired.target[own], paired.prediction[own]
        if target.size < _LEAST:
            continue
        step = max(1, target.size // _LOOKED_AT)
        target, prediction = target[::step], prediction[::step]
        with np.errstate(all="ignore"):
            spread = target - target.mean()
            if not ((prediction - target) ** 2).sum() > (spread**2).sum() > 0:
                continue
            centred = prediction - prediction.mean()
            both, own_spread = float((spread * centred).sum()), float((centred**2).sum())
            r = both / np.sqrt(own_spread * float((spread**2).sum()))
        if not abs(r) >= _LINEAR:
            ours, theirs = paired.prediction[own], paired.target[own]
            naive = (ours[1:] == theirs[:-1]).mean() > _NAIVE
            if frames.whole and not naive and (note := out_of_step(ours, theirs, _correlation)):
                frames.notes.append(note)
            continue
        factor = both / own_spread
        offset = float(target.mean() - factor * prediction.mean())
        of = f"targets {name!r}" if len(names) > 1 else "targets"
        facts = {"correlation": float(r), "factor": factor, "offset": offset}
        message = (
            f"errors are larger than the spread of the {of}, but predictions x {factor:.4g}"
            f" {offset:+.4g} nearly fit them (correlation {r:.2f}):"
            f" {'is the sign flipped' if r < 0 else 'are the units different'}?"
        )
        kind = "sign_flipped" if r < 0 else "units_differ"
        frames.notes.append(Note(kind, message, facts={**facts, "target": str(name)}, warning=True))


_NAIVE = 0.5  # share of predictions that are the target of the row before
_QUARTILES = 10_000  # rows whose quartiles are computed
_REPEATED, _FAR = 3, 10.0  # rows of a sentinel, and interquartile ranges to all other values


@np.errstate(all="ignore")
def _warn_of_sentinels(frames: Frames, paired: Paired) -> None:
    """Add a warning of one value that repeats far outside all others, such as -999."""
    if paired.target.size < _LEAST:
        return
    step = max(1, paired.target.size // _QUARTILES)
    for side, values, others in (
        ("predictions", paired.prediction, paired.target),
        ("targets", paired.target, paired.prediction),
    ):
        low, middle, high = np.quantile(values[::step], [0.25, 0.5, 0.75])
        far = _FAR * (high - low)
        for extreme in (values.min(), values.max()):
            if not 0 < far < abs(extreme - middle) < np.inf:
                continue
            same = values == extreme
            n = int(np.count_nonzero(same))
            if n < _REPEATED and frames.whole:
                continue
            # A true extreme has neighbours, or the other side is extreme there too.
            if np.abs(values[~same] - extreme).min() <= far:
                continue
            there = others[same]
            if not (there == extreme).all() and np.abs(np.median(there) - extreme) <= far:
                continue
            what = (
                f"whose {side[:-1]} is {extreme:g}, far outside all others: a mark of missing"
                " values? Remove these rows"
            )
            note = note_of("sentinel_values", n, ("row", "rows", what))
            facts = {"side": side, "value": str(extreme), "count": n, "least": _REPEATED}
            frames.notes.append(msgspec.structs.replace(note, warning=True, facts=facts))


def errors_of(paired: Paired, error: str, settings: Settings) -> Array:
    """Return the error of each row, float64 [n].

    Args:
        error: name of the number.
    """
    of = dict(_OTHERS.values()).get(error)
    if of is not None:
        return of(paired, settings)
    apart = paired.error
    return np.abs(apart, out=apart)


def stats_of(present: Array, paired: Paired, error: str, settings: Settings) -> Stats:
    """Return the error of every datum, the largest over its targets.

    Args:
        present: int8 [n_datums], status of each datum.
        paired: rows that both sides have, by datum.
        error: name of the error.
    """
    value = errors_of(paired, error, settings)
    if value.size != present.size or paired.key.any():  # else row i is datum i
        begins = np.flatnonzero(np.diff(paired.datum, prepend=-1))
        worst = np.full(present.size, np.nan)
        if begins.size:
            worst[paired.datum[begins]] = np.fmax.reduceat(value, begins)
        value = worst
    value[np.isinf(value)] = np.nan  # beyond the range of float64
    column = Column(metric=error, values=value[:, None, None], reason="not on both sides")
    return Stats(present == 0, {error: (column,)}, (STATUS, present))


merge = merge_by(
    "paired",
    lambda whole, settings: stats_of(
        whole.present, whole.paired, next(iter(whole.stats.columns)), settings
    ),
)


def counted(tallies: Tallies) -> Array:
    """Return the datums that enter means, bool [n_datums]."""
    return tallies.stats.counted


def common(tallies: Sequence[Tallies], codes: Sequence[Array], fill: Fill) -> list[Tallies] | None:
    """The tallies with the targets of datums that all runs predict; see :class:`..task.Common`."""
    own = [one.paired for one in tallies]
    places = row_places(tallies, own, codes, "key")
    there = np.zeros(2 + max(int(place.max(initial=-1)) for place in places), np.int64)
    for place in places:
        there[place] += 1  # of rows that are not compared in the last
    there[-1] = len(tallies)
    if (there[:-1] == len(tallies)).all():
        return None
    return [
        msgspec.structs.replace(one, paired=one.paired.take(there[place] == len(tallies)))
        for one, place in zip(tallies, places, strict=True)
    ]
