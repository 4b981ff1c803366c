"""Metrics of texts: ROUGE, BLEU, edits, similarity, readability and faithfulness."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....metrics.averages import edit_rate, mean_of, pooled, translation_rate
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....schemas.options import DECLARED

# Shared parts of text metrics.

MEAN = r"\frac{1}{n} \sum_d "
"""Over datums, in TeX."""


def metric(
    name: str, *needs: str, definition: str, formula: str, source: str, **rest: Any
) -> Metric:
    """Define a metric, by default the mean over datums of its single need."""
    if "compute" not in rest:
        formula, rest["compute"] = MEAN + formula, mean_of(needs[0])
    return Metric(
        name=name,
        task="text",
        frame="metrics",
        needs=needs,
        definition=definition,
        formula=formula,
        source=source,
        **rest,
    )


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
        score: Array = 100 * value / orders if percent else value / orders
        return score
    both = (ours > 0) & (theirs > 0)
    precision, recall = np.zeros_like(value), np.zeros_like(value)
    for order in range(orders):
        some = both[:, order]
        precision[some] += match[some, order] / ours[some, order]
        recall[some] += match[some, order] / theirs[some, order]
    many = np.maximum(both.sum(axis=1), 1).astype(kind)
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


def orders_of(weights: tuple[float, ...], smoothing: str) -> int:
    """Return the number of n-gram orders to count."""
    return max(len(weights), _FIFTH if smoothing in ("method5", "method7") else 1)


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


def _none(p: Array, match: Array, total: Array, grams: Array) -> Array:
    return np.where(match[:, : p.shape[1]] > 0, p, sys.float_info.min)


def _method1(p: Array, match: Array, total: Array, grams: Array) -> Array:
    return np.where(p > 0, p, _BLEU_EPSILON / total[:, : p.shape[1]])


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


def _method7(p: Array, match: Array, total: Array, grams: Array) -> Array:
    return _method5(_method4(p, match, total, grams), match, total, grams)


_SMOOTHED: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "none": _none,
    "method1": _method1,
    "method2": _method2,
    "method3": _method3,
    "method4": _method4,
    "method5": _method5,
    "method6": _method6,
    "method7": _method7,
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
    whole = weight.sum(axis=1)
    mean = np.divide((logs * weight).sum(axis=1), whole, out=np.zeros(len(p)), where=whole > 0)
    return np.where(matched & (whole > 0), np.exp(mean), 0.0)


_FORMULAS: dict[str, Callable[..., Array]] = {"nltk": _nltk, "sacrebleu": _sacrebleu}


# ROUGE.

_SOURCE = "rouge-score 0.1.2; Lin 2004"
_F = r"\frac{2 P R}{P + R}, \quad P = \frac{M}{|c|}, \quad R = \frac{M}{|r|}"
_PARAMS = ("use_stemmer", "rouge_tokenizer")


def _grams(order: int) -> Metric:
    return metric(
        f"ROUGE{order}",
        f"rouge{order}",
        definition=f"F of {order}-grams that candidate and reference share, each as often as in"
        " both; precision and recall as statistics; mean over datums",
        formula=_F,
        source=_SOURCE,
        params=_PARAMS,
        aliases=(f"rouge{order}", f"rouge-{order}", f"ROUGE-{order}"),
    )


_ROUGE_METRICS = (
    _grams(1),
    _grams(2),
    _grams(3),
    metric(
        "ROUGEL",
        "rougel",
        definition="F of the longest common subsequence of tokens; precision and recall as"
        " statistics; in the dialect continuous-eval of the different words in longest common"
        " subsequences of any two sentences, F, precision and recall each of its best reference;"
        " mean over datums",
        formula=_F,
        source=f"{_SOURCE}; in continuous-eval rouge 1.0.1",
        params=_PARAMS,
        aliases=("rougeL", "rouge-l", "rouge-L", "ROUGE-L"),
    ),
    metric(
        "ROUGELsum",
        "rougelsum",
        definition="F of the tokens of the reference in a longest common subsequence of one of its"
        " lines and a line of the candidate; precision and recall as statistics; mean over datums",
        formula=_F,
        source=_SOURCE,
        params=_PARAMS,
        aliases=("rougeLsum", "rouge-lsum", "ROUGE-Lsum"),
    ),
)


TYPES = {metric.aliases[0]: metric.name for metric in _ROUGE_METRICS}
"""Type of ROUGE as rouge-score names it -> the metric."""


def _chosen(options: Any) -> tuple[str, ...]:
    """The types that the option ``rouge_types`` names."""
    types = options.rouge_types or DECLARED["rouge_types"].default
    # Unknown types are refused when options are resolved to settings.
    return tuple(TYPES.get(name, name) for name in types)


_ROUGE_GROUPS = {"ROUGE": _chosen}
"""Group name -> function that returns its metrics for given options."""


# BLEU, by sentence and by corpus.

_FORMULA = (
    r"\text{BP} \cdot \exp\left(\sum_o w_o \ln \frac{M_o}{c_o}\right), \quad"
    r" \text{BP} = \min\left(1, e^{1 - |r| / |c|}\right)"
)
_BLEU_PARAMS = ("bleu_weights", "smoothing", "tokenizer", "lowercase")


def _of_sums(total: Array, settings: Any) -> Array:
    return bleu(total, settings, sentence=False)


_BLEU_METRICS = (
    metric(
        "BLEU",
        "bleu",
        definition="brevity penalty * geometric mean of the precisions of 1-grams to 4-grams,"
        " clipped by the references, of every text by itself; mean over datums",
        formula=_FORMULA,
        source="nltk 3.10 sentence_bleu; Papineni et al. 2002",
        params=_BLEU_PARAMS,
        aliases=("bleu", "SentenceBLEU", "sentence_bleu"),
    ),
    metric(
        "CorpusBLEU",
        "bleu_counts",
        definition="BLEU of the counts of all datums together",
        formula=_FORMULA,
        source="Papineni et al. 2002; sacrebleu 2.6",
        params=_BLEU_PARAMS,
        aliases=("corpus_bleu", "corpusbleu", "sacrebleu"),
        compute=pooled("bleu_counts", "CorpusBLEU", _of_sums),
    ),
)


# Character n-grams, edits, and overlap of tokens.

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
        f" 6{more}, without white space; from counts of all datums together",
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


_EDITS_METRICS = (
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
        definition="1 if the text is a reference, without case, punctuation and articles; mean"
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


# Semantic similarity.

_SIMILARITY_METRICS = (
    metric(
        "SemanticSimilarity",
        "semantic_similarity",
        definition="cosine of the vectors of text and reference, of the most similar reference;"
        " with a threshold, 1 from it on and else 0; mean over datums",
        formula=r"\max_r \frac{u \cdot v_r}{\lVert u \rVert\, \lVert v_r \rVert}",
        source="ragas 0.4.3; Salton & McGill 1983",
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
)


# Readability.


def _readability(name: str, need: str, **rest: Any) -> Metric:
    return metric(
        name, need, spares=("reference",), range=(-math.inf, math.inf), better="neither", **rest
    )


_READABILITY_METRICS = (
    _readability(
        "FleschReadingEase",
        "flesch_reading_ease",
        definition="206.835 - 1.015 * words / sentences - 84.6 * syllables / words of the text,"
        " from about 0 (hard) to 100 (easy); mean over datums",
        formula=r"\left(206.835 - 1.015\, \frac{\text{words}}{\text{sentences}} - 84.6\,"
        r" \frac{\text{syllables}}{\text{words}}\right)",
        source="Flesch 1948; syllables as NLTK's SyllableTokenizer",
        aliases=("flesch_reading_ease", "flesch"),
    ),
    _readability(
        "FleschKincaidGrade",
        "flesch_kincaid_grade",
        definition="0.39 * words / sentences + 11.8 * syllables / words - 15.59 of the text, years"
        " of school; mean over datums",
        formula=r"\left(0.39\, \frac{\text{words}}{\text{sentences}} + 11.8\,"
        r" \frac{\text{syllables}}{\text{words}} - 15.59\right)",
        source="Kincaid et al. 1975; syllables as NLTK's SyllableTokenizer",
        aliases=("flesch_kincaid_grade", "flesch_kincaid_grade_level", "flesch_kincaid"),
    ),
)


# Metrics of faithfulness to contexts, without a judge.


def _faithfulness(name: str, need: str, definition: str, *params: str, formula: str) -> Metric:
    return metric(
        name,
        need,
        definition=f"{definition}; mean over datums; references are not read",
        formula=formula,
        source="continuous-eval 0.3.14 DeterministicFaithfulness",
        spares=("reference",),
        reads=("contexts",),
        params=params,
        aliases=(f"{need.replace('token', 'token_overlap')}",),
    )


_FAITHFULNESS_METRICS = (
    _faithfulness(
        "RougeFaithfulness",
        "rouge_faithfulness",
        "sentences of the text whose ROUGE-L precision (package rouge) against all contexts is 0.5"
        " or more / sentences",
        "faithfulness_threshold",
        formula=r"\frac{1}{|s|} \sum_s [P_s \ge \theta]",
    ),
    _faithfulness(
        "TokenOverlapFaithfulness",
        "token_faithfulness",
        "sentences of the text of whose content words the contexts have half or more / sentences",
        "faithfulness_threshold",
        "stop_words",
        formula=r"\frac{1}{|s|} \sum_s [P_s \ge \theta]",
    ),
    _faithfulness(
        "BLEUFaithfulness",
        "bleu_faithfulness",
        "mean over the sentences of the text of their BLEU of characters against all contexts",
        formula=r"\frac{1}{|s|} \sum_s \text{BLEU}_s",
    ),
)


def _every(options: Any) -> tuple[str, ...]:
    return tuple(one.name for one in _FAITHFULNESS_METRICS)


_FAITHFULNESS_GROUPS = {"DeterministicFaithfulness": _every}
"""Group name -> function that returns its metrics for given options."""


METRICS = (
    *_ROUGE_METRICS,
    *_BLEU_METRICS,
    *_EDITS_METRICS,
    *_SIMILARITY_METRICS,
    *_READABILITY_METRICS,
    *_FAITHFULNESS_METRICS,
)


GROUPS = {**_ROUGE_GROUPS, **_FAITHFULNESS_GROUPS}
