"""Measures of overlap, similarity and readability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ....kernels.datums import hash_codes
from ....kernels.language import stem_hashes, words_and_syllables
from ....kernels.text import lcs_lengths, ngram_matches, shared_words, summary_hits, union_hits
from ....kernels.words import rouge_words, words_at_spaces, words_between_stops
from ....schemas.arrays import Array
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers, packed, sentences_of
from ..dialects import Settings
from ..pairs import Pairs, Tokens, best_reference, localised
from ..tokenizers import (
    BETWEEN,
    FUNCTION_WORDS,
    MARKS,
    SPACES,
    codes_needed,
    content_words,
    regex_kinds,
    spaced_words,
    token_kinds,
)

# Columns of the best reference, from counts of each pair of reference and candidate.

Counter = Callable[..., None]
"""A kernel (first, last, candidate of each reference, candidates, references, n_codes, out)."""


def each_reference(
    count: Counter, pairs: Pairs, tokens: Tokens, workers: Workers, out: Array | None = None
) -> Array:
    """Run a counting kernel on each pair of reference and candidate.

    Args:
        count: the kernel.
        out: int64 [m] or [m, ...], filled and returned; None to allocate [m].
    """
    counts = np.empty(len(pairs.references), np.int64) if out is None else out
    candidate = pairs.candidate

    def run(first: int, last: int) -> None:
        count(first, last, candidate, tokens.candidates, tokens.references, tokens.n_codes, counts)

    workers.over(tokens.references[0], run)
    return counts


def _ngrams(first: int, last: int, candidate: Array, *rest: Any) -> None:
    ngram_matches(first, last, (candidate, np.arange(candidate.size + 1)), *rest)


def ngrams_of_each(pairs: Pairs, tokens: Tokens, orders: int, workers: Workers) -> Array:
    """Clipped n-grams that each reference shares with its candidate, int64 [m, orders]."""
    out = np.empty((len(pairs.references), orders), np.int64)
    return each_reference(_ngrams, pairs, tokens, workers, out)


def best_columns(
    metric: str,
    values: Mapping[str | None, Array],
    pairs: Pairs,
    parameters_json: tuple[str | None, ...] = (None,),
) -> tuple[Column, ...]:
    """Return the values of each candidate's best reference by the first of them.

    Args:
        metric: its name.
        values: statistic, None for the metric value, -> float64 [m], without NaN.
        parameters_json: ``parameters`` of the columns.
    """
    best = best_reference(next(iter(values.values())), pairs.start)
    return tuple(
        Column(
            metric=metric,
            statistic=name,
            parameters=parameters_json,
            values=value[best][:, None, None],
        )
        for name, value in values.items()
    )


def unusual(settings: Settings, usual: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return the ``parameters`` with options that differ from their defaults.

    Args:
        usual: option -> default value.
    """
    given = {name: getattr(settings, name) for name in usual}
    other = {name: value for name, value in given.items() if value != usual[name]}
    return (_told(tuple(other.items())) if other else None,)


@lru_cache
def _told(given: tuple[tuple[str, Any], ...]) -> str | None:
    return parameters(**dict(given))


# ROUGE-L of the package rouge 1.0.1, over different words, as continuous-eval calls it.

_MARKS_ALONE = r"^[!-/:-@\[-`{-~]*$"
_SMALL = 1e-8
"""Added by the package to the sum of precision and recall."""


def _hits(pairs: Pairs, workers: Workers) -> Array:
    """Words hit, different words of the candidate and of the reference, int64 [m, 3]."""
    ours, theirs = (
        words_between_stops(*packed(texts)) for texts in (pairs.candidates, pairs.references)
    )
    tokens = localised(
        pairs,
        (ours[0], ours[1], ours[2][ours[3]]),
        (theirs[0], theirs[1], theirs[2][theirs[3]]),
        workers,
    )
    out = np.empty((len(pairs.references), 3), np.int64)
    lines = (ours[3], ours[2], tokens.candidates[1]), (theirs[3], theirs[2], tokens.references[1])

    def run(first: int, last: int) -> None:
        union_hits(first, last, pairs.candidate, lines[0], lines[1], tokens.n_codes, out)

    workers.over(tokens.references[0], run)
    return out


def sequence_scores(pairs: Pairs, workers: Workers) -> tuple[Array, Array, Array]:
    """Return F, precision and recall of each reference, float64 [m]; NaN if it has no sentence.

    Sentences end at every full stop, words at white space; a word counts once, and is hit if it is
    in a longest common subsequence of any two sentences (Lin, "ROUGE: A Package for Automatic
    Evaluation of Summaries", 2004, 3.2). A candidate with only ASCII punctuation scores 0; a
    reference
    with only full stops gives NaN.
    """
    hits, ours, theirs = _hits(pairs, workers).T
    bare = pairs.candidates.str.contains(_MARKS_ALONE).to_numpy()[pairs.candidate]
    precision, recall = hits / np.maximum(ours, 1), hits / np.maximum(theirs, 1)
    f = 2 * (precision * recall / (precision + recall + _SMALL))
    for value in (f, precision, recall):
        value[theirs == 0] = np.nan
        value[bare] = 0.0
    return f, precision, recall


def distinct_sequence(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """F, precision and recall, each of the reference that makes it highest, NaN ones aside."""
    columns = []
    names = None, "precision", "recall"
    for name, value in zip(names, sequence_scores(pairs, workers), strict=True):
        best = np.fmax.reduceat(value, pairs.start[:-1]) if value.size else value
        columns.append(
            Column(
                metric="ROUGEL",
                statistic=name,
                values=best[:, None, None],
                reason="there is no sentence in the reference",
            )
        )
    return tuple(columns)


# ROUGE, as in rouge-score 0.1.2.

_ORDERS = (1, 2, 3)
_USUAL = {"use_stemmer": False, "rouge_tokenizer": "ascii"}
WORDS = "rouge words"
"""Cache key of :class:`Words` in pairs; an entry there is used as tokenized."""


class Words(msgspec.Struct, frozen=True):
    """Tokens of ROUGE and their lines.

    Attributes:
        tokens: of all texts.
        candidate_lines: offsets of the lines of each candidate that have tokens, int64 [n + 1];
            offsets of the tokens of each line.
        reference_lines: same for the references.
    """

    tokens: Tokens
    candidate_lines: tuple[Array, Array]
    reference_lines: tuple[Array, Array]


def _words(pairs: Pairs, settings: Settings, workers: Workers) -> Words:
    def make() -> Words:
        sides = []
        for texts in (pairs.candidates, pairs.references):
            if settings.rouge_tokenizer == "unicode":
                data, start = packed(texts.str.to_lowercase())
                words = rouge_words(data, start, token_kinds(codes_needed(data)))
            else:
                data, start = packed(texts)
                words = rouge_words(data, start)
            sides.append((data, words))
        hashed = [(words[0], words[1]) for _, words in sides]
        if settings.use_stemmer:
            hashed = _stemmed([data for data, _ in sides], [words[:4] for _, words in sides])
        (ours, theirs) = [words for _, words in sides]
        tokens = localised(pairs, (*hashed[0], ours[4]), (*hashed[1], theirs[4]), workers)
        return Words(tokens, (ours[6], ours[5]), (theirs[6], theirs[5]))

    return pairs.once(WORDS, make)


def _stemmed(data: list[Array], words: list[tuple[Array, ...]]) -> list[tuple[Array, Array]]:
    """Return hashes of the stems of all tokens; each distinct token is stemmed once.

    Args:
        data: bytes of each side.
        words: hashes and positions of its tokens.
    """
    out = []
    for bytes_, (first, second, place, stop) in zip(data, words, strict=True):
        codes, rows = hash_codes(first, second)
        stems = stem_hashes(bytes_, place[rows], stop[rows])
        out.append((stems[0][codes], stems[1][codes]))
    return out


def _matches(pairs: Pairs, words: Words, order: int, workers: Workers) -> Array:
    """Clipped n-grams of each reference, int64 [m], up to the highest order made once."""

    return pairs.once(
        ("rouge matches", order), lambda: ngrams_of_each(pairs, words.tokens, order, workers)
    )


def _lcs(pairs: Pairs, words: Words, workers: Workers) -> Array:
    """Length of the longest common subsequence of each reference, int64 [m]."""

    return pairs.once(
        "rouge lcs", lambda: each_reference(lcs_lengths, pairs, words.tokens, workers)
    )


def _columns(
    metric: str, pairs: Pairs, settings: Settings, match: Array, ours: Array, theirs: Array
) -> tuple[Column, ...]:
    """Return F, precision and recall of the best reference by F.

    Args:
        metric: its name.
        match: int64 [m], shared by each reference and its candidate.
        ours: int64 [n], total of the candidate.
        theirs: int64 [m], total of the reference.
    """
    precision = match / np.maximum(ours[pairs.candidate], 1)
    recall = match / np.maximum(theirs, 1)
    both = precision + recall
    f = np.zeros(match.size)
    np.divide(2 * precision * recall, both, out=f, where=both > 0)
    every = {None: f, "precision": precision, "recall": recall}
    return best_columns(metric, every, pairs, unusual(settings, _USUAL))


def grams(order: int, pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Clipped n-gram overlap of one order: F, precision and recall."""
    words = _words(pairs, settings, workers)
    match = _matches(pairs, words, max(order, 2), workers)[:, order - 1]
    sides = words.tokens.candidates, words.tokens.references
    ours, theirs = (np.maximum(np.diff(start) - order + 1, 0) for start, _ in sides)
    return _columns(f"ROUGE{order}", pairs, settings, match, ours, theirs)


def _whole(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Longest common subsequence of the whole texts."""
    words = _words(pairs, settings, workers)
    ours, theirs = (np.diff(s) for s, _ in (words.tokens.candidates, words.tokens.references))
    match = _lcs(pairs, words, workers)
    return _columns("ROUGEL", pairs, settings, match, ours, theirs)


_SEQUENCES = {"rouge-score": _whole, "rouge": distinct_sequence}
"""Whose ROUGE-L -> the measure."""


def _sequence(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """ROUGE-L as the dialect has it."""
    return _SEQUENCES[settings.rules.sequence](pairs, settings, workers)


def _summary(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Union of longest common subsequences, line by line."""
    words = _words(pairs, settings, workers)
    tokens = words.tokens
    ours, theirs = (np.diff(start) for start, _ in (tokens.candidates, tokens.references))
    match = _lcs(pairs, words, workers)
    lines = words.candidate_lines, words.reference_lines
    if any(bool((np.diff(first) > 1).any()) for first, _ in lines):
        match = match.copy()

        def run(first: int, last: int) -> None:
            summary_hits(
                first,
                last,
                pairs.candidate,
                (*lines[0], tokens.candidates[1]),
                (*lines[1], tokens.references[1]),
                tokens.n_codes,
                match,
            )

        workers.over(tokens.references[0], run)
    return _columns("ROUGELsum", pairs, settings, match, ours, theirs)


_ROUGE_MEASURES = {
    **{f"rouge{order}": partial(grams, order) for order in _ORDERS},
    "rougel": _sequence,
    "rougelsum": _summary,
}
ROUGE_WORDS = tuple(_ROUGE_MEASURES)


# Exact match and overlap of tokens, after SQuAD's normalisation or of content words.

_ARTICLES = r"(^|[^\p{L}\p{N}_])(?:a|an|the)($|[^\p{L}\p{N}_])"
r"""Articles between word boundaries of Python's ``\b``."""


def squad(texts: pl.Series) -> pl.Series:
    """Return texts in lower case, without ASCII punctuation and articles, one space between words.

    Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", 2016.
    """
    bare = texts.str.to_lowercase().str.replace_all(MARKS, "")
    for _ in range(2):  # the first of two articles consumes the space between them
        bare = bare.str.replace_all(_ARTICLES, "${1} ${2}")
    return bare.str.replace_all(BETWEEN, " ").str.strip_chars(" ")


def stripped(texts: pl.Series) -> pl.Series:
    """Lower case, without white space around."""
    return texts.str.strip_chars(SPACES).str.to_lowercase()


_NORMALISED: dict[str, Callable[[pl.Series], pl.Series]] = {"squad": squad, "strip": stripped}


def _exact(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute 1 if a reference is equal after normalisation."""
    normalise = _NORMALISED[settings.rules.normalise]
    ours, theirs = normalise(pairs.candidates), normalise(pairs.references)
    same = (ours.gather(pairs.candidate) == theirs).to_numpy().astype(np.float64)
    return best_columns("ExactMatch", {None: same}, pairs)


def _shared(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Array, Array, Array]:
    """Tokens that both have, that the candidate has, that the reference has, int64 [m] each."""

    def make() -> tuple[Array, Array, Array]:
        words = settings.stop_words
        ours, theirs = (
            words_at_spaces(*packed(squad(texts) if words is None else spaced_words(texts, words)))
            for texts in (pairs.candidates, pairs.references)
        )
        tokens = localised(pairs, ours, theirs, workers)
        match = ngrams_of_each(pairs, tokens, 1, workers)
        return match[:, 0], np.diff(ours[2])[pairs.candidate], np.diff(theirs[2])

    return pairs.once("squad overlap", make)


def _ratio(part: Array, whole: Array) -> Array:
    return part / np.maximum(whole, 1)


_PARTS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "TokenPrecision": lambda both, ours, theirs: _ratio(both, ours),
    "TokenRecall": lambda both, ours, theirs: _ratio(both, theirs),
    "TokenF1": lambda both, ours, theirs: _ratio(2 * both, ours + theirs),
}


def _squad_overlap(metric: str, pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Compute the overlap of each reference, float64 [m]; two texts without tokens are equal."""
    both, ours, theirs = _shared(pairs, settings, workers)
    return np.where(ours + theirs == 0, 1.0, _PARTS[metric](both, ours, theirs))


def shared_content(
    pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Array, Array, Array]:
    """Different words that both have; all words of the candidate, of the reference, int64 [m]."""

    def make() -> tuple[Array, Array, Array]:
        words = FUNCTION_WORDS if settings.stop_words is None else settings.stop_words
        ours, theirs = (
            words_at_spaces(*packed(content_words(texts, words)))
            for texts in (pairs.candidates, pairs.references)
        )
        tokens = localised(pairs, ours, theirs, workers)
        both = each_reference(shared_words, pairs, tokens, workers)
        return both, np.diff(ours[2])[pairs.candidate], np.diff(theirs[2])

    return pairs.once("content overlap", make)


def _harmonic(precision: Array, recall: Array) -> Array:
    both, out = precision + recall, np.zeros(precision.size)
    np.divide(precision * recall, both, out=out, where=both > 0)
    return 2 * out


_CONTENT_PARTS: dict[str, Callable[[Array, Array], Array]] = {
    "TokenPrecision": lambda precision, recall: precision,
    "TokenRecall": lambda precision, recall: recall,
    "TokenF1": _harmonic,
}


def _content_overlap(metric: str, pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Compute the overlap of each reference, float64 [m]; 0 without content words."""
    both, ours, theirs = shared_content(pairs, settings, workers)
    return _CONTENT_PARTS[metric](_ratio(both, ours), _ratio(both, theirs))


_OVERLAPS = {"squad": _squad_overlap, "content": _content_overlap}
"""Kind of overlap -> function that computes it for each reference."""


def _overlap(metric: str, pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    value = _OVERLAPS[settings.rules.overlap](metric, pairs, settings, workers)
    return best_columns(metric, {None: value}, pairs, told(settings))


def told(settings: Settings) -> tuple[str | None, ...]:
    """Return the number of given stop words as ``parameters``."""
    words = settings.stop_words
    return (None if words is None else parameters(stop_words=len(words)),)


_OVERLAP_MEASURES = {
    "exact_match": _exact,
    "token_precision": partial(_overlap, "TokenPrecision"),
    "token_recall": partial(_overlap, "TokenRecall"),
    "token_f1": partial(_overlap, "TokenF1"),
}


# Readability of a text, from the length of its sentences and words.

_FORMULAS = {
    "FleschReadingEase": (206.835, -1.015, -84.6),
    "FleschKincaidGrade": (-15.59, 0.39, 11.8),
}
"""Constant, weight of words per sentence, weight of syllables per word. Flesch, "A new readability
yardstick", 1948; Kincaid et al., "Derivation of new readability formulas for Navy enlisted
personnel", 1975.
"""


def _lengths(pairs: Pairs) -> tuple[Array, Array]:
    """Words of a mean sentence, syllables of a mean word; NaN without words."""

    def make() -> tuple[Array, Array]:
        data, start = packed(pairs.candidates)
        words, syllables = words_and_syllables(data, start, regex_kinds(codes_needed(data)))
        _, sentence_start = sentences_of(pairs.candidates)
        sentences = np.diff(sentence_start)
        some = (words > 0) & (sentences > 0)
        out = np.full((2, words.size), np.nan)
        np.divide(words, sentences, out=out[0], where=some)
        np.divide(syllables, words, out=out[1], where=some)
        return out[0], out[1]

    return pairs.once("readability", make)


def _readability(
    metric: str, pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """Compute readability of the candidates; references are ignored."""
    constant, of_sentence, of_word = _FORMULAS[metric]
    sentence, word = _lengths(pairs)
    value = constant + of_sentence * sentence + of_word * word
    wordless = settings.rules.wordless
    if wordless is not None:
        value[np.isnan(value)] = wordless[list(_FORMULAS).index(metric)]
    return (
        Column(metric=metric, values=value[:, None, None], reason="there is no word in the text"),
    )


_READABILITY_MEASURES = {
    "flesch_reading_ease": partial(_readability, "FleschReadingEase"),
    "flesch_kincaid_grade": partial(_readability, "FleschKincaidGrade"),
}


MEASURES = {**_ROUGE_MEASURES, **_OVERLAP_MEASURES, **_READABILITY_MEASURES}
