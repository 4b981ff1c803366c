"""Contents of the worst datums, from the tally or from unchanged inputs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evalengine as ee
from evalengine.evaluation.paging import worst
from evalengine.geometry.masks import from_pixels, to_rle
from evalengine.ingest.opening import Tables
from evalengine.report.contents import Samples, contents
from evalengine.run import tallied_of
from evalengine.tasks.contents import (
    CHARACTERS,
    DOCUMENTS,
    MOST_BOXES,
    MOST_POINTS,
    Boxes,
    Labelled,
    PixelsWrong,
    Ranking,
    Rows,
    Texts,
)

IDS = ["it's", 'a "b"', "<script>alert(1)</script>"]


def shown(card: Any, tables: Any = None, n: int = 50) -> Samples:
    tallied = tallied_of("run", card)
    sides = tables if isinstance(tables, tuple) else (tables,)
    given = None if tables is None else Tables(*sides)
    return contents(card, worst(tallied, n), tallied, given)


def saved(tmp_path: Path, ours: pl.DataFrame, theirs: pl.DataFrame | None, **options: Any) -> Any:
    """Score files, then save and load the run."""
    paths = [str(tmp_path / "ours.parquet")]
    ours.write_parquet(paths[0])
    if theirs is not None:
        paths.append(str(tmp_path / "theirs.parquet"))
        theirs.write_parquet(paths[1])
    ee.score(*paths, **options).save(tmp_path / "run")
    return ee.load(tmp_path / "run")


def texts() -> tuple[pl.DataFrame, pl.DataFrame]:
    ours = pl.DataFrame(
        {"datum_id": IDS, "text": ["the cat sat", "a b", "x" * 5_000], "camera": ["n", "n", "s"]}
    )
    theirs = pl.DataFrame(
        {
            "datum_id": [IDS[0], IDS[0], IDS[1], IDS[2]],
            "text": ["nothing alike here", "the dog sat down", "a b", "y"],
        }
    )
    return ours, theirs


def joined(texts: Texts, side: str) -> str:
    return "".join(piece.text for piece in texts.pieces if piece.side in ("both", side))


def test_texts_are_aligned_with_their_closest_reference(tmp_path: Path) -> None:
    card = saved(tmp_path, *texts(), metrics=["WER"])
    result = shown(card)
    assert not result.missing
    by_id = {one.datum_id: one for one in result.datums}
    assert set(by_id) == {IDS[0], IDS[2]}
    first = by_id[IDS[0]].content
    assert isinstance(first, Texts)
    assert [(piece.side, piece.text) for piece in first.pieces] == [
        ("both", "the "),
        ("prediction", "cat "),
        ("reference", "dog "),
        ("both", "sat "),
        ("reference", "down"),
    ]
    assert first.references == 2
    assert by_id[IDS[0]].columns == {"camera": "n"}
    long = by_id[IDS[2]].content
    assert isinstance(long, Texts)
    assert joined(long, "prediction") == "x" * CHARACTERS
    assert long.cut == (5_000 - CHARACTERS, 0)


def test_one_table_of_texts_by_row() -> None:
    table = pl.DataFrame({"text": ["a", "b", "c d"], "reference": [["a"], ["z", "b c"], ["q"]]})
    card = ee.score(table, metrics=["WER"])
    result = shown(card, table)
    assert [one.datum_id for one in result.datums] == [2, 1]
    assert [joined(one.content, "reference") for one in result.datums] == ["q", "b c"]  # type: ignore[arg-type]


@pytest.mark.parametrize("change", ["touched", "grown", "gone"])
def test_changed_inputs_are_not_shown(tmp_path: Path, change: str) -> None:
    card = saved(tmp_path, *texts(), metrics=["WER"])
    path = tmp_path / "theirs.parquet"
    if change == "touched":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif change == "grown":
        path.write_bytes(path.read_bytes() + b"x")
    else:
        path.unlink()
    result = shown(card)
    assert result.missing.startswith(f"ground truths: {path} ")
    assert ("is gone" if change == "gone" else "has changed since it was scored") in result.missing
    assert [one.content for one in result.datums] == [None, None]
    assert {one.datum_id for one in result.datums} == {IDS[0], IDS[2]}


def test_the_modification_time_of_an_input_does_not_matter(tmp_path: Path) -> None:
    card = saved(tmp_path, *texts(), metrics=["WER"])
    os.utime(tmp_path / "theirs.parquet", (1, 1))
    assert not shown(card).missing


def test_tables_in_memory_can_be_passed() -> None:
    tables = texts()
    card = ee.score(*tables, metrics=["WER"])
    assert "give the tables" in shown(card).missing
    assert isinstance(shown(card, tables).datums[0].content, Texts)


def test_datums_missing_in_the_tables_have_no_contents() -> None:
    table = pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "b"], "predicted": ["b", "a"]})
    card = ee.score(table)
    result = contents(card, worst(tallied_of("run", card)), None, Tables(table.head(1)))
    assert [one.content is None for one in result.datums] == [False, True]
    rows = table.drop("datum_id")
    result = contents(
        card := ee.score(rows), worst(tallied_of("run", card)), None, Tables(rows.head(1))
    )
    assert [one.content is None for one in result.datums] == [False, True]


def test_other_tables_are_refused() -> None:
    card = ee.score(*texts(), metrics=["WER"])
    result = shown(card, (pl.DataFrame({"datum_id": [1]}), texts()[1]))
    assert "cannot be read" in result.missing
    assert result.datums[0].content is None


def test_ranked_lists_and_missing_documents(tmp_path: Path) -> None:
    n = DOCUMENTS + 10
    run = pl.DataFrame(
        {
            "query_id": [IDS[2]] * n,
            "doc_id": [f"d{i:02}" for i in range(n)],
            "score": [float(n - i) for i in range(n)],
        }
    ).reverse()
    judged = pl.DataFrame(
        {
            "query_id": [IDS[2]] * 4,
            "doc_id": ["d02", "d05", "far", "near"],
            "relevance": [1, 0, 1, 2],
        }
    )
    result = shown(saved(tmp_path, run, judged))
    (one,) = result.datums
    ranking = one.content
    assert isinstance(ranking, Ranking)
    assert [doc.document for doc in ranking.documents] == [f"d{i:02}" for i in range(DOCUMENTS)]
    assert [doc.rank for doc in ranking.documents] == list(range(1, DOCUMENTS + 1))
    assert [doc.rank for doc in ranking.documents if doc.relevant] == [3]
    assert ranking.documents[5].relevance == 0.0
    assert not ranking.documents[5].relevant
    assert ranking.left_out == 10
    assert [(doc.document, doc.relevance) for doc in ranking.missing] == [("near", 2), ("far", 1)]
    assert ranking.missing_left_out == 0


def test_lists_in_one_table() -> None:
    table = pl.DataFrame({"retrieved": [["a", "b"], ["c"]], "relevant": [["b", "q"], ["c"]]})
    result = shown(ee.score(table), table)
    (one,) = result.datums
    assert one.datum_id == 0
    ranking = one.content
    assert isinstance(ranking, Ranking)
    assert [(doc.document, doc.relevant) for doc in ranking.documents] == [
        ("a", False),
        ("b", True),
    ]
    assert [doc.document for doc in ranking.missing] == ["q"]


def boxes(n: int, score: float = 0.6) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two images; the first has n false positives, a hit, a crowd and a missed object."""
    place = {"xmin": 0.0, "ymin": 0.0, "xmax": 10.0, "ymax": 10.0}
    truths = pl.DataFrame(
        [
            {"datum_id": 7, "label_value": "<b>", **place, "iscrowd": False},
            {"datum_id": 7, "label_value": "c", **place, "xmin": 5.0, "iscrowd": False},
            {"datum_id": 7, "label_value": "c", **place, "xmax": 90.0, "iscrowd": True},
            {"datum_id": 8, "label_value": "c", **place, "iscrowd": False},
        ]
    )
    ours = [
        {"datum_id": 7, "label_value": "<b>", **place, "score": 0.9},
        {"datum_id": 7, "label_value": "c", **place, "xmin": 20.0, "xmax": 40.0, "score": 0.7},
        {"datum_id": 8, "label_value": "c", **place, "score": 0.5},
    ]
    ours += [
        {"datum_id": 7, "label_value": "<b>", **place, "xmin": 200.0 + i, "xmax": 205.0 + i,
         "ymax": 5.0, "score": score}
        for i in range(n)
    ]  # fmt: skip
    return pl.DataFrame(ours), truths


@pytest.mark.parametrize("declared", [False, True])
def test_boxes_and_their_outcomes(tmp_path: Path, declared: bool) -> None:
    more = {}
    if declared:
        datums = pl.DataFrame({"datum_id": [7, 8], "file_name": ["x/7.png", None],
                               "width": [300, 9], "height": [100, 9],
                               "camera": ["n", "s"]})  # fmt: skip
        datums.write_parquet(tmp_path / "datums.parquet")
        more["datums"] = str(tmp_path / "datums.parquet")
    card = saved(tmp_path, *boxes(1), dialect="coco", **more)
    result = shown(card)
    assert not result.missing
    (one,) = result.datums
    assert one.datum_id == 7
    content = one.content
    assert isinstance(content, Boxes)
    assert [(box.outcome, box.label, box.score) for box in content.boxes] == [
        ("missed", "c", None),
        ("fp", "<b>", 0.6),
        ("tp", "<b>", 0.9),
        ("ignored", "c", 0.7),
    ]
    assert content.boxes[0].corners == (5.0, 0.0, 10.0, 10.0)
    assert content.boxes[1].corners == (200.0, 0.0, 205.0, 5.0)
    assert (content.iou_threshold, content.left_out) == (0.5, 0)
    if declared:
        assert (one.file_name, one.width, one.height) == ("x/7.png", 300, 100)
        assert one.columns == {"camera": "n"}


def test_boxes_are_capped() -> None:
    tables = boxes(70, score=0.95)
    card = ee.score(*tables)
    result = shown(card, tables)
    content = next(one.content for one in result.datums if one.datum_id == 7)
    assert isinstance(content, Boxes)
    assert len(content.boxes) == MOST_BOXES
    assert content.left_out == 70 + 3 - MOST_BOXES


def test_boxes_of_mapped_labels(tmp_path: Path) -> None:
    card = saved(tmp_path, *boxes(0), label_map={"<b>": "c"})
    content = shown(card).datums[0].content
    assert isinstance(content, Boxes)
    assert {box.label for box in content.boxes} == {"c"}


def _area(rings: tuple[Any, ...]) -> float:
    """Compute the area of a ring with holes."""
    sums = []
    for ring in rings:
        x, y = np.array(ring).T
        sums.append(abs(float(np.dot(x[:-1], y[1:]) - np.dot(x[1:], y[:-1]))) / 2)
    return sums[0] - sum(sums[1:])


def test_polygons_have_outlines() -> None:
    square = [[0.0, 0.0], [0.0, 10.0], [10.0, 10.0], [10.0, 0.0], [0.0, 0.0]]
    hole = [[4.0, 4.0], [6.0, 4.0], [6.0, 6.0], [4.0, 6.0], [4.0, 4.0]]
    angle = np.linspace(0, 2 * np.pi, 5_000)
    circle = np.stack([40 + 10 * np.cos(angle), 40 + 10 * np.sin(angle)], 1).tolist()
    truths = pl.DataFrame({"datum_id": [1, 1], "label_value": ["a", "a"],
                           "polygon": [[square, hole], [circle]]})  # fmt: skip
    ours = pl.DataFrame({"datum_id": [1], "label_value": ["b"], "score": [0.5],
                         "polygon": [[square]]})  # fmt: skip
    content = shown(ee.score(ours, truths), (ours, truths)).datums[0].content
    assert isinstance(content, Boxes)
    assert [box.outcome for box in content.boxes] == ["missed", "missed", "fp"]
    areas = [_area(box.rings) for box in content.boxes]
    assert areas == pytest.approx([96.0, 100 * np.pi, 100.0], rel=0.01)
    assert max(len(ring) for ring in content.boxes[1].rings) <= MOST_POINTS
    assert content.boxes[1].corners == pytest.approx((30, 30, 50, 50), abs=1e-4)


def test_masks_have_outlines() -> None:
    pixels = np.zeros((40, 60), np.uint8)
    pixels[10:30, 20:50] = 1
    pixels[15:20, 25:30] = 0
    empty = np.zeros((40, 60), np.uint8)
    empty[0, 0] = 1
    truths = pl.DataFrame({"datum_id": [1], "label_value": ["a"]}).with_columns(
        mask=to_rle(from_pixels([pixels]))
    )
    ours = truths.with_columns(mask=to_rle(from_pixels([empty])), score=pl.lit(0.5))
    content = shown(ee.score(ours, truths), (ours, truths)).datums[0].content
    assert isinstance(content, Boxes)
    missed = content.boxes[0]
    assert missed.outcome == "missed"
    assert _area(missed.rings) == 20 * 30 - 25
    assert set(missed.rings[0]) == {(20.0, 10.0), (50.0, 10.0), (50.0, 30.0), (20.0, 30.0)}


def test_labels_come_from_the_tally_and_columns_from_the_inputs(tmp_path: Path) -> None:
    ours = pl.DataFrame(
        {"datum_id": [1] * 25, "label_value": [f"l{i:02}" for i in range(25)],
         "score": [(25 - i) / 100 for i in range(25)], "camera": ["n"] * 25}
    )  # fmt: skip
    truths = pl.DataFrame({"datum_id": [1], "label_value": ["l03"]})
    card = saved(tmp_path, ours, truths)
    (one,) = shown(card).datums
    content = one.content
    assert isinstance(content, Labelled)
    assert [label.label for label in content.predicted] == [f"l{i:02}" for i in range(20)]
    assert [label.label for label in content.predicted if label.true] == ["l03"]
    assert content.predicted[0].score == 0.25
    assert content.left_out == 5
    assert content.truth == (("label", "l03"),)
    assert one.columns == {"camera": "n"}
    direct = contents(card, worst(tallied_of("run", card)))  # as for a run without a tally
    assert direct.datums == (one,)
    (tmp_path / "ours.parquet").unlink()
    result = shown(card)
    assert result.missing
    assert result.datums[0].content == content
    assert result.datums[0].columns == {}


def test_rows_without_ids_are_found_by_their_number() -> None:
    table = pl.DataFrame({"actual": ["a", "b", "a"], "predicted": ["a", "a", "b"],
                          "note": ["x" * 500, "y" * 500, "z"]})  # fmt: skip
    result = shown(ee.score(table), table)
    assert [one.datum_id for one in result.datums] == [1, 2]
    assert [one.columns for one in result.datums] == [{"note": "y" * 200}, {"note": "z"}]
    labels = [one.content for one in result.datums]
    assert [label.truth for label in labels] == [(("label", "b"),), (("label", "a"),)]  # type: ignore[union-attr]


def test_rows_have_the_numbers_of_the_run(tmp_path: Path) -> None:
    """Conditions are applied before rows are numbered."""
    n = 200
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"actual": rng.choice(["a", "b"], n), "predicted": ["a"] * n,
                          "cam": rng.choice(["x", "y"], n)})  # fmt: skip
    table = table.with_columns(note=pl.format("{} of {}", pl.int_range(n), "actual"))
    card = saved(tmp_path, table, None, where="cam == 'x'")
    selected = table.filter(pl.col("cam") == "x").with_row_index("row")
    wrong = selected.filter(pl.col("actual") == "b")
    result = shown(card)
    assert {one.datum_id: one.columns["note"] for one in result.datums} == dict(
        wrong.head(50).select("row", "note").rows()
    )
    assert all(one.columns["note"].endswith("of b") for one in result.datums)


def coco(tmp_path: Path) -> tuple[str, str]:
    """Write results and ground truths; only the first of two images has a prediction."""
    box = [10.0, 20.0, 50.0, 60.0]
    truths = {
        "images": [{"id": i, "file_name": f"im{i}.jpg", "width": 640, "height": 480}
                   for i in (3, 5)],
        "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": box, "area": 3000.0,
                         "iscrowd": 0} for i in (3, 5)],
        "categories": [{"id": 1, "name": "<cat>"}],
    }  # fmt: skip
    results = [{"image_id": 3, "category_id": 1, "bbox": box, "score": 0.5}]
    paths = str(tmp_path / "dt.json"), str(tmp_path / "gt.json")
    for path, data in zip(paths, (results, truths), strict=True):
        Path(path).write_text(json.dumps(data))
    return paths


def test_files_of_coco(tmp_path: Path) -> None:
    ee.score(*coco(tmp_path), dialect="coco").save(tmp_path / "run")
    result = shown(ee.load(tmp_path / "run"))
    assert not result.missing
    (one,) = result.datums
    assert (one.datum_id, one.file_name, one.width, one.height) == (5, "im5.jpg", 640, 480)
    assert isinstance(one.content, Boxes)
    (box,) = one.content.boxes
    assert (box.label, box.outcome, box.corners) == ("<cat>", "missed", (10, 20, 60, 80))


def test_pixels_wrong_by_label() -> None:
    truth = np.zeros((4, 4), int)
    truth[:, 2:] = 1
    predicted = np.zeros((4, 4), int)
    predicted[0] = 2
    tables = [
        pl.DataFrame({"datum_id": [5], "raster": [image.tolist()]}) for image in (predicted, truth)
    ]
    result = shown(ee.score(*tables, metrics=["mIOU"]), tuple(tables))
    content = result.datums[0].content
    assert isinstance(content, PixelsWrong)
    counts = {one.label: (one.truth, one.missed, one.false) for one in content.labels}
    assert counts == {"0": (8, 2, 6), "1": (8, 8, 0), "2": (0, 0, 4)}
    assert content.labels[0].label in ("0", "1")
    assert content.size == (4, 4)
    assert _area(content.rings) == 10
    ignoring = ee.score(*tables, metrics=["mIOU"], ignore_index=1)
    content = shown(ignoring, tuple(tables)).datums[0].content
    assert isinstance(content, PixelsWrong)
    assert _area(content.rings) == 2


def test_verdicts() -> None:
    table = pl.DataFrame(
        {"datum_id": ["<i>"] * 2, "metric": ["Bias"] * 2, "verdict": ["yes", "no"],
         "reason": ["b" * 3000, None]}
    )  # fmt: skip
    content = shown(ee.score(table), table).datums[0].content
    assert isinstance(content, Rows)
    assert content.columns[:2] == ("metric", "verdict")
    assert [row[1] for row in content.rows] == ["yes", "no"]
    at = content.columns.index("reason")
    assert [row[at] for row in content.rows] == ["b" * CHARACTERS, None]


def test_a_run_without_errors_has_no_contents() -> None:
    table = pl.DataFrame({"actual": ["a"], "predicted": ["a"]})
    assert shown(ee.score(table)) == Samples(datums=())


def test_control_characters_are_escaped(tmp_path):
    table = {"id": [1, 2], "actual": ["\u202eRTL\nx", "b"], "predicted": ["b", "\u202eRTL\nx"]}
    ee.score(table, task="classification").to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "\u202e" not in page
    assert "\\u202eRTL" in page
