"""``score_columns``: a column of scores per label, by names or by labels mapped to names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from evalengine.schemas.contract import Column
from evalengine.schemas.errors import InputError, OptionError, did_you_mean
from evalengine.schemas.wording import option

from . import dtypes
from .finding import Finder
from .problems import ChecksFailed, Problem, count_of, listing

PREFIX = "score:"
"""Prefix of canonical names of score columns; the label follows."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def find_wide(find: Finder, given: Any) -> dict[str, tuple[Column, str, Any]]:
    """Find the score columns of a table; missing ones are added to the finder's problems.

    Args:
        given: the option, names or a mapping of labels to names.

    Returns:
        Preliminary canonical name to contract, column and label; the label is the column name if
        only names were given.
    """
    pairs = list(given.items()) if isinstance(given, Mapping) else _expanded(find, given)
    owners = [name for _, name in pairs]
    for name in dict.fromkeys(owners):
        if name not in find.schema:
            find.problems.append(
                Problem(
                    find.side,
                    "score_columns",
                    f"score_columns: there is no column {name!r}.{did_you_mean(name, find.schema)}"
                    f" Columns there: {', '.join(find.schema) or 'none'}.",
                    kind="column_missing",
                    facts={"column": name},
                )
            )
        elif owners.count(name) > 1:
            find.problems.append(
                Problem(
                    find.side,
                    "score_columns",
                    f"score_columns: column {name!r} appears there more than once; each holds the"
                    " scores of one label.",
                    kind="column_twice",
                    facts={"column": name},
                )
            )
    find.used.update(owners)
    wide = {}
    for label, name in pairs:
        if name in find.schema:
            canonical = f"{PREFIX}{label}"
            column = Column(canonical, "number", f"Score of {label!r}.", single=True)
            wide[canonical] = column, name, label
    return wide


def _expanded(find: Finder, given: Sequence[str]) -> list[tuple[str, str]]:
    """Names with patterns replaced by the columns they fit, in the table's order."""
    names: list[str] = []
    for name in given:
        if name in find.schema or "*" not in name:
            names.append(name)
            continue
        fitting = [own for own in find.schema if fnmatch.fnmatchcase(own, name)]
        names += [own for own in fitting if own not in names] or [name]
    return [(name, name) for name in names]


def label_series(given: Sequence[Any], dtype: pl.DataType | None, known: pl.Series) -> pl.Series:
    """Return the labels of score columns in the dtype of the true labels.

    Args:
        dtype: of the true labels; None if there are none.
        known: the distinct true labels.

    Raises:
        OptionError: labels of several types.
        InputError: names that cannot be labels of that dtype, or one label twice.
    """
    texts = [label for label in given if isinstance(label, str)]
    if texts and len(texts) < len(given):
        raise OptionError(
            f"score_columns: labels are partly strings, partly numbers ({listing(given)}). Write"
            " all in the type the tables have.",
            code="types_mixed",
            option="score_columns",
        )
    if not texts:
        whole = not all(isinstance(label, bool) for label in given)
        labels = pl.Series("label_value", [int(x) if whole else x for x in given])
    elif dtype is None or dtype == pl.String:
        labels = pl.Series("label_value", _met(texts, known), dtype=pl.String)
    else:
        labels = pl.Series("label_value", _parsed(texts, dtype, known), dtype=dtype)
    if labels.n_unique() < len(labels):
        twice = labels.filter(labels.is_duplicated()).unique(maintain_order=True).to_list()
        raise InputError(
            f"score_columns: {count_of(len(twice), 'label')} with more than one column:"
            f" {listing(twice)}. Each label has one column of scores.",
            code="column_twice",
            option="score_columns",
            count=len(twice),
        )
    return labels


def check_scored(given: Sequence[Any], labels: pl.Series, known: pl.Series) -> None:
    """Refuse score columns if a true label has none, as scikit-learn does.

    A single column for two classes may be the score of the positive one.

    Args:
        labels: result of :func:`label_series`.
        known: the distinct true labels.

    Raises:
        ChecksFailed: with code ``labels_without_scores``.
    """
    if known.dtype != labels.dtype:
        return
    unscored = known.filter(~known.is_in(labels.implode())).sort().to_list()
    odd = [given[at] for at, label in enumerate(labels) if label not in known]
    if not unscored or (len(labels) == 1 and len(known) <= 2 and not odd):
        return
    pairs = list(zip(map(str, unscored), [*map(str, odd), *["..."] * len(unscored)], strict=False))
    example = dict(pairs[:_SHOWN]) | ({"...": "..."} if len(pairs) > _SHOWN else {})
    are = f" ({listing(odd)} {'is' if len(odd) == 1 else 'are'} no true label)" if odd else ""
    said = (
        f"score_columns: {count_of(len(unscored), 'true label')} without a column of scores:"
        f" {listing(unscored)}{are}. Give each label a column, with all others:"
        f" {option('score_columns', example)}; or remove the rows of the label."
    )
    facts = {"labels": unscored, "columns": odd, "count": len(unscored), "of": len(known)}
    problem = Problem(
        "", "score_columns", said, len(unscored), kind="labels_without_scores", facts=facts
    )
    raise ChecksFailed([problem], {})


_SHOWN = 3


def _stripped(names: Sequence[str]) -> list[str]:
    """Strip the common prefix of names, up to its last ``_``, ``-``, ``.``, ``:`` or similar.

    A single name loses a prefix such as ``score_`` or ``prob_``.
    """
    if len(names) == 1:
        return [re.sub(r"^(scores?|prob(a|ability)?|p|pred|logit)[_\-.: /]", "", names[0])]
    low, high = min(names), max(names)
    shared = low[
        : next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    ]
    cut = re.match(r".*[_\-.: /]", shared)
    short = [name[cut.end() :] for name in names] if cut else list(names)
    return short if all(short) else list(names)


def _met(names: list[str], known: pl.Series) -> list[str]:
    """Names as they are, unless only without their common beginning they are labels."""
    there = set(known.cast(pl.String).to_list()) if len(known) else set()
    short = _stripped(names)
    return short if there.isdisjoint(names) and not there.isdisjoint(short) else names


def _parsed(names: list[str], dtype: pl.DataType, known: pl.Series) -> list[Any]:
    """Names as integers or booleans."""
    for candidate in (names, _stripped(names), [re.sub(r"^[^0-9+-]+", "", n) for n in names]):
        if dtype == pl.Boolean:
            if all(name.casefold() in _BOOLEANS for name in candidate):
                return [_BOOLEANS[name.casefold()] for name in candidate]
        elif all(_WHOLE.fullmatch(name) for name in candidate):
            return [int(name) for name in candidate]
    example = dict(zip(map(str, known.head(2).to_list()), names, strict=False))
    raise InputError(
        f"score_columns: the true labels are {dtypes.kind_of(dtype)}"
        f" ({listing(known.head(3).to_list())}), which {listing(names, most=3)} cannot be. Say"
        f" which column is whose: {option('score_columns', {**example, '...': '...'})}.",
        code="types_differ",
        option="score_columns",
    )


def renamed(frame: pl.DataFrame, names: Sequence[str], labels: pl.Series) -> pl.DataFrame:
    """The table with its score columns named after their labels, all of one dtype."""
    if len({frame.schema[name] for name in names}) > 1:
        frame = frame.with_columns(pl.col(names).cast(pl.Float64))
    return frame.rename({n: f"{PREFIX}{label}" for n, label in zip(names, labels, strict=True)})
