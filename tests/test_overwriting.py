"""Every command and call refuses outputs that are inputs, before it does any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from segmentation.making import write

import evalengine as ee
from evalengine.cli import main

SCORED = pl.DataFrame(
    {"datum_id": [1, 2, 3, 4], "label_value": ["a", "b", "a", "b"], "score": [0.9, 0.8, 0.2, 0.6]}
)
TRUTHS = pl.DataFrame({"datum_id": [1, 2, 3, 4], "label_value": ["a", "b", "b", "b"]})
BOXES = {"xmin": [0.0] * 4, "ymin": [0.0] * 4, "xmax": [9.0] * 4, "ymax": [9.0] * 4}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCORED.write_parquet("p.parquet")
    TRUTHS.write_parquet("g.parquet")
    boxes = pl.DataFrame(BOXES)
    pl.concat([SCORED, boxes], how="horizontal").write_parquet("pb.parquet")
    pl.concat([TRUTHS, boxes], how="horizontal").write_parquet("gb.parquet")
    TRUTHS.select(datum_id="datum_id").write_parquet("d.parquet")
    for name in "pq":
        Path(f"{name}.run").write_text("q1 Q0 d1 1 0.9 a\nq1 Q0 d2 2 0.8 a\n")
    os.link("p.parquet", "hard.parquet")
    os.symlink("g.parquet", "soft.parquet")
    for name in ("score.html", "score.xml"):
        os.link("p.parquet", name)
    return tmp_path


def same_bytes(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


FILES = (
    "thresholds p.parquet g.parquet --metric ThresholdAtMaxF -o p.parquet",
    "thresholds p.parquet g.parquet --metric ThresholdAtMaxF -o ./x/../g.parquet",
    "thresholds p.parquet g.parquet --metric ThresholdAtMaxF -o hard.parquet",
    "thresholds p.parquet g.parquet --metric ThresholdAtMaxF -o soft.parquet",
    "thresholds p*.parquet g.parquet --metric ThresholdAtMaxF -o p.parquet",
    "thresholds p.parquet g.parquet --datums d.parquet --metric ThresholdAtMaxF -o d.parquet",
    "errors pb.parquet gb.parquet --to coco -o gb.parquet",
    "errors pb.parquet gb.parquet --to coco -o hard/pb.parquet",
    "score p.parquet g.parquet --report score.html",
    "score p.parquet g.parquet --fail-under Accuracy>=0 --junit score.xml",
    "score p.parquet g.parquet --fail-under Accuracy>=0 --junit g.parquet",
    "fuse p.run q.run -o q.run",
    "fuse p.run q.run -o ./p.run",
    "convert trec p.run -o p.run",
    "run job.toml --junit job.toml",
)  # fmt: skip


@pytest.mark.parametrize("line", FILES)
def test_commands_that_would_replace_a_file(
    here: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    (here / "x").mkdir()
    (here / "hard").mkdir()
    os.link("pb.parquet", "hard/pb.parquet")
    (here / "job.toml").write_text('name = "n"\n[inputs]\npredictions = "p.parquet"\n')
    before = same_bytes(here)
    assert main(line.split()) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert same_bytes(here) == before


def test_folders_that_are_inputs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "labels").mkdir()
    (here / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    assert main(["score", "p.parquet", "g.parquet", "--out", "run"]) == 0
    assert main(["score", "p.parquet", "g.parquet", "--out", "other"]) == 0
    for line in (
        "convert yolo labels -o labels",
        "convert yolo labels -o ./x/../labels/",
        "compare run other --out run --overwrite",
        "score p.parquet g.parquet --baseline run --out run --overwrite",
        "report run -o run/metrics.html",
        "errors labels labels --to coco -o labels/a.txt",
        "score labels labels --fail-under mAP>=0 --junit labels/a.txt",
    ):
        (here / "x").mkdir(exist_ok=True)
        os.path.exists("run/metrics.html") or os.link("run/metrics.parquet", "run/metrics.html")
        before = same_bytes(here)
        capsys.readouterr()
        assert main(line.split()) == 2, line
        assert "would be replaced" in capsys.readouterr().err, line
        assert same_bytes(here) == before


def test_outputs_next_to_inputs(here: Path) -> None:
    """A second run overwrites the output of the first, also in folders that were read."""
    (here / "labels").mkdir()
    (here / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    pl.DataFrame({"datum_id": ["a"], "width": [100], "height": [100]}).write_csv("sizes.csv")
    for _ in range(2):
        for line in (
            "score p.parquet g.parquet --out run --overwrite --report run.html",
            "report run -o run/report.html",
            "thresholds p.parquet g.parquet --metric ThresholdAtMaxF -o best.parquet",
            "convert yolo labels --datums sizes.csv -o .",
            "fuse p.run q.run -o fused.run",
        ):
            assert main(line.split()) == 0, line


def test_words_that_are_folders(here: Path) -> None:
    """Values of options may be equal to the name of the output folder."""
    for _ in range(2):
        assert (
            ee.convert("gb.parquet", "pb.parquet", to="coco", out="coco")["predictions.json"] == 4
        )
        assert (
            main(["convert", "auto", "gb.parquet", "pb.parquet", "--to", "coco", "--out", "coco"])
            == 0
        )
    with pytest.raises(ee.OptionError, match="would be replaced"):
        ee.convert(ground_truths="coco", to="tables", out="./coco")


CALLS: Sequence[Callable[[], Any]] = (
    lambda: ee.convert("gb.parquet", "pb.parquet", out="."),
    lambda: ee.find_thresholds("p.parquet", "g.parquet", metrics="ThresholdAtMaxF").save(
        "hard.parquet"
    ),
    lambda: ee.find_errors(Path("pb.parquet"), "gb.parquet").write("coco", "gb.parquet"),
)


@pytest.mark.parametrize("call", CALLS)
def test_calls_that_would_replace_a_file(here: Path, call: Callable[[], Any]) -> None:
    os.link("gb.parquet", "groundtruths.parquet")
    before = same_bytes(here)
    with pytest.raises(ee.OptionError, match="would be replaced"):
        call()
    assert same_bytes(here) == before


def test_a_result_may_be_saved_over_another_calls_input(here: Path) -> None:
    result = ee.find_thresholds("p.parquet", "g.parquet", metrics="ThresholdAtMaxF")
    result.save("best.parquet")
    ee.score("p.parquet", "g.parquet", thresholds="best.parquet")
    assert result.save("best.parquet") == len(pl.read_parquet("best.parquet"))


def test_rasters_that_a_table_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "m.png", np.zeros((4, 4), np.uint8))
    os.link("m.png", "m.html")
    for side in ("a", "b"):
        pl.DataFrame({"datum_id": [1], "raster": ["m.png"]}).write_csv(f"{side}.csv")
    before = same_bytes(here)
    assert main(["score", "a.csv", "b.csv", "--report", "m.html"]) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert same_bytes(here) == before


@pytest.mark.parametrize(
    "outputs", ['lineage = "p.csv"', 'lineage = "job.toml"', 'history = "."', 'tallies = "."']
)
def test_jobs(here: Path, capsys: pytest.CaptureFixture[str], outputs: str) -> None:
    SCORED.write_csv("p.csv")
    TRUTHS.write_csv("g.csv")
    (here / "job.toml").write_text(
        'name = "n"\n[inputs]\npredictions = "p.csv"\nground_truths = "g.csv"\n'
        f"[outputs]\n{outputs}\n"
    )
    before = same_bytes(here)
    assert main(["run", "job.toml"]) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert same_bytes(here) == before


@pytest.mark.parametrize(
    "line",
    [
        "score p.parquet g.parquet --out s3://bucket/run",
        "score p.parquet g.parquet --report gs://bucket/page.html",
        "score p.parquet g.parquet --out file:///tmp/run",
        "fuse p.run q.run -o s3://bucket/fused.run",
    ],
)
def test_commands_write_to_no_address(
    here: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    before = same_bytes(here)
    assert main(line.split()) == 2
    assert "this is an address" in capsys.readouterr().err
    assert same_bytes(here) == before


def test_a_result_is_saved_at_no_address(here: Path) -> None:
    card = ee.score("p.parquet", "g.parquet", metrics=["Accuracy"])
    before = same_bytes(here)
    with refused("remote_folder"):
        card.save("s3://bucket/run")
    assert same_bytes(here) == before
