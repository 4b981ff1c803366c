"""Workers of other versions: accepted versions, and equal numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import distributed
import pytest
from merging.test_parts import CASES
from partitions.cases import in_buckets, same_as_in_memory
from partitions.clusters import cluster, start_command
from refusals import refused

import evalengine as ee
from evalengine.executors.pools import error_of
from evalengine.outofcore import shuffle

OURS = {"evalengine": "1.4.2", "polars": "2.1.0", "numpy": "2.4.6"}


@pytest.mark.parametrize(
    ("name", "version", "fits"),
    [
        ("evalengine", "1.4.0", True),
        ("evalengine", "1.4.10", True),
        ("evalengine", "1.5.2", False),
        ("evalengine", "2.4.2", False),
        ("polars", "2.14.1", True),
        ("polars", "3.1.0", False),
        ("numpy", "2.0.0", True),
        ("numpy", "1.26.4", False),
    ],
)
def test_versions_that_may_work_together(
    name: str, version: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is symmetric, and the error names both versions."""
    monkeypatch.setattr(shuffle, "VERSIONS", OURS)
    theirs = {**OURS, name: version}
    if fits:
        shuffle.check_versions(theirs)
        return
    facts = {"package": name, "versions": [OURS[name], version]}
    with refused("versions_differ", ee.ExecutorError, **facts) as refusal:
        shuffle.check_versions(theirs)
    assert OURS[name] in str(refusal.value)
    assert version in str(refusal.value)
    monkeypatch.setattr(shuffle, "VERSIONS", theirs)
    with refused("versions_differ", ee.ExecutorError, package=name):
        shuffle.check_versions(OURS)


def test_another_version_ends_the_run() -> None:
    """It is not treated as a table that the worker cannot read."""
    with refused("versions_differ", ee.ExecutorError, package="numpy"):
        error_of(shuffle.open_table, (b"", [], {**shuffle.VERSIONS, "numpy": "1.0"}))


OLDEST = {"numpy": "2.0.2", "numba": "0.61.0"}
"""The oldest releases that the package allows; for Polars, that is the current one."""

VERSION = """import evalengine._version as v; v.__version__ = "0.1.99"; """


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which pip has installed the oldest releases."""
    folder = tmp_path_factory.mktemp("old")
    wanted = [f"{name}=={version}" for name, version in OLDEST.items()]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    try:
        subprocess.run([*pip, "--target", str(folder), *wanted], check=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{', '.join(wanted)} cannot be installed: {error}")
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Mismatched versions found")  # of Dask
@pytest.mark.parametrize("name", ["detection", "classification", "retrieval"])
def test_the_oldest_and_the_newest_worker_give_the_same_bits(
    name: str, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker has the oldest NumPy and Numba and another patch release of evalengine."""
    in_buckets(monkeypatch)
    task, draw = CASES[name]
    with cluster(1) as (address, _):
        command = ("worker", address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
        before = f"{VERSION}import numpy; assert numpy.__version__ == {OLDEST['numpy']!r}; "
        other = start_command(*command, "--no-dashboard", before=before, first=str(old))
        try:
            with distributed.Client(address) as client:
                client.wait_for_workers(2, timeout=60)
                kinds = {*client.run(_versions).values()}
                assert kinds == {tuple(shuffle.VERSIONS.values()), ("0.1.99", *_rest())}
            same_as_in_memory(draw(7), task, tmp_path, executor="dask", address=address)
        finally:
            other.kill()
            other.wait()


def _versions() -> tuple[str, ...]:
    from evalengine.outofcore import shuffle

    return tuple(shuffle.VERSIONS.values())


def _rest() -> tuple[str, ...]:
    return (shuffle.VERSIONS["polars"], OLDEST["numpy"])
