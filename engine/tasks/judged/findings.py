"""Findings on verdicts, collected per part of a table and merged for the whole.

A run in memory is one part. Counts are added, the lowest rows and ids of all parts are named, and
spellings are compared across parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any

import msgspec

from ... import metrics
from ...ingest.problems import Note, count_of, listing
from ...schemas.errors import InputError
from ...tallies.merging import added
from .dialects import Settings
from .metrics import NOT_JUDGED, SCORED, kinds_of

NO_VERDICT, WRONG_WORD = "no_verdict", "wrong_vocabulary"
MISSING, EXTRA, UNLIKE = "missing_verdicts", "extra_verdicts", "items_differ"

TOLD = {
    NO_VERDICT: "A row has no verdict",
    WRONG_WORD: "A verdict is not a word of its metric",
    MISSING: "There are fewer verdicts than items",
    EXTRA: "There are more verdicts than items",
    UNLIKE: "Verdicts on the same items have different numbers of items",
}
"""Kinds of error visible in the table -> sentence about the datums."""

NAMED = 5  # datums in a note
SHOWN = 4  # rows of repeated verdicts
LOST = 0.1  # share of a metric's datums without a value from which unknown words are a warning


class Some(msgspec.Struct):
    """Number of datums, and the lowest ids.

    Attributes:
        lowest: ids, ascending, ``NAMED`` at most.
        judgments: number of affected judgments, if counted.
    """

    n: int = 0
    lowest: list[Any] = []
    judgments: int = 0


class Strange(msgspec.Struct):
    """An unknown word of a metric.

    Attributes:
        row: the first row with it.
        need: need of that row.
        part: part of that row.
    """

    row: int
    need: str
    part: str


class Again(msgspec.Struct):
    """A repeated verdict.

    Attributes:
        place: datum id, need, part, reference, item, judgment.
        row: its row.
        metric: as written there.
        step: as written there.
    """

    place: tuple[Any, str, str, int, int, int]
    row: int
    metric: str
    step: str | None


class Findings(msgspec.Struct):
    """Findings on one part of a table of verdicts.

    Attributes:
        written: metric as written -> rows, including unknown metrics.
        wrong_step: first row whose step its metric does not have, and the message.
        spelled: distinct metric and step as written, need and part, of verdicts.
        again: number of rows with a repeated verdict.
        repeated: the first of them, ``SHOWN`` at most.
        kinds: kind of error of ``TOLD`` -> datums.
        strange: metric as written -> word -> its first occurrence.
        apart: need -> datums with judgments that did not vote.
        standings: need -> status -> number of datums.
    """

    written: dict[str, int] = {}
    wrong_step: tuple[int, str] | None = None
    spelled: list[tuple[str, str | None, str, str]] = []
    again: int = 0
    repeated: list[Again] = []
    kinds: dict[str, Some] = {}
    strange: dict[str, dict[str, Strange]] = {}
    apart: dict[str, Some] = {}
    standings: dict[str, dict[str, int]] = {}


def merge_findings(parts: Sequence[Findings]) -> Findings:
    """Merge findings.

    Args:
        parts: of disjoint sets of datums, rows numbered as in the whole.
    """
    steps = [part.wrong_step for part in parts if part.wrong_step is not None]
    spelled = dict.fromkeys(one for part in parts for one in part.spelled)
    return Findings(
        written=added(part.written for part in parts),
        wrong_step=min(steps) if steps else None,
        spelled=[*spelled],
        again=sum(part.again for part in parts),
        repeated=nsmallest(
            SHOWN,
            (one for part in parts for one in part.repeated),
            key=lambda one: (one.place, one.row),
        ),
        kinds=_datums(part.kinds for part in parts),
        strange=_first(part.strange for part in parts),
        apart=_datums(part.apart for part in parts),
        standings={
            need: added(part.standings.get(need, {}) for part in parts)
            for need in dict.fromkeys(need for part in parts for need in part.standings)
        },
    )


def _datums(parts: Iterable[Mapping[str, Some]]) -> dict[str, Some]:
    total: dict[str, Some] = {}
    for part in parts:
        for name, some in part.items():
            before = total.get(name, Some())
            total[name] = Some(
                before.n + some.n,
                nsmallest(NAMED, [*before.lowest, *some.lowest]),
                before.judgments + some.judgments,
            )
    return total


def _first(parts: Iterable[Mapping[str, Mapping[str, Strange]]]) -> dict[str, dict[str, Strange]]:
    first: dict[str, dict[str, Strange]] = {}
    for part in parts:
        for name, words in part.items():
            seen = first.setdefault(name, {})
            for word, case in words.items():
                if word not in seen or case.row < seen[word].row:
                    seen[word] = case
    return first


def refuse(findings: Findings) -> None:
    """Raise InputError if rows cannot be read as verdicts."""
    if findings.wrong_step is not None:
        raise InputError(
            findings.wrong_step[1], code="wrong_step", column="step", row=findings.wrong_step[0]
        )
    written = {(metric, step) for metric, step, _, _ in findings.spelled}
    if not findings.again or len(written) == len(
        {(need, part) for *_, need, part in findings.spelled}
    ):
        return
    shown = [
        f"{one.row} (metric {one.metric!r}" + (f", step {one.step!r})" if one.step else ")")
        for one in findings.repeated
    ]
    more = ", ..." if findings.again > len(shown) else ""
    raise InputError(
        f"columns 'metric' and 'step': {count_of(findings.again, 'row')} of which another has the"
        f" same verdict by another spelling, in rows {', '.join(shown)}{more}. Each verdict may"
        f" appear once; several judgments of one item are distinguished by judgment_index.",
        code="repeated_values",
        column="step",
        count=findings.again,
    )


def notes(findings: Findings, settings: Settings) -> list[Note]:
    """Return the notes on verdicts, in display order."""
    result = [
        Note(
            kind,
            f"{words} in {_of(findings.kinds[kind])}: an error, not a score.",
            findings.kinds[kind].n,
        )
        for kind, words in TOLD.items()
        if kind in findings.kinds
    ]
    result += [_of_words(name, findings, settings) for name in sorted(findings.strange)]
    result += [_without_vote(need, findings.apart[need]) for need in sorted(findings.apart)]
    result += [_coverage(need, findings.standings[need]) for need in sorted(findings.standings)]
    return [note for note in result if note.message]


def _of(some: Some) -> str:
    return f"{count_of(some.n, 'datum')} ({listing(some.lowest, some.n)})"


def _of_words(name: str, findings: Findings, settings: Settings) -> Note:
    """Return a note on unknown words of a metric, with its known words; a warning if they cost many
    datums their value.
    """
    words = findings.strange[name]
    accepted: list[str] = []
    for word in sorted(words):
        counts = settings.words_of(words[word].need, words[word].part).counts
        accepted += [one for one in counts if one not in accepted]
    exact = " to the letter" if settings.rules.fold == "exact" else ""
    message = (
        f"{listing(sorted(words))} among the verdicts of {name}: unknown. Known are"
        f" {', '.join(accepted)}{exact}."
    )
    needs = {case.need for case in words.values()} & findings.standings.keys()
    total = added(findings.standings[need] for need in needs)
    lost, rows = total.get(WRONG_WORD, 0), sum(total.values()) - total.get(NOT_JUDGED, 0)
    if many := lost > LOST * rows:
        message += f" {lost:,} of {count_of(rows, 'datum')} have no value: write the known words."
    return Note(
        "unknown_words",
        message,
        len(words),
        warning=many,
        facts={"metric": name, "words": sorted(words)[:NAMED]},
    )


def _without_vote(need: str, some: Some) -> Note:
    """Judgments that did not vote, since most found another number of items."""
    message = (
        f"{metric_of(need).name}: {count_of(some.judgments, 'judgment')} of {_of(some)} did not"
        " vote: the number of items is not that of the judgments that decide."
    )
    return Note(
        "judgments_without_vote", message, some.judgments, facts={"metric": metric_of(need).name}
    )


def _coverage(need: str, standings: Mapping[str, int]) -> Note:
    """Return a note on how many datums of a metric have a value, if some have none."""
    count = {name: n for name, n in standings.items() if n and name not in (SCORED, NOT_JUDGED)}
    scored = standings.get(SCORED, 0)
    unscored = kinds_of(count)
    rows = scored + sum(count.values())
    message = (
        f"{metric_of(need).name}: {scored:,} of {count_of(rows, 'row')} scored; {unscored}."
        if unscored
        else ""
    )
    return Note(
        "coverage", message, rows - scored, facts={"metric": metric_of(need).name, "rows": rows}
    )


def metric_of(need: str) -> metrics.Metric:
    """The metric that a need is for."""
    return next(one for one in metrics.all_metrics("judged").values() if one.needs == (need,))
