"""Matching of chunks to their originals, compared with REMem's rule."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval.matching import match, one, tables

RULE = "chunk_from_original"


def in_original(chunk: str, original: str, *, reference: bool) -> bool:
    """Apply REMem's rule; without ``reference``, split at the first ": " and skip blanks."""
    if chunk.startswith("Date: "):
        chunk = chunk.partition("\n")[2]
    plain, escaped = chunk, json.dumps(chunk)
    if chunk.startswith(("user: ", "assistant: ")):
        cuts = -1 if reference else 1
        plain, escaped = (form.split(": ", cuts)[1] for form in (plain, escaped))
    if not plain and not reference:
        return False
    return plain in original or escaped in original


PIECES = st.sampled_from(
    ["a", "b", "ab", "abababab", "aaaaaaaaaaaa", ": ", "\n", '"', "\\", "\\n", "é", "𝄞", "\x7f",
     "\t", "\x00", "中文", " ", "\\u00e9", "\\ud834\\udd1e"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=9).map("".join)
CHUNKS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "Date: 1\n", "Date: 1"]),
        st.sampled_from(["", "", "user: ", "assistant: ", "User: "]),
        TEXTS,
    ),
)


@st.composite
def queries(draw):
    """Generate chunks and originals; some contain a chunk or a part of it, plain or as JSON."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        chunks = draw(st.lists(CHUNKS, max_size=4))
        originals = draw(st.lists(TEXTS, max_size=2))
        for chunk in chunks:
            part = chunk[draw(st.integers(0, 12)) :]
            inserted = draw(st.sampled_from([part, json.dumps(part), json.dumps(part)[1:]]))
            originals.append(draw(TEXTS) + inserted + draw(TEXTS))
        made.append((chunks, originals))
    return made


@pytest.mark.parametrize("dialect", ["standard", "remem"])
@settings(max_examples=40)
@given(given=queries(), workers=st.sampled_from([1, 3]))
def test_chunks_of_originals(dialect, given, workers):
    chunks, originals = [q[0] for q in given], [q[1] for q in given]
    matched = tables(match(chunks, originals, RULE, dialect, workers=workers))
    reference = dialect == "remem"
    for texts, golds, table in zip(chunks, originals, matched, strict=True):
        distinct = list(dict.fromkeys(golds))
        assert table == [
            [in_original(text, gold, reference=reference) for gold in distinct] for text in texts
        ]


def test_chunks_at_any_position_of_a_long_original():
    original = "".join(f"{i:05d} " for i in range(4000))
    for size in (1, 7, 8, 9, 50, 5000):
        cuts = [original[at : at + size] for at in (0, 1, 11_111, len(original) - size)]
        wrong = [cut[:-1] + "x" for cut in cuts] + ["x" + cut[1:] for cut in cuts]
        matched = match([cuts + wrong], [[original, original[:-1]]], RULE)
        table = tables(matched)[0]
        assert [row[0] for row in table] == [True] * 4 + [False] * 8
        assert table[3][1] == (original[-size:] in original[:-1])


def test_repetitive_originals_are_searched_in_linear_time():
    original = "a" * 20_000
    texts = ["a" * 19_999 + "b", "a" * 10_000, "b" + "a" * 9_000]
    assert tables(match([texts], [[original]], RULE))[0] == [[False], [True], [False]]


def test_the_defaults_differ_from_the_reference():
    for chunk, original in (
        ("", "anything"),
        ("Date: 2024-01-01", "anything"),
        ("user: note: buy milk", "a note on nothing"),
    ):
        assert one(chunk, original, RULE, "remem")
        assert not one(chunk, original, RULE)
    assert one("user: note: buy milk", "a note: buy milk", RULE)
