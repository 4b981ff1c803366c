"""Encoding helpers of all tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl

from ..geometry.columns import text_bytes, text_column
from ..ingest.dtypes import common
from ..ingest.frames import Frames
from ..ingest.ids import encode
from ..ingest.problems import count_of
from ..ingest.slices import slice_text
from ..kernels.datums import hash_integers, hash_texts
from ..kernels.language import hashed_words, split_sentences
from ..schemas.arrays import Array
from ..schemas.contract import DEFAULT_LABEL_KEY, GROUND_TRUTHS, PREDICTIONS, ROW, TABLE
from ..schemas.errors import N_EXAMPLES, InputError
from ..schemas.tuning import tuning
from ..tallies.datums import Datums, Labels

# Interface for running a function on ranges, possibly in parallel.

R = TypeVar("R")


class Workers(Protocol):
    """An executor as a task sees it."""

    def over(self, offsets: np.ndarray[Any, Any], function: Callable[[int, int], R]) -> list[R]:
        """Call ``function(first, last)`` on ranges of groups with CSR ``offsets``, in order."""
        ...

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """Run the calls and return their results in order."""
        ...

    def own(self) -> Workers:
        """Return workers for work after the run."""
        ...


def ragged(start: Array, length: Array) -> Array:
    """The integers of ranges, one after the other."""
    before = np.cumsum(length) - length
    return np.arange(int(length.sum())) + np.repeat(start - before, length)


def hashes_of(ids: pl.Series) -> Array:
    """Return hashes of ids, equal on both sides; nulls, reported later, have one too."""
    if ids.dtype.is_integer():
        wide = pl.UInt64() if ids.dtype == pl.UInt64 else pl.Int64()
        return hash_integers(ids.cast(wide).fill_null(0).to_numpy())
    data, offsets = text_bytes(ids.cast(pl.String).fill_null(""))
    return hash_texts(offsets, data)


# Words that decide whether a full stop ends an English sentence.

_TITLES = (
    "mr mrs ms mx dr prof rev hon st gen col maj capt lt cmdr sgt cpl pvt gov sen rep pres supt adm"
    " messrs mme mlle fr"
)
_ABBREVIATIONS = (
    "jr sr esq ph.d m.d b.a m.a b.sc m.sc d.c u.s u.k u.n e.u e.g i.e a.m p.m a.d b.c b.c.e c.e"
    " cf viz vs v etc al et.al resp approx ca est inc ltd co corp bros dept univ assn ave blvd rd"
    " mt ft sq pl jan feb apr jun jul aug sep sept oct nov dec tue tues thu thur thurs fri nos vol"
    " vols ed eds fig figs eq eqs sec ch chap pp p refs op cit ibid trans tel ext avg hr hrs oz lb"
    " lbs cm mm km kg ala ariz ark calif colo conn fla ga ind kan ky md mich minn mo mont neb nev"
    " okla pa penn tenn tex va vt wis wyo ont que"
)
_STARTERS = (
    "the he she it they we you i this that these those there here his her their our its my your in"
    " on at by for from with as if when while after before since during although though however"
    " moreover meanwhile but and so then what who why how where which one some many most all both"
    " each another no not a an also today yesterday now"
)

TITLES = hashed_words(tuple(_TITLES.split()))
"""Words that a name follows, so that their stop never ends a sentence."""
ABBREVIATIONS = hashed_words(tuple(_ABBREVIATIONS.split()))
"""Words written with a stop, without those that are words of their own more often."""
STARTERS = hashed_words(tuple(_STARTERS.split()))
"""Words that often begin a sentence: after an abbreviation, with a capital, they do."""


def sentences_of(texts: pl.Series) -> tuple[pl.Series, Array]:
    """Split English texts into sentences; also return their offsets per text, int64 [n + 1].

    See :func:`evalengine.kernels.language.split_sentences` for the rules. NLTK's Punkt, used by the
    reference, learned its abbreviations from newspapers; ours are a list.
    """
    data, start, text_start = split_sentences(*text_bytes(texts), ABBREVIATIONS, TITLES, STARTERS)
    return text_column(data, start), text_start


# Encoding shared by all tasks: datum ids and labels of all columns as dense codes.

_TELLING = (GROUND_TRUTHS, PREDICTIONS, TABLE)
"""Whose dataset counts first."""


def pop_column(frame: pl.DataFrame, name: str) -> pl.Series:
    """Remove a column from the frame, so that it and its array are not in memory together."""
    return frame.drop_in_place(name)


def pop_numbers(frame: pl.DataFrame, name: str) -> Array:
    """Same, as numbers, float64 [n]."""
    return pop_column(frame, name).cast(pl.Float64).to_numpy()


def pop_if_present(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """Same, or None if there is no such column."""
    return pop_column(frame, name) if name in frame.columns else None


def weights_of(frame: pl.DataFrame) -> Array | None:
    """Remove and return the weights of the rows, float64 [n], if there are any."""
    weight = pop_if_present(frame, "weight")
    return None if weight is None else weight.cast(pl.Float64).to_numpy()


def row_numbers(frame: pl.DataFrame) -> Array | None:
    """Remove and return row numbers in the whole input, int64 [n]; None if from 0 on."""
    rows = pop_if_present(frame, ROW)
    return None if rows is None else rows.to_numpy()


def row_of_datums(rows: Array | None, codes: Array | None, n: int, height: int) -> Array | None:
    """Return the first row of each datum in the single table.

    Args:
        rows: int64 [height], row numbers in the whole input; None if they count from 0.
        codes: int32 [height], datum of each row; None if row i is datum i.

    Returns:
        int64 [n], -1 for datums without a row; None if row i is datum i and there are no others.
    """
    if rows is None and codes is None:
        return None
    out = np.full(n, -1, np.int64)
    place = np.arange(height) if codes is None else codes
    number = np.arange(height) if rows is None else rows
    out[place[::-1]] = number[::-1]  # of several rows the first
    return out


def encode_labels(
    values: Sequence[pl.Series],
    keys: Sequence[pl.Series | None],
    frames: Frames,
    extra: pl.Series | None = None,
    extra_key: pl.Series | None = None,
    every_key: pl.Series | None = None,
) -> tuple[Labels, list[Array]]:
    """Code the labels of all columns, after mapping.

    Args:
        values: columns of label values, of one dtype (integer, String or Boolean).
        keys: label keys of their rows; None if all have the default key.
        frames: the tables, for their label map and declared labels.
        extra: label values that are not rows (columns of a wide table).
        extra_key: their label keys; None if all have the default key.
        every_key: label keys, which need not have a label, for declared labels.

    Returns:
        the labels; int32 codes of the rows of each column, then of ``extra`` if given.
    """
    dtype = values[0].dtype
    columns = [*values] if extra is None else [*values, extra.cast(dtype)]
    keys = [*keys] if extra is None else [*keys, extra_key]
    if dtype == pl.Boolean:
        columns = [column.cast(pl.UInt8) for column in columns]
    distinct, codes = encode(columns)
    if dtype == pl.Boolean:
        distinct = distinct.cast(pl.Boolean)
    if all(key is None for key in keys):
        key = pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String)
        pairs = pl.DataFrame([key.new_from_index(0, len(distinct)), distinct.alias("label_value")])
    else:
        pairs, codes = _with_keys(distinct, codes, keys)
    return _tabled(pairs, codes, frames, every_key)


def _with_keys(
    values: pl.Series, codes: list[Array], keys: Sequence[pl.Series | None]
) -> tuple[pl.DataFrame, list[Array]]:
    """Distinct (key, value) pairs and the codes of rows among them."""
    default = pl.Series("label_key", [DEFAULT_LABEL_KEY], dtype=pl.String)
    names, key_codes = encode(
        [
            default.new_from_index(0, code.size) if key is None else key
            for key, code in zip(keys, codes, strict=True)
        ]
    )
    joint = [k.astype(np.int64) * len(values) + v for k, v in zip(key_codes, codes, strict=True)]
    distinct, pair_codes = encode([pl.Series("pair", array) for array in joint])
    at = distinct.to_numpy()
    width = max(1, len(values))
    pairs = pl.DataFrame(
        {"label_key": names.gather(at // width), "label_value": values.gather(at % width)}
    )
    return pairs, pair_codes


def _tabled(
    pairs: pl.DataFrame, pair_codes: list[Array], frames: Frames, every_key: pl.Series | None
) -> tuple[Labels, list[Array]]:
    """The table of all labels, mapped and declared ones too, and codes into it."""
    key = ["label_key", "label_value"]
    if not frames.label_map and frames.all_labels is None and frames.labels is None:
        # These pairs are complete, unique and sorted by code.
        no_name = pl.Series("label_name", [None], dtype=pl.String)
        table = pairs.hstack([no_name.new_from_index(0, pairs.height)])
        return Labels.of(table, bare=False), pair_codes
    all_labels = frames.all_labels
    if all_labels is not None:
        dtype = common([one.schema["label_value"] for one in (pairs, all_labels)])
        pairs, all_labels = (one.cast({"label_value": dtype}) for one in (pairs, all_labels))
    mapped = mapped_labels(pairs, frames.label_map)
    every = mapped
    if all_labels is not None:
        every = pl.concat(
            [mapped.select(key), mapped_labels(all_labels, frames.label_map).select(key)]
        )
    declared = declared_labels(frames, every, "frequency", every_key=every_key)
    table = pl.concat([every.select(key), declared.select(key)]).unique().sort(key)
    code_of = table.with_row_index("code")
    joined = mapped.join(code_of, on=key, how="left", maintain_order="left")
    new = joined["code"].cast(pl.Int32).to_numpy()
    named = table.join(declared, on=key, how="left", maintain_order="left")
    if new.size and not (new == np.arange(new.size)).all():
        pair_codes = [new.take(codes) for codes in pair_codes]
    keyless = not every.height and declared.height > 0 and "label_key" not in frames.labels.columns  # type: ignore[union-attr]
    return Labels.of(named, bare=keyless), pair_codes


def mapped_labels(pairs: pl.DataFrame, maps: dict[str, pl.DataFrame] | None) -> pl.DataFrame:
    """Labels as the label map renames them, row by row."""
    if not maps:
        return pairs
    key = ["label_key", "label_value"]
    table = pl.concat(list(maps.values()), how="vertical_relaxed").unique(key)
    return (
        pairs.cast({"label_value": table.schema["label_value"]})
        .join(table, on=key, how="left", maintain_order="left")
        .select(
            pl.coalesce("new_label_key", "label_key").alias("label_key"),
            pl.coalesce("new_label_value", "label_value").alias("label_value"),
        )
    )


def declared_labels(
    frames: Frames, pairs: pl.DataFrame, *more: str, every_key: pl.Series | None = None
) -> pl.DataFrame:
    """Return declared labels, mapped like the rows, as label_key, label_value, label_name.

    Without a key, they are declared for every key.

    Args:
        frames: the tables, for declared labels and the label map.
        pairs: label_key and label_value of the rows.
        more: further columns of declared labels, kept if present.
        every_key: further keys.
    """
    key = ["label_key", "label_value"]
    schema: dict[str, Any] = {**pairs.select(key).schema, "label_name": pl.String}
    labels = frames.labels
    if labels is None or labels.is_empty():
        return pl.DataFrame(schema=schema)
    name = pl.lit(None, dtype=pl.String)
    if "label_name" in labels.columns:
        name = pl.col("label_name").cast(pl.String)
    value = pl.col("label_value")
    if not frames.label_map:
        value = value.cast(schema["label_value"])
    extra = [column for column in more if column in labels.columns]
    if "label_key" in labels.columns:
        table = labels.select("label_key", value, name.alias("label_name"), *extra)
    else:
        keys = pairs["label_key"] if every_key is None else pairs["label_key"].append(every_key)
        keys = keys.unique().sort()
        if keys.is_empty():
            keys = pl.Series("label_key", [DEFAULT_LABEL_KEY])
        table = labels.select(value, name.alias("label_name"), *extra)
        table = table.join(keys.to_frame(), how="cross").select(*key, "label_name", *extra)
    if frames.label_map:
        table = mapped_labels(table, frames.label_map).with_columns(
            pl.col("label_value").cast(schema["label_value"]),
            table["label_name"],
            *(table[one] for one in extra),
        )
    return table.unique(key, keep="first", maintain_order=True)


def declared_places(frames: Frames, labels: Labels, *more: str) -> pl.DataFrame | None:
    """Find each label among the declared ones; None if no labels were declared.

    Returns:
        a row per label, null for others: ``place`` among the declared labels, and ``more`` columns.
    """
    if frames.labels is None or frames.labels.is_empty():
        return None
    key = ["label_key", "label_value"]
    places = declared_labels(frames, labels.frame, *more).with_row_index("place")
    return labels.frame.select(key).join(places, on=key, how="left", maintain_order="left")


def declared_codes(frames: Frames, labels: Labels) -> Array | None:
    """Return a mask of the declared labels, bool [n_labels]; None without any."""
    table = declared_places(frames, labels)
    return None if table is None else table["place"].is_not_null().to_numpy()


def encode_datums(
    columns: list[pl.Series],
    frames: Frames,
    dataset: pl.DataFrame | None,
    roles: Sequence[str] = (),
) -> tuple[Datums, list[Array]]:
    """Code the datums of all id columns and of the table of datums.

    Args:
        columns: datum ids, of one dtype; the list is emptied to free each column once coded.
        frames: the tables, for the table of datums and slices.
        dataset: result of :func:`dataset_of`, called before ids are removed from the frames.
        roles: side of each column, whose rows the checks may have coded.
    """
    n_columns, id_codes = len(columns), frames.ids
    codes: list[Array] = []
    if id_codes is not None:
        for role, column in zip(roles, columns, strict=False):
            if (code := id_codes.of_rows(role, column)) is not None:
                codes.append(code)
    if id_codes is not None and len(codes) == n_columns:
        ids = id_codes.values
    else:
        if frames.datums is not None:
            columns.append(frames.datums["datum_id"].cast(columns[0].dtype))
        ids, codes = encode(columns, frames.bucket, used_up=True)
        codes = codes[:n_columns]
        ids = ids.alias("datum_id")
    columns.clear()
    aligned = _slices_of(ids, frames, codes[0])
    named = None
    if dataset is not None:
        joined = ids.to_frame().join(dataset, on="datum_id", how="left", maintain_order="left")
        named = joined["dataset"]
    keys = draw_keys(ids, aligned, frames.cluster) if frames.drawn else None
    return Datums(ids, aligned, named, keys=keys), codes


def encode_sides(
    frames: Frames, roles: Sequence[str] = (GROUND_TRUTHS, PREDICTIONS)
) -> tuple[Datums, list[Array]]:
    """Code the datums of two tables, whose ids are removed; codes are in the order of the roles."""
    dataset = dataset_of(frames)
    ids = [pop_column(frames.sides[role], "datum_id") for role in roles]
    return encode_datums(ids, frames, dataset, roles)


def _slices_of(ids: pl.Series, frames: Frames, code: Array) -> pl.DataFrame:
    """Return the slice columns of datums.

    Args:
        ids: of the datums.
        code: int32 [rows] of the first table, to which slices belong if ``frames.by_row``.
    """
    slices = frames.slices
    if slices is None:
        return pl.DataFrame({"datum_id": ids}).select()
    if frames.by_row:
        if code.size == len(ids) and (code == np.arange(code.size, dtype=code.dtype)).all():
            return slices  # row i is datum i
        row = np.full(len(ids), -1, np.int32)
        row[code] = np.arange(code.size, dtype=np.int32)
        at = pl.Series(row)
        if len(ids) > code.size:  # the table of datums has some without rows
            at = at.set(at < 0, None)
        return slices.select(pl.all().gather(at))
    keys = slices["datum_id"]
    if keys.dtype == ids.dtype and keys.equals(ids):  # a join of ids in order is dear all the same
        return slices.drop("datum_id")
    joined = ids.to_frame().join(slices, on="datum_id", how="left", maintain_order="left")
    return joined.drop("datum_id")


def draw_keys(ids: pl.Series, slices: pl.DataFrame, cluster: str | None) -> Array:
    """Return the keys of resampling weights, uint64 [n]: hashes of known clusters, else of ids.

    Args:
        ids: of the datums, or the numbers of their rows.
        slices: their slice columns, including the cluster's.
        cluster: its name; None to resample single datums.
    """
    keys = hashes_of(ids)
    if cluster is None:
        return keys
    named = slices[cluster].cast(pl.String)
    return np.where(named.is_not_null().to_numpy(), hashes_of(named), keys)


def cluster_codes(slices: pl.DataFrame, cluster: str) -> Array:
    """Return codes of the clusters of datums, int64 [n].

    As in :func:`draw_keys`, a datum without a cluster is a cluster.
    """
    codes = slices[cluster].rank("dense").cast(pl.Int64)
    missing = codes.is_null()
    return codes.fill_null(missing.cum_sum().cast(pl.Int64) + (codes.max() or 0)).to_numpy()


def dataset_of(frames: Frames) -> pl.DataFrame | None:
    """Return datum_id and dataset; the first table that contains a datum decides."""
    sides = [
        table.select("datum_id", pl.col("dataset").cast(pl.String)).drop_nulls()
        for table in (frames.datums, *map(frames.sides.get, _TELLING))
        if table is not None and "dataset" in table.columns
    ]
    if not sides:
        return None
    return pl.concat(sides, how="vertical_relaxed").unique(
        "datum_id", keep="first", maintain_order=True
    )


def table_datums(
    frames: Frames, table: pl.DataFrame, height: int, numbers: Array | None
) -> tuple[Datums, Array | None]:
    """Return the datums of the single table: its ids, or its rows if it has none.

    Args:
        table: its ids are removed.
        height: its rows.
        numbers: int64 [height], row numbers in the whole input; None if they count from 0.

    Returns:
        the datums; int32 code of each row, or None if row i is datum i.
    """
    if frames.by_row and frames.slices is not None:
        frames.slices = _as_text(frames.slices)
    if "datum_id" in table.columns:
        dataset = dataset_of(frames)
        datums, (datum,) = encode_datums([pop_column(table, "datum_id")], frames, dataset, [TABLE])
        size = tuning().block_rows
        identity = len(datums) == datum.size and all(
            bool((np.diff(datum[first : first + size + 1]) == 1).all())
            for first in range(0, datum.size, size)
        )
        return datums, None if identity else datum
    slices = pl.DataFrame() if frames.slices is None else frames.slices
    keys = None
    if frames.drawn:
        rows = pl.Series(np.arange(height) if numbers is None else numbers)
        keys = draw_keys(rows, slices, frames.cluster)
    named = table["dataset"].cast(pl.String) if "dataset" in table.columns else None
    return Datums(None, slices, named, height, keys), None


_LONG = (pl.Int128, getattr(pl, "UInt128", pl.Int128))  # NumPy has no such integers


def _as_text(slices: pl.DataFrame) -> pl.DataFrame:
    """Slice columns as their values are shown, each distinct value written once."""
    columns = []
    for column in slices:
        is_integer = column.dtype.is_integer() and column.dtype not in _LONG
        if column.dtype == pl.String or is_integer:  # their groups are found as is
            columns.append(column)
            continue
        distinct = column.unique()
        texts = distinct.to_frame().with_columns(slice_text(distinct).alias("__text"))
        rows = column.to_frame().join(
            texts, on=column.name, how="left", nulls_equal=True, maintain_order="left"
        )
        columns.append(rows["__text"].alias(column.name))
    return pl.DataFrame(columns)


# Heights and widths of images, as tables declare them: whole numbers of pixels, or refused.

SIZE_NAMES = ("height", "width")


def declared_sizes(frames: Frames, datums: Datums) -> Array:
    """Return declared height and width of every datum.

    Args:
        frames: the tables; ``datums`` may have columns height and width.

    Returns:
        int64 [n_datums, 2]; zeros if either is missing.

    Raises:
        InputError: a height or width that is not an integer >= 1; the message names the first rows.
    """
    table = frames.datums
    if table is None or not {*SIZE_NAMES} <= set(table.columns):
        return np.zeros((len(datums), 2), np.int64)
    ids = table["datum_id"]
    sizes = sizes_in(table, "datums", lambda i: f"datum_id={ids[i]!r}")
    rows = pl.DataFrame({"datum_id": ids.cast(datums.id.dtype), "row": np.arange(ids.len())})
    at = (
        datums.id.alias("datum_id")
        .to_frame()
        .join(
            rows.unique("datum_id", keep="first"), on="datum_id", how="left", maintain_order="left"
        )["row"]
        .fill_null(-1)
        .to_numpy()
    )
    return np.where((at >= 0)[:, None], np.concatenate([sizes, [[0, 0]]])[at], 0)


def sizes_in(table: pl.DataFrame, called: str, row: Callable[[int], str]) -> Array:
    """Return height and width of each row of a table that has these columns.

    Args:
        table: with finite numbers, or nulls, in ``height`` and ``width``.
        called: name of the table, for messages.
        row: name of a row in messages.

    Returns:
        int64 [n, 2]; zeros if either is null.

    Raises:
        InputError: a height or width that is not an integer >= 1; the message names the first rows.
    """
    sizes = table.select(SIZE_NAMES)
    sized = sizes.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
    number = sizes.select(pl.all().cast(pl.Float64).fill_null(1.0)).to_numpy()
    valid = (number >= 1) & (number % 1 == 0)
    odd = np.flatnonzero(sized & ~valid.all(axis=1))
    if odd.size:
        first = [
            f"{row(int(i))} with height {number[i, 0]:.12g} and width {number[i, 1]:.12g}"
            for i in odd[:N_EXAMPLES]
        ]
        raise InputError(
            f"{called}: {count_of(odd.size, 'row')} with a height or width that is not a number of"
            f" pixels, first: {'; '.join(first)}. Write whole numbers from 1.",
            code="image_size_wrong",
            table=called,
            count=odd.size,
            rows=odd[:N_EXAMPLES].tolist(),
        )
    return np.where(sized[:, None], number, 0).astype(np.int64)


# Ground truths of datums as numbers, equal if two runs had the same labels there.


def truth_of_texts(texts: pl.Series, n: int, datum: Array) -> Array:
    """Return the sum of hashes over the true texts, or ids, of each datum, uint64 [n].

    Args:
        datum: int [m], datum of each text; sums wrap around.
    """
    out = np.zeros(n, np.uint64)
    np.add.at(out, datum, hashes_of(texts.cast(pl.String)))
    return out


def truth_of_labels(labels: Labels, n: int, datum: Array, label: Array) -> Array:
    """Return the sum of label hashes over the ground truths of each datum.

    Args:
        datum: int [m], datum of each ground truth.
        label: int [m], its label.

    Returns:
        uint64 [n]; sums wrap around.
    """
    named = labels.frame.select(
        pl.concat_str(
            pl.col("label_key"), pl.col("label_value").cast(pl.String), separator="\x1f"
        ).alias("name")
    )
    out = np.zeros(n, np.uint64)
    np.add.at(out, datum, hashes_of(named["name"])[label])
    return out


# Usual marks of missing values, such as -999.

SENTINELS = frozenset(
    sign * one for sign in (1, -1) for one in (99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e20, 1e30)
)
_TIMES = 10


def is_usual(mark: float, low: float, high: float) -> bool:
    """Return whether a mark is unlike all other values: positive ones are ten times as large.

    99 is no mark among percentages of 98.

    Args:
        low: lowest of the other values.
        high: highest of them.
    """
    return mark in SENTINELS and (mark < 0 or mark > _TIMES * max(abs(low), abs(high)))
