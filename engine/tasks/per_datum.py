"""Tasks with one row per datum: views, buckets, losses and frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..dialects import Dialect
from ..metrics import Metric
from ..schemas.arrays import Array
from ..schemas.errors import N_EXAMPLES
from ..schemas.results import frame_schema, in_schema
from ..tallies.datums import Datums, Labels
from ..tallies.merging import merge_datums, merge_labels, merged_seconds
from ..tallies.registry import stored_as
from ..tallies.stats import (
    Column,
    Cuts,
    DisplayedDatums,
    Fill,
    Stats,
    StatsView,
    common_stats,
    merge_stats,
    single_datums,
    variants,
)
from ..tallies.stored import FRAME_DATA, Place, parts_of, things_of_part
from ..tallies.tables import InFiles
from .encoding import Workers
from .task import Common, InParts, Losses
from .task import Cuts as task_Cuts

# Per-datum frame, from tallies with one row per datum, or from losses.

FRAME = "per_datum"


def per_datum_frame(
    stats: Stats,
    datums: Datums,
    cuts: Mapping[str, set[int | None]],
    order: np.ndarray[Any, Any] | None = None,
) -> pl.DataFrame:
    """Return one row per datum, metric, statistic and cut-off, null if the datum does not count.

    Args:
        cuts: need -> the cut-offs to show; None for the whole list.
        order: int32 [n], display order of datums; None for code order.

    Returns:
        the contract's columns; then ``parameters`` if variants differ in no other column.
    """
    columns = [column for need in stats.columns.values() for column in need]
    several = any(len(column.parameters) > 1 or column.parameters[0] for column in columns)
    schema = frame_schema("per_datum", datum=datums.id_dtype)
    if several:
        schema = {**schema, "parameters": pl.String()}
    ids = datums.id.to_frame("datum_id")
    statuses = {
        id(one): ids.with_columns(_words(one))
        for one in [
            stats.status,
            *(column.status for column in columns if column.status is not None),
        ]
    }
    if order is not None:
        statuses = {one: frame[order] for one, frame in statuses.items()}
    parts = [
        _part(column, p, k, stats, statuses[id(column.status or stats.status)], order)
        for need, columns in stats.columns.items()
        for column in columns
        for p in range(len(column.parameters))
        for k in range(len(column.k))
        if column.k[k] in cuts.get(need, ())
    ]
    return pl.DataFrame(schema=schema) if not parts else in_schema(pl.concat(parts), schema)


def judged_frame(losses: Losses, datums: Datums) -> pl.DataFrame:
    """Return one row per datum with its loss, null if undefined.

    Returns:
        the contract's columns; then ``parameters``, JSON of the parameters of the loss.
    """
    value = losses.value
    if losses.nothing is not None and losses.counted is not None:
        value = np.where(np.isnan(value) & losses.counted, losses.nothing, value)
    made_with = msgspec.json.encode(losses.made_with).decode() if losses.made_with else None
    schema = frame_schema(FRAME, datum=datums.id_dtype)
    if made_with is not None:
        schema = {**schema, "parameters": pl.String()}
    defined = pl.col("value").is_not_null()
    frame = pl.DataFrame([datums.id.alias("datum_id"), pl.Series("value", value, nan_to_null=True)])
    status = pl.when(defined).then(pl.lit("scored")).otherwise(pl.lit("undefined"))
    frame = frame.with_columns(status=status)
    return in_schema(frame, schema, metric=losses.metric, parameters=made_with)


_Status = tuple[tuple[str, ...], np.ndarray[Any, Any]]


def _words(status: _Status) -> pl.Series:
    names, codes = status
    return pl.Series("status", names, dtype=pl.String).gather(codes)


def _part(
    column: Column,
    p: int,
    k: int,
    stats: Stats,
    statuses: pl.DataFrame,
    order: np.ndarray[Any, Any] | None,
) -> pl.DataFrame:
    value = np.where(stats.counted, column.values[:, p, k], np.nan)
    if order is not None:
        value = value[order]
    return statuses.with_columns(
        pl.Series("value", value, nan_to_null=True),
        pl.lit(column.metric).alias("metric"),
        pl.lit(column.statistic, dtype=pl.String).alias("statistic"),
        pl.lit(column.k[k], dtype=pl.Int64).alias("k"),
        pl.lit(column.parameters[p], dtype=pl.String).alias("parameters"),
    )


# Views of tallies of one row a datum, and the frame of single datums.


@stored_as("values.run/1")
class StatsTallies(msgspec.Struct, frozen=True):
    """Tally of a run with one row per datum.

    Attributes:
        datums: images, datums, texts.
        labels: empty.
        stats: one row per datum: :class:`~evalengine.tallies.stats.Stats`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
        row: int64 [n], row of each datum in the single table, -1 if only a table of datums has it;
            defines the display order. None for code order.
        height: rows of that table, if ``row`` counts from its first; None if ``row`` already counts
            from the first row of the whole input.
        seconds: step -> wall seconds.
        beside: frames that exist for any metrics.
        weighted: counts are sums of weights; always False.
    """

    datums: Datums
    labels: Labels
    stats: Any
    row: Array | None
    height: int | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ("per_datum",)
    weighted: bool = False

    @property
    def order(self) -> Array | None:
        """Datums in the order of the single table's rows, others last; None for code order."""
        if self.row is None:
            return None
        return np.argsort(np.where(self.row < 0, np.iinfo(np.int64).max, self.row), kind="stable")


def merge(parts: Sequence[StatsTallies], settings: Any) -> StatsTallies:
    """Merge tallies.

    Args:
        parts: tallies of disjoint sets of datums; for a single table, in the order of their rows.

    Raises:
        InputError: parts are incompatible.
    """
    datums, codes = merge_datums([part.datums for part in parts])
    labels, _ = merge_labels([part.labels for part in parts])
    stats = merge_stats([part.stats for part in parts], codes)
    row, height = _rows(parts, codes, len(datums))
    return StatsTallies(datums, labels, stats, row, height, merged_seconds(parts))


def _rows(
    parts: Sequence[StatsTallies], codes: Sequence[Array], n: int
) -> tuple[Array | None, int | None]:
    """Row of every datum, those of a part behind those of the parts before it."""
    named = [part for part in parts if len(part.datums)]
    if all(part.row is None for part in named):
        heights = [part.height for part in parts]
        if all(height is None for height in heights) or parts[0].datums.ids is None:
            return None, None if None in heights else sum(h for h in heights if h is not None)
    row = np.full(n, -1, np.int64)
    before = 0
    for part, code in zip(parts, codes, strict=True):
        rows = np.arange(len(part.datums)) if part.row is None else part.row
        row[code] = np.where(rows < 0, -1, rows + (before if part.height is not None else 0))
        before += part.height or 0
    shifted = all(part.height is not None for part in parts)
    if (np.diff(row) > 0).all() and row.size and row[0] >= 0:
        return None, before if shifted else None
    return row, before if shifted else None


def no_labels() -> Labels:
    """The labels of a task that has none."""
    schema = {"label_key": pl.String, "label_value": pl.String, "label_name": pl.String}
    return Labels.of(pl.DataFrame(schema=schema))


def view(
    tallies: StatsTallies,
    settings: Any,
    group: Array | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> StatsView:
    """Return the tally by groups of datums."""
    return StatsView(tallies.stats, tallies.labels, group=group, n_groups=n_groups, weights=weights)


def cells_per_group(n_labels: int, settings: Any, needs: frozenset[str]) -> int:
    """Numbers of one group of datums, about: of every need at every cut-off."""
    return len(needs) * max(1, len(getattr(settings, "k", ())))


def own_frames(
    frame: str,
    tallies: StatsTallies,
    settings: Any,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """Return the per-datum frame."""
    return per_datum_frame(tallies.stats, tallies.datums, cuts, tallies.order)


def counted(tallies: StatsTallies) -> Array:
    """Return the datums that enter means, bool [n_datums]."""
    return tallies.stats.counted


def truth(tallies: StatsTallies) -> Array | None:
    """See :attr:`.task.Task.truth`: of tasks whose tallies have hashes of ground truths."""
    stats = tallies.stats
    if not isinstance(stats, InFiles):
        return stats.truth
    every = [stats.rows_of(part).truth for part in stats.parts]
    if any(part is None for part in every):
        return None
    parts = [
        pl.DataFrame({"id": datums.id, "truth": np.asarray(part)})
        for part, datums in zip(every, stats.parts.frame_data(), strict=True)
    ]
    ids = pl.DataFrame({"id": tallies.datums.id})
    joined = ids.join(pl.concat(parts), on="id", how="left", maintain_order="left")
    return joined["truth"].to_numpy()


def common(
    tallies: Sequence[StatsTallies], codes: Sequence[Array], fill: Fill, *, cuts: bool = False
) -> list[StatsTallies] | None:
    """The tallies with the values that all runs have; see :class:`.task.Common`."""
    shared = common_stats([one.stats for one in tallies], codes, fill, cuts=cuts)
    if shared is None:
        return None
    return [
        msgspec.structs.replace(one, stats=stats)
        for one, stats in zip(tallies, shared, strict=True)
    ]


# Tallies of one row per datum in parts on disk.


def part_things(tallies: StatsTallies, settings: Any, metrics: Any) -> dict[str, Any]:
    """Return the file entries of one part's tally, datums in display order.

    Args:
        tallies: of the part, with rows numbered as in the whole.
    """
    order = tallies.order
    every = np.arange(len(tallies.datums)) if order is None else order
    without_rows = msgspec.structs.replace(tallies, stats=tallies.stats.bare(), row=None)
    stats = tallies.stats if order is None else tallies.stats.take(order)
    ids, row = tallies.datums.ids, tallies.row
    if ids is None:
        ids = tallies.datums.id if row is None else pl.Series("datum_id", row)
    frame_data = DisplayedDatums(ids[every], None if row is None else row[every])
    return things_of_part(tallies, without_rows, stats, order) | {FRAME_DATA: frame_data}


def of_parts(files: Sequence[str], place: Place, settings: Any) -> StatsTallies:
    """Return the tally whose parts are on disk.

    Raises:
        InputError: parts were measured differently.
    """
    heads, parts, datums = parts_of(files, place)
    bare: list[StatsTallies] = [head.bare for head in heads]
    none = [np.zeros(0, np.int64)] * len(bare)
    stats = merge_stats([one.stats for one in bare], none)
    return msgspec.structs.replace(
        bare[0],
        datums=datums,
        stats=InFiles(parts, "", stats),
        row=None,
        height=None,
        seconds=merged_seconds(bare),
    )


def count_rows(tallies: Any, cuts: Cuts) -> int:
    """Return the number of rows of the per-datum frame.

    Args:
        cuts: need -> the cut-offs to show.
    """
    return len(tallies.datums) * sum(1 for _ in variants(tallies.stats, cuts))


def tallies_of_few(tallies: StatsTallies, cuts: Cuts) -> Iterator[tuple[StatsTallies, Cuts]]:
    """Yield tallies of a few datums and one metric each, in display order.

    Args:
        cuts: need -> the cut-offs to show.
    """
    for datums, stats, chosen in single_datums(tallies.stats, cuts):
        yield StatsTallies(datums, tallies.labels, stats, None, None, {}), chosen


IN_PARTS = InParts(part_things, of_parts, rows=count_rows, of_few=tallies_of_few)


# Loss of single datums for tallies with one row per datum: one of its columns.

AT = 10
"""The cut-off that datums are judged at, of metrics that have one."""


class Judging(msgspec.Struct, frozen=True):
    """Per-datum number: a variant and cut-off of a column.

    Attributes:
        column: the column.
        k: index of the cut-off.
        higher: higher values are better.
        best: best possible value.
        value: float64 [n_datums], NaN if undefined or the datum does not count.
    """

    column: Column
    k: int
    higher: bool
    best: float
    value: Array

    @property
    def title(self) -> str:
        """Metric, statistic and cut-off."""
        cut = self.column.k[self.k]
        name = self.column.metric if cut is None else f"{self.column.metric}@{cut}"
        return name if self.column.statistic is None else f"{name} {self.column.statistic}"

    def loss(self, codes: Array) -> Array:
        """Return the values of datums, negated if needed so that higher is worse."""
        value: Array = self.value[codes]
        return -value if self.higher else value


def _numbers(
    tallies: StatsTallies, metrics: Sequence[Metric], dialect: Dialect, cuts: task_Cuts
) -> Iterator[Judging]:
    """Every number of single datums, metrics in their order."""
    stats = tallies.stats
    for metric in metrics:
        better = dialect.better.get(metric.name, metric.better)
        if better == "neither":
            continue
        higher = better == "higher"
        for need in metric.needs:
            for column in stats.columns.get(need, ()):
                for k, cut in enumerate(column.k):
                    if cut in cuts.get(need, ()):
                        value = np.where(stats.counted, column.values[:, 0, k], np.nan)
                        yield Judging(column, k, higher, metric.range[int(higher)], value)


def _nearness(one: Judging) -> tuple[bool, float]:
    """Sort key of numbers of a metric: the metric first, cut-offs near the default first."""
    cut = one.column.k[one.k]
    return one.column.statistic is not None, float("inf") if cut is None else abs(cut - AT)


def chosen(
    tallies: StatsTallies,
    metrics: Sequence[Metric],
    dialect: Dialect,
    cuts: task_Cuts,
    first: tuple[str, ...] = (),
) -> list[Judging]:
    """Return all per-datum numbers, the loss first.

    Args:
        first: names with priority over the run's order.
    """
    every = list(_numbers(tallies, metrics, dialect, cuts))
    defined = [one for one in every if not np.isnan(one.value).all()]
    if not defined:
        return []
    names = [one.column.metric for one in defined]
    name = next((one for one in first if one in names), names[0])
    leading = min((one for one in defined if one.column.metric == name), key=_nearness)
    return [leading, *(one for one in defined if one is not leading)]


def losses(
    tallies: StatsTallies,
    settings: Any,
    metrics: Sequence[Metric],
    dialect: Dialect,
    *,
    cuts: task_Cuts,
    first: tuple[str, ...] = (),
    skipped: str | None = None,
    sentences_of: Callable[[StatsTallies, Sequence[Judging], Array], list[str]] | None = None,
) -> Losses | str:
    """See :class:`.task.JudgeDatums`: the run's first metric with per-datum values.

    Args:
        first: names with priority over the run's order.
        skipped: status of datums that are skipped whatever their value, since no answer could be
            better.
        sentences_of: describes datums; None to list their values.
    """
    every = chosen(tallies, metrics, dialect, cuts, first)
    if not every:
        return "no metric of the run has a value for single datums"
    leading = every[0]
    words, standing = tallies.stats.status
    value = leading.value
    if skipped in words:
        value = np.where(standing == words.index(skipped), np.nan, value)
    parameters = leading.column.parameters[0]
    return Losses(
        metric=leading.title,
        made_with={} if parameters is None else msgspec.json.decode(parameters),
        value=value,
        higher=leading.higher,
        best=leading.best,
        ties=lambda codes: [one.loss(codes) for one in every[1:]],
        why=lambda codes: (sentences_of or values)(tallies, every, codes),
    )


def values(tallies: StatsTallies, every: Sequence[Judging], codes: Array) -> list[str]:
    """Describe datums by their first values, and their status unless it is "scored"."""
    names = dict.fromkeys(one.column.metric for one in every)
    first = [next(one for one in every if one.column.metric == name) for name in names][:N_EXAMPLES]
    words, standing = first[0].column.status or tallies.stats.status
    sentences = []
    for code in codes.tolist():
        text = ", ".join(
            f"{one.title} {one.value[code]:.3g}" for one in first if not np.isnan(one.value[code])
        )
        word = words[standing[code]]
        sentences.append(text if word == "scored" else f"{word.replace('_', ' ')}: {text}")
    return sentences


OF_VALUES: dict[str, Any] = {
    "merge": merge,
    "view": view,
    "cells_per_group": cells_per_group,
    "own_frames": own_frames,
    "losses": losses,
    "drawn": StatsView.drawn,
    "in_parts": IN_PARTS,
    "common": Common(common),
}
"""Fields of :class:`.task.Task` that these tasks share."""
