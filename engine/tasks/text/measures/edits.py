"""Edits between candidate and reference: of words, of characters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....kernels.text import edit_distances, translation_edits
from ....kernels.words import code_points, words_at_spaces
from ....metrics.averages import translation_rate
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers, packed
from ..pairs import Pairs, Tokens, best_reference, localised, of_code_points
from ..settings import TER_OPTIONS, Settings
from ..tercom import prepared, prepared_references
from ..tokenizers import SPACES
from .chrf import cased, named
from .per_reference import best_columns, each_reference, unusual

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
    told = unusual(settings, dict.fromkeys(TER_OPTIONS, False))
    return (
        Column(metric="TER", parameters=told, values=value[:, None, None]),
        Column(metric="TER", parameters=told, k=(0, 1), values=counts[:, None, :]),
    )


def _similarity(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """1 - distance / length of the longer text, of the most similar reference."""
    tokens = _characters(False, pairs, settings, workers)
    edits = each_reference(edit_distances, pairs, tokens, workers)
    ours, theirs = np.diff(tokens.candidates[0])[pairs.candidate], np.diff(tokens.references[0])
    value = 1 - edits / np.maximum(np.maximum(ours, theirs), 1)
    return best_columns("EditSimilarity", {None: value}, pairs, named(settings))


MEASURES: dict[str, Callable[..., tuple[Column, ...]]] = {
    "ter": _translation,
    "wer": partial(_rate, "WER", _words),
    "cer": partial(_rate, "CER", partial(_characters, True)),
    "edit_similarity": _similarity,
}
SUMS = frozenset({"wer", "cer", "ter"})
