"""Metrics that tables and options support, and options without effect."""

from __future__ import annotations

from typing import Any

from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...metrics.registry import Metric, all_metrics
from ...schemas.errors import InputError
from ...schemas.wording import option
from .encode import has_texts, has_vectors
from .measures import by_vectors
from .settings import TER_OPTIONS, USUAL_SHARE, Settings

_USUAL: dict[str, Any] = {
    "use_stemmer": False,
    "rouge_tokenizer": "ascii",
    "lowercase": False,
    "stop_words": None,
    "faithfulness_threshold": USUAL_SHARE,
    **dict.fromkeys(TER_OPTIONS, False),
    "embedder": None,
    "similarity_threshold": None,
}
"""Option -> default value."""


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
    alone = has_texts(frames, references=False)
    vectors = vectors or (texts and settings.embedder is not None)
    if asked_for:
        _refuse([one for one in metrics if by_vectors(one.needs) and not vectors], _NO_VECTORS)
        counted = [one for one in metrics if not by_vectors(one.needs)]
        lacking = [one for one in counted if not (alone if "reference" in one.spares else texts)]
        _refuse(lacking, _NO_TEXTS)
    else:
        metrics = metrics if texts else ()
        if vectors:
            found = all_metrics("text").values()
            more = [one for one in found if by_vectors(one.needs) and one not in metrics]
            metrics = (*metrics, *more)
    read = {name for metric in metrics for name in metric.params}
    names = ", ".join(metric.name for metric in metrics[:5])
    idle = [
        f"{option(name, getattr(settings, name))} is not read by any of the metrics ({names})."
        for name, usual in _USUAL.items()
        if getattr(settings, name) != usual and name not in read
    ]
    if "embedder" in read and settings.embedder is not None and has_vectors(frames):
        idle.append(f"{option('embedder')} is not read: the tables have vectors.")
    return metrics, [not_read(said) for said in idle]


_NO_VECTORS = (
    "needs vectors. Give both sides a column of them (embedding and reference_embedding, or"
    " embedding in either table), or say what makes them of texts:"
    f" {option('embedder', {'model': 'my-model', 'base_url': 'http://localhost:8000/v1'})}, or in"
    " Python an object with encode"
)
_NO_TEXTS = "needs texts on both sides, and the tables have vectors alone"


def _refuse(metrics: list[Metric], why: str) -> None:
    if metrics:
        raise InputError(
            f"{', '.join(one.name for one in metrics)} {why}.",
            code="metric_unfit",
            metrics=[one.name for one in metrics],
        )
