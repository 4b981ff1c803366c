"""What holds for all tests."""

from __future__ import annotations

import compileall
import gc
import importlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import warming
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from evalengine.kernels.folder import CACHE_VARIABLE, cache_folder
from evalengine.schemas.tuning import Tuning, take

# How long an example takes depends on what else the machine does, and on whether kernels are
# compiled yet; neither says that anything is wrong. Files that an example writes are the next one's
# to write over.
untimed = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
# A change is judged by the same random tables on every machine. Others are found by
# `pytest -m hypothesis --hypothesis-profile=roaming`, which says how to repeat what fails.
settings.register_profile("pinned", untimed, max_examples=30, derandomize=True)
settings.register_profile("roaming", untimed, max_examples=100, print_blob=True)
settings.load_profile("pinned")
# Nor by constants of the modules that are imported by then: they depend on the tests before, and on
# the name of the folder. To look for them takes seconds per process.
providers.is_local_module_file = lambda path: False

WARMED = "EVALENGINE_TESTS_WARMED"
"""Where a warm-up of an empty folder left its kernels, and what it compiled, for the workers."""

KEPT = "EVALENGINE_TESTS_KEPT"
"""Names an empty folder for what the first session warms up, which later ones find there."""

COMPILED = "compiled.json"
"""File in it that says how often each kernel was compiled."""

COMPLETE = "complete"
"""File in a folder of kernels that holds all that a warm-up compiles, not those of some run."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each worker takes half of the list, then from what is left of the other's.

    So a module's fixtures are made by one worker, seldom by both, and none waits at the end while
    another has several slow tests before it.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile once, before the workers start, what each of them and their processes would.

    The package's modules to bytecode: an editable install leaves that to the first import, and
    where Python was told to write none, to every import. Its kernels: workers would compile the
    same ones at the same time, also where some run before has left a few.
    """
    apart = session.config.getoption("collectonly") or hasattr(session.config, "workerinput")
    if apart or not session.config.getoption("numprocesses", None):
        return
    for name in ("evalengine", "evalengine.kernels", "evalengine.schemas"):
        for path in importlib.import_module(name).__path__:
            compileall.compile_dir(path, quiet=2)
    folder = cache_folder()
    if folder is None or (folder / COMPLETE).exists():
        return
    fresh = Path(os.environ.get(KEPT) or tempfile.mkdtemp(prefix="warmed-"))
    compiled = warming.warm(fresh)
    shutil.copytree(fresh, folder.parent, dirs_exist_ok=True)
    if KEPT in os.environ:
        (fresh / COMPILED).write_text(json.dumps(compiled), "utf-8")
    (folder / COMPLETE).touch()
    os.environ[CACHE_VARIABLE] = str(folder.parent)
    os.environ[WARMED] = json.dumps([str(fresh), compiled])


def pytest_configure() -> None:
    """Collect no garbage while modules are imported: there is next to none.

    Nor wait for the disk: no test cuts the power, and those of a failing ``fsync`` give their own.
    """
    gc.disable()
    os.fsync = lambda fd: None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import all tests from the last to the first in every other worker, before it collects them.

    A new tree has no compiled tests. Two workers in step would rewrite the assertions of all files
    twice; this way they meet in the middle, and each reads the other's half from disk.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if int(worker.removeprefix("gw")) % 2 and session.config.args == session.config.getini(
        "testpaths"
    ):
        for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # told when it is collected
                _ = pytest.Module.from_parent(session, path=path).obj


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """What is there before the first test stays; Python need not look through it again and again.

    Modules, tests and strategies are a million objects, which each full collection would visit. New
    objects are looked at as seldom as in the command itself. The process that has workers collects
    no tests, but comes here; it comes before what runs them, after which no other hook is called.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave nothing behind."""
    if KEPT in os.environ:
        return
    if WARMED in os.environ and not hasattr(session.config, "workerinput"):
        shutil.rmtree(json.loads(os.environ.pop(WARMED))[0])


@pytest.fixture(scope="session")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, int]]:
    """A folder right after a warm-up that found it empty, and how often it compiled each kernel."""
    if WARMED in os.environ:
        folder, compiled = json.loads(os.environ[WARMED])
        return folder, compiled
    kept = Path(os.environ.get(KEPT, ""), COMPILED)
    if kept.exists():
        return str(kept.parent), json.loads(kept.read_text("utf-8"))
    empty = tmp_path_factory.mktemp("warmed")
    return str(empty), warming.warm(empty)


@pytest.fixture(autouse=True)
def usual_sizes() -> Iterator[None]:
    """What a test changed with ``tune`` holds for that test alone."""
    yield
    take(Tuning())
