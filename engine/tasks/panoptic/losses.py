"""Loss of single images: PQ over their labels; and their contents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects import Dialect
from ...metrics import Metric
from ...schemas.arrays import Array
from ..contents import ROWS, Content, Rows, called
from ..task import Cuts, Losses
from .settings import Settings
from .tallies import Tallies


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`."""
    (column,) = tallies.stats.columns["PQ"]
    value = column.values[:, 0, 0]
    rows = tallies.segments.rows
    fp, fn = (
        np.bincount(rows.datum, getattr(rows, name), minlength=value.size) for name in ("fp", "fn")
    )

    def why(codes: Array) -> list[str]:
        return [f"{int(fn[code]):,} missed, {int(fp[code]):,} too many" for code in codes.tolist()]

    return Losses(
        metric="PQ",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [fp[codes] + fn[codes]],
        why=why,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of images, those with most errors first."""
    rows = tallies.segments.rows
    out: list[Content] = []
    for code in codes.tolist():
        own = np.flatnonzero(rows.datum == code)
        own = own[np.argsort(-(rows.fp[own] + rows.fn[own]), kind="stable")]
        shown = tuple(
            (
                called(tallies.labels.frame, int(rows.label[at])),
                str(rows.tp[at]),
                str(rows.fn[at]),
                str(rows.fp[at]),
                f"{rows.iou[at] / rows.tp[at]:.3f}" if rows.tp[at] else None,
            )
            for at in own[:ROWS].tolist()
        )
        names = ("label", "matched", "missed", "too many", "mean IoU")
        out.append(Rows(columns=names, rows=shown, left_out=max(0, own.size - ROWS)))
    return out
