"""Label maps in every form, and their effect on labels of both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refused
from small_tables import ground_truths, kinds, load, note, predictions, refusal

import evalengine as ee
from evalengine.ingest.relabel import apply_label_map, read_label_map, relabel
from evalengine.schemas.errors import InputError

ANY_KEY = [(None, "van", None, "car"), (None, "truck", None, "car")]
WITH_KEY = [("class", "van", "kind", "car"), (None, "truck", None, "car")]

FORMS: list[tuple[Any, list[tuple[Any, ...]]]] = [
    ({"van": "car", "truck": "car"}, ANY_KEY),
    ([("van", "car"), ["truck", "car"]], ANY_KEY),
    (["van=car", "truck = car"], ANY_KEY),
    ({("class", "van"): ("kind", "car"), "truck": "car"}, WITH_KEY),
    ([[["class", "van"], ["kind", "car"]], ["truck", "car"]], WITH_KEY),
    (["class:van=kind:car", "truck=car"], WITH_KEY),
    ("van=car", ANY_KEY[:1]),
    ({1: 2, 3: 2}, [(None, 1, None, 2), (None, 3, None, 2)]),
    ({("class", "van"): "car"}, [("class", "van", None, "car")]),
    ({"van": ("kind", "car")}, [(None, "van", "kind", "car")]),
]


@pytest.mark.parametrize(("form", "rows"), FORMS)
def test_every_form_is_one_table(form: Any, rows: list[tuple[Any, ...]]) -> None:
    frame = read_label_map(form)
    assert frame.columns == ["label_key", "label_value", "new_label_key", "new_label_value"]
    assert frame.rows() == rows
    assert frame.schema["label_key"] == pl.String


@pytest.mark.parametrize(
    ("suffix", "keyed"),
    [
        *(
            (suffix, keyed)
            for suffix in (".csv", ".parquet", ".json", "pairs.json")
            for keyed in (False, True)
        ),
        ("object.json", False),
    ],
)
def test_files_may_contain_label_maps(suffix: str, keyed: bool, tmp_path: Path) -> None:
    path = tmp_path / f"map{suffix}"
    table = pl.DataFrame({"label_value": ["van", "truck"], "new_label_value": ["car", "car"]})
    rows = ANY_KEY
    if keyed:
        table = table.with_columns(
            label_key=pl.Series(["class", None]), new_label_key=pl.Series(["kind", None])
        )
        rows = WITH_KEY
    if suffix == ".csv":
        table.write_csv(path)
    elif suffix == ".parquet":
        table.write_parquet(path)
    elif suffix == ".json":
        path.write_text(json.dumps(table.to_dicts()))
    elif suffix == "pairs.json":
        pairs = [["van", "car"], ["truck", "car"]]
        path.write_text(
            json.dumps([[["class", "van"], ["kind", "car"]], pairs[1]] if keyed else pairs)
        )
    else:
        path.write_text(json.dumps({"van": "car", "truck": "car"}), "utf-8-sig")
    assert read_label_map(path).rows() == rows
    assert read_label_map(str(path)).rows() == rows


def test_a_table_in_memory_is_a_label_map() -> None:
    table = pl.DataFrame({"label_value": [1, 2], "new_label_value": ["a", "b"]})
    assert read_label_map(table).rows() == [(None, 1, None, "a"), (None, 2, None, "b")]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (["van"], {"code": "option_value", "option": "label_map", "value": "van"}),
        (["=car"], {"code": "option_value", "option": "label_map", "value": "=car"}),
        (
            [("a", "b", "c")],
            {"code": "option_value", "option": "label_map", "value": ("a", "b", "c")},
        ),
        ({"van": 1.5}, {"code": "option_value", "option": "label_map", "value": 1.5}),
        ({"van": True}, {"code": "option_value", "option": "label_map", "value": True}),
        (
            {"van": ("a", "b", "c")},
            {"code": "option_value", "option": "label_map", "value": ("a", "b", "c")},
        ),
        (
            {"van": "car", 3: "bus"},
            {"code": "types_mixed", "option": "label_map", "values": ["van", 3]},
        ),
        (
            {"van": "car", "bus": 3},
            {"code": "types_mixed", "option": "label_map", "values": ["car", 3]},
        ),
    ],
)
def test_invalid_forms_are_refused(form: Any, words: dict[str, Any]) -> None:
    with refused(**words) as caught:
        read_label_map(form)
    if words["code"] != "types_mixed":
        assert "Write {'van': 'car'}" in str(caught.value)


def test_one_label_mapped_to_two_is_refused() -> None:
    with refused("map_contradicts", InputError, value="van", labels=["car", "bus"]):
        read_label_map(["van=car", "van=bus"])
    assert read_label_map(["van=car", "van=car"]).height == 1


def test_a_table_without_the_columns_is_refused() -> None:
    with refused("column_missing", InputError, column="new_label_value"):
        read_label_map(pl.DataFrame({"label_value": ["a"], "new_label": ["b"]}))


def test_a_table_with_holes_is_refused() -> None:
    with refused("null_values", InputError, count=1):
        read_label_map(pl.DataFrame({"label_value": ["a", None], "new_label_value": ["b", "c"]}))


def pairs(*rows: tuple[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=["label_key", "label_value"], orient="row")


def test_an_entry_with_the_key_wins_over_one_for_any_key() -> None:
    mapping = read_label_map({"van": "car", ("class", "van"): ("kind", "bus")})
    frame = apply_label_map(mapping, pairs(("class", "van"), ("other", "van"), ("class", "dog")))
    assert frame.rows() == [
        ("class", "van", "kind", "bus"),
        ("other", "van", "other", "car"),
        ("class", "dog", "class", "dog"),
    ]


def test_integers_written_as_text_are_integers_if_the_labels_are() -> None:
    both, _ = relabel(read_label_map(["1=2"]), {"predictions": pairs(("label", 1), ("label", 5))})
    assert both["predictions"].rows() == [("label", 1, "label", 2), ("label", 5, "label", 5)]


def test_integers_written_as_text_apply_to_the_side_that_contains_them() -> None:
    ours = predictions(label_value=[17, 18, 17])
    frames = load(ours, label_map=["17=cat", "18=dog"])
    assert frames.predictions["label_value"].to_list() == ["cat", "dog", "cat"]


def test_both_sides_are_mapped_and_then_match() -> None:
    ours = predictions(label_value=["van", "dog", "van"])
    frames = load(ours, label_map={"van": "cat"})
    assert kinds(frames) == set()
    assert frames.label_map is not None
    assert frames.label_map["predictions"].rows() == [
        ("label", "dog", "label", "dog"),
        ("label", "van", "label", "cat"),
    ]
    assert frames.predictions["label_value"].to_list() == ["van", "dog", "van"]


def test_a_key_may_change_so_that_sides_match() -> None:
    theirs = ground_truths(label_key=["class"] * 3)
    mapping = {("label", "cat"): ("class", "cat"), ("label", "dog"): ("class", "dog")}
    frames = load(theirs=theirs, label_map=mapping)
    assert frames.label_map is not None
    assert frames.label_map["predictions"]["new_label_key"].to_list() == ["class", "class"]


def test_unused_mapped_labels_are_noted_with_the_nearest() -> None:
    frames = load(label_map={"catt": "dog"})
    assert note(frames, "label_map_unused").endswith("mean 'cat'?")


def test_a_map_of_another_type_is_refused() -> None:
    message = refusal(label_map={1: 2})
    assert message.has("types_differ", column="label_map")
    assert "integers (1)," in message
    assert "('cat', 'dog')" in message


def test_a_map_merges_integers_and_strings() -> None:
    ours = predictions(label_value=[17, 18, 17])
    frames = load(ours, label_map={17: "cat", 18: "dog"})
    assert frames.predictions["label_value"].to_list() == ["cat", "dog", "cat"]
    assert frames.ground_truths["label_value"].to_list() == ["cat", "dog", "cat"]
    assert frames.label_map is None
    assert frames.predictions.columns == predictions().columns
    assert kinds(frames) == set()


def test_a_map_to_integers_and_strings_is_refused() -> None:
    ours = predictions(label_value=[17, 18, 17])
    message = refusal(ours, label_map={17: "cat"})
    assert message.has("labels_not_mapped", count=1, labels=[18])


def test_a_map_of_the_wrong_side_is_refused() -> None:
    ours = predictions(label_value=[17, 18, 17])
    assert refusal(ours, label_map={"cat": "dog"}).has("types_differ", column="label_value")


def test_declared_labels_are_mapped_too() -> None:
    frames = load(labels=["cat", "dog", "van"], label_map={"van": "cat"})
    assert frames.label_map is not None
    assert frames.label_map["labels"]["new_label_value"].to_list() == ["cat", "dog", "cat"]


KEYED = pl.DataFrame(
    {
        "datum_id": [1, 2, 3, 4],
        "label_key": ["k", "k", "j", "j"],
        "actual": [0, 1, 0, 2],
        "predicted": [0, 1, 0, 2],
    }
)


def test_declared_labels_without_a_key_are_those_of_every_key() -> None:
    """They are declared, and mapped, also under keys whose rows do not have them."""
    whole = ee.score(KEYED, task="classification", labels=[0, 1, 2])
    assert "labels_not_declared" not in {one.code for one in whole.findings}
    card = ee.score(KEYED, task="classification", labels=[0, 1])
    assert {one.code: one.count for one in card.findings}["labels_not_declared"] == 1
    merged = ee.score(
        KEYED, task="classification", dialect="sklearn", labels=[0, 1, 2], label_map={2: 1}
    )
    rows = merged.metrics.filter(metric="F1").filter(pl.col("label_value").is_not_null())
    assert rows["label_value"].to_list() == [0, 1, 0, 1]
    assert merged.value("F1", average="macro", label_key="k") == 1.0


def test_declared_integers_may_be_mapped_to_names() -> None:
    for table in (KEYED, KEYED.drop("label_key")):
        names = {0: "road", 1: "car", 2: "tree", 3: "sky"}
        card = ee.score(table, task="classification", labels=[0, 1, 2, 3], label_map=names)
        assert {*card.metrics["label_value"].drop_nulls()} == {*names.values()}
