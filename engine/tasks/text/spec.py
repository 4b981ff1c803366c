"""Text as a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...metrics.registry import Metric, all_metrics
from ...schemas.errors import InputError
from ...schemas.option_values import Embedding
from ...schemas.wording import option
from .. import per_datum
from ..contents import Content, Contents, word_diffs
from ..encoding import Workers
from ..per_datum import OF_VALUES, counted, truth
from ..task import Sample, Task, Unanswered
from .dialects import Settings
from .encode import has_texts, has_vectors
from .tallies import examine, tally

# Metrics that tables support.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that the tables support: with texts, or with vectors.

    Args:
        asked_for: the user named the metrics; otherwise vector metrics are added if there are
            vectors or an embedder.

    Raises:
        InputError: the input of a metric named by the user is missing.
    """
    texts, vectors = has_texts(frames), has_vectors(frames)
    any_texts = has_texts(frames, references=False)
    vectors = vectors or (texts and settings.embedder is not None)
    if asked_for:
        _refuse([one for one in metrics if _by_vectors(one.needs) and not vectors], _NO_VECTORS)
        counted = [one for one in metrics if not _by_vectors(one.needs)]
        lacking = [
            one for one in counted if not (any_texts if "reference" in one.spares else texts)
        ]
        _refuse(lacking, _NO_TEXTS)
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
