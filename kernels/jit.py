"""Decorators of compiled functions, and the dtypes that annotate their arguments.

Numba takes longer to import than everything else together, so a kernel imports it at its first
call: commands that only read, check or explain do not import it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, update_wrapper
from threading import RLock
from typing import Annotated, Any, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from . import uncollected
from .folder import PARTS_OF_DISPATCHER, cache_folder, light_cache, no_extensions

Array: TypeAlias = np.ndarray[Any, Any]
"""An array passed to a kernel without conversion: an output, or scratch memory."""

# Inputs of one dtype: converted if need be, contiguous and read-only.
Bools: TypeAlias = Annotated[Array, np.bool_]
U8: TypeAlias = Annotated[Array, np.uint8]
U32: TypeAlias = Annotated[Array, np.uint32]
U64: TypeAlias = Annotated[Array, np.uint64]
I8: TypeAlias = Annotated[Array, np.int8]
I32: TypeAlias = Annotated[Array, np.int32]
I64: TypeAlias = Annotated[Array, np.int64]
F32: TypeAlias = Annotated[Array, np.float32]
F64: TypeAlias = Annotated[Array, np.float64]

# Inputs that may be None, which a kernel sees as an empty array.
MaybeI32: TypeAlias = Annotated[Any, np.int32]
MaybeI64: TypeAlias = Annotated[Any, np.int64]
MaybeF64: TypeAlias = Annotated[Any, np.float64]
MaybeMatrix: TypeAlias = Annotated[Any, np.float64, 2]

_F = TypeVar("_F", bound=Callable[..., Any])
_LOCK = RLock()  # one kernel may compile those it calls; Numba's cache folder is a global


@cache
def _numba() -> Any:
    """Import Numba and register kernels: one named in another is its compiled function."""
    with uncollected(lasting=True):
        import numba
        from numba.extending import typeof_impl

    def type_of_kernel(value: Kernel, context: Any) -> Any:
        return numba.types.Dispatcher(value.compiled)

    def type_of_instruction(value: Instruction, context: Any) -> Any:
        typing = numba.core.registry.cpu_target.typing_context
        intrinsic = value.intrinsic
        typing.refresh()
        return typing.resolve_value_type(intrinsic)

    typeof_impl.register(Kernel)(type_of_kernel)
    typeof_impl.register(Instruction)(type_of_instruction)
    return numba


def _compiled(function: Callable[..., Any], flags: dict[str, bool]) -> Any:
    """Make Numba's dispatcher of a function, with the options and cache of all kernels."""
    numba = _numba()
    dispatcher = numba.njit(nogil=True, error_model="numpy", **flags)(function)
    folder = cache_folder()
    if folder is None or numba.config.DISABLE_JIT:
        return dispatcher
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        light = light_cache(folder)
        if light is None or not all(hasattr(dispatcher, part) for part in PARTS_OF_DISPATCHER):
            dispatcher.enable_caching()
        else:
            dispatcher._cache = light(function)
            dispatcher._compilation_chain_init_hook = no_extensions
    finally:
        numba.config.CACHE_DIR = previous
    return dispatcher


def frozen(array: Any, dtype: Any) -> Array:
    """Return a C-contiguous read-only array of the given dtype, copied only if necessary.

    Numba compiles again for each combination of writable and read-only arguments, so all inputs of
    kernels are read-only.
    """
    view = np.ascontiguousarray(array, dtype)
    if view.flags.writeable:
        view = view.view()
        view.flags.writeable = False
    return view


def _conversion_of(hint: Any, name: str, scope: dict[str, Any]) -> str:
    """Return the expression that converts an argument, given its annotation.

    Args:
        hint: annotation of the argument.
        name: expression of the argument.
        scope: global names of the expression, to which dtypes and classes are added.
    """
    if hint in (int, float, bool):
        return f"{hint.__name__}({name})"
    if get_origin(hint) is Annotated:
        kind, dtype, *dimensions = get_args(hint)
        scope[f"_{dtype.__name__}"] = np.dtype(dtype)
        some = f"_frozen({name}, _{dtype.__name__})"
        if kind is not Any:
            return some
        empty = f"_no_{dtype.__name__}_{sum(dimensions or [1])}"
        scope[empty] = frozen(np.empty((0,) * sum(dimensions or [1])), dtype)
        return f"{empty} if {name} is None else {some}"
    parts: list[Any] = []
    head = ""
    if get_origin(hint) is tuple:
        parts = [*get_args(hint)]
    elif isinstance(hint, type) and hasattr(hint, "_fields"):
        parts = [*get_type_hints(hint, include_extras=True).values()]
        head = f"_{hint.__name__}"
        scope[head] = hint
    converted = []
    plain = True
    for i, part in enumerate(parts):
        item = f"{name}[{i}]"
        converted.append(_conversion_of(part, item, scope))
        plain = plain and converted[-1] == item
    if plain:
        return name
    return f"{head}({', '.join(converted)}{'' if head else ','})"


class Kernel:
    """A function that Numba compiles, or loads from the cache, at its first call.

    Args:
        function: function of module level, so that it can be pickled by name.
        **flags: options of Numba's decorator in addition to those of all kernels.
    """

    def __init__(self, function: Callable[..., Any], **flags: bool) -> None:
        update_wrapper(self, function)
        self._function = function
        self._flags = flags
        self._made: Any = None
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return (self._entry or self._enter())(*args, **named)

    def _enter(self) -> Callable[..., Any]:
        """Make the function that Python code calls: it converts arguments, then runs the kernel."""
        scope: dict[str, Any] = {"_frozen": frozen, "_kernel": self.compiled}
        hints = get_type_hints(self._function, include_extras=True)
        code = self._function.__code__
        names = code.co_varnames[: code.co_argcount]
        arguments = []
        for name in names:
            arguments.append(_conversion_of(hints.get(name), name, scope))  # noqa: PERF401
        exec(f"def entry({', '.join(names)}): return _kernel({', '.join(arguments)})", scope)
        entry: Callable[..., Any] = scope["entry"]
        entry.__defaults__ = self._function.__defaults__
        self._entry = entry
        return entry

    @property
    def borrows(self) -> bool:
        """True if no references to arrays are counted, see :func:`inner`."""
        return not self._flags.get("_nrt", True)

    @property
    def variants(self) -> int:
        """Number of combinations of types that this process has compiled or loaded."""
        return 0 if self._made is None else len(self._made.signatures)

    def __reduce__(self) -> str:
        name: str = self._function.__qualname__
        return name

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher of the function, made once per process."""
        with _LOCK:
            if self._made is None:
                self._made = _compiled(self._function, self._flags)
            return self._made


class Instruction:
    """An operation for kernels, written in LLVM.

    Called from Python, it runs a Python function with the same result.

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
    def intrinsic(self) -> Any:
        """Numba's intrinsic, made once per process."""
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


def kernel(function: _F) -> _F:
    """Compile a function in nopython mode, releasing the GIL, cached on disk if possible.

    Called from Python, it converts its arguments by their annotations: ``int``, ``float``,
    ``bool``, the dtypes of this module, and tuples and NamedTuples of these. So it is compiled
    once, and read-only arrays (Arrow buffers, memory maps) are accepted. Arguments with other
    annotations are passed unchanged. Called from another kernel, it converts no arguments.
    """
    return cast(_F, Kernel(function, no_cfunc_wrapper=True))


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call: without a Python entry, it compiles faster.

    It may neither allocate arrays nor return any: so no references to its arguments are counted,
    which costs more than many of these functions.
    """
    return allocating(function, _nrt=False)


def allocating(function: Callable[..., Any], **flags: bool) -> Callable[..., Any]:
    """Compile a function like :func:`inner` that allocates arrays, returns some, or calls such."""
    return Kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **flags)
