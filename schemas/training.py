"""The option ``training``: paths, or a table in memory."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from .errors import OptionError
from .wording import option


class HeldTable:
    """A table in memory, as an option value.

    Copies that were pickled or read from a file only have the name.

    Args:
        name: name of its type.
        table: the table, or None in a copy.
        digest: digest of its content, set once it is read.
    """

    def __init__(self, name: str, table: Any = None, digest: str = "") -> None:
        self.name = name
        self._table = table
        self.digest = digest

    @property
    def table(self) -> Any:
        """The table.

        Raises:
            OptionError: this is a copy.
        """
        if self._table is None:
            raise OptionError(
                f"{option('training')}: the table ({self.name}) did not come along with the"
                " options; give it again, or write it to a file and give its path."
            )
        return self._table

    def __repr__(self) -> str:
        return f"HeldTable({self.name!r})"

    def __str__(self) -> str:
        return f"{self.name}, sha256 {self.digest[:12]}" if self.digest else self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeldTable):
            return False
        if self.digest or other.digest:  # a name says no more than how many rows there are
            return self.digest == other.digest
        return self.name == other.name

    def __hash__(self) -> int:
        return hash(HeldTable)  # digests come later, and equal ones may have other names

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldTable, (self.name, None, self.digest)


def as_training(given: Any) -> str | tuple[str, ...] | HeldTable:
    """Normalise the option ``training``.

    Args:
        given: a path, a glob, paths, or any table that ``score`` takes.
    """
    if isinstance(given, HeldTable):
        return given
    if isinstance(given, (str, PathLike)):
        return fspath(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, str) for one in given):
        return given[0] if len(given) == 1 else tuple(given)
    if isinstance(given, Mapping) and "object" in given and {*given} <= {"object", "sha256"}:
        return HeldTable(str(given["object"]), digest=str(given.get("sha256", "")))
    kind = type(given)
    rows = (
        f" of {len(given):,} rows"
        if hasattr(given, "columns") and hasattr(given, "__len__")
        else ""
    )
    return HeldTable(f"{kind.__module__.split('.')[0]}.{kind.__qualname__}{rows}", given)
