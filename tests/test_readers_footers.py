"""Parquet files are refused by name if the footer is damaged or contradicts the pages."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

import evalengine as ee
from evalengine.ingest.sources.formats import refuse_miscounted
from evalengine.schemas.errors import ReadError

EXAMPLE = Path(__file__).parents[1] / "examples" / "detection"
SIDES = [EXAMPLE / f"{side}.parquet" for side in ("predictions", "groundtruths")]
Place = tuple[int, ...]  # numbers of fields and list positions, from the footer down to an integer


def of_file(at: Place) -> bool:
    return at == (3,)


def of_groups(at: Place) -> bool:
    return len(at) == 3 and (at[0], at[2]) == (4, 3)


def of_both(at: Place) -> bool:
    return of_file(at) or of_groups(at)


def of_values(at: Place) -> bool:
    return len(at) == 6 and (at[0], at[2], *at[4:]) == (4, 1, 3, 5)


def of_all(at: Place) -> bool:
    return of_both(at) or of_values(at)


class Footer:
    """Positions of the integers in a footer, by a separate reader of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.start = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
        self.at = self.start

    def integers(self) -> Iterator[tuple[Place, int, int, int]]:
        """Yield position, first byte, end and value of each integer."""
        self.at = self.start
        yield from self._struct(())

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _struct(self, place: Place) -> Iterator[tuple[Place, int, int, int]]:
        field = 0
        while head := self.data[self.at]:
            self.at += 1
            field = field + (head >> 4) if head >> 4 else self._varint() // 2
            if head & 15 > 2:
                yield from self._value(head & 15, (*place, field))
        self.at += 1

    def _value(self, kind: int, place: Place) -> Iterator[tuple[Place, int, int, int]]:
        if kind in (4, 5, 6):
            begun = self.at
            number = self._varint()
            yield place, begun, self.at, (number >> 1) ^ -(number & 1)
        elif kind == 8:
            length = self._varint()
            self.at += length
        elif kind == 9:
            head = self.data[self.at]
            self.at += 1
            length = self._varint() if head >> 4 == 15 else head >> 4
            for item in range(length):
                yield from self._value(head & 15, (*place, item))
        elif kind == 12:
            yield from self._struct(place)
        else:
            self.at += {1: 1, 2: 1, 3: 1, 7: 8}[kind]


def with_false_footer(
    data: bytes, which: Callable[[Place], bool], change: Callable[[int], int]
) -> bytes:
    """Replace integers in the footer of a file by others of the same length."""
    made = bytearray(data)
    for place, begun, behind, value in Footer(data).integers():
        if which(place):
            number = change(value) << 1
            made[begun:behind] = bytes(
                (number >> 7 * digit & 127) | (128 if begun + digit + 1 < behind else 0)
                for digit in range(behind - begun)
            )
    return bytes(made)


@pytest.fixture(params=["one group", "many groups", "another writer"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write the example's predictions in the layouts of three writers."""
    frame, path = pl.read_parquet(SIDES[0]), tmp_path / "t.parquet"
    if request.param == "another writer":
        pq.write_table(frame.to_arrow(), path, row_group_size=100)
    else:
        frame.write_parquet(path, row_group_size=100 if "many" in request.param else None)
    return path


@pytest.mark.parametrize(
    "change", [lambda count: count - 20, lambda count: count + 20, lambda _: 0]
)
@pytest.mark.parametrize("which", [of_file, of_groups, of_both, of_values, of_all])
def test_counts_that_differ_are_refused(
    which: Callable[[Place], bool], change: Callable[[int], int], table: Path
) -> None:
    """Polars reads some of these files partly, some as empty, and panics on others."""
    table.write_bytes(with_false_footer(table.read_bytes(), which, change))
    with refused("file_damaged", ReadError, match="its footer"):
        ee.score(str(table), str(SIDES[1]))


def test_the_message_has_both_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(with_false_footer(SIDES[0].read_bytes(), of_all, lambda count: count - 40))
    with refused("file_damaged", ReadError, match=r"403 rows, .* 443\."):
        ee.check(str(path), str(SIDES[1]))


@pytest.mark.parametrize("size", [4, 16, 64, 256])
def test_files_with_zeroed_regions_never_give_another_table(size: int, table: Path) -> None:
    """Either a reader refuses the file, or the zeroed bytes did not matter."""
    data, good = table.read_bytes(), pl.read_parquet(table)
    refused = 0
    start = Footer(data).start
    for begun in range(start, min(len(data) - 8, start + 1500), max(size // 2, 7)):
        made = bytearray(data)
        behind = min(begun + size, len(data) - 8)
        made[begun:behind] = bytes(behind - begun)
        table.write_bytes(made)
        try:
            refuse_miscounted(str(table))
        except ReadError:
            refused += 1
            continue
        try:
            result = pl.read_parquet(table)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            continue
        assert result.equals(good), begun
    assert refused > 4


def test_intact_files_of_any_layout_pass(tmp_path: Path) -> None:
    path, rows = tmp_path / "t.parquet", 600
    table = pa.table(
        {
            "number": range(rows),
            "text": [None if row % 7 == 0 else "x" * (row % 50) for row in range(rows)],
            "list": [[1.0] * (row % 4) for row in range(rows)],
            "struct": [{"x": row, "y": {"z": [row]}} for row in range(rows)],
            "map": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
            "coded": pa.array(["u", "v"] * (rows // 2)).dictionary_encode(),
            "nothing": pa.nulls(rows),
            "flag": [True] * rows,
        }
    )
    for page, coded, size, group, index in product(
        ("1.0", "2.0"), (True, False), (200, 1 << 20), (100, rows), (True, False)
    ):
        pq.write_table(
            table, path, data_page_version=page, use_dictionary=coded, data_page_size=size,
            row_group_size=group, write_page_index=index, write_batch_size=64,
        )  # fmt: skip
        refuse_miscounted(str(path))
    nested = ["list"], ["struct", "map"], ["nothing"]
    for part in (table.slice(0, 0), pa.table({}), *(table.select(names) for names in nested)):
        pq.write_table(part, path)
        refuse_miscounted(str(path))
    frame = pl.from_arrow(table.drop(["map"]))
    assert isinstance(frame, pl.DataFrame)
    for group, size, statistics in product((None, 100), (None, 1000), (True, False, "full")):
        frame.write_parquet(path, row_group_size=group, data_page_size=size, statistics=statistics)
        refuse_miscounted(str(path))
    pl.DataFrame(schema={"a": pl.Int64}).write_parquet(path)
    refuse_miscounted(str(path))
