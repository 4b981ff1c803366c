"""Vectors of texts: those of the tables, or made by an embedder."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...endpoint.embeddings import embed
from ...ingest.problems import Note, count_of
from ...schemas.arrays import Array
from ...schemas.embedder import Encoder
from ...schemas.errors import InputError
from ...schemas.wording import option
from .settings import Settings

_AT_ONCE = 4096
"""Texts that a local model is given at once."""


class Vectors(msgspec.Struct, frozen=True):
    """Vectors of candidates and of their references.

    Attributes:
        candidates: float [u, d]; a row of NaN if there is no vector.
        candidate: int64 [n], the row of each candidate.
        references: float [v, d].
        reference: int64 [m], the row of each reference.
        start: int64 [n + 1], offsets of the references of each candidate; some may have none.
        why: meaning of a row of NaN, as a status and as a sentence.
    """

    candidates: Array
    candidate: Array
    references: Array
    reference: Array
    start: Array
    why: tuple[str, str] = ("null_vector", "there is no vector")


def of_columns(candidates: pl.Series, references: pl.Series, start: Array) -> Vectors:
    """Return the vectors in the tables.

    Args:
        candidates: lists or arrays of floats [n], of one length if not null.
        references: lists or arrays of floats [m].
        start: int64 [n + 1], offsets of the references of each candidate.

    Raises:
        InputError: the two sides have different lengths.
    """
    ours, theirs = matrix(candidates), matrix(references)
    if ours.shape[1] != theirs.shape[1] and ours.size and theirs.size:
        raise InputError(
            f"{count_of(len(candidates), 'vector')} of texts have {ours.shape[1]} numbers,"
            f" {len(references):,} of references {theirs.shape[1]}: both sides must come from one"
            " model.",
            code="lengths_differ",
            counts=[ours.shape[1], theirs.shape[1]],
        )
    return Vectors(ours, np.arange(len(candidates)), theirs, np.arange(len(references)), start)


def matrix(vectors: pl.Series) -> Array:
    """Return vectors of one length as float32 or float64 [n, d]; NaN for nulls."""
    known = vectors.is_not_null().to_numpy()
    some = vectors.drop_nulls()
    flat = some.explode().to_numpy() if len(some) else np.zeros(0, np.float32)
    rows = flat.reshape(len(some), flat.size // max(1, len(some)))
    if known.all():
        return rows
    out = np.full((known.size, rows.shape[1]), np.nan, rows.dtype)
    out[known] = rows
    return out


def made(
    candidates: pl.Series, references: pl.Series, start: Array, settings: Settings
) -> tuple[Vectors, Note]:
    """Compute vectors of texts with the run's embedder, each distinct text once.

    Empty texts are embedded as one space, since endpoints refuse them.

    Args:
        candidates: String [n].
        references: String [m].
        start: int64 [n + 1], offsets of the references of each candidate.
        settings: with an embedder.

    Returns:
        the vectors, and a note on their computation.

    Raises:
        EndpointError: the endpoint stopped.
        InputError: the local object did not return one vector per text.
    """
    texts = pl.concat([candidates.alias("text"), references.alias("text")])
    texts = texts.replace("", " ")
    distinct = texts.unique(maintain_order=True)
    places = distinct.to_frame().with_row_index("place")
    code = texts.to_frame().join(places, on="text", how="left", maintain_order="left")["place"]
    codes = code.to_numpy().astype(np.int64)
    why = ("no_vector", "there is no vector")
    if isinstance(settings.embedder, Encoder):
        rows = encoded(distinct.to_list(), settings.embedder)
        said = f"by {settings.embedder.name}"
    else:
        assert settings.embedder is not None
        found = embed(distinct.to_list(), settings.embedder)
        rows, usage = found.vectors, found.usage
        cost = "" if usage.cost is None else f", cost {usage.cost:.6g}"
        said = (
            f"by {settings.embedder.model}: {usage.cached:,} from the cache,"
            f" {count_of(usage.requests, 'request')}, {count_of(usage.input_tokens, 'token')}{cost}"
        )
        if found.rejected:
            first = next(iter(found.rejected.values()))
            said += f"; {count_of(len(found.rejected), 'text')} not taken, first: {first}"
            why = ("rejected", f"the endpoint does not take a text ({first})")
    n = len(candidates)
    note = Note("embedded", f"{count_of(len(distinct), 'distinct text')} embedded {said}.")
    return Vectors(rows, codes[:n], rows, codes[n:], start, why), note


def encoded(texts: list[str], encoder: Encoder) -> Array:
    """Return the vectors of a local object, float [n, d].

    Raises:
        InputError: it did not return one vector per text, or numbers are not finite.
    """
    parts: list[Array] = []
    for first in range(0, len(texts), _AT_ONCE):
        some = texts[first : first + _AT_ONCE]
        made = np.asarray(encoder.encode(some))
        if made.ndim != 2 or made.shape[0] != len(some) or made.dtype.kind not in "fiu":
            raise InputError(
                f"{option('embedder')}: encode of {encoder.name} made an array of shape"
                f" {made.shape} and dtype {made.dtype} of {count_of(len(some), 'text')}; it must"
                " make one vector of numbers a text.",
                code="wrong_shape",
                option="embedder",
                shape=made.shape,
                count=len(some),
            )
        rows = made if made.dtype in (np.float32, np.float64) else made.astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if wrong.size:
            raise InputError(
                f"{option('embedder')}: encode of {encoder.name} made NaN or infinity of"
                f" {count_of(wrong.size, 'text')}, first {some[wrong[0]][:60]!r}.",
                code="not_finite",
                option="embedder",
                count=wrong.size,
            )
        if parts and rows.shape[1] != parts[0].shape[1]:
            raise InputError(
                f"{option('embedder')}: encode of {encoder.name} made vectors of"
                f" {parts[0].shape[1]} and of {rows.shape[1]} numbers; all must be as long."
            )
        parts.append(rows)
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
