"""The datums of runs that are compared: the same of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..plan.summary import Tallied
from ..schemas.arrays import Array
from ..schemas.errors import InputError
from ..schemas.wording import option

_SHOWN = 3


def same_kind(runs: Mapping[str, Tallied]) -> None:
    """Check that the datum ids of runs are comparable.

    Raises:
        InputError: a run has no ids, ids have different types, or runs without ids differ in rows.
    """
    datums = {name: run.tallies.datums for name, run in runs.items()}
    unnamed = [name for name, one in datums.items() if one.ids is None]
    if unnamed and len(unnamed) < len(datums):
        raise InputError(
            f"{unnamed[0]} has no datum ids, and other runs have: give all of them the column."
        )
    if len({len(one) for one in datums.values()}) > 1 and unnamed:
        said = ", ".join(f"{name} {len(one):,}" for name, one in datums.items())
        raise InputError(
            "the runs have no datum ids, so that rows are compared in their order, and not as many"
            f" rows ({said}): give them a datum_id column."
        )
    if len({one.id_dtype.is_integer() for one in datums.values()}) > 1:
        said = ", ".join(f"{name} {one.id_dtype}" for name, one in datums.items())
        raise InputError(f"datum ids are not of one type: {said}. Cast them to one.")


class ComparedDatums(msgspec.Struct, frozen=True):
    """Datums that are compared.

    Attributes:
        ids: ids of all compared datums, or row numbers.
        codes: per run int32 [n_datums], index of every datum in ``ids``, -1 for others.
        left_out: number of datums that are in some run but not compared.
        unanswered: per run, the datums without a prediction that are not compared, since means of
            the
            task skip them and another run answers them; may be empty.
    """

    ids: pl.Series
    codes: dict[str, Array]
    left_out: int = 0
    unanswered: dict[str, int] = {}

    def within(self, name: str) -> Array | None:
        """Return the compared datums of a run, bool [n_datums]; None if all are."""
        inside: Array = self.codes[name] >= 0
        return None if inside.all() else inside


def datums_of(
    runs: Mapping[str, Tallied], common: bool, *, answered: bool = True
) -> ComparedDatums:
    """Select the datums to compare: those of all runs.

    If means skip datums without a prediction, only those that all runs answer.

    Args:
        common: drop datums that are missing from any run.
        answered: drop datums that any run does not answer.

    Raises:
        InputError: the runs have other datums, or no answered datum in common.
    """
    whole = _of_all(runs, common)
    return _answered(whole, runs) if answered else whole


def _answered(datums: ComparedDatums, runs: Mapping[str, Tallied]) -> ComparedDatums:
    """Drop datums that enter the means of only some runs, which would favour not answering."""
    rule = next(iter(runs.values())).plan.does.unanswered
    if rule is None:
        return datums
    counted = np.zeros((len(runs), len(datums.ids)), bool)
    for row, (name, run) in zip(counted, runs.items(), strict=True):
        code = datums.codes[name]
        row[code[code >= 0]] = rule.counted(run.tallies)[code >= 0]
    some = np.asarray(counted.any(axis=0))
    every = np.asarray(counted.all(axis=0))
    apart = some & ~every
    if not apart.any():
        return datums
    lacking = {name: int((apart & ~row).sum()) for name, row in zip(runs, counted, strict=True)}
    if not every.any():
        said = ", ".join(f"{name} {count:,}" for name, count in lacking.items())
        raise InputError(
            f"no datum has a prediction in all runs: of {int(some.sum()):,} lack {said}. Means are"
            f" over datums with predictions{rule.way}.",
            code="nothing_in_common",
            count=int(some.sum()),
            lacking=dict(lacking),
        )
    place = np.where(apart, -1, np.cumsum(~apart) - 1).astype(np.int32)
    codes = {
        name: np.where(code >= 0, place[code], -1).astype(np.int32)
        for name, code in datums.codes.items()
    }
    return ComparedDatums(datums.ids.filter(pl.Series(~apart)), codes, datums.left_out, lacking)


def shared_codes(first: Tallied, second: Tallied) -> tuple[Array, Array, int]:
    """Place of each datum among those that two runs share, int32, -1 for others; and how many."""
    ids = [run.tallies.datums.id for run in (first, second)]
    if ids[0].dtype.is_integer() != ids[1].dtype.is_integer():
        return np.full(len(ids[0]), -1, np.int32), np.full(len(ids[1]), -1, np.int32), 0
    own = [one.cast(ids[0].dtype).to_frame("id") for one in ids]
    both = own[0].join(own[1], on="id", how="semi", maintain_order="left")
    both = both.with_columns(code=pl.int_range(both.height, dtype=pl.Int32))
    codes = [
        one.join(both, on="id", how="left", maintain_order="left")["code"].fill_null(-1).to_numpy()
        for one in own
    ]
    return codes[0], codes[1], both.height


def answered_by_one(first: Tallied, second: Tallied) -> tuple[Array, Array]:
    """Return the datums of both runs that enter the means of only one, bool [n_datums] per run.

    Unlike :func:`datums_of`, datums that are missing from a run are ignored, since partitions
    contain
    different data.
    """
    runs = first, second
    rule, datums = first.plan.does.unanswered, [run.tallies.datums for run in runs]
    ids = [one.id for one in datums]
    if rule is None or ids[0].dtype.is_integer() != ids[1].dtype.is_integer():
        return np.zeros(len(ids[0]), bool), np.zeros(len(ids[1]), bool)
    counted = [
        pl.DataFrame({"id": own.cast(ids[0].dtype), "counted": rule.counted(run.tallies)})
        for own, run in zip(ids, runs, strict=True)
    ]
    made = []
    for own, other in (counted, counted[::-1]):
        both = own.join(other, on="id", how="left", maintain_order="left")
        apart = (both["counted"] != both["counted_right"]).fill_null(value=False)
        made.append(apart.to_numpy())
    return made[0], made[1]


def _of_all(runs: Mapping[str, Tallied], common: bool) -> ComparedDatums:
    """Select the datums to compare.

    A datum that is missing from a run and has no ground truth in the others is compared: the run
    predicts no object in it.
    """
    datums = [run.tallies.datums for run in runs.values()]
    every = [one.id for one in datums]
    if all(ids.equals(every[0]) for ids in every):
        codes = np.arange(len(every[0]), dtype=np.int32)
        return ComparedDatums(every[0], dict.fromkeys(runs, codes))
    every = [ids.cast(every[0].dtype) for ids in every]
    tables = [
        pl.DataFrame({"id": ids, "bare": _without_truth(run)})
        for ids, run in zip(every, runs.values(), strict=True)
    ]
    known = pl.concat(tables).group_by("id").agg(pl.len().alias("n"), pl.col("bare").all())
    there = known.filter((pl.col("n") == len(runs)) | pl.col("bare"))["id"].sort()
    if there.len() < known.height:
        lacks = []
        for name, ids in zip(runs, every, strict=True):
            lacking = known.filter(~pl.col("bare"), ~pl.col("id").is_in(ids.implode()))["id"].sort()
            if len(lacking):
                first = ", ".join(map(repr, lacking.head(_SHOWN).to_list()))
                lacks.append(f"{name} lacks {len(lacking):,} datums of the others, first {first}")
        shared = known.filter(pl.col("n") == len(runs))["id"]
        if not common or not len(shared):
            way = (
                f"compare what they have in common with {option('common', True)}, or score"
                " all of them on the same data"
                if len(shared)
                else "they have none in common"
            )
            raise InputError(f"the runs are not of the same datums: {'; '.join(lacks)}: {way}.")
    place = pl.DataFrame(
        {"id": there, "code": pl.int_range(len(there), dtype=pl.Int32, eager=True)}
    )
    codes_of = {
        name: ids.to_frame("id")
        .join(place, on="id", how="left", maintain_order="left")["code"]
        .fill_null(-1)
        .to_numpy()
        for name, ids in zip(runs, every, strict=True)
    }
    return ComparedDatums(there, codes_of, known.height - len(there))


def _without_truth(run: Tallied) -> Array:
    """Return the datums without a ground truth, bool [n_datums]; False if unknown."""
    truth = run.plan.does.truth
    if truth is None:
        return np.zeros(len(run.tallies.datums), bool)
    return np.asarray(truth(run.tallies) == 0)


def identical(first: Any, second: Any, codes: tuple[Array, Array] | None = None) -> bool:
    """Return True if two tallies, or parts of them, are equal up to row order.

    Fields that only one tally has, and timings, are ignored.

    Args:
        codes: int32 [n_datums] each, index of each datum among those compared; -1 for others, which
            are ignored if the tallies can be sorted.
    """
    if first is None or second is None:
        return True
    if hasattr(first, "ordered"):
        one, other = codes or (None, None)
        return type(first) is type(second) and identical(first.ordered(one), second.ordered(other))
    if isinstance(first, np.ndarray):
        alike = isinstance(second, np.ndarray) and first.dtype == second.dtype
        return alike and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    if isinstance(first, pl.Series):
        return isinstance(second, pl.Series) and first.equals(second)
    if isinstance(first, pl.DataFrame):
        return isinstance(second, pl.DataFrame) and first.equals(second)
    if isinstance(first, msgspec.Struct):
        names = (name for name in first.__struct_fields__ if name not in _OF_NO_ACCOUNT)
        return type(first) is type(second) and all(
            identical(getattr(first, name), getattr(second, name)) for name in names
        )
    if isinstance(first, (tuple, list)):
        return (
            type(first) is type(second)
            and len(first) == len(second)
            and all(map(identical, first, second))
        )
    if isinstance(first, dict):
        shared = first.keys() & second.keys()
        return bool(shared or not (first or second)) and all(
            identical(first[name], second[name]) for name in shared
        )
    return bool(first == second)


_OF_NO_ACCOUNT = (
    *("seconds", "slices", "dataset", "keys"),
    *("row", "gt_row", "examples", "outcomes", "errors", "label_errors"),  # follow from the others
)
