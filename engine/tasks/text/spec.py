"""Text as a task: every measure that is needed, one row per datum."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read, note_of
from ...metrics.registry import Metric, all_metrics
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError
from ...schemas.option_values import Embedding
from ...schemas.wording import option
from ...tallies.stats import Column, Stats
from .. import per_datum
from ..contents import Content, Contents, word_diffs
from ..encoding import Workers
from ..per_datum import OF_VALUES, StatsTallies, counted, no_labels, truth
from ..task import Sample, Task, Unanswered
from .dialects import Settings
from .encode import STATUS, Batch, embed_texts, encode_batch, has_texts, has_vectors, note_wordless

# Tally.


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
    return order[np.r_[True, ordered[1:] != ordered[:-1]]]


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


# Metrics that tables support.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that the tables support: with texts, or with vectors.

    Args:
        requested: the user named the metrics; otherwise vector metrics are added if there are
            vectors or an embedder.

    Raises:
        InputError: the input of a metric named by the user is missing.
    """
    texts, vectors = has_texts(frames), has_vectors(frames)
    any_texts = has_texts(frames, references=False)
    vectors = vectors or (texts and settings.embedder is not None)
    if requested:
        _refuse([one for one in metrics if _by_vectors(one.needs) and not vectors], _NO_VECTORS)
        counted = [one for one in metrics if not _by_vectors(one.needs)]
        unfit = [one for one in counted if not (any_texts if "reference" in one.spares else texts)]
        _refuse(unfit, _NO_TEXTS)
    else:
        metrics = metrics if texts else ()
        if vectors:
            every = all_metrics("text").values()
            vector_metrics = [one for one in every if _by_vectors(one.needs) and one not in metrics]
            metrics = (*metrics, *vector_metrics)
    read = {name for metric in metrics for name in metric.params}
    notes = []
    if "embedder" in read and settings.embedder is not None and has_vectors(frames):
        notes.append(not_read(f"{option('embedder')} is not read: the tables have vectors."))
    names = {metric.name for metric in metrics}
    if settings.rules.bleu == "sacrebleu" and "BLEU" in names and "CorpusBLEU" not in names:
        message = (
            "BLEU is the mean over sentences (sentence_bleu). For the BLEU of the corpus, as"
            f" sacrebleu prints it, write {option('metrics', 'CorpusBLEU')}."
        )
        notes.append(Note("mean_of_sentences", message))
    return metrics, notes


_NO_VECTORS = (
    "needs vectors. Give both sides a column of them (embedding and reference_embedding, or"
    " embedding in either table), or name a model that embeds texts:"
    f" {option('embedder', {'model': 'my-model', 'base_url': 'http://localhost:8000/v1'})}, or in"
    " Python an object with encode"
)
_NO_TEXTS = "needs texts on both sides, but the tables only have vectors"


def _refuse(metrics: list[Metric], why: str) -> None:
    if metrics:
        raise InputError(
            f"{', '.join(one.name for one in metrics)} {why}.",
            code="metric_unfit",
            metrics=[one.name for one in metrics],
        )


def _by_vectors(needs: Iterable[str]) -> bool:
    """Return True if needs are computed from vectors instead of texts."""
    return any(metrics.measures("text")[need].vectors for need in needs)


# The frame of single datums of texts.

UNDEFINED = "undefined"
"""Standing of a text that was scored and has no value in one metric."""


def own_frames(
    frame: str,
    tallies: per_datum.StatsTallies,
    settings: Any,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """Return per-datum values; ``status`` marks datums for which a metric is undefined.

    Arguments are those of ``stats_views.own_frames``.
    """
    single = per_datum.own_frames(frame, tallies, settings, each_view, cuts=cuts)
    undefined = pl.col("value").is_null() & (pl.col("status") == "scored")
    status = pl.when(undefined).then(pl.lit(UNDEFINED)).otherwise("status")
    return single.with_columns(status=status)


# Tiny tables that make every kernel of text run once.


def samples() -> Iterator[Sample]:
    """Texts of one line and of several, short and long, by every tokenizer."""
    long = " ".join(f"word{i}" for i in range(80))
    texts = pl.DataFrame(
        {
            "text": ["The cats sat.\nOn a mat.", f"naïve {long}", ""],
            "reference": [["Cats sat on a mat.\nThe end.", "a cat"], [f"{long} end"], ["none"]],
        }
    )
    every = [one.name for one in metrics.all_metrics("text").values() if not _by_vectors(one.needs)]
    for options in (
        {},
        {"use_stemmer": True, "tokenizer": "none"},
        {"rouge_tokenizer": "unicode", "tokenizer": "char"},
        {"tokenizer": "13a", "lowercase": True},
        {"dialect": "continuous-eval"},
    ):
        yield texts, None, {"metrics": every, **options}


# Contents of single texts: word diff of prediction and reference.


def contents(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`; None if there are only vectors."""
    return word_diffs(frames, ids, ("text", "reference"), _texts)


def _texts(rows: pl.DataFrame | None, name: str) -> list[str]:
    """Texts of a datum, of a column of texts or of lists of them."""
    if rows is None or name not in rows.columns:
        return []
    column = rows[name]
    if isinstance(column.dtype, pl.List):
        column = column.explode(empty_as_null=False, keep_nulls=False)
    return [str(text) for text in column.drop_nulls().to_list()]


# The plan of a text run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    stems = ", stemmed" if settings.use_stemmer else ""
    vectors = []
    if _by_vectors(needs):
        embedder = settings.embedder
        by = "of the tables"
        if isinstance(embedder, Embedding):
            by = f"by {embedder.model}, kept in {embedder.cache}"
        elif embedder is not None:
            by = f"by {embedder.name}"
        vectors = [f"vectors   {by}; cosine"]
    return [
        f"tokens    ROUGE {settings.rouge_tokenizer}{stems}; BLEU {settings.tokenizer}",
        *vectors,
        f"tally     {len(needs)} measures a datum: {', '.join(sorted(needs))}",
        "mean      over datums with a prediction and a reference",
    ]


TASK = Task(
    name="text",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents),
    warm=("walks",),
    examine=examine,
    **{**OF_VALUES, "own_frames": own_frames},
    truth=truth,
    unanswered=Unanswered(counted),
    growth=8,  # tokens in addition to texts
)
