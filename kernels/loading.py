"""Compiled kernels loaded without what only compiling takes.

Before it loads anything Numba imports its implementations of all of Python's and NumPy's functions,
which costs as much as importing Numba; compiles its runtime, a few functions that count references;
and asks all installed packages for extensions of the compiler. Compiled code needs the runtime
alone, which is kept on disk as kernels are. All of this rests on parts of Numba that are no public
interface: each is looked for first, and where a version lacks one, Numba's own way is taken.
"""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from .folder import Damaged, put_whole, read_whole

PARTS_OF_DISPATCHER = ("_cache", "_compilation_chain_init_hook")
_PARTS_OF_CACHE = (
    "load_overload",
    "_load_overload",
    "save_overload",
    "_index_key",
    "_guard_against_spurious_io_errors",
)
_PARTS_OF_RUNTIME = ("create_nrt_module", "compile_nrt_functions")
_PARTS_OF_LIBRARY = (
    "enable_object_caching",
    "add_ir_module",
    "finalize",
    "serialize_using_object_code",
)
_PARTS_OF_FILES = ("load", "save", "_load_index", "_save_index", "_load_data", "_save_data")
_UNREADABLE = (
    *(OSError, Damaged, EOFError, ValueError, RuntimeError),
    *(pickle.UnpicklingError, AttributeError, ImportError),
)


def no_extensions() -> None:
    """What a kernel does for extensions of the compiler: nothing, since it takes arrays alone."""


@cache
def light_cache(folder: Path) -> Any:
    """Numba's cache of one function, which loads compiled code without what compiling takes.

    The compiler asks for those modules itself. None where this version's cache looks different.

    Args:
        folder: where compiled code is kept; it need not be writable.
    """
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

    if not all(hasattr(FunctionCache, part) for part in _PARTS_OF_CACHE) or not all(
        hasattr(IndexDataCacheFile, part) for part in _PARTS_OF_FILES
    ):
        return None

    class CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]  # Numba has no types
        """Files with checksums; one that does not hold is as good as none, and is written anew.

        Numba raises what unpickling raises, in every later run too, and code that was altered may
        end the process.
        """

        def _load_index(self) -> Any:
            with suppress(*_UNREADABLE):
                version, stamp, overloads = pickle.loads(read_whole(Path(self._index_path)))
                if (version, stamp) == (self._version, self._source_stamp):
                    return overloads
            return {}

        def _save_index(self, overloads: Any) -> None:
            told = self._version, self._source_stamp, overloads
            put_whole(Path(self._index_path), self._dump(told))

        def _load_data(self, name: str) -> Any:
            try:
                return pickle.loads(read_whole(Path(self._data_path(name))))
            except Damaged as error:
                raise OSError from error  # for which Numba compiles

        def _save_data(self, name: str, data: Any) -> None:
            put_whole(Path(self._data_path(name)), self._dump(data))

    class Place:
        """Where files are: the folder's name tells sources and versions, wherever they lie."""

        def __init__(self, function: Any) -> None:
            self._line = function.__code__.co_firstlineno

        @classmethod
        def from_function(cls, function: Any, file: str) -> Place:
            return cls(function)

        def get_cache_path(self) -> str:
            return str(folder)

        def ensure_cache_path(self) -> None:
            """It is there, and whether it can be written shows when something is."""

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return str(self._line)

    class Placed(CompileResultCacheImpl):  # type: ignore[misc]  # Numba has no types
        _locator_classes = (Place,)

    class LightCache(FunctionCache):  # type: ignore[misc]  # Numba has no types
        _impl_class = Placed

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            stamp = self._impl.locator.get_source_stamp()
            name = f"{self._impl.filename_base}.checked"  # Numba's own way reads other files
            self._cache_file = CheckedFiles(self._cache_path, name, stamp)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            start_runtime(target_context, folder)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)

        def save_overload(self, sig: Any, data: Any) -> None:
            # A full disk, or a folder that is read-only: compiled once more the next time.
            with suppress(OSError):
                super().save_overload(sig, data)

    return LightCache


def start_runtime(context: Any, folder: Path) -> None:
    """Make Numba's runtime ready, from the disk where it was compiled before.

    Args:
        context: Numba's target context.
        folder: where the compiled runtime is kept.
    """
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime import nrtdynmod, rtsys

    known = (
        hasattr(rtsys, "_init")
        and all(hasattr(nrtdynmod, part) for part in _PARTS_OF_RUNTIME)
        and all(hasattr(CPUCodeLibrary, part) for part in _PARTS_OF_LIBRARY)
    )
    with global_compiler_lock:
        if not known or rtsys._init:
            rtsys.initialize(context)
            return
        compiled = nrtdynmod.compile_nrt_functions
        nrtdynmod.compile_nrt_functions = partial(_runtime, folder)
        try:
            rtsys.initialize(context)
        finally:
            nrtdynmod.compile_nrt_functions = compiled


def runtime_file(context: Any, folder: Path) -> Path:
    """The file of the runtime compiled for this kind of processor."""
    machine = repr(context.codegen().magic_tuple()).encode()
    return folder / f"runtime-{hashlib.sha256(machine).hexdigest()[:16]}.bin"


def _runtime(folder: Path, context: Any) -> Any:
    """The library of the runtime's functions, loaded, or compiled and kept."""
    from numba.core.runtime import nrtdynmod

    path = runtime_file(context, folder)
    with suppress(*_UNREADABLE):
        return context.codegen().unserialize_library(pickle.loads(read_whole(path)))
    module, library = nrtdynmod.create_nrt_module(context)
    library.enable_object_caching()
    library.add_ir_module(module)
    library.finalize()
    with suppress(OSError):  # as for kernels
        put_whole(path, pickle.dumps(library.serialize_using_object_code()))
    return library
