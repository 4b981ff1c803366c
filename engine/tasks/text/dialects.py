"""Text dialects and settings: tokens, smoothing, scales and empty cases of each reference."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.errors import OptionError, invalid
from ...schemas.option_values import Embedding, Encoder, read_stop_words
from ...schemas.options import Options
from ...schemas.wording import option


class TextRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        several: a datum may have several predictions, of which the best counts; otherwise that is
            refused.
        percent: BLEU, chrF and TER are in [0, 100].
        bleu: formula of BLEU: ``nltk`` (a geometric mean over all orders; an order that the
            candidate is too short for has no matches) or ``sacrebleu`` (for a sentence, over the
            orders that it is long enough for).
        floor: BLEU below this value becomes 0: NLTK's result for orders without matches.
        characters: BLEU uses characters, including white space, and the reference that maximises
            it instead of all together.
        normalise: normalisation of ExactMatch: ``squad`` (no case, articles, punctuation) or
            ``strip`` (no case, no surrounding white space).
        sequence: implementation of ROUGE-L: ``rouge-score``, or ``rouge`` (distinct words,
            sentences
            between full stops, best references chosen separately for precision and recall).
        overlap: tokens that overlap: ``squad``, each as often as it occurs in both, or ``content``,
            distinct content words, over all of a side.
        decimals: digits to which means are rounded, or None.
        wordless: reading ease and grade of a text without words; None for undefined.
    """

    several: bool = False
    percent: bool = False
    bleu: str = "nltk"
    floor: float = 1e-9
    characters: bool = False
    normalise: str = "squad"
    sequence: str = "rouge-score"
    overlap: str = "squad"
    decimals: int | None = None
    wordless: tuple[float, float] | None = None


TER_OPTIONS = ("ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive")
MOST_ORDERS = 16
_SUM_TOLERANCE = 1e-9
_NLTK_ONLY = ("method4", "method5", "method6", "method7")
_SHORTEST = {"method6": 3}
"""Smoothing -> how many orders it needs."""


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a text run: the dialect's rules, and options with defaults filled in.

    Attributes:
        k: no cut-offs.
        stop_words: lower case; None for the dialect's.
    """

    rules: TextRules
    k: tuple[int | None, ...] = (None,)
    use_stemmer: bool
    rouge_tokenizer: str
    bleu_weights: tuple[float, ...]
    smoothing: str
    tokenizer: str
    lowercase: bool
    stop_words: tuple[str, ...] | None
    faithfulness_threshold: float
    embedder: Embedding | Encoder | None
    similarity_threshold: float | None
    ter_normalized: bool
    ter_no_punct: bool
    ter_asian_support: bool
    ter_case_sensitive: bool
    nulls: str

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        stems, tokenizer = values["use_stemmer"], values["rouge_tokenizer"]
        if stems and tokenizer != "ascii":
            raise OptionError(
                f"{option('use_stemmer', True)}: Porter's stemmer is for words of a to z; write"
                f" {option('rouge_tokenizer', 'ascii')}, or remove it.",
                code="options_conflict",
                options=["use_stemmer", "rouge_tokenizer"],
            )
        if dialect.rules.sequence != "rouge-score" and (stems or tokenizer != "ascii"):
            text = option("use_stemmer", True) if stems else option("rouge_tokenizer", tokenizer)
            raise OptionError(
                f"{text}: ROUGE-L of the dialect {dialect.name} uses words between white space as"
                " they are; remove it, or use another dialect.",
                code="options_conflict",
                dialect=dialect.name,
            )
        weights, smoothing = values["bleu_weights"], values["smoothing"]
        if len(weights) > MOST_ORDERS:
            raise invalid("bleu_weights", list(weights), f"write at most {MOST_ORDERS} weights.")
        if abs(math.fsum(weights) - 1) > _SUM_TOLERANCE:
            even = option("bleu_weights", [round(1 / len(weights), 6)] * len(weights))
            raise invalid(
                "bleu_weights",
                list(weights),
                f"the weights sum to {math.fsum(weights):g}, and must sum to 1; e.g. write {even}.",
                sum=math.fsum(weights),
            )
        values["smoothing"] = "none" if smoothing == "method0" else smoothing
        if dialect.rules.bleu == "sacrebleu" and smoothing in _NLTK_ONLY:
            raise invalid(
                "smoothing", smoothing, "only NLTK has it; write none, exp, floor, add-k."
            )
        if len(weights) < (needed := _SHORTEST.get(smoothing, 1)):
            raise invalid("smoothing", smoothing, f"it needs {needed} n-gram orders or more.")
        values["stop_words"] = read_stop_words(options.stop_words)


_DEFAULTS = {"tokenizer": "words", "smoothing": "none"}
_METRICS = ("ROUGE", "BLEU")

DIALECTS = of_task(
    "text",
    Dialect(
        name="standard",
        about="rouge-score's ROUGE, sentence BLEU without smoothing (0 if an order has no match),"
        " all from 0 to 1",
        rules=TextRules(),
        metrics=_METRICS,
        defaults=_DEFAULTS,
        export="valor",
    ),
    Dialect(
        name="rouge-score",
        about="rouge-score 0.1.2, best reference by type",
        rules=TextRules(),
        metrics=("ROUGE",),
        defaults=_DEFAULTS,
        export="valor",
    ),
    Dialect(
        name="nltk",
        about="nltk 3.10 sentence_bleu and corpus_bleu of tokens between white space, tiny values"
        " kept",
        rules=TextRules(floor=0.0),
        metrics=("BLEU", "CorpusBLEU"),
        defaults={**_DEFAULTS, "tokenizer": "none"},
        export="valor",
    ),
    Dialect(
        name="sacrebleu",
        about="sacrebleu 2.6: corpus scores from 0 to 100, tokenizer 13a, exponential smoothing",
        rules=TextRules(percent=True, bleu="sacrebleu", floor=0.0),
        metrics=("CorpusBLEU",),
        defaults={"tokenizer": "13a", "smoothing": "exp"},
        export="valor",
    ),
    Dialect(
        name="valor",
        about="Valor's ROUGE and BLEU: the best of several predictions",
        rules=TextRules(several=True),
        metrics=_METRICS,
        defaults=_DEFAULTS,
        undefined=0.0,
        export="valor",
    ),
    Dialect(
        name="continuous-eval",
        about="continuous-eval 0.3.14: ROUGE-L of the package rouge, overlap of content words, BLEU"
        " of characters, best reference; matches but for case and white space around",
        rules=TextRules(
            floor=0.0,
            characters=True,
            normalise="strip",
            sequence="rouge",
            overlap="content",
            wordless=(121.22, 0.0),
        ),
        metrics=("ROUGEL", "TokenPrecision", "TokenRecall", "TokenF1", "BLEU", "ExactMatch"),
        defaults=_DEFAULTS,
        export="valor",
    ),
)
"""The dialects of text."""
