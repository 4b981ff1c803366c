"""Settings and hooks of the whole test suite."""

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

# No deadline: the time of an example depends on the load of the machine and on whether kernels are
# compiled. Examples may overwrite each other's files.
untimed = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
# Random tables are the same on every machine. `pytest -m hypothesis --hypothesis-profile=roaming`
# tries others and prints how to repeat a failure.
settings.register_profile("pinned", untimed, max_examples=30, derandomize=True)
settings.register_profile("roaming", untimed, max_examples=100, print_blob=True)
settings.load_profile("pinned")
# No constants of imported modules either: they depend on earlier tests and on the name of the
# folder, and finding them takes seconds per process.
providers.is_local_module_file = lambda path: False

WARMED = "EVALENGINE_TESTS_WARMED"
"""Environment variable for workers: folder of warmed-up kernels, and counts of compilations."""

KEPT = "EVALENGINE_TESTS_KEPT"
"""Environment variable: empty folder for the first session's warm-up, reused by later sessions."""

COMPILED = "compiled.json"
"""File in that folder with the number of compilations of each kernel."""

COMPLETE = "complete"
"""File in a folder of kernels that marks a complete warm-up."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker half of the tests, then let it take tests from the other half.

    Most fixtures of a module are then made by only one worker, and no worker idles at the end while
    another runs several slow tests.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile bytecode and kernels once, before the workers start.

    An editable install compiles modules at the first import, or at every import if Python writes
    no bytecode. Without a warm-up, workers would compile the same kernels at the same time.
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
    """Disable garbage collection during imports, and ``fsync`` in all tests.

    Imports produce hardly any garbage. No test cuts the power; tests of a failing ``fsync`` replace
    it themselves.
    """
    gc.disable()
    os.fsync = lambda fd: None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import all tests in reverse order in every other worker, before it collects them.

    In a new checkout no test is compiled. Two workers in the same order would rewrite the
    assertions of all files twice; in opposite orders, each reads half of the files from disk.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if int(worker.removeprefix("gw")) % 2 and session.config.args == session.config.getini(
        "testpaths"
    ):
        for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # reported when it is collected
                _ = pytest.Module.from_parent(session, path=path).obj


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Freeze the objects that exist before the first test, so that collections skip them.

    Modules, tests and strategies are a million objects, which each full collection would visit. New
    objects are collected as seldom as in the command line. The hook also runs in the process that
    starts the workers, before the hook that runs the tests, which is the last to be called.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Delete the temporary folders."""
    if KEPT in os.environ:
        return
    if WARMED in os.environ and not hasattr(session.config, "workerinput"):
        shutil.rmtree(json.loads(os.environ.pop(WARMED))[0])


@pytest.fixture(scope="session")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, int]]:
    """Return the folder of a warm-up that began empty, and the compilations of each kernel."""
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
    """Undo the changes of ``tune`` after each test."""
    yield
    take(Tuning())
