"""Judged dialects and settings: values of verdicts, empty cases, directions, rounding."""

from __future__ import annotations

from typing import Any

import msgspec

from ... import metrics
from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.options import Options

Empties = dict[str, dict[str, float]]


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """Values of the verdicts of one metric, or of one of its parts.

    Attributes:
        counts: word -> its contribution to the numerator, or its rating.
        other: value of any other word; None makes it an error.
        numbers: integers other than 0 count as 1.
        ambiguous: words that count as 0 if ambiguous verdicts are penalised.
    """

    counts: dict[str, float]
    other: float | None = None
    numbers: bool = False
    ambiguous: tuple[str, ...] = ()


class JudgedRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        words: need (``need.part`` if it has several) -> values of its verdicts.
        fold: normalisation of words: ``strip`` (spaces and case), ``lower`` (case), ``leading``
            (the letters at the start, in lower case) or ``exact``.
        fold_of: need -> normalisation, if it differs.
        empty: need -> empty parts (joined by ``+``) -> the value then; otherwise undefined.
        smoothing: need -> addend of denominators.
        decimals_of: need -> digits to which per-datum values are rounded.
        none_is_zero: FactualCorrectness is 0 if it would be 0 / 0.
        strict_ignored: needs that ignore the option ``strict_mode``.
        most_decide: if judgments found different numbers of items, the most frequent number counts;
            otherwise that of the first.
        decimals: digits to which means are rounded, or None.
    """

    words: dict[str, Words]
    fold: str = "strip"
    fold_of: dict[str, str] = {}
    empty: Empties = {}
    smoothing: dict[str, float] = {}
    decimals_of: dict[str, int] = {}
    none_is_zero: bool = False
    strict_ignored: tuple[str, ...] = ()
    most_decide: bool = True
    decimals: int | None = None


_REPORTED = ("mode", "beta")
"""Options that are reported even if not given."""


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a judged run: the dialect's rules, and options with defaults filled in.

    Attributes:
        k: no cut-offs.
        atomicity: reported with the number; the judge reads it, as ``coverage``.
        better: metric -> ``higher`` or ``lower``, if the dialect reverses it.
        given: options that were given.
    """

    rules: JudgedRules
    k: tuple[int | None, ...] = ()
    mode: str = "f1"
    beta: float = 1.0
    atomicity: str = "low"
    coverage: str = "low"
    strict_mode: bool = False
    penalize_ambiguous: bool = False
    better: dict[str, str]
    given: tuple[str, ...] = ()

    def parameters_of(self, metric: str) -> dict[str, Any]:
        """Return the ``parameters`` of a metric's rows."""
        definition = metrics.get("judged", metric)
        # Report claim options only if given: they matter to the judge, and have no effect if off.
        options = (name for name in self.given if name not in _REPORTED and getattr(self, name))
        read = [name for name in (*_REPORTED, *options) if name in definition.params]
        better = self.better.get(metric, definition.better)
        return {"better": better, **{name: getattr(self, name) for name in read}}

    def words_of(self, need: str, part: str) -> Words:
        """Return the values of the verdicts of one part of a metric."""
        vocabulary = self.rules.words
        words = vocabulary[f"{need}.{part}"] if f"{need}.{part}" in vocabulary else vocabulary[need]
        if self.penalize_ambiguous and words.ambiguous:
            against = dict.fromkeys(words.ambiguous, 0.0)
            words = msgspec.structs.replace(words, counts={**words.counts, **against})
        return words

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        names = [name for name in values if name in Settings.__struct_fields__]
        values["given"] = tuple(name for name in names if getattr(options, name) is not None)
        values["better"] = dialect.better


_DEFAULTS = {"beta": 1.0, "mode": "f1", "atomicity": "low", "coverage": "low"}

_YES = {"yes": 1.0, "true": 1.0, "1": 1.0}
_NO = {"no": 0.0, "false": 0.0, "0": 0.0}
_PLAIN = Words(counts={**_YES, **_NO})
_RATING = Words(counts={str(rating): float(rating) for rating in range(1, 6)})
# "contradicted" and "agrees" mean the same everywhere; deepeval's "yes" is our "no".
_CONTRADICTED = {"contradicted": 1.0, "agrees": 0.0}

_STANDARD: dict[str, Words] = {
    "answer_correctness.response": Words(counts={**_YES, **_NO, "tp": 1.0, "fp": 0.0}),
    "answer_correctness.reference": Words(counts={**_YES, **_NO, "fn": 0.0}),
    "answer_relevance": Words(counts={**_YES, **_NO, "idk": 0.0}),
    "bias": _PLAIN,
    "toxicity": _PLAIN,
    "coherence": _RATING,
    "summary_coherence": _RATING,
    "context_precision": _PLAIN,
    "context_recall": _PLAIN,
    "context_relevance": _PLAIN,
    "faithfulness": _PLAIN,
    "hallucination": Words(counts={**_YES, **_NO, **_CONTRADICTED}),
    "llm_context_recall": _PLAIN,
    "factual_correctness.response": Words(counts={**_YES, **_NO, "tp": 1.0, "fp": 0.0}),
    "factual_correctness.reference": Words(counts={**_YES, **_NO, "fn": 0.0}),
}
_NO_CONTEXT = {"contexts": 0.0}
_STANDARD_EMPTY: Empties = {
    "answer_relevance": {"statements": 0.0},
    "bias": {"opinions": 0.0},
    "toxicity": {"opinions": 0.0},
    "context_recall": _NO_CONTEXT,
    "faithfulness": _NO_CONTEXT,
    "llm_context_recall": _NO_CONTEXT,
}

_EXACT = Words(counts={"yes": 1.0, "no": 0.0})
_VALOR_WORDS: dict[str, Words] = {
    **_STANDARD,
    **dict.fromkeys(
        (
            "bias",
            "toxicity",
            "context_precision",
            "context_recall",
            "context_relevance",
            "faithfulness",
        ),
        _EXACT,
    ),
    "answer_correctness.response": Words(counts={"TP": 1.0, "FP": 0.0}),
    "answer_correctness.reference": Words(counts={"FN": 0.0}),
    "answer_relevance": Words(counts={"yes": 1.0, "no": 0.0, "idk": 0.0}),
    "hallucination": Words(counts={"yes": 1.0, "no": 0.0, **_CONTRADICTED}),
}
_BOTH = {"contexts+references": 1.0, "contexts": 0.0, "references": 0.0}
_VALOR_EMPTY: Empties = {
    "answer_correctness": {"references": 0.0},
    "answer_relevance": {"statements": 0.0},
    "bias": {"opinions": 0.0},
    "toxicity": {"opinions": 0.0},
    "context_precision": _BOTH,
    "context_recall": _BOTH,
    "context_relevance": {"contexts": 0.0},
    "faithfulness": {"claims": 1.0, "contexts": 0.0},
    "llm_context_recall": _NO_CONTEXT,
}


_RAGAS_WORDS = {
    need: words if words is _RATING else msgspec.structs.replace(words, numbers=True)
    for need, words in _STANDARD.items()
}

_ONLY_YES = Words(counts={"yes": 1.0}, other=0.0)
_ONLY_NO = Words(counts={"no": 1.0}, other=0.0)
_DECIDED = ("borderline", "idk")
_DEEPEVAL_WORDS: dict[str, Words] = {
    **_STANDARD,
    **dict.fromkeys(
        ("bias", "toxicity", "context_precision", "context_recall", "context_relevance"), _ONLY_YES
    ),
    "answer_relevance": Words(counts={"no": 0.0}, other=1.0),
    "faithfulness": Words(counts={"no": 0.0}, other=1.0, ambiguous=("idk",)),
    "hallucination": Words(counts={"no": 1.0, "contradicted": 1.0}, other=0.0),
}
_DEEPEVAL_EMPTY: Empties = {
    "answer_relevance": {"statements": 1.0},
    "bias": {"opinions": 0.0},
    "toxicity": {"opinions": 0.0},
    "hallucination": {"contexts": 0.0},
    "context_precision": {"contexts": 0.0},
    "context_recall": {"statements": 0.0, "contexts": 0.0},
    "context_relevance": {"contexts": 0.0},
    "faithfulness": {"claims": 1.0},
    "llm_context_recall": _NO_CONTEXT,
}
_PASSING = Words(counts={"yes": 1.0, "borderline": 1.0, "idk": 1.0}, other=0.0)
_TURNED = ("bias", "toxicity", "hallucination")
_TURNED_NAMES = ("Bias", "Toxicity", "Hallucination")


def _dialect(
    name: str, about: str, rules: JudgedRules, export: str = "valor", **more: Any
) -> Dialect:
    return Dialect(name=name, about=about, rules=rules, defaults=_DEFAULTS, export=export, **more)


DIALECTS = of_task(
    "judged",
    _dialect(
        "standard",
        "Valor's metrics and ragas'; without items to judge numbers are undefined, unless the"
        " definition gives a value.",
        JudgedRules(words=_STANDARD, empty=_STANDARD_EMPTY),
    ),
    _dialect(
        "valor",
        "valor-lite 0.39: its words to the letter, its values if there is no item to judge.",
        JudgedRules(
            words=_VALOR_WORDS,
            fold="exact",
            fold_of=dict.fromkeys(("factual_correctness", "llm_context_recall"), "strip"),
            empty=_VALOR_EMPTY,
        ),
    ),
    _dialect(
        "ragas",
        "ragas 0.4.3: whole numbers as verdicts, its small denominators, two digits of"
        " FactualCorrectness.",
        JudgedRules(
            words=_RAGAS_WORDS,
            empty={**_STANDARD_EMPTY, "context_precision": {"contexts": 0.0}},
            smoothing={"context_precision": 1e-10, "factual_correctness": 1e-8},
            decimals_of={"factual_correctness": 2},
            none_is_zero=True,
            most_decide=False,
        ),
        export="ragas",
        own_names={"context_recall": "LLMContextRecall"},
    ),
    _dialect(
        "deepeval-4.1",
        "deepeval 4.1: every word counts; Bias, Toxicity and Hallucination are shares of"
        " violations.",
        JudgedRules(
            words=_DEEPEVAL_WORDS,
            fold_of=dict.fromkeys(("context_recall", "context_relevance"), "lower"),
            empty=_DEEPEVAL_EMPTY,
        ),
    ),
    _dialect(
        "deepeval-4.3",
        "deepeval 4.3: as 4.1, with Bias, Toxicity and Hallucination turned round: 1 is a pass.",
        JudgedRules(
            words={
                **_DEEPEVAL_WORDS,
                "answer_relevance": _PASSING,
                "faithfulness": msgspec.structs.replace(_PASSING, ambiguous=_DECIDED),
                "bias": _ONLY_NO,
                "toxicity": _ONLY_NO,
                "hallucination": Words(counts={"yes": 1.0, "agrees": 1.0}, other=0.0),
            },
            fold_of=dict.fromkeys(_DEEPEVAL_EMPTY.keys() - {"llm_context_recall"}, "leading"),
            empty={
                **_DEEPEVAL_EMPTY,
                "bias": {"opinions": 1.0},
                "toxicity": {"opinions": 1.0},
                "hallucination": {"contexts": 1.0},
            },
            strict_ignored=_TURNED,
        ),
        better=dict.fromkeys(_TURNED_NAMES, "higher"),
    ),
)
"""The dialects of judged metrics."""
