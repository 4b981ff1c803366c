"""Faithfulness of a text's sentences to its contexts, as in continuous-eval.

DeterministicFaithfulness of continuous-eval 0.3.14 compares every sentence with all contexts, one
line each: by ROUGE-L of the package rouge, by content words, and by BLEU of characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import numpy as np
import polars as pl

from ....schemas.arrays import Array
from ....schemas.tuning import tuning
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers, offsets_of, sentences_of
from ..dialects import DIALECTS
from ..metrics.bleu_formula import bleu
from ..pairs import Pairs
from ..settings import USUAL_SHARE, Settings
from .bleu import sentence_counts
from .distinct_rouge import sequence_scores
from .overlap import shared_content

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
        known = pairs.made["contexts"].is_not_null()
        texts = pl.select(pl.when(known).then(pairs.candidates).otherwise(pl.lit(""))).to_series()
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
        known = pairs.made["contexts"].is_not_null().to_numpy()
        status = (~known).astype(np.int8)
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
        told = ((_NO_CONTEXT, ~known), (_NO_SENTENCE, known & (many == 0)), (_BARE, bare))
        reasons = {reason for reason, there in told if there.any()}
    unusual = {}
    if share and settings.faithfulness_threshold != USUAL_SHARE:
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


MEASURES = {
    "rouge_faithfulness": partial(_faithfulness, "RougeFaithfulness", _by_rouge, True),
    "token_faithfulness": partial(_faithfulness, "TokenOverlapFaithfulness", _by_words, True),
    "bleu_faithfulness": partial(_faithfulness, "BLEUFaithfulness", _by_characters, False),
}
