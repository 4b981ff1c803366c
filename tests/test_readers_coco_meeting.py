"""Predictions as a COCO file with images and categories of their own, whose ids contradict."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from coco_masks import random_files

import evalengine as ee


def whole(truths: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Results as a COCO file of their own."""
    rows = [{**row, "id": i, "area": 1.0, "iscrowd": 0} for i, row in enumerate(results, 1)]
    return {**copy.deepcopy({k: truths[k] for k in ("images", "categories")}), "annotations": rows}


def named(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Random ground truths whose images and categories have names, and results."""
    truths, results = random_files(seed)
    for image in truths["images"]:
        image["file_name"] = f"frames/{image['id']}.jpg"
    for category in truths["categories"]:
        category["name"] = f"class {category['id']}"
    return truths, results


def moved(file: dict[str, Any], seed: int, offset: int = 0) -> dict[str, Any]:
    """The same with other ids for images and categories: permuted, or all beyond an offset."""
    chance = random.Random(seed)
    out = copy.deepcopy(file)
    for what, field in (("images", "image_id"), ("categories", "category_id")):
        ids = [one["id"] for one in out[what]]
        start = chance.randrange(1, len(ids))
        other = ids[start:] + ids[:start]
        new = {old: to + offset for old, to in zip(ids, other, strict=True)}
        for one in out[what]:
            one["id"] = new[one["id"]]
        for row in out["annotations"]:
            row[field] = new[row[field]]
    return out


def score(predictions: Any, truths: Any, folder: Path) -> ee.Scorecard:
    paths = []
    for name, content in (("p.json", predictions), ("t.json", truths)):
        (folder / name).write_text(json.dumps(content))
        paths.append(str(folder / name))
    return ee.score(*paths, dialect="coco", iou_type="bbox")


@pytest.mark.parametrize("offset", [0, 100_000])
@pytest.mark.parametrize("seed", range(3))
def test_permuted_ids_give_the_same_numbers(seed: int, offset: int, tmp_path: Path) -> None:
    truths, results = named(seed)
    own = whole(truths, results)
    plain = score(own, truths, tmp_path)
    assert not any("differ between the two files" in note for note in plain.notes)
    card = score(moved(own, seed, offset), truths, tmp_path)
    assert card.to_coco()["stats"] == plain.to_coco()["stats"]
    assert sum("differ between the two files" in note for note in card.notes) == 2
    assert any("matched by file_name" in note for note in card.notes)


def test_other_folders_are_other_names_only_where_files_would_be_the_same(tmp_path: Path) -> None:
    truths, results = named(1)
    own = moved(whole(truths, results), 1)
    for image in own["images"]:
        image["file_name"] = "elsewhere/" + image["file_name"].split("/")[-1]
    want = score(whole(truths, results), truths, tmp_path).to_coco()["stats"]
    assert score(own, truths, tmp_path).to_coco()["stats"] == want


def test_names_that_do_not_tell_are_refused(tmp_path: Path) -> None:
    truths, results = named(2)
    own = moved(whole(truths, results), 2)
    twice = copy.deepcopy(own)
    for image in twice["images"][:2]:
        image["file_name"] = truths["images"][0]["file_name"]
    with pytest.raises(ee.InputError, match="some file_name stands more than once"):
        score(twice, truths, tmp_path)
    own["categories"][0]["name"] = "another"
    with pytest.raises(ee.InputError, match="'another' is only in the predictions, and its id"):
        score(own, truths, tmp_path)


def test_an_lvis_file_is_not_scored_as_cocos_without_a_word(tmp_path: Path) -> None:
    truths, results = named(3)
    assert score(results, truths, tmp_path).warnings == ()
    for image in truths["images"]:
        image |= {"neg_category_ids": [1], "not_exhaustive_category_ids": []}
    card = score(results, truths, tmp_path)
    assert ["LVIS" in warning for warning in card.warnings] == [True]
    assert card.warnings[0] in card.notes
    report = ee.check(str(tmp_path / "p.json"), str(tmp_path / "t.json"))
    assert ["LVIS" in warning for warning in report.warnings] == [True]
