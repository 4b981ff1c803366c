"""Merging of tallies over disjoint sets of datums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..kernels.order import merge_runs
from ..schemas.arrays import Array
from ..schemas.contract import DEFAULT_LABEL_KEY
from ..schemas.errors import InputError
from .datums import Datums, Labels
from .ranked import OF_ROWS, OF_TRUTHS, ConfusedPairs, Ranked
from .tables import combined
from .units import Scored, Units

# Merge tallies of disjoint sets of datums into that of one run, sorted by label, descending score,
# tie, datum id and row.


def merged_present(parts: Sequence[Any], codes: Sequence[Array], n: int) -> Array:
    """Standing of each of n datums, from ``present`` of all parts at their new codes, int8 [n]."""
    present = np.empty(n, np.int8)
    for part, code in zip(parts, codes, strict=True):
        present[code] = part.present
    return present


def merge_datums(parts: Sequence[Datums]) -> tuple[Datums, list[Array]]:
    """Merge datums; also return the new code of each old one, int32 per part.

    Datums without ids are rows of a table: those of the second part follow those of the first.

    Raises:
        InputError: a datum is in two parts (matching needs all its rows in one), or ids or slice
            columns differ in kind.
    """
    first = parts[0].slices.columns
    for part in parts[1:]:
        if part.slices.columns != first:
            raise InputError(
                f"partitions were sliced by different columns: {first} and {part.slices.columns}."
            )
    sizes = [len(part) for part in parts]
    unnamed = [part.ids is None for part, size in zip(parts, sizes, strict=True) if size]
    cuts = np.cumsum(sizes)[:-1]
    if all(unnamed):
        place = np.arange(sum(sizes), dtype=np.int32)
        # Ignore empty parts: a run without rows may still have named its datums.
        datums = Datums(
            None if unnamed or parts[0].ids is None else parts[0].ids,
            _slices(parts),
            _datasets(parts),
            sum(sizes),
            _keys(parts),
        )
        return datums, np.split(place, cuts)
    if any(unnamed):
        raise InputError(
            "some partitions have datum ids and some have none: give all of them the column.",
            code="ids_missing",
        )
    ids = one_dtype([part.id for part in parts], "datum ids")
    order = ids.arg_sort().to_numpy()
    sorted_ids = ids.gather(order)
    again = sorted_ids.slice(1) == sorted_ids.slice(0, max(len(ids) - 1, 0))
    if len(ids) > 1 and again.any():
        twice = sorted_ids.slice(1).filter(again).unique(maintain_order=True)
        raise InputError(
            f"{len(twice):,} datum{'s are' if len(twice) > 1 else ' is'} in more than one"
            f" partition, first {twice.head(3).to_list()}: put all rows of a datum into the same"
            " one.",
            code="repeated_values",
            column="datum_id",
            count=len(twice),
        )
    code = np.empty(order.size, np.int32)
    code[order] = np.arange(order.size, dtype=np.int32)
    slices, dataset, keys = _slices(parts), _datasets(parts), _keys(parts)
    merged = Datums(
        sorted_ids,
        slices[order] if slices.width else slices,
        None if dataset is None else dataset.gather(order),
        keys=None if keys is None else keys[order],
    )
    return merged, np.split(code, cuts)


def _slices(parts: Sequence[Datums]) -> pl.DataFrame:
    filled = [part.slices for part in parts if len(part)] or [parts[0].slices]
    if not filled[0].width:
        return filled[0]
    return pl.concat(filled, how="vertical_relaxed")


def _keys(parts: Sequence[Datums]) -> Array | None:
    """Concatenate the keys of the datums, if there are any."""
    keys = [part.keys for part in parts if len(part) and part.keys is not None]
    if not keys:
        return None if parts[0].keys is None else parts[0].keys[:0]
    return np.concatenate(keys)


def _datasets(parts: Sequence[Datums]) -> pl.Series | None:
    if all(part.dataset is None for part in parts):
        return None
    blank = pl.Series("dataset", [None], dtype=pl.String)
    return pl.concat(
        [
            blank.new_from_index(0, len(part)) if part.dataset is None else part.dataset
            for part in parts
        ]
    )


def one_dtype(columns: Sequence[pl.Series], what: str) -> pl.Series:
    """Concatenate ids or label values, with the dtype of one run over all parts.

    Raises:
        InputError: integers in some and strings in others.
    """
    filled = [column for column in columns if len(column)] or [columns[0]]
    dtypes = {column.dtype for column in filled}
    if len(dtypes) > 1:
        if not all(dtype.is_integer() for dtype in dtypes):
            raise InputError(
                f"{what} have different dtypes in the partitions:"
                f" {', '.join(sorted(map(str, dtypes)))}. Cast them to one."
            )
        target = pl.UInt64() if pl.UInt64() in dtypes else pl.Int64()
        filled = [column.cast(target) for column in filled]
    return pl.concat([column.rename(filled[0].name) for column in filled])


def merge_labels(parts: Sequence[Labels]) -> tuple[Labels, list[Array]]:
    """All labels, and the new code of each old one, int32 a part."""
    if all(
        _label_rows(part).equals(_label_rows(parts[0])) and part.key_names == parts[0].key_names
        for part in parts[1:]
    ):
        same = np.arange(len(parts[0]), dtype=np.int32)
        return parts[0], [same] * len(parts)
    key = ["label_key", "label_value"]
    value = one_dtype([part.frame["label_value"] for part in parts], "labels")
    frames = [
        _label_rows(part).with_columns(part.frame["label_value"].cast(value.dtype))
        if len(part)
        else _label_rows(part).clear().cast({"label_value": value.dtype})
        for part in parts
    ]
    # Parts without labelled rows only have declared labels, under the default key.
    filled = [frame for frame, part in zip(frames, parts, strict=True) if not part.bare] or frames
    every_one = pl.concat(filled, how="diagonal")
    table = every_one.group_by(key).agg(pl.exclude(key).drop_nulls().first()).sort(key)
    coded = table.select(key).with_row_index("code")
    by_value = coded.unique("label_value", keep="first", maintain_order=True)
    every = len(filled) == len(frames)
    codes = []
    for frame, part in zip(frames, parts, strict=True):
        loose = part.bare and not every
        on = ["label_value"] if loose else key
        message = frame.join(by_value if loose else coded, on=on, how="left", maintain_order="left")
        codes.append(message["code"].cast(pl.Int32).to_numpy())
    merged = Labels.of(table, bare=all(part.bare for part in parts))
    return _with_keys(merged, parts), codes


def _label_rows(labels: Labels) -> pl.DataFrame:
    of = labels.frequency
    return labels.frame if of is None else labels.frame.with_columns(of.alias("frequency"))


def _with_keys(labels: Labels, parts: Sequence[Labels]) -> Labels:
    """Return the labels, with the parts' label keys that have no label added."""
    names = {
        name
        for part in parts
        for name in part.key_names
        if not part.bare or labels.bare or name != DEFAULT_LABEL_KEY
    }
    return labels.with_keys(names)


def column_of_parts(parts: Sequence[Any], name: str) -> Array:
    """One attribute of all parts, rows along the last axis."""
    return np.concatenate([getattr(part, name) for part in parts], axis=-1)


def _runs(
    parts: Sequence[Ranked], start: str, labels: Sequence[Array], n_labels: int
) -> tuple[Array, Array]:
    """Return begin and end of each part's rows per label among all rows, int64 [parts, l]."""
    begin, end = np.zeros((2, len(parts), n_labels), np.int64)
    before = 0
    for p, (part, codes) in enumerate(zip(parts, labels, strict=True)):
        offsets = getattr(part, start)
        begin[p, codes] = offsets[:-1] + before
        end[p, codes] = offsets[1:] + before
        before += int(offsets[-1])
    return begin, end


def _of_datums(parts: Sequence[Ranked], datum: str, datums: Sequence[Array] | None) -> Array:
    """Datums of the rows of all parts, under the codes of the whole."""
    if datums is None:
        return column_of_parts(parts, datum)
    return np.concatenate(
        [codes[getattr(part, datum)] for part, codes in zip(parts, datums, strict=True)]
    ).astype(np.int32, copy=False)


def merge_ranked(
    parts: Sequence[Ranked],
    datums: Sequence[Array] | None,
    labels: Sequence[Array],
    n_labels: int,
    before: int = 0,
) -> Ranked:
    """Merge ranked tallies.

    Args:
        parts: tallies of disjoint sets of datums, at the same variants and cap.
        datums: new datum codes per part, from :func:`merge_datums`; None if rows already have the
            codes of the whole.
        labels: new label codes per part, from :func:`merge_labels`.
        n_labels: labels of the whole.
        before: rows of the single label that precede these, in other tallies.

    Raises:
        InputError: the parts were matched differently, or their scores differ in precision.
    """
    if any((p.variants, p.cap) != (parts[0].variants, parts[0].cap) for p in parts):
        raise InputError("partitions were matched at different thresholds, ranges or caps.")
    single = one_precision([(part.single, part.score.size) for part in parts])
    # Each part is already sorted, so that a merge of sorted runs suffices.
    fields: dict[str, Any] = {"single": single}
    for side, columns in (("", OF_ROWS), ("gt_", OF_TRUTHS)):
        start, datum = f"{side}start", f"{side}datum"
        begin, end = _runs(parts, start, labels, n_labels)
        fields[start] = np.r_[0, np.cumsum((end - begin).sum(axis=0))]
        computed = {datum: _of_datums(parts, datum, datums)}
        score, tie = np.zeros(computed[datum].size), np.zeros(0)
        if columns is OF_ROWS:
            score, tie = column_of_parts(parts, "score"), column_of_parts(parts, "tie")
            computed |= {"score": score, "tie": tie}
        order = merge_runs(begin, end, score, tie, computed[datum])
        for name in columns:
            column = computed[name] if name in computed else column_of_parts(parts, name)
            fields[name] = column[..., order] if column.size else column
    return msgspec.structs.replace(parts[0], **fields).limited(before)


def one_precision(precisions: Sequence[tuple[bool, int]]) -> bool:
    """Return True if all scores have single precision.

    Args:
        precisions: (single precision, number of scores) per part.

    Raises:
        InputError: precision differs between parts.
    """
    filled = {single for single, size in precisions if size}
    if len(filled) > 1:
        raise InputError(
            "scores are single precision in some partitions and double in others: cast them to one."
        )
    return filled.pop() if filled else precisions[0][0]


def merge_counts(
    parts: Sequence[ConfusedPairs], datums: Sequence[Array], labels: Sequence[Array]
) -> ConfusedPairs:
    """All meetings across labels, under the codes of the whole."""
    triples = list(zip(parts, datums, labels, strict=True))
    return ConfusedPairs(
        actual=np.concatenate([label[part.actual] for part, _, label in triples]),
        predicted=np.concatenate([label[part.predicted] for part, _, label in triples]),
        threshold=column_of_parts(parts, "threshold"),
        scores=column_of_parts(parts, "scores"),
        datum=np.concatenate([datum[part.datum] for part, datum, _ in triples]),
    )


def merged_seconds(parts: Sequence[Any]) -> dict[str, float]:
    """Seconds of all parts, step by step."""
    return added(part.seconds for part in parts)


def added(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add numbers of the same name."""
    total: dict[str, Any] = {}
    for part in parts:
        for name, n in part.items():
            total[name] = total.get(name, 0) + n
    return total


# Merge units (sorted by datum and label key) and scored labels of disjoint sets of datums.


def merge_units(
    parts: Sequence[Units],
    datums: Sequence[Array],
    labels: Sequence[Array],
    all_labels: Labels,
    key_names: Sequence[tuple[str, ...]],
    scored: Sequence[Scored | None],
) -> tuple[Units, list[Array]]:
    """Merge units; also return the new number of each old one, int64 per part.

    Args:
        parts: units of disjoint sets of datums, in the order of their rows.
        datums: new datum codes per part.
        labels: new label codes per part.
        all_labels: labels of all parts.
        key_names: names of each part's label keys.
        scored: scored labels per part.

    Raises:
        InputError: parts were read or tallied differently.
    """
    filled = [part for part in parts if len(part)] or [parts[0]]
    for name in ("hard", "facts", "by_row"):
        if len({_state(getattr(part, name)) for part in filled}) > 1:
            raise InputError(
                "partitions were read in different ways: as one table and as two,"
                " or with and without predicted labels."
            )
    datum = np.concatenate(
        [code[part.datum_of()] for part, code in zip(parts, datums, strict=True)]
    )
    key_code = {name: i for i, name in enumerate(all_labels.key_names)}
    key = np.concatenate(
        [
            np.array([key_code.get(name, 0) for name in names] or [0], np.int32)[
                np.zeros(len(part), np.int64) if part.key is None else part.key
            ]
            for part, names in zip(parts, key_names, strict=True)
        ]
    )
    order = np.arange(datum.size) if filled[0].by_row else np.lexsort((key, datum))
    with_none = [np.r_[code, np.int32(-1)].astype(np.int32) for code in labels]
    truth, start = _truths(parts, with_none, order)
    hard = None
    if filled[0].hard is not None:
        hard = np.concatenate(
            [
                _hard(part, code, all_labels, own)
                for part, code, own in zip(parts, with_none, scored, strict=True)
                if part.hard is not None
            ]
        )[order]
    new = np.empty(order.size, np.int64)
    new[order] = np.arange(order.size)
    datum = datum[order]
    plain = datum.size == sum(code.size for code in datums) and bool(
        (datum == np.arange(datum.size)).all()
    )
    units = Units(
        datum=None if plain else datum,
        key=key[order] if len(all_labels.key_names) > 1 else None,
        truth=truth,
        truth_start=start,
        hard=hard,
        hard_score=_floats(parts, "hard_score", order, np.nan),
        weight=_floats(parts, "weight", order, 1.0),
        facts=combined([part.facts for part in parts], lambda own: np.concatenate(own)[order]),
        by_row=filled[0].by_row,
        decided=filled[0].decided,
    )
    return units, np.split(new, np.cumsum([len(part) for part in parts])[:-1])


def _state(value: Any) -> Any:
    return value if isinstance(value, bool) else value is None


def _truths(
    parts: Sequence[Units], labels: Sequence[Array], order: Array
) -> tuple[Array, Array | None]:
    """True labels of all units, in their new order."""
    pairs = list(zip(parts, labels, strict=True))
    if all(part.truth_start is None for part in parts):
        return np.concatenate([code[part.truth] for part, code in pairs])[order], None
    many = np.concatenate([part.n_truths for part in parts])
    flat = np.concatenate([code[part.truth_rows()[1]] for part, code in pairs])
    first = np.cumsum(many) - many
    start = np.r_[0, np.cumsum(many[order])]
    at = np.repeat(first[order] - start[:-1], many[order]) + np.arange(start[-1])
    return flat[at], start


def _hard(part: Units, label: Array, labels: Labels, scored: Scored | None) -> Array:
    """Return predicted labels under the codes of the whole.

    A prediction decided by a threshold on one label's score is the other label if there is just
    one.
    """
    assert part.hard is not None
    hard: Array = label[part.hard]
    if part.decided and scored is not None:
        only = int(label[scored.only])
        others = [code for code in range(len(labels)) if code != only]
        other = others[0] if len(others) == 1 else -1
        hard = np.where(hard == only, np.int32(only), np.int32(other))
    return hard


def _floats(parts: Sequence[Units], name: str, order: Array, fill: float) -> Array | None:
    values = [getattr(part, name) for part in parts]
    if all(column is None for column in values):
        return None
    columns = [
        np.full(len(part), fill) if column is None else column
        for part, column in zip(parts, values, strict=True)
    ]
    return np.concatenate(columns)[order]


def merge_scored(
    parts: Sequence[Scored | None], units: Sequence[Array], labels: Sequence[Array], n_labels: int
) -> Scored | None:
    """Merge scored labels.

    Args:
        parts: of disjoint sets of datums, in the order of their rows.
        units: new number of each unit, from :func:`merge_units`.
        labels: new label codes per part.
        n_labels: labels of the whole.

    Raises:
        InputError: parts were scored differently.
    """
    filled = [
        (part, unit, label)
        for part, unit, label in zip(parts, units, labels, strict=True)
        if part is not None and (part.outcome.size or part.several)
    ]
    if not filled:
        return next((part for part in parts if part is not None), None)
    scored = [part for part, _, _ in filled]
    only = {-1 if part.several else int(label[part.only]) for part, _, label in filled}
    if len(only) > 1 or len({part.ranked for part in scored}) > 1:
        raise InputError(
            "score columns were read differently in the partitions: as one label and as several,"
            " or as different labels. Name all labels with labels=, and positive_label= if there"
            " is one."
        )
    one = only.pop()
    columns: dict[str, tuple[Array, ...]] = {
        "score": tuple(column for part in scored for column in part.parts),
        "outcome": tuple(part.outcome for part in scored),
        "unit": tuple(
            unit if part.unit_codes is None else unit[part.unit_codes] for part, unit, _ in filled
        ),
    }
    if one < 0:
        columns["label"] = tuple(label[part.label_codes] for part, _, label in filled)
    score = columns.pop("score")
    arrays = {name: np.concatenate(some) for name, some in columns.items()}
    unit = arrays["unit"]
    plain = unit.size == sum(new.size for new in units) and bool(
        (unit == np.arange(unit.size)).all()
    )
    scored_labels = np.zeros(n_labels, bool)
    for part, _, label in filled:
        scored_labels[label[part.labels]] = True
    if one < 0:
        scored_labels[:] = True
    return Scored(
        score,
        arrays["outcome"],
        arrays.get("label"),
        None if plain else unit.astype(np.int32),
        one,
        scored_labels,
        one_precision([(part.single, part.outcome.size) for part in scored]),
        scored[0].ranked,
    )


def merge_places(
    parts: Sequence[tuple[Array | None, Labels]],
    labels: Sequence[Array],
    all_labels: Labels,
    *,
    keyed: bool,
) -> Array | None:
    """Return the declared position of every label, int32 [l], -1 for others; or None.

    Args:
        parts: declared positions per part, with its labels.
        labels: new label codes per part.
        all_labels: labels of all parts.
        keyed: labels were declared with keys; otherwise each is repeated for every key, so that its
            position depends on the number of keys.
    """
    if all(places is None for places, _ in parts):
        return None
    out = np.full(len(all_labels), -1, np.int64)
    for (places, own), code in zip(parts, labels, strict=True):
        if places is None:
            continue
        here = places >= 0
        place = places[here].astype(np.int64)
        if not keyed:
            place = place // max(1, len(own.key_names)) * len(all_labels.key_names)
            place += all_labels.key[code[here]]
        out[code[here]] = place
    return out.astype(np.int32)
