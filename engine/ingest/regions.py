"""Regions of images in which nothing counts: a table, or ground truths without a label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..schemas.contract import DATUMS, GROUND_TRUTHS, PREDICTIONS, REGION_TABLE, Table
from ..schemas.contract import REGIONS as COLUMN
from ..schemas.errors import InputError
from ..schemas.option_values import HeldTable
from ..schemas.options import Options
from .geometry import CORNER_NAMES
from .ids import steps_of
from .infer import recognise
from .problems import Note, count_of, listing, note_of, refuse
from .recognise import Finder, Naming
from .source import Source
from .sources.tables import open_source, schema_of

if TYPE_CHECKING:
    from .opening import Inputs

_ID, _FORM = "datum_id", "form"
_SHOWN = 5
_LEFT_OUT = "regions_left_out"


def with_regions(
    inputs: Inputs, contracts: Mapping[str, Table], options: Options, *, always: bool = False
) -> Inputs:
    """Move regions to the table of datums, as lists of boxes.

    Regions are the rows of option ``regions``, and ground truths with ``ignore`` and without a
    label. The note of a reader that no dialect may apply them is removed: the task reports that.

    Args:
        inputs: what was opened.
        contracts: the task's tables, by role.
        options: the options.
        always: whether lists are made without regions too, if ground truths may have some.

    Returns:
        inputs with a table of datums if there are regions, else those given.

    Raises:
        InputError: regions without a box or a datum.
    """
    frames = [] if options.regions is None else [_of_table(contracts[REGION_TABLE], options)]
    sources = dict(inputs.sources)
    truths = sources[GROUND_TRUTHS]
    if any(note.kind == _LEFT_OUT for note in truths.notes):
        rest = tuple(note for note in truths.notes if note.kind != _LEFT_OUT)
        sources[GROUND_TRUTHS] = msgspec.structs.replace(truths, notes=rest)
        inputs = msgspec.structs.replace(inputs, sources={**sources})
    result = _of_truths(inputs, contracts[GROUND_TRUTHS], options, always=always)
    if result is not None:
        sources[GROUND_TRUTHS], rows = result
        frames.append(rows)
    datums = inputs.sources[GROUND_TRUTHS].datums
    table = inputs.schemas.get(DATUMS, {})
    if datums is not None and COLUMN.name in datums.columns and COLUMN.name not in table:
        # the user gave another table of datums
        frames.append(_of_lists(datums, contracts[DATUMS], options))
    filled = [frame for frame in frames if frame.height]
    if not filled and not (always and frames):
        return inputs
    frames = filled or frames[:1]
    ids = _ids(inputs, contracts, options)
    forms = ids[_FORM]
    regions = pl.concat(
        frame.with_columns(pl.col(_ID).cast(forms.dtype, strict=False)) for frame in frames
    )
    lone = regions.filter(~pl.col(_ID).is_in(forms.implode()) | pl.col(_ID).is_null())[_ID]
    if 0 < regions.height == len(lone):
        raise InputError(
            f"regions: none of their {count_of(lone.n_unique(), 'datum id')} is a datum, first"
            f" {listing(lone.head(_SHOWN).to_list(), len(lone))}; the datums' are"
            f" {listing(forms.head(_SHOWN).to_list(), len(forms))}.",
            code="ids_differ",
            table="regions",
        )
    notes: list[Note] = []
    if others := lone.n_unique():
        words = "id", "ids", "of no datum: their regions are left out"
        notes.append(
            note_of("regions_of_no_datum", others, words, lone.unique().sort(), "regions: ")
        )
    empty = (pl.col("xmax") == pl.col("xmin")) | (pl.col("ymax") == pl.col("ymin"))
    if flat := int(regions.select(empty.sum()).item()):
        words = "region", "regions", "without area: nothing is inside"
        notes.append(note_of("regions_without_area", flat, words))
    if notes:
        truths = sources[GROUND_TRUTHS]
        sources[GROUND_TRUTHS] = msgspec.structs.replace(truths, notes=(*truths.notes, *notes))
    boxes = regions.select(_ID, pl.concat_list(CORNER_NAMES).alias(COLUMN.name)).explode(
        COLUMN.name
    )
    lists = boxes.group_by(_ID, maintain_order=True).agg(COLUMN.name)
    if DATUMS not in sources:
        every = ids.join(lists, left_on=_FORM, right_on=_ID, how="left", maintain_order="left")
        sources[DATUMS] = Source(every.select(_ID, COLUMN.name).lazy(), "regions")
    else:
        sources[DATUMS] = _joined(sources[DATUMS], contracts[DATUMS], lists, options)
    schemas = {role: schema_of(source) for role, source in sources.items()}
    return msgspec.structs.replace(inputs, sources=sources, schemas=schemas)


def _of_table(contract: Table, options: Options) -> pl.DataFrame:
    """Rows of the option ``regions``: datum and corners."""
    regions = options.regions
    thing = regions.table if isinstance(regions, HeldTable) else regions
    source = open_source(list(thing) if isinstance(thing, tuple) else thing)
    naming = _recognised(schema_of(source), contract, options)
    refuse(naming.problems, {REGION_TABLE: source.description})
    rows = source.frame.select([naming.exprs[name] for name in (_ID, *CORNER_NAMES)]).collect()
    return _whole(rows, f"regions ({source.description})")


def _recognised(schema: Mapping[str, pl.DataType], contract: Table, options: Options) -> Naming:
    """Recognise the columns of a table, with datum ids in the form of ``id_format``."""
    columns, boxes = options.columns, options.box_format
    return recognise(schema, contract, columns, boxes, id_format=options.id_format)


def _of_lists(datums: pl.DataFrame, contract: Table, options: Options) -> pl.DataFrame:
    """Regions of a file's images, one row each."""
    ids = _recognised(datums.select(_ID).schema, contract, options).exprs[_ID]
    flat = datums.select(ids, COLUMN.name).filter(pl.col(COLUMN.name).list.len() > 0)
    rows = flat.with_columns(
        pl.col(COLUMN.name).map_elements(
            lambda values: [values[at : at + 4].to_list() for at in range(0, len(values), 4)],
            return_dtype=pl.List(pl.List(pl.Float64)),
        )
    ).explode(COLUMN.name)
    corners = (pl.col(COLUMN.name).list.get(at).alias(name) for at, name in enumerate(CORNER_NAMES))
    return rows.select(_ID, *corners)


def _whole(rows: pl.DataFrame, whose: str) -> pl.DataFrame:
    """Refuse regions without a box."""
    finite = pl.all_horizontal(
        pl.col(name).cast(pl.Float64).is_finite().fill_null(value=False) for name in CORNER_NAMES
    )
    ordered = (pl.col("xmax") >= pl.col("xmin")) & (pl.col("ymax") >= pl.col("ymin"))
    wrong = rows.with_row_index("row").filter(~(finite & ordered))
    if wrong.height:
        raise InputError(
            f"{whose}: {count_of(wrong.height, 'row')} without a box (xmin <= xmax, ymin <= ymax),"
            f" first rows (from 0) {listing(wrong['row'].head(_SHOWN).to_list(), wrong.height)}.",
            code="geometry_missing",
            count=wrong.height,
            table="regions",
        )
    return rows.with_columns(pl.col(CORNER_NAMES).cast(pl.Float64))


def _of_truths(
    inputs: Inputs, contract: Table, options: Options, *, always: bool
) -> tuple[Source, pl.DataFrame] | None:
    """Ground truths without those that are regions, and these; None without any.

    If ``always``, None only of tables that have no columns for them.
    """
    source = inputs.sources.get(GROUND_TRUTHS)
    if source is None:
        return None
    schema = inputs.schemas[GROUND_TRUTHS]
    columns = {column.name: column for column in contract.columns}
    find = Finder(schema, GROUND_TRUTHS, options.columns, contract.names)
    label, ignore = (find.find(columns[name]) for name in ("label_value", "ignore"))
    if label is None or ignore is None or find.problems:
        return None
    is_region = pl.col(label).is_null() & (pl.col(ignore).cast(pl.Int64, strict=False) == 1)
    if not always and not source.frame.select(is_region.any()).collect().item():
        return None
    naming = _recognised(schema, contract, options)
    names = (_ID, *CORNER_NAMES)
    if not {*names} <= naming.exprs.keys():
        return None
    rows = source.frame.filter(is_region).select([naming.exprs[name] for name in names]).collect()
    rest = source.frame.filter(~is_region.fill_null(value=False))
    remaining = msgspec.structs.replace(source, frame=rest, files=(), firsts={})
    return remaining, _whole(rows, "ground truths with ignore and without a label")


def _ids(inputs: Inputs, contracts: Mapping[str, Table], options: Options) -> pl.DataFrame:
    """All datum ids of the sides, or of the table of datums, and their form by ``id_format``.

    Ids of the predictions are in that form already if it adds a step to them.
    """
    roles = [DATUMS] if DATUMS in inputs.sources else [GROUND_TRUTHS, PREDICTIONS]
    frames: list[pl.DataFrame] = []
    for role in roles:
        if role not in inputs.sources:
            continue
        schema = inputs.schemas[role]
        form = _recognised(schema, contracts[role], options).exprs.get(_ID)
        if form is None:
            continue
        written = recognise(schema, contracts[role], options.columns).exprs[_ID]
        ids = form if role == PREDICTIONS and steps_of(options.id_format) else written
        frames.append(inputs.sources[role].frame.select(ids, form.alias(_FORM)).unique().collect())
    if not frames:
        return pl.DataFrame(schema={_ID: pl.String, _FORM: pl.String})
    dtypes: Any = frames[0].schema
    own, form = (pl.col(name).cast(dtypes[_ID], strict=False) for name in (_ID, _FORM))
    every = pl.concat(
        frame.select(pl.coalesce(own, form), pl.col(_FORM).cast(dtypes[_FORM], strict=False))
        for frame in frames
    )
    return every.drop_nulls().unique(_FORM, keep="first", maintain_order=True).sort(_ID)


def _joined(datums: Source, contract: Table, lists: pl.DataFrame, options: Options) -> Source:
    """The table of datums with further regions."""
    schema = schema_of(datums)
    naming = _recognised(schema, contract, options)
    frame = datums.frame.with_columns(naming.exprs[_ID].alias("__form")).join(
        lists.rename({COLUMN.name: "__regions"}).lazy(),
        left_on="__form",
        right_on=_ID,
        how="left",
        maintain_order="left",
    )
    present = [name for name in (COLUMN.name, *COLUMN.aliases) if name in schema]
    regions = pl.col("__regions").fill_null([])
    if present:
        regions = pl.concat_list(
            pl.col(present[0]).cast(pl.List(pl.Float64)).fill_null([]), regions
        )
    frame = frame.with_columns(regions.alias(present[0] if present else COLUMN.name)).drop(
        "__regions", "__form"
    )
    return msgspec.structs.replace(datums, frame=frame, files=())
