"""Samples of language-model harnesses as values: lm-eval's JSON Lines, inspect's sample tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import polars as pl

from ...schemas.errors import InputError
from ...schemas.options import Options
from ...schemas.tables import TABLES
from ..files import Source
from ..problems import Note, listing
from .scanning import scan

_VALUES = next(table.task for table in TABLES if "samples" in table.formats)
_RESERVED = ("datum_id", "metric", "value", "metrics")
_LETTERS = {
    "c": 1.0,
    "p": 0.5,
    "i": 0.0,
    "n": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
"""Words of inspect's ``value_to_float``."""
_TASK = re.compile(r"samples_(.+?)_\d{4}-\d\d-\d\dT")


def read_samples(source: Source, schema: Mapping[str, pl.DataType], options: Options) -> None:
    """Convert a table of samples to one row per datum and metric, in place; others stay.

    With ``value_columns`` it keeps a column per metric.
    """
    if options.task not in (None, _VALUES):
        return
    if "doc_id" in schema and schema.get("metrics") == pl.List(pl.String):
        _of_lm_eval(source, schema, options)
    scores = [name for name in schema if name.startswith("score_")]
    if scores and {"sample_id", "epoch"} <= schema.keys():
        _of_inspect(source, schema, scores, options)


# lm-eval writes samples_TASK_TIME.jsonl: a row per document and filter, with a list ``metrics``.


def _of_lm_eval(source: Source, schema: Mapping[str, pl.DataType], options: Options) -> None:
    rows, datum = source.frame, pl.col("doc_id").alias("datum_id")
    if len(source.files) > 1 and source.format == "ndjson":
        paths = [Path(file) for file in source.files]
        tasks = [match[1] if (match := _TASK.match(one.name)) else one.stem for one in paths]
        if len({*tasks}) > 1:  # documents are numbered per task
            frames = [
                scan([file], source.format).with_columns(task=pl.lit(task))
                for file, task in zip(source.files, tasks, strict=True)
            ]
            rows = pl.concat(frames, how="diagonal_relaxed")
            schema = rows.collect_schema()
            datum = pl.format("{}/{}", "task", "doc_id").alias("datum_id")
    listed = rows.select(pl.col("metrics").explode().drop_nulls().unique().sort()).collect()
    named = listed.to_series().to_list()
    names = [name for name in named if _plain_number(schema.get(name))]
    if lists := [name for name in named if name in schema and name not in names]:
        message = f"{listing(lists)} of the samples are skipped: their values are not numbers."
        source.notes += (Note("samples_not_read", message, len(lists)),)
    if absent := [name for name in named if name not in schema]:
        message = f"metrics of the samples without a column: {listing(absent)}."
        if len(absent) == len(named):
            raise InputError(
                f"{source.description}: {message} Columns there: {', '.join(schema)}.",
                code="column_missing",
                columns=absent,
            )
        source.notes += (Note("samples_not_read", message, len(absent)),)
    doc = schema.get("doc")
    fields = doc.fields if isinstance(doc, pl.Struct) else []
    fields_of_doc = [
        pl.col("doc").struct.field(field.name)
        for field in fields
        if field.name not in (*schema, *_RESERVED) and not field.dtype.is_nested()
    ]
    rows = rows.with_columns(
        *fields_of_doc, datum, *(pl.col(name).cast(pl.Float64) for name in names)
    )
    metric = pl.col("metric")
    if "filter" in schema:
        filters = rows.select(pl.col("filter").n_unique()).collect().item()
        if filters > 1:
            metric = pl.when(pl.col("filter") != "none").then(metric + "," + pl.col("filter"))
            metric = metric.otherwise("metric").alias("metric")
    if options.value_columns is None:
        rows = _unpivoted(rows, names, [*_other_columns(rows, names), "metrics"])
        rows = rows.filter(pl.col("metrics").list.contains(pl.col("metric"))).drop("metrics")
        rows = rows.with_columns(metric)
    source.frame, source.task = rows, _VALUES
    source.notes += (_note("lm-eval", "doc_id" if len(source.files) < 2 else "task/doc_id", names),)


def _plain_number(dtype: pl.DataType | None) -> bool:
    return dtype is not None and (dtype.is_numeric() or dtype == pl.Boolean)


# inspect's samples_df: a row per sample and epoch; ``sample_id`` names the row, ``id`` the sample.


def _of_inspect(
    source: Source, schema: Mapping[str, pl.DataType], scores: Sequence[str], options: Options
) -> None:
    rows, datum = source.frame, "id" if "id" in schema else "sample_id"
    columns: dict[str, pl.Expr] = {}
    for name in scores:
        if _plain_number(schema[name]):
            columns[name] = pl.col(name).cast(pl.Float64)
        elif isinstance(schema[name], pl.String):
            columns |= _of_texts(rows, name)
    rows = rows.with_columns(
        pl.col(datum).alias("datum_id"), *(expr.alias(name) for name, expr in columns.items())
    )
    if options.value_columns is None:
        rows = _unpivoted(rows, [*columns], _other_columns(rows, [*scores, *columns]))
    source.frame, source.task = rows, _VALUES
    source.notes += (_note("inspect", datum, columns),)


def _of_texts(rows: pl.LazyFrame, name: str) -> dict[str, pl.Expr]:
    """Return scores as numbers: letters and words; of JSON objects one per entry."""
    text = pl.col(name).str.strip_chars()
    texts = rows.select(text).collect().to_series().drop_nulls()
    if not len(texts) or texts.str.starts_with("{").sum() < _MOST * len(texts):
        return {name: _number(text)}
    try:
        dtype = texts.str.json_decode(infer_schema_length=None).dtype
    except pl.exceptions.ComputeError:  # other texts among them, such as messages of errors
        texts = texts.filter(pl.Series(map(_is_json, texts)))
        text = pl.when(text.is_in(texts.unique().implode())).then(text)
        dtype = texts.str.json_decode(infer_schema_length=None).dtype
    if not isinstance(dtype, pl.Struct):
        return {name: _number(text)}
    decoded = text.str.json_decode(dtype)
    return {
        f"{name}.{field.name}": _number(decoded.struct.field(field.name).cast(pl.String))
        for field in dtype.fields
        if not field.dtype.is_nested()
    }


_MOST = 0.5
"""Share of texts that are JSON objects, from which all are read as such."""


def _is_json(text: str) -> bool:
    """Return whether a text is a JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        return False


def _number(text: pl.Expr) -> pl.Expr:
    """Numbers of texts, as inspect reads them; null for other texts, which it counts as 0."""
    words = text.str.to_lowercase().replace_strict(_LETTERS, default=None, return_dtype=pl.Float64)
    return words.fill_null(text.cast(pl.Float64, strict=False))


# Both become long tables.


def _other_columns(rows: pl.LazyFrame, names: Iterable[str]) -> list[str]:
    """Return plain columns other than values, for slices and clusters."""
    out = {*names, "metric", "value"}
    schema = rows.collect_schema()
    return [name for name, dtype in schema.items() if name not in out and not dtype.is_nested()]


def _unpivoted(rows: pl.LazyFrame, names: Sequence[str], index: Sequence[str]) -> pl.LazyFrame:
    schema = rows.collect_schema()
    if len({schema[name] for name in names}) > 1:
        rows = rows.with_columns(pl.col(names).cast(pl.Float64))
    return rows.unpivot(names, index=index, variable_name="metric", value_name="value")


def _note(harness: str, datum: str, names: Iterable[str]) -> Note:
    message = f"samples of {harness}: {listing([*names], most=8)} per {datum}."
    return Note("samples_read", message, facts={"harness": harness, "datum": datum})
