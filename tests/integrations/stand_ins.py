"""Packages that are too large for the suite: the real one if installed, otherwise a stand-in."""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

JOBS = Path(__file__).parents[2] / "docs" / "jobs"
REAL = {
    name: importlib.util.find_spec(name) is not None
    for name in ("airflow", "dagster", "lightning", "mlflow", "transformers", "torch")
}


def module(**members: Any) -> ModuleType:
    result = ModuleType("stand-in")
    result.__dict__.update(members)
    return result


@contextmanager
def standing_in(**modules: ModuleType) -> Iterator[None]:
    """Install stand-in modules (``__`` for a dot) and reload the integrations."""
    with pytest.MonkeyPatch.context() as patch:
        for name, stand_in in modules.items():
            patch.setitem(sys.modules, name.replace("__", "."), stand_in)
        for name in [one for one in sys.modules if one.startswith("evalengine.integrations.")]:
            patch.delitem(sys.modules, name)
        try:
            yield
        finally:
            for name in [one for one in sys.modules if one.startswith("evalengine.integrations.")]:
                del sys.modules[name]


def integration(name: str) -> Any:
    return importlib.import_module(f"evalengine.integrations.{name}")


def program(name: str, job: Path, folder: Path) -> dict[str, Any]:
    """Run a program of docs/jobs with another path of the job file, and return its names."""
    text = (JOBS / name).read_text("utf-8").replace("/srv/evaluation/nightly.toml", str(job))
    (folder / name).write_text(text)
    return runpy.run_path(str(folder / name))
