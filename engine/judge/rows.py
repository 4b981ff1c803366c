"""Parsing and checking of the judge stage's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..ingest.checks import check_side
from ..ingest.names import Naming, check_columns, recognise
from ..ingest.problems import Problem, count_of, listing, refuse
from ..ingest.shapes import SHAPES
from ..ingest.slices import split
from ..ingest.sources.explain import explain
from ..ingest.sources.tables import READ_FAILURES, open_source, schema_of
from ..schemas.contract import Table
from ..schemas.errors import InputError, did_you_mean
from ..schemas.judged_tables import JUDGE_REFERENCES, JUDGE_ROWS, JUDGED_TABLE
from .steps import PLANS, Row

_GIVEN = ("query", "text", "contexts", "source")
PROMPT = "prompt"
"""Column of our verdict tables in addition to those of the contract."""
_OURS = {*(column.name for column in JUDGED_TABLE.columns), PROMPT} - {"dataset"}


def read_rows(
    data: Any,
    references: Any = None,
    *,
    metrics: Sequence[str],
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> tuple[list[Row], pl.DataFrame, list[str]]:
    """Parse the rows to judge, and further columns for slices.

    Args:
        references: a table of ground truths, one per row, by ``datum_id``; or None if they are in
            the column ``reference``.
        columns: name in the input -> canonical name.

    Returns:
        the rows; ``datum_id`` and all further columns of plain values, one row each; notes.

    Raises:
        InputError: a column that a metric needs is missing, or a table breaks its contract.
    """
    given = {"data": (data, JUDGE_ROWS)}
    if references is not None:
        given["references"] = (references, JUDGE_REFERENCES)
    sources = {
        name: open_source(x, storage_options=storage_options) for name, (x, _) in given.items()
    }
    schemas = {name: schema_of(source) for name, source in sources.items()}
    check_columns(columns, {name: (schemas[name], given[name][1]) for name in given})
    frames, notes = {}, []
    for name, (_, table) in given.items():
        naming = recognise(schemas[name], table, columns)
        try:
            further = _further(schemas[name], naming) if name == "data" else []
            frame = sources[name].frame.select(*naming.exprs.values(), *further).collect()
        except READ_FAILURES as error:
            raise explain(sources[name], error) from error
        _check(frame.drop(further), table, naming, sources[name].description)
        frames[name] = frame
        notes += [f"{name}: read {own} as {to}." for own, to in naming.recognised.items()]
    frame = frames["data"]
    if "datum_id" not in frame.columns:
        if references is not None:
            raise InputError(
                "references are joined to the rows by datum_id, which the rows do not have."
            )
        frame = frame.with_row_index("datum_id").with_columns(pl.col("datum_id").cast(pl.Int64))
    read = [column.name for column in JUDGE_ROWS.columns if column.name in frame.columns]
    carried = frame.select("datum_id", pl.all().exclude(*read))
    frame = frame.select(read)
    if references is not None:
        frame = _joined(frame, frames["references"])
    _refuse_missing(frame, metrics)
    rows = [_row(row) for row in frame.iter_rows(named=True)]
    return rows, carried, notes


def _further(schema: Mapping[str, pl.DataType], naming: Naming) -> list[str]:
    """Columns that the judge does not read, whose names are free in a verdict table."""
    taken = {*naming.exprs, *naming.recognised, *_OURS}
    return [
        name
        for name, dtype in schema.items()
        if name not in taken and not (dtype.is_nested() or dtype in (pl.Binary, pl.Object))
    ]


def refuse_slices(by: Sequence[str], carried: pl.DataFrame) -> None:
    """Refuse slices that the verdict table will not have, before any cost arises.

    Args:
        carried: from :func:`read_rows`.

    Raises:
        InputError: a column that is not carried along.
    """
    there = carried.columns[1:]
    for name in (piece for entry in by for piece in split(entry, there)):
        if name not in there:
            raise InputError(
                f"by: no slice column {name!r} among the columns of data that are carried along"
                " (plain values under names that verdict tables do not use)."
                f"{did_you_mean(name, there)} Columns there: {', '.join(there) or 'none'}.",
                code="column_missing",
                column=name,
            )


def with_carried(verdicts: pl.DataFrame, carried: pl.DataFrame) -> pl.DataFrame:
    """A verdict table with the columns that are carried along, of each row's datum."""
    if carried.width == 1:
        return verdicts
    return verdicts.join(carried, on="datum_id", how="left", maintain_order="left")


def _check(frame: pl.DataFrame, table: Table, naming: Naming, description: str) -> None:
    problems: list[Problem] = list(naming.problems)
    if not problems:
        problems, _ = check_side(frame, table, SHAPES[table.shape], naming.recognised)
    if not problems and "contexts" in frame.columns:
        holes = frame.filter(pl.col("contexts").list.eval(pl.element().is_null()).list.any()).height
        if holes:
            said = f"column 'contexts': {count_of(holes, 'row')} with a null in the list."
            problems = [Problem(table.side, "contexts", said, holes, kind="null_in_list")]
    refuse(problems, {table.side: description})


def _joined(frame: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    if frame.schema["datum_id"] != references.schema["datum_id"]:
        kinds = f"{frame.schema['datum_id']} and {references.schema['datum_id']}"
        raise InputError(f"column 'datum_id' is {kinds} in the two tables: cast one of them.")
    lists = references.group_by("datum_id", maintain_order=True).agg(
        pl.col("text").alias("reference")
    )
    if "reference" in frame.columns:
        raise InputError(
            "references: the rows have ground truths of their own in column 'reference'. Leave out"
            " that column or the second table.",
            code="given_twice",
            column="reference",
        )
    strange = lists.join(frame, on="datum_id", how="anti")["datum_id"]
    if len(strange):
        raise InputError(
            f"references: {count_of(len(strange), 'datum_id')} that no row has:"
            f" {listing(strange.to_list())}.",
            code="ids_unmatched",
            count=len(strange),
        )
    joined = frame.join(lists, on="datum_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("reference").fill_null([]))


def _refuse_missing(frame: pl.DataFrame, metrics: Sequence[str]) -> None:
    lacking = {
        metric: [name for name in PLANS[metric].needs if name not in frame.columns]
        for metric in metrics
    }
    told = [f"{metric} needs {' and '.join(names)}" for metric, names in lacking.items() if names]
    if told:
        able = [m for m, plan in PLANS.items() if set(plan.needs) <= set(frame.columns)]
        raise InputError(
            f"{'; '.join(told)}. Columns there: {', '.join(frame.columns)}. They allow:"
            f" {', '.join(able) or 'no metric'}.",
            code="column_missing",
            columns=sorted({name for names in lacking.values() for name in names}),
        )


def _row(row: dict[str, Any]) -> Row:
    given = {name: row.get(name) for name in _GIVEN}
    if given["contexts"] is not None:
        given["contexts"] = [str(context) for context in given["contexts"]]
    texts = row.get("reference")
    # If one ground truth is unknown, so is the maximum over all.
    known = texts is not None and None not in texts
    return Row(row["datum_id"], given, tuple(texts) if texts is not None and known else None)
