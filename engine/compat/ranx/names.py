"""ranx's names of metrics, and the engine's numbers that they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...schemas.arrays import Array
from ...schemas.errors import OptionError, unknown


class Translation(NamedTuple):
    """Translation of one of ranx's metrics.

    Attributes:
        label: its name in reports.
        cut: the engine's metric up to k.
        whole: the same over whole lists; None to use ``cut`` at the longest list.
        gains: gain function of graded metrics; None for others.
        times_k: whether ranx's number is k times the engine's.
    """

    label: str
    cut: str
    whole: str | None
    gains: str | None = None
    times_k: bool = False


TRANSLATIONS = {
    "hits": Translation("Hits", "P@{k}", "NumRelevantRetrieved", times_k=True),
    "hit_rate": Translation("Hit Rate", "Success@{k}", None),
    "precision": Translation("P", "P@{k}", "SetPrecision"),
    "recall": Translation("Recall", "Recall@{k}", "SetRecall"),
    "f1": Translation("F1", "F1@{k}", "SetF"),
    "r-precision": Translation("R-Prec", "RPrecision", "RPrecision"),
    "mrr": Translation("MRR", "MRR@{k}", "MRR"),
    "map": Translation("MAP", "MAP@{k}", "MAP"),
    "dcg": Translation("DCG", "DCG@{k}", "DCG", "linear"),
    "dcg_burges": Translation("DCG Burges", "DCG@{k}", "DCG", "exponential"),
    "ndcg": Translation("NDCG", "nDCG@{k}", "nDCG", "linear"),
    "ndcg_burges": Translation("NDCG Burges", "nDCG@{k}", "nDCG", "exponential"),
    "bpref": Translation("BPref", "bpref", "bpref"),
    "rbp": Translation("RBP", "RBP", "RBP"),
}
_GAINS: dict[str, Callable[[float], float]] = {
    "linear": float,
    "exponential": lambda relevance: float(np.exp2(relevance)) - 1,
}


class Asked(NamedTuple):
    """One requested metric.

    Attributes:
        name: as the caller wrote it.
        metric: the engine's, without its cut-off.
        k: the cut-off, or None.
        times: factor on the engine's number.
        options: engine options.
    """

    name: str
    metric: str
    k: int | None
    times: int
    options: dict[str, Any]

    @property
    def written(self) -> str:
        """The engine's name with the cut-off."""
        return self.metric if self.k is None else f"{self.metric}@{self.k}"


def asked(name: str, relevance: Array, longest: int) -> Asked:
    """Translate a name of ranx's to the engine's metric and options.

    Args:
        name: such as ``ndcg@10``, ``map-l2`` or ``rbp.95``.
        relevance: distinct values of the judgments.
        longest: length of the longest list.

    Raises:
        OptionError: no such metric, cut-off, level or persistence.
    """
    base, level, behind = _parts(name)
    how = TRANSLATIONS[base]
    options: dict[str, Any] = {"relevance_levels": None if level == 1 else [level]}
    k = 0
    if base == "rbp":
        options["persistence"] = _persistence(name, behind)
    elif behind:
        k = _whole(name, behind)
    if how.gains is not None:
        options = {"gains": _gains(how.gains, level, relevance)}
    pattern = how.cut if k or how.whole is None else how.whole
    metric, at, _ = pattern.partition("@{k}")
    cut = (k or max(longest, 1)) if at else None
    return Asked(name, metric, cut, k if how.times_k and k else 1, options)


def _parts(name: str) -> tuple[str, int, str]:
    """Split a name into metric, lowest relevant relevance, and the text after ``@`` or ``.``."""
    said, _, level = name.partition("-l")
    base, behind = said, ""
    for mark in ".@" if said.startswith("rbp") else "@":
        if mark in said:
            base, _, behind = said.partition(mark)
            break
    if base not in TRANSLATIONS:
        raise unknown("metric", base, tuple(TRANSLATIONS))
    return base, _whole(name, level) if level else 1, behind


def _whole(name: str, digits: str) -> int:
    if not digits.isascii() or not digits.isdigit():
        raise OptionError(f"metric {name!r}: {digits!r} is not a whole number.")
    return int(digits)


def _persistence(name: str, digits: str) -> float:
    if not digits.isascii() or not digits.isdigit():
        raise OptionError(f"metric {name!r}: write the persistence behind a dot, as in 'rbp.95'.")
    return float(f"0.{digits}")


def _gains(kind: str, level: int, relevance: Array) -> str | dict[float, float]:
    """Return the gain of each relevance, 0 below the level."""
    if level == 1:
        return kind
    return {
        float(one): _GAINS[kind](one) if one >= level else 0.0 for one in relevance if one > 0
    } or kind


def label(name: str) -> str:
    """A metric's name in reports: ``NDCG@10``, ``MAP-l2``, ``RBP.95``."""
    base, level, behind = _parts(name)
    mark = "." if base == "rbp" else "@"
    shown = TRANSLATIONS[base].label + (f"{mark}{behind}" if behind else "")
    return f"{shown}-l{level}" if "-l" in name else shown


def grouped(wanted: Iterable[Asked]) -> list[tuple[dict[str, Any], list[Asked]]]:
    """Metrics that one run of the engine can compute, with its options."""
    groups: list[tuple[dict[str, Any], list[Asked]]] = []
    for one in wanted:
        for options, members in groups:
            if all(options.get(key, value) == value for key, value in one.options.items()):
                options.update(one.options)
                members.append(one)
                break
        else:
            groups.append((dict(one.options), [one]))
    return groups
