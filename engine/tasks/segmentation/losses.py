"""Loss of single images: mean IOU over their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects import Dialect
from ...metrics import Metric
from ...schemas.arrays import Array
from ..contents import called
from ..task import Cuts, Losses
from .settings import Settings
from .tallies import Tallies


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`; of several label keys the worst counts."""
    stats, areas = tallies.stats, tallies.pixels.areas
    ((column,), (agreeing,)) = stats.columns["mIOU"], stats.columns["PixelAccuracy"]
    value, agreement = (
        np.fmin.reduce(np.where(stats.counted[:, None], one.values[:, :, 0], np.nan), axis=1)
        for one in (column, agreeing)
    )

    def why(codes: Array) -> list[str]:
        """Pixels that are wrong, and the label with the most of them."""
        rows = np.flatnonzero(np.isin(areas.datum, codes))
        off = areas.truth[rows] + areas.found[rows] - 2 * areas.right[rows]
        rows = rows[np.lexsort((areas.label[rows], -off, areas.datum[rows]))]
        datums, first = np.unique(areas.datum[rows], return_index=True)
        worst = dict(zip(datums.tolist(), rows[first].tolist(), strict=True))
        sentences = []
        for code in codes.tolist():
            share = 100 * (1 - agreement[code])
            said = [] if np.isnan(share) else [f"{share:.3g} % of the pixels wrong"]
            if code in worst:
                at = worst[code]
                missed, false = (side[at] - areas.right[at] for side in (areas.truth, areas.found))
                said.append(
                    f"most of {called(tallies.labels.frame, int(areas.label[at]))}: {missed:,} of"
                    f" its {areas.truth[at]:,} missed, {false:,} too many"
                )
            sentences.append(", ".join(said))
        return sentences

    return Losses(
        metric="mIOU",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [-agreement[codes]],
        why=why,
    )
