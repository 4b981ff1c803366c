"""The report that a job writes for each run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from jobs.conftest import write_day
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.schemas.errors import OptionError

Write = Callable[..., Path]
REPORT = ("[outputs]", '[report]\ntitle = "Boxes of {date}"\n[outputs]')


def page_of(result: object, folder: Path) -> str:
    return (folder / "runs" / "2026-11-20" / "report.html").read_text(encoding="utf-8")


def test_the_page_is_in_the_folder_of_the_run(write: Write, folder: Path) -> None:
    result = ee.run_job(write(REPORT))
    page = page_of(result, folder)
    assert "<h1>Boxes of 2026-11-20</h1>" in page
    assert "1 gate passed." in page
    assert result.card.metrics.height
    repeated = ee.run_job(write(REPORT), force=True)  # the page there is recognised as its own
    assert repeated.ran


def test_a_missing_folder_of_pictures_is_refused_before_scoring(write: Write, folder: Path) -> None:
    (name, _), images = REPORT, '[report]\nimages = "pictures"\n[outputs]'
    with refused("file_missing") as caught:
        ee.run_job(write((name, images)))
    assert "report.images: " in str(caught.value)
    assert not (folder / "runs").exists()
    (folder / "pictures").mkdir()
    assert ee.run_job(write((name, images))).ran


def test_without_the_table_there_is_no_page(write: Write, folder: Path) -> None:
    ee.run_job(write())
    assert not (folder / "runs" / "2026-11-20" / "report.html").exists()


def test_a_finished_run_gets_its_page(write: Write, folder: Path) -> None:
    ee.run_job(write())
    result = ee.run_job(write(REPORT))
    assert not result.ran
    assert "1 gate passed." in page_of(result, folder)


def test_the_page_shows_the_baseline(write: Write, folder: Path) -> None:
    last = ("gates = [", 'baseline = "last"\ngates = ["mAP[iou=0.5] >= baseline - 0.05", ')
    write_day(folder, "2026-11-21", first=0)
    path = write(REPORT, last)
    ee.run_job(path)
    ee.run_job(path, variables={"date": "2026-11-21"})
    page = (folder / "runs" / "2026-11-21" / "report.html").read_text(encoding="utf-8")
    assert "2026-11-20" in page
    assert "baseline</span></th>" in page


def test_a_saved_run_shows_its_jobs_gates(write: Write, folder: Path, tmp_path: Path) -> None:
    ee.run_job(write())
    made = ee.report(folder / "runs" / "2026-11-20", tmp_path / "a.html")
    page = made.read_text(encoding="utf-8")
    assert "1 gate passed." in page
    assert "nightly: 2026-11-20" in page


def test_unknown_keys_are_refused(write: Write) -> None:
    with pytest.raises(OptionError, match="titel"):
        ee.run_job(write(("[outputs]", '[report]\ntitel = "x"\n[outputs]')))


def test_runs_that_cannot_be_read_are_named_in_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = ee.score(pl.DataFrame({"actual": ["a", "b"], "predicted": ["a", "a"]}))
    for night in (1, 2):
        card.save(tmp_path / "runs" / f"2026-11-0{night}")
    (tmp_path / "runs" / "2026-11-02" / "metrics.parquet").write_bytes(b"PAR1")
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "a.html")]) == 0
    message = capsys.readouterr().err
    assert message.startswith("warning: ")
    assert "metrics.parquet" in message
