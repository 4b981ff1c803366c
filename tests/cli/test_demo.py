"""The bundled examples, scored by one command."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from evalengine.cli import cli
from evalengine.schemas.contract import NAMES

Run = Callable[..., tuple[int, str, str]]

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = tomllib.loads((EXAMPLES / "demos.toml").read_text("utf-8"))


def test_every_task_has_a_set() -> None:
    assert set(NAMES) <= set(LINES)


@pytest.mark.parametrize("name", LINES)
def test_commands_and_their_files_exist(name: str) -> None:
    words = shlex.split(LINES[name])
    context = cli.commands["score"].make_context("score", list(words))
    paths = [context.params[key] for key in ("predictions", "ground_truths", "datums", "labels")]
    assert all((EXAMPLES / path).is_file() for path in paths if path)


def test_the_demo_is_written_and_scored(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run("demo", "judged", "--out", "new/try")
    assert status == 0, err
    place, command, *_ = out.splitlines()
    assert place == "In new/try:"
    assert "judged, dialect standard" in out
    assert "new/try/report.html" in err
    assert all(other in out.splitlines()[-1] for other in LINES if other != "judged")
    monkeypatch.chdir("new/try")
    first = Path("report.html").read_text("utf-8")
    Path("report.html").unlink()
    status, again, _ = run(*shlex.split(command)[1:])
    assert (status, again.strip() in out) == (0, True)
    assert len(first) > 10_000
    assert Path("report.html").is_file()


def test_the_first_set_in_a_temporary_folder_by_default(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(cli.commands["score"], "main", lambda words, **_: calls.append(words))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("demo")
    [folder] = tmp_path.glob("evalengine-demo-*")
    first = next(iter(LINES))
    assert calls[0][0] == str(folder / first / "predictions.parquet")
    assert calls[0][-2:] == ["--report", str(folder / "report.html")]
    assert (folder / first / "groundtruths.parquet").is_file()


def test_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    status, _, err = run("demo", "--out", str(tmp_path))
    assert (status, "files in it" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    status, _, err = run("demo", "retreival")
    assert status == 2
    assert "mean 'retrieval'? There" in err
