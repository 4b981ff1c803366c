"""compat.sacrebleu against sacrebleu itself, on random odd texts: numbers, text, signatures."""

from __future__ import annotations

import logging
import os
import random
from typing import Any

import pytest
from lazy_imports import LazyModule
from refusals import refused

from evalengine.compat import sacrebleu as ours

sb = LazyModule("sacrebleu")

SEEDS = range(int(os.environ.get("EVALENGINE_EXAMPLES", "4")))
WORDS = [
    *("the", "a", "cat", "Cat", "SAT", "on", "mat,", "(hi)", "3.5", "1,000", "don't", "U.S."),
    *("&quot;x&quot;", "&amp;", "<b>", "-", "x-y", "İ", "ß", "猫", "を。", "！", "…", "–", "é"),
    *(".", ",", "", "\t", "\n"),
]
BLEUS: list[dict[str, Any]] = [
    {"smooth_method": method, "tokenize": tokenize}
    for method in ("exp", "floor", "add-k", "none")
    for tokenize in ("13a", "none", "intl", "zh", "char")
] + [
    {"max_ngram_order": 2, "lowercase": True},
    {"max_ngram_order": 7, "effective_order": True},
    {"smooth_method": "floor", "smooth_value": 0.01, "effective_order": True},
    {"smooth_method": "add-k", "smooth_value": 2, "effective_order": True},
    {"trg_lang": "zh"},
]  # fmt: skip
CHRFS: list[dict[str, Any]] = [
    {"word_order": words, "whitespace": spaces, "eps_smoothing": eps, "lowercase": spaces}
    for words in (0, 2)
    for spaces in (False, True)
    for eps in (False, True)
] + [
    {"beta": 3, "char_order": 3},
    {"beta": 1, "char_order": 8, "word_order": 3},
    {"char_order": 0, "word_order": 2},
]
TERS: list[dict[str, Any]] = [
    {"normalized": a, "no_punct": b, "asian_support": c, "case_sensitive": d}
    for a in (False, True)
    for b in (False, True)
    for c in (False, True)
    for d in (False, True)
]
PRIVATE = ("_verbose", "_mean", "_ci")
METRICS = [(name, one) for name, all_ in (("BLEU", BLEUS), ("CHRF", CHRFS), ("TER", TERS))
           for one in all_]  # fmt: skip


def text(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(["", " ", "\n", "."])
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 20)))


def similar(rng: random.Random, one: str) -> str:
    """Make a text that shares many words with another."""
    words = one.split(" ")
    for _ in range(rng.randint(0, 3)):
        words[rng.randrange(len(words))] = rng.choice(WORDS)
    return " ".join(words)


def same(mine: Any, theirs: Any) -> None:
    assert str(mine) == str(theirs)
    assert mine.format(width=6, score_only=True) == theirs.format(width=6, score_only=True)
    shown = {key: value for key, value in vars(theirs).items() if key not in PRIVATE}
    assert {key: vars(mine)[key] for key in shown} == shown
    for key in ("_mean", "_ci"):  # smoothed scores without any match agree to 1e-20
        assert vars(mine)[key] == pytest.approx(vars(theirs)[key], rel=0, abs=1e-20)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_texts(seed: int, caplog: Any) -> None:
    caplog.set_level(logging.ERROR)
    rng = random.Random(seed)
    n, streams = rng.randint(1, 12), rng.randint(1, 3)
    texts = [text(rng) for _ in range(n)]
    references: list[list[str | None]] = [
        [similar(rng, one) for one in texts] for _ in range(streams)
    ]
    if streams > 1:
        references[1][0] = None
    for name, options in rng.sample(METRICS, 8):
        mine, theirs = getattr(ours, name)(**options), getattr(sb.metrics, name)(**options)
        draws = rng.choice([1, 1, 20])
        result = mine.corpus_score(texts, references, draws)
        try:
            same(result, theirs.corpus_score(texts, references, draws))
        except TypeError:  # sacrebleu has no mean of resampled scores if some are 0
            assert name != "BLEU"
            assert draws > 1
            assert result._mean >= 0
        signatures = mine.get_signature(), theirs.get_signature()
        for short in (False, True):
            assert signatures[0].format(short) == signatures[1].format(short)
        messages = [
            one.corpus_score(texts, references).format(signature=str(signatures[0]), is_json=True)
            for one in (mine, theirs)
        ]
        assert messages[0] == messages[1]
        lines = [[one for one in row if one is not None] for row in zip(*references, strict=True)]
        bulk = mine.sentence_scores(texts, references)
        for one, line, result in zip(texts, lines, bulk, strict=True):
            expected = theirs.sentence_score(one, line)
            same(mine.sentence_score(one, line), expected)
            same(result, expected)


def test_functions() -> None:
    texts, references = ["The cat sat.", "a dog"], [["A cat sat.", "the dog"], ["Cats sat", "dog"]]
    for kind in ("bleu", "chrf", "ter"):
        name = f"corpus_{kind}"
        same(getattr(ours, name)(texts, references), getattr(sb, name)(texts, references))
        name = f"sentence_{kind}"
        same(*(getattr(one, name)(texts[0], references[0]) for one in (ours, sb)))
    words = [one.corpus_chrf(texts, references, char_order=0, word_order=2) for one in (ours, sb)]
    same(*words)
    same(ours.raw_corpus_bleu(texts, references), sb.raw_corpus_bleu(texts, references))
    scorer = ours.BLEU(references=references)
    same(scorer.corpus_score(texts, None), sb.corpus_bleu(texts, references))


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: ours.corpus_bleu(["a"], ["a"]), {"code": "wrong_type", "side": "references"}),
        (
            lambda: ours.corpus_bleu(["a", "b"], [["a"]]),
            {"code": "lengths_differ", "lengths": [2, 1]},
        ),
        (lambda: ours.corpus_bleu([], [[]]), {"code": "lengths_differ", "lengths": [0, 0]}),
        (
            lambda: ours.corpus_bleu(["a"], [["a"], []]),
            {"code": "lengths_differ", "lengths": [1, 0]},
        ),
        (lambda: ours.corpus_bleu(["a"], [[None]]), {"code": "references_missing", "row": 0}),
        (lambda: ours.corpus_bleu(["a"], []), {"code": "references_missing"}),
        (lambda: ours.corpus_bleu([None], [["a"]]), {"code": "not_text", "side": "text"}),
        (lambda: ours.sentence_bleu("a", "a"), {"code": "wrong_type"}),
        (
            lambda: ours.BLEU(tokenize="flores200"),
            {"code": "option_value", "option": "tokenize", "value": "flores200"},
        ),
        (
            lambda: ours.BLEU(trg_lang="ja"),
            {"code": "option_value", "option": "tokenize", "value": "ja-mecab"},
        ),
        (
            lambda: ours.BLEU(smooth_method="x"),
            {"code": "option_value", "option": "smooth_method", "value": "x"},
        ),
        (
            lambda: ours.BLEU(max_ngram_order=0),
            {"code": "option_value", "option": "max_ngram_order", "value": 0},
        ),
        (
            lambda: ours.CHRF(char_order=0),
            {"code": "option_value", "option": "char_order", "value": 0},
        ),
        (lambda: ours.TER().get_signature(), {"code": "not_evaluated"}),
    ],
)
def test_refused(call: Any, refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        call()
