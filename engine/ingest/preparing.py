"""Preparation of tables before rows are read; regions of images in which nothing counts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..schemas import tables
from ..schemas.contract import (
    ALPHA,
    ANGLE,
    BBOX,
    BOX3D,
    DATUMS,
    GROUND_TRUTHS,
    HEAD_SIZE,
    HEIGHT_2D,
    KEYPOINTS,
    LABELS,
    NUM_KEYPOINTS,
    OCCLUDED,
    OF_SOLIDS,
    PREDICTIONS,
    REGION_TABLE,
    TABLE,
    TRUNCATED,
    Table,
)
from ..schemas.contract import REGIONS as COLUMN
from ..schemas.errors import N_NAMES, InputError
from ..schemas.option_values import TableObject
from ..schemas.options import Options
from ..schemas.tables import contracts, table_for
from ..schemas.wording import option, sql_name
from . import rules
from .annotations.format import FIRST
from .both_sides import LABEL_COLUMNS
from .collecting import Prepared
from .dtypes import TEXTS as TEXT_DTYPES
from .dtypes import canonical_dtype, element, inferred_note, instants, marked_numbers, reread
from .files import Source, refuse_expanding
from .geometry import (
    BOX_NAMES,
    CORNER_NAMES,
    FRONT_UNKNOWN,
    GEOMETRY_NAMES,
    IOU_TYPES,
    SHAPED_NAMES,
)
from .ids import check_forms, formed, keeps_parts, refuse_merged, steps_of
from .infer import check_columns, headless, like_data, one_way, point_out_swap, recognise, unread
from .opening import Inputs
from .problems import DatumNouns, Note, Problem, count_of, listing, note_of, refuse
from .recognise import TEXTS, Finder, Naming, Side, contract
from .relabel import classes_in, name_of_class, named_classes
from .rules import columns, values
from .shapes import maybe_scores
from .slices import SlicePlan, plan_slices, split
from .sources.formats import explain
from .sources.json_rows import EXACT, rounded_words
from .sources.scanning import scan
from .sources.tables import READ_FAILURES, open_source, schema_of
from .training import step_columns
from .where import Condition, filtered, plan_where

if TYPE_CHECKING:
    from .opening import Inputs


_ID, _FORM = "datum_id", "form"
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
    if _LEFT_OUT in map(attrgetter("kind"), truths.notes):
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
    filled = [*filter(len, frames)]
    if not filled and not (always and frames):
        return inputs
    frames = filled or frames[:1]
    ids = _ids(inputs, contracts, options)
    forms = ids[_FORM]
    regions = pl.concat(
        frame.with_columns(pl.col(_ID).cast(forms.dtype, strict=False)) for frame in frames
    )
    unmatched = regions.filter(~pl.col(_ID).is_in(forms.implode()) | pl.col(_ID).is_null())[_ID]
    if 0 < regions.height == len(unmatched):
        raise InputError(
            f"regions: none of their {count_of(unmatched.n_unique(), 'datum id')} is a datum, first"
            f" {listing(unmatched.head(N_NAMES).to_list(), len(unmatched))}; the datums' are"
            f" {listing(forms.head(N_NAMES).to_list(), len(forms))}.",
            code="ids_differ",
            table="regions",
        )
    notes: list[Note] = []
    if others := unmatched.n_unique():
        words = "id", "ids", "of no datum: their regions are left out"
        notes.append(
            note_of("regions_of_no_datum", others, words, unmatched.unique().sort(), "regions: ")
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
    thing = regions.table if isinstance(regions, TableObject) else regions
    source = open_source(list(thing) if isinstance(thing, tuple) else thing)
    naming = _recognise(schema_of(source), contract, options)
    refuse(naming.problems, {REGION_TABLE: source.description})
    rows = source.frame.select([naming.exprs[name] for name in (_ID, *CORNER_NAMES)]).collect()
    return _whole(rows, f"regions ({source.description})")


def _recognise(schema: Mapping[str, pl.DataType], contract: Table, options: Options) -> Naming:
    """Recognise the columns of a table, with datum ids in the form of ``id_format``."""
    columns, boxes = options.columns, options.box_format
    return recognise(schema, contract, columns, boxes, id_format=options.id_format)


def _of_lists(datums: pl.DataFrame, contract: Table, options: Options) -> pl.DataFrame:
    """Regions of a file's images, one row each."""
    ids = _recognise(datums.select(_ID).schema, contract, options).exprs[_ID]
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
            f" first rows (from 0) {listing(wrong['row'].head(N_NAMES).to_list(), wrong.height)}.",
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
    find = Finder(schema, GROUND_TRUTHS, options.columns, columns)
    label, ignore = find.find(columns["label_value"]), find.find(columns["ignore"])
    if label is None or ignore is None or find.problems or schema[ignore].is_nested():
        return None
    is_region = pl.col(label).is_null() & (pl.col(ignore).cast(pl.Int64, strict=False) == 1)
    if not always and not source.frame.select(is_region.any()).collect().item():
        return None
    naming = _recognise(schema, contract, options)
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
        form = _recognise(schema, contracts[role], options).exprs.get(_ID)
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
    naming = _recognise(schema, contract, options)
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


# Several files of one side that speak of the same datums: perhaps of two models, scored as one.

_FILES = 12  # looked at
_LEAST = 5  # datums of each, below which a cut through one of them looks like many in common
_SCANNED = ("parquet", "ipc", "csv", "ndjson")


def overlapping(sides: dict[str, Side]) -> list[Note]:
    """Return a warning for each table whose files share most of their first datums.

    Only for tables without a key: otherwise such rows are refused. Files split by rows share only
    the datum at the split; files of one label each share datums, but not their values.
    """
    notes = []
    for role, side in sides.items():
        exprs = side.naming.exprs
        read = [exprs[name] for name in (side.table.datum, "label_value") if name in exprs]
        if side.table.key or side.table.datum not in exprs:
            continue
        overlap = _first_pair(_firsts(side.source, read))
        if overlap is None:
            continue
        one, other, common, of = overlap
        folder = os.path.commonpath([os.path.dirname(name) for name in (one, other)])
        named = [os.path.relpath(name, folder) for name in (one, other)]
        notes.append(
            Note(
                "files_share_datums",
                f"{role.replace('_', ' ')}: {common:,} of {of:,} {side.table.unit[1]} looked at are"
                f" both in {named[0]!r} and in {named[1]!r}, and all their rows are scored"
                " together. If the files are of several models, score them one by one.",
                warning=True,
            )
        )
    return notes


def same_file(sides: dict[str, Side], where: Mapping[str, Condition]) -> list[Note]:
    """Return a warning if both sides are the same rows and columns of the same files."""
    ours, theirs = sides[PREDICTIONS], sides[GROUND_TRUTHS]
    texts = {role: condition.text for role, condition in where.items()}
    if texts.get(PREDICTIONS) != texts.get(GROUND_TRUTHS):
        return []  # conditions select the rows of each side
    formats = (*_SCANNED, "trec", "mapping", "coco")
    if ours.source.files != theirs.source.files or ours.source.format not in formats:
        return []
    if not theirs.naming.used <= ours.naming.used:
        return []  # a table of both
    message = (
        f"predictions and ground truths are the same columns of {ours.source.description}, so the"
        " numbers compare it with itself. Give the file of the other side."
    )
    return [Note("same_file", message, warning=True)]


def _firsts(source: Source, read: list[pl.Expr]) -> dict[str, set[tuple[object, ...]]]:
    """Return the values of the first rows of several files, by file."""
    files = (*source.firsts,) or source.files
    if len(files) < 2 or not (source.firsts or source.format in _SCANNED):
        return {}
    columns = [expr.alias(str(i)) for i, expr in enumerate(read)]
    result = {}
    try:
        for file in files[:_FILES]:
            rows = (
                source.firsts[file].lazy()
                if source.firsts
                else scan([file], source.format, partitions=source.partitions).head(FIRST)
            )
            result[file] = {*rows.select(columns).drop_nulls().unique().collect().iter_rows()}
    except READ_FAILURES:  # reported with the reason when all rows are read
        return {}
    return result


def _first_pair(files: dict[str, set[tuple[object, ...]]]) -> tuple[str, str, int, int] | None:
    """Two files that share at least half of the datums looked at; how many, and of how many."""
    datums = {file: {row[0] for row in rows} for file, rows in files.items()}
    for one, other in combinations(files, 2):
        fewest = min(len(datums[one]), len(datums[other]))
        common = len({row[0] for row in files[one] & files[other]})
        if fewest >= _LEAST and 2 * common >= fewest:
            return os.path.abspath(one), os.path.abspath(other), common, fewest
    return None


# Splits of a data set of which none was predicted, though others were.

_SPLIT = "split"
"""Column of a table of datums with their split."""


def without_predictions(
    sides: Mapping[str, Side], frames: Mapping[str, pl.DataFrame] | None
) -> list[Note]:
    """Warn if whole splits have no predictions while others have."""
    ours, datums = sides.get(PREDICTIONS), sides[DATUMS]
    if ours is None or _SPLIT not in datums.schema:
        return []
    if not all(side.table.datum in side.naming.exprs for side in (ours, datums)):
        return []
    keyed = datums.naming.exprs[datums.table.datum].cast(pl.String).alias("id")
    table = datums.source.frame.select(keyed, split=pl.col(_SPLIT).cast(pl.String)).collect()
    if table["split"].drop_nulls().n_unique() < 2:
        return []
    read = None if frames is None else frames[PREDICTIONS].lazy()
    name = ours.table.datum
    predictions = ours.source.frame.select(ours.naming.exprs[name]) if read is None else read
    ids = predictions.select(pl.col(name).cast(pl.String).unique()).collect()[name]
    splits = (
        table.drop_nulls()
        .group_by("split", maintain_order=True)
        .agg(n=pl.len(), met=pl.col("id").is_in(ids.implode()).any())
    )
    absent, rest = splits.filter(~pl.col("met")), splits.filter("met")["split"].to_list()
    if not absent.height or not rest:
        return []
    n = int(absent["n"].sum())
    which = f"= '{rest[0]}'" if len(rest) == 1 else f"in ({', '.join(map(repr, rest))})"
    message = (
        f"no datum of the split{'s' * (absent.height > 1)} {listing(absent['split'].to_list())} has"
        f" a prediction ({n:,} of {count_of(table.height, 'datum')}): all objects there count as "
        f"missed. To score only the rest: {option('where', f'{sql_name(_SPLIT)} {which}')}."
    )
    return [Note("splits_without_predictions", message, n, warning=True)]


# Warnings about integers that floats cannot represent exactly.

_WIDE = frozenset({pl.Int64, pl.UInt64, pl.Int128})


def rounded(
    sides: Mapping[str, Side],
    where: Mapping[str, Condition],
    frames: Mapping[str, pl.DataFrame] | None,
) -> list[Note]:
    """Return a note for each integer column that changed when cast to float.

    Reads the integers from the source again, only if floats are that large.
    """
    notes = []
    for role, side in sides.items():
        for column in side.table.columns:
            name = column.name
            if column.kind != "number" or name not in side.naming.exprs:
                continue
            root_names = side.naming.exprs[name].meta.root_names()
            dtype = side.schema[root_names[0]] if len(root_names) == 1 else None
            if dtype not in _WIDE:
                continue
            if frames is not None and not (frames[role][name].abs() >= EXACT).any():
                continue
            counts = _rounded(side, root_names[0], where.get(role))
            if counts is not None:
                message = f"{role.replace('_', ' ')}: column {root_names[0]!r}"
                notes.append(Note("values_rounded", rounded_words(message, *counts), counts[0]))
    return notes


def _rounded(side: Side, name: str, condition: Condition | None) -> tuple[int, int] | None:
    """Return the number of integers of a column that floats change, and the first of them."""
    rows = side.source.frame
    if condition is not None:
        rows = filtered(rows, side, condition)
    values = pl.col(name)
    limit = int(EXACT)
    large = rows.select(values).filter((values > limit) | (values < -limit))
    other = values.cast(pl.Float64).cast(side.schema[name], strict=False).ne_missing(values)
    query = large.filter(other).select(pl.len(), values.first().alias("first"))
    try:
        count, first = query.collect(engine="streaming").row(0)
    except READ_FAILURES as error:
        raise explain(side.source, error) from error
    return (count, first) if count else None


# Ids of datums that several columns make together: a series and a time, an id and a horizon.

_BETWEEN = "/"


def make_composite_ids(
    task: str, sides: Mapping[str, Side], options: Options, *, matched: bool = False
) -> None:
    """Make composite datum ids if no single column names the datums.

    Two tables without ids use all columns that both have. If ids repeat in a table, its additional
    columns distinguish the rows. In one table without ids every row is a separate datum.

    Args:
        sides: role to table; ids and notes are added in place.
        matched: rows of one table without ids are matched with those of other runs.
    """
    first = TABLE if TABLE in sides else PREDICTIONS
    datum = sides[first].table.datum
    unnamed = first == TABLE and datum not in sides[TABLE].naming.exprs
    if not sides[first].table.id_columns or (unnamed and not matched):
        return
    sides = {role: sides[role] for role in (TABLE, PREDICTIONS, GROUND_TRUTHS) if role in sides}
    if not all(side.schema for side in sides.values()):
        return
    problems: list[Problem] = []
    input_columns: dict[str, dict[str, str]] = {}  # canonical name to own name
    for role, side in sides.items():
        contract_of_all = table_for(task, role)
        find = Finder(side.schema, role, options.columns)
        columns = {column.name: column for column in contract_of_all.columns}
        own_names = {n: find.find(columns[n]) for n in contract_of_all.id_columns if n in columns}
        input_columns[role] = {name: mine for name, mine in own_names.items() if mine is not None}
        problems += find.problems
    names = [
        name
        for name in sides[first].table.id_columns
        if all(name in own for own in input_columns.values())
    ]
    has_id = [datum in side.naming.exprs for side in sides.values()]
    if not names or any(has_id) != all(has_id):
        return
    if all(has_id):
        of_ids = {role: side.naming.exprs[datum].meta.root_names() for role, side in sides.items()}
        names = [
            name
            for name in names
            if not any(input_columns[role][name] in of_ids[role] for role in sides)
        ]
        if not names or not any(map(_repeat, sides.values())):
            return
    refuse([problem for problem in problems if problem.column in names], {})
    for role, side in sides.items():
        naming = side.naming
        own = [input_columns[role][name] for name in names]
        dtypes_of = [[one.schema[input_columns[r][n]] for r, one in sides.items()] for n in names]
        pieces = [
            _part(pl.col(mine), side.schema[mine], dtypes)
            for mine, dtypes in zip(own, dtypes_of, strict=True)
        ]
        if datum in naming.exprs:
            pieces.insert(0, naming.exprs[datum].cast(pl.String))
            own = [*naming.exprs[datum].meta.root_names(), *own]
        composite = pl.concat_str(pieces, separator=_BETWEEN)
        if not all(has_id):  # else the column of ids has these forms
            column = next(one for one in table_for(task, role).columns if one.name == datum)
            forms = [one for one in options.id_format or () if keeps_parts(one)]
            composite = formed(composite, pl.String(), side.table, column, forms)
        naming.exprs[datum] = composite.alias(datum)
        naming.problems[:] = [one for one in naming.problems if one.column != datum]
        columns_of_id = " and ".join(map(repr, own))
        if unnamed and not _identifies(side):
            del naming.exprs[datum]
            message = (
                f"table: rows have no {datum}, and {columns_of_id} do not identify them: they are"
                " matched with rows of other runs in their order."
            )
            naming.notes.append(Note("ids_repeat", message))
            continue
        message = f"{role.replace('_', ' ')}: {datum} is made of {columns_of_id}."
        naming.notes.append(Note("ids_together", message))
        rest = [mine for name, mine in input_columns[role].items() if name not in names]
        if not all(has_id) and rest and _repeat(side):
            first_names, second = (listing(columns) for columns in (own, rest))
            raise InputError(
                f"{role.replace('_', ' ')}: several rows have one {first_names}, and the other"
                f" table has no {second}. Join the ground truths to the predictions by"
                f" {first_names}, and give one table of both.",
                code="ids_differ",
                side=role,
            )


def _part(values: pl.Expr, own: pl.DataType, dtypes: Sequence[pl.DataType]) -> pl.Expr:
    """Write a part of ids as text; times in the dtype that the ground truths have.

    Values that this dtype cannot represent keep their text, as do all if the dtypes are equal.

    Args:
        own: dtype of the values.
        dtypes: of this part in all tables, ground truths last.
    """
    text = values.cast(pl.String)
    time_dtypes = [one for one in reversed(dtypes) if isinstance(one, (pl.Date, pl.Datetime))]
    if not time_dtypes or own == time_dtypes[0]:
        return text
    zone = getattr(time_dtypes[0], "time_zone", None)
    if isinstance(own, TEXT_DTYPES):
        own = pl.Datetime("ns", zone)
        values = text.map_batches(lambda batch: instants(batch, zone), own, is_elementwise=True)
    elif not isinstance(own, (pl.Date, pl.Datetime)) or (zone is None) != (
        getattr(own, "time_zone", None) is None
    ):
        return text
    elif isinstance(own, pl.Datetime) and zone is not None:
        own = pl.Datetime(own.time_unit, zone)
        values = values.dt.convert_time_zone(zone)
    same = values.cast(time_dtypes[0], strict=False)
    exact = same.cast(own, strict=False) == values
    return pl.when(exact).then(same.cast(pl.String)).otherwise(text)


def _identifies(side: Side) -> bool:
    """Return whether every row of a table has an id, and no key repeats."""
    ids = side.source.frame.select(side.naming.exprs[side.table.datum].is_null().any())
    return not ids.collect().item() and not _repeat(side)


def _repeat(side: Side) -> bool:
    """Return whether the key of a table repeats."""
    exprs = side.naming.exprs
    key = [exprs[name] for name in side.table.key if name in exprs]
    rows = side.source.frame.select(pl.struct(key).is_duplicated().any())
    return bool(rows.collect().item())


# Selection of geometry columns to read: only boxes if boxes are compared.
#
# Reading and decoding masks costs far more than all other steps. The geometry of each row is
# chosen when rows are encoded, since rows may differ.

POINTS = KEYPOINTS.name
"""Value of ``iou_type`` for keypoints."""
_OWN = (
    (
        KEYPOINTS.name,
        (KEYPOINTS.name, NUM_KEYPOINTS.name, HEAD_SIZE.name),
        (POINTS,),
        "keypoints",
        "Expected a list column keypoints (x, y, visibility of each), or columns x_1, y_1, v_1, "
        "x_2, ...",
    ),
    (
        BOX3D.name,
        (BOX3D.name, *(column.name for column in OF_SOLIDS)),
        IOU_TYPES,
        "3-D boxes",
        "Expected a list column box3d (cx, cy, cz, length, width, height, yaw), or a column of "
        "each.",
    ),
)
"""Geometry that cannot be converted: its column, columns read with it, its ``iou_type``, and its
name in messages.
"""
_WHOLE = {*CORNER_NAMES, *SHAPED_NAMES, KEYPOINTS.name, BOX3D.name}
"""Columns of whole objects."""

DISTANCE = "distance"
"""Value of ``iou_type`` for nuScenes' distance of centres."""
_OFTEN_OTHERS = {OCCLUDED.name, TRUNCATED.name, ALPHA.name}
"""Columns that many tables use with other meanings, such as flags; not read in that case."""


def only_keypoints(inputs: Inputs, task: str, options: Options) -> bool:
    """Return whether both sides have keypoints, and one of them no other geometry.

    COCO files may have keypoints that were not read.
    """
    without_others = False
    for role in (PREDICTIONS, GROUND_TRUTHS):
        table = tables.contracts(task).get(role)
        if table is None or table.shape != "boxes" or role not in inputs.schemas:
            return False
        schema = inputs.schemas[role]
        exprs = recognise(
            schema, table, options.columns, options.box_format, options.angle_format
        ).exprs
        if POINTS not in exprs and inputs.sources[role].format != "coco":
            return False
        without_others |= POINTS in exprs and exprs.keys().isdisjoint(
            (*CORNER_NAMES, *SHAPED_NAMES)
        )
    return without_others


def leave_unread(tables: Mapping[str, Side], options: Options) -> None:
    """Remove polygons and masks from the columns to read if boxes are compared and all rows have
    one.

    Args:
        tables: their namings are modified in place.
    """
    if "boxes" not in {*map(attrgetter("table.shape"), tables.values())}:
        return
    sides = {
        role: tables[role].naming
        for role in (PREDICTIONS, GROUND_TRUTHS)
        if role in tables and tables[role].table.shape == "boxes" and tables[role].naming.exprs
    }
    for naming in sides.values():
        _drop_problems(naming, _OFTEN_OTHERS)
    if _select_geometry(sides, options):
        return
    by_boxes = options.iou_type == "bbox" or options.convert_to == "box"
    if by_boxes:
        for naming in sides.values():
            _drop_problems(naming, {ANGLE.name})
    chosen = options.iou_type is not None or options.convert_to is not None
    shapes: dict[str, list[str]] = {}  # whole objects other than boxes, readable or not
    for role, naming in sides.items():
        columns = {*naming.exprs, *map(attrgetter("column"), naming.problems)}
        shapes[role] = [*filter(columns.__contains__, SHAPED_NAMES)]
    if not any(shapes.values()) or not (by_boxes if chosen else not all(shapes.values())):
        return
    for role, naming in sides.items():
        present = shapes[role]
        if not present or not {*CORNER_NAMES} <= naming.exprs.keys():
            continue
        if _every_row_has_a_box(tables[role].source.frame, naming):
            _drop_columns(naming, GEOMETRY_NAMES)
            _drop_problems(naming, {*GEOMETRY_NAMES})
            if not chosen:
                other = next(name for name in sides if name != role)
                message = (
                    f"boxes are compared, since the {other.replace('_', ' ')} have only boxes;"
                    f" column {present[0]!r} of the {role.replace('_', ' ')} is not read."
                )
                naming.notes.append(Note("geometry", message))


def _select_geometry(sides: Mapping[str, Naming], options: Options) -> bool:
    """Drop geometry that cannot be converted unless it is compared; return True if it is."""
    gone = GEOMETRY_NAMES if options.iou_type == POINTS else (*GEOMETRY_NAMES, *BOX_NAMES)
    special = options.iou_type in (POINTS, *IOU_TYPES)
    for naming in sides.values() if special and options.iou_type != POINTS else ():
        _drop_problems(naming, {ANGLE.name, BBOX.name, *gone})
    for name, members, iou_types, what, needed in _OWN:
        selected = options.iou_type in iou_types
        for role, naming in sides.items():
            present = name in {*naming.exprs, *map(attrgetter("column"), naming.problems)}
            others = _WHOLE - {name}
            if options.iou_type == DISTANCE and any(
                one.kind == FRONT_UNKNOWN for one in naming.notes
            ):
                message = "corners do not show the front of a box, which"
                message += f" {option('iou_type', DISTANCE)} needs. Give centre, extent and yaw."
                naming.problems.append(Problem(role, name, message, kind="front_unknown"))
            if selected and not present and not naming.problems:
                message = (
                    f"no {what}, which {option('iou_type', options.iou_type)} compares. {needed}"
                )
                message += f" If it has another name, write {option('columns', {'mine': name})}."
                naming.problems.append(Problem(role, name, message, kind="geometry_missing"))
            elif present and not selected and not others & naming.exprs.keys():
                message = f"{what} and no boxes, polygons or masks: write"
                message += (
                    f" {' or '.join(option('iou_type', one) for one in iou_types)} to compare"
                )
                naming.problems.append(
                    Problem(role, name, f"{message} them.", kind="iou_type_missing")
                )
                if name == BOX3D.name:
                    own_problems = [one for one in naming.problems if one.column == name]
                    naming.problems = own_problems  # missing boxes in pixels are reported
            if not selected:
                if others & naming.exprs.keys():
                    _drop_problems(naming, {*members})
                if name == BOX3D.name:
                    naming.notes[:] = [one for one in naming.notes if one.kind != FRONT_UNKNOWN]
                _drop_columns(naming, members)
    for naming in sides.values() if special else ():
        if options.iou_type in IOU_TYPES and {"ymin", "ymax"} <= naming.exprs.keys():
            seen = (naming.exprs["ymax"] - naming.exprs["ymin"]).abs()
            naming.exprs.setdefault(HEIGHT_2D.name, seen.alias(HEIGHT_2D.name))
        _drop_columns(naming, gone)
    return special


def _every_row_has_a_box(frame: pl.LazyFrame, naming: Naming) -> bool:
    corners = [naming.exprs[name].is_null().any() for name in CORNER_NAMES]
    try:
        missing: bool = frame.select(pl.any_horizontal(corners)).collect().item()
    except READ_FAILURES:
        return True  # errors are reported when the rows are read
    return not missing


def _drop_columns(naming: Naming, names: tuple[str, ...]) -> None:
    """Remove columns from those recognised, so that they are neither read nor reported."""
    gone = set(names)
    for name in names:
        naming.exprs.pop(name, None)
    naming.recognised = {
        mine: canonical
        for mine, canonical in naming.recognised.items()
        if not set(canonical.split(", ")) & gone
    }


def _drop_problems(naming: Naming, columns: set[str]) -> None:
    """Drop the problems of columns that are not read."""
    if naming.problems:
        naming.problems = [one for one in naming.problems if one.column not in columns]


# Steps before reading rows: recognise columns, plan conditions and slices.


def prepare(inputs: Inputs, task: str, options: Options) -> Prepared:
    """Columns recognised, slices and conditions planned: all that is done before rows are read."""
    inputs, options = rewritten(inputs, task, options)
    sides = _recognised(inputs, task, options)
    table = sides[TABLE if TABLE in sides else PREDICTIONS].table
    plan = SlicePlan(nouns=DatumNouns(table.datum, *table.unit))
    if options.columns_of_datums:
        plan = plan_slices(options.by, sides, plan.nouns, options.cluster)
    where: dict[str, Condition] = {}
    if options.where:
        tables = {role: side for role, side in sides.items() if role != LABELS}
        where = plan_where(options.where, tables, tuple(plan.homes))
    return Prepared(sides, plan, where)


def rewritten(
    inputs: Inputs, task: str, options: Options, *, of_part: bool = False
) -> tuple[Inputs, Options]:
    """Rewrite tables before columns are recognised: tags to spans, regions to lists of datums.

    Args:
        inputs: what was opened.
        task: what reads them.
        options: the options.
        of_part: whether these are of a plan or a part, which have lists of regions in any case.

    Returns:
        inputs and options; those given if the task has nothing to rewrite.
    """
    by_role = contracts(task)
    if any(map(attrgetter("tags"), by_role.values())):  # most calls enter no more code
        from .sources.tags import with_spans

        for role, source in inputs.sources.items():
            for column, dtype in inputs.schemas[role].items():
                if isinstance(dtype, pl.List) and element(dtype).is_integer():
                    names = classes_in(source, column) or ()
                    if "O" in names:  # tags as numbers
                        source.frame = source.frame.with_columns(
                            name_of_class(column, dtype, names)
                        )
                        inputs.schemas[role][column] = pl.List(pl.String())
        inputs, options = with_spans(inputs, by_role, options)
    if REGION_TABLE in by_role and GROUND_TRUTHS in inputs.sources:
        inputs = with_regions(inputs, by_role, options, always=of_part)
    return inputs, options


def early_notes(
    ready: Prepared, options: Options, frames: Mapping[str, pl.DataFrame] | None = None
) -> list[Note]:
    """Return the notes on columns, and on integers that floats cannot represent.

    Raises:
        InputError: columns suggest another task than the inferred one.
    """
    sides = ready.sides
    task = sides[TABLE if TABLE in sides else PREDICTIONS].table.task
    of_rules: list[Note] = []
    problems: list[Problem] = []
    for side in sides.values():
        schema, naming = side.schema, side.naming
        if (
            naming.constant is not None
            or pl.List in schema.values()
            or not values.NAMED.isdisjoint(map(str.casefold, schema))
            or ("prediction" in naming.exprs and len(schema) > len(naming.exprs))
        ):
            active, evidence_values = values.evidence_of(ready, options)
            of_rules, problems = rules.apply(values.RULES, task, active, evidence_values)
            break
    if PREDICTIONS in sides and GROUND_TRUTHS in sides and not problems:
        signals, evidence = columns.evidence_of(ready, options)
        if evidence is not None:
            rule_notes, problems = rules.apply(columns.RULES, task, signals, evidence)
            of_rules += rule_notes
    elif TABLE in sides and not problems and len(schema) > len(naming.exprs):
        rule_notes, problems = columns.differing_pairs(ready, options)
        of_rules += rule_notes
    if problems:
        refuse(problems, {role: side.source.description for role, side in sides.items()})
    notes: list[Note] = []
    unread_columns: list[Note] = []
    several = wide = False
    named = {*ready.plan.homes}
    for condition in ready.where.values():
        named.update(condition.names)
    for side in sides.values():
        notes += side.source.notes
        several |= max(len(side.source.firsts), len(side.source.files)) > 1
        wide |= not _WIDE.isdisjoint(side.schema.values())
        if side.table.unread or side.table.wide or len(side.schema) > len(side.naming.exprs):
            unread_columns += unread(side, named, options.columns)
    notes.sort(key=lambda note: not note.warning)
    notes += [*unread_columns, *of_rules]
    if several:
        notes += overlapping(sides)
    if PREDICTIONS in sides and GROUND_TRUTHS in sides and sides[PREDICTIONS].source.files:
        notes += same_file(sides, ready.where)
    if wide:
        notes += rounded(sides, ready.where, frames)
    if DATUMS in sides and not ready.where:
        notes += without_predictions(sides, frames)
    if options.task is None:
        notes += maybe_scores(sides, tuple(ready.plan.homes))
        notes += inferred_note(sides) if options.metrics is None else []
    return notes


def _recognised(inputs: Inputs, task: str, options: Options) -> dict[str, Side]:
    """Recognise the columns of every table, against its contract."""
    for name, forms in (("id_format", options.id_format), ("label_format", options.label_format)):
        if forms:
            check_forms(name, forms)
    sides: dict[str, Side] = {}
    for role, source in inputs.sources.items():
        schema = inputs.schemas[role]
        typed = schema
        table = contracts(task).get(role)
        if table is not None and table.unpivoted and options.value_columns is None:
            typed = schema | dict.fromkeys(marked_numbers(source.frame, schema), pl.Float64())
        sides[role] = Side(source, contract(task, role, options, typed), schema)
    if options.columns:
        schemas = {role: (side.schema, side.table) for role, side in sides.items()}
        check_columns(options.columns, schemas)
    if options.score_columns is not None and not any(s.table.wide for s in sides.values()):
        raise InputError(
            f"score_columns: {task} has none; omit the option.",
            code="option_unfit",
            option="score_columns",
        )
    for side in sides.values():
        side.naming = _naming(side, options)
    for side in sides.values():
        sizes = side.source.footprints
        if sizes and (names := sorted(side.naming.used & sizes.keys())):
            refuse_expanding(inputs.room, map(sizes.__getitem__, names), side.source.description)
    again, labelled = set(), 0
    for role, side in sides.items():
        if side.naming.problems and reread(side):
            again.add(role)
        labelled += len(side.naming.exprs.keys() & LABEL_COLUMNS)
    if labelled > 1:
        again |= named_classes(sides)
    for role in again:
        sides[role].naming = _naming(sides[role], options)
    for role, side in sides.items():
        for i, problem in enumerate(side.naming.problems):
            if problem.kind == "column_missing":
                if all(map(like_data, side.naming.used)):
                    side.naming.problems[i] = problem.extended(headless([role], inputs))
                break
    if options.nulls == "empty":
        for side in sides.values():
            _fill_texts(side)
    one_way(sides, by_rule=options.match is not None)
    make_composite_ids(task, sides, options, matched=inputs.matched)
    if options.training is not None:
        step_columns(task, sides, options)
    if PREDICTIONS in sides and GROUND_TRUTHS in sides:
        point_out_swap(sides)
    leave_unread(sides, options)
    if TABLE in sides and DATUMS in sides:
        datum = sides[TABLE].table.datum
        if datum not in sides[TABLE].naming.exprs:
            raise InputError(
                f"datums: the table has no {datum}. Add it, or name its column: "
                f"{option('columns', {'mine': datum})}.",
                code="no_id",
                column=datum,
            )
    for side in sides.values():
        if options.id_format:
            refuse_merged(side.source.frame, side.naming.exprs, side.table, options.id_format)
        if wide := side.naming.wide:
            optional = (*side.table.optional, *wide)
            side.table = msgspec.structs.replace(side.table, optional=optional)
    return sides


def _fill_texts(side: Side) -> None:
    """Read nulls in columns of texts as empty texts."""
    for column in side.table.columns:
        expr = side.naming.exprs.get(column.name)
        if column.kind not in TEXTS or expr is None:
            continue
        (original,) = expr.meta.root_names()
        if isinstance(canonical_dtype(column, side.schema[original]), pl.List):
            empty = pl.lit([""], dtype=pl.List(pl.String))
            expr = expr.list.eval(pl.element().fill_null("")).fill_null(empty)
        else:
            expr = expr.fill_null("")
        side.naming.exprs[column.name] = expr


def _naming(side: Side, options: Options) -> Naming:
    """Recognise a table's columns; a table without columns is an empty side."""
    if not side.schema and side.table.side in (PREDICTIONS, GROUND_TRUTHS):
        return Naming()
    return recognise(
        side.schema,
        side.table,
        options.columns,
        options.box_format,
        options.angle_format,
        options.score_columns,
        options.id_format,
        options.label_format,
        [name for entry in options.columns_of_datums for name in split(entry, side.schema)],
    )
