"""Names of classes that a table carries in its schema, as Hugging Face's ``ClassLabel`` does."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalengine.schemas.contract import LABELS, Table

from .meeting import LABEL_COLUMNS
from .names import Naming
from .problems import listing
from .sources.source import Source
from .sources.table_formats import Names, of_schema

_HEAD = 1 << 20  # bytes of an Arrow file in which its schema is looked for


def _of_source(source: Source) -> dict[str, Names]:
    """Names that a source brought along, or that its first file has."""
    if source.classes is None:
        source.classes = {}
        if source.files and source.format == "parquet":
            source.classes = of_schema(pl.read_parquet_metadata(source.files[0]))
        elif source.files and source.format in ("ipc", "ipc_stream"):
            source.classes = _of_arrow(source.files[0], stream=source.format == "ipc_stream")
    return source.classes


def _of_arrow(file: str, *, stream: bool) -> dict[str, Names]:
    with open(file, "rb") as opened:
        if b"ClassLabel" not in opened.read(_HEAD):
            return {}
    try:
        import pyarrow as pa
    except ImportError:
        return {}
    with pa.memory_map(file) as mapped:
        schema = (pa.ipc.open_stream if stream else pa.ipc.open_file)(mapped).schema
    return of_schema(schema.metadata)


def named_classes(
    sources: Mapping[str, Source],
    schemas: Mapping[str, dict[str, pl.DataType]],
    tables: Mapping[str, Table],
    namings: Mapping[str, Naming],
) -> set[str]:
    """Read numbers of classes by their names, where other labels have names in another order.

    Labels are read by name if two columns have different names of classes, or if another column
    holds strings. Numbers whose names are the same, or which only one side has, stay numbers.

    Args:
        sources: role to table; frames and notes are changed here.
        schemas: role to columns; changed here.
        tables: role to contract.
        namings: role to what columns were recognised as.

    Returns:
        roles whose columns changed, so that they are to be recognised again.
    """
    labels = [
        (role, own, schemas[role][own])
        for role, naming in namings.items()
        if role != LABELS
        for column in tables[role].columns
        if column.name in LABEL_COLUMNS and column.name in naming.exprs
        for own in naming.exprs[column.name].meta.root_names()
    ]
    numbers = [(role, own, dtype) for role, own, dtype in labels if _inner(dtype).is_integer()]
    if not numbers or len(labels) < 2:
        return set()
    named = [
        (role, own, dtype, names)
        for role, own, dtype in numbers
        if (names := _of_source(sources[role]).get(own))
    ]
    texts = any(_inner(dtype) in (pl.String, pl.Categorical, pl.Enum) for _, _, dtype in labels)
    if not named or not (texts or len({names for *_, names in named}) > 1):
        return set()
    for role, own, dtype, names in named:
        source, places = sources[role], list(range(len(names)))
        nested = isinstance(dtype, pl.List)
        value = pl.element() if nested else pl.col(own)
        value = value.replace_strict(places, list(names), default=None, return_dtype=pl.String)
        source.frame = source.frame.with_columns(
            (pl.col(own).list.eval(value) if nested else value).alias(own)
        )
        schemas[role][own] = pl.List(pl.String()) if nested else pl.String()
        said = (
            f"{role.replace('_', ' ')}: numbers in column {own!r} are read by the names of classes"
            f" that the table carries: {listing(names)}."
        )
        source.notes = (*source.notes, ("class_names", said, None))
    return {role for role, *_ in named}


def _inner(dtype: pl.DataType) -> pl.DataType:
    if not isinstance(dtype, pl.List):
        return dtype
    return dtype.inner if isinstance(dtype.inner, pl.DataType) else dtype.inner()
