"""VisDrone's text of boxes and of tracks, compared with MOTChallenge's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from annotations.test_formats import noted

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.sources.tables import open_source

TRUTH = (
    "684,8,273,116,0,0,0,0",
    "100,100,50,40,1,4,0,0",
    "200,100,50,40,1,1,0,2",
    "300,300,20,20,0,4,1,1,",
    "400,300,20,20,1,11,0,0",
)
PREDICTED = (
    "100,100,50,40,0.9,4,-1,-1",
    "200,100,50,40,0.8,1,-1,-1",
    "300,300,20,20,0.7,4,-1,-1",
    "400,300,20,20,0.5,11,-1,-1",
)
TRACKED = (
    "1,0,100,20,300,100,0,0,0,0",
    "2,0,100,20,300,100,0,0,0,0",
    "1,1,684,8,50,60,1,4,0,0",
    "2,1,684,8,50,60,1,4,1,2",
    "1,2,584,308,50,60,0,1,0,0",
    "2,2,584,308,50,60,1,1,0,0",
)
TRACKS = (
    "1,5,110,30,30,30,.8,4,-1,-1",
    "1,1,684,8,50,60,.9,4,-1,-1",
    "2,1,684,8,50,60,.8,4,-1,-1",
    "1,2,584,308,50,60,.7,1,-1,-1",
    "2,2,584,308,50,60,.99,1,-1,-1",
)


def put(folder: Path, name: str, lines: tuple[str, ...]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def sides(tmp_path: Path, predictions: tuple[str, ...], truth: tuple[str, ...]) -> tuple[str, str]:
    name = "0000001_02999_d_0000005.txt"
    return str(put(tmp_path / "found", name, predictions)), str(
        put(tmp_path / "truth", name, truth)
    )


@pytest.mark.parametrize("glob", ["", "/*.txt"])
def test_boxes(glob: str, tmp_path: Path) -> None:
    """The region and the object with score 0 are ignored; classes have VisDrone's names."""
    predictions, truth = (side + glob for side in sides(tmp_path, PREDICTED, TRUTH))
    source = open_source(truth)
    assert "score" not in source.frame.collect_schema()
    assert source.frame.collect().select("label_value", "ignore", "xmin", "ymax").rows() == [
        ("car", 0, 100, 140), ("pedestrian", 0, 200, 140), ("car", 1, 300, 320),
        ("others", 0, 400, 320),
    ]  # fmt: skip
    assert source.datums is not None
    assert source.datums["regions"].to_list() == [[684, 8, 957, 124]]
    assert noted(source, "regions_left_out")
    assert noted(source, "class_others_counts")
    for more in ({}, {"memory_limit": "2GB"}):
        card = ee.score(predictions, truth, dialect="voc2012", **more)
        assert card.value("AP", label_value="car") == 1
        assert card.metrics.filter(metric="AP", label_value="car")["support"].to_list() == [1]
    assert main(["check", predictions, truth]) == 0


def test_a_file_with_only_regions(tmp_path: Path) -> None:
    predictions, truth = sides(tmp_path, PREDICTED, TRUTH[:1])
    put(tmp_path / "truth", "two.txt", TRUTH[1:])
    assert ee.score(predictions, truth).frame("metrics").height
    (tmp_path / "truth" / "two.txt").unlink()
    source = open_source(truth)
    assert source.format == "annotations"
    assert source.frame.collect().height == 0


def test_results_with_scores_of_any_scale(tmp_path: Path) -> None:
    predictions, _ = sides(tmp_path, ("684,8,273,116,87.5,4,-1,-1", "8,8,27,16,0,0,-1,-1"), TRUTH)
    frame = open_source(predictions).frame.collect()
    assert frame["score"].to_list() == [87.5]


@pytest.mark.parametrize("glob", ["", "/*.txt"])
def test_tracks(glob: str, tmp_path: Path) -> None:
    """Tracks in the region and on the object with score 0 are ignored."""
    names = ["TP", "FP", "FN", "HOTA"]
    predictions, truth = (side + glob for side in sides(tmp_path, TRACKS, TRACKED))
    for more in ({}, {"memory_limit": "2GB"}):
        card = ee.score(predictions, truth, metrics=names, **more)
        assert card.task == "tracking"
        assert [card.value(name) for name in names] == pytest.approx([3, 0, 0, 1])
        assert card.value("TP", label_value="car") == 2
    out = ee.convert(truth, predictions, out=tmp_path / "out")
    assert out["groundtruths.parquet"] == len(TRACKED)
    rows = pl.read_parquet(tmp_path / "out" / "groundtruths.parquet")
    assert rows["region"].sum() == 2
    assert rows["object_id"].n_unique() == 4


def test_results_with_classes_follow_the_other_side(tmp_path: Path) -> None:
    """Ten fields with a class are MOTChallenge, unless the ground truths are VisDrone."""
    predictions, _ = sides(tmp_path, TRACKS, TRACKED)
    single = open_source(predictions)
    assert single.frame.collect()["label_value"].to_list()[0] == "bicycle"
    table = pl.DataFrame(
        {"sequence": "0000001_02999_d_0000005", "frame": [1, 2], "object_id": 1,
         "label_value": ["van", "van"], "xmin": 684.0, "ymin": 8.0, "xmax": 734.0, "ymax": 68.0}
    )  # fmt: skip
    vans = tuple(line.replace(",4,-1", ",5,-1") for line in TRACKS)
    put(tmp_path / "found", "0000001_02999_d_0000005.txt", vans)
    card = ee.score(predictions, table, metrics=["TP"])
    assert card.value("TP", label_value="van") == 2


MOT: dict[str, Any] = {
    "results": ("1,3,794.27,247.59,71.24,174.88,0.9,-1,-1,-1",),
    "truth": ("1,1,912,484,97,109,0,7,1", "2,1,912,484,97,109,1,1,0.8"),
    "space": ("1,1,10,20,30,40,1,4.4852,5.5016,0",),
    "classes": ("1,1,10,20,30,40,0.5,3,-1,-1",),
    "eight": ("1,1,912,484,97,109,1,1", "2,1,912,484,97,109,1,1"),
    "seven": ("1,1,912,484,97,109,0.5",),
}


@pytest.mark.parametrize("name", MOT)
def test_motchallenge_is_still_motchallenge(name: str, tmp_path: Path) -> None:
    source = open_source(put(tmp_path / "s", "MOT17-02.txt", MOT[name]))
    assert source.description.startswith("MOTChallenge")
    assert source.frame.collect()["frame"].to_list() == list(range(1, len(MOT[name]) + 1))


@pytest.mark.parametrize(
    "line", ["1,2,3,4,0.5,12,0,0", "1,2,3,4,0.5,1.5,0,0", "1,2,3,x,0.5,1,0,0", "1,2,3,4"]
)
def test_a_broken_line_is_named(line: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "truth", "a.txt", TRUTH)
    put(folder, "b.txt", TRUTH)
    put(folder, "c.txt", (TRUTH[0], line))
    with pytest.raises(ee.ReadError, match=r"c\.txt, line 2"):
        open_source(folder)


def test_a_broken_line_of_one_file_is_named(tmp_path: Path) -> None:
    """Most lines show the format, so no other reader takes the file."""
    lines = (*TRUTH[1:3] * 10, "1,2,3,4,0.5,12,0,0")
    with pytest.raises(ee.ReadError, match=r"a\.txt, line 21"):
        open_source(put(tmp_path / "truth", "a.txt", lines))
