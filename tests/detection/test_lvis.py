"""The dialects ``lvis`` and ``lvis-fixed`` are lvis-api's LVISEval to the bit.

``known_answers/detection/lvis.json`` contains its thirteen numbers of :func:`lvis_case`. They come
from lvis 0.5.3 on NumPy 1.23 (with ``numpy.float`` restored): ``LVISEval(gt, LVISResults(gt,
results, max_dets), "bbox")`` with ``max_dets`` 300, and -1 for ``lvis-fixed``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine import dialects as registry
from evalengine.tasks.detection import dialects

from .lvis_files import lvis_case

ANSWERS = json.loads(
    (Path(__file__).parents[1] / "known_answers" / "detection" / "lvis.json").read_text()
)


def files(seed: int, folder: Path) -> tuple[str, str]:
    truths, predictions = lvis_case(seed)
    paths = str(folder / "results.json"), str(folder / "truths.json")
    for path, content in zip(paths, (predictions, truths), strict=True):
        Path(path).write_text(json.dumps(content))
    return paths


def tables(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, pl.DataFrame]]:
    """Make the same rows as tables; datums and labels contain lists and frequencies."""
    truths, predictions = lvis_case(seed)
    boxes = pl.col("bbox").list.to_struct(fields=["x", "y", "box_width", "box_height"])
    xy = [pl.col("x").alias("xmin"), pl.col("y").alias("ymin"),
          (pl.col("x") + pl.col("box_width")).alias("xmax"),
          (pl.col("y") + pl.col("box_height")).alias("ymax")]  # fmt: skip
    sides = []
    for rows in (predictions, truths["annotations"]):
        side = pl.DataFrame(rows, infer_schema_length=None)
        side = side.with_columns(boxes.alias("b")).unnest("b").with_columns(xy)
        sides.append(side.drop("bbox", "x", "y", *(["id"] if "id" in side.columns else [])))
    if "ignore" in sides[1].columns:
        sides[1] = sides[1].with_columns(pl.col("ignore").fill_null(0))
    if "iscrowd" in sides[1].columns:
        sides[1] = sides[1].drop("iscrowd")
    names = {"neg_category_ids": "negative_labels", "not_exhaustive_category_ids": "partial_labels"}
    lists = dict.fromkeys(names, pl.List(pl.Int64))
    datums = pl.DataFrame(truths["images"], schema_overrides=lists).rename(names)
    return sides[0], sides[1], {"datums": datums, "labels": pl.DataFrame(truths["categories"])}


@pytest.mark.parametrize("dialect", ["lvis", "lvis-fixed"])
def test_the_thirteen_numbers(dialect: str, tmp_path: Path) -> None:
    for seed, expected in enumerate(ANSWERS[dialect]):
        card = ee.score(*files(seed, tmp_path), dialect=dialect, metrics=["mAP"])
        result = card.to_lvis()
        assert result["names"] == ANSWERS["names"]
        assert [value.hex() for value in result["stats"]] == expected, seed


def test_tables_and_files_give_the_same(tmp_path: Path) -> None:
    for seed in (2, 3, 5, 25):
        predictions, truths, more = tables(seed)
        card = ee.score(predictions, truths, dialect="lvis", **more)
        assert [value.hex() for value in card.to_lvis()["stats"]] == ANSWERS["lvis"][seed]
        assert not card.warnings


def as_polygons(seed: int, folder: Path) -> tuple[str, str]:
    """Write files whose boxes are triangles, in images of sufficient size."""
    paths = files(seed, folder)
    for path in map(Path, paths):
        content = json.loads(path.read_text())
        for row in content["annotations"] if isinstance(content, dict) else content:
            x, y, w, h = (max(value, 1.0) for value in row.pop("bbox"))
            row["segmentation"] = [[x, y, x + w, y, x, y + h]]
        for image in content["images"] if isinstance(content, dict) else ():
            image |= {"width": 30, "height": 24}
        path.write_text(json.dumps(content))
    return paths


def test_boundaries_have_a_separate_dialect(tmp_path: Path) -> None:
    differing = 0
    for seed in (5, 22):  # boxes of 6 or 12 pixels
        paths = as_polygons(seed, tmp_path)
        own, by_type, masks = (
            ee.score(*paths, dialect=dialect, iou_type=kind).to_lvis()
            for dialect, kind in (
                ("lvis-boundary", "boundary"), ("lvis", "boundary"), ("lvis", "segm"),
            )
        )  # fmt: skip
        assert len(own["names"]) == 13
        assert (own["names"], own["stats"]) == (by_type["names"], by_type["stats"])
        assert own["precision"].tobytes() == by_type["precision"].tobytes()
        differing += own["stats"] != masks["stats"]
    assert differing
    assert ee.score(*paths, dialect="lvis-boundary").to_lvis()["stats"] == own["stats"]
    with pytest.raises(ee.OptionError, match="iou_type='boundary'"):
        ee.score(*paths, dialect="lvis-boundary", iou_type="bbox")


def test_frames_and_stored_cards_have_the_numbers(tmp_path: Path) -> None:
    card = ee.score(*files(25, tmp_path), dialect="lvis")
    live = card.to_lvis()
    stored = ee.load(card.save(tmp_path / "run")).to_lvis()
    assert (stored["names"], stored["stats"]) == (live["names"], live["stats"])
    with pytest.raises(ee.ResultError, match="score again"):
        stored["precision"]
    numbers = dict(zip(live["names"], live["stats"], strict=True))
    for name in ("APr", "APc", "APf"):
        value = card.value(name, area="all")
        assert numbers[name] == (-1.0 if value is None else value)
    assert live["precision"].shape == (10, 101, len(card.labels), 4)
    assert live["recall"].shape == (10, len(card.labels), 4)


BOX = {"xmin": 0.0, "ymin": 0.0, "xmax": 9.0, "ymax": 9.0}
ELSEWHERE = {"xmin": 50.0, "ymin": 0.0, "xmax": 59.0, "ymax": 9.0}


def judged(predictions: list[dict[str, Any]], **lists: list[str]) -> float | None:
    """Compute AP at 0.5 of one datum with one object of label a."""
    datums = pl.DataFrame(
        {"datum_id": [1], "negative_labels": [[]], "partial_labels": [[]]}
        | {name: [value] for name, value in lists.items()},
        schema_overrides=dict.fromkeys(("negative_labels", "partial_labels"), pl.List(pl.String)),
    )
    truth = pl.DataFrame([{"datum_id": 1, "label_value": "a", **BOX}])
    rows = pl.DataFrame([{"datum_id": 1, **one} for one in predictions])
    card = ee.score(rows, truth, dialect="lvis", datums=datums, metrics=["mAP"])
    return card.value("mAP", iou_threshold=0.5, area="all")


def test_unverified_labels_do_not_count() -> None:
    right = {"label_value": "a", "score": 0.5, **BOX}
    wrong = {"label_value": "a", "score": 0.9, **ELSEWHERE}
    assert judged([right]) == pytest.approx(1.0)
    assert judged([right, wrong]) == pytest.approx(0.5)
    assert judged([right, wrong], partial_labels=["a"]) == pytest.approx(1.0)
    flat = {"label_value": "a", "score": 0.9, **ELSEWHERE, "xmax": 50.0}
    assert judged([right, flat]) == pytest.approx(1.0)


def test_crowds_are_not_read() -> None:
    predictions, truths, more = tables(2)
    card = ee.score(predictions, truths, dialect="lvis", **more)
    crowds = truths.with_columns(iscrowd=1)
    same = ee.score(predictions, crowds, dialect="lvis", **more)
    assert same.to_lvis()["stats"] == card.to_lvis()["stats"]
    assert "all_crowds" not in [one.code for one in same.findings]


def test_names_of_recall_have_the_cap() -> None:
    predictions, truths, more = tables(2)
    card = ee.score(predictions, truths, dialect="lvis", max_detections=[5], **more)
    assert card.to_lvis()["names"][-4:] == ["AR@5", "ARs@5", "ARm@5", "ARl@5"]


def test_skipped_labels_are_noted() -> None:
    predictions, truths, more = tables(25)
    card = ee.score(predictions, truths, dialect="lvis", **more)
    codes = [one.code for one in card.findings]
    assert {"beyond_cap", "not_judged"} <= {*codes}
    predictions, truths, more = tables(1)  # in which every ground truth has an area
    card = ee.score(predictions, truths, dialect="lvis", **more)
    assert {one.code: one.count for one in card.findings}["not_judged"] == 4


def test_lists_of_labels_are_required() -> None:
    predictions, truths, more = tables(2)
    with refused("column_missing", table="datums", match="'negative_labels'.*'partial_labels'"):
        ee.score(predictions, truths, dialect="lvis")
    words = more["datums"].with_columns(
        pl.Series("negative_labels", [["x"]] * more["datums"].height)
    )
    with refused("types_differ", column="negative_labels"):
        ee.score(predictions, truths, dialect="lvis", datums=words, labels=more["labels"])


def test_one_cap_of_a_datum() -> None:
    predictions, truths, more = tables(2)
    with refused("option_unfit", ee.OptionError, option="max_detections"):
        ee.score(predictions, truths, dialect="lvis", max_detections=[10, 300], **more)


@pytest.mark.parametrize("most", [1, 3, 7])
def test_cap_per_label(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equals a table with only the best rows of each label, for any lists."""
    own = dialects.DIALECTS["lvis-fixed"]
    rules = msgspec.structs.replace(own.rules, most_of_label=most)
    fewer = msgspec.structs.replace(own, rules=rules)
    get = registry.get
    monkeypatch.setattr(
        registry, "get", lambda task, name: fewer if name == own.name else get(task, name)
    )
    for seed in range(12):
        predictions, truths, more = tables(seed)
        predictions = predictions.with_columns(
            pl.Series(
                "score", predictions["score"] + 1e-6 * pl.arange(predictions.height, eager=True)
            )
        )  # no ties, which each tool orders differently
        best = predictions.sort("score", descending=True).group_by("category_id").head(most)
        cut = ee.score(predictions, truths, dialect="lvis-fixed", metrics=["mAP"], **more)
        want = ee.score(best, truths, dialect="lvis", metrics=["mAP"], **more)
        assert cut.to_lvis()["stats"] == want.to_lvis()["stats"], seed
