"""The one decorator that every kernel wears, and where compiled code is kept.

Numba's own disk cache sits beside the source and does not notice that a function in *another*
file changed. Here the cache folder's name holds a hash of every file in this package and the
versions of Numba and NumPy, so a change anywhere means a fresh folder. Where no folder can be
written, kernels are compiled in each process and nothing is said about it.

Numba takes longer to import than everything else together, so a kernel imports it when it is first
called: whatever only reads, checks or explains does without.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from .collector import collector_paused, pause_while_compiling
from .loading import PARTS_OF_DISPATCHER, light_cache, no_extensions

CACHE_VARIABLE = "EVALENGINE_CACHE_DIR"


def _source_digest() -> str:
    """First 16 hex digits of a hash over kernels/*.py and the compiler's versions."""
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    """Folders to try for compiled code, best first."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return [Path(named)]
    base = os.environ.get("XDG_CACHE_HOME")
    roots = [Path(base)] if base else []
    home = os.path.expanduser("~")
    if home not in ("~", "/"):
        roots.append(Path(home) / ".cache")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    roots.append(Path(tempfile.gettempdir()) / f"evalengine-{user}")
    return [root / "evalengine" for root in roots]


@cache
def cache_folder() -> Path | None:
    """The writable folder for compiled kernels, or None where there is none.

    ``EVALENGINE_CACHE_DIR`` names its parent; otherwise the user's cache folder, then the
    temporary folder, is tried.
    """
    digest = _source_digest()
    for root in _candidates():
        folder = root / f"kernels-{digest}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def is_compiled() -> bool:
    """Whether some kernel of this very source was compiled and kept before."""
    folder = cache_folder()
    return folder is not None and any(folder.rglob("*.nbi"))


_LOCK = RLock()  # one kernel may make those it calls; Numba's cache folder is a global of its own


@cache
def _numba() -> Any:
    """Numba, told that a kernel named in another one stands for its compiled function."""
    with collector_paused():
        import numba
        from numba.extending import typeof_impl

    def type_of_kernel(value: Kernel, context: Any) -> Any:
        return numba.types.Dispatcher(value.compiled)

    def type_of_instruction(value: Instruction, context: Any) -> Any:
        typing = numba.core.registry.cpu_target.typing_context
        made = value.made
        typing.refresh()
        return typing.resolve_value_type(made)

    pause_while_compiling()
    typeof_impl.register(Kernel)(type_of_kernel)
    typeof_impl.register(Instruction)(type_of_instruction)
    return numba


def _compiled(function: Callable[..., Any], flags: dict[str, bool]) -> Any:
    """Numba's dispatcher of a function, with the options and cache that all kernels share."""
    numba = _numba()
    made = numba.njit(nogil=True, error_model="numpy", **flags)(function)
    folder = cache_folder()
    if folder is None or numba.config.DISABLE_JIT:
        return made
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        light = light_cache(folder)
        if light is None or not all(hasattr(made, part) for part in PARTS_OF_DISPATCHER):
            made.enable_caching()
        else:
            made._cache = light(function)
            made._compilation_chain_init_hook = no_extensions
    finally:
        numba.config.CACHE_DIR = previous
    return made


class Kernel:
    """A function that Numba compiles, or loads from the cache, when it is first called.

    Args:
        function: what to compile; a function of its module, so that it can be pickled by name.
        **flags: options of Numba's decorator beyond those that all kernels share.
    """

    def __init__(self, function: Callable[..., Any], **flags: bool) -> None:
        update_wrapper(self, function)
        self._function = function
        self._flags = flags
        self._made: Any = None

    def __call__(self, *args: Any) -> Any:
        return (self._made or self.compiled)(*args)

    def __reduce__(self) -> str:
        name: str = self._function.__qualname__
        return name

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher of the function, made once, whichever thread comes first."""
        with _LOCK:
            if self._made is None:
                self._made = _compiled(self._function, self._flags)
            return self._made


class Instruction:
    """An operation that only kernels use, written in the compiler's own language.

    Called from Python it is the Python function that says what it does.

    Args:
        function: of arrays of bytes and uint64, to a uint64.
        emit: given the compiler's builder, arrays as pointers and words as values; returns a word.
    """

    def __init__(self, function: Callable[..., Any], emit: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._emit = emit
        self._made: Any = None

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __reduce__(self) -> str:
        name: str = self._function.__qualname__
        return name

    @property
    def made(self) -> Any:
        """What Numba knows it by, made once, whichever thread comes first."""
        with _LOCK:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make(self) -> Any:
        import inspect

        from numba import types
        from numba.extending import intrinsic

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = [
                context.make_array(kind)(context, builder, value).data
                if isinstance(kind, types.Array)
                else value
                for kind, value in zip(signature.args, args, strict=True)
            ]
            return self._emit(builder, *values)

        def typed(context: Any, *kinds: Any) -> Any:
            return types.uint64(*kinds), generate

        # Numba asks the function that types them for the names of the arguments.
        named = [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        named += inspect.signature(self._function).parameters.values()
        typed.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return intrinsic(typed)


def instruction(emit: Callable[..., Any]) -> Callable[[Callable[..., Any]], Instruction]:
    """Make a function an operation of kernels; see :class:`Instruction`."""
    return partial(Instruction, emit=emit)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function in nopython mode, releasing the GIL, cached on disk where possible.

    Read-only arrays (Arrow buffers, memory maps) are accepted. Numba would compile once more for
    each combination of writable and read-only arguments, so wrappers pass their inputs through
    :func:`frozen`, which makes them all read-only.
    """
    return Kernel(function, no_cfunc_wrapper=True)


def inner(function: Callable[..., Any]) -> Kernel:
    """Compile a function that only kernels call: no entry from Python, so it compiles faster."""
    return Kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def frozen(array: Any, dtype: type[np.generic] | np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array as a C-contiguous read-only one of the given dtype, copied only if it must be.

    Args:
        array: any array-like.
        dtype: the dtype the kernel is compiled for.
    """
    view = np.ascontiguousarray(array, dtype=dtype)
    if view.flags.writeable:
        view = view.view()
        view.flags.writeable = False
    return view
