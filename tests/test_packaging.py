"""Package structure: listed packages, imports of kernels, layers, constraints without hosts."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from evalengine import __version__
from evalengine.schemas.contract import NAMES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_in_tree() -> set[str]:
    found = set()
    for folder, package in PROJECT["tool"]["setuptools"]["package-dir"].items():
        top = ROOT / package
        for path in top.rglob("__init__.py"):
            rest = path.parent.relative_to(top).parts
            found.add(".".join((folder, *rest)))
    return found


def test_every_package_is_listed():
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_in_tree()


def test_conda_recipe_has_the_requirements_of_the_project():
    """The recipe was parsed and rendered with rattler-build, which is not a test dependency."""
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text(encoding="utf-8"))
    version, run = recipe["context"]["version"], recipe["requirements"]["run"]
    assert version == __version__
    assert run[0] == f"python {PROJECT['project']['requires-python']}"
    assert [one.replace(" ", "") for one in run[1:]] == PROJECT["project"]["dependencies"]
    (command,) = PROJECT["project"]["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(command)]


def test_kernels_import_only_numpy_and_numba():
    allowed = {"__future__", "numpy", "numba", "llvmlite", *sys.stdlib_module_names}
    for path in (ROOT / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level <= 1, f"{path.name} imports from outside of kernels"
                names = set() if node.level else {(node.module or "").split(".")[0]}
            else:
                continue
            assert names <= allowed, f"{path.name} imports {names - allowed}"


def test_tasks_are_named_only_in_their_folders():
    """Exports, drop-ins, the judge and rules of the input are task-specific by design."""
    of_some = ("tasks", "exports", "compat", "integrations", "judge", "ingest/rules")
    also_words = {"text", "segmentation", "panoptic", "values"}
    result = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in (ROOT / "engine").rglob("*.py")
        if not path.relative_to(ROOT / "engine").as_posix().startswith(of_some)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in set(NAMES) - also_words
    ]
    assert result == []


def test_constraints_name_no_host():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not re.search(r"https?:|file:|index-url|find-links", text)


NO_CIRCLE = """
import graphlib, grimp
graph = grimp.build_graph("evalengine", exclude_type_checking_imports=True, cache_dir=None)
graphlib.TopologicalSorter(
    {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
).prepare()
"""


@pytest.mark.parametrize(
    "command",
    [
        ["lint-imports", "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        ["python", "-c", NO_CIRCLE],  # imports within functions count, too
    ],
    ids=["layers", "circles"],
)
def test_imports_run_one_way(tmp_path, command):
    pytest.importorskip("grimp", reason="import-linter is not installed")
    # An editable install maps three folders to one package, which the linter cannot follow: copy
    # the tree into the layout of the installed package.
    for folder, package in PROJECT["tool"]["setuptools"]["package-dir"].items():
        shutil.copytree(ROOT / package, tmp_path / folder.replace(".", "/"), dirs_exist_ok=True)
    done = subprocess.run(
        [Path(sys.executable).with_name(command[0]), *command[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
