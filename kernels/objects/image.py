"""The file of one compiled kernel: machine code, what it refers to, and what it takes and returns.

A file is only read where its checksum holds and it was made for this very kernel, these types and
this kind of processor.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..folder import Damaged, put_whole, read_whole

Array = np.ndarray[Any, Any]

_MAGIC = b"evalengine compiled kernel 1\n"
SUFFIX = ".code"


class Unusable(Exception):
    """Compiled code that is not known to run here as it does where Numba runs it."""


class Refused(Unusable):
    """This process, or the system it runs on, cannot run what others may."""


@dataclass(frozen=True)
class Value:
    """An argument or a result.

    Args:
        kind: NumPy's name of the dtype, in this machine's byte order: ``int64``, ``bool``, ...
        ndim: dimensions of a C-contiguous, aligned array; None of a scalar.
        writable: whether an array can be written to.
    """

    kind: str
    ndim: int | None = None
    writable: bool = True


@dataclass(frozen=True)
class Contract:
    """What a file was made for.

    Args:
        kernel: module and name of the function.
        processor: what tells one kind of processor from another.
        arguments: in order.
        results: in order.
        several: whether the results come as a tuple.
    """

    kernel: str
    processor: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    several: bool

    @property
    def file_name(self) -> str:
        """The name of the file, which the arguments' types decide."""
        text = json.dumps([asdict(one) for one in self.arguments])
        return hashlib.sha256(text.encode()).hexdigest()[:24] + SUFFIX


@dataclass(frozen=True)
class Image:
    """Machine code that may be put anywhere in memory.

    Args:
        contract: what it was made for.
        entry: offset of the function to call.
        release: offset of what gives memory back: the destructor of a capsule.
        code: instructions and constants, uint8 [n].
        places: int64 [m, 2], offsets of 64-bit words that hold an address, and what is added to it.
        targets: int64 [m], what the address is of: -1 for this code, else an index of ``symbols``.
        symbols: names outside this code.
    """

    contract: Contract
    entry: int
    release: int
    code: Array
    places: Array
    targets: Array
    symbols: tuple[str, ...]

    def written(self, folder: Path) -> None:
        """Put the file into a folder, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        head = {
            "contract": asdict(self.contract),
            "entry": self.entry,
            "release": self.release,
            "symbols": self.symbols,
            "sizes": [self.code.size, self.targets.size],
        }
        text = json.dumps(head).encode()
        body = b"".join(
            [
                len(text).to_bytes(8, "little"),
                text,
                self.places.astype("<i8").tobytes(),
                self.targets.astype("<i8").tobytes(),
                self.code.tobytes(),
            ]
        )
        put_whole(folder / self.contract.file_name, _MAGIC + body)


def _values(told: list[dict[str, Any]]) -> tuple[Value, ...]:
    return tuple(Value(**one) for one in told)


def read_image(path: Path) -> Image:
    """The image that a file holds.

    Raises:
        OSError: the file cannot be read.
        Unusable: it is not whole, or none of ours.
    """
    try:
        data = read_whole(path)
    except Damaged as error:
        raise Unusable(f"{path.name} is not whole") from error
    if not data.startswith(_MAGIC):
        raise Unusable(f"{path.name} is of another kind")
    body = data[len(_MAGIC) :]
    try:
        at = 8 + int.from_bytes(body[:8], "little")
        head = json.loads(body[8:at])
        told = head["contract"]
        contract = Contract(
            told["kernel"],
            told["processor"],
            _values(told["arguments"]),
            _values(told["results"]),
            told["several"],
        )
        n_code, n_places = head["sizes"]
        words = np.frombuffer(body, "<i8", 3 * n_places, at)
        code = np.frombuffer(body, np.uint8, n_code, at + 24 * n_places)
        places = words[: 2 * n_places].reshape(-1, 2)
        targets = words[2 * n_places :]
        image = Image(
            contract, head["entry"], head["release"], code, places, targets, tuple(head["symbols"])
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise Unusable(f"{path.name} is of another kind") from error
    if not _within(image):
        raise Unusable(f"{path.name} refers to places that it does not have")
    return image


def _within(image: Image) -> bool:
    """Whether all offsets are of the code itself, and all targets of symbols that there are."""
    size, at = image.code.size, image.places[:, 0]
    return (
        all(type(one) is int and 0 <= one < size for one in (image.entry, image.release))
        and bool(((at >= 0) & (at <= size - 8)).all())
        and bool(((image.targets >= -1) & (image.targets < len(image.symbols))).all())
    )
