"""Compiled kernels run without the compiler, with the same results; where not, Numba runs them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="compiled kernels are run without the compiler on Linux on x86-64 alone",
)

CODE = """
import json, sys
import numpy as np
{before}
from evalengine.kernels import folder, order, pairs, sorting
from evalengine.kernels.jit import frozen

codes = np.array([0, 0, 1], np.int32), np.array([1, 0, 1], np.int32)
start, position = order.group_by_label(*codes, 2, 2)
score = np.array([3.0, 1.0, 2.0])
sorting.sort_short(np.array([0, 3]), 0, 1, 9, score)
by_datum = pairs._by_datum(frozen(codes[0], np.int32), 2)
said = []
{after}
print(json.dumps({{
    "values": [start.tolist(), position.tolist(), score.tolist(), [a.tolist() for a in by_datum]],
    "numba": "numba" in sys.modules,
    "folder": str(folder.cache_folder()),
    "said": said,
}}))
"""
VALUES = [[0, 1, 3], [1, 0, 2], [1.0, 2.0, 3.0], [[0, 2, 3], [0, 1, 2]]]
KERNELS = 3


def command(before: str = "", after: str = "") -> list[str]:
    """A fresh process that calls a few kernels."""
    return [sys.executable, "-W", "error", "-c", CODE.format(before=before, after=after)]


def run(cache: Path, before: str = "", after: str = "", **variables: str) -> dict[str, Any]:
    """What that process says."""
    done = subprocess.run(
        command(before, after),
        env={**os.environ, "EVALENGINE_CACHE_DIR": str(cache), **variables},
        cwd=cache,
        timeout=200,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answer["values"] == VALUES
    return answer


def files(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*.code")}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that one process found empty."""
    cache = tmp_path_factory.mktemp("filled")
    assert run(cache)["numba"]
    return cache


@pytest.fixture
def cache(filled: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_second_process_imports_no_compiler(cache: Path) -> None:
    kept = files(cache)
    assert len(kept) == KERNELS
    assert not run(cache)["numba"]
    assert files(cache) == kept
    assert not list(cache.rglob("*.draft"))


@pytest.mark.parametrize(
    "variables", [{"EVALENGINE_NUMBA": "1"}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_OPT": "0"}]
)
def test_numba_runs_all_where_it_was_told_to(cache: Path, variables: dict[str, str]) -> None:
    assert run(cache, **variables)["numba"]


def test_numba_runs_all_where_a_file_configures_it(cache: Path) -> None:
    (cache / ".numba_config.yaml").write_text("")
    assert run(cache)["numba"]


def test_the_switch_is_off_at_nothing_and_0(cache: Path) -> None:
    for off in ("", "0"):
        assert not run(cache, EVALENGINE_NUMBA=off)["numba"]


@pytest.mark.parametrize("fault", ["empty", "half", "flipped", "another", "renamed"])
def test_a_file_that_does_not_hold_is_written_anew(cache: Path, fault: str) -> None:
    kept = files(cache)
    first, second, *_ = (cache / name for name in kept)
    whole = first.read_bytes()
    at = len(whole) // 2
    if fault == "renamed":
        first.rename(first.with_name("0" * 24 + ".code"))
    else:
        first.write_bytes(
            {
                "empty": b"",
                "half": whole[:at],
                "flipped": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
                "another": second.read_bytes(),
            }[fault]
        )
    assert run(cache)["numba"]
    assert files(cache) == kept
    assert not run(cache)["numba"]


@pytest.mark.parametrize(
    "told",
    [
        "place._processor_lines = lambda: {('model', '0'), ('flags', 'sse2')}",
        "place.platform.machine = lambda: 'aarch64'",
        "place._processor_lines = lambda: None",
        "place._arrays_as_known = lambda: False",
    ],
)
def test_code_for_another_machine_is_left_alone(cache: Path, told: str) -> None:
    kept = files(cache)
    before = "from evalengine.kernels.objects import place; " + told
    assert run(cache, before)["numba"]
    assert kept.items() <= files(cache).items()
    assert len(files(cache)) == KERNELS * (2 if "sse2" in told else 1)
    assert not run(cache)["numba"]


def test_code_copied_from_another_machine_is_not_run(cache: Path) -> None:
    other = "from evalengine.kernels.objects import place; "
    other += "place._processor_lines = lambda: {('model', '0'), ('flags', 'sse2')}"
    (ours,) = cache.rglob("code-*")
    kept = files(cache)
    run(cache, other)
    (theirs,) = (path for path in cache.rglob("code-*") if path != ours)
    shutil.rmtree(ours)
    theirs.rename(ours)
    assert run(cache)["numba"]
    assert files(cache) == kept


@pytest.mark.parametrize(
    "refusal", ["mprotect = lambda *_: -1", "mmap = lambda *_: None", "malloc = None"]
)
def test_where_the_system_refuses_numba_runs_all(cache: Path, refusal: str) -> None:
    kept = files(cache)
    before = "from evalengine.kernels.objects import memory\n"
    if refusal.startswith("malloc"):  # a name that the C library lacks
        before += "memory._process = lambda: object()"
    else:
        before += f"memory._process().{refusal}"
    assert run(cache, before)["numba"]
    assert files(cache) == kept


def test_where_no_file_can_be_written_numba_runs_all(tmp_path: Path) -> None:
    before = (
        "from evalengine.kernels import loading; from evalengine.kernels.objects import image\n"
    )
    before += "def refused(*_, **__): raise OSError(28, 'no space')\n"
    before += "image.put_whole = loading.put_whole = refused"
    assert run(tmp_path, before)["numba"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_where_numba_keeps_something_else_it_runs_all(tmp_path: Path) -> None:
    before = "from evalengine.kernels.objects import keeping\n"
    before += "keeping.contract_of = lambda *_: unknown"
    assert run(tmp_path, before)["numba"]
    assert not files(tmp_path)


def test_two_processes_fill_one_folder(tmp_path: Path) -> None:
    def one(_: int) -> dict[str, Any]:
        return run(tmp_path)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(2)))
    assert not run(tmp_path)["numba"]
    assert len(files(tmp_path)) == KERNELS


THREADS = """
import threading
ready = threading.Barrier(8)
def many(k):
    rng = np.random.default_rng(k)
    datum = frozen(rng.integers(0, 50, 5000), np.int32)
    ready.wait()
    for _ in range(50):
        start, place = pairs._by_datum(datum, 50)
        assert (place == np.argsort(datum, kind="stable")).all()
    said.append(int(start[-1]))
pairs._by_datum.__init__(pairs._by_datum._function, **pairs._by_datum._flags)  # not loaded yet
threads = [threading.Thread(target=many, args=(k,)) for k in range(8)]
for one in threads: one.start()
for one in threads: one.join()
"""


def test_threads_call_at_once(cache: Path) -> None:
    answer = run(cache, after=THREADS)
    assert answer["said"] == [5000] * 8
    assert not answer["numba"]


MEMORY = """
import gc, resource
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
datum = frozen(np.zeros(1 << 20), np.int32)
for turn in range(2):
    for _ in range(100):
        ends, place = pairs._by_datum(datum, 1)  # 4 MB
    said.append(most())
kept = [pairs._by_datum(datum, 1) for _ in range(3)]
part = kept[0][1][5:9]
del kept
gc.collect()
others = [np.full(1 << 20, 7, np.int32) for _ in range(9)]
said += [part.tolist(), ends.flags.writeable, ends.flags.c_contiguous, str(place.dtype)]
"""


def test_memory_of_results_is_given_back_and_no_sooner(cache: Path) -> None:
    answer = run(cache, after=MEMORY)
    first, second, part, *flags = answer["said"]
    assert second - first < 40_000  # KB; a hundred of them are 400 MB
    assert part == [5, 6, 7, 8]
    assert flags == [True, True, "int32"]
    assert not answer["numba"]


TYPES = """
import pickle, tempfile
from pathlib import Path
datum = np.array([1, 0, 1], np.int32)
unpickled = pickle.loads(pickle.dumps(np.array([5, 6, 1]).astype("int32")))
unpickled[:] = datum
apart = Path(tempfile.mkdtemp()) / "array.npy"
np.save(apart, datum)
of_c = np.array([0, 3]).astype(np.longlong)
for one in (unpickled, np.load(apart, mmap_mode="r")):
    one.flags.writeable = False
    for n in (2, np.int64(2)):
        said.append([a.tolist() for a in pairs._by_datum(one, n)])
offsets = of_c.view()
offsets.flags.writeable = False
ready = np.empty(64, np.int64), np.empty(64, np.int64)
values = np.array([2.0, 1.0, 3.0])
sorting._sort(offsets, 0, 1, 9, *ready, values)
said.append(values.tolist())
assert "numba" not in sys.modules
"""


def test_types_that_numba_takes_for_the_same_need_no_compiler(cache: Path) -> None:
    said = run(cache, after=TYPES)["said"]
    assert said == [[[0, 1, 3], [1, 0, 2]]] * 4 + [[1.0, 2.0, 3.0]]


OTHERS = """
datum = np.array([1, 0, 1], np.int32)
strided = np.array([1, 9, 0, 9, 1, 9], np.int32)[::2]
for one in (datum, strided, frozen(datum, np.int64)):
    said.append([a.tolist() for a in pairs._by_datum(one, 2)])
"""

WRONG = """
datum = frozen(np.array([1, 0, 1]), np.int32)
for wrong in ((datum, 1 << 63), (datum,), (datum, "2"), (1, 2, 3)):
    try:
        pairs._by_datum(*wrong)
    except Exception as error:
        said.append([type(error).__name__, str(error)[:40]])
"""


def test_other_types_are_compiled_and_kept(cache: Path) -> None:
    first = run(cache, after=OTHERS)
    assert first["said"] == [[[0, 1, 3], [1, 0, 2]]] * 3
    assert first["numba"]
    # a strided array has no file: Numba alone runs it
    assert len(files(cache)) == KERNELS + 2
    second = run(cache, after=OTHERS.replace("strided,", ""))
    assert second["said"] == [[[0, 1, 3], [1, 0, 2]]] * 2
    assert not second["numba"]


def test_wrong_arguments_are_refused_as_numba_does(cache: Path) -> None:
    ours, theirs = run(cache, after=WRONG), run(cache, after=WRONG, EVALENGINE_NUMBA="1")
    assert ours["said"] == theirs["said"]
    assert len(ours["said"]) == 4


RAISES = """
for n in (-5, -(1 << 62)):
    try:
        pairs._by_datum(frozen(codes[0], np.int32), n)
    except Exception as error:
        said.append([type(error).__name__, str(error)])
"""


def test_a_kernel_raises_what_it_raises_under_numba(cache: Path) -> None:
    ours = run(cache, after=RAISES)
    theirs = run(cache, after=RAISES, EVALENGINE_NUMBA="1")
    assert ours["said"] == theirs["said"]
    assert len(ours["said"]) == 2
    assert (ours["numba"], theirs["numba"]) == (False, True)


INTERRUPTED = """
import signal, time
said.append(time.monotonic())
signal.setitimer(signal.ITIMER_REAL, 0.3)
signal.signal(signal.SIGALRM, signal.default_int_handler)
many = frozen(np.zeros(1000), np.int32)
try:
    while True:
        pairs._by_datum(many, 1)
except KeyboardInterrupt:
    said[:] = ["stopped"]
"""


def test_a_run_can_be_interrupted(cache: Path) -> None:
    answer = run(cache, after=INTERRUPTED)
    assert answer["said"] == ["stopped"]
    assert not answer["numba"]
