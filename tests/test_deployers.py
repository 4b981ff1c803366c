"""Statements about Dask's deployers in docs/scale.md, compared with their commands and scripts."""

from __future__ import annotations

import ast
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "scale.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```py\n(.*?)^```$", PAGE, re.S | re.M)


def arguments(function: str) -> dict[str, Any]:
    """Return the keyword arguments of the only call of a function on the page."""
    (call,) = [
        node
        for snippet in SNIPPETS
        for node in ast.walk(ast.parse(snippet))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function
    ]
    return {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}


def options(command: str) -> set[str]:
    """Return the options of ``dask worker`` or ``dask scheduler``."""
    module = pytest.importorskip(f"distributed.cli.dask_{command}")
    return {name for param in module.main.params for name in (*param.opts, *param.secondary_opts)}


def test_commands_by_hand_are_those_of_dask() -> None:
    lines = [re.sub(r"\s+", " ", line) for line in re.findall(r"`(dask \w+[^`]*)`", PAGE)]
    assert {line.split()[1] for line in lines} >= {"scheduler", "worker"}
    for line in lines:
        _, command, *rest = shlex.split(line)
        assert {word for word in rest if word.startswith("--")} <= options(command), line


def test_pods_start_commands_that_there_are() -> None:
    """Releases of distributed without ``dask-worker`` have only ``dask worker``."""
    command = arguments("make_cluster_spec")["worker_command"]
    assert command[:2] == ["dask", "worker"]
    assert command[command.index("--nthreads") + 1] == "1"
    added = {"--name", "--dashboard", "--dashboard-address"}  # by dask-kubernetes
    assert {word for word in command if word.startswith("--")} | added <= options("worker")
    kubernetes = next(snippet for snippet in SNIPPETS if "make_cluster_spec(" in snippet)
    assert '["args"][:1] = ["dask", "scheduler"]' in kubernetes
    assert "--host" in options("scheduler")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_slurm_gets_a_job_of_one_thread() -> None:
    """The script that dask-jobqueue makes from the page's call does not require Slurm."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    given = arguments("SLURMCluster")
    with jobqueue.SLURMCluster(**given, scheduler_options={"dashboard_address": None}) as cluster:
        script = cluster.job_script()
        assert cluster.scheduler_address.startswith("tcp://")
    assert "#SBATCH --cpus-per-task=1" in script
    assert "#SBATCH --mem=4G" in script
    assert f"#SBATCH -t {given['walltime']}" in script
    (line,) = [line for line in script.splitlines() if "dask_worker" in line]
    words = shlex.split(line)
    assert os.path.basename(words[0]).startswith("python")
    assert words[words.index("--nthreads") + 1] == "1"
    assert {word for word in words if word.startswith("--")} <= options("worker")
