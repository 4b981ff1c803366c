"""Checks of boxes beyond single columns: length of lists, order of corners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from evalengine.schemas.contract import GROUND_TRUTHS
from evalengine.schemas.wording import option

from .boxes import BOX_NAMES, CORNER_NAMES, LENGTH
from .problems import count_of, note_of

if TYPE_CHECKING:
    from .checks import Check


def screen(frame: pl.DataFrame) -> list[pl.Expr]:
    """Return aggregates that reveal wrong boxes."""
    wanted: list[pl.Expr] = []
    if all(name in frame.columns for name in CORNER_NAMES):
        wanted += [
            (pl.col(high) <= pl.col(low)).sum().alias(f"flat {low}")
            for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
        ]
    if LENGTH in frame.columns:
        wanted.append((pl.col(LENGTH) != 4).any().alias("length"))
    return wanted


def lengths(check: Check, seen: Mapping[str, Any]) -> None:
    """Refuse lists that are not four numbers."""
    if not seen.get("length"):
        return
    wrong = pl.col(LENGTH) != 4
    # Numbers missing in a short list are not reported as nulls.
    check.sound = dict.fromkeys(BOX_NAMES, pl.col(LENGTH).is_null() | ~wrong)
    n = check.count(wrong)
    own = check.origins.get("xmin", ["bbox"])[0]
    check.add(
        "not_four_numbers", "bbox", n,
        f"column {own!r}: {count_of(n, 'list')} without exactly four numbers,"
        f" {check.rows(wrong, [LENGTH])}. A box is four numbers.",
    )  # fmt: skip


def inverted(check: Check, seen: Mapping[str, Any]) -> None:
    """Inverted boxes are refused; those of zero area are legal and reported."""
    if not (seen.get("flat xmin") or seen.get("flat ymin")):
        return
    # Polars sorts NaN last, so NaN corners would look inverted; another check reports them.
    wrong = pl.any_horizontal(
        (pl.col(far) < pl.col(near)) & pl.col(near).is_finite()
        for near, far in (("xmin", "xmax"), ("ymin", "ymax"))
    )
    n = check.count(wrong)
    negative = {problem.column for problem in check.problems} & {"box_width", "box_height"}
    if n and not negative:
        ends = {check.own("xmax"): "box_width", check.own("ymax"): "box_height"}
        way = f"{option('columns', ends)} for both tables; for one of them, rename its columns"
        if len(ends) == 1:  # a list
            way = option("box_format", "xywh")
        check.add(
            "inverted_boxes", "xmin", n,
            f"{check.named(CORNER_NAMES)}: {count_of(n, 'inverted box', 'inverted boxes')}"
            f" (xmax < xmin or ymax < ymin), {check.rows(wrong, CORNER_NAMES)}. Swap the"
            f" corners; if the last two numbers are width and height, name them so: {way}.",
        )  # fmt: skip
    flat = (pl.col("xmax") == pl.col("xmin")) | (pl.col("ymax") == pl.col("ymin"))
    zero = check.count(flat & ~wrong)
    if zero:
        words = "box has", "boxes have", "zero area and cannot match"
        check.notes.append(note_of("zero_area_boxes", zero, words, before=f"{check.side}: "))
        empty = pl.all_horizontal(pl.col(*CORNER_NAMES) == 0)
        zeros = check.count(empty) if check.side == GROUND_TRUTHS else 0
        if zeros:
            words = (
                "box of 0, 0, 0, 0 counts", "boxes of 0, 0, 0, 0 count",
                "as objects that nothing can find. If they mark images without objects, leave"
                f" these rows out and list the images: {option('datums')}",
            )  # fmt: skip
            check.notes.append(note_of("boxes_of_zeros", zeros, words, before=f"{check.side}: "))
