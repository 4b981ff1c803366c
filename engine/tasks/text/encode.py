"""Candidates, references and vectors of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import msgspec
import numpy as np
import polars as pl

from ...endpoint import embed
from ...geometry.columns import offsets_of
from ...ingest.both_sides import FIRST_TEXTS, are_lists, unicode_forms
from ...ingest.frames import Frames
from ...ingest.problems import MANY, Note, count_of, listing, note_of
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ...schemas.errors import InputError
from ...schemas.option_values import Encoder
from ...schemas.wording import option
from ...tallies.datums import Datums
from ..encoding import (
    encode_sides,
    pop_if_present,
    ragged,
    row_numbers,
    row_of_datums,
    table_datums,
    truth_of_texts,
)
from ..rules import out_of_step
from .dialects import Settings
from .pairs import Pairs

# Vectors of texts: those of the tables, or made by an embedder.

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
    present = vectors.is_not_null().to_numpy()
    some = vectors.drop_nulls()
    flat = some.explode().to_numpy() if len(some) else np.zeros(0, np.float32)
    rows = flat.reshape(len(some), flat.size // max(1, len(some)))
    if present.all():
        return rows
    out = np.full((present.size, rows.shape[1]), np.nan, rows.dtype)
    out[present] = rows
    return out


def embed_texts(
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
        source, facts = f"by {settings.embedder.name}", {}
    else:
        assert settings.embedder is not None
        embedded = embed(distinct.to_list(), settings.embedder)
        rows, usage = embedded.vectors, embedded.usage
        cost = "" if usage.cost is None else f", cost {usage.cost:.6g}"
        source = (
            f"by {settings.embedder.model}: {usage.cached:,} from the cache,"
            f" {count_of(usage.requests, 'request')}, {count_of(usage.input_tokens, 'token')}{cost}"
        )
        facts = {
            "cached": usage.cached,
            "requests": usage.requests,
            "tokens": usage.input_tokens,
            "rejected": len(embedded.rejected),
        }
        if embedded.rejected:
            first = next(iter(embedded.rejected.values()))
            source += f"; {count_of(len(embedded.rejected), 'text')} not taken, first: {first}"
            why = ("rejected", f"the endpoint does not take a text ({first})")
    n = len(candidates)
    source = f"{count_of(len(distinct), 'distinct text')} embedded {source}."
    note = Note("embedded", source, len(distinct), facts=facts)
    return Vectors(rows, codes[:n], rows, codes[n:], start, why), note


def encoded(texts: list[str], encoder: Encoder) -> Array:
    """Return the vectors of a local object, float [n, d].

    Raises:
        InputError: it did not return one vector per text, or numbers are not finite.
    """
    parts: list[Array] = []
    for first in range(0, len(texts), _AT_ONCE):
        some = texts[first : first + _AT_ONCE]
        array = np.asarray(encoder.encode(some))
        if array.ndim != 2 or array.shape[0] != len(some) or array.dtype.kind not in "fiu":
            raise InputError(
                f"{option('embedder')}: encode of {encoder.name} made an array of shape"
                f" {array.shape} and dtype {array.dtype} of {count_of(len(some), 'text')}; it must"
                " make one vector of numbers a text.",
                code="wrong_shape",
                option="embedder",
                shape=array.shape,
                count=len(some),
            )
        rows = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
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


# Encode: tables become candidates with their references.

STATUS = ("scored", "no_reference", "no_prediction", "null_text")
"""Standing of a datum; only the first enters means."""
_ONE_SIDED = (
    "one side has texts, the other vectors: give both sides texts (text, reference), or both sides"
    " vectors (embedding, reference_embedding)."
)
_SCORED, _NO_REFERENCE, _NO_PREDICTION, _NULL = range(4)


class Batch(msgspec.Struct):
    """All texts of a run.

    Attributes:
        datums: datums of the texts.
        pairs: the scored candidates, with their references.
        datum: int64 [n], the datum of each of these candidates.
        status: int8 [n_datums], code of ``STATUS``.
        row: int64 [n_datums], row of each datum in the single table, -1 for none; None for code
            order.
        height: rows of the single table; None for two tables.
        truth: uint64 [n_datums], hash of the references of each datum of a single table; None for
            two tables, and for vectors only.
    """

    datums: Datums
    pairs: Pairs
    datum: Array
    status: Array
    row: Array | None = None
    height: int | None = None
    truth: Array | None = None


def has_texts(frames: Frames, *, references: bool = True) -> bool:
    """Return True if both sides have texts instead of vectors or unread references.

    Args:
        references: the single table must have these too.
    """
    return _has(frames, "text", *["reference"] * references)


def has_vectors(frames: Frames) -> bool:
    """Return True if both sides have vectors."""
    return _has(frames, "embedding", "reference_embedding")


def _has(frames: Frames, name: str, *more: str) -> bool:
    """Return True if every side has a column, and the single table further ones."""
    return all(
        {name, *(more if role == TABLE else ())} <= {*table.columns}
        for role, table in frames.sides.items()
    )


def encode_batch(frames: Frames, settings: Settings) -> Batch:
    """Pair candidates with their references.

    Raises:
        InputError: several predictions of one datum, if that is not allowed.
    """
    table = frames.sides.get(TABLE)
    texts = has_texts(frames)
    batch = _two_tables(frames, settings) if table is None else _one_table(frames, table)
    if texts:
        what = "scored as they are, of datums"
        _note_texts(frames, batch, "empty_text", lambda text: text == "", "empty ", what)
        frames.notes += unicode_forms(batch.pairs.candidates, batch.pairs.references, "references")
        _note_missing(frames, batch.pairs)
        _note_lists(frames, batch.pairs)
        _note_streams(frames, batch.pairs)
        _note_order(frames, batch.pairs)
    return batch


def _one_table(frames: Frames, table: pl.DataFrame) -> Batch:
    height = table.height
    numbers = row_numbers(table)
    datums, codes = table_datums(frames, table, height, numbers)
    datum = np.arange(height) if codes is None else codes.astype(np.int64)
    ours, theirs = pop_if_present(table, "embedding"), pop_if_present(table, "reference_embedding")
    vectors = None if ours is None or theirs is None else (ours, *_flat(theirs))
    contexts, truth = _contexts(table), None
    texts, references = pop_if_present(table, "text"), pop_if_present(table, "reference")
    if texts is not None and references is None and theirs is None:
        # No metric reads references: use an empty text for each missing one.
        null, flat, many = texts.is_null().to_numpy(), _no_texts(height), np.ones(height, np.int64)
    elif texts is None or references is None:
        if vectors is None:
            raise InputError(_ONE_SIDED, code="mixed_sides")
        null = (ours.is_null() | theirs.is_null()).to_numpy()  # type: ignore[union-attr]
        texts, (flat, many) = _no_texts(height), (_no_texts(len(vectors[1])), vectors[2])
    else:
        null = (texts.is_null() | references.is_null()).to_numpy()
        flat, many = _flat(references)
        truth = truth_of_texts(flat, len(datums), np.repeat(datum, many))
    scored = ~null & (many > 0)
    status = np.full(len(datums), _NO_PREDICTION, np.int8)
    status[datum] = np.where(null, _NULL, np.where(many > 0, _SCORED, _NO_REFERENCE))
    _note_excluded(frames, datums, status)
    if not scored.all():
        rows = np.flatnonzero(scored)
        start = offsets_of(many)[:-1]
        texts = texts.gather(rows)
        flat = flat.gather(ragged(start[rows], many[rows]))
        datum, many = datum[rows], many[rows]
        contexts = None if contexts is None else contexts.gather(rows)
        if vectors is not None:
            places = ragged(offsets_of(vectors[2])[:-1][rows], vectors[2][rows])
            vectors = vectors[0].gather(rows), vectors[1].gather(places), vectors[2][rows]
    pairs = Pairs(texts, flat, offsets_of(many), {})
    if contexts is not None:
        pairs.made["contexts"] = contexts
    if vectors is not None:
        pairs.made["vectors"] = of_columns(vectors[0], vectors[1], offsets_of(vectors[2]))
    # Datums that only a table of datums knows come behind those of the rows.
    row = row_of_datums(numbers, codes, len(datums), height)
    height_of_whole = None if numbers is not None else height
    return Batch(datums, pairs, datum, status, row, height_of_whole, truth)


def _contexts(table: pl.DataFrame) -> pl.Series | None:
    """Return the contexts of each row, joined by line breaks; null if there are none."""
    lists = pop_if_present(table, "contexts")
    if lists is None:
        return None
    some = lists.list.drop_nulls()
    joined = pl.when(some.list.len() > 0).then(some.list.join("\n"))
    return pl.select(joined).to_series()


def _no_texts(n: int) -> pl.Series:
    """Return placeholder texts for vectors, which no metric reads."""
    return pl.repeat("", n, dtype=pl.String, eager=True)


def _flat(references: pl.Series) -> tuple[pl.Series, Array]:
    """References one after the other, and how many each row has; nulls are none."""
    inner = references.dtype.inner if isinstance(references.dtype, pl.List) else pl.Null
    if not isinstance(references.dtype, pl.List) or inner.is_numeric():
        return references.drop_nulls(), references.is_not_null().to_numpy().astype(np.int64)
    flat = references.explode(empty_as_null=False, keep_nulls=False)
    many = references.list.len().fill_null(0).to_numpy().astype(np.int64)
    if flat.null_count():
        row = np.repeat(np.arange(many.size), many)[flat.is_not_null().to_numpy()]
        flat, many = flat.drop_nulls(), np.bincount(row, minlength=many.size)
    return flat, many


def _two_tables(frames: Frames, settings: Settings) -> Batch:
    """A row a candidate on one side, a row a reference on the other."""
    ours, theirs = frames.predictions, frames.ground_truths
    datums, (datum, of) = encode_sides(frames, (PREDICTIONS, GROUND_TRUTHS))
    sides = pop_if_present(ours, "embedding"), pop_if_present(theirs, "embedding")
    contexts = _contexts(ours)
    texts, references = pop_if_present(ours, "text"), pop_if_present(theirs, "text")
    if texts is None or references is None:
        if sides[0] is None or sides[1] is None:
            raise InputError(_ONE_SIDED)
        texts, references = (  # null if the vector is
            pl.select(pl.when(side.is_not_null()).then(pl.lit(""))).to_series()
            for side in (sides[0], sides[1])
        )
    mine = np.arange(len(texts))
    status = np.full(len(datums), _NO_PREDICTION, np.int8)
    nulls = texts.is_null().to_numpy(), references.is_null().to_numpy()
    status[datum[nulls[0]]] = _NULL
    datum, mine = datum[~nulls[0]].astype(np.int64), mine[~nulls[0]]
    texts = texts.drop_nulls()
    rows = np.flatnonzero(~nulls[1])
    of = of[rows]
    if of.size and not (np.diff(of) >= 0).all():
        order = np.argsort(of, kind="stable")
        rows, of = rows[order], of[order]
    many = np.bincount(of, minlength=len(datums)).astype(np.int64)
    start = offsets_of(many)[:-1]
    status[datum] = np.where(many[datum] > 0, _SCORED, _NO_REFERENCE)
    _note_excluded(frames, datums, status)
    paired = np.flatnonzero(many[datum] > 0)
    if paired.size < datum.size:
        datum, texts, mine = datum[paired], texts.gather(paired), mine[paired]
    if not settings.rules.several:
        _refuse_several(datums, datum)
    chosen = rows[ragged(start[datum], many[datum])]
    if chosen.size != len(references) or not (np.diff(chosen) == 1).all():
        references = references.gather(chosen)
    pairs = Pairs(texts, references, offsets_of(many[datum]), {})
    if contexts is not None:
        pairs.made["contexts"] = contexts.gather(mine)
    if sides[0] is not None and sides[1] is not None:
        pairs.made["vectors"] = of_columns(
            sides[0].gather(mine), sides[1].gather(chosen), pairs.start
        )
    return Batch(datums, pairs, datum, status)


def _refuse_several(datums: Datums, datum: Array) -> None:
    """Raise InputError for datums with more than one prediction."""
    twice = np.flatnonzero(np.bincount(datum, minlength=len(datums)) > 1)
    if twice.size:
        raise InputError(
            f"predictions: {count_of(twice.size, 'datum')} with several texts, first"
            f" {listing(datums.id.gather(twice[:3]), twice.size)}. Keep one of them, or take the"
            f" best of each as Valor does: {option('dialect', 'valor')}.",
            code="repeated_values",
            column="text",
            count=twice.size,
        )


def _note_excluded(frames: Frames, datums: Datums, status: Array) -> None:
    """Add notes on datums excluded from means, for reasons found while encoding."""
    for code, kind, words in (
        (_NULL, "null_texts", "with a null text skipped"),
        (_NO_REFERENCE, "texts_without_references", "without references"),
    ):
        rows = np.flatnonzero(status == code)
        if rows.size and (code == _NULL or frames.table is not None):
            names = listing(datums.id.gather(rows[:3]), rows.size)
            frames.notes.append(
                Note(kind, f"{count_of(rows.size, 'datum')} {words}: {names}.", int(rows.size))
            )


def _note_lists(frames: Frames, pairs: Pairs) -> None:
    """Warn if at least half of the first references, and not of the predictions, are lists."""
    if len(pairs.references) != len(pairs):  # lists were read as such
        return
    sides = (side.head(FIRST_TEXTS) for side in (pairs.candidates, pairs.references))
    ours, theirs = (int(are_lists(side).sum()) for side in sides)
    if theirs and theirs >= _MANY_LISTS * min(len(pairs), FIRST_TEXTS) > ours:
        frames.notes.append(
            Note(
                "lists_as_texts",
                "references are lists written as text (such as ['a', 'b'] in a CSV), each scored as"
                " one reference: give JSON Lines or Parquet with lists.",
                warning=True,
            )
        )


_MISSING = frozenset(["nan", "NaN", "<NA>"])  # as pandas writes missing values as text


def _note_missing(frames: Frames, pairs: Pairs) -> None:
    """Report texts of missing values among the first of one side, if the other has none."""
    sides = {"predictions": pairs.candidates, "references": pairs.references}
    marked = [
        name
        for name, texts in sides.items()
        if not _MISSING.isdisjoint(texts.head(FIRST_TEXTS).to_list())
    ]
    if len(marked) != 1:
        return
    (name,) = marked
    n, of = int(sides[name].is_in([*_MISSING]).sum()), len(sides[name])
    what = "such as 'nan', scored as they are: are values missing? Remove these rows"
    note = note_of("missing_as_text", n, (name.removesuffix("s"), name, what))
    facts = {"side": name, "count": n, "of": of, "beyond": MANY}
    frames.notes.append(msgspec.structs.replace(note, warning=n > MANY * of, facts=facts))


def _note_order(frames: Frames, pairs: Pairs) -> None:
    """Warn if single references have the words of the predictions of other rows."""
    n = len(pairs.candidates)
    if not frames.whole or len(pairs.references) != n or not n:
        return
    sides: tuple[pl.Series, ...] = pairs.candidates, pairs.references
    first = [[{*text.split(" ")} for text in side.head(_FIRST).to_list()] for side in sides]
    if _common_words(*first) >= _IN_ORDER:
        return
    if n > 2 * _EDGE:  # the reverse of the first rows are the last ones
        sides = tuple(pl.concat([side.head(_EDGE), side.tail(_EDGE)]) for side in sides)
    texts = [text for side in sides for text in side.to_list()]
    words_of = cache(lambda row: {*texts[row].split(" ")})
    n = len(texts) // 2
    sampled = np.linspace(0, n - 1, min(n, _SAMPLED)).astype(np.int64)

    def common(ours: Array, theirs: Array) -> float:
        at = sampled[sampled < ours.size]
        return _common_words(*(map(words_of, side[at].tolist()) for side in (ours, theirs)))

    rows = np.arange(n)
    if note := out_of_step(rows, rows + n, common):
        frames.notes.append(note)


def _common_words(ours: Iterable[set[str]], theirs: Iterable[set[str]]) -> float:
    """Return the mean share of common words of pairs of texts, in [0, 1]."""
    shares = [len(a & b) / len(a | b) for a, b in zip(ours, theirs, strict=True)]
    return sum(shares) / len(shares)


def _note_streams(frames: Frames, pairs: Pairs) -> None:
    """Warn if references are listed by stream, as sacrebleu takes them, and not by prediction.

    With as many streams as predictions, lengths do not reveal it. The mean over predictions of the
    best share of common words distinguishes the two orders.
    """
    n = len(pairs.candidates)
    if (
        not frames.whole
        or not 2 <= n <= _STREAMS
        or len(pairs.references) != n * n
        or (np.diff(pairs.start) != n).any()
    ):
        return
    words = [set(text.split()) for text in pairs.candidates]
    others = [set(text.split()) for text in pairs.references]
    shared = np.array([[len(a & b) / max(1, len(a | b)) for b in others] for a in words])
    shared = shared.reshape(n, n, n)
    as_read, by_stream = (
        float(np.mean([of[i].max() for i, of in enumerate(order)]))
        for order in (shared, shared.transpose(0, 2, 1))
    )
    if by_stream > as_read + _CLEARLY:
        frames.notes.append(
            Note(
                "references_by_stream",
                f"there are {n} predictions with {n} references each, and the references fit better"
                " as one list per stream, as sacrebleu takes them. Give one list per prediction:"
                " list(zip(*references)).",
                warning=True,
            )
        )


_STREAMS = 20  # references per prediction up to which their order is looked at
_CLEARLY = 0.1  # gain in the share of common words
_SAMPLED = 32  # texts whose words are compared with those of other rows
_FIRST = 8  # texts whose words decide whether others are compared
_EDGE = 2_000  # first and last texts that may be compared
_IN_ORDER = 0.4  # share of common words from which rows are in order
_MANY_LISTS = 0.5  # share of texts from which they are taken for lists


def note_wordless(frames: Frames, batch: Batch) -> None:
    """Add notes on texts of other scripts, which have no tokens under ROUGE's default tokenizer."""
    remedy = option("rouge_tokenizer", "unicode")
    what = f"without a Latin letter or a digit, empty to ROUGE unless {remedy} is given, of datums"

    def wordless(text: pl.Series) -> pl.Series:
        latin = text.str.contains("[A-Za-z0-9]")
        return ~latin if latin.all() else ~latin & text.str.contains(r"[\p{L}\p{N}]")

    _note_texts(frames, batch, "no_rouge_words", wordless, "", what)


def _note_texts(
    frames: Frames,
    batch: Batch,
    kind: str,
    such: Callable[[pl.Series], pl.Series],
    before: str,
    what: str,
) -> None:
    """Add a note on how many texts of each side satisfy a condition, with their datums."""
    pairs = batch.pairs
    for name, texts, datum in (
        ("prediction", pairs.candidates, batch.datum),
        ("reference", pairs.references, batch.datum[pairs.candidate]),
    ):
        rows = np.flatnonzero(such(texts).to_numpy())
        if rows.size:
            lowest = batch.datums.id.gather(np.unique(datum[rows])[:5]).to_list()
            words = (f"{before}{name}", f"{before}{name}s", what)
            frames.notes.append(note_of(kind, int(rows.size), words, lowest))
