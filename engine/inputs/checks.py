"""One pass over one side: a single query of aggregates; rows are looked up only if it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from evalengine.schemas.tables import Table

from .boxes import CORNER_NAMES, LENGTH
from .distinct import has_repeats
from .problems import Note, Problem, count_of

_BOX = (*CORNER_NAMES, "box_width", "box_height")
_CONTEXT = ("datum_id", "label_value", "score")
_SHOWN = 3


def check_side(
    frame: pl.DataFrame,
    table: Table,
    recognised: Mapping[str, str] | None = None,
    *,
    filtered: bool = False,
) -> tuple[list[Problem], list[Note]]:
    """Every value of one side held against the contract.

    Args:
        frame: canonical columns of canonical dtype; those the contract does not know are
            left alone.
        table: the contract.
        recognised: own name to canonical name, for messages.
        filtered: whether rows were removed before, so that row numbers are not the source's.

    Returns:
        What stops the run, and what is only worth telling.
    """
    check = _Check(frame, table, recognised or {}, filtered=filtered)
    if frame.height:
        check.run()
    return check.problems, check.notes


class _Check:
    def __init__(
        self, frame: pl.DataFrame, table: Table, recognised: Mapping[str, str], *, filtered: bool
    ) -> None:
        self.counted = "rows that where= keeps" if filtered else "rows"
        self.frame = frame
        self.side = table.side
        self.key = table.key
        self.columns = [column for column in table.columns if column.name in frame.columns]
        self.origins: dict[str, list[str]] = {}
        for mine, canonical in recognised.items():
            for name in canonical.split(", "):
                self.origins.setdefault(name, []).append(mine)
        self.problems: list[Problem] = []
        self.notes: list[Note] = []

    def run(self) -> None:
        seen = self._screen()
        self._lengths(seen)
        self._nulls()
        self._not_finite(seen)
        self._flags(seen)
        self._too_low(seen)
        self._inverted(seen)
        self._repeated()

    def _screen(self) -> dict[str, Any]:
        """The one query: cheap aggregates that are conspicuous where anything is wrong.

        A sum is NaN or infinite if any value is (a finite column may overflow; the look at the
        rows then finds nothing).
        """
        wanted: list[pl.Expr] = []
        for column in self.columns:
            name, values = column.name, pl.col(column.name)
            dtype = self.frame.schema[name]
            if dtype.is_float():
                wanted.append(values.sum().alias(f"sum {name}"))
            if column.low is not None:
                wanted.append((values < column.low).any().alias(f"low {name}"))
            if column.kind == "flag" and dtype != pl.Boolean:
                wanted.append(((values != 0) & (values != 1)).any().alias(f"flag {name}"))
        if self._has_boxes():
            flat = [
                (pl.col(high) <= pl.col(low)).sum().alias(f"flat {low}")
                for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
            ]
            wanted += flat
        if LENGTH in self.frame.columns:
            wanted.append((pl.col(LENGTH) != 4).any().alias("length"))
        return self.frame.select(wanted).row(0, named=True) if wanted else {}

    def _has_boxes(self) -> bool:
        return all(name in self.frame.columns for name in CORNER_NAMES)

    def _lengths(self, seen: Mapping[str, Any]) -> None:
        if not seen.get("length"):
            return
        wrong = pl.col(LENGTH) != 4
        n = self._count(wrong)
        own = self.origins.get("xmin", ["bbox"])[0]
        self._add(
            "bbox", n,
            f"column {own!r}: {count_of(n, 'list')} without exactly four numbers,"
            f" {self._rows(wrong, [LENGTH])}. A box is four numbers.",
        )  # fmt: skip

    def _nulls(self) -> None:
        holes = [
            column.name
            for column in self.columns
            if not column.nullable and self.frame[column.name].null_count()
        ]
        for names in self._grouped(holes):
            where = pl.any_horizontal(pl.col(name).is_null() for name in names)
            if LENGTH in self.frame.columns and names[0] in _BOX:
                where &= pl.col(LENGTH).is_null() | (pl.col(LENGTH) == 4)
            n = self._count(where)
            if n == 0:
                continue
            has = "has" if len(names) == 1 else "have"
            self._add(
                names[0], n,
                f"{self._named(names)} {has} {count_of(n, 'null')}, {self._rows(where, names)}."
                " Fill or remove these rows, e.g. with where="
                f'"{self._own(names[0])} IS NOT NULL".',
            )  # fmt: skip

    def _not_finite(self, seen: Mapping[str, Any]) -> None:
        suspicious = [
            column.name for column in self.columns if not _finite(seen.get(f"sum {column.name}"))
        ]
        for names in self._grouped(suspicious):
            where = pl.any_horizontal(~pl.col(name).is_finite() for name in names)
            n = self._count(where)
            if n == 0:
                continue
            bad = [name for name in names if self._count(~pl.col(name).is_finite())]
            self._add(
                bad[0], n,
                f"{self._named(bad)}: {count_of(n, 'row')} with NaN or infinity,"
                f" {self._rows(where, bad)}. Repair or remove these rows.",
            )  # fmt: skip

    def _flags(self, seen: Mapping[str, Any]) -> None:
        for column in self.columns:
            if seen.get(f"flag {column.name}"):
                where = (pl.col(column.name) != 0) & (pl.col(column.name) != 1)
                n = self._count(where)
                self._add(
                    column.name, n,
                    f"{self._named([column.name])}: {count_of(n, 'row')} with a value other than"
                    f" 0 and 1, {self._rows(where, [column.name])}. Write 0 or 1.",
                )  # fmt: skip

    def _too_low(self, seen: Mapping[str, Any]) -> None:
        for column in self.columns:
            if seen.get(f"low {column.name}"):
                where = pl.col(column.name) < column.low
                n = self._count(where)
                self._add(
                    column.name, n,
                    f"{self._named([column.name])}: {count_of(n, 'row')} below {column.low:g},"
                    f" {self._rows(where, [column.name])}. Repair or remove these rows"
                    + (" (are the boxes corners rather than extents?)." if column.name in _BOX
                       else "."),
                )  # fmt: skip

    def _inverted(self, seen: Mapping[str, Any]) -> None:
        """Inverted boxes are refused; those of zero area are legal and reported."""
        if not (seen.get("flat xmin") or seen.get("flat ymin")):
            return
        # Polars sorts NaN last, so NaN corners would look inverted; they are told elsewhere.
        wrong = pl.any_horizontal(
            (pl.col(far) < pl.col(near)) & pl.col(near).is_finite()
            for near, far in (("xmin", "xmax"), ("ymin", "ymax"))
        )
        n = self._count(wrong)
        negative = {problem.column for problem in self.problems} & {"box_width", "box_height"}
        if n and not negative:
            self._add(
                "xmin", n,
                f"{self._named(CORNER_NAMES)}: {count_of(n, 'inverted box', 'inverted boxes')}"
                f" (xmax < xmin or ymax < ymin), {self._rows(wrong, CORNER_NAMES)}. Swap the"
                " corners; if the last two numbers are width and height, name them so:"
                ' columns={"...": "box_width", "...": "box_height"}, or box_format="xywh" for'
                " lists.",
            )  # fmt: skip
        flat = (pl.col("xmax") == pl.col("xmin")) | (pl.col("ymax") == pl.col("ymin"))
        zero = self._count(flat & ~wrong)
        if zero:
            boxes = count_of(zero, "box has", "boxes have")
            self.notes.append(
                Note("zero_area_boxes", f"{self.side}: {boxes} zero area; they match nothing.",
                     zero)
            )  # fmt: skip

    def _repeated(self) -> None:
        for column in self.columns:
            if column.unique and has_repeats(self.frame[column.name]):
                known = pl.col(column.name).is_not_null()
                self._repeats([column.name], pl.col(column.name).is_duplicated() & known)
        key = [name for name in self.key if name in self.frame.columns]
        if key and self.frame.select(key).is_duplicated().any():
            self._repeats(key, pl.struct(key).is_duplicated())

    def _repeats(self, names: list[str], where: pl.Expr) -> None:
        n = self._count(where)
        if n == 0:
            return
        values = self.frame.filter(where).select(names).n_unique()
        self._add(
            names[-1], n,
            f"{self._named(names)}: {count_of(values, 'value')} standing in more than one row"
            f" ({count_of(n, 'row')}), {self._rows(where, names)}. Each may stand once; was a file"
            " read twice?",
        )  # fmt: skip

    def _grouped(self, names: list[str]) -> list[list[str]]:
        """Box columns are spoken of together, others one by one."""
        box = [name for name in names if name in _BOX]
        return [[name] for name in names if name not in _BOX] + ([box] if box else [])

    def _own(self, name: str) -> str:
        return self.origins.get(name, [name])[0]

    def _named(self, names: list[str] | tuple[str, ...]) -> str:
        own = list(dict.fromkeys(mine for name in names for mine in self.origins.get(name, [])))
        seen = f" (from {', '.join(map(repr, own))})" if own else ""
        word = "column" if len(names) == 1 else "columns"
        return f"{word} {', '.join(map(repr, names))}{seen}"

    def _count(self, where: pl.Expr) -> int:
        return int(self.frame.select(where.sum()).item())

    def _rows(self, where: pl.Expr, names: list[str] | tuple[str, ...]) -> str:
        """``first rows (from 0): row 3 (datum_id=7, score=nan); ...``"""
        shown = [name for name in _CONTEXT if name in self.frame.columns and name not in names]
        found = (
            self.frame.lazy()
            .with_row_index("__row")
            .filter(where)
            .select("__row", *shown, *names)
            .head(_SHOWN)
            .collect()
        )
        rows = [
            f"row {row.pop('__row')} ("
            + ", ".join(f"{'length' if key == LENGTH else key}={value!r}"
                        for key, value in row.items())
            + ")"
            for row in found.iter_rows(named=True)
        ]  # fmt: skip
        return f"first ({self.counted} count from 0): {'; '.join(rows)}"

    def _add(self, column: str, count: int, message: str) -> None:
        self.problems.append(Problem(self.side, column, message, count))


def _finite(total: float | None) -> bool:
    return total is None or total - total == 0


def finish(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Checked columns in their last dtype: flags become Boolean, helpers go."""
    flags = [
        pl.col(column.name).cast(pl.Boolean)
        for column in table.columns
        if column.kind == "flag"
        and column.name in frame.columns
        and frame.schema[column.name] != pl.Boolean
    ]
    if flags:
        frame = frame.with_columns(flags)
    return frame.drop(LENGTH) if LENGTH in frame.columns else frame
