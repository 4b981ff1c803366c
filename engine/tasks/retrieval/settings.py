"""Settings: the options of a retrieval run with every default filled in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from ...dialects import Dialect
from ...schemas.errors import OptionError, invalid, unknown
from ...schemas.options import Options
from .dialects import RetrievalDefaults, RetrievalRules

MATCHES = {
    "chunk_from_original": None,
    "exact_chunk": None,
    "exact_sentence": None,
    "rouge_chunk": 0.7,
    "rouge_sentence": 0.8,
    "fuzzy": 0.9,
    "levenshtein": 0.5,
}
"""Match rule -> threshold that it is compared with, None for those without."""
SENTENCES = ("exact_sentence", "rouge_sentence")
TIES = ("trec", "input", "average")
DISCOUNTS = ("log2(rank+1)", "log2(rank)")
IDEALS = ("judged", "retrieved")
GAINS = ("linear", "exponential")
USUAL = {"gains": GAINS[0], "discount": DISCOUNTS[0], "ideal": IDEALS[0], "persistence": 0.9}
"""Option -> the value that rows do not name in ``parameters``: the formula as it is published."""
_KINDS = {
    "match": "match rule",
    "ties": "order of ties",
    "gains": "way to gain",
    "discount": "discount",
    "ideal": "ideal",
}
"""Option -> name of its value in messages."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a retrieval run.

    Attributes:
        rules: the dialect's rules.
        k: ascending cut-offs, 0 or more; in settings of a single metric, a last None means the
            whole list.
        match: matching rule for texts, or None if not given.
        default_match: default matching rule for texts.
        match_threshold: threshold of similarity, or None for the rule's default.
        ties: order of equal scores: ``trec``, ``input`` or ``average``; ``best`` or ``worst``,
            relevant documents first or last, for bounds.
        complete: means cover all judged queries.
        judged_only: unjudged documents are removed from every list.
        relevance_levels: lowest relevance that counts, ascending; None for anything above 0.
        gains: ``linear``, ``exponential`` or relevance -> gain.
        discount: of nDCG, one of ``DISCOUNTS``.
        ideal: of nDCG, ``judged`` or ``retrieved``.
        persistence: of RBP, in (0, 1).
        ignore_identical_ids: a query's id is removed from its retrieved documents.
        defaults: default metrics of the dialect, for ids and for texts.
        highest: the highest relevance of the whole input, if only a part of it is measured; else
            None.
    """

    rules: RetrievalRules
    k: tuple[int | None, ...]
    match: str | None
    default_match: str
    match_threshold: float | None
    ties: str
    complete: bool
    judged_only: bool
    relevance_levels: tuple[float | None, ...]
    gains: str | dict[float, float]
    discount: str
    ideal: str
    persistence: float
    ignore_identical_ids: bool
    defaults: RetrievalDefaults
    highest: float | None = None


def _either(given: Any, default: Any) -> Any:
    return default if given is None else given


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise unknown(_KINDS[name], value, choices, before=f"{name}: ")
    return value


def _match(name: str | None) -> str | None:
    """A match rule by its name or continuous-eval's (``ROUGE_CHUNK_MATCH``)."""
    if name is None:
        return None
    return _one_of("match", name.lower().removesuffix("_match"), tuple(MATCHES))


def _gains(given: Any) -> str | dict[float, float]:
    if given is None:
        return "linear"
    if isinstance(given, Mapping):
        try:
            levels = {float(level): float(gain) for level, gain in given.items()}
        except (TypeError, ValueError):
            levels = {}
        if levels and all(map(math.isfinite, (*levels, *levels.values()))):
            return levels
        raise OptionError(f"gains={given!r}: write a mapping of relevance to gain, all numbers.")
    return _one_of("gains", str(given), GAINS)


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range.
    """
    defaults: RetrievalDefaults = dialect.defaults
    cuts = tuple(sorted(set(_either(options.k, defaults.k))))
    if not cuts or cuts[0] < 0:
        raise invalid("k", list(cuts), "a cut-off is 0 or more.")
    levels: tuple[float | None, ...] = (None,)
    if options.relevance_levels is not None:
        given = sorted(set(options.relevance_levels))
        if not given or not all(math.isfinite(level) and level > 0 for level in given):
            raise OptionError(
                f"relevance_levels={given}: write finite numbers above 0; a relevance of"
                " 0 is not relevant."
            )
        levels = tuple(given)
    match = _match(options.match)
    threshold = options.match_threshold
    if threshold is not None and not 0 <= threshold <= 1:
        raise OptionError(f"match_threshold={threshold}: write a number from 0 to 1.")
    persistence = float(_either(options.persistence, defaults.persistence))
    if not 0 < persistence < 1:
        raise OptionError(f"persistence={persistence}: write a number between 0 and 1.")
    return Settings(
        rules=dialect.rules,
        k=cuts,
        match=match,
        default_match=defaults.match,
        match_threshold=threshold,
        ties=_one_of("ties", _either(options.ties, "trec"), TIES),
        complete=bool(_either(options.complete, dialect.rules.complete)),
        judged_only=bool(options.judged_only),
        relevance_levels=levels,
        gains=_gains(options.gains),
        discount=_one_of("discount", _either(options.discount, DISCOUNTS[0]), DISCOUNTS),
        ideal=_one_of("ideal", _either(options.ideal, IDEALS[0]), IDEALS),
        persistence=persistence,
        ignore_identical_ids=bool(options.ignore_identical_ids),
        defaults=defaults,
    )


def unusual(settings: Settings, *names: str) -> dict[str, Any]:
    """Return the options that differ from ``USUAL``, for ``parameters``.

    A dialect's default counts as different, so that equal rows are computed equally in all
    dialects.
    """
    values = {name: getattr(settings, name) for name in names}
    return {
        name: {f"{level:g}": gain for level, gain in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in values.items()
        if value != USUAL[name]
    }


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """Return the dialect's default sets for ids and for texts; the tables decide between them."""
    defaults: RetrievalDefaults = dialect.defaults
    return tuple(dict.fromkeys((*defaults.metrics, *defaults.text_metrics)))
