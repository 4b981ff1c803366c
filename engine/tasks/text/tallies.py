"""Tally: every measure that is needed, one row a datum."""

from __future__ import annotations

import time

import msgspec
import numpy as np

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import note_of
from ...schemas.arrays import Array
from ...schemas.errors import OptionError
from ...schemas.wording import option
from ...tallies.stats import Column, Stats
from ..encoding import Workers
from ..per_datum import StatsTallies, no_labels
from .dialects import Settings
from .encode import STATUS, Batch, embed_texts, encode_batch, note_wordless


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, match and tally.

    Raises:
        InputError: several predictions of one datum, if that is not allowed.
        OptionError: a metric that does not support several predictions of one datum.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings)
    measures = [metrics.measures("text")[need] for need in needs]
    if "vectors" not in batch.pairs.made and any(one.vectors for one in measures):
        vectors, note = embed_texts(
            batch.pairs.candidates, batch.pairs.references, batch.pairs.start, settings
        )
        batch.pairs.made["vectors"] = vectors
        frames.notes.append(note)
    usual = settings.rules.sequence == "rouge-score" and settings.rouge_tokenizer == "ascii"
    if usual and any("rouge_tokenizer" in one.params for one in measures):
        note_wordless(frames, batch)
    encoded = time.perf_counter()
    stats = stats_of(batch, settings, needs, workers)
    if "bleu" in needs:
        _note_bleu_of_equal(frames, batch, stats.columns["bleu"][0].values[:, 0, 0])
    if "bleu_counts" in needs and frames.whole:
        _note_bleu_of_short(frames, batch)
    seconds = {"encode": encoded - begun, "measure": time.perf_counter() - encoded}
    return StatsTallies(batch.datums, no_labels(), stats, batch.row, batch.height, seconds)


def _note_bleu_of_equal(frames: Frames, batch: Batch, value: Array) -> None:
    """Add a note on predictions that equal a reference and have a BLEU of 0."""
    counts = batch.pairs.made.get("bleu counts")
    if counts is None:  # BLEU of characters
        return
    length, closest, orders = counts[:, 0], counts[:, 1], (counts.shape[1] - 2) // 2
    matched = (counts[:, 2 : 2 + orders] == counts[:, 2 + orders :]).all(axis=1)
    equal = matched & (length > 0) & (length == closest) & (value[batch.datum] == 0)
    if n := np.unique(batch.datum[equal]).size:
        why = (
            "equal to a reference, with a BLEU of 0, as they have fewer words than the longest"
            " n-grams."
            f" Write {option('dialect', 'sacrebleu')}, fewer {option('bleu_weights')}, or"
            f" for texts without spaces {option('tokenizer', 'char')}"
        )
        frames.notes.append(note_of("bleu_of_equal_texts", n, ("prediction", "predictions", why)))


def _note_bleu_of_short(frames: Frames, batch: Batch) -> None:
    """Add a note if no prediction has as many words as the longest n-grams of CorpusBLEU."""
    counts = batch.pairs.made["bleu counts"]
    length, orders = counts[:, 0], (counts.shape[1] - 2) // 2
    if length.size and 0 < length.max() < orders:
        what = (
            f"with fewer than {orders} tokens, so that CorpusBLEU has no n-grams of {orders}:"
            f" write fewer {option('bleu_weights')}, or for texts without spaces"
            f" {option('tokenizer', 'char')}"
        )
        words = ("prediction", "predictions", what)
        frames.notes.append(note_of("bleu_without_ngrams", length.size, words))


def examine(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> None:
    """Check that each datum has the texts that the measures allow."""
    refuse_several(encode_batch(frames, settings), needs)


def refuse_several(batch: Batch, needs: frozenset[str]) -> None:
    """Raise OptionError for sums over datums if a datum has several predictions."""
    added = sorted(need for need in needs if metrics.measures("text")[need].summed)
    if added and np.unique(batch.datum).size < batch.datum.size:
        raise OptionError(
            f"{', '.join(added)}: counts are summed over datums, and some datums have several"
            f" predictions. Keep one of each, or remove these from {option('metrics')}.",
            code="metric_unfit",
            metrics=list(added),
        )


def stats_of(batch: Batch, settings: Settings, needs: frozenset[str], workers: Workers) -> Stats:
    """Compute the columns of all measures, for the best candidate of each datum."""
    refuse_several(batch, needs)
    columns = {}
    for need in sorted(needs):
        measured = metrics.measures("text")[need](batch.pairs, settings, workers)
        chosen = _best(measured[0].values[:, 0, 0], batch)
        columns[need] = tuple(_by_datum(column, chosen, batch) for column in measured)
    return Stats(batch.status == 0, columns, (STATUS, batch.status), batch.truth)


def _best(value: Array, batch: Batch) -> Array | None:
    """Return the first of each datum's best candidates; None if each has one."""
    if np.unique(batch.datum).size == batch.datum.size:
        return None
    order = np.lexsort((np.arange(value.size), -np.nan_to_num(value, nan=-np.inf), batch.datum))
    ordered = batch.datum[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    return order[first]


def _with_standing(column: Column, chosen: Array | None, datum: Array, batch: Batch) -> Column:
    """Add the status of candidates in one metric, if it differs from the datum's."""
    if column.status is None:
        return column
    names, codes = column.status
    codes = codes if chosen is None else codes[chosen]
    status = batch.status.copy()
    wrong = codes > 0
    status[datum[wrong]] = len(STATUS) - 1 + codes[wrong]
    return msgspec.structs.replace(column, status=((*STATUS, *names[1:]), status))


def _by_datum(column: Column, chosen: Array | None, batch: Batch) -> Column:
    """A column of candidates as one of datums; NaN for those without a candidate."""
    datum, values = batch.datum, column.values
    if chosen is not None:
        datum, values = datum[chosen], values[chosen]
    column = _with_standing(column, chosen, datum, batch)
    n = batch.status.size
    if datum.size == n and bool((datum == np.arange(n)).all()):
        return msgspec.structs.replace(column, values=values)
    out = np.full((n, *values.shape[1:]), np.nan)
    out[datum] = values
    return msgspec.structs.replace(column, values=out)
