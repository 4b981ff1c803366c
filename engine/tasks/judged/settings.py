"""Settings: the options of a judged run with every default filled in."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ... import metrics
from ...dialects import Dialect
from ...schemas.errors import OptionError, unknown
from ...schemas.options import Options
from .dialects import JudgedDefaults, JudgedRules, Words

MODES = ("f1", "precision", "recall")
LEVELS = ("low", "high")
_TOLD = ("mode", "beta")
"""Options that are reported even if not given."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a judged run.

    Attributes:
        rules: the dialect's rules.
        k: empty; judged metrics have no cut-offs.
        mode: mode of FactualCorrectness, one of ``MODES``.
        beta: weight of recall in it, above 0.
        atomicity: atomicity of its claims, one of ``LEVELS``; reported with the number, read by the
            judge.
        coverage: coverage of its claims, like ``atomicity``.
        strict_mode: values below the best count as the worst.
        penalize_ambiguous: undecided verdicts count against Faithfulness.
        better: metric -> ``higher`` or ``lower``, including reversals of the dialect.
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
        values: dict[str, Any] = {"better": self.better[metric]}
        read = metrics.get("judged", metric).params
        # Report claim options only if given: they matter to the judge, and have no effect if off.
        given = (name for name in self.given if name not in _TOLD and getattr(self, name))
        return values | {name: getattr(self, name) for name in (*_TOLD, *given) if name in read}

    def words_of(self, need: str, part: str) -> Words:
        """Return the values of the verdicts of one part of a metric."""
        by_need = self.rules.words
        words = by_need[f"{need}.{part}"] if f"{need}.{part}" in by_need else by_need[need]
        if self.penalize_ambiguous and words.ambiguous:
            against = dict.fromkeys(words.ambiguous, 0.0)
            words = msgspec.structs.replace(words, counts={**words.counts, **against})
        return words


def _one_of(name: str, given: str | None, default: str, choices: tuple[str, ...]) -> str:
    value = default if given is None else given
    if value not in choices:
        raise unknown(name, value, choices, before=f"{name}: ")
    return value


OPTIONS = ("mode", "beta", "atomicity", "coverage", "strict_mode", "penalize_ambiguous")
"""Options that judged metrics read."""


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a value out of range.
    """
    defaults: JudgedDefaults = dialect.defaults
    beta = defaults.beta if options.beta is None else float(options.beta)
    if not (math.isfinite(beta) and beta > 0):
        raise OptionError(
            f"beta={options.beta}: write a finite number above 0.",
            code="option_value",
            option="beta",
            value=options.beta,
        )
    return Settings(
        rules=dialect.rules,
        mode=_one_of("mode", options.mode, defaults.mode, MODES),
        beta=beta,
        atomicity=_one_of("atomicity", options.atomicity, defaults.atomicity, LEVELS),
        coverage=_one_of("coverage", options.coverage, defaults.coverage, LEVELS),
        strict_mode=bool(options.strict_mode),
        penalize_ambiguous=bool(options.penalize_ambiguous),
        better={
            name: dialect.better.get(name, metric.better)
            for name, metric in metrics.all_metrics("judged").items()
        },
        given=tuple(name for name in OPTIONS if getattr(options, name) is not None),
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """Return every metric; the table decides for which it has verdicts."""
    return tuple(metric.name for metric in metrics.all_metrics("judged").values())
