"""compat.rouge_score against rouge-score itself, on random odd texts."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from lazy_imports import LazyModule
from refusals import refused

from evalengine.compat.rouge_score import rouge_scorer as ours
from evalengine.compat.rouge_score import scoring

scorers, scores = LazyModule("rouge_score.rouge_scorer"), LazyModule("rouge_score.scoring")

TYPES = ["rouge1", "rouge2", "rouge3", "rouge5", "rouge9", "rougeL", "rougeLsum"]
WORDS = [
    "the",
    "a",
    "cat",
    "cats",
    "Cat",
    "sat",
    "SAT",
    "on",
    "mat",
    "İzmir",
    "İ",
    "i",
    "I",
    "ß",
    "naïve",
    "don't",
    "3.5",
    "U.S.",
    "running",
    "runs",
    "ran",
    "relational",
    "generalizations",
    "Ⅻ",
    "K",
    "x",
    ".",
    ",",
    "\n",
    "\n\n",
    "\t",
]
N = int(os.environ.get("EVALENGINE_EXAMPLES", "12")) * 20


class Spaces:
    """A custom tokenizer."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


def texts(rng: random.Random, n: int) -> list[str]:
    odd = ["", "\n", " ", ".", "…", "é"]
    return [
        rng.choice(odd)
        if rng.random() < 0.1
        else rng.choice([" ", "\n", " "]).join(rng.choices(WORDS, k=rng.randint(1, 25)))
        for _ in range(n)
    ]


@pytest.mark.parametrize("options", [{}, {"use_stemmer": True}, {"tokenizer": Spaces()}])
def test_random_texts(options: dict[str, Any]) -> None:
    rng = random.Random(7)
    mine, theirs = ours.RougeScorer(TYPES, **options), scorers.RougeScorer(TYPES, **options)
    targets, predictions = texts(rng, N), texts(rng, N)
    expected = [theirs.score(*pair) for pair in zip(targets, predictions, strict=True)]
    assert [mine.score(*pair) for pair in zip(targets, predictions, strict=True)] == expected
    assert mine.score_all(targets, predictions) == expected
    for i in range(0, N, 3):
        several = targets[i : i + 3]
        assert mine.score_multi(several, predictions[i]) == theirs.score_multi(
            several, predictions[i]
        )
    lists = [targets[i : i + 2] for i in range(0, N, 2)]
    assert mine.score_all(lists, predictions[: len(lists)]) == [
        theirs.score_multi(*pair) for pair in zip(lists, predictions, strict=False)
    ]


def test_aggregator_resamples_like_rouge_score() -> None:
    rng = random.Random(8)
    assert ours.RougeScorer([]).score("a cat", "a dog") == {}
    scorer = ours.RougeScorer(["rouge1", "rougeL"])
    result = scorer.score_all(texts(rng, 80), texts(rng, 80))
    aggregates = []
    for kind in (scores.BootstrapAggregator, scoring.BootstrapAggregator):
        aggregator = kind(confidence_interval=0.9, n_samples=60)
        for one in result:
            aggregator.add_scores(one)
        np.random.seed(5)  # noqa: NPY002  # both use the global generator
        aggregates.append(aggregator.aggregate())
    theirs, mine = aggregates
    assert {k: [tuple(end) for end in v] for k, v in mine.items()} == {
        k: [tuple(end) for end in v] for k, v in theirs.items()
    }


def test_sentences_of_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both use the same substitute for NLTK's splitter, whose data are not installed."""
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk, "sent_tokenize", lambda text: [s for s in text.split(". ") if s])
    rng = random.Random(9)
    for options in ({}, {"tokenizer": Spaces()}):
        args = (["rougeLsum", "rouge1"], False, True)
        mine, theirs = ours.RougeScorer(*args, **options), scorers.RougeScorer(*args, **options)
        for target, text in zip(texts(rng, 60), texts(rng, 60), strict=True):
            joined = target.replace(" cat", ". "), text.replace(" the", ". ")
            assert mine.score(*joined) == theirs.score(*joined)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (
            lambda s: ours.RougeScorer(["rouge0"]),
            {"code": "option_value", "option": "rouge_types", "value": "rouge0"},
        ),
        (lambda s: s.score("a", None), {"code": "not_text", "side": "text"}),
        (lambda s: s.score(3, "a"), {"code": "not_text", "side": "reference"}),
        (lambda s: s.score("a", "\ud800"), {"code": "not_text", "side": "text"}),
        (lambda s: s.score_multi([], "a"), {"code": "references_missing", "row": 0}),
        (lambda s: s.score_multi("ab", "a"), {"code": "wrong_type", "side": "targets"}),
        (lambda s: s.score_all(["a"], ["a", "b"]), {"code": "lengths_differ", "lengths": [1, 2]}),
        (
            lambda s: scoring.BootstrapAggregator(n_samples=0),
            {"code": "option_value", "option": "n_samples", "value": 0},
        ),
    ],
)
def test_refused(call: Any, refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        call(ours.RougeScorer(["rouge1"]))
