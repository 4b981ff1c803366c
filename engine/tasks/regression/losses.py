"""What single datums are judged by: the error, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialects import Dialect
from ...metrics import Metric
from ...schemas.errors import InputError
from ...schemas.wording import option
from ..contents import ROWS, Content, Rows
from ..task import Cuts, Losses
from .settings import Settings
from .tallies import ERROR, Tallies

Array = np.ndarray[Any, Any]


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`; of several targets the worst counts."""
    if np.isnan(tallies.paired.prediction).any():
        way = option("columns", {"q0.5": "prediction"})
        raise InputError(
            "the predictions are distributions alone: errors of single datums need a column"
            f" 'prediction'. If another one is it, write {way}."
        )
    (column,) = tallies.stats.columns[ERROR]
    value = column.values[:, 0, 0]
    paired, names = tallies.paired, tallies.labels.key_names

    def why(codes: Array) -> list[str]:
        sentences = []
        for code in codes.tolist():
            own = _rows(paired.datum, code)
            error = np.abs(paired.target[own] - paired.prediction[own])
            at = own[int(np.argmax(error))]
            of = f"{names[paired.key[at]]}: " if len(names) > 1 else ""
            sentences.append(
                f"{of}predicted {paired.prediction[at]:.6g} where {paired.target[at]:.6g} is true"
            )
        return sentences

    return Losses(metric=ERROR, value=value, higher=False, best=0.0, ties=lambda codes: [], why=why)


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: targets of datums, the worst first."""
    paired, names = tallies.paired, tallies.labels.key_names
    out: list[Content] = []
    for code in codes.tolist():
        own = _rows(paired.datum, code)
        error = paired.prediction[own] - paired.target[own]
        own = own[np.argsort(-np.abs(error), kind="stable")]
        shown = tuple(
            (
                str(names[paired.key[at]]),
                f"{paired.target[at]:.6g}",
                f"{paired.prediction[at]:.6g}",
                f"{paired.prediction[at] - paired.target[at]:+.6g}",
            )
            for at in own[:ROWS].tolist()
        )
        columns = ("target", "true", "predicted", "error")
        out.append(Rows(columns=columns, rows=shown, left_out=max(0, own.size - ROWS)))
    return out


def _rows(datum: Array, code: int) -> Array:
    """The rows of a datum; rows go by datum."""
    return np.arange(np.searchsorted(datum, code), np.searchsorted(datum, code, side="right"))
