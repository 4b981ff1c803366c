"""A slice's rows are those of a run on only that slice's datums."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from detection.checking import EVERYTHING, check, modest, oracle_of, run, some_settings
from detection.strategies import Tables, crowded_tables, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.detection_metrics import Asked
from output_frames import agree, numbers, of_slice

few = settings(modest, max_examples=1 + modest.max_examples // 4)
"""Each example is checked slice by slice, with about ten slices."""

WEATHER = ("fog", "rain", "sun")
CAMERA = (1, 2)


@st.composite
def sliced(draw: st.DrawFn) -> tuple[Tables, pl.DataFrame]:
    """Make tables, and a table of datums with two slice columns."""
    drawn = draw(tables(crowd=True))
    datums = drawn.datums
    return drawn, pl.DataFrame(
        {
            "datum_id": pl.Series(datums, dtype=drawn.truths.schema["datum_id"]),
            "weather": [draw(st.sampled_from(WEATHER)) for _ in datums],
            "camera": [draw(st.sampled_from(CAMERA)) for _ in datums],
        }
    )


@pytest.mark.parametrize("dialect", ["standard", "valor-docs"])
@given(sliced(), some_settings())
@few
def test_slices_match_separate_runs(
    dialect: str, given_tables: tuple[Tables, pl.DataFrame], options: Asked
) -> None:
    """Slices by one column, by another and by both crossed, and the whole set."""
    drawn, datums = given_tables
    by = ["weather", "weather*camera"]
    card = run(drawn, dialect, options, EVERYTHING, by=by, datums=datums)
    groups: dict[tuple[str | None, str | None], list[Any]] = {(None, None): drawn.datums}
    for datum, weather, camera in datums.iter_rows():
        groups.setdefault(("weather", weather), []).append(datum)
        groups.setdefault(("weather*camera", f"{weather}*{camera}"), []).append(datum)
    for frame in (card.metrics, card.curves, card.confusion):
        assert set(frame.select("slice", "slice_value").unique().iter_rows()) <= set(groups)
    for of, members in groups.items():
        check(card, oracle_of(drawn.on(members), dialect, options), of)


def test_slice_column_of_a_side() -> None:
    """A slice column may be in the ground truths or the predictions."""
    drawn = crowded_tables(12, datums=8)
    odd = pl.col("datum_id") % 2
    datums = pl.DataFrame({"datum_id": drawn.datums}).with_columns(side=odd)
    wide = Tables(drawn.predictions.with_columns(side=odd), drawn.truths.with_columns(side=odd))
    card = drawn.score(by="side", datums=datums)
    shown = wide.score(by="side")
    for value in ("0", "1"):
        agree(
            numbers(of_slice(shown.metrics, "side", value)),
            numbers(of_slice(card.metrics, "side", value)),
            tolerance=0.0,
        )
