"""Checks of probabilities and thresholds, and score thresholds per label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from ..ingest.frames import Frames
from ..ingest.problems import Note, PartRefused, listing
from ..ingest.recognise import PREFIX
from ..ingest.rules import WARNING, Facts, Rule, apply
from ..schemas.arrays import Array
from ..schemas.contract import PREDICTIONS, ROW, TABLE
from ..schemas.errors import N_EXAMPLES
from ..schemas.option_values import LabelThreshold, LabelThresholds, label_text
from ..schemas.wording import option
from ..tallies.datums import Labels
from ..tallies.ranked import comparable

# Thresholds that do not fit the scores.


def _describe_cut(facts: Facts) -> str:
    low, high, at = (facts.values.get(name, 0.0) for name in ("lowest", "highest", "threshold"))
    if "threshold" not in facts.values:
        return (
            "scores are outside [0, 1] and cut at 0.5: for logits"
            f" write {option('decision_threshold', 0)}, for percent"
            f" {option('decision_threshold', 50)}, for scores up to 255"
            f" {option('decision_threshold', 127.5)}."
        )
    name = facts.values["option"]
    percent = 1 < at <= 100 and low >= 0 and high <= 1
    tip = f" For a percentage write {option(name, at / 100)}." if percent else ""
    return (
        f"{option(name, at)} is beyond the scores, which run from {low:g} to"
        f" {high:g}: {'no' if at > high else 'every'} label is predicted.{tip}"
    )


CUT_RULES: tuple[Rule[list[Facts]], ...] = tuple(
    Rule(code, {code}, iter, _describe_cut) for code in ("cut_logits", "threshold_beyond_scores")
)
"""Rules for notes on a default threshold, and on one outside [0, 1]."""


def beyond_scores(name: str, at: float, lowest: float, highest: float) -> list[Note]:
    """Return the warning on a threshold that no score or every score reaches.

    Args:
        name: option whose value the threshold is.
        lowest: the lowest score, ``highest`` the highest.
    """
    values = {"option": name, "threshold": at, "lowest": lowest, "highest": highest}
    facts = Facts(severity=WARNING, values=values)
    return apply(CUT_RULES, "", {"threshold_beyond_scores"}, [facts])[0]


# Check of scores that must be probabilities, while rows and columns are still the user's.

_STEP = (1000, 0)  # after whatever is wrong with slices


class NotProbabilities(PartRefused):
    """Scores outside [0, 1].

    Args:
        role: of the table.
        titles: the user's names of the affected columns, by index.
        count: number of such scores.
        examples: row, column index and score of the first of them.
        counted: kind of row numbers.
        needing: the metrics that need probabilities, and "need".
    """

    def __init__(
        self,
        role: str,
        titles: Mapping[int, str],
        count: int,
        examples: Sequence[tuple[int, int, float]],
        counted: str,
        needing: str,
    ) -> None:
        self.role, self.titles, self.counted = role, dict(titles), counted
        self.needing = needing
        self.examples = sorted(examples)[:N_EXAMPLES]
        named = [f"row {row} ({titles[place]}={score!r})" for row, place, score in self.examples]
        columns = ", ".join(repr(titles[place]) for place in sorted(titles))
        super().__init__(
            _STEP,
            count,
            self.examples[0],
            f"{role}: column{'s' if len(titles) > 1 else ''} {columns}: ",
            ("value", "values"),
            f" outside [0, 1], first ({counted} count from 0): {'; '.join(named)}. {needing}"
            " probabilities: turn logits or percentages into probabilities, or remove these"
            " metrics.",
            "not_probabilities",
            columns=[titles[place] for place in sorted(titles)],
            rows=[row for row, _, _ in self.examples],
        )

    def of_all(self, parts: Sequence[NotProbabilities]) -> NotProbabilities:
        """All columns that have such scores in some part, and the first of them."""
        titles = {place: title for part in parts for place, title in part.titles.items()}
        examples = [one for part in parts for one in part.examples]
        count = sum(part.count for part in parts)
        return NotProbabilities(self.role, titles, count, examples, self.counted, self.needing)


def check_probabilities(frames: Frames, needing: str) -> None:
    """Raise an error for scores outside [0, 1].

    Args:
        frames: checked tables, not encoded yet; scores in a column, or in one for each label.
        needing: the metrics that need probabilities, and "need", for messages.
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
    user_names = {canonical: mine for mine, canonical in frames.recognised.get(role, {}).items()}
    titles = {
        place: user_names.get(name, name.removeprefix(PREFIX)) for place, name in beyond.items()
    }
    outside = [(pl.col(name) < 0) | (pl.col(name) > 1) for name in beyond.values()]
    n = sum(frame.select(where.sum()).item() for where in outside)
    table = frame.lazy() if ROW in frame.columns else frame.lazy().with_row_index(ROW)
    some = table.select(ROW, *beyond.values()).filter(pl.any_horizontal(outside))
    rows = some.head(N_EXAMPLES).collect()
    examples = [
        (row[ROW], place, row[name])
        for row in rows.iter_rows(named=True)
        for place, name in beyond.items()
        if not 0 <= row[name] <= 1
    ]
    counted = f"rows that {option('where')} keeps" if frames.remaining else "rows"
    raise NotProbabilities(role, titles, n, examples, counted, needing)


def _beyond(scores: pl.Series) -> bool:
    if not len(scores):
        return False
    low, high = scores.min(), scores.max()
    return bool(low < 0 or high > 1)  # type: ignore[operator]


# Score thresholds of single labels, against the labels of a run.


def limits_of(
    thresholds: LabelThresholds, labels: Labels, *, single: bool, otherwise: float
) -> Array:
    """Return the score from which predictions of each label count, float64 [labels].

    A row for the label has priority over one for its key, and that over a general row. If both
    sides have names, labels match by name, whatever their values.

    Args:
        thresholds: of the labels.
        single: scores came in single precision, to which thresholds are then rounded.
        otherwise: value for labels without a threshold.
    """
    rows = _Rows(thresholds)
    limits = []
    for label in _named(labels):
        row = next(rows.of(*label), None)
        limits.append(comparable(otherwise if row is None else row.number, single=single))
    return np.array(limits, np.float64)


class _Rows:
    """Index of thresholds by name and value."""

    def __init__(self, thresholds: LabelThresholds) -> None:
        self.by_value = {(row.key, row.value): row for row in thresholds}
        often = Counter((row.key, row.name) for row in thresholds)
        self.by_name = {
            (row.key, row.name): row
            for row in thresholds
            if row.name is not None and often[row.key, row.name] == 1
        }

    def of(self, key: str, value: str, name: str | None) -> Iterator[LabelThreshold]:
        """Yield the rows that match a label, the most specific first."""
        for k in (key, None):
            if (row := self.by_name.get((k, name or value))) is not None:
                yield row
        for text in dict.fromkeys((value, name or value, None)):
            for k in (key, None):
                row = self.by_value.get((k, text))
                if row is not None and (
                    text is None or (row.name is None or name is None or row.name == name)
                ):
                    yield row


def notes_of(
    thresholds: LabelThresholds, labels: Labels, scored: Array | None = None
) -> list[Note]:
    """Return notes on thresholds: unknown labels, labels without one, ambiguous matches.

    Matches by name, or by a value that means something else in the other place, are reported.

    Args:
        thresholds: of the labels.
        scored: bool [labels], labels whose scores are used; None for all.
    """
    rows, named = _Rows(thresholds), _named(labels)
    matches = [list(rows.of(*label)) for label in named]
    listed = {row for candidates in matches for row in candidates}
    unused = [
        row.name or row.value for row in thresholds if row.value is not None and row not in listed
    ]
    moved, unnamed = [], []
    for (_, value, name), candidates in zip(named, matches, strict=True):
        row = candidates[0] if candidates else None
        if row is None or row.name is None:
            continue
        if row.name in (name, value) and row.value != value:
            moved.append(f"{row.name} ({row.value} there, {value} here)")
        elif name is None and row.name != value:
            unnamed.append(f"{value} ({row.name})")
    missing = np.array([not candidates for candidates in matches], bool) & (
        True if scored is None else scored
    )
    without = [value for (_, value, _), lack in zip(named, missing, strict=True) if lack]
    cases = {
        "thresholds_unused": (unused, "no side has the label {}"),
        "thresholds_moved": (moved, "labels matched by name, as their values differ: {}"),
        "thresholds_unnamed": (
            unnamed,
            "labels matched by value, as the tables do not name them: {}",
        ),
        "thresholds_lacking": (without, "none for the label {}, which is as without the option"),
    }
    return [
        Note(kind, f"thresholds: {words.format(listing(values))}.", 0, facts={"labels": values[:5]})
        for kind, (values, words) in cases.items()
        if values
    ]


def _named(labels: Labels) -> list[tuple[str, str, str | None]]:
    """Return key, value and name (or None) of each label, as text."""
    frame = labels.frame
    names = frame["label_name"].to_list() if "label_name" in frame.columns else [None] * len(frame)
    rows = zip(frame["label_key"].to_list(), frame["label_value"].to_list(), names, strict=True)
    return [
        (key, label_text(value), None if name is None else str(name)) for key, value, name in rows
    ]
