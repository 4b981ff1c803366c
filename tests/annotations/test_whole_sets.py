"""A data set with names and several splits, and plain folders of predictions of one split."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import noted

import evalengine as ee
from evalengine.cli import main

LINES = ("0 0.5 0.5 0.2 0.4", "1 0.3 0.3 0.2 0.2")
MESSAGE = "no datum of the split 'train' has a prediction (2 of 4 datums)"


def write(folder: Path, names: dict[str, str]) -> Path:
    for name, text in names.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    files = {
        f"labels/{split}/{split}{i}.txt": "\n".join(LINES)
        for split in ("train", "val")
        for i in (1, 2)
    }
    yaml = "train: images/train\nval: images/val\nnames: [car, dog]\n"
    return write(tmp_path / "set", {**files, "data.yaml": yaml})


def predicted(folder: Path, *more: str, names: tuple[str, ...] = ("val1", "val2")) -> Path:
    lines = [f"{line} 0.9" for line in (*LINES, *more)]
    return write(folder, {f"{name}.txt": "\n".join(lines) for name in names})


@pytest.mark.parametrize("paths", ["data.yaml", "labels"])
def test_a_split_without_predictions_is_noted(paths: str, truth: Path, tmp_path: Path) -> None:
    predictions = predicted(tmp_path / "found")
    card = ee.score(predictions, truth / paths)
    assert card.value("mAP", iou_threshold=0.5) < 0.51
    (warnings,) = card.warnings
    assert MESSAGE in warnings
    assert "where=\"split = 'val'\"" in warnings
    rest = ee.score(predictions, truth / paths, where="split = 'val'")
    assert rest.warnings == ()
    assert rest.value("mAP", iou_threshold=0.5) == 1.0
    both = predicted(tmp_path / "both", names=("val1", "train1"))
    findings = ee.score(both, truth / paths).findings  # of each split half
    assert [one.code for one in findings if one.severity == "warning"] == [
        "datums_without_predictions"
    ]


def test_notes_of_the_shell_use_options_of_the_shell(
    truth: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(predicted(tmp_path / "found")), str(truth)]) == 1
    assert "--where \"split = 'val'\"." in capsys.readouterr().out


def test_names_of_the_other_side_are_names(truth: Path, tmp_path: Path) -> None:
    predictions = predicted(tmp_path / "found")
    assert not [note for note in ee.check(predictions, truth).notes if "no class names" in note]
    split = write(truth / "test", {"labels/val1.txt": LINES[0]})  # as Roboflow lays splits out
    assert not [note for note in ee.check(predictions, split).notes if "no class names" in note]
    bare = predicted(tmp_path / "bare", names=("val1",))
    assert [note for note in ee.check(predictions, bare).notes if "no class names" in note]


def test_classes_beyond_the_list_are_a_warning(truth: Path, tmp_path: Path) -> None:
    predictions = predicted(tmp_path / "found", "7 0.5 0.5 0.1 0.1")
    note = noted(
        ee.score(predictions, truth, where="split = 'val'"),
        "classes_not_declared",
        severity="warning",
        count=2,
    )
    message = note.message
    assert "2 of 6 predictions" in message
    assert "list of 2 (7)" in message
    assert f"first in '{predictions / 'val1.txt'}', '{predictions / 'val2.txt'}'" in message


def test_comparing_runs_with_missing_predictions_warns(truth: Path, tmp_path: Path) -> None:
    val = truth / "labels" / "val"
    a, b = predicted(tmp_path / "a"), predicted(tmp_path / "b", names=("val1",))
    result = ee.compare(a, b, ground_truths=val, draws=20)
    (warning,) = result.warnings
    assert "(a of 0, b of 1)" in warning
    assert [note for note in result.notes if note.startswith("b: 1 datum") and "'val2'" in note]
    assert len([note for note in result.notes if str(val) in note and "4 objects" in note]) == 1
    whole = ee.compare(a, a, ground_truths=truth, names=["a", "b"], draws=20)
    assert MESSAGE in whole.warnings[0]
    for name, preds in (("x", a), ("y", b)):
        ee.score(preds, val).save(tmp_path / name)
    assert ee.compare(tmp_path / "x", tmp_path / "y", draws=20).warnings[0].startswith("many of 2")


def test_names_are_shown_next_to_numbers(
    truth: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = predicted(tmp_path / "a"), predicted(tmp_path / "b", names=("val1",))
    result = ee.compare(a, b, ground_truths=truth, where="split = 'val'", draws=20)
    assert "  1 dog AR " in repr(result)
    assert ee.load(result.save(tmp_path / "kept")).names == result.names == {"0": "car", "1": "dog"}
    arguments = [str(b), str(truth), "--where", "split = 'val'"]
    assert main(["errors", *arguments, "--rows"]) == 0
    assert "  0 car " in capsys.readouterr().out
    assert main(["score", *arguments, "--metric", "ConfusionMatrix"]) == 0
    output = capsys.readouterr().out
    assert "  dog  " in output
    assert "\n  car  " in output
