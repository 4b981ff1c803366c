"""JSON arrays read as columns, compared with Python's json."""

from __future__ import annotations

import itertools
import json
import math
import random
import struct
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.ingest.sources.json_rows import NotFlat, scan
from evalengine.schemas.tuning import tuned

FIELDS = ("image_id", "score", "bbox", "segmentation", "iscrowd", "name")

digits = st.integers(0, 10**25).map(str)
decimal = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**53), 2**53).map(str),
    st.builds(lambda a, b: f"{a}.{b}", digits, digits),
    st.builds(lambda a, b, e: f"-{a}.{b}e{e}", digits, digits, st.integers(-360, 250)),
    st.sampled_from(["-0", "-0.0", "0e9", "1e23", "5e-324", "9007199254740993.0"]),
    st.sampled_from(["2.4703282292062327e-324", "2.4703282292062328e-324"]),
    st.sampled_from(["2.2250738585072011e-308", "1.7976931348623157e308"]),
)
space = st.sampled_from(["", "", " ", "\n", "\r\n\t"])
unread = st.sampled_from(
    ['"}, {"', '[{"a": [1, "],["]}, null]', '{"b": {"}": true}}', "1e5", '"\\u00e9\\"\\\\"', "[]"]
)
values = {
    "image_id": st.integers(-(2**63) + 1, 2**63 - 1).map(str),
    "score": decimal,
    "bbox": st.lists(decimal, max_size=5).map(lambda found: f"[{' , '.join(found)}]"),
    "segmentation": st.sampled_from(["[[1, 2.5]]", '{"size": [3, 3], "counts": "a}\\\\"}', "null"]),
    "iscrowd": st.sampled_from(["true", "false", "null"]),
    "name": st.text(st.characters(exclude_characters='\\"', exclude_categories=["Cs", "Cc"])).map(
        lambda text: f'"{text}"'
    ),
    "more": unread,
    "bbo": unread,
}


@st.composite
def arrays(draw: st.DrawFn) -> str:
    """Return objects with their keys in any order, some missing."""
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        keys = draw(st.lists(st.sampled_from([*values]), unique=True))
        fields = [f'{draw(space)}"{key}"{draw(space)}:{draw(values[key])}' for key in keys]
        rows.append("{" + ",".join(fields) + draw(space) + "}" + draw(space))
    return draw(space) + "[" + ",".join(rows) + "]" + draw(space)


def read(text: str, size: int = 1) -> pl.DataFrame:
    data = text.encode() + b" " * 2 * size
    with tuned(json_bytes=size):
        return pl.concat(scan(data, FIELDS, raw=["segmentation"]), how="vertical_relaxed")


def same(mine: Any, theirs: Any) -> bool:
    """Compare values, floats to the bit."""
    if isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, float):
        return struct.pack("d", mine) == struct.pack("d", float(theirs))
    return type(mine) is type(theirs) and bool(mine == theirs)


@given(arrays(), st.sampled_from([1, 8, 40]))
@settings(max_examples=150)
def test_values_are_those_of_json(text: str, size: int) -> None:
    rows = json.loads(text)
    if any(not math.isfinite(row.get("score") or 0) for row in rows):
        return
    result = read(text, size).to_dicts()
    assert len(result) == len(rows)
    for mine, theirs in zip(result, rows, strict=True):
        raw = mine.pop("segmentation")
        assert (raw is None) == ("segmentation" not in theirs)
        assert raw is None or json.loads(raw) == theirs["segmentation"]
        assert all(same(value, theirs.get(name)) for name, value in mine.items())


def is_number(text: str) -> bool:
    """Return whether Python's json reads a text as one finite number."""
    try:
        return math.isfinite(json.loads(text))
    except json.JSONDecodeError:
        return False


@pytest.mark.parametrize("separator", [",", ", "])
def test_lists_of_all_short_texts(separator: str) -> None:
    texts = ["".join(text) for n in range(1, 5) for text in itertools.product("-019.e", repeat=n)]
    numbers = [text for text in texts if is_number(text)]
    numbers += [f"{text}{digits}" for text in numbers for digits in ("012", "1234", ".5", "e1")]
    numbers = [text for text in numbers if is_number(text)]
    lists = [numbers[i : i + 7] for i in range(len(numbers))]
    rows = ",".join(f'{{"bbox":[{separator.join(texts)}]}}' for texts in lists)
    result = read(f"[{rows}]")["bbox"].to_list()
    assert all(
        same(mine, [*map(json.loads, texts)]) for mine, texts in zip(result, lists, strict=True)
    )
    for text in set(texts) - {*numbers}:
        with pytest.raises(NotFlat):
            read(f'[{{"bbox":[1.5{separator}{text}{separator}2,3.25,4.125]}}]')


CARRIES = """
9181562149233555661e45 8902005807077377309e-116 4454579526169554e192 3769026132092712509e-199
63954072540e-249 9007199254740991.5 9007199254740992.5 0.99999999999999994 1.9999999999999999
"""
"""Numbers that need the second 64 bits of the power, or that round up to a power of two."""


@pytest.mark.parametrize("before", ["", "7", "123", "98765432", "1234567890123"])
def test_fractions_of_every_length_and_carries(before: str) -> None:
    draw = random.Random(len(before))
    fractions = ["".join(draw.choices("0123456789", k=n)) for n in range(1, 26) for _ in range(20)]
    numbers = [f"{before or 0}.{one}" for one in fractions] + CARRIES.split()
    text = "[" + ",".join(f'{{"score":{one}}}' for one in numbers) + "]"
    assert all(map(same, read(text)["score"], map(float, numbers)))


OTHER = r"""
{"score": 1}
[{"score": 1}
[{"score": 1}, {"score": 2
[{"score": 1,}]
[{"score": 1} {"score": 2}]
[{]}
[{"score": 01}]
[{"score": 1.}]
[{"score": .5}]
[{"score": +1}]
[{"score": 1e}]
[{"score": NaN}]
[{"score": 1e999}]
[{"score": tru}]
[{"score" 1}]
[{"x": "\q"}]
[{"x": "\ud800"}]
[{"x": "	"}]
[{"x": [1, }]
[{"x": [1,]}]
[{"x": {"a"}}]
[{"x": "]
[{"x":[1]
[{"score": 1}] x
[{"score": 1, "score": 2}]
[{"sc\u006fre": 1}]
[{"score": "x"}, {"score": 1}]
[{"bbox": [1, null]}]
[{"bbox": [[1]]}]
[{"image_id": 9223372036854775808}]
[{"name": "a\n"}]
[{"segmentation": 5}]
[1]
"""


@pytest.mark.parametrize(
    "text", [*OTHER.strip().splitlines(), '[{"x": ' + "[" * 70 + "]" * 70 + "}]"]
)
def test_other_documents_go_to_the_general_reader(text: str) -> None:
    with pytest.raises(NotFlat):
        read(text)
    with pytest.raises(NotFlat):  # as the second of two chunks
        read('[{"image_id": 1}, ' + text.lstrip("[ "))


@pytest.mark.parametrize("length", [4, 10])
def test_no_byte_after_the_last_one_is_read(length: int) -> None:
    """The memory after a truncated text continues like the text."""
    row = b'{"score": 12.5}, '
    whole = memoryview(b"[" + row * 2_000 + row.strip(b", ") + b"]")
    frames: list[pl.DataFrame] = []
    with tuned(json_bytes=64), pytest.raises(NotFlat):
        frames.extend(scan(whole[: 1 + 1_000 * len(row) + length], FIELDS))
    assert sum(frame.height for frame in frames) <= 1_000


def test_short_documents_do_not_load_the_kernel() -> None:
    with pytest.raises(NotFlat):
        next(scan(b'[{"score": 1}]', FIELDS))
