"""Output and exit status of all commands."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fabricated
import pytest
from reference_data import real_data

import evalengine as ee
from evalengine import api
from evalengine import run as scoring
from evalengine.cli import base as cli_base
from evalengine.cli import cli, main

Run = Callable[..., tuple[int, str, str]]


class TestStatuses:
    def test_a_mistyped_command(self, run: Run) -> None:
        status, _, err = run("scroe", "p", "g")
        assert status == 2
        assert "you mean 'score'?" in err

    def test_a_file_instead_of_a_command(self, run: Run) -> None:
        for before, way in (
            (["judge"], "judge run qa.jsonl"),
            (["convert"], "convert auto qa.jsonl"),
            ([], "score qa.jsonl"),
            ([], "run nightly.toml"),
        ):
            status, _, err = run(*before, way.split()[-1])
            assert status == 2
            assert f"For a file or folder write: evalengine {way}" in err

    def test_a_file_that_is_missing(self, run: Run, tmp_path: Path) -> None:
        there = tmp_path / "qa.jsonl"
        for way in (["judge", "run"], ["judge", "export"]):
            assert "no such file" in run(*way, str(there))[2]
        assert "no such file" in run("judge", str(there))[2]
        there.write_text("{}")
        assert "--out" in run("judge", "run", str(there))[2]
        assert "no such file" not in run("judge", str(there))[2]

    def test_a_forecast_of_more_rows_than_there_can_be(self, run: Run) -> None:
        status, out, err = run("explain", "--task", "detection", "--rows", "1e30")
        assert (status, out) == (2, "")
        assert "--rows 1e+30: must be a whole number, at least 1 and at most 1e+15" in err

    def test_a_mistyped_metric(self, run: Run, tables: tuple[str, str]) -> None:
        status, out, err = run("score", *tables, "--metric", "mAPP")
        assert (status, out) == (2, "")
        assert "you mean 'mAP'?" in err
        assert "Traceback" not in err

    def test_a_missing_file(self, run: Run, tables: tuple[str, str]) -> None:
        status, _, err = run("score", "nowhere.parquet", tables[1])
        assert status == 2
        assert "nowhere.parquet" in err

    def failing(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        def score(*args: Any, **files: Any) -> None:
            raise error

        monkeypatch.setattr(scoring, "score_tables", score)

    def test_other_errors_exit_with_3(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing(monkeypatch, ZeroDivisionError("a bug"))
        status, _, err = run("score", "p", "g")
        assert status == 3
        assert "ZeroDivisionError: a bug" in err
        assert "--debug" in err
        assert "Traceback" not in err

    @pytest.mark.parametrize("args", [["--debug", "score"], ["score", "--debug"]])
    def test_debug_shows_a_traceback(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, args: list[str]
    ) -> None:
        self.failing(monkeypatch, ZeroDivisionError("a bug"))
        status, _, err = run(*args, "p", "g")
        assert status == 3
        assert "Traceback" in err
        assert "Traceback" not in run("score", "p", "g")[2]

    def test_a_plain_value_error_is_an_internal_error(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.failing(monkeypatch, ValueError("a bug"))
        assert run("score", "p", "g")[0] == 3

    def test_interrupted(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing(monkeypatch, KeyboardInterrupt())
        assert run("score", "p", "g")[0] == 130

    def test_without_arguments_help_is_shown(self, run: Run) -> None:
        status, out, _ = run()
        assert status == 0
        assert out == run("--help")[1] != ""

    def test_version(self, run: Run) -> None:
        assert run("--version")[1].strip().endswith(ee.__version__)

    def test_every_command_has_an_example(self, run: Run) -> None:
        groups = {"convert": ("coco", "trec"), "judge": ("run", "prompts", "export", "import")}
        commands = [[name] for name in cli.commands]
        commands += [[group, name] for group, names in groups.items() for name in names]
        assert len(commands) == 31
        for words in commands:
            status, out, _ = run(*words, "--help")
            assert status == 0
            assert "Example:" in out, words
            assert "evalengine " + " ".join(words) in out, words


class TestProgress:
    def test_only_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with cli_base.progress_line() as tell:
            assert tell is None

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TERM", "xterm")
        with cli_base.progress_line() as tell:
            assert tell is not None
            tell("reading")

    def test_first_compilation_is_announced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from evalengine.kernels import folder

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        for compiled in (False, True):
            monkeypatch.setattr(sys, "stderr", Terminal())
            monkeypatch.setattr(folder, "is_compiled", lambda compiled=compiled: compiled)
            with cli_base.progress_line() as tell:
                assert tell is not None
                tell("matching")
            assert ("compiling kernels once" in sys.stderr.getvalue()) is not compiled  # type: ignore[attr-defined]


class TestOthers:
    def test_check(self, run: Run, tables: tuple[str, str]) -> None:
        status, out, _ = run("check", *tables)
        assert status == 0
        assert out.splitlines()[0] == "predictions: 2 rows"
        assert out.splitlines()[-1] == "ok"
        content = json.loads(run("check", *tables, "--format", "json")[1])
        assert content["rows"] == {"predictions": 2, "ground_truths": 2}

    def test_check_reports_names_and_notes(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        report = SimpleNamespace(
            rows={"predictions": 3},
            recognised={"predictions": {"image_id": "datum_id", "score": "score"}},
            notes=["2 boxes of no area"],
            warnings=[],
        )
        monkeypatch.setattr(api, "check", lambda *args, **files: report)
        status, out, _ = run("check", "p", "g")
        assert status == 0
        assert out.splitlines() == [
            "predictions: 3 rows",
            "predictions: read image_id as datum_id",
            "note: 2 boxes of no area",
            "ok",
        ]

    def test_explain(self, run: Run) -> None:
        status, out, _ = run("explain", "--dialect", "coco", "--metric", "mAP")
        assert status == 0
        assert "coco" in out

    def test_metrics(self, run: Run) -> None:
        status, out, _ = run("metrics", "--task", "detection", "map", "AR")
        assert status == 0
        assert [line.split()[0] for line in out.splitlines() if line[:1].strip()] == ["mAP", "AR"]
        assert max(map(len, out.splitlines())) <= 80
        rows = json.loads(run("metrics", "--task", "detection", "--format", "json")[1])
        assert {"name", "definition", "range", "better", "source"} <= set(rows[0])
        assert len(rows) == ee.metrics_table().filter(task="detection").height
        status, _, err = run("metrics", "mAPP")
        assert status == 2
        assert "you mean 'mAP'?" in err

    def test_schemas(self, run: Run) -> None:
        status, out, _ = run("schemas")
        assert status == 0
        assert "ground_truths" in out
        assert "curves (output)" in out
        assert max(map(len, out.splitlines())) <= 80
        rows = json.loads(run("schemas", "metrics", "--format", "json")[1])
        assert [row["column"] for row in rows] == fabricated.card().metrics.columns
        assert run("schemas", "--format", "markdown")[1].startswith("| task |")
        assert run("schemas", "--format", "csv")[1].startswith("task,table,")
        assert "you mean 'curves'?" in run("schemas", "curve")[2]

    def test_convert_coco(self, run: Run, tmp_path: Path) -> None:
        truths = {
            "images": [{"id": 1, "width": 9, "height": 9, "file_name": "a.jpg"}],
            "categories": [{"id": 3, "name": "cat"}],
            "annotations": [
                {"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 4], "area": 16,
                 "iscrowd": 0}
            ],
        }  # fmt: skip
        (tmp_path / "gt.json").write_text(json.dumps(truths))
        results = [{"image_id": 1, "category_id": 3, "bbox": [0, 0, 4, 4], "score": 0.5}]
        (tmp_path / "dt.json").write_text(json.dumps(results))
        status, out, _ = run(
            "convert", "coco", *(str(tmp_path / name) for name in ("gt.json", "dt.json")),
            "--out", str(tmp_path / "tables"),
        )  # fmt: skip
        assert status == 0
        assert f"{tmp_path / 'tables' / 'groundtruths.parquet'}: 1 row\n" in out
        assert (tmp_path / "tables" / "predictions.parquet").is_file()

    def test_the_example_of_convert_coco(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The commands in the help score like the JSON files, also with polygons next to masks."""
        data = real_data("coco_val2014_100")
        arguments = {"instances.json": "gt.json", "detections.json": "dt_segm.json"}
        text = run("convert", "coco", "--help")[1].replace("\\\n", " ")
        commands = [line.split()[1:] for line in text.splitlines() if "evalengine " in line]
        commands = [one for one in commands if one[0] in ("convert", "score")]
        assert [one[0] for one in commands] == ["convert", "score"]
        monkeypatch.chdir(tmp_path)
        for name, source in arguments.items():
            Path(name).symlink_to(data / source)
        assert run(*commands[0])[0] == 0
        status, tables, err = run(*commands[1], "--format", "json")
        assert status == 0, err
        files = run("score", *reversed(arguments), "--dialect", "coco", "--format", "json")
        assert json.loads(tables) == json.loads(files[1])

    def test_warmup(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[str | None] = []
        monkeypatch.setattr(api, "warmup", calls.append)
        for more, wanted in (((), None), (("--task", "retrieval"), "retrieval")):
            status, out, _ = run("warmup", *more)
            assert (status, calls.pop()) == (0, wanted)
            assert out.startswith("kernels compiled in")

    def test_warmup_of_a_task_that_does_not_exist(self, run: Run) -> None:
        status, _, err = run("warmup", "--task", "detecton")
        assert status == 2
        assert "you mean 'detection'?" in err


class TestProcess:
    """Behaviour that needs a separate process."""

    def started(self, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "evalengine", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )

    def test_python_m(self) -> None:
        process = self.started("--version")
        out, err = process.communicate()
        assert (process.returncode, err) == (0, b"")
        assert ee.__version__.encode() in out

    def test_piped_output_has_no_colour_and_no_progress(self, tables: tuple[str, str]) -> None:
        process = self.started("score", *tables, env={**os.environ, "FORCE_COLOR": "1"})
        out, err = process.communicate()
        assert process.returncode == 0
        assert b"mAPAveragedOverIOUs  1.0000" in out
        assert b"\x1b" not in out
        assert err == b""

    @pytest.mark.skipif(os.name == "nt", reason="no such pipes")
    def test_a_closed_pipe_is_no_error(self) -> None:
        process = self.started("schemas")
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0
        process.stderr.close()


def test_gates_and_ranges_of_other_tools_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "a.parquet", "--gate", "mAP > 0.5"]) == 2
    assert "--fail-under" in capsys.readouterr().err
    assert main(["score", "a.parquet", "--iou", "0.5:0.95"]) == 2
    assert "list the values" in capsys.readouterr().err
