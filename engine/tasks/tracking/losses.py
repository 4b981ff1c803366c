"""Loss of single sequences: HOTA, else another number; and their contents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects import Dialect
from ...ingest.problems import count_of
from ...metrics import Metric
from ...schemas.arrays import Array
from ..contents import ROWS, Content, Rows, called
from ..task import Cuts, Losses
from .settings import Settings
from .tallies import Tallies

_JUDGES = ("HOTA", "MOTA", "IDF1")


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses | str:
    """See :class:`..task.JudgeDatums`."""
    judges = [name for name in _JUDGES if name in tallies.stats.columns]
    if not judges:
        return "sequences are judged by HOTA, MOTA or IDF1, and nothing of these was computed"
    (column,) = tallies.stats.columns[judges[0]]
    value = column.values[:, 0, 0]
    rows = tallies.tracks.rows
    totals = {
        name: np.bincount(rows.datum, getattr(rows, name), minlength=value.size)
        for name in ("truth", "found", "tp", "switches")
    }

    def why(codes: Array) -> list[str]:
        said = []
        for code in codes.tolist():
            truth, found, tp, switches = (int(totals[name][code]) for name in totals)
            parts = f"{count_of(truth, 'box', 'boxes')}, {found:,} predicted"
            if "clear" in tallies.counted:
                switched = count_of(switches, "switch", "switches")
                parts = f"{truth - tp:,} missed, {found - tp:,} too many, {switched}"
            said.append(parts)
        return said

    return Losses(
        metric=judges[0],
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [totals["truth"][codes] + totals["found"][codes]],
        why=why,
        by_score=False,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of sequences, the most boxes first."""
    rows = tallies.tracks.rows
    out: list[Content] = []
    names = ("label", "boxes", "predicted", "matched", "switches", "fragments")
    for code in codes.tolist():
        own = np.flatnonzero(rows.datum == code)
        own = own[np.argsort(-(rows.truth[own] + rows.found[own]), kind="stable")]
        shown = tuple(
            (
                called(tallies.labels.frame, int(rows.label[at])),
                *(
                    f"{getattr(rows, name)[at]}"
                    for name in ("truth", "found", "tp", "switches", "fragments")
                ),
            )
            for at in own[:ROWS].tolist()
        )
        out.append(Rows(columns=names, rows=shown, left_out=max(0, own.size - ROWS)))
    return out
