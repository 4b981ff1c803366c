"""Calls of a kernel from its files: chosen by the types of the arguments, else left to Numba."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .entry import MISMATCH, result_kinds
from .image import SUFFIX, Contract, Refused, Unusable, Value, read_image
from .memory import DTYPES, MOST_DIMENSIONS, placed
from .place import folder_of, processor

Array = np.ndarray[Any, Any]
Convert = Callable[[Any], Any]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def _int64(value: int) -> int:
    """A Python integer that fits.

    Raises:
        OverflowError: it does not; in the words of Python, which are Numba's, too.
    """
    if not _LEAST <= value <= _MOST:
        raise OverflowError("int too big to convert")
    return value


_TAKEN: dict[str, dict[type, Convert | None]] = {
    "int64": {int: _int64, np.int64: int},
    "uint64": {np.uint64: int},
    "float64": {float: None, np.float64: None},
    "bool": {bool: None, np.bool_: bool},
}
"""By kind of scalar, the types of Python's and NumPy's that Numba takes for it."""

_PASSED: dict[str, Any] = {
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
    "bool": ctypes.c_int64,
}


@cache
def _capsule() -> Any:
    """Makes a capsule: an object whose destructor is compiled code.

    One written in Python would swallow what a signal raises while memory is given back.
    """
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return kind(("PyCapsule_New", ctypes.pythonapi))


class _Memory:
    """Memory of an array that a kernel made, given back with the last array that lies in it.

    Args:
        owner: what keeps it.
        data: address of the first value.
        shape: of the array.
        value: dtype of its values, and whether they may be written to.
    """

    def __init__(self, owner: Any, data: int, shape: tuple[int, ...], value: Value) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "data": (data, not value.writable),
            "shape": shape,
            "typestr": np.dtype(value.kind).str,
            "version": 3,
        }


def _scalar(kind: str, at: int) -> Callable[[Any, Any], Any]:
    """Reads a result of one word."""
    if kind == "float64":
        return lambda out, given: ctypes.c_double.from_buffer(out, 8 * at).value
    if kind == "bool":
        return lambda out, given: bool(out[at] & 1)
    if kind == "uint64":
        return lambda out, given: out[at] & 0xFFFFFFFFFFFFFFFF
    return lambda out, given: out[at]


def _array(value: Value, at: int, release: int) -> Callable[[Any, Any], Any]:
    """Reads a result that is an array: one reference to its memory is passed on with it."""
    ndim = value.ndim or 0

    def read(out: Any, given: Any) -> Array:
        shape = tuple(out[at + 5 : at + 5 + ndim])
        # without an owner it lies in what the kernel was given
        owner = _capsule()(out[at], None, release) if out[at] else given
        return np.asarray(_Memory(owner, out[at + 4], shape, value))

    return read


def _reader(contract: Contract, release: int) -> tuple[int, Callable[[Any, Any], Any]]:
    """How many words the results take, and what reads them."""
    reads, at = [], 0
    for value in contract.results:
        one = _scalar(value.kind, at) if value.ndim is None else _array(value, at, release)
        reads.append(one)
        at += len(result_kinds(value))
    if contract.several:
        return at, lambda out, given: tuple([read(out, given) for read in reads])
    return at, reads[0] if reads else lambda out, given: None


def _exception(address: int) -> BaseException:
    """What a kernel raised: Numba's convention, a pickle beside its length."""
    if not address:
        return SystemError("a kernel failed without saying why")
    data = ctypes.c_uint64.from_address(address).value
    size = ctypes.c_int32.from_address(address + 8).value
    kind, arguments, _ = pickle.loads(ctypes.string_at(data, size))
    made: BaseException = kind(*(arguments or ()))
    return made


def _known(contract: Contract) -> bool:
    """Whether all that a kernel takes and returns is of kinds that are passed here."""
    scalars = [one.kind in _PASSED for one in contract.arguments if one.ndim is None]
    values = (*contract.arguments, *contract.results)
    return all(scalars) and all(
        one.kind in DTYPES
        and (one.ndim is None or (type(one.ndim) is int and 1 <= one.ndim <= MOST_DIMENSIONS))
        for one in values
    )


class _Loaded:
    """One file of a kernel, in memory."""

    def __init__(self, path: Path, kernel: str) -> None:
        image = read_image(path)
        self.contract = contract = image.contract
        if (contract.kernel, contract.processor) != (kernel, processor()):
            raise Unusable(f"{path.name} was made for another kernel or processor")
        if path.name != contract.file_name:
            raise Unusable(f"{path.name} was made for other arguments")
        if not _known(contract):
            raise Unusable(f"{path.name} takes or returns something unknown")
        taken = [
            ctypes.py_object if value.ndim is not None else _PASSED[value.kind]
            for value in contract.arguments
        ]
        address, release = placed(image)
        size, self.read = _reader(contract, release)
        self.room = ctypes.c_int64 * max(1, size)  # at least where an exception is told
        # Python's lock is let go meanwhile, as it is where Numba calls kernels.
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), *taken)
        self.enter = kind(address)

    def converts(self, types: Sequence[type]) -> list[tuple[int, Convert]] | None:
        """What turns arguments of these types into what is passed; None where they do not fit."""
        if len(types) != len(self.contract.arguments):
            return None
        found = []
        for i, (given, value) in enumerate(zip(types, self.contract.arguments, strict=True)):
            if value.ndim is not None:
                if given is not np.ndarray:
                    return None
                continue
            if given not in _TAKEN[value.kind]:
                return None
            convert = _TAKEN[value.kind][given]
            if convert is not None:
                found.append((i, convert))
        return found


class Files:
    """Compiled code of one kernel, loaded when it is first called.

    Args:
        kernel: module and name of the function.
        folder: of all compiled kernels.
        otherwise: makes what is called where no file fits.
    """

    def __init__(self, kernel: str, folder: Path, otherwise: Callable[[], Any]) -> None:
        self._kernel, self._otherwise = kernel, otherwise
        self._loaded: list[_Loaded] = []
        self._plans: dict[tuple[type, ...], list[tuple[_Loaded, list[tuple[int, Convert]]]]] = {}
        self._folder = folder_of(kernel, folder)
        self._read()

    def __len__(self) -> int:
        """How many files there are that can be run."""
        return len(self._loaded)

    def _read(self) -> None:
        """Load every file; one that cannot be used is removed, so that it is made again."""
        try:
            paths = sorted(self._folder.iterdir())
        except OSError:
            return
        for path in paths:
            if path.suffix != SUFFIX:
                continue
            try:
                self._loaded.append(_Loaded(path, self._kernel))
            except Refused:
                continue  # the file is as good as before
            except Unusable:
                with suppress(OSError):
                    path.unlink()
            except OSError:
                continue

    def _plan(self, types: tuple[type, ...]) -> list[tuple[_Loaded, list[tuple[int, Convert]]]]:
        """Files that may fit arguments of these types, and what is done to the arguments."""
        found = []
        for one in self._loaded:
            converts = one.converts(types)
            if converts is not None:
                found.append((one, converts))
        self._plans[types] = found
        return found

    def _run(self, args: tuple[Any, ...]) -> tuple[bool, Any]:
        """Whether a file fits, and what the kernel returned."""
        types = tuple(map(type, args))
        plan = self._plans.get(types)
        for one, converts in self._plan(types) if plan is None else plan:
            given: Any = args
            if converts:
                given = list(args)
                for i, convert in converts:
                    given[i] = convert(given[i])
            out = one.room()
            status = one.enter(out, *given)
            if not status:
                return True, one.read(out, args)
            if status != MISMATCH:
                raise _exception(out[0])
        return False, None

    def __call__(self, *args: Any) -> Any:
        ran, result = self._run(args)
        if not ran:
            plain = tuple(map(_plain, args))
            if any(one is not other for one, other in zip(plain, args, strict=True)):
                ran, result = self._run(plain)
        return result if ran else self._otherwise()(*args)


def _plain(value: Any) -> Any:
    """An array of NumPy's own class and own dtype object, over the same memory; else the value.

    Unpickled dtypes and those of C's second name for a type equal NumPy's own without being it.
    """
    if type(value) is np.memmap:
        value = value.view(np.ndarray)
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        own = np.dtype(value.dtype.str)
        if value.dtype is not own and value.dtype == own:
            plain = value.view(own)
            plain.flags.writeable = value.flags.writeable
            return plain
    return value
