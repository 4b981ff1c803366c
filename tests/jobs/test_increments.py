"""Jobs with partitions: only new partitions are matched, and results cover all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from jobs.conftest import DAYS, write_day
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine import atomic
from evalengine.jobs import sources
from evalengine.run import Messages
from evalengine.schemas.errors import WriteError
from evalengine.schemas.option_values import make_options
from evalengine.schemas.results import Finding

Write = Callable[..., Path]
PAIRS = (
    ("[outputs]", 'partition = "date"\n[outputs]'),
    ('[variables]\ndate = "2026-11-20"\n', ""),
    ("runs/{date}", "runs/all"),
    ('by = ["weather"]', 'by = ["weather"]\nmetrics = [\n  "AP", "mAP", "AR", "Counts", "Outcomes",'
     ' "ConfusionMatrix", "DetailedPrecisionRecallCurve",\n]'),
)  # fmt: skip


@pytest.fixture
def path(write: Write) -> Path:
    return write(*PAIRS)


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives the names of matched partitions."""
    names: list[str] = []
    tallied = sources._tallied

    def counted(part: sources.Part, *args: Any, **named: Any) -> Any:
        names.append(part.name)
        return tallied(part, *args, **named)

    monkeypatch.setattr(sources, "_tallied", counted)
    return names


def whole(folder: Path, days: tuple[str, ...] = DAYS) -> ee.Scorecard:
    """Score the tables of all days in one run."""
    sides = [
        [str(folder / "tables" / f"date={day}" / f"{side}.parquet") for day in days]
        for side in ("predictions", "truths")
    ]
    options = ["AP", "mAP", "AR", "Counts", "Outcomes", "ConfusionMatrix"]
    options.append("DetailedPrecisionRecallCurve")
    return ee.score(*sides, by="weather", metrics=options)


def same(ours: ee.Scorecard, theirs: ee.Scorecard) -> None:
    assert ours.frames == theirs.frames
    assert {"outcomes", "examples", "confusion", "curves"} <= set(ours.frames)
    for name in theirs.frames:
        assert_frame_equal(ours.frame(name), theirs.frame(name), check_exact=True)
    assert_frame_equal(ours.labels, theirs.labels)


def test_only_a_new_night_is_matched(path: Path, folder: Path, matched: list[str]) -> None:
    write_day(folder, DAYS[1], wrong=3, first=100)
    first = ee.run_job(path)
    assert matched == [*DAYS]
    same(first.card, whole(folder))
    write_day(folder, "2026-11-22", wrong=2, first=300)
    second = ee.run_job(path)
    assert matched == [*DAYS, "2026-11-22"]
    assert second.plan.run_id != first.plan.run_id
    assert second.card.run["parts"] == {"all": 4, "reused": 3}
    same(second.card, whole(folder, (*DAYS, "2026-11-22")))
    assert not ee.run_job(path).ran


def test_an_inserted_and_a_deleted_night(path: Path, folder: Path, matched: list[str]) -> None:
    ee.run_job(path)
    write_day(folder, "2026-11-19b", wrong=1, first=300)
    days = (DAYS[0], "2026-11-19b", *DAYS[1:])
    same(ee.run_job(path).card, whole(folder, days))
    for file in (folder / "tables" / f"date={DAYS[2]}").iterdir():
        file.unlink()
    result = ee.run_job(path)
    same(result.card, whole(folder, days[:-1]))
    assert matched == [*DAYS, "2026-11-19b"]


class TestMissing:
    def delete(self, folder: Path, day: str) -> None:
        for file in (folder / "tables" / f"date={day}").iterdir():
            file.unlink()

    def test_a_night_without_ground_truths_is_a_note_if_others_have_some(
        self, path: Path, folder: Path
    ) -> None:
        for day, severities in (
            (DAYS[1], ["note"]),
            (DAYS[0], ["note"] * 2),
            (DAYS[2], ["warning"] * 3),
        ):
            file = folder / "tables" / f"date={day}" / "truths.parquet"
            pl.read_parquet(file)[:0].write_parquet(file)
            card = ee.run_job(path).card
            notes = [one for one in card.findings if one.code == "no_ground_truths"]
            assert [one.severity for one in notes] == severities
            assert bool(card.warnings) is (severities[0] == "warning")

    def test_a_night_deleted_on_both_sides_is_a_warning(self, path: Path, folder: Path) -> None:
        assert not ee.run_job(path).card.warnings
        self.delete(folder, DAYS[1])
        result = ee.run_job(path)
        (warning,) = [note for note in result.card.warnings if "missing now" in note]
        assert warning.startswith("1 partition of")
        assert f"skipped: {DAYS[1]}." in warning
        assert warning in result.card.notes
        assert ee.run_job(path).card.warnings == (warning,)  # read from the folder
        write_day(folder, DAYS[1], first=100)
        assert not ee.run_job(path).card.warnings

    def test_it_fails_a_strict_job(self, path: Path, folder: Path) -> None:
        path.write_text(path.read_text().replace("gates =", "strict = true\ngates ="))
        assert not ee.run_job(path).gate_failed
        self.delete(folder, DAYS[2])
        assert ee.run_job(path).gate_failed

    def test_another_folder_of_the_job_records_it(self, path: Path, folder: Path) -> None:
        path.write_text(path.read_text().replace("runs/all", "runs/{run_id}"))
        ee.run_job(path)
        self.delete(folder, DAYS[0])
        assert any("missing now" in note for note in ee.run_job(path).card.warnings)
        assert any("missing now" in note for note in ee.run_job(path, force=True).card.warnings)

    def test_a_night_outside_the_window_is_not_missing(self, path: Path, folder: Path) -> None:
        text = path.read_text()
        ee.run_job(path)
        path.write_text(text.replace("[outputs]", f'first = "{DAYS[1]}"\n[outputs]'))
        assert not ee.run_job(path).card.warnings

    @pytest.mark.parametrize("form", ['"{}"', '["{}", "2026-11-19"]'])
    def test_required_partitions_must_exist(self, form: str, path: Path, folder: Path) -> None:
        text = path.read_text()
        required = form.format("2026-11-21")
        path.write_text(text.replace("[outputs]", f"required = {required}\n[outputs]"))
        assert ee.run_job(path).ran
        self.delete(folder, "2026-11-21")
        with refused("partitions_missing", values=["2026-11-21"]):
            ee.run_job(path)
        path.write_text(
            path.read_text().replace('partition = "date"\n', "").replace("date={date}", "date=x")
        )
        with refused("option_unread", option="inputs.required"):
            ee.run_job(path)


class TestInvalidated:
    def test_by_changed_inputs(self, path: Path, folder: Path, matched: list[str]) -> None:
        ee.run_job(path)
        write_day(folder, DAYS[1], wrong=2, first=100)
        same(ee.run_job(path).card, whole(folder))
        assert matched == [*DAYS, DAYS[1]]
        assert len(list((folder / ".tallies" / "nightly").iterdir())) == 3

    def test_by_options_but_not_by_times_or_threads(
        self, write: Write, folder: Path, matched: list[str]
    ) -> None:
        ee.run_job(write(*PAIRS))
        os.utime(folder / "tables" / f"date={DAYS[0]}" / "truths.parquet", (1, 1))
        threads = ("[outputs]\nf", "[options]\nthreads = 1\n[outputs]\nf")
        ee.run_job(write(*PAIRS, threads))
        assert matched == [*DAYS]
        options = ("[outputs]\nf", "[options]\niou_thresholds = [0.5]\n[outputs]\nf")
        ee.run_job(write(*PAIRS, options))
        assert matched == [*DAYS] * 2

    def test_by_the_version(
        self, path: Path, folder: Path, matched: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from evalengine.jobs import running

        ee.run_job(path)
        monkeypatch.setattr(running, "__version__", "999")
        monkeypatch.setattr(running, "__version__", "999")
        ee.run_job(path)
        assert matched == [*DAYS] * 2

    def test_by_force_and_by_damage(self, path: Path, folder: Path, matched: list[str]) -> None:
        ee.run_job(path)
        ee.run_job(path, force=True)
        assert matched == [*DAYS] * 2
        first = min((folder / ".tallies" / "nightly").iterdir())
        first.write_bytes(first.read_bytes()[:-200])
        write_day(folder, "2026-11-22", first=300)
        ee.run_job(path)
        assert matched[6:] == [DAYS[0], "2026-11-22"]

    @pytest.mark.parametrize("damage", ["middle", "half", "empty"])
    def test_damage_of_any_kind_is_noted(
        self, damage: str, path: Path, folder: Path, matched: list[str]
    ) -> None:
        ee.run_job(path)
        first = min((folder / ".tallies" / "nightly").iterdir())
        content = first.read_bytes()
        at = len(content) // 3
        first.write_bytes(
            {
                "middle": content[:at] + b"\xff" * 64 + content[at + 64 :],
                "half": content[: len(content) // 2],
                "empty": b"",
            }[damage]
        )
        write_day(folder, "2026-11-22", first=300)
        card = ee.load(ee.run_job(path).plan.folder)
        assert matched[3:] == [DAYS[0], "2026-11-22"]
        same(card, whole(folder, (*DAYS, "2026-11-22")))
        notes = [note for note in card.notes if "made again" in note]
        assert [note.startswith(DAYS[0]) for note in notes] == [True]


class TestRefused:
    def test_a_datum_in_two_partitions(self, path: Path, folder: Path) -> None:
        ee.run_job(path)
        before = (folder / "runs" / "all" / "_SUCCESS").read_bytes()
        write_day(folder, "2026-11-22", first=205)
        with refused("repeated_values", column="datum_id", count=5):
            ee.run_job(path)
        assert (folder / "runs" / "all" / "_SUCCESS").read_bytes() == before

    def test_partitions_with_different_metrics(self, folder: Path) -> None:
        tables = {
            "a": pl.DataFrame({"actual": [0, 1], "predicted": [0, 1], "score": [0.1, 0.9]}),
            "b": pl.DataFrame({"actual": [0, 1], "predicted": [0, 1]}),
        }
        for name, table in tables.items():
            ids = pl.Series("datum_id", [f"{name}{row}" for row in range(2)])
            table.with_columns(ids).write_parquet(folder / f"{name}.parquet")
        job = folder / "classes.toml"
        job.write_text('name = "c"\n[inputs]\npartition = "p"\npredictions = "{p}.parquet"\n')
        with refused("parts_differ", parts=["a", "b"]):
            ee.run_job(job)

    def test_a_table_of_all_partitions(self, write: Write) -> None:
        truths = ("tables/date={date}/truths", "tables/date=2026-11-20/truths")
        with refused("partition_misfit", option="inputs.ground_truths"):
            ee.run_job(write(*PAIRS, truths))


def test_notes_name_their_night(path: Path, folder: Path) -> None:
    truths = folder / "tables" / f"date={DAYS[1]}" / "truths.parquet"
    pl.read_parquet(truths).head(9).write_parquet(truths)
    notes = ee.run_job(path).card.notes
    (note,) = notes
    assert re.findall(r"[\d-]+", note) == ["2026-11-20", "1", "109"]


def test_a_partition_whose_name_begins_like_another(
    write: Write, folder: Path, matched: list[str]
) -> None:
    (folder / "tables" / "date=2026-11-20").rename(folder / "tables" / "date=2026-11-19.2")
    path = write(*PAIRS)
    ee.run_job(path)
    write_day(folder, "2026-11-22", first=300)
    ee.run_job(path)
    assert sorted(matched) == ["2026-11-19", "2026-11-19.2", "2026-11-21", "2026-11-22"]


def test_drafts_of_killed_runs_are_deleted(path: Path, folder: Path) -> None:
    """Unlocked drafts of this machine are deleted at once, drafts of others after a day."""
    ee.run_job(path)
    [tally] = (folder / ".tallies" / "nightly").glob(f"{DAYS[0]}.*.tally")
    here, other = atomic.this_machine(), "0000"
    drafts = {
        name: tally.with_name(f".{tally.name}.{pid}.{machine}0a1b")
        for name, pid, machine in (
            ("dead", 2**22 + 1, here),
            ("at work", 2**22 + 2, here),
            ("old", 12, other),
            ("young", 13, other),
        )
    }
    for draft in drafts.values():
        draft.write_bytes(b"PK")
    os.utime(drafts["old"], (0, 0))
    with drafts["at work"].open("rb") as file:
        assert atomic.try_lock(file)
        ee.run_job(path, force=True)
    assert {name for name, draft in drafts.items() if draft.exists()} == {"at work", "young"}


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_writes_a_tally(path: Path, folder: Path) -> None:
    code = (
        "import os, sys; import evalengine as ee; from evalengine import atomic;"
        "atomic.os.replace = lambda *paths: os._exit(9); ee.run_job(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    tallies = folder / ".tallies" / "nightly"
    assert len([*tallies.glob(".*")]) == 1
    ee.run_job(path)
    assert [*tallies.glob(".*")] == []
    assert len([*tallies.iterdir()]) == len(DAYS)


@pytest.mark.parametrize("name", ["n" * 230, "é" * 110])
def test_a_partition_with_a_long_name(
    name: str, path: Path, folder: Path, matched: list[str]
) -> None:
    write_day(folder, name, first=300)
    card = ee.run_job(path).card
    same(card, whole(folder, (*DAYS, name)))
    write_day(folder, "2026-11-22", first=400)
    ee.run_job(path)
    assert matched == [*DAYS, name, "2026-11-22"]  # its tally was saved
    assert len([*(folder / ".tallies" / "nightly").iterdir()]) == 5


def test_an_error_names_its_partition(path: Path, folder: Path) -> None:
    table = folder / "tables" / f"date={DAYS[1]}" / "truths.parquet"
    pl.read_parquet(table).drop("xmin").write_parquet(table)
    with refused("column_missing", side="ground_truths", column="xmin"):
        ee.run_job(path)


def test_a_full_disk_of_tallies(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sources.stored, "save", full)
    with refused("write_failed", WriteError):
        ee.run_job(path)


def test_an_ignored_memory_limit_is_noted(write: Write) -> None:
    limit = ("[outputs]", '[options]\nmemory_limit = "1GB"\n[outputs]')
    messages: list[str] = []
    ee.run_job(write(*PAIRS, limit), tell=lambda text, **facts: messages.append(text))
    assert any("memory_limit" in text for text in messages)


def test_executors_are_for_jobs_without_partitions(write: Write) -> None:
    with refused("options_conflict", options=["executor", "inputs.partition"]):
        ee.run_job(write(("by =", 'executor = "processes"\nby ='), *PAIRS))


def test_partitions_of_keypoints_are_as_one_run(tmp_path: Path) -> None:
    """The dialect or the data determine the geometry that readers use."""
    rng = np.random.default_rng(4)
    images, truths, results = [], [], []
    for image in range(8):
        images.append({"id": image, "width": 640, "height": 480})
        for place in range(3):
            points = rng.uniform([100 * place, 50], [100 * place + 60, 90], (17, 2))
            moved = points + rng.normal(0, rng.uniform(2, 14), points.shape)
            common = {"image_id": image, "category_id": 1}
            box = [100.0 * place, 50.0, 60.0, 40.0 + place]
            for rows, at in ((truths, points), (results, moved)):
                rows.append({**common, "keypoints": np.c_[at, np.full(17, 2)].ravel().tolist()})
            area = 60 * (40.0 + place)
            truths[-1] |= {"id": len(truths), "bbox": box, "area": area, "iscrowd": 0}
            results[-1]["score"] = rng.random()

    def write(name: str, some: Callable[[int], bool]) -> tuple[str, str]:
        truth_file = {
            "images": [one for one in images if some(one["id"])],
            "annotations": [one for one in truths if some(one["image_id"])],
            "categories": [{"id": 1, "name": "person"}],
        }
        files = tmp_path / f"found_{name}.json", tmp_path / f"true_{name}.json"
        files[0].write_text(json.dumps([one for one in results if some(one["image_id"])]))
        files[1].write_text(json.dumps(truth_file))
        return str(files[0]), str(files[1])

    every = write("all", lambda image: True)
    halves = [write("low", lambda image: image < 4), write("high", lambda image: image >= 4)]
    for named in ({}, {"dialect": "coco-keypoints"}):
        parts = [
            sources.Part(name, *files, None, f"{name} {named}", tmp_path / f"{name}{len(named)}")
            for name, files in zip(("low", "high"), halves, strict=True)
        ]
        whole = ee.score(*every, **named)
        assert 0 < whole.value("mAP", iou_threshold=0.5) < 1
        for _ in range(2):  # from the rows, then from the saved tallies
            card = sources.score_parts(parts, make_options(**named))
            assert_frame_equal(card.metrics, whole.metrics, check_exact=True)
            assert card.options.iou_type == "keypoints"


def test_a_note_of_several_nights_is_one_line(path: Path, folder: Path) -> None:
    """The first night is named before the note, and nights with other counts after it."""
    for day in DAYS:
        file = folder / "tables" / f"date={day}" / "predictions.parquet"
        pl.read_parquet(file).sort("datum_id").head(9).write_parquet(file)
    card = ee.run_job(path).card
    (note,) = [note for note in card.notes if "without predictions" in note]
    assert note.startswith(f"{DAYS[0]}: 1 datum without predictions")
    assert note.endswith(f" Other counts or rows in {', '.join(DAYS[1:])}.")
    findings = [one for one in card.findings if one.code == "datums_without_predictions"]
    assert [one.count for one in findings] == [1, 1, 1]


def test_notes_about_different_things_are_not_merged(write: Write, folder: Path) -> None:
    """Notes on nulls in two columns stay separate lines."""
    for day, columns in zip(DAYS, (["site", "weather"], ["weather"], []), strict=True):
        for side in ("predictions", "truths"):
            file = folder / "tables" / f"date={day}" / f"{side}.parquet"
            table = pl.read_parquet(file).with_columns(site=pl.lit("north"))
            gone = pl.col("datum_id") % 100 < 2 + DAYS.index(day)
            table.with_columns(
                pl.when(~gone).then(pl.col(column)).alias(column) for column in columns
            ).write_parquet(file)
    path = write(*PAIRS[:-1], ('by = ["weather"]', 'by = ["site", "weather"]'))
    for _ in range(2):  # from the rows, then from the saved tallies of these days
        notes = [note for note in ee.run_job(path).card.notes if "without a value" in note]
        assert [re.sub(r"': \d[\d, ]*", "'", note) for note in notes] == [
            f"{DAYS[0]}: 2 datums without a value of 'site'.",
            f"{DAYS[0]}: 2 datums without a value of 'weather'. Other counts or rows in {DAYS[1]}.",
        ]
        write_day(folder, "2026-11-22", first=300)
        for side in ("predictions", "truths"):
            file = folder / "tables" / "date=2026-11-22" / f"{side}.parquet"
            pl.read_parquet(file).with_columns(site=pl.lit("north")).write_parquet(file)


SIDES = ("predictions: columns not read: 'foo'.", "ground truths: columns not read: 'bar'.")


@pytest.mark.parametrize(
    ("notes", "facts", "merged"),
    [
        (SIDES, ({}, {}), False),
        (SIDES, ({"side": "predictions"}, {"side": "ground_truths"}), False),
        (("3 rows.", "4 rows."), ({"columns": ["a"]}, {"columns": ["b"]}), False),
        (("3 rows of 'a 1'.", "4 rows of 'a 2'."), ({}, {}), False),
        (("a 1 row", "a 2 rows"), ({}, {}), True),
        (("a 1 row", "a 2 rows"), ({"side": "x", "count": 1}, {"side": "x", "count": 2}), True),
        (
            (
                "1 box is wide: 'k'. It counts.",
                "2,000 boxes are wide: 'l', 'm' and 1,998 more. They count.",
            ),
            ({"rows": [1]}, {"rows": [2, 3]}),
            True,
        ),
    ],
)
def test_notes_are_merged_by_their_facts_and_wording(
    notes: tuple[str, str], facts: tuple[dict[str, Any], ...], merged: bool
) -> None:
    by_part = {
        day: Messages((note,), (), (Finding("code", "note", note, facts=fact),))
        for day, note, fact in zip(DAYS, notes, facts, strict=False)
    }
    whole = sources._of_all(by_part)
    first, second = notes
    assert whole.notes == (
        (f"{DAYS[0]}: {first} Other counts or rows in {DAYS[1]}.",)
        if merged
        else (f"{DAYS[0]}: {first}", f"{DAYS[1]}: {second}")
    )
    assert len(whole.findings) == 2
