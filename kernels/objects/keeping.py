"""The file of a kernel written where Numba has just kept, or read, its compiled code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .entry import contract_of, image_of
from .place import folder_of, processor


def keep(kernel: str, folder: Path, load: Callable[[], Any], arguments: Any, context: Any) -> None:
    """Write a kernel's file for some types, unless it is there.

    Nothing is written, and Numba runs the kernel in every process, where the code does what only
    Numba can run, this version of Numba keeps something else, or the folder cannot be written.

    Args:
        kernel: module and name of the function.
        folder: of all compiled kernels.
        load: reads what Numba has kept: the library, the function's description, and more.
        arguments: Numba's types.
        context: Numba's target context.
    """
    # What is asked of Numba here is no public interface: a version may answer in any other way,
    # and the kernel has run already.
    with suppress(Exception):
        kept = load()
        if kept is None:
            return
        library, described, *_ = kept
        _, form, code = library
        if form != "object" or tuple(described.argtypes) != tuple(arguments):
            return
        contract = contract_of(kernel, str(processor()), described.argtypes, described.restype)
        place = folder_of(kernel, folder)
        if not (place / contract.file_name).exists():
            image_of(contract, code[0], described, context).written(place)
