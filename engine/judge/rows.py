"""What the judge stage reads: the user's tables as rows, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..inputs.checks import check_side
from ..inputs.names import Naming, check_columns, recognise
from ..inputs.problems import Problem, count_of, listing, refuse
from ..inputs.shapes import SHAPES
from ..readers.explain import explain
from ..readers.tables import READ_FAILURES, open_source, schema_of
from ..schemas.contract import Table
from ..schemas.errors import InputError
from ..schemas.judged_tables import JUDGE_REFERENCES, JUDGE_ROWS
from .steps import PLANS, Row

_GIVEN = ("query", "text", "contexts", "source")


def read_rows(
    data: Any,
    references: Any = None,
    *,
    metrics: Sequence[str],
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> tuple[list[Row], list[str]]:
    """Rows to judge.

    Args:
        data: path, glob or table, a row for each text, answer or query.
        references: a table of ground truths, a row each, by ``datum_id``; or None where they
            stand in the column ``reference``.
        metrics: names of judged metrics, whose columns must be there.
        columns: own column name -> canonical name.
        storage_options: for remote paths.

    Returns:
        the rows; what the user should know.

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
            frame = sources[name].frame.select(naming.exprs.values()).collect()
        except READ_FAILURES as error:
            raise explain(sources[name], error) from error
        _check(frame, table, naming, sources[name].description)
        frames[name] = frame
        notes += [f"{name}: read {own} as {to}." for own, to in naming.recognised.items()]
    frame = frames["data"]
    if "datum_id" not in frame.columns:
        if references is not None:
            raise InputError("references meet the rows by datum_id, which the rows do not have.")
        frame = frame.with_row_index("datum_id").with_columns(pl.col("datum_id").cast(pl.Int64))
    if references is not None:
        frame = _joined(frame, frames["references"])
    _refuse_missing(frame, metrics)
    return [_row(row) for row in frame.iter_rows(named=True)], notes


def _check(frame: pl.DataFrame, table: Table, naming: Naming, description: str) -> None:
    problems: list[Problem] = list(naming.problems)
    if not problems:
        problems, _ = check_side(frame, table, SHAPES[table.shape], naming.recognised)
    if not problems and "contexts" in frame.columns:
        holes = frame.filter(pl.col("contexts").list.eval(pl.element().is_null()).list.any()).height
        if holes:
            said = f"column 'contexts': {count_of(holes, 'row')} with a null in the list."
            problems = [Problem(table.side, "contexts", said, holes)]
    refuse(problems, {table.side: description})


def _joined(frame: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    if frame.schema["datum_id"] != references.schema["datum_id"]:
        kinds = f"{frame.schema['datum_id']} and {references.schema['datum_id']}"
        raise InputError(f"column 'datum_id' is {kinds} in the two tables: cast one of them.")
    lists = references.group_by("datum_id", maintain_order=True).agg(
        pl.col("text").alias("reference")
    )
    strange = lists.join(frame, on="datum_id", how="anti")["datum_id"]
    if len(strange):
        raise InputError(
            f"references: {count_of(len(strange), 'datum_id')} that no row has:"
            f" {listing(strange.to_list())}."
        )
    rest = frame.drop("reference", strict=False)
    joined = rest.join(lists, on="datum_id", how="left", maintain_order="left")
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
            f" {', '.join(able) or 'no metric'}."
        )


def _row(row: dict[str, Any]) -> Row:
    given = {name: row.get(name) for name in _GIVEN}
    if given["contexts"] is not None:
        given["contexts"] = [str(context) for context in given["contexts"]]
    references = tuple(text for text in row.get("reference") or () if text is not None)
    return Row(row["datum_id"], given, references)
