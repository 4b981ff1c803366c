"""The command: what it passes on, what it prints, and how it ends."""

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
import polars as pl
import pytest

import evalengine as ee
from evalengine import api, cli_base
from evalengine.cli import cli, main
from evalengine.cli_options import SHORT, generated
from evalengine.schemas.options import FIELDS, make_options

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; give its status, output and errors."""

    def call(*args: str) -> tuple[int, str, str]:
        status = main(args)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What ``score`` was called with; it returns a fabricated card."""
    calls: dict[str, Any] = {}

    def score(predictions: Any, ground_truths: Any = None, **given: Any) -> ee.Scorecard:
        calls.update(given, predictions=predictions, ground_truths=ground_truths)
        return fabricated.card()

    monkeypatch.setattr(api, "score", score)
    return calls


@pytest.fixture
def tables(tmp_path: Path) -> tuple[str, str]:
    """Paths of a small pair of tables."""
    box = {"xmin": [0.0, 5.0], "ymin": [0.0, 5.0], "xmax": [4.0, 9.0], "ymax": [4.0, 9.0]}
    truths = pl.DataFrame({"datum_id": [1, 2], "label_value": ["cat", "dog"], **box})
    truths.write_parquet(tmp_path / "gts.parquet")
    truths.with_columns(score=pl.lit(0.9)).write_parquet(tmp_path / "preds.parquet")
    return str(tmp_path / "preds.parquet"), str(tmp_path / "gts.parquet")


class TestOptions:
    def test_every_field_has_an_option_with_its_dashed_name(self) -> None:
        made = {option.name: option for option in generated()}
        assert tuple(made) == FIELDS
        for name, option in made.items():
            assert f"--{name.replace('_', '-')}" in option.opts
            assert set(SHORT.get(name, ())) <= set(option.opts)
            assert option.help

    @pytest.mark.parametrize("command", ["score", "check", "explain"])
    def test_help_shows_them_and_an_example(self, run: Run, command: str) -> None:
        status, out, _ = run(command, "--help")
        assert status == 0
        assert "--pr-curve-iou-threshold" in out
        assert f"evalengine {command} preds" in out

    @pytest.mark.parametrize(
        ("args", "field", "value"),
        [
            (["--dialect", "coco"], "dialect", "coco"),
            (["--metric", "AP,mAP", "--metric", "AR"], "metrics", ("AP", "mAP", "AR")),
            (["--metrics", "AP"], "metrics", ("AP",)),
            (["--iou", "0.5, 0.75"], "iou_thresholds", (0.5, 0.75)),
            (["--iou-thresholds", "0.5"], "iou_thresholds", (0.5,)),
            (["--iou-thresholds-to-return", "0.5"], "iou_thresholds_to_return", (0.5,)),
            (["--score-threshold", ".1"], "score_thresholds", (0.1,)),
            (["--recall-score-threshold", "0.3"], "recall_score_threshold", 0.3),
            (["--pr-curve-max-examples", "0"], "pr_curve_max_examples", 0),
            (["--max-detections", "1,10"], "max_detections", (1, 10)),
            (["--by", "weather", "--by", "a*b"], "by", ("weather", "a*b")),
            (["--threads", "2"], "threads", 2),
            (["--columns", "a=datum_id,b=score"], "columns", {"a": "datum_id", "b": "score"}),
            (["--columns", "a,b=score"], "columns", {"a,b": "score"}),
            (["--where", "score > 0.1, 2"], "where", "score > 0.1, 2"),
            (["--where", "a > 1", "--where", "b = 2"], "where", "(a > 1) AND (b = 2)"),
            (
                ["--where", "predictions=score > 0.1", "--where", "ground_truths=area > 1"],
                "where",
                {"predictions": "score > 0.1", "ground_truths": "area > 1"},
            ),
            (["--label-map", "van=car,bus=car"], "label_map", ["van=car", "bus=car"]),
            (["--label-map", "map.csv"], "label_map", "map.csv"),
            (
                ["--area-range", "small=0:1024,large=1024:inf"],
                "area_ranges",
                {"small": (0.0, 1024.0), "large": (1024.0, float("inf"))},
            ),
        ],
    )
    def test_reach_score(
        self, run: Run, seen: dict[str, Any], args: list[str], field: str, value: Any
    ) -> None:
        status, _, err = run("score", "p.parquet", "g.parquet", *args)
        assert (status, err) == (0, "")
        assert seen["options"] == make_options(**{field: value})
        assert getattr(seen["options"], field) == value

    def test_what_was_not_given_stays_open(self, run: Run, seen: dict[str, Any]) -> None:
        assert run("score", "p.parquet")[0] == 0
        assert seen.pop("options") == make_options()
        assert seen == {
            "predictions": "p.parquet",
            "ground_truths": None,
            "datums": None,
            "labels": None,
            "storage_options": None,
            "progress": None,
        }

    def test_tables_and_storage(self, run: Run, seen: dict[str, Any]) -> None:
        args = ["--datums", "d.csv", "--labels", "l.csv", "--storage-option", "key=a=b"]
        assert run("score", "p", "g", *args)[0] == 0
        assert (seen["datums"], seen["labels"]) == ("d.csv", "l.csv")
        assert seen["storage_options"] == {"key": "a=b"}

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (["--iou", "x"], "not a number"),
            (["--max-detections", "1.5"], "not a whole number"),
            (["--threads", "two"], "'two' is not a valid integer"),
            (["--columns", "mine"], "key=value"),
            (["--area-range", "small=1"], "name=low:high"),
            (["--storage-option", "key"], "key=value"),
            (["--where", "a = 1", "--where", "predictions=b = 2"], "one condition for both"),
            (["--dialekt", "coco"], "--dialect"),
            (["--format", "jsn"], "json"),
        ],
    )
    def test_bad_ones_say_what_is_wrong(self, run: Run, args: list[str], words: str) -> None:
        status, out, err = run("score", "p", "g", *args)
        assert (status, out) == (2, "")
        assert words in err
        assert "Traceback" not in err


class TestScore:
    def test_prints_a_table(self, run: Run, seen: dict[str, Any]) -> None:
        status, out, err = run("score", "p", "g")
        assert (status, err) == (0, "")
        assert "mAP @ IoU 0.5        0.7000" in out

    def test_formats(self, run: Run, seen: dict[str, Any]) -> None:
        assert json.loads(run("score", "p", "g", "--format", "json")[1])[0]["value"] == 0.5
        assert run("score", "p", "g", "--format", "csv")[1].startswith("metric,statistic,")
        assert "| mAR | 0.6000 |" in run("score", "p", "g", "--format", "markdown")[1]

    def test_out(self, run: Run, seen: dict[str, Any], tmp_path: Path) -> None:
        folder = str(tmp_path / "run")
        status, out, err = run("score", "p", "g", "--out", folder, "--format", "json")
        assert status == 0
        assert json.loads(out)
        assert folder in err
        assert ee.load(folder).value("mAR") == 0.6
        status, out, err = run("score", "p", "g", "-o", folder)
        assert (status, out) == (2, "")
        assert "--overwrite" in err
        assert run("score", "p", "g", "-o", folder, "--overwrite")[0] == 0

    def test_out_is_refused_before_the_work(
        self, run: Run, seen: dict[str, Any], tmp_path: Path
    ) -> None:
        (tmp_path / "thesis.txt").write_text("dear")
        assert run("score", "p", "g", "--out", str(tmp_path), "--overwrite")[0] == 2
        assert seen == {}

    def test_parquet_on_a_terminal_is_refused_before_the_work(
        self, run: Run, seen: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        status, _, err = run("score", "p", "g", "--format", "parquet")
        assert status == 2
        assert "--out" in err
        assert seen == {}

    def test_for_real(self, run: Run, tables: tuple[str, str]) -> None:
        status, out, _ = run("score", *tables, "--format", "json", "--metric", "mAP")
        assert status == 0
        assert [row["value"] for row in json.loads(out)] == [pytest.approx(1.0)] * 2


class TestEnds:
    def test_a_mistyped_command(self, run: Run) -> None:
        status, _, err = run("scroe", "p", "g")
        assert status == 2
        assert "Did you mean 'score'?" in err

    def test_a_mistyped_metric(self, run: Run, tables: tuple[str, str]) -> None:
        status, out, err = run("score", *tables, "--metric", "mAPP")
        assert (status, out) == (2, "")
        assert "Did you mean 'mAP'?" in err
        assert "Traceback" not in err

    def test_a_missing_file(self, run: Run, tables: tuple[str, str]) -> None:
        status, _, err = run("score", "nowhere.parquet", tables[1])
        assert status == 2
        assert "nowhere.parquet" in err

    def failing(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        def score(*args: Any, **given: Any) -> None:
            raise error

        monkeypatch.setattr(api, "score", score)

    def test_anything_else_is_3(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing(monkeypatch, ZeroDivisionError("a bug"))
        status, _, err = run("score", "p", "g")
        assert status == 3
        assert "ZeroDivisionError: a bug" in err
        assert "--debug" in err
        assert "Traceback" not in err

    @pytest.mark.parametrize("args", [["--debug", "score"], ["score", "--debug"]])
    def test_debug_shows_where(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, args: list[str]
    ) -> None:
        self.failing(monkeypatch, ZeroDivisionError("a bug"))
        status, _, err = run(*args, "p", "g")
        assert status == 3
        assert "Traceback" in err
        assert "Traceback" not in run("score", "p", "g")[2]

    def test_a_plain_value_error_is_ours_to_mend(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.failing(monkeypatch, ValueError("a bug"))
        assert run("score", "p", "g")[0] == 3

    def test_interrupted(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing(monkeypatch, KeyboardInterrupt())
        assert run("score", "p", "g")[0] == 130

    def test_nothing_is_help(self, run: Run) -> None:
        status, out, _ = run()
        assert status == 0
        assert out == run("--help")[1] != ""

    def test_version(self, run: Run) -> None:
        assert run("--version")[1].strip().endswith(ee.__version__)

    def test_every_command_has_an_example(self, run: Run) -> None:
        commands = [[name] for name in cli.commands] + [["convert", "coco"]]
        assert len(commands) == 8
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
        from evalengine.kernels import jit

        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        for compiled in (False, True):
            monkeypatch.setattr(sys, "stderr", Terminal())
            monkeypatch.setattr(jit, "is_compiled", lambda compiled=compiled: compiled)
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
        found = json.loads(run("check", *tables, "--format", "json")[1])
        assert found["rows"] == {"predictions": 2, "ground_truths": 2}

    def test_check_reports_names_and_notes(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        report = SimpleNamespace(
            ok=False,
            rows={"predictions": 3},
            recognised={"predictions": {"image_id": "datum_id", "score": "score"}},
            notes=["2 boxes of no area"],
        )
        monkeypatch.setattr(api, "check", lambda *args, **given: report)
        status, out, _ = run("check", "p", "g")
        assert status == 2
        assert out.splitlines() == [
            "predictions: 3 rows",
            "predictions: read image_id as datum_id",
            "note: 2 boxes of no area",
            "not ok",
        ]

    def test_explain(self, run: Run) -> None:
        status, out, _ = run("explain", "--dialect", "coco", "--metric", "mAP")
        assert status == 0
        assert "coco" in out

    def test_metrics(self, run: Run) -> None:
        status, out, _ = run("metrics", "map", "AR")
        assert status == 0
        assert [line.split()[0] for line in out.splitlines() if line[:1].strip()] == ["mAP", "AR"]
        assert max(map(len, out.splitlines())) <= 80
        rows = json.loads(run("metrics", "--task", "detection", "--format", "json")[1])
        assert {"name", "definition", "range", "better", "source"} <= set(rows[0])
        assert len(rows) == ee.metrics_table().filter(task="detection").height
        status, _, err = run("metrics", "mAPP")
        assert status == 2
        assert "Did you mean 'mAP'?" in err

    def test_schemas(self, run: Run) -> None:
        status, out, _ = run("schemas")
        assert status == 0
        assert "ground_truths (input, task detection)" in out
        assert "curves (output)" in out
        assert max(map(len, out.splitlines())) <= 80
        rows = json.loads(run("schemas", "metrics", "--format", "json")[1])
        assert [row["column"] for row in rows] == fabricated.card().metrics.columns
        assert run("schemas", "--format", "markdown")[1].startswith("| task |")
        assert run("schemas", "--format", "csv")[1].startswith("task,table,")
        assert "Did you mean 'curves'?" in run("schemas", "curve")[2]

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
        assert f"{tmp_path / 'tables' / 'groundtruths.parquet'}: 1 rows" in out
        assert (tmp_path / "tables" / "predictions.parquet").is_file()

    def test_warmup(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[int] = []
        monkeypatch.setattr(api, "warmup", lambda: calls.append(1))
        status, out, _ = run("warmup")
        assert (status, calls) == (0, [1])
        assert out.startswith("kernels compiled in")


class TestProcess:
    """What only a process of its own can show."""

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
    def test_a_reader_that_leaves_is_no_error(self) -> None:
        process = self.started("schemas")
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0
        process.stderr.close()
