"""Inputs of a job: files, partitions, digests, run ids."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from jobs.conftest import DAYS, write_day
from refusals import refused

from evalengine.jobs import running
from evalengine.jobs.running import plan_job
from evalengine.schemas.errors import OptionError, ReadError
from evalengine.schemas.option_values import LabelThreshold

Write = Callable[..., Path]
PARTS = ("[outputs]", 'partition = "date"\n[outputs]')
NO_VARIABLE = ('[variables]\ndate = "2026-11-20"\n', "")
FIXED = ("runs/{date}", "runs/all")


def names(path: Path, role: str = "predictions") -> list[str]:
    return [file.name for file in plan_job(path).tables.files[role]]


def test_files_in_order_with_digests(write: Write, folder: Path) -> None:
    path = write(("tables/date={date}/predictions", "tables/date=*/predictions"))
    files = plan_job(path).tables.files["predictions"]
    assert [file.name for file in files] == [f"tables/date={d}/predictions.parquet" for d in DAYS]
    for file in files:
        content = (folder / file.name).read_bytes()
        assert (file.bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_missing_inputs(write: Write) -> None:
    with pytest.raises(ReadError, match="no such file"):
        plan_job(write(("date = \"2026-11-20\"", "date = \"2026-12-24\"")))  # fmt: skip


def test_unknown_names_are_refused_before_any_table_is_read(write: Write) -> None:
    missing = ('date = "2026-11-20"', 'date = "2026-12-24"')
    with refused("unknown_name", value="mAPP"):
        plan_job(write(missing, ("by =", 'task = "detection"\nmetrics = ["mAPP"]\nby =')))


class TestPartitions:
    def test_every_value_on_disk(self, write: Write) -> None:
        plan = plan_job(write(PARTS, NO_VARIABLE, FIXED))
        assert plan.tables.partitions == DAYS
        assert [file.partition for file in plan.tables.files["ground_truths"]] == [*DAYS]

    def test_a_window_of_partitions(self, write: Write) -> None:
        window = (
            "[outputs]",
            'partition = "date"\nfirst = "2026-11-20"\nlast = "{end}"\n[outputs]',
        )
        path = write(window, ('date = "2026-11-20"', 'end = "2026-11-20"'), FIXED)
        assert plan_job(path).tables.partitions == ("2026-11-20",)
        assert plan_job(path, {"end": "2026-12-31"}).tables.partitions == DAYS[1:]
        with refused("partitions_missing", values=[]):
            plan_job(path, {"end": "2026-11-01"})

    def test_a_partition_missing_on_one_side(self, write: Write, folder: Path) -> None:
        (folder / "tables" / "date=2026-11-20" / "truths.parquet").unlink()
        with refused("partitions_missing", values=["2026-11-20"], side="ground_truths", of=3):
            plan_job(write(PARTS, NO_VARIABLE, FIXED))

    def test_globs_around_the_variable(self, write: Write, folder: Path) -> None:
        shutil.copytree(folder / "tables", folder / "deep" / "a" / "tables[1]")
        pattern = ("tables/date={date}/pred", "deep/**/tables[[]1]/date={date}/p?e[!x]")
        path = write(PARTS, NO_VARIABLE, FIXED, pattern)
        assert names(path) == [f"deep/a/tables[1]/date={d}/predictions.parquet" for d in DAYS]

    def test_a_repeated_variable_has_one_value(self, write: Write, folder: Path) -> None:
        for day, other in ((DAYS[0], DAYS[0]), (DAYS[1], DAYS[1]), (DAYS[1], DAYS[2])):
            target = folder / "two" / day
            target.mkdir(parents=True, exist_ok=True)
            source = folder / "tables" / f"date={day}"
            shutil.copy(source / "predictions.parquet", target / f"{other}.parquet")
            shutil.copy(source / "truths.parquet", target / f"t{other}.parquet")
        predictions = ("tables/date={date}/predictions", "two/{date}/{date}")
        truths = ("tables/date={date}/truths", "two/{date}/t{date}")
        path = write(PARTS, NO_VARIABLE, FIXED, predictions, truths)
        assert names(path) == [f"two/{d}/{d}.parquet" for d in DAYS[:2]]

    def test_a_variable_in_no_path(self, write: Write) -> None:
        with refused("partition_misfit", option="inputs.partition"):
            plan_job(write(("[outputs]", 'partition = "day"\n[outputs]')))


class TestRunId:
    def test_equal_jobs_have_equal_ids(self, write: Write, folder: Path, monkeypatch) -> None:
        first = plan_job(write())
        os.utime(folder / "tables/date=2026-11-20/truths.parquet", (1, 1))
        monkeypatch.chdir(folder)
        other = plan_job("job.toml")
        assert other.run_id == first.run_id
        assert len(first.run_id) == 16
        threads = plan_job(write(("[outputs]", "[options]\nthreads = 1\n[outputs]")))
        assert threads.run_id == first.run_id
        gates = plan_job(write(("0.5]", "0.75]"), ("lineage.jsonl", "events.jsonl")))
        assert gates.run_id == first.run_id

    def test_different_jobs_have_different_ids(
        self, write: Write, folder: Path, monkeypatch
    ) -> None:
        seen = {plan_job(write()).run_id, plan_job(write(), {"date": "2026-11-19"}).run_id}
        seen.add(plan_job(write(('by = ["weather"]', "by = []"))).run_id)
        seen.add(plan_job(write(('"nightly"', '"weekly"'))).run_id)
        seen.add(plan_job(write(("by =", 'dialect = "coco"\nby ='))).run_id)
        monkeypatch.setattr(running, "__version__", "999")
        seen.add(plan_job(write()).run_id)
        monkeypatch.undo()
        write_day(folder, "2026-11-20", wrong=1)
        seen.add(plan_job(write()).run_id)
        assert len(seen) == 7

    @pytest.mark.parametrize("option", ["label_map", "training"])
    def test_the_content_of_an_options_file_is_part_of_the_id(
        self, option: str, write: Write, folder: Path
    ) -> None:
        path = write(("[outputs]", f'[options]\n{option} = "map.csv"\n[outputs]'))
        (folder / "map.csv").write_text("label_value,new_label_value\ndog,cat\n")
        first = plan_job(path)
        (folder / "map.csv").write_text("label_value,new_label_value\ndog,owl\n")
        assert plan_job(path).run_id != first.run_id
        assert first.tables.paths(option) == str(folder / "map.csv")

    def test_a_file_of_thresholds_is_relative_to_the_job(self, write: Write, folder: Path) -> None:
        path = write(("[outputs]", '[options]\nthresholds = "best.json"\n[outputs]'))
        (folder / "best.json").write_text('{"a": 0.4}')
        (threshold,) = plan_job(path).loaded.options.thresholds
        assert threshold == LabelThreshold(None, "a", 0.4)

    def test_the_words_of_a_stop_word_file_are_part_of_the_id(
        self, write: Write, folder: Path
    ) -> None:
        path = write(("[outputs]", '[options]\nstop_words = "words.txt"\n[outputs]'))
        (folder / "words.txt").write_text("the\na\n")
        first = plan_job(path)
        assert first.loaded.options.stop_words == ("the", "a")
        (folder / "words.txt").write_text("the\nan\n")
        assert plan_job(path).run_id != first.run_id


class TestRemote:
    def test_remote_inputs_need_a_version(self, write: Write) -> None:
        remote = ("tables/date={date}/predictions", "s3://bucket/{date}/predictions")
        with pytest.raises(OptionError, match=r"inputs\.version"):
            plan_job(write(remote))
        version = ("[outputs]", 'version = "7"\n[outputs]')
        plan = plan_job(write(remote, version))
        assert plan.tables.paths("predictions") == "s3://bucket/2026-11-20/predictions.parquet"
        other = plan_job(write(remote, ("[outputs]", 'version = "8"\n[outputs]')))
        assert other.run_id != plan.run_id

    @pytest.mark.parametrize("place", ["/", "/x/..", ".", "x/.."])
    def test_folders_that_cannot_be_replaced(self, write: Write, place: str) -> None:
        with refused("option_value", option="outputs.folder", value=place):
            plan_job(write(("runs/{date}", place)))

    @pytest.mark.parametrize("address", ["s3://b/runs", "s3:/b/runs"])
    def test_outputs_must_be_local(self, write: Write, address: str) -> None:
        with refused("remote_folder", option="outputs.folder"):
            plan_job(write(("runs/{date}", address)))
        with refused("remote_folder", option="outputs.history", match='history_format = "delta"'):
            plan_job(write(('"history"', f'"{address}"')))
        for name, change in (
            ("tallies", ("[outputs]", f'[outputs]\ntallies = "{address}"')),
            ("lineage", ("lineage.jsonl", address)),
        ):
            path = write(change)
            for call in (plan_job, running.run_job):
                with refused("remote_folder", option=f"outputs.{name}"):
                    call(path)
            assert not (path.parent / "s3:").exists()

    @pytest.mark.parametrize("name", ["job.toml", "tables/date=2026-11-20/predictions.parquet"])
    def test_lineage_must_not_be_an_input(self, write: Write, name: str) -> None:
        path = write(("lineage.jsonl", name))
        for call in (plan_job, running.run_job):
            with refused("input_overwritten"):
                call(path)


class TestRasters:
    """Raster files that a table names, identified by size and modification time."""

    @pytest.fixture
    def path(self, folder: Path) -> Path:
        for name in ("a", "b"):
            (folder / f"{name}.png").write_bytes(b"pixels of " + name.encode())
        for side, column in (("p", "mask_file"), ("t", "raster")):
            pl.DataFrame({"datum_id": [1, 2], column: ["a.png", "b.png"]}).write_json(
                folder / f"{side}.json"
            )
        job = folder / "maps.toml"
        job.write_text(
            'name = "maps"\n[inputs]\npredictions = "p.json"\nground_truths = "t.json"\n'
        )
        return job

    def test_a_changed_raster_changes_the_id(self, path: Path) -> None:
        first = plan_job(path)
        assert plan_job(path).run_id == first.run_id
        assert first.tables.changed() == []
        raster = path.parent / "b.png"
        before = raster.stat()
        raster.write_bytes(b"pixels of c")  # of the same size
        os.utime(raster, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        assert plan_job(path).run_id != first.run_id
        assert first.tables.changed() == ["b.png", "b.png"]
        os.utime(raster, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert plan_job(path).run_id == first.run_id
        raster.unlink()
        assert plan_job(path).run_id != first.run_id

    def test_every_format_and_renamed_columns(self, path: Path) -> None:
        rows = pl.read_json(path.parent / "t.json").rename({"raster": "Picture"})
        text = path.read_text().replace("t.json", "t.{form}")
        for form in ("parquet", "csv", "json", "ipc", "ndjson"):
            getattr(rows, f"write_{form}")(path.parent / f"t.{form}")
            path.write_text(
                text.replace("{form}", form) + '[options]\ncolumns = {Picture = "raster"}\n'
            )
            [file] = plan_job(path).tables.files["ground_truths"]
            assert [name for name, _, _ in file.rasters.files] == ["a.png", "b.png"], form
            path.write_text(text.replace("{form}", form))
            [file] = plan_job(path).tables.files["ground_truths"]
            assert file.rasters.files == ()

    def test_only_the_changed_partition_is_matched_again(self, folder: Path) -> None:
        for night in ("v1", "v2"):
            (folder / night).mkdir()
            (folder / night / "a.png").write_bytes(b"x")
            rows = pl.DataFrame({"datum_id": [night], "raster": ["a.png"]})
            for side in "pt":
                rows.write_parquet(folder / night / f"{side}.parquet")
        job = folder / "maps.toml"
        job.write_text(
            'name = "maps"\n[inputs]\npartition = "v"\npredictions = "{v}/p.parquet"\n'
            'ground_truths = "{v}/t.parquet"\nfirst = "v1"\nlast = "v2"\n'
        )
        before = plan_job(job).tables
        (folder / "v2" / "a.png").write_bytes(b"longer")
        after = plan_job(job).tables
        assert before.key_of("v1") == after.key_of("v1")
        assert before.key_of("v2") != after.key_of("v2")


def test_a_digit_after_a_repeated_variable(write: Write, folder: Path) -> None:
    for date in DAYS:
        tables = folder / "tables" / f"date={date}"
        (tables / "predictions.parquet").rename(tables / f"{date}0.parquet")
    twice = ("date={date}/predictions", "date={date}/{date}0")
    assert plan_job(write(PARTS, NO_VARIABLE, FIXED, twice)).tables.partitions == DAYS
