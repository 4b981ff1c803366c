"""What keeps compiled code from running on what it was not made for: each guard by itself."""

from __future__ import annotations

import ctypes
import gc
import platform
import resource
import shutil
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalengine.kernels import folder, jit, pairs
from evalengine.kernels.folder import cache_folder
from evalengine.kernels.jit import frozen
from evalengine.kernels.objects import calls, place
from evalengine.kernels.objects.calls import Files
from evalengine.kernels.objects.image import Contract, Value
from evalengine.kernels.objects.linking import linked
from evalengine.kernels.objects.memory import SYMBOLS, placed

on_linux = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="compiled kernels are run without the compiler on Linux on x86-64 alone",
)

Array = np.ndarray[Any, Any]
LEFT = "left to Numba"


@pytest.fixture(scope="module")
def by_datum() -> Files:
    """Compiled code of a kernel of a read-only int32 [n] and an integer, and nothing beside it."""
    kernel, kept = pairs._by_datum, cache_folder()
    assert kept is not None
    kernel.compiled(frozen(np.zeros(1), np.int32), 1)  # writes the file, if need be
    files = Files(
        f"{kernel.__module__}.{kernel._function.__qualname__}", kept, lambda: lambda *_: LEFT
    )
    files._loaded = [
        one for one in files._loaded if one.contract.arguments[0] == Value("int32", 1, False)
    ]
    assert len(files) == 1
    return files


class Subclass(np.ndarray[Any, Any]):
    """Might have items of its own kind."""


TAKEN: dict[str, Callable[[], Array]] = {
    "plain": lambda: np.zeros(3, np.int32),
    "empty": lambda: np.zeros(0, np.int32),
    "one of several": lambda: np.zeros(6, np.int32)[::6],
    "none of several": lambda: np.zeros(6, np.int32)[6::2],
    "one broadcast": lambda: np.broadcast_to(np.int32(0), 1),
    "a part": lambda: np.zeros(6, np.int32)[2:5],
}
OTHERS: dict[str, Callable[[], Array]] = {
    "unaligned": lambda: np.zeros(13, np.uint8)[1:].view(np.int32),
    "two dimensions": lambda: np.zeros((1, 3), np.int32),
    "no dimension": lambda: np.zeros((), np.int32),
    "swapped bytes": lambda: np.zeros(3, np.dtype(np.int32).newbyteorder("S")),
    "unsigned": lambda: np.zeros(3, np.uint32),
    "longer": lambda: np.zeros(3, np.int64),
    "floats": lambda: np.zeros(3, np.float32),
    "every other": lambda: np.zeros(6, np.int32)[::2],
    "backwards": lambda: np.zeros(3, np.int32)[::-1],
    "broadcast": lambda: np.broadcast_to(np.int32(0), 3),
    "subclass": lambda: np.zeros(3, np.int32).view(Subclass),
    "masked": lambda: np.ma.zeros(3, np.int32),
    "records": lambda: np.zeros(3, [("a", np.int32)]),
    "times": lambda: np.zeros(3, "m8[s]"),
    "dates": lambda: np.zeros(3, "M8[D]"),
    "objects": lambda: np.zeros(3, object),
}


@on_linux
@pytest.mark.parametrize("name", TAKEN)
def test_arrays_that_the_code_was_made_for(name: str, by_datum: Files) -> None:
    array = TAKEN[name]()
    array.flags.writeable = False
    start, position = by_datum(array, 1)
    assert start.tolist() == [0, array.size]
    assert position.tolist() == list(range(array.size))


@on_linux
@pytest.mark.parametrize("name", OTHERS)
def test_other_arrays_are_left_to_numba(name: str, by_datum: Files) -> None:
    array = OTHERS[name]()
    array.flags.writeable = False
    assert by_datum(array, 1) == LEFT


@on_linux
def test_arrays_that_can_be_written_to_are_others(by_datum: Files) -> None:
    assert by_datum(np.zeros(3, np.int32), 1) == LEFT


@on_linux
@pytest.mark.parametrize(
    "arguments", [(), (1, 2), ("1",), (1.0,), (True,), (None,), (np.uint64(1),), (np.zeros(1),)]
)
def test_other_scalars_are_left_to_numba(arguments: tuple[Any, ...], by_datum: Files) -> None:
    assert by_datum(frozen([0, 0], np.int32), *arguments) == LEFT


def results(array: Array) -> Any:
    """The words of an array that a kernel returns, which lies in what it was given."""
    words = [0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides]
    return (ctypes.c_int64 * len(words))(*words)


def test_a_result_without_memory_of_its_own_keeps_what_the_kernel_was_given() -> None:
    given = np.arange(5000.0)
    alive = weakref.ref(given)
    read = calls._array(Value("float64", 1), 0, 0)
    found = read(results(given), (given, 3))
    del given
    gc.collect()
    assert alive() is not None
    part = found[4990:]
    del found
    assert part.tolist() == list(range(4990, 5000))
    del part
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("writable", [True, False])
def test_a_result_is_written_to_only_where_the_kernel_says_so(writable: bool) -> None:
    given = np.arange(6.0).reshape(2, 3)
    found = calls._array(Value("float64", 2, writable), 0, 0)(results(given), (given,))
    assert found.flags.writeable is writable
    assert found.tolist() == given.tolist()


LIST = """
declare i8* @NRT_MemInfo_new_varsize_dtor(i64, i8*)
declare void @NRT_MemInfo_call_dtor(i8*)
define i64 @f(i64 %size) {
  %list = call i8* @NRT_MemInfo_new_varsize_dtor(i64 %size, i8* null)
  %none = icmp eq i8* %list, null
  br i1 %none, label %failed, label %made
made:
  call void @NRT_MemInfo_call_dtor(i8* %list)
  ret i64 0
failed:
  ret i64 1
}
"""


@on_linux
def test_the_values_of_lists_are_given_back() -> None:
    """Memory that is never touched: what is not given back takes addresses alone."""
    import numba  # noqa: F401  # makes the compiler ready

    from evalengine.kernels.objects.runtime import memory_object, object_of

    contract = Contract("m.f", "this", (Value("int64"),), (Value("int64"),), False)
    image = linked(
        [object_of(LIST), memory_object()], "f", "f", contract, without="g", known=SYMBOLS
    )
    once = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(placed(image)[0])

    def addresses() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    before = addresses()
    assert [once(1 << 26) for _ in range(64)] == [0] * 64
    assert addresses() - before < 1 << 30  # of four


CPU = """processor\t: {n}
vendor_id\t: Maker
cpu family\t: 6
model\t\t: 85
model name\t: Some processor
stepping\t: 7
cpu MHz\t\t: {speed}
flags\t\t: fpu sse2 avx2
"""


def key_of(text: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The key of a processor that Linux describes so."""

    class Described:
        def __init__(self, path: str) -> None:
            assert path == "/proc/cpuinfo"

        def read_text(self, **_: Any) -> str:
            return text

    with monkeypatch.context() as patch:
        patch.setattr(place, "Path", Described)
        found: str | None = place.processor.__wrapped__()
    return found


@on_linux
def test_processors_that_differ_have_keys_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    one = CPU.format(n=0, speed=2000)
    described = {
        "itself": one,
        "flags": one.replace("avx2", "avx2 avx512f"),
        "fewer flags": one.replace(" avx2", ""),
        "vendor_id": one.replace("Maker", "Other"),
        "cpu family": one.replace(": 6", ": 7"),
        "model": one.replace("85", "86"),
        "model name": one.replace("Some", "Another"),
        "stepping": one.replace(": 7", ": 8"),
        "of two kinds": one + "\n" + one.replace("avx2", "avx2 avx512f"),
    }
    keys = {name: key_of(text, monkeypatch) for name, text in described.items()}
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys)


@on_linux
def test_processors_of_one_kind_have_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = CPU.format(n=0, speed=2000), CPU.format(n=1, speed=3100)
    assert key_of(one, monkeypatch) == key_of(one + "\n" + two, monkeypatch)
    for lacking in ("flags", "model\t"):
        text = "\n".join(line for line in one.splitlines() if not line.startswith(lacking))
        assert key_of(text, monkeypatch) is None


def made_inside() -> Callable[..., Any]:
    def function() -> None:
        """Another one whenever it is made, under one name."""

    return function


def test_only_functions_of_modules_of_the_package_have_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jit, "allowed", lambda: True)
    own = pairs._by_datum._function
    assert jit._kept_as(own, {}) == "evalengine.kernels.pairs._by_datum"
    assert jit._kept_as(own, {"no_cpython_wrapper": True}) is None  # never entered from Python
    assert jit._kept_as(made_inside, {}) is None  # of another package
    inside = made_inside()
    inside.__module__ = own.__module__
    assert jit._kept_as(inside, {}) is None
    monkeypatch.setattr(jit, "allowed", lambda: False)
    assert jit._kept_as(own, {}) is None


@pytest.mark.parametrize("name", ["pairs.py", "objects/entry.py", "objects/more.py"])
def test_kernels_are_compiled_anew_where_any_source_changes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of folders within the package, too."""
    before = folder._source_digest()
    copy = tmp_path / "kernels"
    sources = Path(folder.__file__).parent
    shutil.copytree(sources, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(folder, "__file__", str(copy / "folder.py"))
    assert folder._source_digest() == before
    with open(copy / name, "a") as file:
        file.write("# a word more\n")
    assert folder._source_digest() != before
