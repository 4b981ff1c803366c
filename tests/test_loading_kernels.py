"""Compiled code is loaded from disk; if that is impossible, Numba's own cache is used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from new_process import python

pytestmark = pytest.mark.slow
CODE = """
import json, sys
import numpy as np
{before}
from evalengine.kernels import folder, jit
from evalengine.kernels.boxes import box_iou
from evalengine.kernels.order import group_by_label

taken = []
from numba.core.codegen import CPUCodeLibrary
finalize = CPUCodeLibrary.finalize
CPUCodeLibrary.finalize = lambda self: (taken.append(self.name), finalize(self))[1]
codes = np.array([0, 0, 1], np.int32), np.array([1, 0, 1], np.int32)
start, position = group_by_label(*codes, 2, 2)
import numba
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
print(json.dumps({{
    "values": [start.tolist(), position.tolist()],
    "compiled": list(taken),
    "runtime": str(folder.runtime_file(cpu_target.target_context, jit.cache_folder())),
    "own": numba.njit(lambda n: np.ones(n).sum())(5),  # compiled against the same runtime
    "arrays": rtsys.get_allocation_stats()._asdict(),
}}))
"""


def run(cache: Path, *, before: str = "") -> dict[str, Any]:
    """Return the output of a new process that calls one kernel."""
    done = python(CODE.format(before=before), EVALENGINE_CACHE_DIR=str(cache), NUMBA_NRT_STATS="1")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


EXPECTED = [[0, 1, 3], [1, 0, 2]]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a folder that one process found empty and filled, and the output of that process."""
    folder = tmp_path_factory.mktemp("filled")
    return folder, run(folder)


def test_a_second_process_compiles_nothing(filled: tuple[Path, dict[str, Any]]) -> None:
    folder, first = filled
    second = run(folder)
    assert first["values"] == second["values"] == EXPECTED
    assert first["own"] == second["own"] == 5.0
    assert "nrt" in first["compiled"]
    assert second["compiled"] == []
    assert Path(second["runtime"]).is_file()
    assert second["arrays"] == first["arrays"]  # also allocated and freed by the loaded runtime
    assert second["arrays"]["alloc"] > 0
    assert not list(folder.rglob("*.draft"))


def without_part(module: str, parts: str) -> str:
    """Return code that removes a part of Numba which is looked up before its use."""
    return f"from evalengine.kernels import {module}; {module}.{parts} = ('no_such_part',)"


def test_if_numba_has_no_such_part_its_own_cache_is_used(tmp_path: Path) -> None:
    before = without_part("jit", "PARTS_OF_DISPATCHER")
    first, second = run(tmp_path, before=before), run(tmp_path, before=before)
    assert first["values"] == second["values"] == EXPECTED
    assert "nrt" in first["compiled"]
    assert len(first["compiled"]) > 1
    assert not Path(second["runtime"]).exists()
    assert second["compiled"] == ["nrt"]


@pytest.mark.parametrize("parts", ["_PARTS_OF_CACHE", "_PARTS_OF_FILES", "_PARTS_OF_RUNTIME"])
def test_if_numba_has_no_such_part_its_own_compilation_is_used(
    filled: tuple[Path, dict[str, Any]], tmp_path: Path, parts: str
) -> None:
    """Kernels are cached by Numba, or the runtime is compiled by it."""
    folder, first = filled
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    runtime = tmp_path / Path(first["runtime"]).relative_to(folder)
    runtime.unlink()
    if parts != "_PARTS_OF_RUNTIME":
        assert len(run(tmp_path, before=without_part("folder", parts))["compiled"]) > 1
    answer = run(tmp_path, before=without_part("folder", parts))
    assert answer["values"] == EXPECTED
    assert not runtime.exists()
    assert answer["compiled"] == ["nrt"]
