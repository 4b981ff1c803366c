"""Loss of single datums, their error; and their contents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects import Dialect
from ...metrics import Metric
from ...schemas.arrays import Array
from ..contents import ROWS, Content, Rows
from ..task import Cuts, Losses
from .settings import Settings
from .tallies import ERROR, Tallies, errors_of


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`; of several targets the worst counts."""
    ((error, (column,)),) = tallies.stats.columns.items()
    value = column.values[:, 0, 0]
    paired, names = tallies.paired, tallies.labels.key_names

    def why(codes: Array) -> list[str]:
        sentences = []
        for code in codes.tolist():
            own = _rows(paired.datum, code)
            each = errors_of(paired.chosen(own), error, settings)
            at = own[int(np.argmax(each))]
            of = f"{names[paired.key[at]]}: " if len(names) > 1 else ""
            found = f"predicted {paired.prediction[at]:.6g}"
            if error != ERROR:
                found = f"{error} {each.max():.6g}"
            sentences.append(f"{of}{found} where {paired.target[at]:.6g} is true")
        return sentences

    return Losses(metric=error, value=value, higher=False, best=0.0, ties=lambda codes: [], why=why)


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: targets of datums, the worst first."""
    paired, names = tallies.paired, tallies.labels.key_names
    (error,) = tallies.stats.columns
    out: list[Content] = []
    for code in codes.tolist():
        own = _rows(paired.datum, code)
        each = errors_of(paired.chosen(own), error, settings)
        order = np.argsort(-each, kind="stable")
        shown = tuple(
            (
                str(names[paired.key[at]]),
                f"{paired.target[at]:.6g}",
                *(
                    (
                        f"{paired.prediction[at]:.6g}",
                        f"{paired.prediction[at] - paired.target[at]:+.6g}",
                    )
                    if error == ERROR
                    else (f"{value:.6g}",)
                ),
            )
            for at, value in zip(own[order].tolist(), each[order].tolist(), strict=True)
        )
        columns = ("target", "true", *(("predicted", "error") if error == ERROR else (error,)))
        out.append(Rows(columns=columns, rows=shown[:ROWS], left_out=max(0, own.size - ROWS)))
    return out


def _rows(datum: Array, code: int) -> Array:
    """The rows of a datum; rows go by datum."""
    return np.arange(np.searchsorted(datum, code), np.searchsorted(datum, code, side="right"))
