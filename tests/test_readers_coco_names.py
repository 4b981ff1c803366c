"""Predictions as a complete COCO file, with other ids of images and categories."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from coco_masks import random_files
from refusals import noted, refused

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.converting import convert_coco


def complete_file(truths: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn results into a complete COCO file."""
    rows = [{**row, "id": i, "area": 1.0, "iscrowd": 0} for i, row in enumerate(results, 1)]
    return {**copy.deepcopy({k: truths[k] for k in ("images", "categories")}), "annotations": rows}


def named(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return random ground truths whose images and categories have names, and results."""
    truths, results = random_files(seed)
    for image in truths["images"]:
        image["file_name"] = f"frames/{image['id']}.jpg"
    for category in truths["categories"]:
        category["name"] = f"class {category['id']}"
    return truths, results


def moved(file: dict[str, Any], seed: int, offset: int = 0) -> dict[str, Any]:
    """Assign other ids to images and categories: permuted, or all shifted by an offset."""
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


def codes(card: ee.Scorecard) -> list[str]:
    return [one.code for one in card.findings]


def score(predictions: Any, truths: Any, folder: Path, **more: Any) -> ee.Scorecard:
    paths = []
    for name, content in (("p.json", predictions), ("t.json", truths)):
        (folder / name).write_text(json.dumps(content))
        paths.append(str(folder / name))
    return ee.score(*paths, dialect="coco", iou_type="bbox", **more)


def only(file: dict[str, Any], what: str, seed: int) -> dict[str, Any]:
    """Assign other ids only to images or only to categories."""
    both = moved(file, seed)
    field = {"images": "image_id", "categories": "category_id"}[what]
    rows = [
        {**row, field: new[field]}
        for row, new in zip(file["annotations"], both["annotations"], strict=True)
    ]
    return {**file, what: both[what], "annotations": rows}


@pytest.mark.parametrize("offset", [0, 100_000])
@pytest.mark.parametrize("seed", range(3))
def test_permuted_ids_give_the_same_values(seed: int, offset: int, tmp_path: Path) -> None:
    truths, results = named(seed)
    own = complete_file(truths, results)
    plain = score(own, truths, tmp_path)
    assert "ids_matched_by_name" not in codes(plain)
    card = score(moved(own, seed, offset), truths, tmp_path)
    assert card.to_coco()["stats"] == plain.to_coco()["stats"]
    assert codes(card).count("ids_matched_by_name") == 2


def test_folders_count_in_names_only_if_files_would_be_the_same(tmp_path: Path) -> None:
    truths, results = named(1)
    own = moved(complete_file(truths, results), 1)
    for image in own["images"]:
        image["file_name"] = "elsewhere/" + image["file_name"].split("/")[-1]
    want = score(complete_file(truths, results), truths, tmp_path).to_coco()["stats"]
    assert score(own, truths, tmp_path).to_coco()["stats"] == want


def test_ambiguous_names_are_refused(tmp_path: Path) -> None:
    truths, results = named(2)
    own = moved(complete_file(truths, results), 2)
    twice = copy.deepcopy(own)
    for image in twice["images"][:2]:
        image["file_name"] = truths["images"][0]["file_name"]
    with refused("ids_differ", ee.InputError, count=12):
        score(twice, truths, tmp_path)
    own["categories"][0]["name"] = "another"
    with refused("ids_differ", ee.InputError, count=4):
        score(own, truths, tmp_path)


@pytest.mark.parametrize("what", ["images", "categories"])
@pytest.mark.parametrize("seed", [4, 5])
def test_permuted_ids_of_one_kind(what: str, seed: int, tmp_path: Path) -> None:
    """This includes datums given as a separate table, and bounded memory."""
    truths, results = named(seed)
    own = complete_file(truths, results)
    want = score(own, truths, tmp_path).to_coco()["stats"]
    predictions = only(own, what, seed)
    card = score(predictions, truths, tmp_path)
    assert card.to_coco()["stats"] == want
    assert codes(card).count("ids_matched_by_name") == 1
    ids = pl.DataFrame({"datum_id": [image["id"] for image in truths["images"]]})
    datums = ids.with_columns(weather=pl.lit("rain"))
    card = score(predictions, truths, tmp_path, datums=datums, by=["weather"])
    assert card.to_coco()["stats"] == want


def test_tables_of_ground_truths_with_lists(tmp_path: Path) -> None:
    """Ground truths are tables, whose datums and labels have the names."""
    truths, results = named(6)
    own = complete_file(truths, results)
    want = score(own, truths, tmp_path).to_coco()["stats"]
    convert_coco(tmp_path / "t.json", out=tmp_path / "tables")
    (tmp_path / "p.json").write_text(json.dumps(moved(own, 6)))
    tables = [tmp_path / "tables" / f"{n}.parquet" for n in ("groundtruths", "datums", "labels")]
    card = ee.score(
        tmp_path / "p.json", tables[0], datums=tables[1], labels=tables[2], dialect="coco",
        iou_type="bbox",
    )  # fmt: skip
    assert card.to_coco()["stats"] == want


def test_names_in_another_spelling(tmp_path: Path) -> None:
    """Other suffixes and cases are equal names if all names remain distinct."""
    truths, results = named(7)
    own = complete_file(truths, results)
    want = score(own, truths, tmp_path).to_coco()["stats"]
    for one in own["images"]:
        one["file_name"] = one["file_name"].removeprefix("frames/").replace(".jpg", ".png")
    for one in own["categories"]:
        one["name"] = one["name"].replace("class ", "Class_")
    card = score(own, truths, tmp_path)
    assert card.to_coco()["stats"] == want
    assert not any("differ" in note for note in card.notes)
    assert score(moved(own, 7), truths, tmp_path).to_coco()["stats"] == want
    for one in own["images"]:  # a name in two folders is ambiguous without the folder
        one["file_name"] = f"{one['id'] % 2}/{one['id'] // 2}.jpg"
    other = copy.deepcopy(truths)
    other["images"] = copy.deepcopy(own["images"])
    own["images"][0]["file_name"], own["images"][2]["file_name"] = (
        own["images"][2]["file_name"], own["images"][0]["file_name"],
    )  # fmt: skip
    noted(score(own, other, tmp_path), "ids_matched_by_name", count=2)


def test_missing_names_are_noted_or_refused(tmp_path: Path) -> None:
    truths, results = named(8)
    own = complete_file(truths, results)
    for image in own["images"]:
        del image["file_name"], image["height"], image["width"]
    for category in own["categories"]:
        del category["name"]
    card = score(own, truths, tmp_path)
    notes = [one.message for one in card.findings if one.code == "ids_without_names"]
    assert [note.split()[0] for note in notes] == ["categories", "images"]
    assert card.to_coco()["stats"] == score(results, truths, tmp_path).to_coco()["stats"]
    bare = moved(complete_file(truths, results), 8)
    for image in bare["images"]:
        del image["file_name"]
    with refused("sizes_differ", ee.InputError, count=9, first=1):
        score(bare, truths, tmp_path)
    some = moved(complete_file(truths, results), 8)
    nameless = next(row["image_id"] for row in some["annotations"])
    next(one for one in some["images"] if one["id"] == nameless).pop("file_name")
    with refused("ids_differ", ee.InputError, count=11):
        score(some, truths, tmp_path)
    unlisted = moved(complete_file(truths, results), 8)
    unlisted["images"] = [one for one in unlisted["images"] if one["id"] != nameless]
    with refused("ids_differ", ee.InputError, count=11):
        score(unlisted, truths, tmp_path)


def test_names_that_overlap_in_part(tmp_path: Path) -> None:
    """More images on either side are no contradiction if their ids are unused."""
    truths, results = named(9)
    own = complete_file(truths, results)
    want = score(own, truths, tmp_path).to_coco()["stats"]
    more = moved(own, 9)
    more["images"].append({"id": 777, "file_name": "frames/other.jpg", "height": 9, "width": 9})
    more["annotations"].append({**more["annotations"][0], "image_id": 777, "id": 10**6})
    card = score(more, truths, tmp_path)
    assert card.to_coco()["stats"] == want
    noted(card, "undeclared_left_out", count=1)
    more["images"][-1]["id"] = more["annotations"][-1]["image_id"] = 0
    nameless = copy.deepcopy(truths)
    nameless["images"].append({"id": 0, "height": 9, "width": 9})
    with refused("ids_differ", ee.InputError, count=12):
        score(more, nameless, tmp_path)


def test_an_lvis_file_scored_as_cocos_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truths, results = named(3)
    assert score(results, truths, tmp_path).warnings == ()
    for image in truths["images"]:
        image |= {"neg_category_ids": [1], "not_exhaustive_category_ids": []}
    card = score(results, truths, tmp_path)
    assert ["LVIS" in warning for warning in card.warnings] == [True]
    assert card.warnings[0] in card.notes
    report = ee.check(str(tmp_path / "p.json"), str(tmp_path / "t.json"))
    assert ["LVIS" in warning for warning in report.warnings] == [True]
    with pytest.warns(UserWarning, match="LVIS"):
        convert_coco(tmp_path / "t.json", out=tmp_path / "tables")
    assert main(["convert", "coco", str(tmp_path / "t.json"), "-o", str(tmp_path / "more")]) == 0
    output = capsys.readouterr().err
    assert output.startswith("warning: ")
    assert "LVIS" in output


def texts(file: dict[str, Any], what: str) -> dict[str, Any]:
    """Use strings as ids of images or of categories."""
    field = {"images": "image_id", "categories": "category_id"}[what]
    return {
        **file,
        what: [{**one, "id": f"x{one['id']:09d}"} for one in file[what]],
        "annotations": [{**row, field: f"x{row[field]:09d}"} for row in file["annotations"]],
    }


@pytest.mark.parametrize("what", ["images", "categories", "both"])
def test_ids_of_texts_next_to_other_names(what: str, tmp_path: Path) -> None:
    """Results name images and categories only by their ids, as COCO Camera Traps does."""
    truths, results = named(3)
    plain = score(results, truths, tmp_path).to_coco()["stats"]
    own = complete_file(truths, results)
    for one in ("images", "categories") if what == "both" else (what,):
        own, truths = texts(own, one), texts(truths, one)
    keys = ("image_id", "category_id", "bbox", "score", "segmentation")
    rows = [{key: row[key] for key in keys if key in row} for row in own["annotations"]]
    card = score(rows, truths, tmp_path)
    assert card.to_coco()["stats"] == plain
    assert "ids_matched_by_name" not in codes(card)
    assert ee.score(rows, truths, dialect="coco", iou_type="bbox").to_coco()["stats"] == plain
    assert main(["check", str(tmp_path / "p.json"), str(tmp_path / "t.json")]) == 0
    if what != "images":
        return
    frames = [convert_coco(tmp_path / "t.json", tmp_path / "p.json", out=tmp_path / "out")]
    tables = [pl.read_parquet(tmp_path / "out" / name) for name in frames[0]]
    truth, datums = (next(t for t in tables if name in t.columns) for name in ("area", "width"))
    card = ee.score(rows, truth, datums=datums, dialect="coco", iou_type="bbox")
    assert card.to_coco()["stats"] == plain


def test_ids_of_texts_against_names_of_files(tmp_path: Path) -> None:
    """Names are still compared if string ids match nothing, or fewer."""
    truths, results = named(4)
    plain = score(results, truths, tmp_path).to_coco()["stats"]
    files = {one["id"]: one["file_name"] for one in truths["images"]}
    rows = [{**row, "image_id": files[row["image_id"]]} for row in results]
    other = texts(truths, "images")
    card = score(rows, other, tmp_path)
    assert card.to_coco()["stats"] == plain
    assert codes(card).count("ids_matched_by_name") == 1


def test_voc_files_of_another_name_than_their_contents_give(tmp_path: Path) -> None:
    names = ["a", "b"]
    for name in names:
        (tmp_path / "xml").mkdir(exist_ok=True)
        (tmp_path / "xml" / f"{name}.xml").write_text(
            f"<annotation><filename>{names.index(name)}.jpg</filename><object><name>car</name>"
            "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object>"
            "</annotation>"
        )
    found = pl.DataFrame(
        {"datum_id": names, "label_value": "car", "score": [0.9, 0.8],
         "xmin": 1.0, "ymin": 2.0, "xmax": 9.0, "ymax": 8.0}
    )  # fmt: skip
    coco = {
        "images": [{"id": i + 7, "file_name": f"{name}.jpg"} for i, name in enumerate(names)],
        "categories": [{"id": 1, "name": "car"}],
        "annotations": [],
    }
    for row in found.rows(named=True):
        box = [row["xmin"], row["ymin"], row["xmax"] - row["xmin"], row["ymax"] - row["ymin"]]
        coco["annotations"].append(
            {"id": len(coco["annotations"]) + 1, "image_id": names.index(row["datum_id"]) + 7,
             "category_id": 1, "bbox": box, "area": 48, "iscrowd": 0, "score": row["score"]}
        )  # fmt: skip
    (tmp_path / "p.json").write_text(json.dumps(coco))
    for predictions in (found, str(tmp_path / "p.json")):
        card = ee.score(predictions, str(tmp_path / "xml"), dialect="voc2012")
        assert card.value("mAP") == 1


def test_coco_converted_to_tables_and_back_is_the_same(tmp_path: Path) -> None:
    document = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": 64, "height": 48} for i in (3, 5)],
        "categories": [{"id": 7, "name": "car"}, {"id": 9, "name": "van"}],
        "annotations": [
            {"image_id": 3, "category_id": 7, "bbox": [1.1, 2.2, 3.3, 4.4], "area": 14.5,
             "iscrowd": 0, "id": 4},
        ],
    }  # fmt: skip
    path, tables, back = tmp_path / "a.json", tmp_path / "tables", tmp_path / "back"
    path.write_text(json.dumps(document))
    ee.convert(path, out=tables)
    sources = {name: tables / f"{name}.parquet" for name in ("datums", "labels")}
    ee.convert(tables / "groundtruths.parquet", out=back, to="coco", **sources)
    text = (back / "groundtruths.json").read_text()
    assert json.loads(text) == document
    assert "64.0" not in text
