"""CoNLL files: one token per line, its tag in the last column, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from ...schemas.errors import N_EXAMPLES, ReadError
from ...schemas.tables import SPANS_TABLE
from ..files import Source, unreadable
from ..problems import listing

_TAG = r"(?:O|[BIESLU](?:-\S+)?)"
_LINE = re.compile(rf"\S+.*[ \t]{_TAG}\s*")
_MANY = 0.95  # share of the lines that end in a tag
_DOCUMENT = "-DOCSTART-"


def is_conll(head: bytes) -> bool:
    """Return whether the first bytes of a file are tokens with tags, in several sentences."""
    lines = head.decode("utf-8-sig", "ignore").split("\n")[:-1]
    tokens = [line for line in lines if line.strip() and line[:1] != "#"]
    fitting = sum(_LINE.fullmatch(line) is not None for line in tokens)
    blank = any(not line.strip() for line in lines[:-1])
    return blank and len(tokens) > 1 and fitting >= _MANY * len(tokens)


def open_conll(files: Sequence[str], description: str) -> Source:
    """Read CoNLL files as a table with one row per sentence.

    Columns are ``datum_id``, the number of the sentence from 0; ``tokens``, the first column;
    ``tags``, the last column; and ``actual`` and ``predicted``, the last two columns, if every line
    has two tags.

    Raises:
        ReadError: a file that cannot be read, or lines without a tag.
    """
    tables = []
    for file in files:
        try:
            with open(file, "rb") as opened:
                text = opened.read().decode("utf-8-sig")
        except OSError as error:
            raise unreadable(file, error) from None
        except UnicodeDecodeError as error:
            raise ReadError(
                f"{file}: byte {error.start:,} is not UTF-8. Write the file in UTF-8.",
                code="not_utf8",
                file=file,
            ) from None
        tables.append(_sentences(text, file))
    table = pl.concat(tables, how="diagonal").with_row_index("datum_id")
    table = table.with_columns(pl.col("datum_id").cast(pl.Int64))
    if "actual" in table.columns and table["actual"].null_count():
        table = table.drop("actual", "predicted")
    return Source(table.lazy(), description, "conll", tuple(files), task=SPANS_TABLE.task)


def _sentences(text: str, file: str) -> pl.DataFrame:
    """Return the sentences of one file."""
    lines = pl.DataFrame({"line": text.split("\n")}).with_row_index("number", offset=1)
    lines = lines.with_columns(
        pl.col("line").str.strip_chars(), blank=pl.col("line").str.strip_chars() == ""
    )
    document = pl.col("line").str.starts_with(_DOCUMENT)
    lines = lines.with_columns(sentence=(pl.col("blank") | document).cum_sum())
    tokens = lines.filter(~pl.col("blank"), ~document).with_columns(
        tag=pl.col("line").str.extract(rf"[ \t]({_TAG})$"),
        pair=pl.col("line").str.extract(rf"\S[ \t]+({_TAG})[ \t]+{_TAG}$"),
    )
    tokens = tokens.filter(pl.col("tag").is_not_null() | ~pl.col("line").str.starts_with("#"))
    wrong = tokens.filter(pl.col("tag").is_null())
    if wrong.height:
        first = wrong.head(N_EXAMPLES)
        raise ReadError(
            f"{file}: {wrong.height:,} lines do not end in a tag, first"
            f" {listing(first['line'].to_list(), wrong.height, N_EXAMPLES)} in line"
            f" {wrong['number'][0]:,}. Each line is a token, and its tag (O, B-PER, ...) after a"
            " space or tab in the last column; blank lines separate sentences.",
            code="file_malformed",
            count=wrong.height,
            lines=first["number"].to_list(),
        )
    paired = bool(tokens.height) and not tokens["pair"].null_count()
    sentences = tokens.group_by("sentence", maintain_order=True).agg(
        tokens=pl.col("line").str.extract(r"^(\S+)"),
        tags="tag",
        **({"actual": pl.col("pair"), "predicted": pl.col("tag")} if paired else {}),
    )
    return sentences.drop("sentence")
