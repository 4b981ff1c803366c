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

from .folder import put_whole
from .objects.keeping import keep

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
_UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, pickle.UnpicklingError)


def no_extensions() -> None:
    """What a kernel does for extensions of the compiler: nothing, since it takes arrays alone."""


@cache
def light_cache(folder: Path) -> Any:
    """Numba's cache of one function, which loads compiled code without what compiling takes.

    It is made of the function and the name of its files of our own (None where it has none). The
    compiler asks for those modules itself. None where this version's cache looks different.

    Args:
        folder: where the compiled runtime is kept.
    """
    from numba.core.caching import FunctionCache

    if not all(hasattr(FunctionCache, part) for part in _PARTS_OF_CACHE):
        return None

    class LightCache(FunctionCache):  # type: ignore[misc]  # Numba has no types
        def __init__(self, function: Any, kept_as: str | None) -> None:
            super().__init__(function)
            self._kept_as = kept_as

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            start_runtime(target_context, folder)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
            if found is not None:
                self._keep(sig, target_context)
            return found

        def save_overload(self, sig: Any, data: Any) -> None:
            super().save_overload(sig, data)
            self._keep(sig, data.target_context)

        def _keep(self, sig: Any, context: Any) -> None:
            """Write a file of our own beside what Numba has kept, unless it is there."""
            if self._kept_as is not None:
                key = self._index_key(sig, context.codegen())
                keep(self._kept_as, folder, partial(self._cache_file.load, key), sig, context)

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
        return context.codegen().unserialize_library(pickle.loads(path.read_bytes()))
    module, library = nrtdynmod.create_nrt_module(context)
    library.enable_object_caching()
    library.add_ir_module(module)
    library.finalize()
    with suppress(OSError):  # as for kernels: what cannot be kept is compiled once more
        put_whole(path, pickle.dumps(library.serialize_using_object_code()))
    return library
