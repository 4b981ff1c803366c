"""Replicates of a model, such as training seeds: averages, and variances over seeds and datums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..scorecard.lookup import KEYS
from .intervals import normal_quantile, t_cdf, t_quantile
from .paired import Numbers

_IDENTITY = ["metric", *KEYS]
_BETWEEN, _SHARED, _MANY = "between", "shared", "replicates"


def averaged(runs: Sequence[Numbers]) -> Numbers:
    """Average the numbers that all replicates of a model have, and their resamples.

    Returns:
        numbers, in whose rows ``between`` is the variance of the average that replicates show,
        ``shared`` the part of it that resamples of datums show, too, and ``replicates`` their
        number.
    """
    if len(runs) == 1:
        return runs[0]
    keys = [
        one.rows.with_row_index(f"at_{i}").select(*_IDENTITY, f"at_{i}")
        for i, one in enumerate(runs)
    ]
    at = reduce(
        lambda one, other: one.join(
            other, on=_IDENTITY, how="inner", nulls_equal=True, maintain_order="left"
        ),
        keys,
    )
    places = [at[f"at_{i}"].to_numpy() for i in range(len(runs))]
    value = np.stack(
        [
            one.rows["value"].cast(pl.Float64).fill_null(np.nan).to_numpy()[place]
            for one, place in zip(runs, places, strict=True)
        ]
    )
    drawn = np.stack([one.drawn[:, place] for one, place in zip(runs, places, strict=True)])
    many, first = len(runs), runs[0]
    moved = (drawn - value[:, None]).var(axis=0, ddof=1)  # what a resample does to each, apart
    defined = ~np.isnan(moved)
    shared = np.where(defined, moved, 0.0).sum(axis=0) / np.maximum(1, defined.sum(axis=0))
    rows = first.rows[places[0]].with_columns(
        pl.Series("value", value.mean(axis=0), nan_to_null=True),
        pl.Series(_BETWEEN, value.var(axis=0, ddof=1) / many),
        pl.Series(_SHARED, shared / many),
        pl.lit(many).alias(_MANY),
    )
    failed: dict[int, str] = {}
    for one, place in zip(runs, places, strict=True):
        failed |= {i: one.failed[k] for i, k in enumerate(place.tolist()) if k in one.failed}
    return msgspec.structs.replace(
        first,
        rows=rows,
        drawn=drawn.mean(axis=0),
        failed=failed,
        units=np.min([one.units[place] for one, place in zip(runs, places, strict=True)], axis=0),
        share=first.share[places[0]],
        unfit=first.unfit[places[0]],
        floor=first.floor[places[0]],
    )


Single = Mapping[tuple[Any, ...], Array]


def averaged_values(runs: Sequence[Single]) -> dict[tuple[Any, ...], Array]:
    """Average the per-datum values that all replicates have; NaN if any is undefined."""
    first, *others = runs
    return {
        key: np.mean([values, *(one[key] for one in others)], axis=0) if others else values
        for key, values in first.items()
        if all(key in one for one in others)
    }


def with_two_ways(
    rows: pl.DataFrame, first: Numbers, second: Numbers, level: float, power: float
) -> pl.DataFrame:
    """Replace intervals and p by those of differences of averages, over datums and replicates.

    Datums are common to all replicates, and replicates of both models are independent. The variance
    of the difference is that over resamples of datums, plus that between replicates, less the part
    that both contain: the interaction of datums and replicates. Student's t with the degrees of
    freedom of F. E. Satterthwaite, "An approximate distribution of estimates of variance
    components" (1946). Crossed variance components: S. R. Searle, G. Casella, C. E. McCulloch,
    Variance Components (1992).

    Args:
        rows: differences of :func:`averaged` numbers, with ``se`` over resamples and ``units``.
        level: in (0, 1).
        power: of the detectable difference.
    """
    columns = [_BETWEEN, _SHARED, _MANY]
    for name, one in (("a", first), ("b", second)):
        renamed = one.rows.select(*_IDENTITY, pl.col(columns).name.suffix(f"_{name}"))
        rows = rows.join(renamed, on=_IDENTITY, how="left", nulls_equal=True, maintain_order="left")
    numbers = {
        name: rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in (
            *("difference", "se", "units"),
            *(f"{name}_{side}" for name in columns for side in "ab"),
        )
    }
    gap, of_datums = numbers["difference"], numbers["se"] ** 2
    between = numbers["between_a"], numbers["between_b"]
    excess = sum(between) - numbers["shared_a"] - numbers["shared_b"]
    variance = of_datums + np.maximum(0.0, excess)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = of_datums**2 / np.maximum(1.0, numbers["units"] - 1)
        for side, part in zip("ab", between, strict=True):
            parts = parts + part**2 / (numbers[f"{_MANY}_{side}"] - 1)
        df = np.where(parts > 0, np.maximum(1.0, np.floor(variance**2 / parts)), np.inf)
        t = np.abs(gap) / np.sqrt(variance)
    out = {name: np.full(gap.size, np.nan) for name in ("lower", "upper", "se", "p", "detectable")}
    for i in np.flatnonzero(variance > 0):
        few = int(min(df[i], 10_000))
        z, se = t_quantile((1 + level) / 2, few), float(np.sqrt(variance[i]))
        out["se"][i], out["detectable"][i] = se, (z + normal_quantile(power)) * se
        out["lower"][i], out["upper"][i] = gap[i] - z * se, gap[i] + z * se
        out["p"][i] = max(0.0, 2 * (1 - t_cdf(float(t[i]), few)))
    return rows.with_columns(
        pl.Series(name, values, nan_to_null=True) for name, values in out.items()
    )
