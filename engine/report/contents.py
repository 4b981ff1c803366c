"""Contents of some datums of a run, from its tally or from its inputs, read again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .. import tasks
from ..executors import Threads
from ..ingest.frames import Frames, assemble
from ..ingest.opening import open_inputs
from ..ingest.preparing import prepare
from ..ingest.sources.coco_masks import said_plainly
from ..ingest.sources.tables import READ_FAILURES
from ..ingest.where import Table as Named
from ..ingest.where import filtered
from ..plan import planner
from ..plan.summary import Tallied
from ..schemas.contract import DATUMS, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import EvalengineError
from ..tasks.contents import Content, by_datum, copied, shortened

COLUMNS = 20
"""Other columns of a datum's row that are shown."""
_VALUE = 200  # characters of their values
_ID = "id of the datum"  # beside the columns of a table
_SIDES = (TABLE, PREDICTIONS, GROUND_TRUTHS, DATUMS)


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a datum.

    Attributes:
        content: one of the structs of :mod:`evalengine.tasks.contents`; None if unknown.
        columns: other columns of its first row, including slices, name -> value as text.
        file_name: of its image, if a table of datums contains it.
        width: of its image in pixels, if a table of datums contains it.
        height: of its image in pixels, if a table of datums contains it.
    """

    datum_id: Any
    content: Content | None = None
    columns: dict[str, str] = {}
    file_name: str | None = None
    width: int | None = None
    height: int | None = None


class AllShown(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of datums.

    Attributes:
        datums: in the order requested.
        lacking: reason why the inputs were not read again, and a remedy; otherwise empty.
    """

    datums: tuple[Shown, ...]
    lacking: str = ""


class _Gone(Exception):
    """Error for inputs that cannot be read again, with the reason."""


def contents(
    card: Any, worst: pl.DataFrame, tallied: Tallied | None = None, tables: Any = None
) -> AllShown:
    """Return the contents of the datums in a frame of the worst.

    Args:
        worst: result of :func:`evalengine.analysis.worst.worst`.
        tallied: the run; None, as for a saved run too large to keep it, uses only the inputs.
        tables: the scored tables, if not files: a pair of predictions and ground truths, the single
            table of both, or a mapping with the keys ``predictions`` and ``ground_truths`` or
            ``table``, and optionally ``datums`` and ``labels``.

    Returns:
        one struct per datum; if the inputs have changed or cannot be found, ``lacking`` gives the
        reason, and the contents that need them are missing.
    """
    if not worst.height:
        return AllShown(datums=())
    plan = planner.make_plan(card.options, card.task) if tallied is None else tallied.plan
    ids = worst["datum_id"]
    does = tasks.get(card.task).contents
    lacking = ""
    frames: Frames | None = None
    others: list[dict[str, str]] = [{} for _ in ids]
    try:
        frames, others = _read(card, ids, _given(card, tables))
    except _Gone as gone:
        lacking = str(gone)
    except (EvalengineError, OSError) as error:
        lacking = f"the inputs cannot be read again: {error}"
    found: list[Content | None] = [None] * len(ids)
    try:
        if does.of_tally is not None and (tallied is not None or frames is not None):
            tallies = _tallied_again(plan, frames) if tallied is None else tallied.tallies
            codes = _codes(tallies.datums.id, ids)
            there = np.flatnonzero(codes >= 0)
            for at, made in zip(
                there, does.of_tally(tallies, plan.settings, codes[there]), strict=True
            ):
                found[at] = made
            if does.completed is not None and frames is not None:
                found = does.completed(frames, plan.settings, [str(one) for one in ids], found)
        elif does.of_tables is not None and frames is not None:
            told = worst["parameters"][0]
            made_with = {} if told is None else msgspec.json.decode(told)
            names = [str(one) for one in ids]
            found = does.of_tables(frames, plan.settings, names, made_with, Threads(1))
    except EvalengineError as error:
        lacking = f"the inputs cannot be read again: {error}"
    images = _images(frames, ids.to_list())
    return AllShown(
        datums=tuple(
            Shown(datum_id=one, content=content, columns=columns, **image)
            for one, content, columns, image in zip(ids, found, others, images, strict=True)
        ),
        lacking=lacking,
    )


def _tallied_again(plan: planner.Plan, frames: Frames | None) -> Any:
    """The tally of a few datums."""
    assert frames is not None
    few = copied(frames)
    return planner.run(planner.fitted(plan, few), few, Threads(1))


def _codes(every: pl.Series, ids: pl.Series) -> np.ndarray[Any, Any]:
    """Places of some ids among all, int64; -1 for those that are not there."""
    text = ids.cast(pl.String)
    found = every.cast(pl.String).is_in(text.implode())
    place = dict(zip(every.filter(found).cast(pl.String), found.arg_true(), strict=True))
    return np.array([place.get(one, -1) for one in text], np.int64)


def _given(card: Any, tables: Any) -> dict[str, Any]:
    """Return the inputs by role: given tables, or unchanged files.

    Raises:
        _Gone: there are none.
    """
    if tables is not None:
        if isinstance(tables, dict):
            return tables
        pair = tuple(tables) if isinstance(tables, (tuple, list)) else (tables,)
        if len(pair) == 1 or pair[1] is None:
            return {TABLE: pair[0]}
        return {PREDICTIONS: pair[0], GROUND_TRUTHS: pair[1]}
    inputs = card.run.get("inputs", {})
    found = {}
    for role, facts in inputs.items():
        along = role in (DATUMS, LABELS) and "path" not in facts
        if along:
            continue
        found[role] = _unchanged(role, facts)
    if not found:
        raise _Gone("the run does not say which files it was made from.")
    return found


def _unchanged(role: str, facts: dict[str, Any]) -> str:
    """Return the path of an unchanged input.

    Raises:
        _Gone: it has changed, no longer exists, or was not a single file.
    """
    called = role.replace("_", " ")
    if "bytes" not in facts:
        raise _Gone(
            f"{called}: {facts.get('path') or facts.get('source') or 'a table'} is not a single"
            f" file"
            " that could be compared with what was scored; hand the tables over."
        )
    path = Path(facts.get("path", facts["source"]))
    if not path.is_file():
        raise _Gone(f"{called}: {path} is gone.")
    size = path.stat()
    same = size.st_size == facts["bytes"]
    if same and "sha256" in facts:
        with open(path, "rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == facts["sha256"]
    elif same:
        same = size.st_mtime == facts["modified"]
    if not same:
        raise _Gone(f"{called}: {path} has changed since it was scored.")
    return str(path)


def _read(card: Any, ids: pl.Series, given: dict[str, Any]) -> tuple[Frames, list[dict[str, str]]]:
    """Return checked rows of only some datums, and their other columns.

    Raises:
        EvalengineError: problems of the inputs.
    """
    options = card.options.replace(memory_limit=None, scratch=None, training=None)
    first = given[TABLE] if TABLE in given else given.get(PREDICTIONS)
    inputs = open_inputs(
        first,
        given.get(GROUND_TRUTHS),
        datums=given.get(DATUMS),
        labels=given.get(LABELS),
        options=options,
    )
    ready = prepare(inputs, card.task, options)
    rows, extra = {}, {}
    before: dict[str, int] = {}
    for role, side in ready.sides.items():
        own = side.source.frame
        if role in ready.where:
            own = filtered(own, Named(side.schema, side.naming), ready.where[role])
            before[role] = 0  # of rows before the condition notes tell, which nobody reads
        datum = side.naming.exprs.get(side.table.datum)
        if role != LABELS:
            own = own.with_row_index(_ID) if datum is None else own.with_columns(datum.alias(_ID))
            own = own.filter(pl.col(_ID).cast(pl.String).is_in(ids.cast(pl.String).implode()))
            extra[role] = own
        rows[role] = own.select([*side.naming.exprs.values(), *ready.plan.extra.get(role, ())])
    try:
        with said_plainly():
            collected = dict(zip(rows, pl.collect_all(list(rows.values())), strict=True))
            others = _others(ids, ready.sides, extra)
    except READ_FAILURES as error:
        raise _Gone(f"the inputs cannot be read again: {error}") from error
    frames = assemble(ready, collected, before, options)
    for role, frame in frames.sides.items():
        if "datum_id" not in frame.columns:  # rows are datums, known by their numbers
            numbers = extra[role].select(pl.col(_ID).cast(pl.Int64)).collect()[_ID]
            frames.sides[role] = frame.with_columns(numbers.alias("datum_id"))
    return frames, others


def _others(
    ids: pl.Series, sides: dict[str, Any], extra: dict[str, pl.LazyFrame]
) -> list[dict[str, str]]:
    """Return, per datum, the columns of its first rows that are not in the contract."""
    found: dict[str, dict[str, str]] = {str(one): {} for one in ids}
    for role, lazy in extra.items():
        side = sides[role]
        claimed = {*side.naming.recognised, *side.naming.exprs}
        names = [name for name in side.schema if name not in claimed]
        plain = [name for name in names if not side.schema[name].is_nested()][:COLUMNS]
        if not plain:
            continue
        rows = lazy.select(_ID, *plain).unique(_ID, keep="first", maintain_order=True).collect()
        for row in rows.iter_rows(named=True):
            own = found[str(row[_ID])]
            for name in plain:
                if row[name] is not None and len(own) < COLUMNS:
                    own.setdefault(name, shortened(str(row[name]), _VALUE)[0])
    return [found[str(one)] for one in ids]


def _images(frames: Frames | None, ids: Sequence[Any]) -> list[dict[str, Any]]:
    """File name, width and height of each datum, as far as a table of datums has them."""
    if frames is None or frames.datums is None:
        return [{} for _ in ids]
    names = [n for n in ("file_name", "width", "height") if n in frames.datums.columns]
    rows = by_datum(frames.datums)
    return [
        dict(zip(names, rows[str(one)].select(names).row(0), strict=True))
        if str(one) in rows and names
        else {}
        for one in ids
    ]
