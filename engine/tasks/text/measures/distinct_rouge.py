"""ROUGE-L of the package rouge 1.0.1, over different words, as continuous-eval calls it."""

from __future__ import annotations

import numpy as np

from ....kernels.text import union_hits
from ....kernels.words import words_between_stops
from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers, packed
from ..pairs import Pairs, localised
from ..settings import Settings

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
