"""Measures of n-grams, edits and faithfulness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ....kernels.text import edit_distances, ngram_matches, translation_edits
from ....kernels.words import code_points, words_and_marks, words_at_spaces
from ....metrics.averages import translation_rate
from ....schemas.arrays import Array
from ....schemas.options import DECLARED
from ....schemas.tuning import tuning
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers, offsets_of, packed, sentences_of
from ..dialects import DIALECTS, TER_OPTIONS, Settings
from ..metrics.overlap import bleu, chrf, orders_of
from ..pairs import Pairs, Tokens, best_reference, localised, of_code_points
from ..tokenizers import BETWEEN, SPACES, TOKENIZERS, every_character
from .overlap import (
    best_columns,
    each_reference,
    ngrams_of_each,
    sequence_scores,
    shared_content,
    unusual,
)

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
_MARKS = r"[\u{3001}\u{3002}\u{3008}-\u{3011}\u{3014}-\u{301F}\u{FF61}-\u{FF65}\u{30FB}]"
_WIDE_MARKS = r"[\u{FF0E}\u{FF0C}\u{FF1F}\u{FF1A}\u{FF1B}\u{FF01}\u{FF02}\u{FF08}\u{FF09}]"
_EASTERN = (
    r"[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}]",
    r"[\u{31C0}-\u{31EF}\u{2E80}-\u{2EFF}]",
    r"[\u{3300}-\u{33FF}\u{F900}-\u{FAFF}\u{FE30}-\u{FE4F}]",
    r"[\u{3200}-\u{3F22}]",
    _MARKS,
    _WIDE_MARKS,
)
"""Characters that become words, one range after the other."""
_PUNCTUATION = r'[.,?:;!"()]'


def prepared(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return texts whose words are separated by white space.

    Args:
        texts: String.
    """
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
            texts = texts.str.replace_all(_MARKS, "").str.replace_all(_WIDE_MARKS, "")
    return texts


def prepared_references(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return references whose words are separated by white space.

    sacrebleu preprocesses references twice. This matters if the first pass creates input for the
    second: "&amp;quot;", or a full stop between punctuation and a digit ("...5").

    Args:
        texts: String.
    """
    texts = prepared(texts, settings)
    if not settings.ter_normalized:
        return texts
    return prepared(texts.str.replace_all(BETWEEN, " ").str.strip_chars(" "), settings)


# chrF and chrF++: overlap of character n-grams, and of words.

CHARACTERS, WORDS = 6, 2
"""n-gram orders of characters and, in chrF++, of words."""


def cased(texts: pl.Series, settings: Settings) -> pl.Series:
    """Return texts, in lower case if case is ignored."""
    return texts.str.to_lowercase() if settings.lowercase else texts


def named(settings: Settings) -> tuple[str | None, ...]:
    """Return the ``parameters`` if case is ignored."""
    return unusual(settings, {"lowercase": False})


def _counts(pairs: Pairs, tokens: Tokens, orders: int, workers: Workers) -> Array:
    """n-grams of the candidate, of the reference, and matches, int64 [m, orders, 3]."""
    match = ngrams_of_each(pairs, tokens, orders, workers)
    steps = np.arange(orders)
    ours = np.maximum(np.diff(tokens.candidates[0])[pairs.candidate, None] - steps, 0)
    theirs = np.maximum(np.diff(tokens.references[0])[:, None] - steps, 0)
    return np.stack((np.where(theirs > 0, ours, 0), theirs, match), axis=2)


def of_characters(
    pairs: Pairs,
    settings: Settings,
    workers: Workers,
    *,
    orders: int = CHARACTERS,
    spaces: bool = False,
) -> Array:
    """Count character n-grams up to an order, with or without white space.

    Returns:
        int64 [m, orders, 3]: of the candidate, of the reference, matches.
    """

    def make() -> Array:
        ours, theirs = (
            code_points(*packed(cased(texts, settings)), spaces=spaces)
            for texts in (pairs.candidates, pairs.references)
        )
        return _counts(pairs, of_code_points(ours, theirs), orders, workers)

    return pairs.once(("chrf characters", orders, spaces), make)


def of_words(pairs: Pairs, settings: Settings, workers: Workers, *, orders: int = WORDS) -> Array:
    """Counts of n-grams of words and marks up to an order, as :func:`of_characters`."""
    ours, theirs = (
        words_and_marks(*packed(cased(texts, settings)))
        for texts in (pairs.candidates, pairs.references)
    )
    return _counts(pairs, localised(pairs, ours, theirs, workers), orders, workers)


def _chrf(
    metric: str, words: bool, pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """The value of the best reference of each candidate, and its counts."""
    counts = of_characters(pairs, settings, workers)
    if words:
        counts = np.concatenate((counts, of_words(pairs, settings, workers)), axis=1)
    value = chrf(counts, percent=settings.rules.percent)
    best = best_reference(value, pairs.start)
    flat = counts[best].reshape(best.size, counts.shape[1] * 3).astype(np.float64)
    return (
        Column(metric=metric, parameters=named(settings), values=value[best][:, None, None]),
        Column(
            metric=metric,
            parameters=named(settings),
            k=tuple(range(flat.shape[1])),
            values=flat[:, None, :],
        ),
    )


_CHRF_MEASURES = {"chrf": partial(_chrf, "chrF", False), "chrf++": partial(_chrf, "chrF++", True)}
_CHRF_SUMS = frozenset(_CHRF_MEASURES)


# BLEU: clipped n-grams of all references together, by sentence and summed.

_USUAL = {
    "tokenizer": "words",
    "smoothing": "none",
    "bleu_weights": (0.25,) * 4,
    "lowercase": False,
}


def _closest(length: Array, theirs: Array, pairs: Pairs) -> Array:
    """Return each candidate's closest reference length, the shorter on ties."""
    if theirs.size == length.size:
        return theirs
    away = np.abs(theirs - length[pairs.candidate])
    key = away * (int(theirs.max(initial=0)) + 1) + theirs
    chosen: Array = np.minimum.reduceat(key, pairs.start[:-1]) % (int(theirs.max(initial=0)) + 1)
    return chosen


def sentence_counts(pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Return length, closest reference length, matches and totals of each candidate.

    Returns:
        int64 [n, 2 + 2 orders].
    """

    def make() -> Array:
        cut = every_character if settings.rules.characters else TOKENIZERS[settings.tokenizer]
        sides = [cased(texts, settings) for texts in (pairs.candidates, pairs.references)]
        tokens = localised(pairs, cut(sides[0]), cut(sides[1]), workers)
        orders = orders_of(settings.bleu_weights, settings.smoothing)
        match = np.empty((len(pairs), orders), np.int64)
        units = np.arange(len(pairs)), pairs.start

        def run(first: int, last: int) -> None:
            ngram_matches(
                first, last, units, tokens.candidates, tokens.references, tokens.n_codes, match
            )

        workers.over(tokens.candidates[0], run)
        length, theirs = np.diff(tokens.candidates[0]), np.diff(tokens.references[0])
        total = np.maximum(length[:, None] - np.arange(orders), 0)
        closest = _closest(length, theirs, pairs)
        return np.column_stack((length, closest, match, total))

    return pairs.once("bleu counts", make)


def _sentence(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """BLEU of each candidate by itself."""
    if settings.rules.characters:
        every = pairs.candidates.gather(pairs.candidate)
        single = Pairs(every, pairs.references, np.arange(len(every) + 1), {})
        value = bleu(sentence_counts(single, settings, workers), settings, sentence=True)
        value = value[best_reference(value, pairs.start)]
    else:
        value = bleu(sentence_counts(pairs, settings, workers), settings, sentence=True)
    return (
        Column(
            metric="BLEU",
            parameters=unusual(settings, _USUAL),
            values=value[:, None, None],
            reason="smoothing method6 needs trigrams that match",
        ),
    )


def _corpus(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Counts that CorpusBLEU sums."""
    counts = sentence_counts(pairs, settings, workers).astype(np.float64)
    if settings.rules.bleu == "nltk" and settings.rules.floor == 0:
        half = 2 + (counts.shape[1] - 2) // 2
        counts[:, half:] = np.maximum(counts[:, half:], 1)  # nltk's own denominators
    return (
        Column(
            metric="CorpusBLEU",
            parameters=unusual(settings, _USUAL),
            k=tuple(range(counts.shape[1])),
            values=counts[:, None, :],
        ),
    )


_BLEU_MEASURES = {"bleu": _sentence, "bleu_counts": _corpus}
_BLEU_SUMS = frozenset({"bleu_counts"})


# Edits between candidate and reference: of words, of characters.

Cut = Callable[[Pairs, Settings, Workers], Tokens]

_EMPTY = "the reference is empty"


def _words(pairs: Pairs, settings: Settings, workers: Workers) -> Tokens:
    ours, theirs = (
        words_at_spaces(*packed(cased(texts, settings)))
        for texts in (pairs.candidates, pairs.references)
    )
    return localised(pairs, ours, theirs, workers)


def _characters(stripped: bool, pairs: Pairs, settings: Settings, workers: Workers) -> Tokens:
    """Return code points, including white space, except around a text if stripped."""
    sides = [cased(texts, settings) for texts in (pairs.candidates, pairs.references)]
    if stripped:
        sides = [texts.str.strip_chars(SPACES) for texts in sides]
    ours, theirs = (code_points(*packed(texts), spaces=True) for texts in sides)
    return of_code_points(ours, theirs)


def _rate(
    metric: str, cut: Cut, pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """Edits over the length of the reference that has the lowest rate, and both."""
    tokens = cut(pairs, settings, workers)
    edits = each_reference(edit_distances, pairs, tokens, workers)
    length = np.diff(tokens.references[0])
    rate = np.full(edits.size, np.inf)
    np.divide(edits, length, out=rate, where=length > 0)
    best = best_reference(-rate, pairs.start)
    value = np.where(length[best] > 0, rate[best], np.nan)
    counts = np.column_stack((edits[best], length[best])).astype(np.float64)
    return (
        # Lower is better; the first column selects the best of several candidates.
        Column(
            metric=metric, parameters=named(settings), values=value[:, None, None], reason=_EMPTY
        ),
        Column(
            metric=metric,
            parameters=named(settings),
            k=(0, 1),
            values=counts[:, None, :],
            reason=_EMPTY,
        ),
    )


def _translated(
    first: int, last: int, candidate: Array, ours: Any, theirs: Any, n_codes: int, out: Array
) -> None:
    """The kernel compares codes, and has no use for how many there are."""
    translation_edits(first, last, candidate, ours, theirs, out)


def _translation(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Fewest edits and shifts to any reference over the mean length of the references, and both."""
    ours = words_at_spaces(*packed(prepared(pairs.candidates, settings)))
    theirs = words_at_spaces(*packed(prepared_references(pairs.references, settings)))
    tokens = localised(pairs, ours, theirs, workers)
    edits = each_reference(_translated, pairs, tokens, workers)
    best = best_reference(-edits.astype(np.float64), pairs.start)
    length = np.add.reduceat(np.diff(tokens.references[0]), pairs.start[:-1])
    counts = np.column_stack((edits[best], length / np.diff(pairs.start)))
    value = translation_rate(counts, percent=settings.rules.percent)
    chosen = unusual(settings, dict.fromkeys(TER_OPTIONS, False))
    return (
        Column(metric="TER", parameters=chosen, values=value[:, None, None]),
        Column(metric="TER", parameters=chosen, k=(0, 1), values=counts[:, None, :]),
    )


def _similarity(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """1 - distance / length of the longer text, of the most similar reference."""
    tokens = _characters(False, pairs, settings, workers)
    edits = each_reference(edit_distances, pairs, tokens, workers)
    ours, theirs = np.diff(tokens.candidates[0])[pairs.candidate], np.diff(tokens.references[0])
    value = 1 - edits / np.maximum(np.maximum(ours, theirs), 1)
    return best_columns("EditSimilarity", {None: value}, pairs, named(settings))


_EDITS_MEASURES: dict[str, Callable[..., tuple[Column, ...]]] = {
    "ter": _translation,
    "wer": partial(_rate, "WER", _words),
    "cer": partial(_rate, "CER", partial(_characters, True)),
    "edit_similarity": _similarity,
}
_EDITS_SUMS = frozenset({"wer", "cer", "ter"})


# Faithfulness of sentences to contexts (DeterministicFaithfulness of continuous-eval 0.3.14).

Score = Callable[[Pairs, Settings, Workers], Array]
"""From sentences, each with its contexts as its one reference, to float64 [m]."""

_RULES = DIALECTS["continuous-eval"].rules
_NO_CONTEXT, _NO_SENTENCE, _BARE = (
    "there are no contexts",
    "there is no sentence in the text",
    "there is no sentence in the contexts",
)


def _by_rouge(pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Return the precision of ROUGE-L; NaN if the contexts have no sentence."""
    return sequence_scores(pairs, workers)[1]


def _by_words(pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """Share of content words that the contexts have."""
    both, ours, _ = shared_content(pairs, settings, workers)
    return both / np.maximum(ours, 1)


def _by_characters(pairs: Pairs, settings: Settings, workers: Workers) -> Array:
    """BLEU of characters, always with NLTK's four orders and no smoothing."""
    own = msgspec.structs.replace(
        settings, rules=_RULES, bleu_weights=(0.25,) * 4, smoothing="none", lowercase=False
    )
    return bleu(sentence_counts(pairs, own, workers), own, sentence=True)


def _sentences(pairs: Pairs) -> tuple[pl.Series, Array]:
    """Sentences of the texts that have contexts, offsets of those of every text, int64 [n + 1]."""

    def make() -> tuple[pl.Series, Array]:
        given = pairs.made["contexts"].is_not_null()
        texts = pl.select(pl.when(given).then(pairs.candidates).otherwise(pl.lit(""))).to_series()
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


def _faithfulness(
    metric: str, score: Score, share: bool, pairs: Pairs, settings: Settings, workers: Workers
) -> tuple[Column, ...]:
    """Compute the share of each text's sentences above the threshold, or the mean of all."""
    n = len(pairs)
    value, status = np.full(n, np.nan), np.ones(n, np.int8)
    reasons = {_NO_CONTEXT}
    if "contexts" in pairs.made:
        given = pairs.made["contexts"].is_not_null().to_numpy()
        status = (~given).astype(np.int8)
        start = _sentences(pairs)[1]
        each = np.empty(int(start[-1]))
        for first, last, block in _blocks(pairs):
            each[first:last] = score(block, settings, workers)
        bare = np.isnan(each)
        if share:
            each = np.where(bare, np.nan, each >= settings.faithfulness_threshold)
        many = np.diff(start)
        some = np.flatnonzero(many)
        total = np.add.reduceat(each, start[some]) if some.size else each
        value[some] = total / many[some]
        cases = ((_NO_CONTEXT, ~given), (_NO_SENTENCE, given & (many == 0)), (_BARE, bare))
        reasons = {reason for reason, there in cases if there.any()}
    unusual = {}
    if share and settings.faithfulness_threshold != DECLARED["faithfulness_threshold"].default:
        unusual["faithfulness_threshold"] = settings.faithfulness_threshold
    if score is _by_words and settings.stop_words is not None:
        unusual["stop_words"] = len(settings.stop_words)
    return (
        Column(
            metric=metric,
            parameters=(parameters(**unusual) if unusual else None,),
            values=value[:, None, None],
            reason=", or ".join(sorted(reasons)) or None,
            status=(("scored", "no_context"), status),
        ),
    )


_FAITHFULNESS_MEASURES = {
    "rouge_faithfulness": partial(_faithfulness, "RougeFaithfulness", _by_rouge, True),
    "token_faithfulness": partial(_faithfulness, "TokenOverlapFaithfulness", _by_words, True),
    "bleu_faithfulness": partial(_faithfulness, "BLEUFaithfulness", _by_characters, False),
}


MEASURES = {**_BLEU_MEASURES, **_CHRF_MEASURES, **_EDITS_MEASURES, **_FAITHFULNESS_MEASURES}


SUMS = _BLEU_SUMS | _CHRF_SUMS | _EDITS_SUMS
