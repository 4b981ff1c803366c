"""The hooks: their commands exist, and pre-commit accepts the file if it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evalengine.cli import cli

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".pre-commit-hooks.yaml"


def test_commands_exist() -> None:
    hooks = yaml.safe_load(FILE.read_text())
    assert [one["id"] for one in hooks] == ["evalengine-run", "evalengine-check"]
    for hook in hooks:
        program, command = hook["entry"].split()
        assert program == "evalengine"
        assert command in cli.commands
        assert f"id: {hook['id']}" in (ROOT / "docs" / "integrations.md").read_text()


@pytest.mark.skipif(
    importlib.util.find_spec("pre_commit") is None, reason="pre-commit is not installed"
)
def test_pre_commit_accepts_the_file() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", str(FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
