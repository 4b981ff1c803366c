"""Results on disk: complete round trips, and never a partial result."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine import atomic
from evalengine.schemas.errors import ResultError
from evalengine.scorecard import storage

CURVES = [
    {
        "curve": "PrecisionRecallCurve",
        "label_key": "label",
        "label_value": "cat",
        "iou_threshold": 0.5,
        "score_threshold": 0.05,
        "tp": 1,
        "fp": 2,
    }
]


@pytest.fixture
def card() -> ee.Scorecard:
    return fabricated.card(
        curves=CURVES, notes=("one note",), options={"iou_thresholds": [0.5, 0.75], "by": "weather"}
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class TestRoundTrip:
    def test_everything_is_restored(self, card: ee.Scorecard, tmp_path: Path) -> None:
        folder = card.save(tmp_path / "deep" / "run")
        assert folder == (tmp_path / "deep" / "run").resolve()
        back = ee.load(folder)
        assert back.frames == card.frames == ("metrics", "curves")
        for name in card.frames:
            assert_frame_equal(back.frame(name), card.frame(name))
        assert_frame_equal(back.labels, card.labels)
        for name in ("task", "dialect", "options", "run", "notes", "primary", "directions"):
            assert getattr(back, name) == getattr(card, name), name
        assert back.value("mAP", iou_threshold=0.5) == 0.7
        assert repr(back) == repr(card)

    def test_integer_labels_stay_integers(self, tmp_path: Path) -> None:
        made = fabricated.card(fabricated.of_label(3, 0.5), label=pl.Int32())
        back = ee.load(made.save(tmp_path / "run"))
        assert back.metrics.schema["label_value"] == pl.Int32
        assert back.frame("examples").schema["label_value"] == pl.Int32
        assert back.value("AR", label_value=3) == 0.52

    def test_frames_are_read_on_demand(self, card: ee.Scorecard, tmp_path: Path) -> None:
        folder = card.save(tmp_path / "run")
        back = ee.load(folder)
        (folder / "curves.parquet").unlink()
        assert back.metrics.height
        with pytest.raises(ResultError, match=r"curves\.parquet"):
            _ = back.curves

    def test_run_json_is_for_people_too(self, card: ee.Scorecard, tmp_path: Path) -> None:
        run = json.loads((card.save(tmp_path / "run") / "run.json").read_text())
        assert run["inputs"]["predictions"]["rows"] == 3
        assert run["options"]["iou_thresholds"] == [0.5, 0.75]
        assert run["versions"] == {"evalengine": "0"}
        assert run["notes"] == ["one note"]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("label_map", {"van": "car"}),
            ("label_map", {("a", "van"): ("b", "car"), ("a", "bus"): ("b", "car")}),
            ("label_map", {3: 1}),
            ("label_map", ["van=car"]),
            ("label_map", "map.json"),
            ("area_ranges", {"small": (0.0, 1024.0), "large": (1024.0, math.inf)}),
            ("where", {"predictions": "score > 0.1"}),
        ],
    )
    def test_options_are_restored(self, name: str, value: Any, tmp_path: Path) -> None:
        made = fabricated.card(options={name: value})
        back = ee.load(made.save(tmp_path / "run"))
        assert getattr(back.options, name) == value
        assert back.options == made.options

    def test_a_label_map_table_is_restored(self, tmp_path: Path) -> None:
        table = pl.DataFrame({"label_value": ["van"], "new_label_value": ["car"]})
        made = fabricated.card(options={"label_map": table})
        assert_frame_equal(ee.load(made.save(tmp_path / "run")).options.label_map, table)

    def test_an_export_of_a_loaded_card(self, card: ee.Scorecard, tmp_path: Path) -> None:
        assert ee.load(card.save(tmp_path / "run")).to_valor() == card.to_valor() != []


class TestTarget:
    def test_an_earlier_result_is_kept_unless_overwriting(
        self, card: ee.Scorecard, tmp_path: Path
    ) -> None:
        card.save(tmp_path / "run")
        other = fabricated.card(fabricated.aggregates(shift=0.1))
        with pytest.raises(ResultError, match="overwrite"):
            other.save(tmp_path / "run")
        assert ee.load(tmp_path / "run").value("mAR") == 0.6
        other.save(tmp_path / "run", overwrite=True)
        back = ee.load(tmp_path / "run")
        assert back.value("mAR") == 0.7
        assert back.frames == ("metrics",)
        assert names(tmp_path) == {"run"}

    def test_over_itself(self, card: ee.Scorecard, tmp_path: Path) -> None:
        back = ee.load(card.save(tmp_path / "run"))
        back.save(tmp_path / "run", overwrite=True)
        assert_frame_equal(ee.load(tmp_path / "run").curves, card.curves)

    def test_something_else_is_never_replaced(self, card: ee.Scorecard, tmp_path: Path) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "thesis.txt").write_text("dear")
        (tmp_path / "json").mkdir()
        (tmp_path / "json" / "run.json").write_text('{"kind": "another program\'s"}')
        (tmp_path / "file").write_text("dear")
        for name in ("home", "json", "file"):
            with pytest.raises(ResultError, match="cannot write"):
                card.save(tmp_path / name, overwrite=True)
        assert (tmp_path / "home" / "thesis.txt").read_text() == "dear"
        assert names(tmp_path) == {"home", "json", "file"}

    def test_an_empty_folder_will_do(self, card: ee.Scorecard, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert ee.load(card.save(tmp_path / "run")).value("mAR") == 0.6

    def test_a_link_is_followed(self, card: ee.Scorecard, tmp_path: Path) -> None:
        card.save(tmp_path / "monday")
        (tmp_path / "latest").symlink_to("monday")
        card.save(tmp_path / "latest", overwrite=True)
        assert (tmp_path / "latest").is_symlink()
        assert names(tmp_path) == {"monday", "latest"}

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cannot_be_written(self, card: ee.Scorecard, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(ResultError, match="a writable folder"):
            card.save(tmp_path / "run")

    def test_below_a_file(self, card: ee.Scorecard, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with refused("write_failed", ResultError, match="a writable folder"):
            card.save(tmp_path / "file" / "run")


class TestAllOrNothing:
    """After any failure the target is unchanged, and no file remains next to it."""

    def failing(self, monkeypatch: pytest.MonkeyPatch, what: str, after: int) -> None:
        whole = getattr(storage, what)
        left = [after]

        def broken(*args: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            return whole(*args)

        monkeypatch.setattr(storage, what, broken)

    @pytest.mark.parametrize("after", range(5))
    def test_the_disk_is_full(
        self, card: ee.Scorecard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
    ) -> None:
        fabricated.card(fabricated.aggregates(shift=0.1)).save(tmp_path / "run")
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        self.failing(monkeypatch, "sync", after)
        with pytest.raises(ResultError, match="No space left"):
            card.save(tmp_path / "run", overwrite=True)
        assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
        assert names(tmp_path) == {"run"}

    def test_the_rename_fails(
        self, card: ee.Scorecard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
        card.save(tmp_path / "run")
        rename = Path.rename

        def broken(path: Path, target: Path) -> Path:
            if path.name.endswith(".new"):
                raise OSError(5, "Input/output error")
            return rename(path, target)

        monkeypatch.setattr(Path, "rename", broken)
        with pytest.raises(ResultError, match="Input/output error"):
            fabricated.card([]).save(tmp_path / "run", overwrite=True)
        assert ee.load(tmp_path / "run").value("mAR") == 0.6
        assert names(tmp_path) == {"run"}

    def test_an_interruption_leaves_no_files(
        self, card: ee.Scorecard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(path: Path) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(storage, "sync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            card.save(tmp_path / "run")
        assert names(tmp_path) == set()

    def test_a_frame_that_fails_changes_nothing(self, tmp_path: Path) -> None:
        def broken() -> pl.DataFrame:
            raise RuntimeError("a bug")

        card = fabricated.card()
        card._providers["curves"] = broken
        with pytest.raises(RuntimeError, match="a bug"):
            card.save(tmp_path / "run")
        assert names(tmp_path) == set()


class TestReplacing:
    """Replacing a folder works with and without the system's exchange of names."""

    @pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="no such system call")
    def test_there_is_no_moment_without_the_folder(
        self, card: ee.Scorecard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fresh = card.save(atomic.fresh_name(tmp_path / "run"))
        (tmp_path / "run").mkdir()
        monkeypatch.setattr(Path, "rename", None)  # two renames would need a moment without it
        atomic.swap(fresh, tmp_path / "run")
        assert names(tmp_path) == {"run"}
        assert ee.load(tmp_path / "run").value("mAR") == 0.6

    def test_names_that_cannot_be_exchanged_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "here").mkdir()
        assert not atomic.exchange(tmp_path / "here", tmp_path / "nowhere")
        assert names(tmp_path) == {"here"}

    @pytest.mark.parametrize("dies", ["after_the_first", "before", "after_both"])
    def test_leftovers_of_a_killed_run_are_repaired(
        self, card: ee.Scorecard, tmp_path: Path, dies: str
    ) -> None:
        run = card.save(tmp_path / "run")
        newer = fabricated.card(fabricated.aggregates(shift=0.1))
        fresh = newer.save(atomic.fresh_name(run))
        if dies != "before":
            run.rename(fresh.with_suffix(".old"))
        if dies == "after_both":
            fresh.rename(run)
        other = newer.save(tmp_path / ".runner.0badcafe.new")
        assert atomic.mend(run) == (2 if dies == "after_the_first" else 1)
        assert names(tmp_path) == {"run", other.name}
        assert ee.load(run).value("mAR") == (0.7 if dies == "after_both" else 0.6)
        assert atomic.mend(run) == 0


class TestSweeping:
    """Drafts of killed processes."""

    KILLED = """
import os, signal, sys
from pathlib import Path
from evalengine import atomic
folder = Path(sys.argv[1])
for name in ("run", "other"):
    draft = atomic.fresh_name(folder / name)
    draft.mkdir()
    (draft / "metrics.parquet").write_bytes(b"half")
with atomic.whole_file(folder / "page.html") as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""

    @pytest.fixture
    def killed(self, tmp_path: Path) -> Path:
        subprocess.run([sys.executable, "-c", self.KILLED, str(tmp_path)], check=False)
        assert len(names(tmp_path)) == 3
        return tmp_path

    @staticmethod
    def age(folder: Path, seconds: float) -> None:
        for path in folder.rglob("*"):
            os.utime(path, (time.time() - seconds,) * 2)

    def test_the_next_run_removes_its_own(self, card: ee.Scorecard, killed: Path) -> None:
        self.age(killed, 3600)
        card.save(killed / "run")
        assert ee.load(killed / "run").value("mAR") == 0.6
        with atomic.whole_file(killed / "page.html", sweeps=True) as file:
            file.write(b"whole")
        assert (killed / "page.html").read_bytes() == b"whole"
        [left] = names(killed) - {"run", "page.html"}
        assert left.startswith(".other.")

    def test_young_drafts_stay(self, card: ee.Scorecard, killed: Path) -> None:
        before = names(killed)
        card.save(killed / "run")
        assert names(killed) == {*before, "run"}

    def test_drafts_of_living_processes_and_other_machines_stay(self, tmp_path: Path) -> None:
        ours = atomic.fresh_name(tmp_path / "run")
        process, machine = ours.name.split(".")[2:4]
        theirs = ours.with_name(
            ours.name.replace(f".{process}.", ".999999999.").replace(machine, "f" * 8)
        )
        for draft in (ours, theirs):
            draft.mkdir()
        self.age(tmp_path, 3600)
        assert atomic.sweep(tmp_path, ["run"]) == 0
        assert names(tmp_path) == {ours.name, theirs.name}

    def test_an_earlier_folder_that_was_moved_aside_is_restored(
        self, card: ee.Scorecard, killed: Path
    ) -> None:
        [draft] = [path for path in killed.iterdir() if path.name.startswith(".run.")]
        shutil.rmtree(draft)
        card.save(killed / "kept").rename(draft.with_suffix(".old"))
        self.age(killed, 3600)
        with pytest.raises(ResultError):
            storage.check_target(killed / "run")
        assert ee.load(killed / "run").value("mAR") == 0.6


class TestBadFolders:
    def test_missing(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").touch()
        for name in ("nowhere", "a.txt"):
            with refused("file_missing", ResultError, match=name):
                ee.load(tmp_path / name)

    def test_no_result(self, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match=r"no run\.json"):
            ee.load(tmp_path)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "cannot be read"),
            ("[]", "another program's"),
            ('{"kind": "other"}', "another program's"),
            ('{"kind": "evalengine result", "format": 99}', "result format 99"),
            ('{"kind": "evalengine result", "format": 1}', "incomplete"),
        ],
    )
    def test_a_strange_run_json(self, text: str, words: str, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(ResultError, match=words):
            ee.load(tmp_path)

    def test_a_part_is_missing(self, card: ee.Scorecard, tmp_path: Path) -> None:
        folder = card.save(tmp_path / "run")
        (folder / "metrics.parquet").unlink()
        with refused("result_damaged", ResultError, file="metrics.parquet"):
            ee.load(folder)

    def test_a_part_is_cut_short(self, card: ee.Scorecard, tmp_path: Path) -> None:
        folder = shutil.copytree(card.save(tmp_path / "run"), tmp_path / "copy")
        whole = (folder / "curves.parquet").read_bytes()
        (folder / "curves.parquet").write_bytes(whole[:-10])
        with refused("result_damaged", ResultError, file="curves.parquet"):
            ee.load(folder)

    def test_an_option_of_another_version(self, card: ee.Scorecard, tmp_path: Path) -> None:
        folder = card.save(tmp_path / "run")
        run = json.loads((folder / "run.json").read_text())
        run["options"]["wheather"] = 1
        (folder / "run.json").write_text(json.dumps(run))
        with refused("result_damaged", ResultError, value="wheather"):
            ee.load(folder)


class TestTrust:
    """Only unaltered results are read: damage, mixtures and foreign files are refused."""

    def test_damage_is_found(self, tmp_path: Path) -> None:
        folder = fabricated.card().save(tmp_path / "run")
        path = folder / "metrics.parquet"
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 40)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 8]) + whole[at + 1 :])
            with refused("result_damaged", ResultError, file="metrics.parquet"):
                _ = ee.load(folder).metrics

    def test_two_runs_are_never_mixed(self, tmp_path: Path) -> None:
        first = fabricated.card(notes=("first",)).save(tmp_path / "run")
        loaded = ee.load(first)
        fabricated.card(fabricated.aggregates(shift=0.1), notes=("second",)).save(
            first, overwrite=True
        )
        with refused("result_damaged", ResultError, match="its place"):
            _ = loaded.metrics

    def test_results_of_earlier_versions_have_no_digests(self, tmp_path: Path) -> None:
        folder = fabricated.card().save(tmp_path / "run")
        run = json.loads((folder / "run.json").read_text())
        for name in ("digests", "warnings", "read"):
            del run[name]
        (folder / "run.json").write_text(json.dumps(run))
        assert ee.load(folder).metrics.equals(fabricated.card().metrics)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("notes", None),
            ("notes", [1]),
            ("primary", None),
            ("directions", []),
            ("files", {"metrics.parquet": "x"}),
            ("options", []),
            ("task", 7),
            ("warnings", {}),
        ],
    )
    def test_an_invalid_account_is_refused_by_its_field(
        self, field: str, value: Any, tmp_path: Path
    ) -> None:
        folder = fabricated.card().save(tmp_path / "run")
        run = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**run, field: value}))
        with refused("result_damaged", ResultError, file="run.json", match=rf"\$\.{field}"):
            ee.load(folder)

    def test_deep_nesting_and_frames_without_their_columns(self, tmp_path: Path) -> None:
        folder = fabricated.card().save(tmp_path / "run")
        run = json.loads((folder / "run.json").read_text())
        pl.DataFrame({"x": [1]}).write_parquet(folder / "metrics.parquet")
        run["files"]["metrics.parquet"] = (folder / "metrics.parquet").stat().st_size
        del run["digests"]
        (folder / "run.json").write_text(json.dumps(run))
        with refused("result_damaged", ResultError, file="metrics.parquet", column="metric"):
            _ = ee.load(folder).metrics
        (folder / "run.json").write_text('{"kind": ' + "[" * 200_000)
        with refused("result_damaged", ResultError, file="run.json"):
            ee.load(folder)

    @pytest.mark.parametrize(
        ("frame", "column", "value", "expected"),
        [
            ("metrics", "metric", pl.lit(1), "is Int32"),
            ("metrics", "metric", pl.lit(None, pl.String), "is String with nulls"),
            ("metrics", "value", pl.lit("x"), "is String"),
            ("metrics", "support", pl.lit([1.0]), "is List"),
            ("metrics", "label_value", pl.struct(x=1), "is Struct"),
            ("curves", "curve", pl.lit(1), "is Int32"),
            ("labels", "label_key", pl.lit(None), "is Null"),
        ],
    )
    def test_frames_of_other_dtypes_are_refused_by_their_column(
        self,
        frame: str,
        column: str,
        value: pl.Expr,
        expected: str,
        card: ee.Scorecard,
        tmp_path: Path,
    ) -> None:
        folder = card.save(tmp_path / "run")
        path = folder / f"{frame}.parquet"
        pl.read_parquet(path).with_columns(value.alias(column)).write_parquet(path)
        run = json.loads((folder / "run.json").read_text())
        run["files"][path.name] = path.stat().st_size
        del run["digests"]
        (folder / "run.json").write_text(json.dumps(run))
        with pytest.raises(ResultError, match=rf"{frame}\.parquet .* column '{column}' {expected}"):
            ee.load(folder).frame(frame)

    @pytest.mark.parametrize("given", [[[1]], [[[["a"]], 1]], [[{}, 1]]])
    def test_an_invalid_label_map_is_refused(self, given: Any, tmp_path: Path) -> None:
        folder = fabricated.card().save(tmp_path / "run")
        run = json.loads((folder / "run.json").read_text())
        run["options"]["label_map"] = given
        (folder / "run.json").write_text(json.dumps(run))
        with refused("result_damaged", ResultError, option="label_map"):
            ee.load(folder)

    def test_files_of_the_users_are_not_lost(self, tmp_path: Path) -> None:
        folder = fabricated.card().save(tmp_path / "run")
        (folder / "thesis.txt").write_text("dear")
        with refused("write_failed", ResultError, match="thesis.txt"):
            fabricated.card().save(folder, overwrite=True)
        assert (folder / "thesis.txt").read_text() == "dear"

    @pytest.mark.parametrize("name", ["v1", "v1.2", "v1.deadbeef", "n" * 230])
    def test_only_drafts_of_the_same_folder_are_removed(self, name: str, tmp_path: Path) -> None:
        names = {"v1", "v1.2", "v1.deadbeef", "v1.2.3", "n" * 230}
        drafts = {one: atomic.fresh_name(tmp_path / one) for one in names}
        for draft in drafts.values():
            draft.mkdir()
        assert atomic.mend(tmp_path / name) == 1
        assert {*tmp_path.iterdir()} == {draft for one, draft in drafts.items() if one != name}
