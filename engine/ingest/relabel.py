"""Label maps, and their application to both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.contract import DEFAULT_LABEL_KEY, GROUND_TRUTHS, LABELS, PREDICTIONS, TABLE
from ..schemas.errors import InputError, OptionError, ReadError, did_you_mean
from . import both_sides, dtypes
from .both_sides import LABEL_COLUMNS
from .files import Source
from .problems import Note, count_of, listing
from .recognise import Side
from .sources.formats import explain
from .sources.table_formats import Names, of_schema
from .sources.tables import READ_FAILURES, local_path, open_source

# Label maps: every way of writing one becomes one table of four columns.

COLUMNS = ("label_key", "label_value", "new_label_key", "new_label_value")
_WAYS = (
    "Write {'van': 'car'}, {('class', 'van'): ('kind', 'car')}, 'van=car', 'class:van=kind:car', or"
    " give a table with label_value and new_label_value (label_key, new_label_key)."
)
Entry = tuple[str | None, Any, str | None, Any]


def read_label_map(label_map: Any) -> pl.DataFrame:
    """Parse a label map in any form to a table.

    Args:
        label_map: a dict of value or (key, value) to value or (key, value); a list of such pairs
            (Valor's ``[[["k", "v"], ["k", "v"]], ...]``); strings ``van=car`` or
            ``class:van=kind:car``, one or a list; a path to JSON, CSV or Parquet, or a table, with
            the columns label_value and new_label_value and optionally label_key and new_label_key.

    Returns:
        label_key, label_value, new_label_key, new_label_value; a null key means any key, a null new
        key means no change.

    Raises:
        InputError: an unknown form, or one label mapped to two.
    """
    entries = _entries(_loaded(label_map))
    if entries is None:
        frame = _from_table(label_map)
    else:
        _one_type([value for _, value, _, _ in entries], "mapped")
        _one_type([value for _, _, _, value in entries], "new")
        data = {name: [entry[place] for entry in entries] for place, name in enumerate(COLUMNS)}
        text = {"label_key": pl.String, "new_label_key": pl.String}
        frame = pl.DataFrame(data, schema_overrides=text)
    return _without_contradiction(frame)


def _loaded(label_map: Any) -> Any:
    """Return the content of a JSON file other than a table; other values unchanged."""
    path = local_path(label_map)
    if path is None or path.suffix.lower() != ".json" or not path.is_file():
        return label_map
    try:
        content = msgspec.json.decode(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReadError(
            f"label_map ({path}): not JSON that can be read: {error}.",
            code="file_malformed",
            file=str(path),
        ) from None
    records = isinstance(content, list) and all(isinstance(row, dict) for row in content)
    return label_map if records else content


def _entries(label_map: Any) -> list[Entry] | None:
    """Forms in Python as entries; None for a table or a path."""
    if isinstance(label_map, str):
        return [_from_text(label_map)] if "=" in label_map else None
    if isinstance(label_map, Mapping):
        return [(*_label(old, truth=True), *_label(new)) for old, new in label_map.items()]
    if isinstance(label_map, Sequence):
        return [_from_item(item) for item in label_map]
    return None


def _refused(value: Any, why: str) -> OptionError:
    message = f"label_map: {value!r} {why}. {_WAYS}"
    return OptionError(message, code="option_value", option="label_map", value=value)


def _from_item(item: Any) -> Entry:
    if isinstance(item, str):
        return _from_text(item)
    if isinstance(item, Sequence) and len(item) == 2:
        return (*_label(item[0], truth=True), *_label(item[1]))
    raise _refused(item, "is not a pair of labels")


def _from_text(text: str) -> Entry:
    old, separator, new = text.partition("=")
    if not separator or not old.strip() or not new.strip():
        raise _refused(text, "is not a mapping")
    return (*_keyed(old.strip()), *_keyed(new.strip()))


def _keyed(text: str) -> tuple[str | None, str]:
    key, separator, value = text.partition(":")
    return (key, value) if separator else (None, text)


def _label(label: Any, *, truth: bool = False) -> tuple[str | None, Any]:
    """A value, or a (key, value) pair; with ``truth`` true and false count as 1 and 0."""
    value = label
    if isinstance(label, (list, tuple)):
        key, value = (label[0], label[1]) if len(label) == 2 else (None, None)
        if isinstance(key, str) and _plain(value):
            return key, value
    elif truth and isinstance(value, bool):
        return None, int(value)
    elif _plain(value):
        return None, value
    raise _refused(label, "is neither a value nor a (key, value) pair")


def _plain(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _one_type(values: list[Any], which: str) -> None:
    if len({isinstance(value, str) for value in values}) > 1:
        text = next(value for value in values if isinstance(value, str))
        number = next(value for value in values if not isinstance(value, str))
        raise OptionError(
            f"label_map: {which} labels are partly strings, partly integers ({text!r}, {number!r})."
            " Write all in the type the tables have.",
            code="types_mixed",
            option="label_map",
            values=[text, number],
        )


def _from_table(thing: Any) -> pl.DataFrame:
    source = open_source(thing)
    try:
        frame = source.frame.collect()
    except READ_FAILURES as error:
        raise explain(source, error) from error
    missing = [name for name in ("label_value", "new_label_value") if name not in frame.columns]
    if missing:
        raise InputError(
            f"label_map ({source.description}): column {missing[0]!r} is missing."
            f"{did_you_mean(missing[0], frame.columns)} Columns there:"
            f" {', '.join(frame.columns) or 'none'}. {_WAYS}",
            code="column_missing",
            column=missing[0],
        )
    columns = []
    for name in COLUMNS:
        if name not in frame.columns:
            columns.append(pl.lit(None, pl.String).alias(name))
            continue
        dtype = frame.schema[name]
        text = name.endswith("key")
        if not (isinstance(dtype, dtypes.TEXTS) or dtype.is_integer() or dtype == pl.Null):
            raise InputError(
                f"label_map ({source.description}): column {name!r} has dtype {dtype}; labels are"
                " integers or strings."
            )
        columns.append(
            pl.col(name).cast(pl.Int64 if dtype.is_integer() and not text else pl.String)
        )
    result = frame.select(columns)
    holes = result.filter(pl.col("label_value").is_null() | pl.col("new_label_value").is_null())
    if holes.height:
        raise InputError(
            f"label_map ({source.description}): {count_of(holes.height, 'row')} without a"
            " label_value or new_label_value. Fill or remove them.",
            code="null_values",
            count=holes.height,
        )
    return result


def _without_contradiction(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.select(COLUMNS).unique(maintain_order=True)
    twice = frame.filter(pl.struct("label_key", "label_value").is_duplicated())
    if twice.height:
        _, value, _, _ = twice.row(0)
        new = twice.filter(pl.col("label_value") == value)["new_label_value"].to_list()
        raise InputError(
            f"label_map: label {value!r} is mapped to several labels: {listing(new)}. Keep one.",
            code="map_contradicts",
            value=value,
            labels=new,
        )
    return frame


# Label maps applied to the distinct labels of each side; labels read by names of classes.


def hold_labels(
    frames: dict[str, pl.DataFrame], label_map: Any, pairs: Mapping[str, pl.DataFrame] | None = None
) -> tuple[dict[str, pl.DataFrame] | None, list[Note]]:
    """Check the labels of all tables against each other, after the label map.

    Args:
        frames: side to its frame; labels change only if the map unifies integers and strings.
        pairs: side to its distinct (label_key, label_value), if the frames are part of a larger
            input; by default of the frames.

    Returns:
        Side to the new value of each of its labels, if any change; notes.
    """
    keyed = {role for role, frame in frames.items() if "label_key" in frame.columns}
    if label_map is None:
        both_sides.check_kinds(frames, both_sides.LABEL_COLUMNS)
        pairs = pairs or both_sides.side_pairs(frames)
        if LABELS in pairs:
            pairs = _under_every_key(pairs, frames)
        missing = both_sides.missing_notes(frames, pairs)
        return None, both_sides.label_notes(pairs, keyed) + missing
    for role, name in both_sides.places(frames, both_sides.LABEL_COLUMNS):
        dtype = frames[role].schema[name]
        if dtypes.inner_of(dtype) == pl.Boolean:
            integer_dtype = dtypes.like(dtype, pl.Int64())
            frames[role] = frames[role].with_columns(pl.col(name).cast(integer_dtype))
    if not pairs:
        pairs = both_sides.side_pairs(frames)
    else:
        flag = pl.col(pl.Boolean).cast(pl.Int64)
        pairs = {side: frame.with_columns(flag) for side, frame in pairs.items()}
    entries = read_label_map(label_map)
    if LABELS in pairs:
        pairs = _under_every_key(pairs, frames, entries["new_label_key"])
    mapping, notes = relabel(entries, pairs)
    if TABLE in frames:
        _same_keys(mapping)
    after = {
        role: table.select(label_key="new_label_key", label_value="new_label_value").unique(
            maintain_order=True
        )
        for role, table in mapping.items()
    }
    notes += both_sides.label_notes(after, keyed)
    changed = {
        role: table.filter(pl.col("label_value") != pl.col("new_label_value"))["label_value"]
        for role, table in mapping.items()
        if table.schema["label_value"] == table.schema["new_label_value"]
    }
    notes += both_sides.missing_notes(frames, pairs, changed)
    if len({frame.schema["label_value"] for frame in pairs.values()}) == 1:
        return mapping, notes
    for role, name in both_sides.places(frames, both_sides.LABEL_COLUMNS):
        if role == both_sides.SCORES or (role == LABELS and "label_key" not in frames[role]):
            # They apply to every key; the map of the first key decides.
            first = mapping[LABELS if role == LABELS else PREDICTIONS]
            first = first.unique("label_value", keep="first", maintain_order=True)
            plain = first.with_columns(
                pl.lit(DEFAULT_LABEL_KEY).alias(key) for key in ("label_key", "new_label_key")
            )
            frames[role] = _with_new_labels(frames[role], name, plain)
        else:
            side = both_sides.SIDE_OF.get(name, role)
            frames[role] = _with_new_labels(frames[role], name, mapping[side])
    return None, notes


def _under_every_key(
    pairs: Mapping[str, pl.DataFrame], frames: Mapping[str, pl.DataFrame], *new: pl.Series
) -> Mapping[str, pl.DataFrame]:
    """Return the labels with declared ones, if they have no key, under every key of the rows.

    Args:
        new: keys of a label map.
    """
    if LABELS not in frames or "label_key" in frames[LABELS].columns:
        return pairs
    keys = [frame["label_key"] for side, frame in pairs.items() if side != LABELS]
    for side in (PREDICTIONS, GROUND_TRUTHS):
        if side in frames and side not in pairs:  # label maps
            has_keys = "label_key" in frames[side].columns
            keys.append(frames[side]["label_key"] if has_keys else pl.Series([DEFAULT_LABEL_KEY]))
    if not any(map(len, keys)):
        return pairs
    every = pl.concat([key.cast(pl.String) for key in (*keys, *new)]).drop_nulls().unique().sort()
    values = pairs[LABELS].select("label_value")
    return {**pairs, LABELS: every.to_frame("label_key").join(values, how="cross")}


def new_labels(label_map: Any, pairs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the labels of all sides after a label map that unifies integers and strings."""
    flag = pl.col(pl.Boolean).cast(pl.Int64)
    pairs = {side: frame.with_columns(flag) for side, frame in pairs.items()}
    mapping, _ = relabel(read_label_map(label_map), pairs)
    tables = [
        table.select(label_key="new_label_key", label_value="new_label_value")
        for side, table in mapping.items()
        if side != LABELS
    ]
    return pl.concat(tables).unique()


def renamed(
    frames: dict[str, pl.DataFrame], label_map: Any
) -> tuple[dict[str, pl.DataFrame], list[Note]]:
    """Rename the labels of tables; also return notes on mapped labels that do not occur."""
    mapping, notes = relabel(read_label_map(label_map), both_sides.side_pairs(frames))
    return {
        role: _with_new_labels(frame, "label_value", mapping[role]) if role in mapping else frame
        for role, frame in frames.items()
    }, notes


def _same_keys(mapping: Mapping[str, pl.DataFrame]) -> None:
    """Refuse new label keys in a single table, whose rows share one key for both sides."""
    for table in mapping.values():
        moved = table.filter(pl.col("label_key") != pl.col("new_label_key"))
        if moved.height:
            key, value, new, _ = moved.row(0)
            raise InputError(
                f"label_map: label {value!r} moves from label_key {key!r} to {new!r}, but in one "
                "table both sides of a row share their label_key. Map only values, or give two "
                "tables.",
                code="map_moves_keys",
                value=value,
            )


def _with_new_labels(frame: pl.DataFrame, column: str, mapping: pl.DataFrame) -> pl.DataFrame:
    """Replace the labels of a table; a key column is added only if a key changed."""
    keyed = "label_key" in frame.columns
    changed = keyed or not (mapping["new_label_key"] == DEFAULT_LABEL_KEY).all()
    if isinstance(frame.schema[column], pl.List):
        return _with_new_lists(frame, column, mapping)
    key = pl.col("label_key") if keyed else pl.lit(DEFAULT_LABEL_KEY)
    mapping = mapping.rename({"label_value": column})
    joined = frame.with_columns(key.alias("label_key")).join(
        mapping, on=["label_key", column], how="left", maintain_order="left"
    )
    new = [pl.col("new_label_value").alias(column)]
    if changed:
        new.append(pl.col("new_label_key").alias("label_key"))
    order = frame.columns if keyed or not changed else [*frame.columns, "label_key"]
    return joined.with_columns(new).select(order)


def _with_new_lists(frame: pl.DataFrame, column: str, mapping: pl.DataFrame) -> pl.DataFrame:
    """Replace labels in lists: explode, rename, regroup."""
    keys = [name for name in ("label_key",) if name in frame.columns]
    lengths = frame[column].list.len()
    flat = frame.select(*keys, column).explode(column, empty_as_null=False, keep_nulls=False)
    renamed = _with_new_labels(flat, column, mapping)[column]
    row = pl.Series("row", np.repeat(np.arange(frame.height), lengths.to_numpy()))
    lists = renamed.to_frame().with_columns(row).group_by("row", maintain_order=True).agg(column)
    filled = pl.DataFrame({"row": np.arange(frame.height)}).join(
        lists, on="row", how="left", maintain_order="left"
    )[column]
    return frame.with_columns(filled.fill_null(pl.Series([[]], dtype=filled.dtype)))


def relabel(
    mapping: pl.DataFrame, pairs: Mapping[str, pl.DataFrame]
) -> tuple[dict[str, pl.DataFrame], list[Note]]:
    """Apply a label map to every label of every table.

    Returns:
        side to label_key, label_value, new_label_key, new_label_value, one row per label in the
        order given (unmapped ones unchanged); notes on mapped labels that no side has.
    """
    filled = {side: frame for side, frame in pairs.items() if frame.height}
    fitted = {side: _fitting(mapping, side, filled) for side in filled}
    if fitted and mapping.height and not any(frame.height for frame in fitted.values()):
        first = next(iter(filled.values()))["label_value"]
        raise InputError(
            f"label_map: it maps {dtypes.kind_of(mapping.schema['label_value'])}"
            f" ({listing(mapping['label_value'].to_list(), most=3)}), but the tables have"
            f" {dtypes.kind_of(first.dtype)} ({listing(first.to_list(), most=3)}). Write the labels"
            " in the tables' type.",
            code="types_differ",
            column="label_map",
        )
    outcome = {side: apply_label_map(fitted[side], frame) for side, frame in filled.items()}
    new = {side: frame["new_label_value"] for side, frame in outcome.items()}
    if len({dtypes.kind_of(values.dtype) for values in new.values()}) > 1:
        examples = "; ".join(
            f"{side.replace('_', ' ')} {dtypes.kind_of(values.dtype)}"
            f" ({listing(values.head(3).to_list())})"
            for side, values in new.items()
        )
        raise InputError(
            f"label_value: after the label map {examples}: they can never be equal. Map both sides"
            " to one type.",
            code="types_differ",
            column="label_value",
        )
    target = dtypes.common([values.dtype for values in new.values()] or [pl.Int64()])
    for side, frame in pairs.items():
        applied = outcome[side] if side in outcome else apply_label_map(mapping.clear(), frame)
        outcome[side] = applied.with_columns(pl.col("new_label_value").cast(target, strict=False))
    return outcome, _unused(mapping, list(filled.values()))


def _fitting(mapping: pl.DataFrame, side: str, filled: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the entries for a side; text entries become integers if its labels are integers.

    New labels become integers too, unless some side has strings.
    """
    kinds = {role: dtypes.kind_of(frame.schema["label_value"]) for role, frame in filled.items()}
    if dtypes.kind_of(mapping.schema["label_value"]) == kinds[side]:
        return mapping
    if kinds[side] == "strings":
        return mapping.clear()
    digits = r"^-?[0-9]{1,18}$"
    mapping = mapping.filter(pl.col("label_value").str.contains(digits)).with_columns(
        pl.col("label_value").cast(pl.Int64)
    )
    new = mapping["new_label_value"]
    if "strings" in kinds.values() or new.dtype != pl.String or not new.str.contains(digits).all():
        return mapping
    return mapping.with_columns(new.cast(pl.Int64))


def apply_label_map(mapping: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Apply a label map to one table's labels.

    An entry for the label's key takes precedence over one for any key; a label without an entry is
    unchanged.

    Returns:
        label_key, label_value, new_label_key, new_label_value, in the order given.
    """
    kind = pairs.schema["label_value"]
    if dtypes.kind_of(kind) != dtypes.kind_of(mapping.schema["label_value"]):
        mapping = mapping.clear()
    mapping = mapping.with_columns(pl.col("label_value").cast(kind, strict=False))
    exact = mapping.filter(pl.col("label_key").is_not_null())
    loose = mapping.filter(pl.col("label_key").is_null()).drop("label_key")
    joined = pairs.join(
        exact.with_columns(pl.lit(value=True).alias("__hit")),
        on=["label_key", "label_value"],
        how="left",
        maintain_order="left",
    ).join(
        loose.with_columns(pl.lit(value=True).alias("__loose")),
        on="label_value",
        how="left",
        maintain_order="left",
        suffix="_loose",
    )
    hit, loosely = pl.col("__hit").is_not_null(), pl.col("__loose").is_not_null()
    key = pl.when(hit).then("new_label_key").when(loosely).then("new_label_key_loose")
    value: pl.Expr = (
        pl.when(hit).then("new_label_value").when(loosely).then("new_label_value_loose")
    )
    new = mapping.schema["new_label_value"]
    left = joined.filter(~(hit | loosely)).height
    if dtypes.kind_of(new) == dtypes.kind_of(kind):
        value = pl.coalesce(value.cast(dtypes.common([new, kind])), pl.col("label_value"))
    elif left == joined.height:
        value = pl.col("label_value")
    elif left:
        unmapped = joined.filter(~(hit | loosely))["label_value"].to_list()
        raise InputError(
            f"label_map: it turns {dtypes.kind_of(kind)} into {dtypes.kind_of(new)}, but"
            f" {count_of(left, 'label')} {'is' if left == 1 else 'are'} not mapped:"
            f" {listing(unmapped)}. Map every label.",
            code="labels_not_mapped",
            count=left,
            labels=unmapped,
        )
    return joined.select(
        "label_key",
        "label_value",
        pl.coalesce(key, "label_key").alias("new_label_key"),
        value.alias("new_label_value"),
    )


def _unused(mapping: pl.DataFrame, pairs: list[pl.DataFrame]) -> list[Note]:
    notes = []
    values = {str(value) for frame in pairs for value in frame["label_value"].to_list()}
    keyed = {(key, str(value)) for frame in pairs for key, value in frame.iter_rows()}
    for key, value, _, _ in mapping.iter_rows():
        if (key, str(value)) in keyed or (key is None and str(value) in values):
            continue
        name = repr(value) if key is None else repr((key, value))
        hint = did_you_mean(str(value), sorted(values))
        notes.append(Note("label_map_unused", f"label_map: no side has the label {name}.{hint}", 0))
    return notes


_HEAD = 1 << 20  # bytes of an Arrow file in which its schema is looked for


def classes_of(source: Source) -> dict[str, Names]:
    """Names that a source brought along, or that its files have; empty if these differ."""
    if source.classes is None:
        source.classes = {}
        files = source.files if source.format in ("parquet", "ipc", "ipc_stream") else ()
        for file in files:
            names = _of_file(file, source.format)
            source.classes = source.classes or names
            if not source.classes:
                break
            source.classes = {
                column: first if names.get(column) == first else ()
                for column, first in source.classes.items()
            }
    return source.classes


def classes_in(source: Source, column: str) -> Names | None:
    """Names of the classes of a column of numbers; None without names.

    Raises:
        ReadError: files of the source have other names, or another order.
    """
    names = classes_of(source).get(column)
    if names == ():
        raise ReadError(
            f"{source.description}: the files have other names of classes in column {column!r}, or"
            " another order, so that their numbers mean different classes. Write the names in"
            " place of the numbers.",
            code="files_differ",
            column=column,
        )
    return names


def _of_file(file: str, form: str) -> dict[str, Names]:
    if form == "parquet":
        return of_schema(pl.read_parquet_metadata(file))
    return _of_arrow(file, stream=form == "ipc_stream")


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


def name_of_class(column: str, dtype: pl.DataType, names: Names) -> pl.Expr:
    """A column of class numbers, or lists of them, as names."""
    nested = isinstance(dtype, pl.List)
    value = pl.element() if nested else pl.col(column)
    places = list(range(len(names)))
    value = value.replace_strict(places, list(names), default=None, return_dtype=pl.String)
    return (pl.col(column).list.eval(value) if nested else value).alias(column)


def named_classes(sides: Mapping[str, Side]) -> set[str]:
    """Replace numbers of classes by their names, if other labels have names in another order.

    Names are used if two columns have different class names, or if another column contains strings.
    Numbers with the same names, or on only one side, stay numbers.

    Args:
        sides: schemas, frames and notes are modified in place.

    Returns:
        roles whose columns changed, so that they must be recognised again.
    """
    named: list[tuple[str, str, pl.DataType, Names]] = []
    texts, numbers, columns = False, [], 0
    for role, side in sides.items():
        exprs = side.naming.exprs
        for column in LABEL_COLUMNS if role != LABELS else ():
            for mine in exprs[column].meta.root_names() if column in exprs else ():
                dtype = side.schema[mine]
                inner = dtype.inner if isinstance(dtype, pl.List) else dtype
                columns += 1
                texts |= inner in (pl.String, pl.Categorical, pl.Enum)
                numbers += [(role, mine, dtype)] * inner.is_integer()
    for role, mine, dtype in numbers if columns > 1 else ():
        if names := classes_in(sides[role].source, mine):
            named.append((role, mine, dtype, names))
    if not named or not (texts or len(set(map(itemgetter(3), named))) > 1):
        return set()
    for role, mine, dtype, names in named:
        source = sides[role].source
        source.frame = source.frame.with_columns(name_of_class(mine, dtype, names))
        sides[role].schema[mine] = pl.List(pl.String()) if dtype == pl.List else pl.String()
        message = (
            f"{role.replace('_', ' ')}: numbers in column {mine!r} are read by the names of classes"
            f" that the table carries: {listing(names)}."
        )
        source.notes += (Note("class_names", message),)
    return {role for role, *_ in named}
