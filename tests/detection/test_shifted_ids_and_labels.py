"""Warnings about labels and ids that differ between the sides; for boxes see test_units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee

IMAGES, EACH = 40, 6
NAMES = np.array(["car", "bus", "van", "dog", "cat"])


def tables(seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make boxes in 40 images and predictions close to them, as columns."""
    chance = np.random.default_rng(seed)
    n = IMAGES * EACH
    bounds = ((0, 400), (0, 300), (20, 150), (20, 150))
    x, y, w, h = (chance.uniform(low, high, n) for low, high in bounds)
    truths = {
        "datum_id": np.repeat(np.arange(IMAGES), EACH) * 3,
        "label_value": chance.integers(0, 5, n),
        "xmin": x, "ymin": y, "xmax": x + w, "ymax": y + h,
    }  # fmt: skip
    predictions = {name: truths[name].copy() for name in truths} | {"score": chance.random(n)}
    for name in ("xmin", "ymin", "xmax", "ymax"):
        predictions[name] += chance.normal(0, 3, n)
    return predictions, truths


def warned(predictions: dict[str, Any], truths: dict[str, Any], **options: Any) -> list[str]:
    """Return the warnings of ``score``, which must equal those of ``check``."""
    sides = pl.DataFrame(predictions), pl.DataFrame(truths)
    warnings = ee.score(*sides, metrics=["mAP"], **options).warnings
    assert [*ee.check(*sides, **options).warnings] == [*warnings]
    return [*warnings]


@pytest.mark.parametrize("side", [0, 1])
def test_ids_counted_from_another_number(side: int) -> None:
    """Almost no boxes overlap, although most ids match."""
    sides = tables()
    for one in sides:
        one["datum_id"] = one["datum_id"] // 3
    sides[side]["datum_id"] += 1
    by_range, by_boxes = warned(*sides)
    step = "+1" if side else "-1"
    assert f"id_format=['{step}']" in by_range
    assert f"changed by {step}" in by_boxes
    assert f"id_format=['{step}']" in by_boxes
    assert not warned(*sides, id_format=step)


@pytest.mark.parametrize("form", ["img_{:03d}", "a2/{:d}.png"])
def test_numbers_in_texts_that_count_from_another_number(form: str) -> None:
    sides = tables()
    for step, one in enumerate(sides):
        one["datum_id"] = np.array([form.format(i // 3 + step) for i in one["datum_id"]])
    card = ee.score(*map(pl.DataFrame, sides))
    codes = [one.code for one in card.findings if one.severity == "warning"]
    assert codes == ["ids_one_off", "boxes_apart"]
    assert ee.score(*map(pl.DataFrame, sides), id_format=["number", "+1"]).warnings == ()
    labels = {
        "datum_id": [form.format(i) for i in range(30)],
        "label_value": NAMES[np.random.default_rng(0).integers(0, 5, 30)],
    }
    other = {**labels, "datum_id": [form.format(i + 1) for i in range(30)]}
    (findings,) = (
        one for one in ee.score(*map(pl.DataFrame, (labels, other))).findings
        if one.severity == "warning"
    )  # fmt: skip
    assert findings.code == "ids_one_off"
    other["datum_id"][3] = form.format(99)  # a gap
    assert ee.score(*map(pl.DataFrame, (labels, other))).warnings == ()


@pytest.mark.parametrize("step", [1, -1])
def test_classes_counted_from_another_number(step: int) -> None:
    predictions, truths = tables()
    predictions["label_value"] = predictions["label_value"] + step
    by_range, by_boxes = warned(predictions, truths)
    assert f"are 1 too {'high' if step > 0 else 'low'}" in by_boxes
    assert all(f"label_format=['{-step:+d}']" in message for message in (by_range, by_boxes))
    assert not warned(predictions, truths, label_format=f"{-step:+d}")


@pytest.mark.parametrize(
    "names",
    [
        [name.upper() for name in NAMES],
        ["0", "1", "2", "3", "4"],
        ["automobile", "coach", "van ", "Dog", "kitten"],
    ],
)
def test_the_warning_names_a_label_map(names: list[str]) -> None:
    predictions, truths = tables()
    truths["label_value"] = NAMES[truths["label_value"]]
    predictions["label_value"] = np.array(names)[predictions["label_value"]]
    warning = warned(predictions, truths)[-1]
    mapped = {mine: str(other) for mine, other in zip(names, NAMES, strict=True)}
    assert all(f'"{mine}": "{other}"' in warning for mine, other in mapped.items()), warning
    assert not warned(predictions, truths, label_map=mapped)


@pytest.mark.parametrize(
    "change",
    [
        lambda predictions: None,
        lambda predictions: predictions.update(
            label_value=np.zeros_like(predictions["label_value"])
        ),
        lambda predictions: predictions.update(
            label_value=np.random.default_rng(1).integers(0, 5, IMAGES * EACH)
        ),
    ],
)
def test_other_tables_have_no_warnings(change: Callable[[dict[str, Any]], None]) -> None:
    """Good boxes, one label for all, and random labels cause no warning."""
    predictions, truths = tables()
    change(predictions)
    assert not warned(predictions, truths)


def test_predictions_of_other_images() -> None:
    """Permuted ids cause a warning, random boxes a note, and weak detectors neither."""
    for seed in range(5):
        predictions, truths = tables(seed)
        chance = np.random.default_rng(seed)
        moved = {**predictions, "datum_id": (7 * predictions["datum_id"] + 9) % (3 * IMAGES)}
        card = ee.score(pl.DataFrame(moved), pl.DataFrame(truths))
        (finding,) = (one for one in card.findings if one.code == "boxes_apart")
        assert (finding.severity, finding.facts["share"]) == ("warning", 1)
        assert finding.facts["overlap"] < 1.5 * finding.facts["elsewhere"] < 0.25
        order = chance.permutation(IMAGES * EACH)
        mixed = {name: one if name == "datum_id" else one[order] for name, one in moved.items()}
        card = ee.score(pl.DataFrame(mixed), pl.DataFrame(truths))
        assert card.warnings == ()
        for right in (0.05, 0.1, 0.2):  # share of right boxes
            weak = {name: one.copy() for name, one in predictions.items()}
            for axis, most in (("x", 400), ("y", 300)):
                shift = np.where(
                    np.arange(IMAGES * EACH) < right * IMAGES * EACH,
                    0,
                    chance.uniform(-most, most, IMAGES * EACH),
                )
                weak[f"{axis}min"] += shift
                weak[f"{axis}max"] += shift
            card = ee.score(pl.DataFrame(weak), pl.DataFrame(truths))
            assert "boxes_apart" not in {one.code for one in card.findings}


def test_scores_of_other_meaning_or_scale() -> None:
    predictions, truths = tables()
    chance = np.random.default_rng(0)
    free = {**predictions, "datum_id": predictions["datum_id"].copy()}
    for axis in "xy":  # boxes without overlap that have lower scores
        for end in ("min", "max"):
            free[f"{axis}{end}"] = predictions[f"{axis}{end}"] + 5000
    predictions["score"], free["score"] = chance.uniform(0.4, 1, 240), chance.uniform(0, 0.6, 240)
    both = pl.concat([pl.DataFrame(predictions), pl.DataFrame(free).head(120)])
    percent = pl.col("datum_id") < 3 * IMAGES / 2
    cases = {
        "scores_reversed": -pl.col("score") + 1,
        "scores_of_two_scales": pl.when(percent).then(pl.col("score") * 100).otherwise("score"),
    }
    for code, score in cases.items():
        card = ee.score(both.with_columns(score), pl.DataFrame(truths))
        (finding,) = (one for one in card.findings if one.severity == "warning")
        assert finding.code == code
        if code == "scores_reversed":
            assert finding.facts["auc"] < 0.2
        else:
            assert (finding.facts["count"], finding.facts["of"]) == (IMAGES / 2, IMAGES)
    chances = pl.Series("score", chance.random(360))
    for clean in (pl.col("score"), pl.col("score") * 100, (pl.col("score") * 9).exp(), chances):
        assert ee.score(both.with_columns(clean), pl.DataFrame(truths)).warnings == ()


def test_annotations_of_hard_objects_only_are_a_note() -> None:
    predictions, _ = tables()
    predictions = pl.DataFrame(predictions)
    hard = predictions.filter(pl.col("score") < 0.35).drop("score")
    card = ee.score(predictions, hard)
    (finding,) = (one for one in card.findings if one.code == "scores_reversed")
    assert (finding.severity, finding.facts["auc"]) == ("note", 0)


@pytest.mark.parametrize(("factor", "offset"), [(2, 0), (0.5, 0), (1, 300)])
def test_some_images_of_another_scale_or_origin(factor: float, offset: float) -> None:
    predictions, truths = tables()
    some = predictions["datum_id"] // 3 % 3 == 0
    for name in ("xmin", "ymin", "xmax", "ymax"):
        predictions[name] = np.where(some, factor * predictions[name] + offset, predictions[name])
    (warning,) = warned(predictions, truths)
    assert "in 14 of 40 datums" in warning
    chance = np.random.default_rng(1)
    for axis in "xy":  # a detector that fails in some images
        shift = np.where(some, chance.uniform(-200, 200, some.size), 0)
        for end in ("min", "max"):
            predictions[f"{axis}{end}"] = truths[f"{axis}{end}"] + shift
    assert warned(predictions, truths) == []
