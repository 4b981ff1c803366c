"""The one decorator that every kernel wears.

Numba takes longer to import than everything else together, so a kernel imports it when it is first
called: whatever only reads, checks or explains does without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, update_wrapper
from threading import RLock
from typing import Any

import numpy as np

from .folder import cache_folder
from .loading import PARTS_OF_DISPATCHER, light_cache, no_extensions

_LOCK = RLock()  # one kernel may make those it calls; Numba's cache folder is a global of its own


@cache
def _numba() -> Any:
    """Numba, told that a kernel named in another one stands for its compiled function."""
    import numba
    from numba.extending import typeof_impl

    def type_of_kernel(value: Kernel, context: Any) -> Any:
        return numba.types.Dispatcher(value.compiled)

    def type_of_instruction(value: Instruction, context: Any) -> Any:
        typing = numba.core.registry.cpu_target.typing_context
        made = value.made
        typing.refresh()
        return typing.resolve_value_type(made)

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

    @property
    def variants(self) -> int:
        """For how many combinations of types this process has compiled or loaded it."""
        return 0 if self._made is None else len(self._made.signatures)

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
