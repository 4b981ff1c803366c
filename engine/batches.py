"""Tables that grow by batches, in memory or, above a limit, on disk."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from .schemas.errors import InputError, ScratchError
from .schemas.wording import option


class Batch(NamedTuple):
    """One batch of one table.

    Attributes:
        first: offset of its datum numbers among all batches; 0 if its datums have ids.
    """

    rows: pl.DataFrame | pl.LazyFrame
    first: int


class Batches:
    """Tables by name, each a list of appended batches.

    Args:
        room: memory limit in bytes, above which batches are written to files; None for no limit.
        folder: for these files; by default the system's temporary folder.

    Attributes:
        datums: number of datums in batches that number them from 0.
    """

    def __init__(self, room: int | None = None, folder: str | None = None) -> None:
        self._room, self._folder = room, folder
        self._begin()

    def clear(self) -> None:
        """Forget all batches, and delete their files."""
        self._delete()
        self._begin()

    def _begin(self) -> None:
        self._tables: dict[str, list[Batch]] = {}
        self._columns: dict[str, dict[str, pl.DataType]] = {}
        self._held = self._written = self.datums = 0
        self._files = ExitStack()
        self._delete = weakref.finalize(self, self._files.close)
        self._home: Path | None = None

    def append(
        self, tables: Mapping[str, pl.DataFrame], *, datums: int = 0, own: Collection[str] = ()
    ) -> None:
        """Append a batch of some tables.

        Args:
            tables: by name; each table has the same columns in every batch that has rows.
            datums: datums of this batch, numbered from 0 in column ``datum_id``.

        Raises:
            InputError: a table has other columns than in earlier batches; no table is changed then.
            ScratchError: the disk refuses a file.
        """
        for name, rows in tables.items():
            self._same_columns(name, rows)
        for name, rows in tables.items():
            first = 0 if name in own else self.datums
            self._tables.setdefault(name, []).append(Batch(rows, first))
            if rows.height:
                self._columns.setdefault(name, dict(rows.schema))
            self._held += int(rows.estimated_size())
        self.datums += datums
        if self._room is not None and self._held > self._room:
            self._write()

    def extend(self, other: Batches, own: Collection[str] = ()) -> None:
        """Append all batches of another instance; its datum numbers continue after these.

        Raises:
            InputError: a table has other columns there.
        """
        for name, columns in other._columns.items():
            self._same_columns(name, pl.DataFrame(schema=columns), rows=True)
        for name, batches in other._tables.items():
            shift = 0 if name in own else self.datums
            for rows, first in list(batches):
                held = rows if isinstance(rows, pl.DataFrame) else rows.collect()
                self._tables.setdefault(name, []).append(Batch(held, first + shift))
                self._held += int(held.estimated_size())
            if name in other._columns:
                self._columns.setdefault(name, other._columns[name])
            if self._room is not None and self._held > self._room:
                self._write()
        self.datums += other.datums

    @property
    def limits(self) -> tuple[int | None, str | None]:
        return self._room, self._folder

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __getstate__(self) -> dict[str, Any]:
        """Rows in files go along: the process that reads this may not see them."""
        tables = {
            name: [
                Batch(rows if isinstance(rows, pl.DataFrame) else rows.collect(), first)
                for rows, first in batches
            ]
            for name, batches in self._tables.items()
        }
        return {"room": self._room, "folder": self._folder, "tables": tables,
                "columns": self._columns, "datums": self.datums}  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        Batches.__init__(self, state["room"], state["folder"])
        self._tables, self._columns = state["tables"], state["columns"]
        self.datums = state["datums"]
        self._held = sum(
            int(rows.estimated_size())
            for batches in self._tables.values()
            for rows, _ in batches
            if isinstance(rows, pl.DataFrame)
        )

    def scan(self, name: str) -> pl.LazyFrame:
        """Scan all rows of a table; batches in memory are merged into one.

        Raises:
            KeyError: no batch had it.
        """
        batches = self._tables[name]
        held = [one for one in batches if isinstance(one.rows, pl.DataFrame)]
        if len(held) > 1 and len(held) == len(batches):
            rows = _joined(batches).collect()
            self._tables[name] = batches = [Batch(rows, 0)]
        return _joined(batches)

    def table(self, name: str) -> pl.DataFrame:
        """Return all rows of a table, in memory.

        Raises:
            KeyError: no batch had it.
        """
        return self.scan(name).collect()

    def _same_columns(self, name: str, found: pl.DataFrame, *, rows: bool = False) -> None:
        known = self._columns.get(name)
        if known is None or not (found.height or rows):
            return
        told = [
            f"{word} {', '.join(map(repr, names))}"
            for word, names in (
                ("lack", [one for one in known if one not in found.columns]),
                ("have also", [one for one in found.columns if one not in known]),
            )
            if names
        ]
        if told:
            raise InputError(
                f"{name.replace('_', ' ')}: these rows {' and '.join(told)}, unlike those of"
                " earlier batches. Give the same columns in every batch."
            )

    def _write(self) -> None:
        """Write the batches in memory to one file per table."""
        home = self._scratch()
        for name, batches in self._tables.items():
            held = [one for one in batches if isinstance(one.rows, pl.DataFrame)]
            if not held:
                continue
            path = home / f"{name}-{self._written}.arrow"
            try:
                _joined(held).collect().write_ipc(path)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise ScratchError(
                    f"{home}: batches of {name} cannot be written: {error}. Name a"
                    f" folder on a larger disk: {option('scratch', '/mnt/large')}."
                ) from error
            rest = [one for one in batches if not isinstance(one.rows, pl.DataFrame)]
            # Batches are in order: those in files are older.
            self._tables[name] = [*rest, Batch(pl.scan_ipc(path), 0)]
        self._written += 1
        self._held = 0

    def _scratch(self) -> Path:
        if self._home is None:
            from .outofcore.scratch import scratch_folder

            self._home = self._files.enter_context(scratch_folder(self._folder, self._held))
        return self._home


def _joined(batches: list[Batch]) -> pl.LazyFrame:
    """Batches as one table, datums numbered through."""
    return pl.concat(
        [
            rows.lazy().with_columns(pl.col("^datum_id$") + first) if first else rows.lazy()
            for rows, first in batches
        ],
        how="diagonal_relaxed",
    )
