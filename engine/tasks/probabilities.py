"""Check of scores that must be probabilities, while rows and columns are still the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ..ingest.frames import Frames
from ..ingest.problems import PartRefused
from ..ingest.wide import PREFIX
from ..schemas.contract import PREDICTIONS, ROW, TABLE
from ..schemas.wording import option

_SHOWN = 3
_STEP = (1000, 0)  # after whatever is wrong with slices


class NotProbabilities(PartRefused):
    """Scores outside [0, 1].

    Args:
        role: of the table.
        titles: the user's names of the affected columns, by index.
        count: number of such scores.
        found: row, column index and score of the first of them.
        counted: kind of row numbers.
        needing: the metrics that need probabilities, and "need".
    """

    def __init__(
        self,
        role: str,
        titles: Mapping[int, str],
        count: int,
        found: Sequence[tuple[int, int, float]],
        counted: str,
        needing: str,
    ) -> None:
        self.role, self.titles, self.counted = role, dict(titles), counted
        self.needing = needing
        self.found = sorted(found)[:_SHOWN]
        named = [f"row {row} ({titles[place]}={score!r})" for row, place, score in self.found]
        columns = ", ".join(repr(titles[place]) for place in sorted(titles))
        super().__init__(
            _STEP,
            count,
            self.found[0],
            f"{role}: column{'s' if len(titles) > 1 else ''} {columns}: ",
            ("value", "values"),
            f" outside [0, 1], first ({counted} count from 0): {'; '.join(named)}. {needing}"
            " probabilities: turn logits or percentages into probabilities, or leave"
            " these metrics out.",
            "not_probabilities",
            columns=[titles[place] for place in sorted(titles)],
            rows=[row for row, _, _ in self.found],
        )

    def of_all(self, parts: Sequence[NotProbabilities]) -> NotProbabilities:
        """All columns that have such scores in some part, and the first of them."""
        titles = {place: title for part in parts for place, title in part.titles.items()}
        found = [one for part in parts for one in part.found]
        count = sum(part.count for part in parts)
        return NotProbabilities(self.role, titles, count, found, self.counted, self.needing)


def check_probabilities(frames: Frames, needing: str) -> None:
    """Raise an error for scores outside [0, 1].

    Args:
        frames: checked tables, not encoded yet; scores in a column, or in one for each label.
        needing: the metrics that need probabilities, and "need", for messages.

    Raises:
        NotProbabilities: names the columns, the number of values, and the first row and column.
    """
    role = PREDICTIONS if frames.table is None else TABLE
    frame = frames.sides[role]
    names = ["score"]
    if frames.score_labels is not None:
        names = [f"{PREFIX}{label}" for label in frames.score_labels]
    beyond = {
        place: name
        for place, name in enumerate(names)
        if name in frame.columns and _beyond(frame[name])
    }
    if not beyond:
        return
    own = {canonical: mine for mine, canonical in frames.recognised.get(role, {}).items()}
    titles = {place: own.get(name, name.removeprefix(PREFIX)) for place, name in beyond.items()}
    outside = [(pl.col(name) < 0) | (pl.col(name) > 1) for name in beyond.values()]
    n = sum(frame.select(where.sum()).item() for where in outside)
    table = frame.lazy() if ROW in frame.columns else frame.lazy().with_row_index(ROW)
    some = table.select(ROW, *beyond.values()).filter(pl.any_horizontal(outside))
    rows = some.head(_SHOWN).collect()
    found = [
        (row[ROW], place, row[name])
        for row in rows.iter_rows(named=True)
        for place, name in beyond.items()
        if not 0 <= row[name] <= 1
    ]
    counted = f"rows that {option('where')} keeps" if frames.kept else "rows"
    raise NotProbabilities(role, titles, n, found, counted, needing)


def _beyond(scores: pl.Series) -> bool:
    if not len(scores):
        return False
    low, high = scores.min(), scores.max()
    return bool(low < 0 or high > 1)  # type: ignore[operator]
