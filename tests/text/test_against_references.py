"""Random texts of many scripts have the values of rouge-score, nltk and sacrebleu."""

from __future__ import annotations

import collections
import logging
import math
import re
import string
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from lazy_imports import LazyModule
from rapidfuzz.distance import LCSseq, Levenshtein
from sacrebleu.metrics.lib_ter import translation_edit_rate
from text.scoring import score, values

from evalengine.kernels.language import stem_hashes
from evalengine.kernels.text import edit_distances, lcs_lengths, translation_edits
from evalengine.kernels.words import rouge_words

bleu_score = LazyModule("nltk.translate.bleu_score")
porter = LazyModule("nltk.stem.porter")
nltk_tokenize = LazyModule("nltk.tokenize")
rouge_scorer = LazyModule("rouge_score.rouge_scorer")

logging.getLogger("sacrebleu").setLevel(logging.ERROR)

WORDS = (
    "the The cat cats running relational on a mat. $5.50 don't ponies stop-now naïve 中文 é 3-4 .5"
)
_ODD = "、。！（⺀㌀㈀"
_ODD += "abAB .,\n$19-é中かK\u0130\u0301\u1c42²٣\x1f\u3000!'&<>%#@[]{}~`|/()。“”€\U0001f600"
_MARKUP = ("&quot;", "&amp;lt;", "<skipped>", "-\n", "x", " ")
TEXT = st.one_of(
    st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=40).map(" ".join),
    st.text(_ODD, max_size=80),
    st.lists(st.sampled_from(_MARKUP), max_size=8).map("".join),
    st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=30),
)


@st.composite
def cases(draw: Any) -> tuple[list[str], list[list[str]]]:
    """Return candidates with references, some of which are similar."""
    ours = draw(st.lists(TEXT, min_size=1, max_size=5))
    theirs = [
        draw(
            st.lists(
                st.one_of(
                    TEXT, st.sampled_from([text, text + " cat", "x" + text, text.upper(), text[3:]])
                ),
                min_size=1,
                max_size=3,
            )
        )
        for text in ours
    ]
    return ours, theirs


def same(found: list[float | None], wanted: list[float | None], *about: Any) -> None:
    """Compare to 1e-12 of 1 (of 100 for values up to 100)."""
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (a is None) == (b is None), (i, a, b, about)
        if a is not None and b is not None:
            assert math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12), (i, a, b, about)


TYPES = ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum")


@pytest.mark.parametrize("stems", [False, True])
@settings(max_examples=10)
@given(case=cases())
def test_rouge_score(stems: bool, case: tuple[list[str], list[list[str]]]) -> None:
    ours, theirs = case
    card = score(ours, theirs, metrics=["ROUGE"], rouge_types=TYPES, use_stemmer=stems)
    scorer = rouge_scorer.RougeScorer(TYPES, use_stemmer=stems)
    wanted = [scorer.score_multi(r, p) for p, r in zip(ours, theirs, strict=True)]
    for name in TYPES:
        metric = "ROUGE" + name.removeprefix("rouge")
        for statistic, part in ((None, "fmeasure"), ("precision",) * 2, ("recall",) * 2):
            result = values(card, metric, statistic)
            assert result == [getattr(one[name], part) for one in wanted], (name, part, case)


@settings(max_examples=15)
@given(
    case=cases(),
    weights=st.sampled_from([(0.25,) * 4, (1.0,), (0.7, 0.3), (0.2,) * 5]),
    method=st.integers(0, 7),
)
def test_nltk(case: tuple[list[str], list[list[str]]], weights: Any, method: int) -> None:
    if method == 6 and len(weights) < 3:
        return
    ours, theirs = case
    card = score(
        ours,
        theirs,
        dialect="nltk",
        metrics=["BLEU", "CorpusBLEU"],
        tokenizer="words",
        bleu_weights=weights,
        smoothing=f"method{method}",
    )
    smooth = getattr(bleu_score.SmoothingFunction(), f"method{method}")
    tokens = nltk_tokenize.RegexpTokenizer(r"\w+|\$[\d]+|[^\s\.]+").tokenize
    cut = [([tokens(text) for text in r], tokens(p)) for p, r in zip(ours, theirs, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted: list[float | None] = []
        for references, candidate in cut:
            try:
                wanted.append(
                    float(
                        bleu_score.sentence_bleu(
                            references, candidate, weights, smoothing_function=smooth
                        )
                    )
                )
            except AssertionError:  # method6 without a matching trigram
                wanted.append(None)
        same(values(card, "BLEU"), wanted, case)
        if method in (0, 1, 2, 3):
            corpus = bleu_score.corpus_bleu(
                [r for r, _ in cut], [p for _, p in cut], weights, smoothing_function=smooth
            )
            same([card.value("CorpusBLEU")], [float(corpus)], case)


def streams(theirs: list[list[str]]) -> list[list[str | None]]:
    """Return references in the layout that sacrebleu uses for a corpus."""
    most = max(map(len, theirs))
    return [[r[i] if i < len(r) else None for r in theirs] for i in range(most)]


def against(card: Any, metric: str, scorer: Any, case: tuple[list[str], list[list[str]]]) -> None:
    """Compare a metric of sentences and of the corpus with a scorer of sacrebleu."""
    ours, theirs = case
    wanted = [scorer.sentence_score(p, r).score for p, r in zip(ours, theirs, strict=True)]
    same(values(card, metric), wanted, metric, case)
    same([card.value(metric)], [scorer.corpus_score(ours, streams(theirs)).score], metric, case)


@pytest.mark.parametrize("tokenizer", ["13a", "none", "char", "intl", "zh"])
@settings(max_examples=10)
@given(case=cases())
def test_sacrebleu(tokenizer: str, case: tuple[list[str], list[list[str]]]) -> None:
    metrics = ["BLEU", "CorpusBLEU"]
    card = score(*case, dialect="sacrebleu", metrics=metrics, tokenizer=tokenizer)
    ours, theirs = case
    pairs = zip(ours, theirs, strict=True)
    wanted = [sacrebleu.sentence_bleu(p, r, tokenize=tokenizer).score for p, r in pairs]
    same(values(card, "BLEU"), wanted, case)
    corpus = sacrebleu.corpus_bleu(ours, streams(theirs), tokenize=tokenizer).score
    same([card.value("CorpusBLEU")], [corpus], case)


@settings(max_examples=10)
@given(case=cases())
def test_sacrebleu_beyond_bleu(case: tuple[list[str], list[list[str]]]) -> None:
    card = score(*case, dialect="sacrebleu", metrics=["chrF", "chrF++", "TER"])
    against(card, "chrF", sacrebleu.CHRF(), case)
    against(card, "chrF++", sacrebleu.CHRF(word_order=2), case)
    against(card, "TER", sacrebleu.TER(), case)


TER_OPTIONS = ("normalized", "no_punct", "asian_support", "case_sensitive")


@settings(max_examples=12)
@given(case=cases(), chosen=st.sets(st.sampled_from(TER_OPTIONS), min_size=1))
def test_options_of_ter(case: tuple[list[str], list[list[str]]], chosen: set[str]) -> None:
    given = {f"ter_{name}": True for name in chosen}
    card = score(*case, dialect="sacrebleu", metrics=["TER"], **given)
    against(card, "TER", sacrebleu.TER(**dict.fromkeys(chosen, True)), case)


@pytest.mark.parametrize("text", ["x's\u3000", "x's \n", "...5", "&amp;quot;", "x's\ty", "a b"])
@pytest.mark.parametrize("reference", ["x's\u3000", "...5 a", "&amp;quot; b", "x's\ty", 'x " y .5'])
def test_ter_prepares_texts_once_and_references_twice(text: str, reference: str) -> None:
    card = score([text], [[reference]], dialect="sacrebleu", metrics=["TER"], ter_normalized=True)
    wanted = sacrebleu.TER(normalized=True).sentence_score(text, [reference]).score
    same(values(card, "TER"), [wanted], text, reference)


def normalised(text: str) -> str:
    """Normalise a text as SQuAD does."""
    bare = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def token_f1(ours: str, theirs: str) -> float:
    """Compute F1 as in SQuAD 2.0."""
    a, b = normalised(ours).split(), normalised(theirs).split()
    if not a or not b:
        return float(a == b)
    both = sum((collections.Counter(a) & collections.Counter(b)).values())
    return 2 * both / (len(a) + len(b))


def lowest(ours: str, theirs: list[str], cut: Callable[[str], Any]) -> float | None:
    """Return the edits divided by the length of the reference that gives the lowest ratio."""
    return min(
        (Levenshtein.distance(cut(ours), cut(r)) / len(cut(r)) for r in theirs if len(cut(r))),
        default=None,
    )


@settings(max_examples=10)
@given(case=cases())
def test_edits_and_overlap(case: tuple[list[str], list[list[str]]]) -> None:
    ours, theirs = case
    metrics = ["WER", "CER", "EditSimilarity", "ExactMatch", "TokenF1"]
    card = score(ours, theirs, metrics=metrics)
    pairs = list(zip(ours, theirs, strict=True))
    wanted: dict[str, list[float | None]] = {
        "WER": [lowest(p, r, str.split) for p, r in pairs],
        "CER": [lowest(p, r, str.strip) for p, r in pairs],
        "EditSimilarity": [
            max(Levenshtein.normalized_similarity(p, text) for text in r) for p, r in pairs
        ],
        "ExactMatch": [
            max(float(normalised(p) == normalised(text)) for text in r) for p, r in pairs
        ],
        "TokenF1": [max(token_f1(p, text) for text in r) for p, r in pairs],
    }
    for metric, numbers in wanted.items():
        same(values(card, metric), numbers, metric, case)


def laid_out(lists: list[list[int]]) -> tuple[Any, Any]:
    """Return offsets and codes."""
    return np.cumsum([0, *map(len, lists)]), np.array([x for one in lists for x in one], np.int32)


@settings(max_examples=25)
@given(data=st.data(), codes=st.sampled_from([2, 5, 60]))
def test_distances_of_long_lists(data: Any, codes: int) -> None:
    one = st.lists(st.integers(0, codes - 1), max_size=150)
    theirs = data.draw(st.lists(one, min_size=1, max_size=4))
    ours = []
    for reference in theirs:  # unchanged, with a part moved, or different
        cut, by = data.draw(st.integers(0, 150)), data.draw(st.integers(0, 20))
        moved = [*reference[cut : cut + by], *reference[:cut], *reference[cut + by :]]
        ours.append(data.draw(st.one_of(one, st.just(moved), st.just([*moved, 0]))))
    n = len(ours)
    sides, out = (np.arange(n), laid_out(ours), laid_out(theirs)), np.empty(n, np.int64)
    pairs = list(zip(ours, theirs, strict=True))
    edit_distances(0, n, *sides, codes, out)
    assert out.tolist() == [Levenshtein.distance(p, r) for p, r in pairs]
    lcs_lengths(0, n, *sides, codes, out)
    assert out.tolist() == [LCSseq.similarity(p, r) for p, r in pairs]
    translation_edits(0, n, *sides, out)
    words = [([str(x) for x in p], [str(x) for x in r]) for p, r in pairs]
    assert out.tolist() == [translation_edit_rate(p, r)[0] for p, r in words]


def test_distances_over_many_blocks_of_few_codes() -> None:
    """Lengths are near multiples of 64, and every block of 64 contains all codes."""
    rng = np.random.default_rng(11)
    theirs = [rng.integers(0, 3, n).tolist() for n in (65, 127, 128, 129, 191, 640, 1000)]
    ours = [[1 - x if rng.random() < 0.3 and x < 2 else x for x in one[5:]] for one in theirs]
    n, out = len(ours), np.empty(len(ours), np.int64)
    edit_distances(0, n, np.arange(n), laid_out(ours), laid_out(theirs), 3, out)
    assert out.tolist() == [Levenshtein.distance(p, r) for p, r in zip(ours, theirs, strict=True)]


def test_translation_edits_of_long_and_of_unequal_lists() -> None:
    """Bands along the diagonal have slopes far above and below 1; long lists have moved parts."""
    rng = np.random.default_rng(5)
    ours = [rng.integers(0, 9, n).tolist() for n in (1, 2, 3, 7, 400, 400, 60)]
    theirs = [rng.integers(0, 9, n).tolist() for n in (400, 401, 151, 400, 3, 1, 90)]
    long = rng.integers(0, 5000, 1200).tolist()
    ours.append([*long[600:607], *long[:280], *long[283:]])
    theirs.append(long)
    n, out = len(ours), np.empty(len(ours), np.int64)
    translation_edits(0, n, np.arange(n), laid_out(ours), laid_out(theirs), out)
    words = [([str(x) for x in p], [str(x) for x in r]) for p, r in zip(ours, theirs, strict=True)]
    assert out.tolist() == [translation_edit_rate(p, r)[0] for p, r in words]


ENDINGS = re.findall(
    r"\w+",
    "s es ies ied eed ed ing ational tional enci anci izer bli alli entli eli ousli ization ation"
    " ator alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical"
    " ful ness al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize e ll"
    " y at bl iz",
)
IRREGULAR = re.findall(
    r"\w+",
    "skies dying lying tying news innings inning outings outing cannings canning howe proceed"
    " exceed succeed",
)
STEM = st.builds(
    lambda head, tail: head + "".join(tail),
    st.text("abcdeilnosty9", max_size=6),
    st.lists(st.sampled_from(ENDINGS), max_size=3),
)


def test_stems() -> None:
    stemmer = porter.PorterStemmer()

    @settings(max_examples=100)
    @given(st.lists(st.one_of(STEM, st.sampled_from(IRREGULAR)), min_size=1, max_size=30))
    def check(words: list[str]) -> None:
        words = [word for word in words if len(word) > 3]
        text = np.frombuffer(" ".join(words).encode(), np.uint8)
        found = rouge_words(text, np.array([0, text.size]))
        stems = " ".join(map(stemmer.stem, words)).encode()
        wanted = rouge_words(np.frombuffer(stems, np.uint8), np.array([0, len(stems)]))
        for ours, theirs in zip(stem_hashes(text, *found[2:4]), wanted[:2], strict=True):
            assert ours.tolist() == theirs.tolist(), words

    check()
