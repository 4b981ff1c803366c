"""The dialects of Open Images against a slow oracle of TensorFlow's published rules.

During development, 2,100 seeds were compared with it.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from oracles.open_images import average_precision
from refusals import refused

import evalengine as ee

CORNERS = ("xmin", "ymin", "xmax", "ymax")
WEIGHTS = {"openimages": 1, "openimages-v2": 0}


def random_rows(
    seed: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Make predictions, truths and images: groups, difficult ones, ties, empty boxes."""
    r = np.random.default_rng(seed)
    labels = [f"{seed:04} {name}" for name in "abc"[: int(r.integers(1, 4))]]
    images = [f"{seed:04} {i}" for i in range(int(r.integers(1, 5)))]
    size = int(r.choice([3, 6, 20]))

    def row(low: int, **more: Any) -> dict[str, Any]:
        corner = r.integers(0, size, 2)
        far = corner + r.integers(low, size, 2)
        corners = (float(x) / 64 for x in (*corner, *far))
        named = {"datum_id": str(r.choice(images)), "label_value": str(r.choice(labels))}
        return named | dict(zip(CORNERS, corners, strict=True)) | more

    hard, many = float(r.choice([0, 0.2])), float(r.choice([0, 0.3, 0.7]))
    truths = [
        row(1, difficult=int(r.random() < hard), is_group_of=0) for _ in range(r.integers(1, 12))
    ]
    for truth in truths:
        if not truth["difficult"]:
            truth["is_group_of"] = int(r.random() < many)
    tied = bool(r.random() < 0.5)
    result = []
    for _ in range(int(r.integers(1, 40))):
        one = row(0 if r.random() < 0.1 else 1)
        if r.random() < 0.6:
            one = {**truths[int(r.integers(len(truths)))]}
            shift = r.integers(0, 3, 2) / 64 * (r.random() < 0.5)
            one["xmin"], one["ymax"] = one["xmin"] - shift[0], one["ymax"] + shift[1]
        one["score"] = float(r.integers(0, 5) / 4 if tied else r.random())
        result.append({k: one[k] for k in ("datum_id", "label_value", *CORNERS, "score")})
    lists = [
        {"datum_id": image}
        | {
            name: [label for label in labels if r.random() < 0.3]
            for name in ("positive_labels", "negative_labels")
        }
        for image in images
    ]
    return result, truths, lists


def compare(dialect: str, seeds: range, **options: Any) -> None:
    """Compare AP of every label with the oracle."""
    every = zip(*map(random_rows, seeds), strict=True)
    predictions, truths, lists = (list(chain.from_iterable(parts)) for parts in every)
    schema = dict.fromkeys(("positive_labels", "negative_labels"), pl.List(pl.String))
    datums = pl.DataFrame(lists, schema_overrides=schema)
    ious = [0.5, 0.75]
    inputs = pl.DataFrame(predictions), pl.DataFrame(truths)
    options |= {"dialect": dialect, "datums": datums, "iou_thresholds": ious}
    card = ee.score(*inputs, metrics=["AP"], **options)
    rows = card.metrics.select("label_value", "iou_threshold", "value")
    assert {*inputs[1]["label_value"]} <= {*rows["label_value"]}
    for label, iou, value in rows.iter_rows():
        ours: dict[str, Any] = {}
        theirs: dict[str, Any] = {}
        for one in predictions:
            if one["label_value"] == label:
                box = tuple(one[c] for c in CORNERS)
                ours.setdefault(one["datum_id"], []).append((one["score"], box))
        for one in truths:
            if one["label_value"] == label:
                flags = bool(one["difficult"]), bool(one["is_group_of"])
                box = tuple(one[c] for c in CORNERS)
                theirs.setdefault(one["datum_id"], []).append((box, *flags))
        verified = None
        if dialect == "openimages":
            verified = {
                one["datum_id"]
                for one in lists
                if label in one["positive_labels"] + one["negative_labels"]
            }
        want = average_precision(ours, theirs, iou, weight=WEIGHTS[dialect], verified=verified)
        assert (value is None) == (want is None), (label, iou)
        assert value == pytest.approx(want, abs=1e-12), (label, iou)


@pytest.mark.parametrize("dialect", WEIGHTS)
def test_random_tables(dialect: str) -> None:
    compare(dialect, range(60))
    compare(dialect, range(60, 75), convert_to="polygon")


BOX = {"datum_id": "i", "label_value": "a", "xmin": 0.0, "ymin": 0.0, "xmax": 0.5, "ymax": 0.5}
GROUP = BOX | {"xmin": 0.5, "xmax": 1.0, "IsGroupOf": 1}
IN_GROUP = [BOX | {"xmin": 0.6, "xmax": 0.7, "score": score} for score in (0.5, 0.4, 0.3)]


def ap(
    dialect: str, predictions: list[dict[str, Any]], truths: list[dict[str, Any]], **lists: Any
) -> Any:
    """Compute AP of label a, with all notes."""
    datums = {"datum_id": ["i"], "negative_labels": [[]]} | {k: [v] for k, v in lists.items()}
    schema = dict.fromkeys([name for name in datums if name != "datum_id"], pl.List(pl.String))
    sides = pl.DataFrame(predictions), pl.DataFrame(truths)
    card = ee.score(*sides, dialect=dialect, datums=pl.DataFrame(datums, schema_overrides=schema))
    return card.value("AP", label_value="a")


def test_a_group_counts_once_or_is_ignored() -> None:
    single = BOX | {"IsGroupOf": 0}
    result = [*IN_GROUP, BOX | {"score": 0.1}]
    assert ap("openimages", result, [single, GROUP]) == 1.0
    assert ap("openimages", IN_GROUP, [single, GROUP]) == 0.5
    assert ap("openimages-v2", result, [single, GROUP]) == 1.0
    assert ap("openimages-v2", IN_GROUP, [GROUP]) is None


def test_images_that_the_ground_truths_do_not_list() -> None:
    truth = [BOX | {"IsGroupOf": 0}]
    result = [BOX | {"score": 0.5}, BOX | {"score": 0.9, "datum_id": "elsewhere"}]
    assert ap("openimages", result, truth) == 1.0
    assert ap("openimages-v2", result, truth) == 0.5


def test_duplicates_may_match_a_group() -> None:
    around = GROUP | {"xmin": 0.0}
    twice = [
        BOX | {"score": 0.9},
        BOX | {"score": 0.8},
        BOX | {"ymin": 0.5, "ymax": 1, "score": 0.7},
    ]
    assert ap("openimages-v2", twice[:2], [BOX | {"IsGroupOf": 0}, around]) == 1.0
    predictions = {row["outcome"] for row in outcomes(twice, [BOX | {"IsGroupOf": 0}, around])}
    assert predictions == {"tp", "fp_hallucination"}


def outcomes(
    predictions: list[dict[str, Any]], truths: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    datums = pl.DataFrame({"datum_id": ["i"], "negative_labels": [["x"]]})
    sides = pl.DataFrame(predictions), pl.DataFrame(truths)
    card = ee.score(*sides, dialect="openimages", datums=datums, metrics=["Outcomes"])
    return card.frame("outcomes").rows(named=True)


def test_unverified_labels_do_not_count() -> None:
    one = BOX | {"score": 0.5}
    odd = BOX | {"label_value": "b", "score": 0.9, "datum_id": "j"}
    lists = {"datum_id": ["i", "j"], "positive_labels": [[], []]}
    for verified, value in ((["b"], 0.5), ([], 1.0)):
        datums = pl.DataFrame(
            lists | {"negative_labels": [[], verified]},
            schema_overrides=dict.fromkeys(
                ("positive_labels", "negative_labels"), pl.List(pl.String)
            ),
        )
        sides = (
            pl.DataFrame([one | {"label_value": "b"}, odd]),
            pl.DataFrame([BOX | {"label_value": "b"}]),
        )
        card = ee.score(*sides, dialect="openimages", datums=datums)
        assert card.value("AP", label_value="b") == value
    with pytest.raises(ee.InputError, match="'negative_labels' missing"):
        ee.score(pl.DataFrame([one]), pl.DataFrame([BOX]), dialect="openimages")


PETS = {"LabelName": "pet", "Subcategory": [{"LabelName": "dog"}]}
TREE = {
    "LabelName": "entity",
    "Subcategory": [
        {"LabelName": "animal", "Subcategory": [{"LabelName": "cat"}, PETS]},
        {"LabelName": "owned", "Subcategory": [PETS], "Part": [{"LabelName": "purse"}]},
        {"LabelName": "twice", "Subcategory": [{"LabelName": "owned", "Subcategory": [PETS]}]},
    ],
}


def test_labels_include_their_ancestors() -> None:
    """Lists as TensorFlow's tool derives them from the same tree."""
    labels = ["dog", "cat", "owned", "animal"]
    truth = pl.DataFrame({"datum_id": ["i"] * 4, "label_value": labels, "xmin": range(4)})
    datums = pl.DataFrame(
        {
            "datum_id": ["i", "j"],
            "positive_labels": [["pet"], []],
            "negative_labels": [["animal"], []],
        },
        schema_overrides=dict.fromkeys(("positive_labels", "negative_labels"), pl.List(pl.String)),
    )
    rows, images = ee.expand_hierarchy(truth, TREE, datums=datums)
    above = {x: rows.filter(pl.col("xmin") == x)["label_value"].to_list() for x in range(4)}
    # a class that is in the tree twice counts twice among its ancestors
    dog = ["dog", "pet", "animal", "pet", "owned", "pet", "owned", "twice"]
    assert above == {0: dog, 1: ["cat", "animal"], 2: ["owned", "twice"], 3: ["animal"]}
    assert images is not None
    assert images["positive_labels"].to_list() == [["pet", "animal", "owned", "twice"], []]
    assert [set(one) for one in images["negative_labels"]] == [
        {"animal", "cat", "pet", "dog"},
        set(),
    ]
    with refused("unknown_label", count=1, value="purse"):
        ee.expand_hierarchy(truth.with_columns(label_value=pl.lit("purse")), TREE)


def test_files_of_the_data_set(tmp_path: Path) -> None:
    for side, files in FILES.items():
        (tmp_path / side).mkdir()
        for name, text in files.items():
            (tmp_path / side / name).write_text(text)
    sides = tmp_path / "found", tmp_path / "truth"
    card = ee.score(*sides, dialect="openimages")
    values = {label: card.value("AP", label_value=f"/m/{label}") for label in ("dog", "cat")}
    assert values == {"dog": 0.5, "cat": 0.5}
    tree = tmp_path / "tree.json"
    tree.write_text(json.dumps({"LabelName": "all", "Subcategory": [ANIMALS]}), "utf-8-sig")
    rows, images = ee.expand_hierarchy(tmp_path / "truth", tree)
    assert rows["label_value"].to_list().count("/m/animal") == rows.height / 2 == 3
    assert images is not None
    assert images["positive_labels"].to_list() == [[], [], ["/m/dog", "/m/animal"]]
    (tmp_path / "truth" / "labels.csv").write_text("ImageID,LabelName,Confidence\na,/m/x,2\n")
    with refused("file_malformed", ee.ReadError):
        ee.score(*sides, dialect="openimages")


ANIMALS = {
    "LabelName": "/m/animal",
    "Subcategory": [{"LabelName": f"/m/{x}"} for x in ("dog", "cat")],
}
FILES = {
    "found": {
        "found.csv": """\
ImageID,LabelName,Score,XMin,XMax,YMin,YMax
a,/m/dog,0.9,0.1,0.5,0.1,0.5
a,/m/cat,0.8,0.2,0.4,0.2,0.4
a,/m/cat,0.7,0.5,0.8,0.5,0.8
a,/m/fish,0.7,0.5,0.8,0.5,0.8
b,/m/cat,0.95,0.6,0.8,0.6,0.8
c,/m/cat,0.99,0.6,0.8,0.6,0.8
"""
    },
    "truth": {
        "boxes.csv": """\
ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf
a,/m/dog,0.1,0.5,0.1,0.5,0
a,/m/cat,0.2,0.9,0.2,0.9,1
b,/m/dog,0.1,0.3,0.1,0.3,-1
""",
        "labels.csv": "ImageID,LabelName,Confidence\nb,/m/cat,0\nc,/m/dog,1\nc,/m/cat,0.5\n",
    },
}
