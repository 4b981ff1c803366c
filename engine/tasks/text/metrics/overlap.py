"""Exact match, overlap of tokens, similarity of vectors, readability and faithfulness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ....geometry.columns import offsets_of, text_bytes
from ....kernels.language import words_and_syllables
from ....kernels.text import shared_words
from ....kernels.words import words_at_spaces
from ....schemas.arrays import Array
from ....schemas.tuning import tuning
from ...encoding import sentences_of
from ..dialects import DIALECTS
from ..encode import Vectors
from ..pairs import (
    BETWEEN,
    FUNCTION_WORDS,
    PUNCTUATION,
    SPACES,
    Pairs,
    Texts,
    Values,
    best_reference,
    codes_needed,
    content_words,
    metric,
    regex_kinds,
    spaced_words,
)
from .ngrams import bleu, sentence_counts, sequence_scores

# Exact match and overlap of tokens, after SQuAD's normalisation or of content words.

_ARTICLES = r"(^|[^\p{L}\p{N}_])(?:a|an|the)($|[^\p{L}\p{N}_])"
r"""Articles between word boundaries of Python's ``\b``."""


def squad(texts: pl.Series) -> pl.Series:
    """Return texts in lower case, without ASCII punctuation and articles, one space between words.

    Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", 2016.
    """
    words = texts.str.to_lowercase().str.replace_all(PUNCTUATION, "")
    for _ in range(2):  # the first of two articles consumes the space between them
        words = words.str.replace_all(_ARTICLES, "${1} ${2}")
    return words.str.replace_all(BETWEEN, " ").str.strip_chars(" ")


def _exact(texts: Texts) -> list[Values]:
    """Compute 1 if a reference is equal after normalisation: SQuAD's, or case and white space."""
    ours, theirs = texts.sides(
        squad
        if texts.settings.rules.normalise == "squad"
        else lambda some: some.str.strip_chars(SPACES).str.to_lowercase()
    )
    same = (ours.gather(texts.pairs.candidate) == theirs).to_numpy().astype(np.float64)
    return texts.best({None: same})


def _ratio(part: Array, total: Array) -> Array:
    return part / np.maximum(total, 1)


def _shared(texts: Texts, *, content: bool) -> tuple[Array, Array, Array]:
    """Tokens that both have, that the candidate has, that the reference has, int64 [m] each.

    Args:
        content: without function words, and each word that both have counts once.
    """
    words = texts.settings.stop_words

    def cut(some: pl.Series) -> pl.Series:
        if content:
            return content_words(some, FUNCTION_WORDS if words is None else words)
        return squad(some) if words is None else spaced_words(some, words)

    def make() -> tuple[Array, Array, Array]:
        tokens = texts.tokens(lambda some: words_at_spaces(*text_bytes(cut(some))))
        ours, theirs = tokens.lengths
        shared = texts.each(shared_words, tokens) if content else texts.ngrams(tokens, 1)[:, 0]
        return shared, ours[texts.pairs.candidate], theirs

    return texts.pairs.once("content overlap" if content else "squad overlap", make)


def _overlap(part: str, texts: Texts) -> list[Values]:
    """Compute the overlap of tokens; two texts without any are equal, of content words not."""
    squads = texts.settings.rules.overlap == "squad"
    shared, ours, theirs = _shared(texts, content=not squads)
    precision, recall = _ratio(shared, ours), _ratio(shared, theirs)
    value = precision if part == "precision" else recall
    if part == "f1" and squads:
        value = _ratio(2 * shared, ours + theirs)
    elif part == "f1":
        value, total = np.zeros(precision.size), precision + recall
        np.divide(precision * recall, total, out=value, where=total > 0)
        value = 2 * value
    return texts.best({None: np.where(ours + theirs == 0, 1.0, value) if squads else value})


# Semantic similarity: the cosine of two vectors.

_ROWS = 4096
_LARGE = 1e70
_SCORED, _ZERO, _NONE = range(3)
_ALL_ZEROS = "a vector is all zeros"


def cosines(ours: Array, theirs: Array) -> Array:
    """Return the cosine of each pair of rows, float64 [n]; NaN for a zero row or a NaN.

    Args:
        ours: float [n, d], finite or NaN.
        theirs: float [n, d], finite or NaN.
    """
    pair = [np.asarray(rows, np.float64) for rows in (ours, theirs)]
    # Scale by powers of two, which avoids overflow and underflow of squares without rounding.
    for i, rows in enumerate(pair):
        top = np.abs(rows).max(axis=1, initial=0.0)
        far = (top > _LARGE) | ((top > 0) & (top < 1 / _LARGE))
        if far.any():
            _, exponent = np.frexp(np.where(far, top, 1.0))
            pair[i] = np.ldexp(rows, -exponent[:, None])
    a, b = pair
    # One root of the product: of equal rows it is their square to the bit, and the cosine 1.
    norms = np.sqrt(np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b))
    out = np.full(norms.size, np.nan)
    np.divide(np.einsum("ij,ij->i", a, b), norms, out=out, where=norms > 0)
    return out


def _similarity(texts: Texts) -> list[Values]:
    """Compute the cosine of the most similar reference, or 0 or 1 by the threshold."""
    vectors: Vectors = texts.pairs.made["vectors"]
    many = np.diff(vectors.start)
    candidate = np.repeat(vectors.candidate, many)
    each, absent = np.empty(candidate.size), np.empty(candidate.size, bool)

    def run(first: int, last: int) -> None:
        for begin in range(first, last, _ROWS):
            rows = slice(begin, min(begin + _ROWS, last))
            ours = vectors.candidates[candidate[rows]]
            theirs = vectors.references[vectors.reference[rows]]
            each[rows] = cosines(ours, theirs)
            absent[rows] = np.isnan(ours[:, :1]).any(axis=1) | np.isnan(theirs[:, :1]).any(axis=1)

    texts.workers.over(np.arange(candidate.size + 1) * (vectors.candidates.shape[1] or 1), run)
    value, status = np.full(many.size, np.nan), np.full(many.size, _NONE, np.int8)
    some = np.flatnonzero(many)
    if some.size:
        start = np.append(vectors.start[some], vectors.start[-1])
        best = best_reference(np.where(np.isnan(each), -np.inf, each), start)
        value[some] = each[best]
        status[some] = np.where(absent[best], _NONE, _ZERO)
    status[~np.isnan(value)] = _SCORED
    whys = ((_ZERO, _ALL_ZEROS), (_NONE, vectors.why[1]))
    reason = ", or ".join(why for code, why in whys if (status == code).any()) or None
    threshold = texts.settings.similarity_threshold
    if threshold is not None:
        value = np.where(np.isnan(value), np.nan, value >= threshold)
    return [
        Values(value, reason=reason, status=(("scored", "zero_vector", vectors.why[0]), status))
    ]


# Readability of a text, from the length of its sentences and words.


def _lengths(texts: Texts) -> Array:
    """Words of a mean sentence, syllables of a mean word, [2, n]; NaN without words."""

    def make() -> Array:
        candidates = texts.pairs.candidates
        data, start = text_bytes(candidates)
        words, syllables = words_and_syllables(data, start, regex_kinds(codes_needed(data)))
        sentences = np.diff(sentences_of(candidates)[1])
        some = (words > 0) & (sentences > 0)
        out = np.full((2, words.size), np.nan)
        np.divide(words, sentences, out=out[0], where=some)
        np.divide(syllables, words, out=out[1], where=some)
        return out

    return texts.pairs.once("readability", make)


def _readability(
    constant: float, of_sentence: float, of_word: float, which: int, texts: Texts
) -> list[Values]:
    """Compute readability of the candidates; references are ignored.

    Args:
        constant: added to the weighted sum.
        of_sentence: weight of words per sentence.
        of_word: weight of syllables per word.
        which: index of the dialect's value for a text without words.
    """
    sentence, word = _lengths(texts)
    value = constant + of_sentence * sentence + of_word * word
    wordless = texts.settings.rules.wordless
    if wordless is not None:
        value[np.isnan(value)] = wordless[which]
    return [Values(value, reason="there is no word in the text")]


# Faithfulness of sentences to contexts (DeterministicFaithfulness of continuous-eval 0.3.14).

_RULES = DIALECTS["continuous-eval"].rules
_NO_CONTEXT, _NO_SENTENCE, _NO_WORDS = (
    "there are no contexts",
    "there is no sentence in the text",
    "there is no sentence in the contexts",
)


def _by_words(texts: Texts) -> Array:
    """Share of content words that the contexts have."""
    shared, ours, _ = _shared(texts, content=True)
    return _ratio(shared, ours)


def _by_characters(texts: Texts) -> Array:
    """BLEU of characters, always with NLTK's four orders and no smoothing."""
    settings = msgspec.structs.replace(
        texts.settings, rules=_RULES, bleu_weights=(0.25,) * 4, smoothing="none", lowercase=False
    )
    counts = sentence_counts(Texts(texts.pairs, settings, texts.workers))
    return bleu(counts, settings, sentence=True)


def _sentences(pairs: Pairs) -> tuple[pl.Series, Array]:
    """Sentences of the texts that have contexts, offsets of those of every text, int64 [n + 1]."""

    def make() -> tuple[pl.Series, Array]:
        has_context = pairs.made["contexts"].is_not_null()
        texts = pl.select(
            pl.when(has_context).then(pairs.candidates).otherwise(pl.lit(""))
        ).to_series()
        return sentences_of(texts)

    return pairs.once("sentences", make)


def _blocks(pairs: Pairs) -> Iterator[tuple[int, int, Pairs]]:
    """Yield ranges of sentences with their contexts, limited by memory."""
    sentences, start = _sentences(pairs)
    text = np.repeat(np.arange(len(pairs)), np.diff(start))
    size = pairs.made["contexts"].str.len_bytes().fill_null(0).to_numpy()[text]
    size = size + sentences.str.len_bytes().to_numpy()
    end = offsets_of(size)
    first = 0
    while first < text.size:
        last = int(np.searchsorted(end, end[first] + tuning().text_bytes, side="right")) - 1
        last = max(last, first + 1)
        contexts = pairs.made["contexts"].gather(text[first:last])
        one = np.arange(last - first + 1)
        yield first, last, Pairs(sentences[first:last], contexts, one, {})
        first = last


def _faithful(score: Callable[[Texts], Array], share: bool, texts: Texts) -> list[Values]:
    """Compute the share of each text's sentences above the threshold, or the mean of all.

    Args:
        score: maps sentences, each with its contexts as its one reference, to float64 [m].
    """
    pairs, settings, n = texts.pairs, texts.settings, len(texts.pairs)
    value, status = np.full(n, np.nan), np.ones(n, np.int8)
    reasons = {_NO_CONTEXT}
    if "contexts" in pairs.made:
        has_context = pairs.made["contexts"].is_not_null().to_numpy()
        status = (~has_context).astype(np.int8)
        start = _sentences(pairs)[1]
        each = np.empty(int(start[-1]))
        for first, last, block in _blocks(pairs):
            each[first:last] = score(Texts(block, settings, texts.workers))
        undefined = np.isnan(each)
        if share:
            each = np.where(undefined, np.nan, each >= settings.faithfulness_threshold)
        many = np.diff(start)
        some = np.flatnonzero(many)
        total = np.add.reduceat(each, start[some]) if some.size else each
        value[some] = total / many[some]
        cases = (
            (_NO_CONTEXT, ~has_context),
            (_NO_SENTENCE, has_context & (many == 0)),
            (_NO_WORDS, undefined),
        )
        reasons = {reason for reason, mask in cases if mask.any()}
    reason = ", or ".join(sorted(reasons)) or None
    return [Values(value, reason=reason, status=(("scored", "no_context"), status))]


_SQUAD = "SQuAD 2.0; Rajpurkar et al. 2016"
_CONTENT = (
    "; in the dialect continuous-eval different content words that both have, of all content words"
)
_tokens = partial(metric, source=f"{_SQUAD}; continuous-eval 0.3.14", params=("stop_words",))
_readable = partial(metric, spares=("reference",), range=(-math.inf, math.inf), better="neither")


def _faithfulness(
    name: str, need: str, of: Any, definition: str, formula: str, *params: str
) -> Any:
    return metric(
        name,
        need,
        of,
        f"{definition}; mean over datums; references are not read",
        formula,
        source="continuous-eval 0.3.14 DeterministicFaithfulness",
        spares=("reference",),
        reads=("contexts",),
        params=params,
        aliases=(f"{need.replace('token', 'token_overlap')}",),
    )


_FAITHFULNESS = (
    _faithfulness(
        "RougeFaithfulness",
        "rouge_faithfulness",
        partial(_faithful, lambda texts: sequence_scores(texts)[1], True),
        "sentences of the text whose ROUGE-L precision (package rouge) against all contexts is 0.5"
        " or more / sentences",
        r"\frac{1}{|s|} \sum_s [P_s \ge \theta]",
        "faithfulness_threshold",
    ),
    _faithfulness(
        "TokenOverlapFaithfulness",
        "token_faithfulness",
        partial(_faithful, _by_words, True),
        "sentences of the text of whose content words the contexts have half or more / sentences",
        r"\frac{1}{|s|} \sum_s [P_s \ge \theta]",
        "faithfulness_threshold",
        "stop_words",
    ),
    _faithfulness(
        "BLEUFaithfulness",
        "bleu_faithfulness",
        partial(_faithful, _by_characters, False),
        "mean over the sentences of the text of their BLEU of characters against all contexts",
        r"\frac{1}{|s|} \sum_s \text{BLEU}_s",
    ),
)

METRICS = (
    metric(
        "ExactMatch",
        "exact_match",
        _exact,
        "1 if the text is a reference, without case, punctuation and articles; mean over datums",
        r"[c = r]",
        source=_SQUAD,
        aliases=("exact_match", "EM"),
        trials="scored",
    ),
    _tokens(
        "TokenPrecision",
        "token_precision",
        partial(_overlap, "precision"),
        "tokens that both texts have / tokens of the candidate, without case, punctuation and"
        f" articles{_CONTENT}; mean over datums",
        r"\frac{M}{|c|}",
        aliases=("token_precision",),
    ),
    _tokens(
        "TokenRecall",
        "token_recall",
        partial(_overlap, "recall"),
        "tokens that both texts have / tokens of the reference, without case, punctuation and"
        f" articles{_CONTENT}; mean over datums",
        r"\frac{M}{|r|}",
        aliases=("token_recall",),
    ),
    _tokens(
        "TokenF1",
        "token_f1",
        partial(_overlap, "f1"),
        "2 * tokens that both texts have / tokens of both, without case, punctuation and articles"
        f"{_CONTENT}; mean over datums",
        r"\frac{2 M}{|c| + |r|}",
        aliases=("token_f1", "squad_f1"),
    ),
    metric(
        "SemanticSimilarity",
        "semantic_similarity",
        _similarity,
        "cosine of the vectors of text and reference, of the most similar reference; with a"
        " threshold, 1 from it on and else 0; mean over datums",
        r"\max_r \frac{u \cdot v_r}{\lVert u \rVert\, \lVert v_r \rVert}",
        source="ragas 0.4.3; Salton & McGill 1983",
        vectors=True,
        reads=("embedding", "reference_embedding"),
        params=("embedder", "similarity_threshold"),
        aliases=(
            "semantic_similarity",
            "cosine_similarity",
            "embedding_similarity",
            "AnswerSimilarity",
            "answer_similarity",
        ),
        range=(-1.0, 1.0),
    ),
    _readable(
        "FleschReadingEase",
        "flesch_reading_ease",
        partial(_readability, 206.835, -1.015, -84.6, 0),
        "206.835 - 1.015 * words / sentences - 84.6 * syllables / words of the text, from about 0"
        " (hard) to 100 (easy); mean over datums",
        r"\left(206.835 - 1.015\, \frac{\text{words}}{\text{sentences}} - 84.6\,"
        r" \frac{\text{syllables}}{\text{words}}\right)",
        source="Flesch 1948; syllables as NLTK's SyllableTokenizer",
        aliases=("flesch_reading_ease", "flesch"),
    ),
    _readable(
        "FleschKincaidGrade",
        "flesch_kincaid_grade",
        partial(_readability, -15.59, 0.39, 11.8, 1),
        "0.39 * words / sentences + 11.8 * syllables / words - 15.59 of the text, years of school;"
        " mean over datums",
        r"\left(0.39\, \frac{\text{words}}{\text{sentences}} + 11.8\,"
        r" \frac{\text{syllables}}{\text{words}} - 15.59\right)",
        source="Kincaid et al. 1975; syllables as NLTK's SyllableTokenizer",
        aliases=("flesch_kincaid_grade", "flesch_kincaid_grade_level", "flesch_kincaid"),
    ),
    *_FAITHFULNESS,
)

GROUPS = {"DeterministicFaithfulness": lambda options: tuple(one.name for one in _FAITHFULNESS)}
"""Group name -> function that returns its metrics for given options."""
