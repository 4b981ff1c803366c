"""Images of compiled kernels: what is refused, and the same bits from them as from Numba."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

from evalengine.kernels import columns, few_scores, pairs, rank_sums, sorting
from evalengine.kernels.folder import cache_folder
from evalengine.kernels.jit import Kernel, frozen
from evalengine.kernels.objects.calls import Files
from evalengine.kernels.objects.image import Contract, Image, Unusable, Value, read_image
from evalengine.kernels.objects.linking import linked
from evalengine.kernels.objects.memory import SYMBOLS, placed
from evalengine.kernels.objects.place import processor

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="compiled kernels are run without the compiler on Linux on x86-64 alone",
)

Array = np.ndarray[Any, Any]
CONTRACT = Contract("m.f", "this", (Value("int64"),), (Value("int64", 1),), False)


def never() -> Any:
    raise AssertionError("no file fits")


def both(kernel: Kernel, *args: Any) -> tuple[tuple[Any, list[Any]], tuple[Any, list[Any]]]:
    """What a kernel returns and leaves in its arguments: run by Numba, and from its files."""
    told = []
    folder = cache_folder()
    assert folder is not None
    makers: list[Callable[[], Any]] = [
        lambda: kernel.compiled,  # compiles it and writes the file, if need be
        lambda: Files(f"{kernel.__module__}.{kernel._function.__qualname__}", folder, never),
    ]
    for make in makers:
        given = [one.copy() if isinstance(one, np.ndarray) else one for one in args]
        for one, other in zip(given, args, strict=True):
            if isinstance(one, np.ndarray):
                one.flags.writeable = other.flags.writeable
        told.append((make()(*given), given))
    return told[0], told[1]


def bits(value: Any) -> Any:
    """A value such that equal ones have the same type and the same bits."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return [bits(one) for one in value]
    return type(value), np.float64(value).tobytes() if isinstance(value, float) else value


SCORES = nst.arrays(
    np.float64,
    st.integers(0, 60),
    elements=st.floats(allow_nan=False) | st.sampled_from([0.5, -0.0]),
)


@given(SCORES, st.integers(0, 60))
def test_sorted_in_place_alike(score: Array, longest: int) -> None:
    start = frozen([0, score.size // 2, score.size], np.int64)
    room = np.zeros(64, np.int64), np.zeros(64, np.int64)
    ours, theirs = both(sorting._sort, start, 0, 2, longest, *room, score)
    assert bits(ours) == bits(theirs)


@given(SCORES, st.integers(0, 5))
def test_counted_alike(score: Array, seen: int) -> None:
    bit = frozen(score.view(np.uint64), np.uint64)
    outcome = frozen(np.arange(score.size) % 3, np.uint8)
    room = np.full(1 << 14, -1, np.int16), np.zeros(4096, np.uint64), np.zeros((4096, 3), np.int64)
    code = np.zeros(score.size, np.uint16)
    ours, theirs = both(few_scores._count, bit, outcome, seen, *room, code)
    assert bits(ours) == bits(theirs)


@given(nst.arrays(np.int32, st.integers(0, 80), elements=st.integers(0, 9)))
def test_arrays_returned_alike(datum: Array) -> None:
    ours, theirs = both(pairs._by_datum, frozen(datum, np.int32), 10)
    assert bits(ours) == bits(theirs)


@given(SCORES, st.integers(1, 7), st.integers(0, 20))
def test_laid_in_columns_alike(score: Array, width: int, offset: int) -> None:
    column = np.zeros((width, (score.size + offset) // width + 1))
    best = np.zeros(column.shape[1], np.int32), np.zeros(column.shape[1])
    ours, theirs = both(columns._lay, frozen(score, np.float64), offset, width, column, *best)
    assert bits(ours) == bits(theirs)


def test_blocks_taken_together_are_laid_as_by_numpy() -> None:
    """More than the kernel takes at once, and what a piece before and after it leave over."""
    score = np.random.default_rng(3).random(7 * 600 + 5)
    for offset in (0, 3):
        column = np.full((7, 603), -1.0)
        columns.lay_columns(score, offset, column, np.zeros(603, np.int32), np.zeros(603))
        expected = np.full(column.size, -1.0)
        expected[offset : offset + score.size] = score
        assert (column.T.ravel() == expected).all()


@pytest.mark.parametrize("shift", [0, 1, 123_457])
def test_logarithms_have_the_same_bits(shift: int) -> None:
    ours, theirs = both(rank_sums._logs, shift, np.ones(50_000))
    assert bits(ours) == bits(theirs)


@pytest.fixture(scope="module")
def compiled() -> Callable[[str], bytes]:
    import numba  # noqa: F401  # makes the compiler ready

    from evalengine.kernels.objects.runtime import object_of

    return object_of


def link(*objects: bytes) -> Image:
    return linked(objects, "f", "f", CONTRACT, without="g", known=SYMBOLS)


CALLING = "define i64 @f(i64 %x) {{\n %y = call i64 @{}(i64 %x)\n ret i64 %y\n}}\n"
PLAIN = "define i64 @f(i64 %x) {\n %y = add i64 %x, 41\n ret i64 %y\n}\n"


def test_an_image_is_read_as_it_was_written(
    compiled: Callable[[str], bytes], tmp_path: Path
) -> None:
    calls = (
        "declare i64 @h(i64)\n define i64 @f(i64 %x) {\n %y = call i64 @h(i64 %x)\n ret i64 %y\n}"
    )
    image = link(compiled(calls), compiled(PLAIN.replace("@f", "@h")))
    image.written(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == CONTRACT.file_name
    again = read_image(path)
    assert (again.contract, again.entry, again.release) == (CONTRACT, image.entry, image.release)
    assert again.symbols == image.symbols == ()
    for ours, theirs in (
        (image.code, again.code),
        (image.places, again.places),
        (image.targets, again.targets),
    ):
        assert (ours == theirs).all()
    import ctypes

    address, _ = placed(again)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(1) == 42


def test_memory_is_never_writable_and_runnable(compiled: Callable[[str], bytes]) -> None:
    address, _ = placed(link(compiled(PLAIN)))
    regions = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    (rights,) = (
        right
        for span, right, *_ in regions
        if int(span.split("-")[0], 16) <= address < int(span.split("-")[1], 16)
    )
    assert rights == "r-xp"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("declare i64 @system(i64)", "refers to system"),
        ("declare i64 @PyErr_Occurred(i64)", "refers to PyErr_Occurred"),
        ("define i64 @h(i64 %x) {\n %p = alloca i64\n ret i64 %x\n}", None),
    ],
)
def test_what_is_unknown_is_refused(
    compiled: Callable[[str], bytes], text: str, message: str | None
) -> None:
    name = text.split("@")[1].split("(")[0]
    code = compiled(
        f"{text}\ndefine i64 @f(i64 %x) {{\n %y = call i64 @{name}(i64 %x)\n ret i64 %y\n}}"
    )
    if message is None:
        link(code)
        return
    with pytest.raises(Unusable, match=message):
        link(code)
    # what nothing calls may refer to anything, and is never run
    left_out = code.replace(b"\0f\0", b"\0g\0")
    image = link(left_out, compiled(PLAIN))
    assert (image.code == 0xCC).sum() >= 10


def test_what_is_written_to_is_refused(compiled: Callable[[str], bytes]) -> None:
    text = "@state = global i64 7\n" + PLAIN.replace("41", "ptrtoint (i64* @state to i64)")
    with pytest.raises(Unusable, match="written to"):
        link(compiled(text))


@pytest.mark.parametrize("data", [bytes(64), b"\x7fELF\x01\x01\x01" + bytes(80)])
def test_what_is_no_object_for_this_machine_is_refused(data: bytes) -> None:
    with pytest.raises(Unusable, match="not an object"):
        link(data)


def test_an_entry_that_is_not_there_is_refused(compiled: Callable[[str], bytes]) -> None:
    with pytest.raises(Unusable, match="no such function"):
        link(compiled(PLAIN.replace("@f", "@h")))


def test_symbols_beyond_the_known_ones_are_not_looked_up() -> None:
    none = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    image = Image(CONTRACT, 0, 0, np.zeros(1, np.uint8), *none, ("system",))
    with pytest.raises(Unusable, match="unknown"):
        placed(image)


def test_a_processor_is_told_by_what_it_can_do() -> None:
    assert processor() == processor()
    assert len(str(processor())) == 24
