"""Protection of inputs: an output that would replace a file that was read is refused.

A call records the files that it reads and the outputs that it will write. Readers report their
files before any work, and are compared with the outputs; writers are compared with the files read.
Two names of one file (links, other spellings) are the same file.
"""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from .schemas.errors import OptionError

P = ParamSpec("P")
R = TypeVar("R")
Paths = Iterable[str | os.PathLike[str]]


class _Call:
    """Files that one command or call reads, and the outputs that it will write."""

    def __init__(self, outputs: Mapping[str, str], outer: _Call | None) -> None:
        self.outputs = {path: name for path, name in outputs.items() if os.path.isfile(path)}
        self.outer = outer
        self.read: list[Paths] = []


_call: ContextVar[_Call | None] = ContextVar("evalengine_call", default=None)


@contextmanager
def protecting(
    outputs: Mapping[str, str], given: Iterable[str] = (), *, replaces: bool = False
) -> Iterator[list[Paths]]:
    """Refuse outputs that are inputs, immediately and for all reads within this context.

    Args:
        outputs: path to the name of its option.
        replaces: whether an output folder is replaced as a whole.

    Yields:
        files that were read, as they are reported.

    Raises:
        OptionError: an output is an input.
    """
    given = [_bare(path) for path in given]
    for output, name in outputs.items():
        wild = [path for path in given if not os.path.exists(path) and glob.has_magic(path)]
        refuse(output, [*given, *(one for path in wild for one in glob.iglob(path))], name)
        inside = os.path.join(_real(output), "")
        if replaces and any(_real(path).startswith(inside) for path in given):
            raise OptionError(f"{name} {output}: the folder has inputs in it. {_OTHER}")
    call = _Call(outputs, _call.get())
    mark = _call.set(call)
    try:
        yield call.read
    finally:
        _call.reset(mark)


_real = os.path.realpath
_OTHER = "Write another one."


def _bare(path: str) -> str:
    """A path without scheme and without the table of a database."""
    path = os.path.expanduser(path.removeprefix("file://"))
    return path if os.path.exists(path) else path.partition("::")[0]


def reads(paths: Paths) -> None:
    """Report files that are about to be read.

    Raises:
        OptionError: one of them is an output of the call.
    """
    call = _call.get()
    while call is not None:
        call.read.append(paths)
        for output, name in call.outputs.items():
            refuse(output, paths, name)
        call = call.outer


def writes(path: str | os.PathLike[str]) -> None:
    """Report a file that is about to be written.

    Raises:
        OptionError: the call has read it.
    """
    call = _call.get()
    if call is not None and os.path.isfile(path):
        while call is not None:
            for paths in call.read:
                refuse(path, paths)
            call = call.outer


def refuse(path: str | os.PathLike[str], files: Paths, name: str = "") -> None:
    """Refuse a path that is one of the files.

    Raises:
        OptionError: the path is one of them.
    """
    there = os.path.exists(path)
    for file in files:
        try:
            same = os.path.samefile(path, file) if there else _real(path) == _real(file)
        except (OSError, ValueError):
            continue
        if same:
            also = "" if os.fspath(file) == os.fspath(path) else f" {os.fspath(file)!r}"
            raise OptionError(
                f"{f'{name} ' if name else ''}{os.fspath(path)}: this is the input{also}, and it"
                f" would be replaced. {_OTHER}",
                code="input_overwritten",
                option=name,
            )


_INPUTS = ("predictions", "ground_truths", "datums", "run", "qrels", "data", "references", "cache")
"""Parameters that take paths, folders and globs when they are passed by name."""


def guarding(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse an argument ``out`` that is an input, and list the inputs in the result.

    Positional arguments and those of :data:`_INPUTS` are inputs; other strings only if they name
    files. A result with an attribute ``inputs`` gets the files that were read.
    """

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        outputs = dict.fromkeys(_listed([named.get("out")]), "out")
        given = _listed([*args, *map(named.get, _INPUTS)])
        others = [value for name, value in named.items() if name != "out"]
        given += filter(os.path.isfile, _listed(others) if outputs else ())
        with protecting(outputs, given) as read:
            result: Any = function(*args, **named)
        if hasattr(result, "inputs"):
            result.inputs = tuple(one for paths in read for one in paths)
        return result  # type: ignore[no-any-return]

    return call


def _listed(values: Iterable[Any]) -> list[str]:
    """List the paths in values and in lists of them."""
    listed = [
        one for value in values for one in (value if isinstance(value, list | tuple) else [value])
    ]
    return [os.fspath(one) for one in listed if isinstance(one, str | os.PathLike)]
