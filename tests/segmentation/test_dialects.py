"""Every value of every dialect compared with plain Python: slices, keys, forms and threads."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.segmentation import labels_in, of_label, pairs
from oracles.segmentation_dialects import of_image, over_images
from segmentation.making import EVERY, pairs_of_maps, same

import evalengine as ee

DIALECTS = ("standard", "valor", "valor-lite", "torchmetrics")
KEYED = [name for name in EVERY if name not in ("Counts", "ConfusionMatrix")]
BACKGROUND = {"valor": 0, "valor-lite": 0}
CITIES = ("x", "y")

Maps = dict[tuple[str, int], tuple[Any, Any]]
"""Truth and prediction, by label key and datum."""


@st.composite
def keyed_maps(draw: st.DrawFn, keys: tuple[str, ...] = ("a", "b")) -> Maps:
    """Return maps of up to four datums under up to two keys; many have few labels."""
    made: Maps = {}
    for datum in range(draw(st.integers(1, 4))):
        shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 17)))
        for key in draw(st.lists(st.sampled_from(keys), min_size=1, unique=True)):
            rng = np.random.default_rng(draw(st.integers(0, 99)))
            pools = [
                draw(st.lists(st.sampled_from([0, 1, 2, 3, 4]), min_size=1, max_size=3))
                for _ in range(2)
            ]
            made[key, datum] = tuple(rng.choice(pool, shape) for pool in pools)  # type: ignore
    return made


def table(maps: Maps, side: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "datum_id": [datum for _, datum in maps],
            "label_key": [key for key, _ in maps],
            "raster": [pair[side].tolist() for pair in maps.values()],
        }
    )


def layers(maps: Maps, side: int, left_out: set[int | None]) -> pl.DataFrame:
    """Return the same side as one mask per label."""
    return pl.DataFrame(
        [
            {"datum_id": datum, "label_key": key, "label_value": label,
             "mask": (pair[side] == label).astype(int).tolist()}
            for (key, datum), pair in maps.items()
            for label in np.unique(pair[side]).tolist()
            if label not in left_out
        ],
        schema={"datum_id": pl.Int64, "label_key": pl.String, "label_value": pl.Int64,
                "mask": pl.List(pl.List(pl.Int64))},
    )  # fmt: skip


def counted(maps: Maps, ignore: int | None, background: int | None) -> Any:
    """Return counts of label pairs, by key and datum."""
    made: dict[str, dict[int, Counter[Any]]] = {}
    for (key, datum), (truth, predictions) in maps.items():
        made.setdefault(key, {})[datum] = pairs(truth, predictions, ignore, background)
    return made


def approx(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-12, abs=1e-15)


def numbers(rows: pl.DataFrame) -> dict[Any, float | None]:
    """Return the values of a run by metric and by label, average or None."""
    made = {}
    for row in rows.iter_rows(named=True):
        average = () if row["average"] is None else (row["average"],)
        at = average if row["label_value"] is None else row["label_value"]
        assert (row["metric"], at) not in made
        assert (row["value"] is None) == (row["reason"] is not None)
        made[row["metric"], at] = row["value"]
    return made


@settings(max_examples=25)
@given(
    keyed_maps(),
    st.sampled_from(DIALECTS),
    st.sampled_from([None, 2, 4]),
    st.sampled_from([None, (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 7)]),
    st.sampled_from([1, 2]),
)
def test_numbers(maps: Maps, dialect: str, ignore: int | None, labels: Any, threads: int) -> None:
    background = BACKGROUND.get(dialect)
    if labels is not None:  # counts of one key
        maps = {("label", datum): pair for (_, datum), pair in maps.items()}
    declared = None if labels is None else [one for one in labels if one != background]
    datums = pl.DataFrame({"datum_id": range(4), "city": [*CITIES, *CITIES]})
    card = ee.score(
        table(maps, 1), table(maps, 0), dialect=dialect, ignore_index=ignore, labels=declared,
        metrics=KEYED, datums=datums, by="city", threads=threads,
    )  # fmt: skip
    for key, images in counted(maps, ignore, background).items():
        own = card.metrics.filter(label_key=key)
        for city in (None, *CITIES):
            chosen = {
                datum: counts
                for datum, counts in images.items()
                if city is None or CITIES[datum % 2] == city
            }
            rows = own.filter(
                pl.col("slice_value").is_null() if city is None else pl.col("slice_value") == city
            )
            expected = over_images(chosen, dialect, declared, ignore) if chosen else {}
            ours = numbers(rows)
            if not chosen:  # declared labels have rows everywhere
                ours = {at: value for at, value in ours.items() if at[1] not in (declared or [])}
            assert ours == {at: approx(value) for at, value in expected.items()}, (key, city)
        singles = card.per_datum
        if "parameters" in singles.columns:  # there are several keys
            singles = singles.filter(parameters=json.dumps({"label_key": key}))
        for datum, counts in images.items():
            of_datum = singles.filter(datum_id=datum).select("metric", "value")
            expected = of_image(counts, dialect, declared, ignore)
            assert dict(of_datum.iter_rows()) == {m: approx(v) for m, v in expected.items()}


@settings(max_examples=25)
@given(
    pairs_of_maps(),
    st.sampled_from([None, 255, 2]),
    st.sampled_from([None, 0]),
    st.sampled_from((np.uint8, np.int64, np.uint16, np.int32)),
)
@example(({"a": np.array([[1]])}, {"a": np.array([[1]])}), None, None, np.uint8)  # one pixel
@example(({"a": np.array([[2]])}, {"a": np.array([[255]])}), 255, None, np.uint8)  # none left
@example(({"a": np.array([[0]])}, {"a": np.array([[0]])}), None, 0, np.int64)  # no label at all
@example(({"a": np.array([[70000]])}, {"a": np.array([[-5]])}), None, None, np.int32)
def test_datums_of_one_side(
    sides: Any, ignore: int | None, background: int | None, dtype: Any
) -> None:
    """A datum that is missing on one side has no label there; confusion and counts add up."""
    predictions, truth = ({name: one.astype(dtype) for name, one in side.items()} for side in sides)
    card = ee.score(predictions, truth, ignore_index=ignore, background=background, metrics=EVERY)
    each: dict[str, Counter[Any]] = {}
    for name in {**predictions, **truth}:
        blank = np.full((predictions.get(name, truth.get(name))).shape, -7)
        counts = pairs(truth.get(name, blank), predictions.get(name, blank), ignore, background)
        each[name] = Counter()
        for (t, p), n in counts.items():
            each[name][None if t == -7 else t, None if p == -7 else p] += n
    of_counts = pl.col("metric") == "Counts"
    expected = over_images(each, "standard", None, ignore)
    assert numbers(card.metrics.filter(~of_counts)) == {k: approx(v) for k, v in expected.items()}
    for name, counts in each.items():
        of_datum = dict(card.per_datum.filter(datum_id=name).select("metric", "value").iter_rows())
        assert of_datum == {
            m: approx(v) for m, v in of_image(counts, "standard", None, ignore).items()
        }
    whole = sum(each.values(), Counter[Any]())
    cells = card.confusion.select("actual", "predicted", "count").rows()
    wanted = {pair: n for pair, n in whole.items() if n and pair != (None, None)}
    assert {(t, p): n for t, p, n in cells} == wanted
    columns = ("label_value", "statistic", "value")
    for label, statistic, value in card.metrics.filter(of_counts).select(columns).rows():
        own = [n for pair, n in whole.items() if counted_as(statistic, label, *pair)]
        assert value == sum(own), (label, statistic)
    recalls = card.metrics.filter(pl.col("label_value").is_not_null(), metric="Recall")
    support = {label: of_label(whole, label)["truth"] for label in labels_in(whole)}
    assert dict(recalls.select("label_value", "support").rows()) == support


def counted_as(statistic: str, label: Any, actual: Any, predicted: Any) -> bool:
    """Return whether a pixel is a true positive, false positive or false negative of a label."""
    positive = statistic[1] == "p"
    right = positive if statistic[0] == "t" else not positive
    return (predicted == label) == positive and (actual == label) == right


@settings(max_examples=12)
@given(
    keyed_maps(),
    st.sampled_from(DIALECTS),
    st.sampled_from([None, 2]),
    st.booleans(),
    st.booleans(),
)
def test_masks_are_maps(
    maps: Maps, dialect: str, ignore: int | None, both: bool, blank: bool
) -> None:
    background = BACKGROUND.get(dialect)
    options: dict[str, Any] = {"dialect": dialect, "metrics": EVERY}
    if ignore is not None and not both:
        options["ignore_index"] = ignore
    if blank and background is None:
        options["background"] = background = 0
    sides = [layers(maps, side, {background}) for side in (0, 1)]
    for side in sides if both else sides[1:]:
        held = set(side.select("label_key", "datum_id").iter_rows())
        if held != {*maps}:  # a map of background only has no row of masks
            return
    whole = ee.score(table(maps, 1), table(maps, 0), **options)
    truth = sides[0] if both else table(maps, 0)
    if both:
        options.pop("background", None)
    same(ee.score(sides[1], truth, **options), whole)
