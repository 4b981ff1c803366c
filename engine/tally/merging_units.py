"""Merge units and scored labels of disjoint sets of datums.

Units are sorted as in one run, by datum and label key; those of a single table, and scored labels,
keep the order of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..schemas.arrays import Array
from ..schemas.errors import InputError
from .datums import Labels
from .merging import one_precision
from .units import Facts, Scored, Units


def merge_units(
    parts: Sequence[Units],
    datums: Sequence[Array],
    labels: Sequence[Array],
    whole: Labels,
    key_names: Sequence[tuple[str, ...]],
    scored: Sequence[Scored | None],
) -> tuple[Units, list[Array]]:
    """Merge units; also return the new number of each old one, int64 per part.

    Args:
        parts: units of disjoint sets of datums, in the order of their rows.
        datums: new datum codes per part.
        labels: new label codes per part.
        whole: labels of all parts.
        key_names: names of each part's label keys.
        scored: scored labels per part.

    Raises:
        InputError: parts were read or tallied differently.
    """
    filled = [part for part in parts if len(part)] or [parts[0]]
    for name in ("hard", "facts", "by_row"):
        if len({_state(getattr(part, name)) for part in filled}) > 1:
            raise InputError("partitions were read in different ways: as one table and as two,"
                             " or with and without predicted labels.")  # fmt: skip
    datum = np.concatenate(
        [code[part.datum_of()] for part, code in zip(parts, datums, strict=True)]
    )
    key_code = {name: i for i, name in enumerate(whole.key_names)}
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
                _hard(part, code, whole, own)
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
        key=key[order] if len(whole.key_names) > 1 else None,
        truth=truth,
        truth_start=start,
        hard=hard,
        hard_score=_floats(parts, "hard_score", order, np.nan),
        weight=_floats(parts, "weight", order, 1.0),
        facts=_facts(parts, order),
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


def _hard(part: Units, label: Array, whole: Labels, scored: Scored | None) -> Array:
    """Return predicted labels under the codes of the whole.

    A prediction decided by a threshold on one label's score is the other label if there is just
    one.
    """
    assert part.hard is not None
    hard: Array = label[part.hard]
    if part.decided and scored is not None:
        only = int(label[scored.only])
        others = [code for code in range(len(whole)) if code != only]
        other = others[0] if len(others) == 1 else -1
        hard = np.where(hard == only, np.int32(only), np.int32(other))
    return hard


def _floats(parts: Sequence[Units], name: str, order: Array, fill: float) -> Array | None:
    found = [getattr(part, name) for part in parts]
    if all(column is None for column in found):
        return None
    columns = [
        np.full(len(part), fill) if column is None else column
        for part, column in zip(parts, found, strict=True)
    ]
    return np.concatenate(columns)[order]


def _facts(parts: Sequence[Units], order: Array) -> Facts | None:
    found = [part.facts for part in parts if part.facts is not None]
    if not found:
        return None
    return Facts(
        *(
            np.concatenate([getattr(facts, name) for facts in found])[order]
            for name in Facts.__struct_fields__
        )
    )


def merge_scored(
    parts: Sequence[Scored | None],
    units: Sequence[Array],
    labels: Sequence[Array],
    n_labels: int,
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
    found = [
        (part, unit, label)
        for part, unit, label in zip(parts, units, labels, strict=True)
        if part is not None and (part.outcome.size or part.several)
    ]
    if not found:
        return next((part for part in parts if part is not None), None)
    scored = [part for part, _, _ in found]
    only = {-1 if part.several else int(label[part.only]) for part, _, label in found}
    if len(only) > 1 or len({part.ranked for part in scored}) > 1:
        raise InputError(
            "score columns were read differently in the partitions: as that of one label and as"
            " those of several, or of different labels. Name all labels with labels=, and"
            " positive_label= where there is one."
        )
    one = only.pop()
    columns: dict[str, tuple[Array, ...]] = {
        "score": tuple(column for part in scored for column in part.parts),
        "outcome": tuple(part.outcome for part in scored),
        "unit": tuple(
            unit if part.unit_codes is None else unit[part.unit_codes] for part, unit, _ in found
        ),
    }
    if one < 0:
        columns["label"] = tuple(label[part.label_codes] for part, _, label in found)
    score = columns.pop("score")
    whole = {name: np.concatenate(some) for name, some in columns.items()}
    unit = whole["unit"]
    plain = unit.size == sum(new.size for new in units) and bool(
        (unit == np.arange(unit.size)).all()
    )
    shown = np.zeros(n_labels, bool)
    for part, _, label in found:
        shown[label[part.labels]] = True
    if one < 0:
        shown[:] = True
    return Scored(
        score,
        whole["outcome"],
        whole.get("label"),
        None if plain else unit.astype(np.int32),
        one,
        shown,
        one_precision([(part.single, part.outcome.size) for part in scored]),
        scored[0].ranked,
    )


def merge_places(
    parts: Sequence[tuple[Array | None, Labels]],
    labels: Sequence[Array],
    whole: Labels,
    *,
    keyed: bool,
) -> Array | None:
    """Return the declared position of every label, int32 [l], -1 for others; or None.

    Args:
        parts: declared positions per part, with its labels.
        labels: new label codes per part.
        whole: labels of all parts.
        keyed: labels were declared with keys; otherwise each is repeated for every key, so that its
            position depends on the number of keys.
    """
    if all(places is None for places, _ in parts):
        return None
    out = np.full(len(whole), -1, np.int64)
    for (places, own), code in zip(parts, labels, strict=True):
        if places is None:
            continue
        here = places >= 0
        place = places[here].astype(np.int64)
        if not keyed:
            place = place // max(1, len(own.key_names)) * len(whole.key_names)
            place += whole.key[code[here]]
        out[code[here]] = place
    return out.astype(np.int32)
