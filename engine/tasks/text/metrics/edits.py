"""Character n-grams, edits, and overlap of tokens."""

from __future__ import annotations

import math
from typing import Any

from ....metrics.averages import edit_rate, pooled, translation_rate
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from .chrf_formula import chrf
from .parts import metric

_CASE = ("lowercase",)
_RATE = r"\frac{\sum_d e_d}{\sum_d r_d}"
_SQUAD = "SQuAD 2.0; Rajpurkar et al. 2016"
_OVERLAP = f"{_SQUAD}; continuous-eval 0.3.14"
_CONTENT = (
    "; in the dialect continuous-eval different content words that both have, of all content words"
)


def _chrf(total: Array, settings: Any) -> Array:
    return chrf(total.reshape(len(total), total.shape[1] // 3, 3), percent=settings.rules.percent)


def _rate(total: Array, settings: Any) -> Array:
    return edit_rate(total)


def _translation(total: Array, settings: Any) -> Array:
    return translation_rate(total, percent=settings.rules.percent)


def _characters(name: str, need: str, more: str, *aliases: str) -> Metric:
    return metric(
        name,
        need,
        definition=f"F2 of the mean precision and mean recall of character n-grams of orders 1 to"
        f" 6{more}, white space left out; from counts of all datums together",
        formula=r"\frac{5 P R}{4 P + R}, \quad P = \frac{1}{O} \sum_o \frac{M_o}{c_o}, \quad"
        r" R = \frac{1}{O} \sum_o \frac{M_o}{r_o}",
        source="sacrebleu 2.6; Popović 2015, 2017",
        params=_CASE,
        aliases=aliases,
        compute=pooled(need, name, _chrf),
    )


def _edits(name: str, need: str, unit: str, alias: str) -> Metric:
    return metric(
        name,
        need,
        definition=f"fewest insertions, deletions and replacements of {unit} / {unit} of the"
        " reference; sums of all datums",
        formula=_RATE,
        source="Levenshtein 1966; jiwer",
        params=_CASE,
        aliases=(alias, alias.replace("_", " ")),
        range=(0.0, math.inf),
        better="lower",
        compute=pooled(need, name, _rate),
    )


METRICS = (
    _characters("chrF", "chrf", "", "chrf", "chrF2"),
    _characters("chrF++", "chrf++", " and of words of orders 1 and 2", "chrf++", "chrF2++"),
    metric(
        "TER",
        "ter",
        definition="insertions, deletions, replacements and shifts of words, fewest to any"
        " reference / mean words of the references, without case; sums of all datums",
        formula=_RATE,
        source="sacrebleu 2.6; Snover et al. 2006",
        params=("ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive"),
        aliases=("ter",),
        range=(0.0, math.inf),
        better="lower",
        compute=pooled("ter", "TER", _translation),
    ),
    _edits("WER", "wer", "words", "word_error_rate"),
    _edits("CER", "cer", "characters", "character_error_rate"),
    metric(
        "EditSimilarity",
        "edit_similarity",
        definition="1 - Levenshtein distance of characters / length of the longer text; mean over"
        " datums",
        formula=r"\left(1 - \frac{e_d}{\max(|c|, |r|)}\right)",
        source="rapidfuzz Levenshtein.normalized_similarity",
        params=_CASE,
        aliases=("edit_similarity", "levenshtein_similarity"),
    ),
    metric(
        "ExactMatch",
        "exact_match",
        definition="1 where the text is a reference, without case, punctuation and articles; mean"
        " over datums",
        formula=r"[c = r]",
        source=_SQUAD,
        aliases=("exact_match", "EM"),
        trials="scored",
    ),
    metric(
        "TokenPrecision",
        "token_precision",
        definition="tokens that both texts have / tokens of the candidate, without case,"
        f" punctuation and articles{_CONTENT}; mean over datums",
        formula=r"\frac{M}{|c|}",
        source=_OVERLAP,
        params=("stop_words",),
        aliases=("token_precision",),
    ),
    metric(
        "TokenRecall",
        "token_recall",
        definition="tokens that both texts have / tokens of the reference, without case,"
        f" punctuation and articles{_CONTENT}; mean over datums",
        formula=r"\frac{M}{|r|}",
        source=_OVERLAP,
        params=("stop_words",),
        aliases=("token_recall",),
    ),
    metric(
        "TokenF1",
        "token_f1",
        definition="2 * tokens that both texts have / tokens of both, without case, punctuation and"
        f" articles{_CONTENT}; mean over datums",
        formula=r"\frac{2 M}{|c| + |r|}",
        source=_OVERLAP,
        params=("stop_words",),
        aliases=("token_f1", "squad_f1"),
    ),
)
