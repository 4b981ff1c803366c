"""Ids and labels that hardly match: the message, its evidence, and the option that repairs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from partitions.cases import in_buckets
from refusals import Refusal, refused

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.id_mismatch import mend
from evalengine.schemas.errors import InputError
from evalengine.schemas.wording import in_python

SOME = list(range(0, 300, 3))
PAIRS: dict[str, tuple[list[Any], list[Any], Any]] = {
    "case": ([f"IMG{i}" for i in SOME], [f"img{i}" for i in SOME], ["case"]),
    "blanks": ([f"a{i} " for i in SOME], [f"a{i}" for i in SOME], ["blanks"]),
    "zeros": ([f"{i:06}" for i in SOME], [str(i) for i in SOME], ["zeros"]),
    "zeros of numbers in names": (
        [f"cam{i % 3}_img_{i:04}" for i in SOME],
        [f"cam{i % 3}_img_{i}" for i in SOME],
        ["zeros"],
    ),
    "zeros against integers": ([f"{i:06}" for i in SOME], SOME, ["zeros"]),
    "text": ([str(i) for i in SOME], SOME, ["text"]),
    "stem": ([f"c:\\x\\{i}.jpeg" for i in SOME], [str(i) for i in SOME], ["stem"]),
    "folders": ([f"/a/b/{i}.jpg" for i in SOME], [f"{i}.jpg" for i in SOME], ["file"]),
    "extension": ([f"a/{i}.jpg" for i in SOME], [f"a/{i}" for i in SOME], ["extension"]),
    "stem and case": ([f"a/I{i}.JPG" for i in SOME], [f"i{i}" for i in SOME], ["stem", "case"]),
    "around": (
        [f"ulm_{i}_leftImg8bit" for i in SOME],
        [f"ulm_{i}_gtFine_labelIds" for i in SOME],
        ["^(.*?)(?:_gtFine_labelIds|_leftImg8bit)?$"],
    ),
    "number": ([f"frame_{i:05}.png" for i in SOME], SOME, ["number"]),
    "one too high": ([i + 1 for i in SOME], SOME, ["-1"]),
    "one too low": ([i - 1 for i in SOME], SOME, ["+1"]),
}


def classified(ours: list[Any], theirs: list[Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    labels = ["ant", "bee"] * len(ours)
    found = pl.DataFrame({"datum_id": ours, "label_value": labels[: len(ours)], "score": 0.5})
    return found, pl.DataFrame({"datum_id": theirs, "label_value": labels[: len(theirs)]})


@pytest.mark.parametrize("name", PAIRS)
def test_the_suggested_option_repairs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    ours, theirs, forms = PAIRS[name]
    tables = classified(ours, theirs)
    with pytest.raises(InputError) as caught:
        ee.score(*tables)
    assert "100 of 100 datums" in str(caught.value)
    assert f"id_format={forms!r}" in str(caught.value)
    assert ee.score(*tables, id_format=forms).value("Accuracy") == 1.0
    assert ee.score(*tables, id_format=forms, memory_limit="1GB").value("Accuracy") == 1.0


def test_the_command_exits_with_2_and_suggests_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / name) for name in ("found.csv", "true.csv")]
    for table, name in zip(classified(*PAIRS["one too high"][:2]), names, strict=True):
        table.write_csv(name)
    assert main(["check", *names]) == 2
    assert "Write --id-format -1." in capsys.readouterr().err
    assert main(["check", *names, "--id-format", "-1"]) == 0


def test_warnings_name_options_as_the_reader_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = classified([*range(1, 101)], [*range(100)])
    names = [str(tmp_path / name) for name in ("found.csv", "true.csv")]
    for table, name in zip(tables, names, strict=True):
        table.write_csv(name)
    for command in ("score", "check"):
        main([command, *names])
        assert "--id-format -1" in " ".join("".join(capsys.readouterr()).split())
    assert "id_format=['-1']" in ee.score(*tables).warnings[0]  # after the command, too


def test_a_regular_expression_may_contain_a_comma(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = classified([f"im_{i}" for i in range(9)], [*map(str, range(9))])
    names = [str(tmp_path / name) for name in ("found.csv", "true.csv")]
    for table, name in zip(tables, names, strict=True):
        table.write_csv(name)
    assert main(["check", *names, "--id-format", "(?:im_)?([0-9]{1,6})"]) == 0, capsys.readouterr()


def test_few_common_ids_are_a_warning_with_the_evidence() -> None:
    names = [f"{i}.png" for i in range(97)] + ["97", "98", "99"]
    tables = classified(names, [str(i) for i in range(100)])
    (message,) = ee.score(*tables).warnings
    assert "3 datums of 100 (3.0%)" in message
    assert "file extension: 100 of 100" in message
    assert "id_format=['extension']" in message
    assert ee.check(*tables).warnings


def test_few_common_ids_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    tables = classified(
        [f"{i}.png" for i in range(97)] + ["97", "98", "99"], [*map(str, range(100))]
    )
    (message,) = ee.score(*tables, memory_limit="1GB").warnings
    assert "3 datums of 100 (3.0%)" in message


@pytest.mark.parametrize("turned", [False, True])
def test_a_prefix_of_names_with_fewer_on_one_side(turned: bool) -> None:
    """The rest are names, so that equal numbers in them are not by chance."""
    sides = [f"frame_im{i:03}" for i in range(30)], [f"im{i:03}" for i in range(2, 35)]
    with pytest.raises(InputError) as caught:
        ee.score(*classified(*(sides[::-1] if turned else sides)))
    assert Refusal(caught.value).has("no_common_id", column="datum_id")
    assert "28 of 30 datums" in str(caught.value)
    assert "id_format=['^(?:frame_)?(.*)$']" in str(caught.value)


@pytest.mark.parametrize("ids", [range(100), range(0, 1000, 7)])
def test_two_splits(ids: range) -> None:
    with refused("no_common_id", InputError, match="2000", column="datum_id"):
        ee.score(*classified([*ids], [i + 2000 for i in ids]))
    with refused("no_common_id", InputError, match=r"\('frame_#'\)", column="datum_id"):
        ee.score(*classified([f"frame_{i}" for i in ids], [f"frame_{i + 2000}" for i in ids]))


def test_one_chance_hit_is_no_evidence() -> None:
    ours = pl.Series([f"a{i}k" for i in range(99)] + ["Z"])
    theirs = pl.Series([f"b{i}" for i in range(99)] + ["z"])
    assert mend(ours, theirs) == ""


def test_numbers_that_match_by_chance_are_no_evidence() -> None:
    """Half of dense numbers match however they are paired; sparse ones do not by chance."""
    draw = np.random.default_rng(5)
    ours = np.sort(draw.choice(1000, 500, replace=False))
    theirs = np.sort(draw.choice(1000, 500, replace=False))
    named = [pl.Series([f"{side}_{i}" for i in ids]) for side, ids in (("a", ours), ("b", theirs))]
    assert mend(*named) == ""
    sparse = draw.choice(10**9, 500, replace=False)
    named = [pl.Series([f"{side}_{i}_{i % 7}{side}" for i in sparse]) for side in ("a", "b")]
    assert "500 of 500" in mend(*named)


def test_a_form_that_merges_two_ids_is_neither_suggested_nor_accepted() -> None:
    tables = classified(["a/1.png", "b/1.png"], ["1", "2"])
    with pytest.raises(InputError) as caught:
        ee.score(*tables)
    assert "id_format" not in str(caught.value)
    with refused("ids_merged", InputError, match="first '1' of", side="predictions", count=1):
        ee.score(*tables, id_format="stem")


@pytest.mark.parametrize("limit", [None, "1GB"])
def test_ids_with_an_offset_of_one(limit: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    tables = classified([*range(1, 101)], [*range(100)])
    message = ee.score(*tables, memory_limit=limit).warnings[0]
    assert "1 to 100, ground truths 0 to 99" in message
    assert "id_format=['-1']" in message
    assert not ee.score(*classified([*range(1, 101)], [*range(100)]), id_format="-1").warnings
    others = ee.score(*classified([*range(2, 102)], [*range(100)])).warnings
    assert not [one for one in others if "without a gap" in one]


@pytest.mark.parametrize(
    ("form", "facts"),
    [
        ("stm", {"code": "unknown_name", "value": "stm"}),
        ("(1", {"code": "option_value", "option": "id_format", "value": "(1"}),
    ],
)
def test_unknown_forms(form: str, facts: dict[str, Any]) -> None:
    with refused(**facts):
        ee.score(*classified(["a"], ["a"]), id_format=form)


def test_a_step_on_strings() -> None:
    with refused("wrong_dtype", InputError, side="predictions", column="datum_id"):
        ee.score(*classified(["a"], ["a"]), id_format="+1")


def labelled(ours: list[Any], theirs: list[Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    predictions, true = classified([*range(len(ours))], [*range(len(theirs))])
    return predictions.with_columns(label_value=pl.Series(ours)), true.with_columns(
        label_value=pl.Series(theirs)
    )


def test_classes_counted_from_0_and_from_1(monkeypatch: pytest.MonkeyPatch) -> None:
    in_buckets(monkeypatch)
    tables = labelled([0, 1, 2, 3], [1, 2, 3, 4])
    (message,) = ee.score(*tables).warnings
    assert "0 to 3" in message
    assert "ground truths 1 to 4" in message
    assert "label_format=['+1']" in message
    for limit in (None, "1GB"):
        card = ee.score(*tables, label_format="+1", memory_limit=limit)
        assert (card.value("Accuracy"), card.warnings) == (1.0, ())
    table = pl.DataFrame({"actual": [1, 2, 3, 4], "predicted": [0, 1, 2, 3]})
    assert ee.score(table, label_format="+1").value("Accuracy") == 1.0


def test_labels_spelt_in_two_ways() -> None:
    tables = labelled(["Car", "traffic light", "buses", "x"], ["cars", "traffic_light", "bus", "x"])
    message = ee.score(*tables).warnings[0]
    assert "'Car' and 'cars'" in message
    assert "'buses' and 'bus'" in message
    pairs = {"Car": "cars", "buses": "bus", "traffic light": "traffic_light"}
    assert ee.score(*tables, label_map=pairs).value("Accuracy") == 1.0


def test_labels_that_look_alike_are_a_note() -> None:
    card = ee.score(*labelled(["pedestrain", "class_1", "bus"], ["pedestrian", "class_2", "bus"]))
    assert not card.warnings
    (message,) = (
        in_python(note) for note in card.notes if "look like" in note or "looks like" in note
    )
    assert '{"pedestrain": "pedestrian"}' in message
    assert "class_1" not in message


def test_numbers_against_names_of_classes() -> None:
    tables = labelled([1, 0, 2], ["cat", "ant", "dog"])
    with pytest.raises(InputError) as caught:
        ee.score(*tables)
    assert Refusal(caught.value).has("types_differ", column="label_value")
    assert '{"0": "ant", "1": "cat"' in str(caught.value)
    names = {0: "ant", 1: "cat", 2: "dog"}
    assert ee.score(*tables, label_map=names).value("Accuracy") == 1.0


def test_queries_of_retrieval() -> None:
    run = pl.DataFrame({"query_id": ["Q1", "Q2"], "doc_id": ["a", "b"], "score": [1.0, 1.0]})
    judged = pl.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "b"]})
    with refused("no_common_id", InputError, match="2 of 2 queries", column="query_id"):
        ee.score(run, judged)
    assert ee.score(run, judged, id_format="case").value("MAP") == 1.0


def boxed(names: list[str], labels: list[Any], seed: int) -> pl.DataFrame:
    """Return one box per datum, at the same place for the same seed."""
    chance = np.random.default_rng(seed)
    x, y = chance.uniform(0, 300, (2, len(names)))
    corners = {"xmin": x, "ymin": y, "xmax": x + 30, "ymax": y + 20}
    return pl.DataFrame({"datum_id": names, "label_value": labels, **corners})


CLASSES = {0: "zebra", 1: "cat", 2: "ant"}  # in no alphabetical order


@pytest.mark.parametrize("turned", [False, True])
def test_the_map_from_boxes_is_right(turned: bool) -> None:
    """Overlapping boxes give the names of classes; the suggested option scores 1."""
    numbers = [i % 3 for i in range(30)]
    names = [f"i{i}" for i in range(30)]
    sides = [boxed(names, numbers, 1), boxed(names, [CLASSES[n] for n in numbers], 1)]
    predictions, truth = sides[::-1] if turned else sides
    predictions = predictions.with_columns(score=pl.lit(0.5))
    with pytest.raises(InputError) as caught:
        ee.score(predictions, truth)
    assert Refusal(caught.value).has("types_differ", column="label_value")
    assert '{"0": "zebra", "1": "cat"' in str(caught.value)
    card = ee.score(predictions, truth, label_map=CLASSES)
    assert card.value("mAP", iou_threshold=0.75) == pytest.approx(1)


@pytest.mark.parametrize("one", [False, True])
def test_the_map_from_rows_is_right(one: bool) -> None:
    """Most predictions are right, as those of a real model are."""
    numbers = [i % 3 for i in range(60)]
    wrong = [(n + 1) % 3 if i % 6 == 0 else n for i, n in enumerate(numbers)]
    predictions, truth = labelled(wrong, [CLASSES[n] for n in numbers])
    given: tuple[pl.DataFrame, ...] = predictions, truth
    if one:
        table = truth.select(actual="label_value").with_columns(
            predicted=predictions["label_value"]
        )
        given = (table,)
    with pytest.raises(InputError) as caught:
        ee.score(*given)
    assert '{"0": "zebra", "1": "cat", "2": "ant"}' in str(caught.value)
    assert ee.score(*given, label_map=CLASSES).value("Accuracy") == pytest.approx(50 / 60)


def test_no_map_is_suggested_without_evidence() -> None:
    """Boxes elsewhere, contradicting rows, and numbers shared by two names are no evidence."""
    numbers = [i % 3 for i in range(30)]
    names = [f"i{i}" for i in range(30)]
    truth = boxed(names, [CLASSES[n] for n in numbers], 1)
    found = boxed(names, numbers, 2).with_columns(score=pl.lit(0.5))
    chance = np.random.default_rng(0)
    random = labelled(chance.integers(0, 3, 60).tolist(), [CLASSES[i % 3] for i in range(60)])
    for sides in ((found, truth), random):
        with pytest.raises(InputError) as caught:
            ee.score(*sides)
        assert not any(name in str(caught.value).partition("Map the")[2] for name in ("zebra", "{"))


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("limit", [None, "1GB"])
def test_numbers_with_an_offset_of_one_to_those_in_names(step: int, limit: str | None) -> None:
    """Results count images from 1 and names from 0, or the reverse."""
    start = 1 if step < 0 else 0
    names = [f"img_{i + start + step:03d}" for i in range(60)]
    truth = boxed(names, ["a"] * 60, 1)
    predictions = truth.with_columns(
        datum_id=pl.Series([i + start for i in range(60)]), score=pl.lit(0.5)
    )
    forms = ["number", f"{step:+d}"]
    with pytest.raises(InputError) as caught:
        ee.score(predictions, truth)
    assert f"id_format={forms!r}" in str(caught.value)
    card = ee.score(predictions, truth, id_format=forms, memory_limit=limit)
    assert card.value("mAP", iou_threshold=0.75) == pytest.approx(1)


def test_results_of_coco_with_an_offset_of_one_to_names(tmp_path: Path) -> None:
    names = [f"img_{i:03d}" for i in range(60)]
    truth = boxed(names, [1] * 60, 1)
    rows = [
        {"image_id": i + 1, "category_id": 1, "bbox": [x, y, 30, 20], "score": 0.5 + i / 1000}
        for i, (x, y) in enumerate(truth.select("xmin", "ymin").rows())
    ]
    for given in (rows, tmp_path / "found.json"):
        if given is not rows:
            (tmp_path / "found.json").write_text(json.dumps(rows))
        (message,) = (one for one in ee.score(given, truth).warnings if "id_format" in one)
        assert "id_format=['number', '-1']" in message
        card = ee.score(given, truth, id_format=["number", "-1"])
        assert card.value("mAP", iou_threshold=0.75) == pytest.approx(1)
        assert card.warnings == ()


@pytest.mark.parametrize(
    ("spelt", "forms"),
    [("img_018", ["zeros"]), ("IMG_18", ["case"]), ("img_18.jpg", ["extension"]),
     ("IMG_18.jpg", ["extension", "case"]), ("img_1018", None)],
)  # fmt: skip
def test_single_ids_in_another_spelling_are_noted(spelt: str, forms: list[str] | None) -> None:
    ids = [f"img_{i}" for i in range(1, 19)]
    card = ee.score(*classified(ids, [*ids[:-1], spelt]))
    findings = {one.code: one for one in card.findings}
    assert "datums_without_predictions" in findings
    assert ("ids_nearly_meet" in findings) == (forms is not None)
    if forms is not None:
        assert "1 datum of the predictions" in findings["ids_nearly_meet"].message
        assert f"id_format={forms!r}" in " ".join(card.notes)
        assert (
            ee.score(*classified(ids, [*ids[:-1], spelt]), id_format=forms).value("Accuracy") == 1
        )


def test_decimals_in_names_keep_their_zeros() -> None:
    ids = ["v1.05", "v1.5", "v2.0"]
    assert ee.score(*classified(ids, ids), id_format=["zeros"]).value("Accuracy") == 1
