"""Matching of texts: which retrieved texts, or sentences of them, match which golds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import polars as pl
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Levenshtein

from ...geometry.columns import offsets_of, text_bytes
from ...ingest.ids import by_hash
from ...kernels.datums import hash_codes
from ...kernels.passages import (
    characters_of,
    escape_json,
    least_distances,
    match_by_union_lcs,
    match_substrings,
    walks_too_far,
)
from ...kernels.words import words_between_stops, words_of_sentences
from ...schemas.arrays import Array
from ..encoding import Workers, ragged, sentences_of
from .dialects import MATCHES, SENTENCES, RetrievalRules

# Parameters of matching rules.


class Criterion(msgspec.Struct, frozen=True):
    """Threshold and rules of a match.

    Attributes:
        threshold: in [0, 1]; NaN for a rule without threshold.
        rules: the dialect's.
    """

    threshold: float
    rules: RetrievalRules

    def passes(self, similarity: Array) -> Array:
        """Return a mask of similarities above the threshold, or at it if the rules allow."""
        passed: Array = similarity > self.threshold
        if self.rules.match_at_threshold:
            passed = similarity >= self.threshold
        return passed


# Components to match: distinct texts or sentences, and their positions in each query.


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Retrieved components by rank and distinct golds, of all queries.

    Attributes:
        texts: the distinct components, String [n].
        retrieved_start: int64 [q + 1], offsets of the retrieved components of each query.
        retrieved: int32, index of each in ``texts``.
        gold_start: int64 [q + 1], offsets of the golds of each query.
        gold: int32, index of each in ``texts``, unique within a query.
        gold_row: int64, row of each among the golds given; None if golds are sentences.
        gold_repeats: int64 [q], number of repeated golds, which are dropped.
        pair_start: int64 [q + 1], offsets of the pairs of each query.
        match: uint8, 1 if a pair matches, set by a rule; per query [retrieved, golds], row by row.
    """

    texts: pl.Series
    retrieved_start: Array
    retrieved: Array
    gold_start: Array
    gold: Array
    gold_row: Array | None
    gold_repeats: Array
    pair_start: Array
    match: Array

    def pairs(self, first: int, last: int) -> tuple[Array, Array]:
        """Places in ``texts`` of both sides of each pair of the queries [first, last)."""
        n_retrieved = np.diff(self.retrieved_start[first : last + 1])
        of_row = np.repeat(np.diff(self.gold_start[first : last + 1]), n_retrieved)
        rows = self.retrieved[self.retrieved_start[first] : self.retrieved_start[last]]
        row_start = np.repeat(self.gold_start[first:last], n_retrieved)
        return np.repeat(rows, of_row), self.gold[ragged(row_start, of_row)]


def _expanded(start: Array, codes: Array, inner_start: Array, inner: Array) -> tuple[Array, Array]:
    """Replace every text by its sentences."""
    length = np.diff(inner_start)[codes]
    return offsets_of(length)[start], inner[ragged(inner_start[codes], length)]


def find_components(
    retrieved: pl.Series,
    retrieved_start: Array,
    gold: pl.Series,
    gold_start: Array,
    *,
    sentences: bool,
    keep_repeats: bool = False,
) -> Components:
    """Collect distinct texts, or distinct sentences of them, and the unique golds of each query.

    Args:
        retrieved: String [n], by rank within a query, without nulls.
        retrieved_start: int64 [q + 1], offsets of each query.
        gold: String [g], without nulls.
        gold_start: int64 [q + 1], offsets of each query.
        sentences: compare sentences instead of whole texts.
        keep_repeats: a gold given twice stays two golds.
    """
    every = pl.concat([retrieved.alias("text"), gold.alias("text")])
    codes, rows = by_hash(every)
    texts = every.gather(rows)
    r_codes, g_codes = codes[: len(retrieved)], codes[len(retrieved) :]
    r_start, g_start = retrieved_start, gold_start
    if sentences:
        pieces, inner_start = sentences_of(texts)
        inner, rows = by_hash(pieces)
        texts = pieces.gather(rows)
        r_start, r_codes = _expanded(r_start, r_codes, inner_start, inner)
        g_start, g_codes = _expanded(g_start, g_codes, inner_start, inner)
    n_gold = np.diff(g_start)
    query = np.repeat(np.arange(n_gold.size), n_gold)
    first = np.ones(g_codes.size, np.bool_)
    if not keep_repeats:
        first = pl.Series(query * len(texts) + g_codes).is_first_distinct().to_numpy()
    n_first = np.bincount(query[first], minlength=n_gold.size)
    pair_start = offsets_of(np.diff(r_start) * n_first)
    return Components(
        texts=texts,
        retrieved_start=np.asarray(r_start, np.int64),
        retrieved=r_codes.astype(np.int32),
        gold_start=offsets_of(n_first),
        gold=g_codes[first].astype(np.int32),
        gold_row=None if sentences else np.flatnonzero(first),
        gold_repeats=n_gold - n_first,
        pair_start=pair_start,
        match=np.zeros(int(pair_start[-1]), np.uint8),
    )


# Matching by equality of components, without normalisation.


def match_exactly(components: Components, given: Criterion, workers: Workers) -> None:
    """Match if both texts are equal, character by character."""

    def match(first: int, last: int) -> None:
        retrieved, gold = components.pairs(first, last)
        np.equal(
            retrieved,
            gold,
            out=components.match[components.pair_start[first] : components.pair_start[last]],
        )

    workers.over(components.pair_start, match)


# Similarity of strings by edits, computed by rapidfuzz on many pairs at once.

_PAIRS = 1 << 16  # handed over at once, so that lists of pairs stay small
_SLACK = 1e-4  # rapidfuzz loses scores up to 1e-8 above its cut-off, which here only saves time


def _scores(
    texts: list[str], pairs: tuple[Array, Array], scorer: Callable[..., float], cutoff: float
) -> Array:
    """Return similarities of pairs, float64 [p]; 0 below the cut-off."""
    left, right = ([texts[i] for i in side.tolist()] for side in pairs)
    return process.cpdist(
        left, right, scorer=scorer, score_cutoff=max(cutoff, 0.0), dtype=np.float64
    )


def match_fuzzily(components: Components, given: Criterion, workers: Workers) -> None:
    """Match if rapidfuzz's partial ratio, divided by 100, passes.

    That is the best normalised indel similarity of the shorter text with a substring of the longer
    one, so that a chunk cut from a gold scores 1, and a gold within a chunk too. An empty text
    never matches.

    The ratio of a text of m characters is at most 1 - d / 2m, d being its least distance to a
    substring of the other, since the substring is no longer than m and indel distance is at least
    Levenshtein's. Only pairs whose bound passes are computed by rapidfuzz.
    """
    texts = components.texts.to_list()
    characters = characters_of(*text_bytes(components.texts))
    lengths = np.diff(characters[1])
    lowest = given.threshold - _SLACK

    def match(first: int, last: int) -> None:
        begin = int(components.pair_start[first])
        retrieved, gold = components.pairs(first, last)
        shorter = np.minimum(lengths[retrieved], lengths[gold])
        for at in range(0, retrieved.size, _PAIRS):
            some = at + np.flatnonzero(shorter[at : at + _PAIRS])
            sides = retrieved[some], gold[some]
            distance = least_distances(characters, *sides)
            ratio = 1 - distance / (2 * shorter[some])
            close = np.flatnonzero((distance > 0) & (ratio >= lowest))
            ratio[close] = _scores(
                texts, (sides[0][close], sides[1][close]), fuzz.partial_ratio, 100 * lowest
            )
            ratio[close] /= 100
            components.match[begin + some] = given.passes(ratio)

    workers.over(components.pair_start, match)


def match_by_levenshtein(components: Components, given: Criterion, workers: Workers) -> None:
    """Match if 1 - Levenshtein distance / length of the longer text passes.

    The distance counts insertions, deletions and replacements of characters (the similarity of
    ragas' NonLLMStringSimilarity). Two empty texts are equal.
    """
    texts = components.texts.to_list()

    def match(first: int, last: int) -> None:
        part = components.match[components.pair_start[first] : components.pair_start[last]]
        retrieved, gold = components.pairs(first, last)
        for at in range(0, part.size, _PAIRS):
            sides = retrieved[at : at + _PAIRS], gold[at : at + _PAIRS]
            scores = _scores(
                texts, sides, Levenshtein.normalized_similarity, given.threshold - _SLACK
            )
            part[at : at + _PAIRS] = given.passes(scores)

    workers.over(components.pair_start, match)


# ROUGE-L recall between components.

RECURSION = 989
"""Steps that fit below Python's default limit of 1,000 calls, after the calls that led there."""


def _words(texts: pl.Series, given: Criterion) -> tuple[tuple[Array, Array, Array], int]:
    """Sentences of each text, words of each sentence, codes of the words; how many codes."""
    if given.rules.reference_rouge:
        first, second, word_start, sentence_start = words_between_stops(*text_bytes(texts))
    else:
        sentences, sentence_start = sentences_of(texts)
        first, second, every = words_of_sentences(*text_bytes(sentences.str.to_lowercase()))
        filled = np.flatnonzero(np.diff(every))  # only punctuation is no sentence
        word_start = np.concatenate((np.zeros(1, np.int64), every[filled + 1]))
        sentence_start = np.searchsorted(filled, sentence_start)
    codes, rows = hash_codes(first, second)
    return (sentence_start, word_start, codes), rows.size


def match_rouge(components: Components, given: Criterion, workers: Workers) -> None:
    """Match if ROUGE-L recall of the gold, given the retrieved text, passes.

    Recall is that of summary-level ROUGE-L over distinct words: a word of the gold is hit if it is
    in a longest common subsequence of one of its sentences and a sentence of the retrieved text
    (Lin,
    "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, 3.2). Words are in lower case
    and
    without punctuation (see :func:`evalengine.kernels.words.words_of_sentences`); a text without
    any
    word never matches. Under ``reference_rouge`` sentences and words are those of the package rouge
    1.0.1, and texts that exceed its recursion limit do not match.
    """
    words, n_words = _words(components.texts, given)

    def match(first: int, last: int) -> None:
        match_by_union_lcs(
            first,
            last,
            (components.retrieved_start, components.retrieved),
            (components.gold_start, components.gold),
            words,
            n_words,
            given.threshold,
            given.rules.match_at_threshold,
            components.pair_start,
            components.match,
        )

    workers.over(components.pair_start, match)
    if given.rules.reference_rouge:
        _fail_deep(components, words)


def _fail_deep(components: Components, words: tuple[Array, Array, Array]) -> None:
    """Remove matches on which the reference exceeds Python's recursion limit.

    Its traceback is recursive, one call per step, and it treats the error as no match. Only
    sentences of hundreds of words are affected, so pairs are checked one by one.
    """
    start, offsets, _ = words
    longest = np.zeros(start.size, np.int64)
    np.maximum.at(longest, np.repeat(np.arange(start.size - 1), np.diff(start)), np.diff(offsets))
    if 2 * longest.max(initial=0) <= RECURSION:
        return
    pairs = np.flatnonzero(components.match)
    query = np.searchsorted(components.pair_start, pairs, side="right") - 1
    n_gold = np.diff(components.gold_start)[query]
    place = pairs - components.pair_start[query]
    text = components.retrieved[components.retrieved_start[query] + place // n_gold]
    gold = components.gold[components.gold_start[query] + place % n_gold]
    for i in np.flatnonzero(longest[text] + longest[gold] > RECURSION).tolist():
        if walks_too_far(int(gold[i]), int(text[i]), words, RECURSION):
            components.match[pairs[i]] = 0


# Matching of chunks that were cut from a gold text, plain or JSON-escaped.

_SPEAKER = "^(?:user|assistant): "
_ESCAPED = r"[^ !#-\[\]-~]"
"""A character that JSON in ASCII writes as an escape."""


def _needles(texts: pl.Series, lossy: bool) -> pl.DataFrame:
    """Return the search strings, and the quotes around their JSON form: plain, before, after.

    Args:
        texts: chunks.
        lossy: the text after a second ": " is lost.
    """
    body = (
        pl.when(pl.col("text").str.starts_with("Date: "))
        .then(pl.col("text").str.replace(r"^[^\n]*\n?", ""))
        .otherwise(pl.col("text"))
    )
    speaker = pl.col("body").str.replace(_SPEAKER, "")
    if lossy:
        speaker = speaker.str.split(": ").list.first()
    quoted = pl.col("body").str.contains(_SPEAKER)
    unchanged = (
        pl.col("body").str.replace(_SPEAKER, "").str.len_bytes() == pl.col("plain").str.len_bytes()
    )
    return (
        texts.alias("text")
        .to_frame()
        .select(body.alias("body"))
        .with_columns(plain=pl.when(quoted).then(speaker).otherwise(pl.col("body")), before=~quoted)
        .select("plain", "before", after=~quoted | unchanged)
    )


def match_chunks(components: Components, given: Criterion, workers: Workers) -> None:
    """Match if the retrieved chunk was cut from the gold text.

    A first line that begins with "Date: " is dropped. If the chunk begins with "user: " or
    "assistant: ", the rest is searched in the gold, otherwise the whole; plain, or escaped by
    ``json.dumps`` with the quotes of that position: at the end, and at the beginning if it is not
    truncated (REMem's ``is_chunk_from_original``). Chunks that are then empty match no gold. Under
    ``reference_chunks`` an empty chunk is in every gold, and a speaker's words end at their first
    ": ".
    """
    lossy = given.rules.reference_chunks
    # Only chunks are searched for; golds are in the same list of texts.
    used = np.zeros(len(components.texts), bool)
    used[components.retrieved] = True
    place = np.cumsum(used, dtype=np.int32) - 1
    needles = _needles(components.texts.filter(pl.Series(used)), lossy)
    plain = needles["plain"]
    hay = text_bytes(components.texts)
    plain_bytes = text_bytes(plain)
    sought = np.ones(len(plain), bool) if lossy else (plain != "").to_numpy()
    # Otherwise the escaped chunk contains the plain one, which is found first.
    special = (plain.str.contains(_ESCAPED) & (plain != "")).to_numpy()
    rare = needles.filter(pl.Series(special))
    escaped = escape_json(
        *text_bytes(rare["plain"]), rare["before"].to_numpy(), rare["after"].to_numpy()
    )
    lengths = np.zeros(len(plain), np.int64)
    lengths[special] = np.diff(escaped[1])
    escaped_start = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    retrieved = (components.retrieved_start, place[components.retrieved])
    gold = (components.gold_start, components.gold)
    pairs = components.pair_start, components.match

    def match(first: int, last: int) -> None:
        match_substrings(first, last, retrieved, gold, hay, plain_bytes, sought, *pairs)
        if special.any():
            jsoned = (escaped[0], escaped_start)
            match_substrings(first, last, retrieved, gold, hay, jsoned, special, *pairs)

    workers.over(components.pair_start, match)


# Estimated number of tokens of retrieved texts.

CHARACTERS_PER_TOKEN = 4.0


def token_counts(texts: pl.Series, start: Array) -> Array:
    """Estimate the tokens of each query's joined texts: characters / 4, rounded down.

    The estimate of continuous-eval's ``TokenCount(encoder_name="approx")``; characters are
    Unicode code points.

    Args:
        texts: String [n], without nulls.
        start: int64 [q + 1], offsets of the texts of each query.

    Returns:
        float64 [q], integers, 0 for a query without texts.
    """
    lengths = texts.str.len_chars().to_numpy().astype(np.int64)
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    joints = np.maximum(np.diff(start) - 1, 0)
    return np.floor((np.diff(total[start]) + joints) / CHARACTERS_PER_TOKEN)


# All rules.

RULES: dict[str, Callable[[Components, Criterion, Workers], None]] = {
    "chunk_from_original": match_chunks,
    "exact_chunk": match_exactly,
    "exact_sentence": match_exactly,
    "rouge_chunk": match_rouge,
    "rouge_sentence": match_rouge,
    "fuzzy": match_fuzzily,
    "levenshtein": match_by_levenshtein,
}
"""Matching rule -> function, which sets ``match`` of components."""


def match_texts(
    retrieved: pl.Series,
    retrieved_start: Array,
    gold: pl.Series,
    gold_start: Array,
    *,
    rule: str,
    threshold: float | None,
    rules: RetrievalRules,
    workers: Workers,
) -> Components:
    """Match the retrieved texts of every query with its golds.

    Args:
        retrieved: String [n], by rank within a query, without nulls.
        retrieved_start: int64 [q + 1], offsets of each query.
        gold: String [g], without nulls; one given twice in a query counts once, unless the rules
            keep repeats.
        gold_start: int64 [q + 1], offsets of each query.
        rule: one of ``RULES``.
        threshold: threshold of similarity, in [0, 1]; None for the rule's default.
        rules: uses ``match_at_threshold``, ``reference_rouge`` and ``reference_chunks``.
    """
    components = find_components(
        retrieved,
        retrieved_start,
        gold,
        gold_start,
        sentences=rule in SENTENCES,
        keep_repeats=rules.keep_repeats,
    )
    limit = MATCHES[rule] if threshold is None else threshold
    RULES[rule](components, Criterion(float("nan") if limit is None else limit, rules), workers)
    return components
