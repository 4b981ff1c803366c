"""There is a notebook for each task, with outputs that running it reproduces."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from evalengine.schemas.contract import NAMES

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


@pytest.mark.parametrize("task", NAMES)
def test_every_task_has_a_notebook_with_a_picture(task: str) -> None:
    path = FOLDER / f"{task}.ipynb"
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert 6 <= len(cells) <= 15
    outputs = [output for cell in cells for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < 100_000


@pytest.fixture(scope="module")
def execute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ipynb")))
def test_outputs_are_reproduced(execute: ModuleType, name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    stored = execute.printed(nbformat.read(path, as_version=4))
    assert execute.printed(execute.executed(path)) == stored, (
        f"stale: python docs/notebooks/execute.py {name}"
    )
