"""Large files read in batches, where what a run needs of the rows is small beside them.

Only tables that nothing is asked of but their columns are read so: whatever is wrong with a row is
left to the reading of whole tables, which names it.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from evalengine.readers.tables import READ_FAILURES
from evalengine.schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from evalengine.schemas.options import Options

from .collecting import Prepared, Side, rows_of
from .frames import Frames, assemble

_FORMATS = ("parquet", "ipc")  # what is read fast enough for more than one go at it

_SHORT = (pl.Int8, pl.UInt8, pl.Int16, pl.UInt16, pl.Int32, pl.UInt32, pl.Boolean)


class Batches:
    """One table's rows, batch by batch.

    Args:
        frame: its canonical columns.
        own: the same with short integers and flags in their own dtypes.

    Attributes:
        rows: how many there are.
        schema: canonical columns and their dtypes.
    """

    def __init__(self, frame: pl.LazyFrame, own: pl.LazyFrame) -> None:
        self._frame = own
        self.schema = dict(frame.collect_schema())
        self.rows = int(frame.select(pl.len()).collect().item())

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The rows in order, ``rows`` of them; nothing of a batch stays unless it is held.

        Raises:
            OSError: files have more or fewer rows by now than they told of at first.
        """
        seen = 0
        # The engine named is the one that reads in batches, whatever the user's setting.
        for batch in self._frame.collect_batches(maintain_order=True, engine="streaming"):
            seen += batch.height
            if seen > self.rows:
                raise OSError(f"more rows than the {self.rows:,} of before")
            yield batch
        if seen < self.rows:
            raise OSError(f"{seen:,} rows where there were {self.rows:,} before")


def in_batches(
    ready: Prepared, options: Options, least: int, *, sliced: bool = False
) -> dict[str, Batches] | None:
    """Tables that can be read in batches, by role; None where they cannot, or are small.

    Args:
        ready: as :func:`frames.prepare` gives it.
        options: those of the run.
        least: rows that one of them must have.
        sliced: whether slice columns may be read beside those of the contract.
    """
    asked = (options.where, options.by and not sliced, options.label_map, options.score_columns)
    roles = set(ready.sides)
    if any(asked) or roles not in ({TABLE}, {PREDICTIONS, GROUND_TRUTHS}):
        return None
    for side in ready.sides.values():
        naming, source = side.naming, side.source
        if source.format not in _FORMATS or not source.files or naming.problems or naming.wide:
            return None
    try:
        found = {
            role: Batches(
                rows_of(role, side, ready.where, ready.plan),
                _own(side, ready.plan.extra.get(role, [])),
            )
            for role, side in ready.sides.items()
        }
    except READ_FAILURES:
        return None  # reading whole tables says what is wrong
    return found if max(table.rows for table in found.values()) >= least else None


def _own(side: Side, extra: list[pl.Expr]) -> pl.LazyFrame:
    """A table's columns; short integers and flags as they are: widening takes time.

    Args:
        side: the table.
        extra: slice columns that are read beside those of its contract.
    """
    columns = [*extra]
    for name, expression in side.naming.exprs.items():
        roots = expression.meta.root_names()
        short = len(roots) == 1 and side.schema[roots[0]] in _SHORT
        columns.append(pl.col(roots[0]).alias(name) if short else expression)
    return side.source.frame.select(columns)


def told_by(
    ready: Prepared, batches: dict[str, Batches], few: dict[str, dict[str, list[object]]],
    options: Options,
) -> Frames:  # fmt: skip
    """Checked frames of a few rows, for what tables say beside them: notes, labels, dtypes.

    Args:
        ready: as :func:`frames.prepare` gives it.
        batches: the tables.
        few: role to values of its columns: every label there is at least once.
        options: those of the run.
    """
    frames = {
        role: pl.DataFrame(columns, schema=batches[role].schema, strict=False)
        for role, columns in few.items()
    }
    return assemble(ready, frames, {}, options)
