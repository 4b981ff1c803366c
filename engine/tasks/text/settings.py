"""Settings: the options of a text run with every default filled in."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ...dialects import Dialect
from ...ingest.stop_words import read_stop_words
from ...schemas.errors import OptionError, unknown
from ...schemas.option_values import Embedding, Encoder
from ...schemas.options import Options
from ...schemas.wording import option
from .dialects import TextDefaults, TextRules
from .metrics.overlap import TYPES as ROUGE_TYPES
from .metrics.overlap import USUAL, misfit
from .tokenizers import TOKENIZERS

ROUGE_TOKENIZERS = ("ascii", "unicode")
SMOOTHINGS = ("none", *(f"method{i}" for i in range(1, 8)), "exp", "floor", "add-k")
TER_OPTIONS = ("ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive")
USUAL_SHARE = 0.5
"""Precision from which continuous-eval considers a sentence supported by contexts."""
NULLS = ("refuse", "skip", "empty")
MOST_ORDERS = 16
_SUM_TOLERANCE = 1e-9


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a text run.

    Attributes:
        rules: the dialect's rules.
        k: empty, since there are no cut-offs; every task's settings have it.
        rouge_types: metrics of the group ROUGE.
        use_stemmer: ROUGE uses a stemmer.
        rouge_tokenizer: one of ``ROUGE_TOKENIZERS``.
        bleu_weights: weight of each order of BLEU.
        smoothing: of BLEU, one of ``SMOOTHINGS``.
        tokenizer: of BLEU, a name of ``TOKENIZERS``.
        embedder: computes vectors of texts, or None.
        similarity_threshold: cosine from which SemanticSimilarity is 1, and else 0; None for the
            cosine.
        stop_words: words ignored by token overlap, lower case; None for the dialect's default.
        faithfulness_threshold: precision from which a sentence is supported by the contexts.
        lowercase: ignore case in metrics that keep it by default.
        ter_normalized: TER separates punctuation from words.
        ter_no_punct: TER removes punctuation.
        ter_asian_support: both also apply to Chinese and Japanese.
        ter_case_sensitive: TER is case-sensitive.
        nulls: ``refuse``, ``skip`` or ``empty``.
    """

    rules: TextRules
    k: tuple[int | None, ...] = (None,)
    rouge_types: tuple[str, ...]
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


def _either(given: Any, default: Any) -> Any:
    return default if given is None else given


def _one_of(name: str, value: str, choices: tuple[str, ...], kind: str) -> str:
    if value not in choices:
        raise unknown(kind, value, choices, before=f"{name}: ")
    return value


def _weights(given: tuple[float, ...] | None) -> tuple[float, ...]:
    weights = _either(given, (0.25,) * 4)
    written = option("bleu_weights", list(weights))
    if not weights or len(weights) > MOST_ORDERS:
        raise OptionError(
            f"{written}: write one weight for each n-gram order, 1 to {MOST_ORDERS}.",
            code="option_value",
            option="bleu_weights",
            value=list(weights),
        )
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise OptionError(
            f"{written}: weights are finite numbers, 0 or more.",
            code="option_value",
            option="bleu_weights",
            value=list(weights),
        )
    if abs(math.fsum(weights) - 1) > _SUM_TOLERANCE:
        raise OptionError(
            f"{written}: the weights sum to {math.fsum(weights):g}, and must sum to 1; e.g. write"
            f" {option('bleu_weights', [round(1 / len(weights), 6)] * len(weights))}.",
            code="option_value",
            option="bleu_weights",
            value=list(weights),
            sum=math.fsum(weights),
        )
    return tuple(float(weight) for weight in weights)


def _threshold(given: float | None) -> float | None:
    if given is not None and not -1 <= given <= 1:
        raise OptionError(
            f"{option('similarity_threshold', given)}: a cosine is between -1 and 1.",
            code="option_value",
            option="similarity_threshold",
            value=given,
        )
    return given


def _share(given: float | None) -> float:
    share = float(_either(given, USUAL_SHARE))
    if not 0 <= share <= 1:
        raise OptionError(
            f"{option('faithfulness_threshold', given)}: a precision is between 0 and 1.",
            code="option_value",
            option="faithfulness_threshold",
            value=given,
        )
    return share


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range.
    """
    defaults: TextDefaults = dialect.defaults
    types = _either(options.rouge_types, USUAL)
    if not types:
        raise OptionError(
            f"{option('rouge_types', [])}: write one or several of {', '.join(ROUGE_TYPES)}.",
            code="option_value",
            option="rouge_types",
            value=[],
        )
    for name in types:
        _one_of("rouge_types", name, tuple(ROUGE_TYPES), "type of ROUGE")
    stems = bool(_either(options.use_stemmer, False))
    tokenizer = _either(options.rouge_tokenizer, "ascii")
    _one_of("rouge_tokenizer", tokenizer, ROUGE_TOKENIZERS, "tokenizer of ROUGE")
    if stems and tokenizer != "ascii":
        raise OptionError(
            f"{option('use_stemmer', True)}: Porter's stemmer is for words of a to z; write"
            f" {option('rouge_tokenizer', 'ascii')}, or remove it.",
            code="options_conflict",
            options=["use_stemmer", "rouge_tokenizer"],
        )
    if dialect.rules.sequence != "rouge-score" and (stems or tokenizer != "ascii"):
        written = option("use_stemmer", True) if stems else option("rouge_tokenizer", tokenizer)
        raise OptionError(
            f"{written}: ROUGE-L of the dialect {dialect.name} uses words between white space as"
            " they are; remove it, or use another dialect.",
            code="options_conflict",
            dialect=dialect.name,
        )
    smoothing = _either(options.smoothing, defaults.smoothing)
    smoothing = "none" if smoothing == "method0" else smoothing
    _one_of("smoothing", smoothing, SMOOTHINGS, "smoothing of BLEU")
    weights = _weights(options.bleu_weights)
    wrong = misfit(weights, smoothing, dialect.rules.bleu)
    if wrong is not None:
        raise OptionError(
            f"{option('smoothing', smoothing)} {wrong}.",
            code="option_value",
            option="smoothing",
            value=smoothing,
        )
    of_ter: dict[str, Any] = {
        name: bool(_either(getattr(options, name), False)) for name in TER_OPTIONS
    }
    return Settings(
        rules=dialect.rules,
        rouge_types=tuple(ROUGE_TYPES[name] for name in types),
        use_stemmer=stems,
        rouge_tokenizer=tokenizer,
        bleu_weights=weights,
        smoothing=smoothing,
        tokenizer=_one_of(
            "tokenizer",
            _either(options.tokenizer, defaults.tokenizer),
            tuple(TOKENIZERS),
            "tokenizer of BLEU",
        ),
        embedder=options.embedder,
        similarity_threshold=_threshold(options.similarity_threshold),
        lowercase=bool(_either(options.lowercase, False)),
        stop_words=read_stop_words(options.stop_words),
        faithfulness_threshold=_share(options.faithfulness_threshold),
        **of_ter,
        nulls=_one_of("nulls", _either(options.nulls, "refuse"), NULLS, "way with null texts"),
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set."""
    defaults: TextDefaults = dialect.defaults
    return defaults.metrics
