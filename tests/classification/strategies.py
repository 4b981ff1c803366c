"""Small random classification tables with ties, stray rows and missing sides."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from oracles.classification import Oracle

GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Random scores, which are also the thresholds."""

DATUMS: tuple[tuple[Any, ...], ...] = ((0, 2, 10, 11, 12), ("10", "2", "é", "Y", ""))
LABELS: tuple[tuple[Any, ...], ...] = ((-1, 3, 12), ("a", "b", "ab"), (0, 1))

modest = settings(
    max_examples=int(os.environ.get("EVALENGINE_EXAMPLES", "12")),
    suppress_health_check=[HealthCheck.data_too_large],
)
"""Settings of the property tests; EVALENGINE_EXAMPLES sets the number of examples."""


@dataclass(frozen=True)
class Drawn:
    """Both sides as rows.

    Attributes:
        predictions: (datum, key, value, score).
        truths: (datum, key, value).
        datums: every datum that may be there, of one type.
        labels: every label value that may be there, of one type.
        groups: datum to its slice.
        several: whether a datum may have several true labels.
    """

    predictions: tuple[tuple[Any, str, Any, float], ...]
    truths: tuple[tuple[Any, str, Any], ...]
    datums: tuple[Any, ...]
    labels: tuple[Any, ...]
    groups: Mapping[Any, str]
    several: bool

    def frames(self, weights: Mapping[Any, float] | None = None) -> tuple[pl.DataFrame, ...]:
        """Predictions and ground truths."""
        schema: dict[str, Any] = {
            "datum_id": pl.Series(self.datums).dtype,
            "label_key": pl.String,
            "label_value": pl.Series(self.labels).dtype,
        }
        sides = (
            pl.DataFrame(self.predictions, schema={**schema, "score": pl.Float64}, orient="row"),
            pl.DataFrame(self.truths, schema=schema, orient="row"),
        )
        if weights is None:
            return sides
        of_row = [float(weights[datum]) for datum, *_ in self.truths]
        return sides[0], sides[1].with_columns(weight=pl.Series(of_row, dtype=pl.Float64))

    def datum_table(self) -> pl.DataFrame:
        """Every datum with its slice."""
        here = [datum for datum in self.datums if datum in self.groups]
        return pl.DataFrame(
            {"datum_id": here, "part": [self.groups[datum] for datum in here]},
            schema={"datum_id": pl.Series(self.datums).dtype, "part": pl.String},
        )

    def oracle(self, weights: Mapping[Any, Any] | None = None) -> Oracle:
        """The oracle for the same rows."""
        return Oracle(self.predictions, self.truths, weights or {}, self.several)

    def on(self, datums: Sequence[Any]) -> Drawn:
        """The rows of some datums."""
        return replace(
            self,
            predictions=tuple(row for row in self.predictions if row[0] in datums),
            truths=tuple(row for row in self.truths if row[0] in datums),
        )


def by_bytes(value: Any) -> Any:
    """Numbers by value, text by its bytes."""
    return value.encode() if isinstance(value, str) else value


@st.composite
def drawn(
    draw: st.DrawFn, *, several: bool = False, common: bool = True, distinct: bool = False
) -> Drawn:
    """Rows of both sides, one of which may be empty.

    Args:
        draw: given by hypothesis.
        several: whether a datum may have several true labels.
        common: whether sides with rows must share a datum.
        distinct: whether scores of one datum and key all differ.
    """
    datums = draw(st.sampled_from(DATUMS))
    labels = draw(st.sampled_from(LABELS))
    keys = draw(st.sampled_from((("label",), ("label",), ("k", "other"))))
    predictions: list[tuple[Any, str, Any, float]] = []
    truths: list[tuple[Any, str, Any]] = []
    for datum in draw(st.lists(st.sampled_from(datums), unique=True)):
        for key in keys:
            listed = draw(st.lists(st.sampled_from(labels), unique=True))
            scores = draw(
                st.lists(
                    st.sampled_from((*GRID, 0.1, 0.6)),
                    min_size=len(listed),
                    max_size=len(listed),
                    unique=distinct,
                )
            )
            rows = zip(listed, scores, strict=True)
            predictions += [(datum, key, value, score) for value, score in rows]
            most = 3 if several else 1
            true = draw(st.lists(st.sampled_from(labels), unique=True, max_size=most))
            truths += [(datum, key, value) for value in true]
    if common and predictions and truths:
        both = {row[0] for row in predictions} & {row[0] for row in truths}
        if not both:
            datum, key, _ = truths[0]
            predictions.append((datum, key, labels[0], 0.5))
    predictions = draw(st.permutations(predictions))
    groups = {datum: draw(st.sampled_from("xyz")) for datum in datums}
    return Drawn(tuple(predictions), tuple(truths), datums, labels, groups, several)


def some_weights(datums: Sequence[Any]) -> st.SearchStrategy[dict[Any, int]]:
    """Map each datum to its weight; some weights are zero."""
    return st.fixed_dictionaries({datum: st.integers(0, 3) for datum in datums})
