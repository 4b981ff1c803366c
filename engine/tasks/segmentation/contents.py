"""What single images hold: pixels of every label that are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contents import LABELS, Content, LabelPixels, PixelsWrong, called
from .settings import Settings
from .tallies import Tallies


def contents(tallies: Tallies, settings: Settings, codes: np.ndarray[Any, Any]) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`."""
    areas, labels = tallies.pixels.areas, tallies.labels
    rows = np.flatnonzero(np.isin(areas.datum, codes))
    wrong = areas.truth[rows] + areas.found[rows] - 2 * areas.right[rows]
    rows = rows[np.lexsort((areas.label[rows], -wrong))]
    out: list[Content] = []
    for code in codes.tolist():
        own = rows[areas.datum[rows] == code]
        shown = []
        for at in own[:LABELS].tolist():
            label = int(areas.label[at])
            truth, found, right = (
                int(column[at]) for column in (areas.truth, areas.found, areas.right)
            )
            union = truth + found - right
            shown.append(
                LabelPixels(
                    key=labels.key_names[labels.key[label]],
                    label=called(labels.frame, label),
                    truth=truth,
                    missed=truth - right,
                    false=found - right,
                    iou=right / union if union else None,
                )
            )
        out.append(PixelsWrong(labels=tuple(shown), left_out=max(0, own.size - LABELS)))
    return out
