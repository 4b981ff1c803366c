"""Labels of indices: names in order, a column of indices, integers, label maps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import noted, refused
from segmentation.making import EVERY, NAMES, rows_of, some_maps, write

import evalengine as ee

FOUND, TRUTH = some_maps()


def ious(**options) -> dict:
    rows = ee.score(FOUND, TRUTH, metrics=["IOU"], **options).metrics
    remaining = rows.filter(pl.col("label_value").is_not_null())
    return dict(remaining.select("label_value", "value").iter_rows())


PLAIN = ious()


def test_indices_are_labels_without_names() -> None:
    assert list(PLAIN) == [0, 1, 2, 3]


def test_a_list_is_in_order_of_index() -> None:
    assert ious(labels=NAMES) == {name: PLAIN[i] for i, name in enumerate(NAMES)} | {}
    of_valor = ious(labels=NAMES[1:], dialect="valor")
    assert of_valor == {name: PLAIN[i + 1] for i, name in enumerate(NAMES[1:])}
    skipped = ious(labels=["road", "car", "tree"], background=2)
    assert skipped == {"road": PLAIN[0], "car": PLAIN[1], "tree": PLAIN[3]}


def test_a_column_of_indices() -> None:
    labels = pl.DataFrame({"label_value": ["tree", "car", "sky", "road"], "index": [3, 1, 2, 0]})
    assert ious(labels=labels) == {name: PLAIN[i] for i, name in enumerate(NAMES)}


def test_integers_are_indices() -> None:
    assert ious(labels=[3, 2, 1, 0]) == PLAIN
    assert ious(labels={3: "tree", 2: "sky", 1: "car", 0: "road"}) == PLAIN


def test_a_label_without_pixels_is_undefined() -> None:
    card = ee.score(FOUND, TRUTH, labels=[*NAMES, "pole"])
    row = card.metrics.filter(metric="IOU", label_value="pole")
    assert row["value"].to_list() == [None]
    assert "no pixel" in row["reason"][0]
    assert card.value("mIOU") == ee.score(FOUND, TRUTH).value("mIOU")
    lite = ee.score(FOUND + 1, TRUTH + 1, labels=[*NAMES, "pole"], dialect="valor-lite")
    assert lite.value("IOU", label_value="pole") == 0.0
    assert lite.value("mIOU") == pytest.approx(card.value("mIOU") * 4 / 5)


def test_an_index_without_a_name() -> None:
    many = int((TRUTH == 2).sum())
    where = {"side": "ground_truths", "value": 2, "pixels": many, "datums": 5}
    with refused("index_unnamed", **where) as raised:
        ee.score(FOUND, TRUTH, labels=NAMES[:2])
    assert "first datum 0" in str(raised.value)
    assert "indices 0 to 1" in str(raised.value)
    assert "ignore_index=2" in str(raised.value)
    assert "background=2" in str(raised.value)
    other = FOUND.copy()
    other[3, 2, 2] = 255
    with refused("index_unnamed", side="predictions", value=255, pixels=1, datums=1):
        ee.score(other, TRUTH, labels=NAMES, ignore_index=255)


def test_a_repeated_index() -> None:
    labels = pl.DataFrame({"label_value": ["a", "b"], "index": [1, 1]})
    with refused("repeated_values", column="index", value=1):
        ee.score(FOUND, TRUTH, labels=labels)
    words = pl.DataFrame({"label_value": ["a", "b"], "index": ["x", "y"]})
    with refused("wrong_dtype", column="index"):
        ee.score(FOUND, TRUTH, labels=words)


def test_an_ignored_index_within_the_list_is_noted() -> None:
    card = ee.score(FOUND, TRUTH, labels=NAMES, ignore_index=0)
    assert "'road' is index 0" in noted(card, "ignored_index_named").message


@pytest.mark.parametrize("named", [True, False])
def test_a_label_map_merges(named: bool) -> None:
    merged = [np.where(side == 3, 1, side) for side in (FOUND, TRUTH)]
    if named:
        card = ee.score(FOUND, TRUTH, labels=NAMES, label_map={"tree": "car"})
        other = ee.score(*merged, labels=NAMES)
    else:
        card = ee.score(FOUND, TRUTH, label_map={3: 1})
        other = ee.score(*merged)
    assert card.notes == ()
    assert card.value("mIOU") == other.value("mIOU")
    assert card.value("PixelAccuracy") == other.value("PixelAccuracy")


def test_labels_of_one_side_are_noted() -> None:
    card = ee.score(np.full((1, 2, 2), 3), np.full((1, 2, 2), 1))
    assert ": 3." in noted(card, "labels_in_predictions_only", count=1).message
    assert ": 1." in noted(card, "labels_in_ground_truths_only", count=1).message


@pytest.mark.parametrize("ignored", [0, 2])
@pytest.mark.parametrize("form", ["maps", "names", "rows"])
def test_torchmetrics_excludes_the_ignored_class_from_iou(ignored: int, form: str) -> None:
    options: dict = {"dialect": "torchmetrics", "ignore_index": ignored}
    if form != "maps":
        options["labels"] = NAMES
    predictions = rows_of(FOUND) if form == "rows" else FOUND
    card = ee.score(predictions, TRUTH, metrics=["IOU", "mIOU", "FrequencyWeightedIoU"], **options)
    counted = ignored != TRUTH
    right, union, truth = np.array(
        [
            [((k == TRUTH) & (k == FOUND) & counted).sum() for k in range(4)],
            [(((k == TRUTH) | (k == FOUND)) & counted).sum() for k in range(4)],
            [((k == TRUTH) & counted).sum() for k in range(4)],
        ]
    )
    # JaccardIndex of torchmetrics 1.9: weight 0 in macro, not in the denominator of micro.
    others = np.arange(4) != ignored
    assert union[ignored] > 0
    assert card.value("mIOU") == pytest.approx((right / union)[others].mean(), abs=1e-15)
    assert card.value("IOU", average="micro") == pytest.approx(
        right.sum() / union[others].sum(), abs=1e-15
    )
    weighted = (right / union * truth).sum() / truth.sum()
    assert card.value("FrequencyWeightedIoU") == pytest.approx(weighted, abs=1e-15)
    first = card.per_datum.filter(metric="mIOU", datum_id=0)["value"][0]
    alone = ee.score(FOUND[:1], TRUTH[:1], metrics=["mIOU"], **{**options, "labels": NAMES})
    assert first == pytest.approx(alone.value("mIOU"), abs=1e-15)
    standard = ee.score(predictions, TRUTH, **{**options, "dialect": "standard"})
    assert standard.value("mIOU") == pytest.approx((right / union).mean(), abs=1e-15)


@pytest.mark.parametrize("form", ["maps", "masks"])
def test_a_key_whose_pixels_are_all_ignored_has_rows_with_reasons(form: str) -> None:
    maps = {"datum_id": [0, 0], "label_key": ["a", "b"], "raster": [[[7, 7]], [[1, 2]]]}
    truth = pl.DataFrame(maps)
    predictions = pl.DataFrame({**maps, "raster": [[[1, 2]], [[1, 1]]]})
    if form == "masks":  # key 'a' has only ignored pixels and no predictions
        predictions = pl.DataFrame(
            {"datum_id": [0], "label_key": ["b"], "label_value": [1], "mask": [[[1, 1]]]}
        )
    metrics = [name for name in EVERY if name not in ("Counts", "ConfusionMatrix")]
    card = ee.score(predictions, truth, ignore_index=7, metrics=metrics)
    rows = card.metrics.filter(pl.col("label_value").is_null(), label_key="a")
    assert set(rows["metric"]) == {*metrics}
    assert rows["value"].to_list() == [None] * rows.height
    assert rows["support"].to_list() == [0] * rows.height
    reasons = dict(rows.select("metric", "reason").iter_rows())
    assert "no pixel" in reasons["PixelAccuracy"]
    assert "no label" in reasons["mIOU"]
    assert "no image" in reasons["mIOUPerImage"]
    assert card.value("mIOU", label_key="b") == 0.25
    assert card.value("PixelAccuracy", label_key="b") == 0.5
    of_datum = card.per_datum.filter(metric="mIOU")
    assert dict(of_datum.select("parameters", "value").iter_rows()) == {
        '{"label_key": "a"}': None,
        '{"label_key": "b"}': 0.25,
    }


@pytest.mark.parametrize("dialect", ["standard", "valor", "valor-lite", "torchmetrics"])
def test_a_run_without_a_label_has_rows_with_reasons(dialect: str) -> None:
    blank = np.full((2, 3, 4), 7)
    card = ee.score(blank, blank, ignore_index=7, dialect=dialect)
    (row,) = card.metrics.filter(metric="mIOU").iter_rows(named=True)
    assert (row["value"], row["reason"][:8]) == (None, "no label")
    (of_valor,) = [one for one in card.to_valor() if one["type"] == "mIOU"]
    assert of_valor == {"type": "mIOU", "value": 0.0, "parameters": {"label_key": "label"}}


def test_declared_labels_are_those_of_every_key() -> None:
    """Label maps rename them, and keys without a labelled pixel have them, too."""
    maps = pl.DataFrame(
        {
            "datum_id": [1, 1, 2],
            "label_key": ["a", "b", "c"],
            "raster": [[[1, 2]], [[1, 3]], [[0, 0]]],
        }
    )
    card = ee.score(
        maps, maps, dialect="valor-lite", labels=["road", "car", "tree"], label_map={"tree": "road"}
    )
    rows = card.metrics.filter(metric="IOU").filter(pl.col("label_value").is_not_null())
    assert rows["label_value"].to_list() == ["car", "road"] * 3
    assert [card.value("mIOU", label_key=key) for key in "abc"] == [1.0, 0.5, 0.0]


def test_labels_that_overlap_in_ignored_pixels_only_do_not_overlap() -> None:
    truth = np.array([[0, 1, 255]])
    masks = pl.DataFrame(
        {"datum_id": [0, 0], "label_value": [0, 1], "mask": [[[1, 0, 1]], [[0, 1, 1]]]}
    )
    card = ee.score(masks, [truth], ignore_index=255)
    assert card.value("PixelAccuracy") == 1.0
    assert "labels_overlap" not in {one.code for one in card.findings}


def test_true_masks_have_no_ignored_index() -> None:
    """The option is noted as unread, so it excludes no label in dialect torchmetrics."""
    truth = pl.DataFrame({"datum_id": [0], "label_value": [1], "mask": [[[0, 1]]]})
    found = [np.array([[0, 1]])]
    plain, ignored = (
        ee.score(found, truth, dialect="torchmetrics", **options)
        for options in ({}, {"ignore_index": 0})
    )
    assert plain.value("mIOU") == ignored.value("mIOU") == 0.5


@pytest.mark.parametrize("limit", [None, "1GB"])
@pytest.mark.parametrize("ignored", [None, 255])
def test_void_in_the_predictions_only(
    ignored: int | None, limit: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_buckets(monkeypatch)
    void = TRUTH.copy()
    void[:, :2] = 255
    empty = np.where(FOUND == 3, 255, 0).astype(np.uint8)
    sides = [FOUND, void, np.where(void == 255, 255, FOUND).astype(np.uint8), empty]
    found, truth, masked, binary = (
        pl.DataFrame(
            {
                "datum_id": range(len(maps)),
                "raster": [write(tmp_path / f"{i}{j}.png", one) for j, one in enumerate(maps)],
            }
        )
        for i, maps in enumerate(sides)
    )

    def warned(*sides: pl.DataFrame) -> list[str]:
        card = ee.score(*sides, ignore_index=ignored, memory_limit=limit)
        assert ("buckets" in card.run) == (limit is not None)
        return [one.code for one in card.findings if one.code == "void_predicted"]

    assert warned(truth, found) == ["void_predicted"]
    for sides in ((found, truth), (masked, truth), (truth, masked), (binary, found)):
        assert warned(*sides) == []


TURNS = {
    "transposed": lambda maps: maps.transpose(0, 2, 1),
    "upside down": lambda maps: maps[:, ::-1],
    "mirrored": lambda maps: maps[:, :, ::-1],
    "a half": lambda maps: maps[:, ::-1, ::-1],
    "a quarter": lambda maps: np.rot90(maps, 1, (1, 2)),
    "three quarters": lambda maps: np.rot90(maps, 3, (1, 2)),
}


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("wide", [6, 8])
def test_turned_maps_are_a_warning(turn: str, wide: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (5, 6, wide)).repeat(6, 1).repeat(6, 2).astype(np.uint8)
    found = np.where(rng.random(truth.shape) < 0.95, truth, 0).astype(np.uint8)
    turned = TURNS[turn](found)
    assert ee.score(found, truth).warnings == ()
    if turned.shape != truth.shape:
        with refused("grids_differ", ee.InputError):
            ee.score(turned, truth)
    else:
        for check in (ee.score, ee.check):
            noted(check(turned, truth), "maps_turned", severity="warning")
