"""How a compiled kernel is entered: a small function of plain arguments, written for each.

Numba's own entry from Python needs Numba. This one takes NumPy's arrays as they lie in memory,
looks whether they are what the kernel was compiled for, and passes on what Numba's calling
convention asks for; results go to 64-bit words.

Written where Numba is imported anyway, with the IR builder that it brings.
"""

from __future__ import annotations

from typing import Any

from .image import Contract, Image, Unusable, Value
from .linking import linked
from .memory import DTYPE, DTYPES, MOST_DIMENSIONS, SYMBOLS
from .runtime import RELEASE, memory_object, object_of

ENTRY = "evalengine_enter"
MISMATCH = -(1 << 31)
"""Status where an array is not of the type that the kernel was compiled for."""
SCALARS = ("int64", "uint64", "float64", "bool")
"""Kinds of scalars that kernels take."""

# Offsets in NumPy's array object (``PyArrayObject_fields``); ``calls`` looks at one before any use.
DATA, NDIM, DIMENSIONS, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
_MASK = C_CONTIGUOUS | ALIGNED | WRITEABLE


def _argument(kind: Any, types: Any) -> Value:
    """What a type of Numba's is to us, as an argument or a result.

    Raises:
        Unusable: it is none that can be passed.
    """
    if isinstance(kind, types.Array):
        dtype = str(kind.dtype)
        known = dtype in DTYPES and 1 <= kind.ndim <= MOST_DIMENSIONS
        if kind.layout == "C" and kind.aligned and known:
            return Value(dtype, kind.ndim, bool(kind.mutable))
    elif isinstance(kind, types.Boolean):
        return Value("bool")
    elif isinstance(kind, (types.Integer, types.Float)) and str(kind) in DTYPES:
        return Value(str(kind))
    raise Unusable(f"values of type {kind}")


def contract_of(kernel: str, processor: str, arguments: Any, result: Any) -> Contract:
    """The contract of a kernel compiled for some types of Numba's.

    Raises:
        Unusable: it takes or returns what cannot be passed.
    """
    from numba import types

    given = tuple(_argument(one, types) for one in arguments)
    if any(one.ndim is None and one.kind not in SCALARS for one in given):
        raise Unusable("scalars of an unusual type")
    several = isinstance(result, types.BaseTuple)
    kinds = tuple(result) if several else () if result is types.none else (result,)
    results = tuple(_argument(one, types) for one in kinds)
    return Contract(kernel, processor, given, results, several)


class _Writer:
    """Writes one entry with the builder of a function of our own."""

    def __init__(self, ir: Any, module: Any, builder: Any) -> None:
        self._ir, self._module, self._builder = ir, module, builder
        self._byte, self._word = ir.IntType(8), ir.IntType(64)
        self._int = ir.IntType(32)

    def _field(self, base: Any, offset: int, kind: Any) -> Any:
        at = self._builder.gep(base, [self._word(offset)])
        return self._builder.load(self._builder.bitcast(at, kind.as_pointer()))

    def fits(self, array: Any, value: Value) -> Any:
        """Whether an array is of the type asked for."""
        name = DTYPE + value.kind
        known = self._module.globals.get(name)
        if known is None:
            known = self._ir.GlobalVariable(self._module, self._byte, name)
        wanted = C_CONTIGUOUS | ALIGNED | (WRITEABLE if value.writable else 0)
        flags = self._builder.and_(self._field(array, FLAGS, self._int), self._int(_MASK))
        descr = self._field(array, DESCR, self._byte.as_pointer())
        return self._builder.and_(
            self._builder.icmp_unsigned("==", descr, known),
            self._builder.and_(
                self._builder.icmp_unsigned("==", flags, self._int(wanted)),
                self._builder.icmp_signed(
                    "==", self._field(array, NDIM, self._int), self._int(value.ndim)
                ),
            ),
        )

    def array(self, array: Any, value: Value) -> list[Any]:
        """What Numba passes for an array: no owner, size, size of an item, data, shape, strides."""
        import numpy as np

        none = self._byte.as_pointer()(None)
        lengths, steps = (
            self._field(array, offset, self._word.as_pointer()) for offset in (DIMENSIONS, STRIDES)
        )
        found = [
            self._builder.load(self._builder.gep(table, [self._word(k)]))
            for table in (lengths, steps)
            for k in range(value.ndim or 0)
        ]
        size = self._word(1)
        for length in found[: value.ndim]:
            size = self._builder.mul(size, length)
        item = self._word(np.dtype(value.kind).itemsize)
        return [none, none, size, item, self._field(array, DATA, self._byte.as_pointer()), *found]

    def as_passed(self, value: Any, kind: Any) -> Any:
        """A value as an argument of the compiled function."""
        ir, builder = self._ir, self._builder
        if value.type == kind:
            return value
        if isinstance(value.type, ir.PointerType) and isinstance(kind, ir.PointerType):
            return builder.bitcast(value, kind)
        if isinstance(kind, ir.IntType) and kind.width < 64 and value.type == self._word:
            return builder.trunc(value, kind)
        raise Unusable(f"{value.type} is to be passed as {kind}")

    def words(self, value: Any, kinds: list[str]) -> list[Any]:
        """A result as 64-bit words; its parts' kinds are taken off the list as they come."""
        ir, builder = self._ir, self._builder
        if isinstance(value.type, (ir.LiteralStructType, ir.ArrayType)):
            parts = range(len(value.type))
            return [w for k in parts for w in self.words(builder.extract_value(value, k), kinds)]
        kind = kinds.pop(0) if kinds else ""
        if isinstance(value.type, ir.PointerType) and kind == "pointer":
            return [builder.ptrtoint(value, self._word)]
        if isinstance(value.type, ir.DoubleType) and kind == "float64":
            return [builder.bitcast(value, self._word)]
        if isinstance(value.type, ir.IntType) and (kind == "bool" or "int" in kind):
            if value.type.width == 64:
                return [value]
            widen = builder.sext if kind.startswith("int") else builder.zext
            return [widen(value, self._word)]
        raise Unusable(f"a result of type {value.type} for {kind or 'nothing'}")


def result_kinds(value: Value) -> list[str]:
    """Kinds of the 64-bit words that a result takes."""
    if value.ndim is None:
        return [value.kind]
    return ["pointer", "pointer", "int64", "int64", "pointer"] + ["int64"] * (2 * value.ndim)


def _entry_module(name: str, function: Any, contract: Contract) -> str:
    """The IR of the entry: ``int entry(words out, arguments ...)``.

    Args:
        name: the compiled function.
        function: its type in LLVM.
        contract: what it takes and returns.
    """
    from llvmlite import ir

    byte, word, code = ir.IntType(8), ir.IntType(64), ir.IntType(32)
    module = ir.Module(ENTRY)
    taken = [
        byte.as_pointer()
        if one.ndim is not None
        else ir.DoubleType()
        if one.kind == "float64"
        else word
        for one in contract.arguments
    ]
    enter = ir.Function(module, ir.FunctionType(code, [word.as_pointer(), *taken]), ENTRY)
    start, go, done, failed, other = (
        enter.append_basic_block(k) for k in ("start", "go", "done", "failed", "other")
    )
    out, *given = enter.args
    writer = _Writer(ir, module, builder := ir.IRBuilder(start))
    fits = ir.IntType(1)(1)
    for argument, value in zip(given, contract.arguments, strict=True):
        if value.ndim is not None:
            fits = builder.and_(fits, writer.fits(argument, value))
    # Numba's convention: status f(result *, exception **, arguments ...)
    result_type, exception_type = (kind.pointee for kind in function.args[:2])
    result, exception = builder.alloca(result_type), builder.alloca(exception_type)
    builder.cbranch(fits, go, other)

    builder.position_at_end(go)
    builder.store(ir.Constant(result_type, None), result)
    builder.store(ir.Constant(exception_type, None), exception)
    passed: list[Any] = []
    for argument, value in zip(given, contract.arguments, strict=True):
        passed += [argument] if value.ndim is None else writer.array(argument, value)
    if len(passed) != len(function.args) - 2:
        raise Unusable("arguments are passed in another way")
    passed = [writer.as_passed(*pair) for pair in zip(passed, function.args[2:], strict=True)]
    callee = ir.Function(module, function, name)
    status = builder.call(callee, [result, exception, *passed])
    builder.cbranch(builder.icmp_signed("==", status, code(0)), done, failed)

    builder.position_at_end(done)
    kinds = [kind for value in contract.results for kind in result_kinds(value)]
    words = writer.words(builder.load(result), kinds) if contract.results else []
    if kinds:
        raise Unusable("results are passed in another way")
    for k, value in enumerate(words):
        builder.store(value, builder.gep(out, [word(k)]))
    builder.ret(code(0))

    builder.position_at_end(failed)
    builder.store(builder.ptrtoint(builder.load(exception), word), out)
    builder.ret(status)
    builder.position_at_end(other)
    builder.ret(code(MISMATCH))
    return str(module)


def image_of(contract: Contract, code: bytes, described: Any, context: Any) -> Image:
    """The image of a kernel that Numba has compiled.

    Args:
        contract: what it takes and returns.
        code: the object file that Numba made of it.
        described: Numba's description of the function.
        context: Numba's target context.

    Raises:
        Unusable: it does something that would need Numba when it runs.
    """
    if b"__excinfo_unwrap_args" in code:
        raise Unusable("exceptions that are told with values")
    function = context.call_conv.get_function_type(described.restype, described.argtypes)
    text = _entry_module(described.llvm_func_name, function, contract)
    return linked(
        [code, object_of(text), memory_object()],
        ENTRY,
        RELEASE,
        contract,
        without=described.llvm_cpython_wrapper_name,
        known=SYMBOLS,
    )
