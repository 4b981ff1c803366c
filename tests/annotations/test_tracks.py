"""MOTChallenge and KITTI files of tracks, and the rows that their dialects ignore.

These readers agreed with TrackEval's to within 3e-16 on 48 random sets each of MOT15, MOT17 and
MOT20, and on 30 of KITTI.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from coco_masks import compressed
from refusals import noted, refused

import evalengine as ee
from evalengine.cli import cli

METRICS = ["TP", "FP", "FN", "FPPerFrame"]


def written(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def mot(folder: Path) -> tuple[str, str]:
    """A pedestrian, a distractor and a pedestrian not evaluated, with tracks on all three."""
    truth = [
        f"{frame},{own},{x},10,20,40,{counts},{kind},1"
        for frame in (1, 3)
        for own, x, counts, kind in ((1, 0, 1, 1), (2, 100, 0, 8), (3, 200, 0, 1))
    ]
    written(folder / "gt" / "S-1" / "gt" / "gt.txt", *truth)
    written(folder / "gt" / "S-1" / "det" / "det.txt", "1,-1,0,10,20,40,0.4")
    written(folder / "gt" / "S-1" / "seqinfo.ini", "[Sequence]", "name=S-1", "seqLength=4")
    predictions = [
        f"{frame},{own},{x},10,20,40,0.9,-1,-1,-1"
        for frame in (1, 3)
        for own, x in ((7, 0), (8, 101), (9, 200))
    ]
    written(folder / "found" / "S-1.txt", *predictions)
    return str(folder / "found"), str(folder / "gt")


def test_mot(tmp_path: Path) -> None:
    sides = mot(tmp_path)
    card = ee.score(*sides, dialect="mot", metrics=METRICS)
    assert [card.value(name) for name in METRICS] == [2, 2, 0, 0.5]
    read = [one for one in card.findings if one.code == "format_recognised"]
    assert [one.count for one in read] == [6, 6]
    noted(card, "not_considered", count=2)
    plain = ee.score(*sides, metrics=METRICS, label_map={"distractor": "pedestrian"})
    assert [plain.value(name) for name in METRICS[:3]] == [2, 4, 0]  # ``considered`` is respected


def test_classes_of_motchallenge_in_another_dialect_are_noted(tmp_path: Path) -> None:
    line = "1,{},{},10,20,40,1,{},1"
    truth = [line.format(1, 0, 1), line.format(2, 100, 12)]
    written(tmp_path / "gt" / "S" / "gt" / "gt.txt", *truth)
    written(tmp_path / "found" / "S.txt", line.format(1, 0, 1), line.format(2, 100, 1))
    sides = str(tmp_path / "found"), str(tmp_path / "gt")
    noted(ee.score(*sides, metrics=METRICS), "mot_classes", count=1)
    card = ee.score(*sides, metrics=METRICS, dialect="mot")
    assert "mot_classes" not in {one.code for one in card.findings}
    only = written(tmp_path / "plain" / "S" / "gt" / "gt.txt", truth[0]).parents[2]
    card = ee.score(sides[0], str(only), metrics=METRICS)
    assert "mot_classes" not in {one.code for one in card.findings}


def test_singular_words_for_one(tmp_path: Path) -> None:
    """One box, one row, one switch: messages use the singular."""
    line = "{},{},0,10,20,40,1,1,1"
    written(tmp_path / "gt" / "S" / "gt" / "gt.txt", *(line.format(i, 1) for i in (1, 2, 3)))
    written(tmp_path / "found" / "S.txt", *(line.format(i, i) for i in (1, 2)))
    written(tmp_path / "one" / "S.txt", line.format(1, 1))
    truth = str(tmp_path / "gt")
    why = {*ee.find_errors(str(tmp_path / "found"), truth).datums["why"]}
    assert {"1 missed", "1 switch"} <= {part for one in why for part in one.split(", ")}
    text = ee.explain(str(tmp_path / "one"), truth)
    assert "predictions: 1 row from" in text
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "one"), truth])
    assert "predictions: 1 row\n" in done.output


def test_tracks_without_scores(tmp_path: Path) -> None:
    """Scores are optional: null in all rows or in some means no score."""
    line = "0 {} Car 0 0 -1.5 0 0 40 40 1.5 1.6 4 1 2 20 -1.5"
    written(tmp_path / "gt" / "0000.txt", line.format(1))
    written(tmp_path / "found" / "0000.txt", line.format(7))
    sides = str(tmp_path / "found"), str(tmp_path / "gt")
    assert ee.score(*sides, metrics=METRICS).value("TP") == 1
    ee.convert(*sides[::-1], out=tmp_path)
    predictions, truth = (
        pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("predictions", "groundtruths")
    )
    assert predictions["score"].null_count() == 1
    none = predictions.with_columns(score=pl.lit(None))
    assert ee.score(none, truth, metrics=METRICS).value("TP") == 1
    errors = ee.score(none, truth, metrics=["Outcomes"]).outcomes
    assert errors["score"].to_list() == [None]


@pytest.mark.parametrize(
    "lines",
    [
        ["1,7,0,10,20,40", "3,7,0,10,20,40"],
        ["1 7 0 10 20 40 0.9 -1 -1 -1"],
        ["frame,id,x,y,w,h,conf", "1,7,0,10,20,40,0.9"],
    ],
)
def test_malformed_tracks_name_their_line(tmp_path: Path, lines: list[str]) -> None:
    _, truth = mot(tmp_path)
    predictions = written(tmp_path / "odd" / "S-1.txt", *lines)
    with pytest.raises(ee.ReadError) as refused:
        ee.score(str(predictions.parent), truth)
    assert refused.value.facts["file"] == str(predictions)
    assert refused.value.facts["line"] == 1


def test_frames_that_a_sequence_does_not_have_are_refused(tmp_path: Path) -> None:
    sides = mot(tmp_path)
    lines = ["0,7,0,10,20,40,0.9,-1,-1,-1", "5,7,0,10,20,40,0.9,-1,-1,-1"]
    written(tmp_path / "found" / "S-1.txt", *lines)
    with refused("frames_beyond", count=2, match="frame 0 of 'S-1', .*1 to 4"):
        ee.score(*sides, dialect="mot", metrics=METRICS)
    written(tmp_path / "gt" / "S-1" / "seqinfo.ini", "[Sequence]", "name=S-1")
    assert ee.score(*sides, dialect="mot", metrics=METRICS).value("FP") == 2


def test_sequences_without_ground_truths_are_noted(tmp_path: Path) -> None:
    sides = mot(tmp_path)
    written(tmp_path / "found" / "S-9.txt", "1,7,0,10,20,40,0.9,-1,-1,-1")
    card = ee.score(*sides, dialect="mot", metrics=METRICS)
    assert card.value("FP") == 3  # two of S-1
    message = (
        "1 sequence of the predictions that the ground truths' files do not list, scored as having"
        " no ground truths (false positives): 'S-9'."
    )
    assert message in card.notes


def test_empty_files(tmp_path: Path) -> None:
    """A tracker without boxes in one sequence, or in any."""
    predictions, truth = mot(tmp_path)
    lines = ["1,1,0,10,20,40,1,1,1", "2,1,0,10,20,40,1,1,1"]
    written(tmp_path / "gt" / "S-2" / "gt" / "gt.txt", *lines)
    empty_file = tmp_path / "found" / "S-2.txt"
    empty_file.write_text("")
    card = ee.score(predictions, truth, dialect="mot", metrics=METRICS)
    assert [card.value(name) for name in METRICS[:3]] == [2, 2, 2]
    for empty in (empty_file, empty_file.parent):
        (tmp_path / "found" / "S-1.txt").write_text("")
        card = ee.score(empty, truth, dialect="mot", metrics=METRICS)
        assert [card.value(name) for name in METRICS[:3]] == [0, 0, 4]


def test_empty_ground_truths(tmp_path: Path) -> None:
    predictions, truth = mot(tmp_path)
    (tmp_path / "gt" / "S-1" / "gt" / "gt.txt").write_text("")
    for det in ("with", "without"):
        if det == "without":
            shutil.rmtree(tmp_path / "gt" / "S-1" / "det")
        card = ee.score(predictions, truth, dialect="mot", metrics=METRICS)
        assert [card.value(name) for name in METRICS[:3]] == [0, 6, 0]
    assert noted(card, "no_ground_truths", severity="warning")
    (tmp_path / "found" / "S-1.txt").write_text("")
    with refused("file_empty"):  # no text identifies the format
        ee.score(predictions, truth)
    sides = [tmp_path / name / "0000.txt" for name in ("tracks", "labels")]
    for side, text in zip(
        sides, ("0 1 Car 0 0 -1 10 10 30 40 1 1 1 0 0 9 0 0.9\n", ""), strict=True
    ):
        side.parent.mkdir()
        side.write_text(text)
    card = ee.score(*(side.parent for side in sides), dialect="kitti", metrics=METRICS)
    assert [card.value(name) for name in METRICS[:3]] == [0, 1, 0]
    boxes = tmp_path / "boxes" / "a.txt"
    boxes.parent.mkdir()
    boxes.write_text("0 0.5 0.5 0.2 0.2 0.9\n")  # YOLO's, whose empty file is no image
    with refused("file_empty"):
        ee.score(boxes.parent, sides[1])


def test_labels_that_a_dialect_does_not_score(tmp_path: Path) -> None:
    sides = mot(tmp_path)
    with refused("labels_not_evaluated", labels=["x"], match=r"label_map=\{\"x\""):
        ee.score(*sides, dialect="mot", label_map={"pedestrian": "x", "distractor": "x"})
    card = ee.score(*sides, dialect="kitti", metrics=METRICS)
    message = "ground truths: 2 rows of labels that the dialect does not evaluate skipped."
    assert message in card.notes


def test_detections_are_not_tracks(tmp_path: Path) -> None:
    _, truth = mot(tmp_path)
    single = str(tmp_path / "gt" / "S-1" / "det" / "det.txt")
    card = ee.score(single, truth, dialect="mot", metrics=METRICS)
    assert card.value("FN") == 2
    assert noted(card, "boxes_without_id", count=1)


def test_kitti(tmp_path: Path) -> None:
    """A van, an occluded car, a small box and a region absorb predictions; one is wrong."""
    rest = "-1 -1 -1 -1 -1 -1 -1"
    truth = [
        f"0 0 Car 0 0 0 0 0 50 50 {rest}",
        f"0 1 Van 0 0 0 100 0 150 50 {rest}",
        f"0 2 Car 0 3 0 200 0 250 50 {rest}",
        f"0 -1 DontCare -1 -1 -10 300 0 400 100 {rest}",
        f"0 3 Cyclist 0 0 0 500 0 550 50 {rest}",
    ]
    boxes = ("0 0 50 50", "100 0 150 50", "200 0 250 50", "310 0 350 60", "600 0 650 20",
             "700 0 750 50")  # fmt: skip
    predictions = [f"0 {i} Car -1 -1 -10 {box} {rest} 0.9" for i, box in enumerate(boxes)]
    sides = [
        str(written(tmp_path / name / "0000.txt", *lines))
        for name, lines in (("found", predictions), ("truth", truth))
    ]
    card = ee.score(*sides, dialect="kitti", metrics=METRICS)
    assert [card.value(name) for name in METRICS[:3]] == [1, 1, 0]
    noted(card, "labels_not_evaluated", count=1)
    plain = ee.score(*sides, metrics=METRICS)
    assert [plain.value(name) for name in METRICS[:3]] == [2, 3, 2]  # labels match unchanged


@pytest.mark.parametrize(
    ("line", "message"), [("1,2,x,10,20,40,1,1,1", "'x' is not a"), ("1,2,3", "3 fields")]
)
def test_a_line_that_is_wrong(tmp_path: Path, line: str, message: str) -> None:
    predictions, truth = mot(tmp_path)
    file = tmp_path / "gt" / "S-1" / "gt" / "gt.txt"
    first, *others = file.read_text().splitlines()
    written(file, first, line, *others)
    with refused("file_malformed", ee.ReadError, file=str(file), line=2, match=message):
        ee.score(predictions, truth, dialect="mot")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2.6,7,0,0,1,1,1", "'2.6'.* whole number"),
        ("2,7.5,0,0,1,1,1", "'7.5'.* whole number"),
        ("2,nan,0,0,1,1,1", "'nan'.* number"),
        ("2.6 7 Car 0 0 0 0 0 50 50 1 1 1 1 1 1 1", "'2.6'.* whole number"),
        ("2 7.5 Car 0 0 0 0 0 50 50 1 1 1 1 1 1 1", "'7.5'.* whole number"),
    ],
)
def test_frames_and_ids_are_whole(tmp_path: Path, line: str, message: str) -> None:
    first = "1,7,0,0,1,1,1" if "," in line else "1 7 Car 0 0 0 0 0 50 50 1 1 1 1 1 1 1"
    file = str(written(tmp_path / "0000.txt", first, line))
    with refused("file_malformed", file=file, line=2, match=message):
        ee.score(file, file, task="tracking")


@pytest.mark.parametrize("rest", ["-1.2,3,0.5", "4.4852,5.5016,0"])
def test_points_in_space_are_no_classes(tmp_path: Path, rest: str) -> None:
    """In the first benchmark all ground truths are pedestrians, so there are no classes."""
    file = str(written(tmp_path / "S.txt", f"1,7,0,0,9,9,1,{rest}", f"2,7,0,0,9,9,1,{rest}"))
    card = ee.score(file, file, metrics=["TP"], dialect="mot")
    assert card.value("TP", label_value="pedestrian") == 2


def mots(folder: Path) -> tuple[str, str]:
    """Masks of 4 x 4 pixels in an image of 20 x 30: a car, a pedestrian and one in a region."""

    def mask(x: int, side: int = 4) -> str:
        pixels = np.zeros((20, 30), np.uint8, order="F")
        pixels[:side, x : x + side] = 1
        counts: str = compressed(pixels)["counts"]
        return counts

    rest = "20 30"
    truth = [f"{frame} {own} {kind} {rest} {mask(x)}"
             for frame in (1, 2) for own, kind, x in ((1001, 1, 0), (2001, 2, 8))]  # fmt: skip
    truth += [f"1 10000 10 {rest} {mask(16, 6)}", f"1 10000 10 {rest} {mask(24, 6)}"]
    tracks = (5, 1, 0), (6, 2, 8), (7, 2, 17)
    predictions = [f"{frame} {own} {kind} {rest} {mask(x)}"
             for frame in (1, 2) for own, kind, x in tracks]  # fmt: skip
    written(folder / "gt" / "0002" / "gt" / "gt.txt", *truth)
    written(folder / "gt" / "0002" / "seqinfo.ini", "[Sequence]", "seqLength=5")
    return str(written(folder / "found" / "0002.txt", *predictions)), str(folder / "gt")


def test_mots(tmp_path: Path) -> None:
    sides = mots(tmp_path)
    card = ee.score(*sides, metrics=METRICS)
    assert card.task == "tracking"
    assert [card.value(name) for name in METRICS] == [4, 1, 0, 0.1]  # one of two in the region
    assert card.value("TP", label_value="car") == 2
    assert card.value("FPPerFrame", label_value="pedestrian") == 0.2  # of seqLength


def test_masks_whose_codes_are_digits(tmp_path: Path) -> None:
    """The code of a small mask may look like a number; one line of the file suffices."""
    lines = "1 2001 2 7 3 434O20", "1 2002 2 7 3 777", "2 2002 2 7 3 777"
    truth = str(written(tmp_path / "gt" / "0002" / "gt" / "gt.txt", *lines[1:], lines[0]))
    tracks = str(written(tmp_path / "found" / "0002.txt", *lines[1:], lines[0]))
    card = ee.score(tracks, truth, metrics=["TP"])
    assert (card.task, card.value("TP")) == ("tracking", 3)


@pytest.mark.parametrize(
    ("line", "message"), [("1 x 2 20 30 aa", "'x' is not a"), ("1 2 20 30 aa", "5 fields")]
)
def test_a_line_of_mots_that_is_wrong(tmp_path: Path, line: str, message: str) -> None:
    predictions, truth = mots(tmp_path)
    first, *others = Path(predictions).read_text().splitlines()
    written(Path(predictions), first, line, *others)
    with refused("file_malformed", ee.ReadError, file=predictions, line=2, match=message):
        ee.score(predictions, truth)


def test_negative_sizes_of_text(tmp_path: Path) -> None:
    file = str(written(tmp_path / "S.txt", "1,7,0,0,9,3,1", "1,8,0,0,9,-3,1"))
    with refused("file_malformed", ee.ReadError, file=file, line=2, match="height -3"):
        ee.score(file, file)
