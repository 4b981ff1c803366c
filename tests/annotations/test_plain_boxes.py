"""Boxes in plain text: one file per image, or one file per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from annotations.test_formats import noted
from annotations.writers import NAMES, Image, images, write_class_results, write_coco
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.sources.tables import open_source

SETS = {
    "ids": [(f"img_{i:03d}", ["car", "dog", "cat"]) for i in range(4)],
    "words": [("street", ["car", "dog"]), ("park", ["car"]), ("beach", ["car", "dog"])],
    "letters": [("a", ["cat", "dog"]), ("b", ["cat"])],
    "last lines": [("a", ["dog", "cat"]), ("b", ["cat"])],
    "numbers": [(f"{i:06d}", ["0", "1"]) for i in range(3)],
}
"""Images and the classes of their objects."""


def write(folder: Path, some: list[tuple[str, list[str]]], line: str, seed: int = 0) -> Path:
    """Write one file per image; ``line`` is the format of an object."""
    chance = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for name, classes in some:
        lines = []
        for label in classes:
            x0, y0, w, h = chance.integers(5, 60, 4).tolist()
            fields = {"c": label, "s": float(chance.random()), "l": x0, "t": y0, "r": x0 + w,
                      "b": y0 + h, "w": w, "h": h}  # fmt: skip
            lines.append(line.format(**fields) + "\n")
        (folder / f"{name}.txt").write_text("".join(lines))
    return folder


PREDICTION, TRUTH = "{c} {s} {l} {t} {r} {b}", "{c} {l} {t} {r} {b}"


@pytest.mark.parametrize("scored", [False, True], ids=["five fields", "six fields"])
@pytest.mark.parametrize("name", SETS)
def test_a_file_per_image(name: str, scored: bool, tmp_path: Path) -> None:
    """Perfect boxes score 1 for folders, globs and lists of files; labels are the first fields."""
    truth = write(tmp_path / "truth", SETS[name], "{c} 1 {l} {t} {r} {b}" if scored else TRUTH)
    result = write(tmp_path / "found", SETS[name], PREDICTION)
    for file in truth.iterdir():  # the same boxes
        rows = [line.split() for line in (result / file.name).read_text().splitlines()]
        one = " 1" if scored else ""
        file.write_text("".join(f"{c}{one} {' '.join(box)}\n" for c, _, *box in rows))
    pairs = [(str(result), str(truth)), (f"{result}/*.txt", f"{truth}/*.txt")]
    pairs.append(tuple([str(f) for f in sorted(one.iterdir())] for one in (result, truth)))  # type: ignore[arg-type]
    for predictions, truths in pairs:
        card = ee.score(predictions, truths, dialect="voc2012")
        assert card.value("mAP") == 1
        labels = {str(one) for one in card.metrics["label_value"].drop_nulls()}
        assert labels == {c for _, classes in SETS[name] for c in classes}
    whole = ee.score(str(result), str(truth), dialect="voc2012", memory_limit="2GB")
    assert whole.value("mAP") == 1


def test_one_file_of_each_side(tmp_path: Path) -> None:
    predictions = write(tmp_path / "found", SETS["letters"], PREDICTION) / "a.txt"
    truth = write(tmp_path / "truth", SETS["letters"], TRUTH) / "a.txt"
    assert open_source(truth).frame.collect()["datum_id"].to_list() == ["a", "a"]
    assert ee.score(str(predictions), str(truth), dialect="voc2012").value("mAP") is not None
    with refused("format_unknown", ee.ReadError):  # 'cat' and 'dog' may be images
        open_source(predictions)


def test_numbers_of_the_two_readings_differ(tmp_path: Path) -> None:
    """The example of two images, with and without scores in the ground truths."""
    lines = {
        "p/a": "cat .9 10 10 50 50\ndog .8 5 5 30 30\n",
        "p/b": "cat .7 10 10 50 50\ncat .95 60 60 90 90\n",
        "g/a": "cat 1 10 10 50 50\ndog 1 5 5 30 31\n",
        "g/b": "cat 1 10 10 50 51\n",
    }
    for name, text in lines.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.txt").write_text(text)
    sides = str(tmp_path / "p"), str(tmp_path / "g")
    assert round(ee.score(*sides, dialect="voc2012").value("mAP"), 4) == 0.8333
    for name in ("a", "b"):
        file = tmp_path / "g" / f"{name}.txt"
        file.write_text(file.read_text().replace(" 1 ", " "))
    assert round(ee.score(*sides, dialect="voc2012").value("mAP"), 4) == 0.8333
    hard = tmp_path / "g" / "a.txt"
    hard.write_text(hard.read_text().replace("31\n", "31 difficult\n"))
    assert round(ee.score(*sides, dialect="voc2012").value("mAP"), 4) == 0.6667


@pytest.mark.parametrize("prefix", ["comp4_det_test_", "det_val_", ""])
def test_a_file_per_class(prefix: str, tmp_path: Path) -> None:
    """The other side, ids and file names identify the format; numbers equal those of COCO JSON."""
    some, truths = images(0, predictions=True), images(0, predictions=False)
    for image in (*some, *truths):
        image.stem = image.stem.replace(" ", "_")
    paths = write_class_results(tmp_path, some)
    for file in paths.iterdir():
        file.rename(file.with_name(file.name.replace("comp4_det_test_", prefix)))
    truth = write_coco(tmp_path, truths, predictions=False)
    whole = write_coco(tmp_path, some, predictions=True)
    stats = [ee.score(str(one), str(truth), dialect="coco", iou_type="bbox").to_coco()["stats"]
             for one in (paths, whole)]  # fmt: skip
    assert stats[0] == stats[1]


@pytest.mark.parametrize("predictions", [False, True])
def test_widths_and_heights(predictions: bool, tmp_path: Path) -> None:
    """Object-Detection-Metrics writes widths and heights by default."""
    some = [(f"i{k}", ["car"] * 4) for k in range(6)]
    line = "{c} {s} {l} {t} {w} {h}" if predictions else "{c} {l} {t} {w} {h}"
    source = open_source(write(tmp_path / "by_size", some, line))
    corners = open_source(write(tmp_path / "corners", some, PREDICTION if predictions else TRUTH))
    names = ["datum_id", "xmin", "ymin", "xmax", "ymax"]
    assert source.frame.collect()[names].equals(corners.frame.collect()[names])
    assert noted(source, "boxes_by_size")
    assert not any(note.kind == "boxes_by_size" for note in corners.notes)


def test_sides_with_and_without_widths(tmp_path: Path) -> None:
    some = [(f"i{k}", ["car"] * 4) for k in range(6)]
    truth = write(tmp_path / "truth", some, TRUTH)
    predictions = write(tmp_path / "found", some, "{c} {s} {l} {t} {w} {h}")
    assert main(["check", str(predictions), str(truth)]) == 1
    assert (
        main(["check", str(predictions), str(truth), "--box-format", "xywh"]) == 1
    )  # of both sides


def test_a_few_inverted_boxes_are_errors_among_corners(tmp_path: Path) -> None:
    some = [(f"i{k}", ["car"] * 10) for k in range(12)]
    truth = write(tmp_path / "truth", some, TRUTH)
    predictions = write(tmp_path / "found", some, PREDICTION)
    for side, line in ((truth, "car 40 40 30 50\n"), (predictions, "car 0.5 40 40 50 30\n")):
        file = side / "i0.txt"
        right = file.read_text()
        file.write_text(right + line)
        with pytest.raises(ee.InputError, match="1 inverted box "):
            ee.score(str(predictions), str(truth), dialect="voc2012")
        file.write_text(right)


@pytest.mark.parametrize("image", ["img_1", "000012"])
def test_exchanged_corners_in_a_file_per_class_are_errors(image: str, tmp_path: Path) -> None:
    truth = tmp_path / "truth"
    truth.mkdir()
    corners = "".join(f"<{name}>9</{name}>" for name in ("xmin", "ymin", "xmax", "ymax"))
    (truth / f"{image}.xml").write_text(
        f"<annotation><object><name>car</name><bndbox>{corners}</bndbox></object></annotation>"
    )
    file = tmp_path / "comp4_det_test_car.txt"
    file.write_text(f"{image} 0.5 40 40 30 50\n{image} 0.4 1 1 9 9\n")
    with refused("inverted_boxes"):
        ee.score(str(file), str(truth), dialect="voc2012")


def test_flags_and_scores_after_the_corners(tmp_path: Path) -> None:
    flags = write(tmp_path / "flags", SETS["ids"], "{c} {l} {t} {r} {b} 0")
    (flags / "img_000.txt").write_text("car 1 2 30 40 1\n")
    frame = open_source(flags).frame.collect()
    assert frame["difficult"].sum() == 1
    assert "score" not in frame.columns
    scores = write(tmp_path / "scores", SETS["ids"], "{c} {l} {t} {r} {b} {s}")
    frame = open_source(scores).frame.collect()
    assert frame["score"].is_between(0, 1).all()
    assert (frame["xmax"] > frame["xmin"]).all()


def test_runs_of_trec_are_still_trec(tmp_path: Path) -> None:
    lines = {"tag": "301 Q0 402 1 0.5 7\n301 Q0 403 2 0.4 7\n", "number": "301 0 402 1 0.5 7\n",
             "word": "q1 Q0 402 1 0.5 7\n",
             "bare": "301 Q0 402 1 0.5\n", "qrels": "301 0 402 1\n"}  # fmt: skip
    for name, text in lines.items():
        path = tmp_path / f"{name}.txt"
        path.write_text(text)
        assert open_source(path).format == "trec"


def test_shares_of_the_image_next_to_names_are_a_question(tmp_path: Path) -> None:
    """YOLO's centres, sizes and confidence would be read as a score and corners."""
    for side, line in (("p", "{} .2 .3 .25 .5 .9\n"), ("g", "{} .2 .3 .25 .5\n")):
        (tmp_path / side).mkdir()
        for name in "ab":
            (tmp_path / side / f"{name}.txt").write_text(line.format("cat") + line.format("dog"))
    sides = tmp_path / "p", tmp_path / "g"
    for given in (None, "cxcywh"):
        with refused("format_unknown", ee.ReadError, match="data.yaml"):
            ee.score(*sides, box_format=given)
    assert ee.score(*sides, box_format="xyxy").task == "detection"


def test_names_of_several_words_and_broken_lines(tmp_path: Path) -> None:
    file = tmp_path / "i1.txt"
    file.write_text("traffic light 0.9 1 2 3 4\n\ntraffic light 0.8 1 2 3 4\n")
    assert open_source(file).frame.collect()["label_value"].unique().to_list() == ["traffic light"]
    file.write_text("car 0.9 1 2 3 4\ncar 1 2 3\n")
    with pytest.raises(ee.ReadError, match="line 2"):
        ee.convert(str(tmp_path), out=tmp_path / "out", format="image-boxes")
    file.write_text("car 0.9 1 2 3 4\ncar 1 2 3 4\n")
    with pytest.raises(ee.ReadError, match="1 of 2 lines"):
        open_source(file)


def test_a_format_resolves_ambiguous_text(tmp_path: Path) -> None:
    """With words on both sides and several files, images and labels cannot be distinguished."""
    folder = write(tmp_path / "found", [("x", ["car", "dog"]), ("y", ["cat", "cow"])], PREDICTION)
    with pytest.raises(ee.ReadError, match="image-boxes"):
        open_source(folder)
    for name, labels in (
        ("image-boxes", {"car", "dog", "cat", "cow"}),
        ("voc-results", {"x", "y"}),
    ):
        counts = ee.convert(str(folder), out=tmp_path / name, format=name)
        assert counts["predictions.parquet"] == 4
        predictions = open_source(tmp_path / name / "predictions.parquet").frame.collect()
        assert {*predictions["label_value"]} == labels


def test_images_without_objects_count(tmp_path: Path) -> None:
    some = [Image("i1", 64, 64, [(0, 1.0, 2.0, 9.0, 9.0, 0.5)]), Image("i2", 64, 64, [])]
    for image in some:
        lines = [f"{NAMES[c]} {score} {x} {y} {r} {b}\n" for c, x, y, r, b, score in image.boxes]
        (tmp_path / f"{image.stem}.txt").write_text("".join(lines))
    source = open_source(tmp_path)
    assert source.datums is not None
    assert source.datums["datum_id"].to_list() == ["i1", "i2"]


YOLO, KITTI = "0 0.5 0.5 0.2 0.2", "Car 0 0 -1.5 59 15 62 18 2.8 2.6 12 0.4 1.4 69 -1.5"


@pytest.mark.parametrize(
    ("line", "label"), [(YOLO, 0), (KITTI, "Car"), ("cat 10 10 50 50", "cat"), (None, "cat")]
)
def test_a_folder_of_empty_files_has_no_predictions(
    line: str | None, label: object, tmp_path: Path
) -> None:
    """The other side is YOLO, KITTI, plain boxes or Pascal VOC XML."""
    for name in ("found", "truth"):
        (tmp_path / name).mkdir()
    for i in range(4):
        (tmp_path / "found" / f"i{i}.txt").touch()
        box = "<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
        xml = f"<annotation><filename>i{i}.jpg</filename><object><name>cat</name><bndbox>{box}"
        xml += "</bndbox></object></annotation>"
        (tmp_path / "truth" / f"i{i}.{'txt' if line else 'xml'}").write_text(line or xml)
    card = ee.score(tmp_path / "found", tmp_path / "truth", metrics=["mAP", "mAR"])
    assert card.value("mAP", iou=0.5) == card.value("mAR") == 0
    assert card.labels["label_value"].to_list() == [label]
    warnings = [(one.code, one.count) for one in card.findings if one.severity == "warning"]
    assert warnings == [("datums_without_predictions", 4)]
