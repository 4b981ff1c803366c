"""Precision and recall of contexts as ragas counts them."""

from __future__ import annotations

import numpy as np

from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists, count
from ..settings import Settings
from .common import ratio

_NOTHING_RETRIEVED = "nothing was retrieved"
_NO_RELEVANT = "no relevant document"


def _defined(part: Array, whole: Array) -> Array:
    """Divide, giving NaN for a zero denominator."""
    return np.where(whole > 0, ratio(part, whole), np.nan)


def _column(name: str, values: Array, reason: str) -> tuple[Column, ...]:
    return (Column(metric=name, values=values[:, None, None], reason=reason),)


def _found(lists: Lists) -> Array:
    return count(lists.gold_start, (lists.found > 0) & (lists.gold > 0))


def _id_precision(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Distinct relevant documents retrieved over distinct documents retrieved."""
    distinct = lists.retrieved if lists.again is None else lists.retrieved - lists.again
    value = _defined(_found(lists), distinct)
    return _column("IDBasedContextPrecision", value, _NOTHING_RETRIEVED)


def _id_recall(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Distinct relevant documents retrieved over all that are relevant."""
    value = _defined(_found(lists), lists.relevant)
    return _column("IDBasedContextRecall", value, _NO_RELEVANT)


def _text_recall(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Relevant texts that some retrieved one matches over all that are relevant."""
    value = _defined(_found(lists), lists.relevant)
    return _column("NonLLMContextRecall", value, _NO_RELEVANT)


def _text_precision(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Mean of the precision at the rank of every retrieved text that matches."""
    relevant = lists.relevance > 0
    upto = np.r_[0, np.cumsum(relevant)]
    query = np.repeat(np.arange(len(lists)), np.diff(lists.start))
    before = upto[1:] - upto[lists.start[query]]
    terms = np.where(relevant, before / lists.rank, 0.0)
    total = np.bincount(query, terms, minlength=len(lists))
    many = count(lists.start, relevant)
    value = ratio(total, many + settings.rules.precision_epsilon)
    value = np.where(lists.relevant > 0, value, np.nan)
    return _column("NonLLMContextPrecision", value, _NO_RELEVANT)


def _tokens(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Estimated tokens of the retrieved texts."""
    assert lists.tokens is not None
    return (Column(metric="TokenCount", values=lists.tokens[:, None, None]),)


MEASURES = {
    "token_count": _tokens,
    "id_context_precision": _id_precision,
    "id_context_recall": _id_recall,
    "text_context_precision": _text_precision,
    "text_context_recall": _text_recall,
}
UNAVERAGED = frozenset({"text_context_precision", "token_count"})
