"""Metrics of n-grams and of edits: ROUGE, BLEU, chrF, TER, error rates, edit similarity."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ....geometry.columns import text_bytes
from ....kernels.datums import hash_codes
from ....kernels.language import stem_hashes
from ....kernels.text import (
    edit_distances,
    lcs_lengths,
    ngram_matches,
    summary_hits,
    translation_edits,
    union_hits,
)
from ....kernels.words import (
    code_points,
    rouge_words,
    words_and_stops,
    words_at_spaces,
    words_between_stops,
)
from ....metrics.averages import edit_rate, translation_rate
from ....schemas.arrays import Array
from ....schemas.options import DECLARED
from ..dialects import TER_OPTIONS, Settings
from ..pairs import (
    BETWEEN,
    SPACES,
    TOKENIZERS,
    Measure,
    Pairs,
    Texts,
    Tokens,
    Values,
    best_reference,
    codes_needed,
    every_character,
    metric,
    of_code_points,
    token_kinds,
)

# ROUGE as in rouge-score 0.1.2, and ROUGE-L of the package rouge 1.0.1, over different words, as
# continuous-eval calls it.

_ONLY_PUNCTUATION = r"^[!-/:-@\[-`{-~]*$"
_SMALL = 1e-8
"""Added by the package to the sum of precision and recall."""


def sequence_scores(texts: Texts) -> tuple[Array, Array, Array]:
    """Return F, precision and recall of each reference, float64 [m]; NaN if it has no sentence.

    Sentences end at every full stop, words at white space; a word counts once, and is hit if it is
    in a longest common subsequence of any two sentences (Lin, "ROUGE: A Package for Automatic
    Evaluation of Summaries", 2004, 3.2). A candidate with only ASCII punctuation scores 0; a
    reference with only full stops gives NaN.
    """
    pairs = texts.pairs
    ours, theirs = texts.sides(lambda some: words_between_stops(*text_bytes(some)))
    tokens = texts.coded(*((side[0], side[1], side[2][side[3]]) for side in (ours, theirs)))
    coded = zip((ours, theirs), (tokens.candidates[1], tokens.references[1]), strict=True)
    lines = ((side[3], side[2], codes) for side, codes in coded)
    counts = texts.each(union_hits, tokens, *lines, shape=(3,)).T
    hits, our_words, their_words = counts
    only_punctuation = pairs.candidates.str.contains(_ONLY_PUNCTUATION).to_numpy()[pairs.candidate]
    precision, recall = hits / np.maximum(our_words, 1), hits / np.maximum(their_words, 1)
    f = 2 * (precision * recall / (precision + recall + _SMALL))
    for value in (f, precision, recall):
        value[their_words == 0] = np.nan
        value[only_punctuation] = 0.0
    return f, precision, recall


def _distinct_sequence(texts: Texts) -> list[Values]:
    """F, precision and recall, each of the reference that makes it highest, NaN ones aside."""
    start, why = texts.pairs.start[:-1], "there is no sentence in the reference"
    return [
        Values(np.fmax.reduceat(value, start) if value.size else value, statistic, why)
        for statistic, value in zip(
            (None, "precision", "recall"), sequence_scores(texts), strict=True
        )
    ]


# ROUGE of rouge-score.

ROUGE_WORDS = "rouge words"
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


def _rouge_words(texts: Texts) -> Words:
    settings = texts.settings

    def cut(some: pl.Series) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        """Hashes and offsets of the tokens, of stems if asked for, and their lines."""
        if settings.rouge_tokenizer == "unicode":
            data, start = text_bytes(some.str.to_lowercase())
            words = rouge_words(data, start, token_kinds(codes_needed(data)))
        else:
            data, start = text_bytes(some)
            words = rouge_words(data, start)
        first, second, place, stop, stops = words[:5]
        if settings.use_stemmer:  # each distinct token is stemmed once
            codes, rows = hash_codes(first, second)
            first, second = (one[codes] for one in stem_hashes(data, place[rows], stop[rows]))
        return (first, second, stops), (words[6], words[5])

    def make() -> Words:
        (ours, our_lines), (theirs, their_lines) = texts.sides(cut)
        return Words(texts.coded(ours, theirs), our_lines, their_lines)

    return texts.pairs.once(ROUGE_WORDS, make)


def _lcs(texts: Texts, words: Words) -> Array:
    """Length of the longest common subsequence of each reference, int64 [m]."""
    return texts.pairs.once("rouge lcs", lambda: texts.each(lcs_lengths, words.tokens))


def _scores(texts: Texts, match: Array, ours: Array, theirs: Array) -> list[Values]:
    """Return F, precision and recall of the best reference by F.

    Args:
        match: int64 [m], shared by each reference and its candidate.
        ours: int64 [n], total of the candidate.
        theirs: int64 [m], total of the reference.
    """
    precision = match / np.maximum(ours[texts.pairs.candidate], 1)
    recall = match / np.maximum(theirs, 1)
    total = precision + recall
    f = np.zeros(match.size)
    np.divide(2 * precision * recall, total, out=f, where=total > 0)
    return texts.best({None: f, "precision": precision, "recall": recall})


def _grams(order: int, texts: Texts) -> list[Values]:
    """Clipped n-gram overlap of one order; matches up to the highest order are made once."""
    tokens, most = _rouge_words(texts).tokens, max(order, 2)
    match = texts.pairs.once(("rouge matches", most), lambda: texts.ngrams(tokens, most))
    return _scores(
        texts, match[:, order - 1], *(np.maximum(one - order + 1, 0) for one in tokens.lengths)
    )


def _sequence(texts: Texts) -> list[Values]:
    """Longest common subsequence of the whole texts, or as the package rouge has it."""
    if texts.settings.rules.sequence == "rouge":
        return _distinct_sequence(texts)
    words = _rouge_words(texts)
    return _scores(texts, _lcs(texts, words), *words.tokens.lengths)


def _summary(texts: Texts) -> list[Values]:
    """Union of longest common subsequences, line by line."""
    words = _rouge_words(texts)
    tokens, match = words.tokens, _lcs(texts, words)
    lines = words.candidate_lines, words.reference_lines
    if any(bool((np.diff(first) > 1).any()) for first, _ in lines):
        sides = (*lines[0], tokens.candidates[1]), (*lines[1], tokens.references[1])
        match = texts.each(summary_hits, tokens, *sides, out=match.copy())
    return _scores(texts, match, *tokens.lengths)


PARAMS = ("use_stemmer", "rouge_tokenizer")
_ROUGE_SOURCE = "rouge-score 0.1.2; Lin 2004"
_F = r"\frac{2 P R}{P + R}, \quad P = \frac{M}{|c|}, \quad R = \frac{M}{|r|}"


def rouge(order: int) -> Measure:
    """ROUGE of n-grams of any order."""
    return Measure(f"ROUGE{order}", partial(_grams, order), PARAMS)


_metric = partial(metric, formula=_F, params=PARAMS)

_ROUGE = (
    *(
        _metric(
            f"ROUGE{order}",
            f"rouge{order}",
            partial(_grams, order),
            f"F of {order}-grams that candidate and reference share, each as often as in both;"
            " precision and recall as statistics; mean over datums",
            source=_ROUGE_SOURCE,
            aliases=(f"rouge{order}", f"rouge-{order}", f"ROUGE-{order}"),
        )
        for order in (1, 2, 3)
    ),
    _metric(
        "ROUGEL",
        "rougel",
        _sequence,
        "F of the longest common subsequence of tokens; precision and recall as statistics; in the"
        " dialect continuous-eval of the different words in longest common subsequences of any two"
        " sentences, F, precision and recall each of its best reference; mean over datums",
        source=f"{_ROUGE_SOURCE}; in continuous-eval rouge 1.0.1",
        aliases=("rougeL", "rouge-l", "rouge-L", "ROUGE-L"),
    ),
    _metric(
        "ROUGELsum",
        "rougelsum",
        _summary,
        "F of the tokens of the reference in a longest common subsequence of one of its lines and"
        " a line of the candidate; precision and recall as statistics; mean over datums",
        source=_ROUGE_SOURCE,
        aliases=("rougeLsum", "rouge-lsum", "ROUGE-Lsum"),
    ),
)

_TYPES = {one.aliases[0]: one.name for one in _ROUGE}
"""Type of ROUGE as rouge-score names it -> the metric."""


def _chosen(options: Any) -> tuple[str, ...]:
    """The types that the option ``rouge_types`` names."""
    types = options.rouge_types or DECLARED["rouge_types"].default
    # Unknown types are refused when options are resolved to settings.
    return tuple(_TYPES.get(name, name) for name in types)


GROUPS = {"ROUGE": _chosen}
"""Group name -> function that returns its metrics for given options."""


# chrF as in sacrebleu 2.6: Popović, "chrF: character n-gram F-score for automatic MT evaluation",
# 2015.

BETA = 2
"""Weight of recall."""
_EPSILON = 1e-16
"""Value of an empty ratio in smoothed F."""


def chrf(
    counts: Array, *, percent: bool = False, beta: float = BETA, smoothed: bool = False
) -> Array:
    """Compute F of the mean precision and mean recall over the orders that both sides have.

    Args:
        counts: [r, orders, 3]: n-grams of the candidate, of the reference, matches. Float32 is
            computed in single precision, as in sacrebleu for sums of resampled texts.
        percent: values are in [0, 100].
        beta: weight of recall.
        smoothed: mean of F over all orders instead, with a tiny number for the ratio of an order
            that a side does not have.

    Returns:
        float64 (for float32: float32) [r], from 0 to 1, or to 100.
    """
    kind: Any = np.float32 if counts.dtype == np.float32 else np.float64
    ours, theirs, match = (np.asarray(counts[:, :, i], kind) for i in range(3))
    factor, orders = beta**2, counts.shape[1]
    value = np.zeros(len(counts), kind)
    # Both are summed one order after the other, so that ties are sacrebleu's.
    if smoothed:
        precision = np.divide(match, ours, out=np.full_like(match, _EPSILON), where=ours > 0)
        recall = np.divide(match, theirs, out=np.full_like(match, _EPSILON), where=theirs > 0)
        below = factor * precision + recall
        f = np.full_like(match, _EPSILON)
        np.divide((1 + factor) * precision * recall, below, out=f, where=below > 0)
        for order in range(orders):
            value += f[:, order]
        return 100 * value / orders if percent else value / orders
    defined = (ours > 0) & (theirs > 0)
    precision, recall = np.zeros_like(value), np.zeros_like(value)
    for order in range(orders):
        some = defined[:, order]
        precision[some] += match[some, order] / ours[some, order]
        recall[some] += match[some, order] / theirs[some, order]
    many = np.maximum(defined.sum(axis=1), 1).astype(kind)
    precision, recall = precision / many, recall / many
    some = precision + recall > 0
    value[some] = (1 + factor) * precision[some] * recall[some]
    value[some] /= factor * precision[some] + recall[some]
    return value * 100 if percent else value


# BLEU of NLTK and sacrebleu (Papineni et al. 2002). Smoothings: Chen and Cherry, "A Systematic
# Comparison of Smoothing Techniques for Sentence-Level BLEU", 2014.

_BLEU_EPSILON, _ALPHA, _K = 0.1, 5.0, 5.0
"""NLTK's constants of method1, method6 and method4."""
_FIFTH = 5
"""Additional order used by method5 and method7, whatever the weights."""
_NEVER = -9999999999.0
"""sacrebleu's value for the logarithm of 0."""
_OF_NLTK = {"exp": "method3", "floor": "method1", "add-k": "method2"}
_OF_SACREBLEU = {other: own for own, other in _OF_NLTK.items()}


def bleu(counts: Array, settings: Any, *, sentence: bool) -> Array:
    """Compute BLEU for rows of counts.

    Args:
        counts: [r, 2 + 2 orders]: length of the candidate, closest length of a reference, clipped
            matches of each order, n-grams of each order.
        settings: ``bleu_weights``, ``smoothing``, and rules with ``bleu``, ``floor`` and
            ``percent``.
        sentence: a row is one sentence; otherwise a sum of many.

    Returns:
        float64 [r], from 0 to 1, or to 100 by the rule ``percent``; NaN if the smoothing is
        undefined.
    """
    counts = np.asarray(counts, np.float64)
    half = 2 + (counts.shape[1] - 2) // 2
    length, closest, match, total = (
        counts[:, 0],
        counts[:, 1],
        counts[:, 2:half],
        counts[:, half:],
    )
    value = _FORMULAS[settings.rules.bleu](
        match, total, settings.bleu_weights, settings.smoothing, sentence
    )
    short = np.exp(1 - closest / np.maximum(length, 1))
    value = value * np.where(length >= closest, 1.0, np.where(length == 0, 0.0, short))
    value = np.where(value < settings.rules.floor, 0.0, value)
    return value * 100 if settings.rules.percent else value


def _nltk(
    match: Array, total: Array, weights: tuple[float, ...], smoothing: str, sentence: bool
) -> Array:
    """Compute the geometric mean of precisions with NLTK's smoothing; 0 without matching tokens."""
    n = len(weights)
    grams, total = total, np.maximum(total, 1)
    p = match / total
    name = _OF_NLTK.get(smoothing, smoothing)
    p = _SMOOTHED[name](p[:, :n], match, total, grams)
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    value = np.exp((logs * np.asarray(weights)).sum(axis=1))
    value[np.isnan(p).any(axis=1)] = np.nan
    return np.where(match[:, 0] > 0, value, 0.0)


def _method2(p: Array, match: Array, total: Array, grams: Array) -> Array:
    n = p.shape[1]
    p = (match[:, :n] + 1) / (total[:, :n] + 1)
    p[:, 0] = match[:, 0] / total[:, 0]
    return p


def _method3(p: Array, match: Array, total: Array, grams: Array) -> Array:
    zero = match[:, : p.shape[1]] == 0
    return np.where(zero, 1 / (2.0 ** np.cumsum(zero, axis=1) * total[:, : p.shape[1]]), p)


def _method4(p: Array, match: Array, total: Array, grams: Array) -> Array:
    length = grams[:, :1]
    zero = (match[:, : p.shape[1]] == 0) & (length > 1)
    logs = np.log(np.maximum(length, 2))
    smoothed = 1 / (2.0 ** np.cumsum(zero, axis=1) * _K / logs) / total[:, : p.shape[1]]
    return np.where(zero, smoothed, p)


def _method5(p: Array, match: Array, total: Array, grams: Array) -> Array:
    fifth = match[:, _FIFTH - 1 : _FIFTH] / total[:, _FIFTH - 1 : _FIFTH]
    ahead = np.concatenate((p[:, 1:], fifth), axis=1)
    out = np.empty_like(p)
    before = p[:, 0] + 1
    for i in range(p.shape[1]):
        before = out[:, i] = (before + p[:, i] + ahead[:, i]) / 3
    return out


def _method6(p: Array, match: Array, total: Array, grams: Array) -> Array:
    p = p.copy()
    defined = p[:, 2] > 0
    for i in range(2, p.shape[1]):
        guess = np.zeros(len(p))
        np.divide(p[:, i - 1] ** 2, p[:, i - 2], out=guess, where=p[:, i - 2] > 0)
        p[:, i] = (match[:, i] + _ALPHA * guess) / (grams[:, i] + _ALPHA)
    return np.where(defined[:, None], p, np.nan)


_SMOOTHED: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "none": lambda p, match, total, grams: np.where(
        match[:, : p.shape[1]] > 0, p, sys.float_info.min
    ),
    "method1": lambda p, match, total, grams: np.where(
        p > 0, p, _BLEU_EPSILON / total[:, : p.shape[1]]
    ),
    "method2": _method2,
    "method3": _method3,
    "method4": _method4,
    "method5": _method5,
    "method6": _method6,
    "method7": lambda p, match, total, grams: _method5(
        _method4(p, match, total, grams), match, total, grams
    ),
}
"""Name of a smoothing -> precisions of the weights' orders from precisions, matches, denominators
and numbers of n-grams."""


def _sacrebleu(
    match: Array, total: Array, weights: tuple[float, ...], smoothing: str, sentence: bool
) -> Array:
    """sacrebleu's: orders without any n-gram count as 0, or not at all in a sentence."""
    name = _OF_SACREBLEU.get(smoothing, smoothing)
    n = len(weights)
    match, total = match[:, :n].copy(), total[:, :n].copy()
    matched = match.any(axis=1)
    if name == "add-k":
        match[:, 1:] += 1
        total[:, 1:] += 1
    within = np.cumprod(total > 0, axis=1, dtype=bool)
    zero = within & (match == 0)
    p = np.divide(match, total, out=np.zeros_like(match), where=within)
    if name == "exp":
        np.divide(1, 2.0 ** np.cumsum(zero, axis=1) * total, out=p, where=zero)
    elif name == "floor":
        np.divide(_BLEU_EPSILON, total, out=p, where=zero)
    logs = np.log(p, out=np.full_like(p, _NEVER), where=p > 0)
    weight = np.broadcast_to(np.asarray(weights), p.shape)
    if sentence:
        weight = np.where(within, weight, 0.0)
    weight_sum = weight.sum(axis=1)
    mean = np.divide(
        (logs * weight).sum(axis=1), weight_sum, out=np.zeros(len(p)), where=weight_sum > 0
    )
    return np.where(matched & (weight_sum > 0), np.exp(mean), 0.0)


_FORMULAS: dict[str, Callable[..., Array]] = {"nltk": _nltk, "sacrebleu": _sacrebleu}


# Preprocessing of texts for TER, as sacrebleu 2.6 after Tercom. Its rules for a final possessive
# and for texts with only kana never apply, and are omitted.

_WESTERN = (
    ("\n-", ""),
    ("\n", " "),
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    (r"([{-~\[-`\x20-&(-+:-@/])", " ${1} "),
    ("'s ", " 's "),
    (r"([^0-9])([.,])", "${1} ${2} "),
    (r"([.,])([^0-9])", " ${1} ${2}"),
    (r"([0-9])(-)", "${1} ${2} "),
)
_STOPS = r"[\u{3001}\u{3002}\u{3008}-\u{3011}\u{3014}-\u{301F}\u{FF61}-\u{FF65}\u{30FB}]"
_WIDE = r"[\u{FF0E}\u{FF0C}\u{FF1F}\u{FF1A}\u{FF1B}\u{FF01}\u{FF02}\u{FF08}\u{FF09}]"
_EASTERN = (
    r"[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}]",
    r"[\u{31C0}-\u{31EF}\u{2E80}-\u{2EFF}]",
    r"[\u{3300}-\u{33FF}\u{F900}-\u{FAFF}\u{FE30}-\u{FE4F}]",
    r"[\u{3200}-\u{3F22}]",
    _STOPS,
    _WIDE,
)
"""Characters that become words, one range after the other."""
_PUNCTUATION = r'[.,?:;!"()]'


def prepared(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return texts whose words are separated by white space."""
    if not settings.ter_case_sensitive:
        texts = texts.str.to_lowercase()
    if settings.ter_normalized:
        texts = " " + texts.str.strip_chars_end(SPACES) + " "
        for pattern, instead in _WESTERN:
            texts = texts.str.replace_all(pattern, instead)
        if settings.ter_asian_support:
            for kind in _EASTERN:
                texts = texts.str.replace_all(f"({kind})", " ${1} ")
    if settings.ter_no_punct:
        texts = texts.str.replace_all(_PUNCTUATION, "")
        if settings.ter_asian_support:
            texts = texts.str.replace_all(_STOPS, "").str.replace_all(_WIDE, "")
    return texts


def prepared_references(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return references whose words are separated by white space.

    sacrebleu preprocesses references twice. This matters if the first pass creates input for the
    second: "&amp;quot;", or a full stop between punctuation and a digit ("...5").
    """
    texts = prepared(texts, settings)
    if not settings.ter_normalized:
        return texts
    return prepared(texts.str.replace_all(BETWEEN, " ").str.strip_chars(" "), settings)


# chrF and chrF++: overlap of character n-grams, and of words.

CHARACTERS, WORDS = 6, 2
"""n-gram orders of characters and, in chrF++, of words."""


def _counts(texts: Texts, tokens: Tokens, orders: int) -> Array:
    """n-grams of the candidate, of the reference, and matches, int64 [m, orders, 3]."""
    steps, (ours, theirs) = np.arange(orders), tokens.lengths
    ours = np.maximum(ours[texts.pairs.candidate, None] - steps, 0)
    theirs = np.maximum(theirs[:, None] - steps, 0)
    return np.stack((np.where(theirs > 0, ours, 0), theirs, texts.ngrams(tokens, orders)), axis=2)


def of_characters(texts: Texts, *, orders: int = CHARACTERS, spaces: bool = False) -> Array:
    """Count character n-grams up to an order, with or without white space.

    Returns:
        int64 [m, orders, 3]: of the candidate, of the reference, matches.
    """

    def make() -> Array:
        sides = texts.sides(lambda some: code_points(*text_bytes(texts.cased(some)), spaces=spaces))
        return _counts(texts, of_code_points(*sides), orders)

    return texts.pairs.once(("chrf characters", orders, spaces), make)


def of_words(texts: Texts, *, orders: int = WORDS) -> Array:
    """Counts of n-grams of words and marks up to an order, as :func:`of_characters`."""
    tokens = texts.tokens(lambda some: words_and_stops(*text_bytes(texts.cased(some))))
    return _counts(texts, tokens, orders)


def _chrf(words: bool, texts: Texts) -> list[Values]:
    """The value of the best reference of each candidate, and its counts."""
    counts = of_characters(texts)
    if words:
        counts = np.concatenate((counts, of_words(texts)), axis=1)
    value = chrf(counts, percent=texts.settings.rules.percent)
    best = best_reference(value, texts.pairs.start)
    flat = counts[best].reshape(best.size, counts.shape[1] * 3)
    return [Values(value[best]), Values(flat.astype(np.float64))]


def _chrf_of_sums(total: Array, settings: Settings) -> Array:
    return chrf(total.reshape(len(total), total.shape[1] // 3, 3), percent=settings.rules.percent)


# BLEU: clipped n-grams of all references together, by sentence and summed.


def _closest(length: Array, theirs: Array, pairs: Pairs) -> Array:
    """Return each candidate's closest reference length, the shorter on ties."""
    if theirs.size == length.size:
        return theirs
    away = np.abs(theirs - length[pairs.candidate])
    key = away * (int(theirs.max(initial=0)) + 1) + theirs
    return np.minimum.reduceat(key, pairs.start[:-1]) % (int(theirs.max(initial=0)) + 1)


def sentence_counts(texts: Texts) -> Array:
    """Return length, closest reference length, matches and totals of each candidate.

    Returns:
        int64 [n, 2 + 2 orders].
    """
    pairs, settings = texts.pairs, texts.settings

    def make() -> Array:
        cut = every_character if settings.rules.characters else TOKENIZERS[settings.tokenizer]
        tokens = texts.tokens(lambda some: cut(texts.cased(some)))
        orders = max(
            len(settings.bleu_weights),
            _FIFTH if settings.smoothing in ("method5", "method7") else 1,
        )
        match = np.empty((len(pairs), orders), np.int64)
        read = (np.arange(len(pairs)), pairs.start), tokens.candidates, tokens.references
        texts.workers.over(
            tokens.candidates[0],
            lambda first, last: ngram_matches(first, last, *read, tokens.n_codes, match),
        )
        length, theirs = tokens.lengths
        total = np.maximum(length[:, None] - np.arange(orders), 0)
        return np.column_stack((length, _closest(length, theirs, pairs), match, total))

    return pairs.once("bleu counts", make)


def _sentence(texts: Texts) -> list[Values]:
    """BLEU of each candidate by itself."""
    pairs, settings = texts.pairs, texts.settings
    if settings.rules.characters:
        every = pairs.candidates.gather(pairs.candidate)
        single = Pairs(every, pairs.references, np.arange(len(every) + 1), {})
        counts = sentence_counts(Texts(single, settings, texts.workers))
        value = bleu(counts, settings, sentence=True)
        value = value[best_reference(value, pairs.start)]
    else:
        value = bleu(sentence_counts(texts), settings, sentence=True)
    return [Values(value, reason="smoothing method6 needs trigrams that match")]


def _corpus(texts: Texts) -> list[Values]:
    """Counts that CorpusBLEU sums."""
    counts = sentence_counts(texts).astype(np.float64)
    rules = texts.settings.rules
    if rules.bleu == "nltk" and rules.floor == 0:
        half = 2 + (counts.shape[1] - 2) // 2
        counts[:, half:] = np.maximum(counts[:, half:], 1)  # nltk's own denominators
    return [Values(counts)]


# Edits between candidate and reference: of words, of characters.


def _words(texts: Texts) -> Tokens:
    return texts.tokens(lambda some: words_at_spaces(*text_bytes(texts.cased(some))))


def _characters(texts: Texts, *, stripped: bool = False) -> Tokens:
    """Return code points, including white space, except around a text if stripped."""

    def cut(some: pl.Series) -> tuple[Array, Array]:
        some = texts.cased(some)
        return code_points(
            *text_bytes(some.str.strip_chars(SPACES) if stripped else some), spaces=True
        )

    return of_code_points(*texts.sides(cut))


def _rate(cut: Callable[[Texts], Tokens], texts: Texts) -> list[Values]:
    """Edits over the length of the reference that has the lowest rate, and both."""
    tokens = cut(texts)
    edits, (_, length) = texts.each(edit_distances, tokens), tokens.lengths
    rate = np.full(edits.size, np.inf)
    np.divide(edits, length, out=rate, where=length > 0)
    best = best_reference(-rate, texts.pairs.start)
    value = np.where(length[best] > 0, rate[best], np.nan)
    counts = np.column_stack((edits[best], length[best])).astype(np.float64)
    # Lower is better; the first column selects the best of several candidates.
    return [Values(one, reason="the reference is empty") for one in (value, counts)]


def _translation(texts: Texts) -> list[Values]:
    """Fewest edits and shifts to any reference over the mean length of the references, and both."""
    pairs, settings = texts.pairs, texts.settings
    ours = prepared(pairs.candidates, settings), prepared_references(pairs.references, settings)
    tokens = texts.coded(*(words_at_spaces(*text_bytes(side)) for side in ours))
    # The kernel compares codes, and has no use for how many there are.
    edits = texts.each(
        lambda first, last, each, ours, theirs, _, out: translation_edits(
            first, last, each, ours, theirs, out
        ),
        tokens,
    )
    best = best_reference(-edits.astype(np.float64), pairs.start)
    length = np.add.reduceat(np.diff(tokens.references[0]), pairs.start[:-1])
    counts = np.column_stack((edits[best], length / np.diff(pairs.start)))
    return [Values(translation_rate(counts, percent=settings.rules.percent)), Values(counts)]


def _similarity(texts: Texts) -> list[Values]:
    """1 - distance / length of the longer text, of the most similar reference."""
    tokens = _characters(texts)
    edits, (ours, theirs) = texts.each(edit_distances, tokens), tokens.lengths
    longer = np.maximum(np.maximum(ours[texts.pairs.candidate], theirs), 1)
    return texts.best({None: 1 - edits / longer})


_CASE = ("lowercase",)
_BLEU = r"\text{BP} \cdot \exp\left(\sum_o w_o \ln \frac{M_o}{c_o}\right), \quad"
_bleu = partial(
    metric,
    formula=rf"{_BLEU} \text{{BP}} = \min\left(1, e^{{1 - |r| / |c|}}\right)",
    params=("bleu_weights", "smoothing", "tokenizer", "lowercase"),
)
_characters_metric = partial(
    metric,
    formula=r"\frac{5 P R}{4 P + R}, \quad P = \frac{1}{O} \sum_o \frac{M_o}{c_o}, \quad R ="
    r" \frac{1}{O} \sum_o \frac{M_o}{r_o}",
    source="sacrebleu 2.6; Popović 2015, 2017",
    params=_CASE,
    of_sums=_chrf_of_sums,
)
_edits = partial(
    metric, formula=r"\frac{\sum_d e_d}{\sum_d r_d}", range=(0.0, math.inf), better="lower"
)
_errors = partial(
    _edits,
    source="Levenshtein 1966; jiwer",
    params=_CASE,
    of_sums=lambda total, settings: edit_rate(total),
)

METRICS = (
    *_ROUGE,
    _bleu(
        "BLEU",
        "bleu",
        _sentence,
        "brevity penalty * geometric mean of the precisions of 1-grams to 4-grams, clipped by the"
        " references, of every text by itself; mean over datums",
        source="nltk 3.10 sentence_bleu; Papineni et al. 2002",
        aliases=("bleu", "SentenceBLEU", "sentence_bleu"),
    ),
    _bleu(
        "CorpusBLEU",
        "bleu_counts",
        _corpus,
        "BLEU of the counts of all datums together",
        source="Papineni et al. 2002; sacrebleu 2.6",
        of_sums=lambda total, settings: bleu(total, settings, sentence=False),
        aliases=("corpus_bleu", "corpusbleu", "sacrebleu"),
    ),
    _characters_metric(
        "chrF",
        "chrf",
        partial(_chrf, False),
        "F2 of the mean precision and mean recall of character n-grams of orders 1 to 6, without"
        " white space; from counts of all datums together",
        aliases=("chrf", "chrF2"),
    ),
    _characters_metric(
        "chrF++",
        "chrf++",
        partial(_chrf, True),
        "F2 of the mean precision and mean recall of character n-grams of orders 1 to 6 and of"
        " words of orders 1 and 2, without white space; from counts of all datums together",
        aliases=("chrf++", "chrF2++"),
    ),
    _edits(
        "TER",
        "ter",
        _translation,
        "insertions, deletions, replacements and shifts of words, fewest to any reference / mean"
        " words of the references, without case; sums of all datums",
        source="sacrebleu 2.6; Snover et al. 2006",
        params=TER_OPTIONS,
        of_sums=lambda total, settings: translation_rate(total, percent=settings.rules.percent),
        aliases=("ter",),
    ),
    _errors(
        "WER",
        "wer",
        partial(_rate, _words),
        "fewest insertions, deletions and replacements of words / words of the reference; sums of"
        " all datums",
        aliases=("word_error_rate", "word error rate"),
    ),
    _errors(
        "CER",
        "cer",
        partial(_rate, partial(_characters, stripped=True)),
        "fewest insertions, deletions and replacements of characters / characters of the"
        " reference; sums of all datums",
        aliases=("character_error_rate", "character error rate"),
    ),
    metric(
        "EditSimilarity",
        "edit_similarity",
        _similarity,
        "1 - Levenshtein distance of characters / length of the longer text; mean over datums",
        r"\left(1 - \frac{e_d}{\max(|c|, |r|)}\right)",
        source="rapidfuzz Levenshtein.normalized_similarity",
        params=_CASE,
        aliases=("edit_similarity", "levenshtein_similarity"),
    ),
)
