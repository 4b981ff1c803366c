"""Labels of single datums, predicted and true."""

from __future__ import annotations

import numpy as np

from ...kernels.label_matching import HIT
from ...schemas.arrays import Array
from ..contents import LABELS, Content, Labelled, LabelScore, called
from .settings import Settings
from .tallies import Tallies


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`."""
    units, scored, labels = tallies.units, tallies.scored, tallies.labels
    of_datum = units.datum_of()
    unit = np.flatnonzero(np.isin(of_datum, codes))
    true_unit, true_label = units.truth_rows()
    kept = np.isin(true_unit, unit)
    true_unit, true_label = true_unit[kept], true_label[kept]
    rows: Array = np.zeros(0, np.int64)
    row_unit = row_label = np.zeros(0, np.int32)
    if scored is not None:
        row_unit = (
            np.arange(len(scored), dtype=np.int32)
            if scored.unit_codes is None
            else scored.unit_codes
        )
        rows = np.flatnonzero(np.isin(row_unit, unit))
        row_unit = row_unit[rows]
        row_label = (
            np.full(rows.size, scored.only)
            if scored.label_codes is None
            else scored.label_codes[rows]
        )
    out: list[Content] = []
    for code in codes.tolist():
        own = unit[of_datum[unit] == code]
        found = []
        if scored is not None:
            here = np.flatnonzero(np.isin(row_unit, own))
            score = scored.score[rows[here]]
            order = np.lexsort((row_label[here], -score, labels.key[row_label[here]]))
            found = [
                _label(
                    tallies,
                    int(row_label[here[at]]),
                    float(score[at]) if scored.ranked else None,
                    bool(scored.outcome[rows[here[at]]] == HIT),
                )
                for at in order.tolist()
            ]
        elif units.hard is not None:
            hard = units.hard[own]
            found = [
                _label(tallies, int(label), None, bool(label == true))
                for label, true in zip(hard, units.truth[own], strict=True)
                if label >= 0
            ]
        truth = true_label[np.isin(true_unit, own)].tolist()
        out.append(
            Labelled(
                predicted=tuple(found[:LABELS]),
                left_out=max(0, len(found) - LABELS),
                truth=tuple(
                    (labels.key_names[labels.key[label]], called(labels.frame, label))
                    for label in truth[:LABELS]
                ),
            )
        )
    return out


def _label(tallies: Tallies, label: int, score: float | None, true: bool) -> LabelScore:
    labels = tallies.labels
    return LabelScore(
        key=labels.key_names[labels.key[label]],
        label=called(labels.frame, label),
        score=score,
        true=true,
    )
