"""What a table of datums says of labels: seen, not seen, not all annotated; and caps of datums."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...kernels.order import group_by_label
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tally.datums import Datums, Labels
from .rules import DetectionRules

Array = np.ndarray[Any, Any]

_LISTS = ("positive_labels", "negative_labels", "partial_labels")


class Listed(msgspec.Struct, frozen=True):
    """What is said of labels in datums that need not have a row of theirs.

    Attributes:
        start: int64 [labels + 1], offsets by label.
        datum: int32 [k].
        checked: bool [k], whether the label was looked for in the datum.
        partial: bool [k], whether not every object of it is annotated there.
    """

    start: Array
    datum: Array
    checked: Array
    partial: Array


def listed(frames: Frames, datums: Datums, labels: Labels, rules: DetectionRules) -> Listed | None:
    """The lists of the table of datums, coded; None where the dialect does not ask for them.

    Raises:
        InputError: the lists are missing, or a datum has none.
    """
    if not rules.federated:
        return None
    table = frames.datums
    missing = [name for name in rules.federated if table is None or name not in table.columns]
    if table is None or missing:
        lists = " and ".join(map(repr, missing))
        raise InputError(
            f"datums: {lists} missing, and so where labels were looked for. Give"
            f" a table of all datums with them as lists of labels, {option('datums')}, or LVIS JSON"
            " as ground truths; other data need another dialect."
        )
    names = [name for name in _LISTS if name in table.columns]
    pairs = [
        table.select(
            "datum_id",
            pl.col(name).cast(pl.List(_dtype(table[name], labels))).alias("value"),
            checked=pl.lit(name != "partial_labels"),
            partial=pl.lit(name == "partial_labels"),
        )
        .explode("value")
        .drop_nulls("value")
        for name in names
    ]
    return _coded(pl.concat(pairs), frames, datums, labels)


def _dtype(lists: pl.Series, labels: Labels) -> pl.DataType:
    """The dtype of labels, which that of lists must go with.

    Raises:
        InputError: integers on one side and strings on the other.
    """
    own = lists.explode()
    if len(own.drop_nulls()) and (own.dtype == pl.String) != (labels.dtype == pl.String):
        raise InputError(
            f"datums: column {lists.name!r} holds lists of {own.dtype}, labels are {labels.dtype}."
            " Cast them to one."
        )
    return labels.dtype


def _coded(pairs: pl.DataFrame, frames: Frames, datums: Datums, labels: Labels) -> Listed:
    """The lists, laid out by label; labels that no row has and nobody declares are left out."""
    codes = labels.frame.select("label_value", "label_key").with_row_index("label")
    if frames.label_map:
        every = pl.concat(list(frames.label_map.values()), how="vertical_relaxed")
        renamed = (
            every.select(
                pl.col("label_value").alias("value"),
                pl.col("new_label_key").alias("label_key"),
                pl.col("new_label_value").alias("label_value"),
            )
            .drop_nulls()
            .unique()
        )
        own = codes.join(
            renamed.select("value"), left_on="label_value", right_on="value", how="anti"
        )
        codes = pl.concat(
            [
                own.select("label", pl.col("label_value").alias("value")),
                codes.join(renamed, on=["label_key", "label_value"]).select("label", "value"),
            ]
        )
    else:
        codes = codes.select("label", pl.col("label_value").alias("value"))
    places = datums.id.to_frame("datum_id").with_row_index("datum")
    coded = (
        pairs.with_columns(pl.col("datum_id").cast(datums.id_dtype))
        .join(codes, on="value")
        .join(places, on="datum_id")
    )
    datum, label = (coded[name].cast(pl.Int32).to_numpy() for name in ("datum", "label"))
    start, place = group_by_label(datum, label, len(datums), len(labels))
    flags = coded["checked"].to_numpy(), coded["partial"].to_numpy()
    laid = []
    for column in (datum, *flags):
        out = np.empty_like(column)
        out[place] = column
        laid.append(out)
    return Listed(start, *laid)


def beyond_cap(frame: pl.DataFrame, cap: int) -> pl.Series | None:
    """Predictions within the cap on each datum, by score over all its labels, then row.

    Args:
        frame: datum_id and score.
        cap: the most of one datum.

    Returns:
        Boolean [n]; None where no datum has more.
    """
    many = frame.select(pl.col("datum_id")).to_series().value_counts()
    full = many.filter(pl.col("count") > cap)["datum_id"]
    if not len(full):
        return None
    numbered = frame.select("datum_id", "score").with_row_index("row")
    ordered = numbered.filter(pl.col("datum_id").is_in(full.implode())).sort(
        "datum_id", "score", descending=[False, True], maintain_order=True
    )
    place = pl.int_range(pl.len()).over("datum_id")
    out = np.ones(frame.height, np.bool_)
    out[ordered.filter(place >= cap)["row"].to_numpy()] = False
    return pl.Series("within", out)
