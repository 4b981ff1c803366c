"""Problems that stop a run, notes that do not, and nouns for datums per task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from ..schemas.errors import InputError
from ..schemas.wording import options_in

# Nouns for datums, per task.


class DatumNouns(NamedTuple):
    """Nouns for the datums of a task."""

    column: str = "datum_id"
    one: str = "datum"
    many: str = "datums"

    def named(self, column: str) -> str:
        """A column as the user knows it."""
        return self.column if column == "datum_id" else column


PLAIN = DatumNouns()


# Findings about the input: problems, which stop the run, and notes.


class Note(msgspec.Struct, frozen=True):
    """Information or warning for the user that does not stop the run.

    Attributes:
        kind: code: ``zero_area_boxes``, ``labels_one_side``, ...
        count: number of rows, labels or datums, or None.
        words: singular, plural and predicate, if the message consists of these, the count and the
            lowest ids.
        warning: whether the result is meaningless, for example because no labels match: ``check``
            fails then, and ``--strict`` ends with status 1.
        facts: plain values: ``columns``, ``count``, ``of``, ``rows``, others.
    """

    kind: str
    message: str
    count: int | None = None
    words: tuple[str, str, str] | None = None
    lowest: tuple[Any, ...] = ()
    before: str = ""
    warning: bool = False
    facts: dict[str, Any] = {}


def not_read(message: str) -> Note:
    """Return the note about an unread option, the first that the text names."""
    return Note("option_not_read", message, facts={"option": options_in(message)[0]})


MANY = 0.1
"""Share of datums from which a note on them is a warning."""
OTHER_DOCUMENTS = "documents_apart"
"""Kind of a note: no document has a judgment; true of the whole if it is true of each part."""
UNMET = "option_value_unmet"
"""Kind of a note: nothing in the tables has a name in an option; likewise."""
VOID_PREDICTED = "void_predicted"
"""Kind of a note: only the predictions have the index of void; likewise."""


def note_of(
    kind: str, n: int, words: tuple[str, str, str], lowest: Iterable[Any] = (), before: str = ""
) -> Note:
    """Make a note on a number of datums or rows, with the lowest ids.

    Args:
        lowest: at least five of their ids, lowest first, or all; empty to name no ids.
    """
    one, several, what = words
    some = tuple(lowest)[:5]
    named = f": {listing(some, n)}" if some else ""
    message = f"{before}{count_of(n, one, several)} {what}{named}."
    return Note(kind, message, n, words, some, before)


def tied_notes(
    n: int,
    of: int,
    words: tuple[str, str],
    answers: str,
    numbers: str,
    order: str = "the order of the rows",
    *,
    beyond: float = MANY,
    least: float = 0.0,
) -> list[Note]:
    """The note on ties of right and wrong answers at the top.

    Args:
        n: datums in which a right and a wrong answer share the highest score.
        of: datums with a right answer.
        beyond: share of datums beyond which the note is a warning.
        least: share of all datums below which buckets have no note together.
    """
    if not n:
        return []
    what = f"with equal highest scores of right and wrong {answers}: {numbers} depend on {order}"
    note = note_of("tied_top_scores", n, (*words, what))
    facts = {"count": n, "of": of, "beyond": beyond, "least": least}
    return [msgspec.structs.replace(note, warning=n > beyond * of, facts=facts)]


Describe = Callable[[str, dict[str, Any]], str | None]
"""Function from code and facts to the message; None for a code without a rule."""


def notes_of_parts(parts: Iterable[Sequence[Note]], describe: Describe | None = None) -> list[Note]:
    """Merge notes of parts of one input: counts are added, the lowest ids named.

    A counted note without words and facts keeps the message of its first part, with the sum.
    """
    each = [*parts]
    groups: dict[tuple[str, str], list[Note]] = {}
    for note in (note for notes in each for note in notes):
        plain = note.message if note.count is None else ""
        if note.words is not None:
            plain = repr((note.before, *note.words[1:]))
        elif note.facts:
            plain = repr(
                {k: v for k, v in note.facts.items() if not (k in _ADDED or type(v) is float)}
            )
        groups.setdefault((note.kind, plain), []).append(note)
    merged = [_whole(notes, len(each), describe) for notes in groups.values()]
    return [note for note in merged if note is not None]


_OF_DATUMS = ("with_ground_truths", "ground_truths", "sizes", "lost")
_ADDED = ("count", "of", "values", *_OF_DATUMS)
"""Facts of parts that add up."""


def _whole(notes: Sequence[Note], parts: int, describe: Describe | None) -> Note | None:
    """Return the note of all parts, or None if its count is below ``fewest`` or ``least``.

    A ``least`` that is a float is a share of the rows.
    """
    first = notes[0]
    if first.count is None and not first.facts:
        return first
    counts = [note.count for note in notes if note.count is not None]
    n = sum(counts) if counts else None
    facts = _facts_of_parts([note.facts for note in notes])
    warning = any(note.warning for note in notes)
    of = facts.get("of", 0) * parts / len(notes)  # parts without a note have none
    if "beyond" in facts:  # a share of the whole decides
        warning = (n or 0) > facts["beyond"] * of
    least = facts.get("least", 0)
    if (n or 0) < max(facts.get("fewest", 0), least * of if type(least) is float else least):
        return None
    merged = first
    if first.words is not None and n is not None:
        lowest = sorted({i for note in notes for i in note.lowest})
        merged = note_of(first.kind, n, first.words, lowest, first.before)
    elif (
        describe is not None
        and first.facts
        and (message := describe(first.kind, facts)) is not None
    ):
        merged = Note(first.kind, message, n)
    elif n != first.count:
        merged = Note(first.kind, f"{first.message} In all buckets: {n:,}.", n)
    return msgspec.structs.replace(merged, warning=warning, facts=facts)


def added_lists(parts: Sequence[dict[str, list[int]]]) -> dict[str, list[int]]:
    """Return the sums of lists of counts, by name."""
    sums: dict[str, list[int]] = {}
    for part in parts:
        for name, counts in part.items():
            sums[name] = [
                a + b for a, b in zip(sums.get(name, [0] * len(counts)), counts, strict=True)
            ]
    return sums


def _facts_of_parts(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Facts of the whole: counts add up, of other numbers the mean, weighted by ``of``."""
    facts = dict(parts[0])
    for name, one in facts.items():
        if type(one) is dict:
            facts[name] = added_lists([part.get(name, {}) for part in parts])
        elif name in _ADDED:
            facts[name] = sum(part.get(name, 0) for part in parts)
        elif type(one) is float:
            weights = [part.get("of", 1) for part in parts]
            total = sum(w * part[name] for w, part in zip(weights, parts, strict=True))
            facts[name] = total / sum(weights)
    for name, pick in (("lowest", min), ("highest", max)):
        if name in facts:
            facts[name] = pick(part[name] for part in parts)
    return facts


class Words(NamedTuple):
    """Words of a problem of rows, around their number and the first of them."""

    before: str
    one: str
    several: str
    what: str
    after: str

    def describe(self, n: int, rows: Sequence[tuple[int, str]]) -> str:
        text = "; ".join(row for _, row in rows)
        return f"{self.before}{count_of(n, self.one, self.several)}{self.what}{text}{self.after}"


class Problem(msgspec.Struct, frozen=True):
    """Something that stops the run.

    Attributes:
        side: the table, e.g. ``predictions``; empty if the message names it.
        column: canonical column it concerns, empty if none.
        message: the fault, its place and the remedy.
        count: number of rows, if known.
        rows: the rows named in the message: number in the table, and how it is written.
        step: of the check that found it, from 1; problems of parts are in the order of these.
            0 for rules and for columns, whose problems are of the whole.
        kind: stable code, such as ``null_values``.
        facts: further values the message is made of.
        words: those of the message, if it is about rows.
    """

    side: str
    column: str
    message: str
    count: int | None = None
    rows: tuple[tuple[int, str], ...] = ()
    step: int = 0
    kind: str = ""
    facts: dict[str, Any] = {}
    words: Words | None = None

    def as_facts(self) -> dict[str, Any]:
        """Return side, column, count and rows, if known, with the other facts."""
        numbers = [row for row, _ in self.rows]
        facts = {"side": self.side, "column": self.column, "count": self.count, "rows": numbers}
        return {k: v for k, v in facts.items() if v not in ("", None, [])} | self.facts

    def extended(self, more: str) -> Problem:
        """Return the problem with a sentence added to its message."""
        words = self.words and self.words._replace(after=self.words.after + more)
        return msgspec.structs.replace(self, message=self.message + more, words=words)


def problems_of_parts(parts: Iterable[Sequence[Problem]]) -> list[Problem]:
    """Merge problems of parts of one input: counts are added, the first rows named."""
    groups: dict[Any, list[Problem]] = {}
    for problem in (problem for problems in parts for problem in problems):
        plain = problem.words and problem.words.what
        groups.setdefault((problem.side, problem.column, problem.kind, plain), []).append(problem)
    merged = []
    for first, *others in groups.values():
        if first.words is None or not others:
            merged.append(first)
            continue
        same = [first, *others]
        n = sum(problem.count or 0 for problem in same)
        rows = tuple(sorted({row for problem in same for row in problem.rows})[:3])
        facts = _facts_of_parts([problem.facts for problem in same])
        merged.append(
            msgspec.structs.replace(
                first, message=first.words.describe(n, rows), count=n, rows=rows, facts=facts
            )
        )
    return sorted(merged, key=lambda problem: problem.step)


class ChecksFailed(InputError):
    """All problems of the input together, one line each. Code and facts are those of the first."""

    def __init__(self, problems: Sequence[Problem], sources: dict[str, str]) -> None:
        self.problems = tuple(problems)
        self.sources = dict(sources)
        super().__init__("\n".join(_lines(problems, sources)), code=problems[0].kind)
        self.facts = problems[0].as_facts()


class PartRefused(InputError):
    """A problem of one kind, counted over all partitions of an input.

    Attributes:
        step: place in the order of all checks.
        count: how many there are.
        first: place of the named one: a row, or an id.
        words: text before the count, its words for one and for several, and the rest.
        about: the code, and facts besides count and first.
    """

    def __init__(
        self,
        step: tuple[int, int],
        count: int,
        first: Any,
        before: str,
        words: tuple[str, str],
        after: str,
        code: str,
        **facts: Any,
    ) -> None:
        self.step = step
        self.count = count
        self.first = first
        self.words = before, words, after
        self.about = code, facts
        message = f"{before}{count_of(count, *words)}{after}"
        super().__init__(message, code=code, **facts | {"count": count, "first": first})

    def of_all(self, parts: Sequence[Any]) -> PartRefused:
        """Merge the errors of this step."""
        first = min(parts, key=lambda part: part.first)
        count = sum(part.count for part in parts)
        (before, words, after), (code, facts) = first.words, first.about
        return PartRefused(self.step, count, first.first, before, words, after, code=code, **facts)


def refuse(problems: Sequence[Problem], sources: dict[str, str]) -> None:
    """Raise if there is any problem."""
    if problems:
        raise ChecksFailed(problems, sources)


def _lines(problems: Sequence[Problem], sources: dict[str, str]) -> list[str]:
    lines = []
    for side in dict.fromkeys(problem.side for problem in problems):
        messages = [problem.message for problem in problems if problem.side == side]
        if side:
            source = f" ({sources[side]})" if side in sources else ""
            lines.append(f"{side.replace('_', ' ')}{source} cannot be used:")
            messages = [f"- {one}" for one in messages]
        lines += messages
    return lines


def count_of(n: int, noun: str, plural: str | None = None) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listing(values: Iterable[Any], total: int | None = None, most: int = 5) -> str:
    """``'a', 'b' and 3 more``: the first few of some values."""
    items = list(values)
    more = (len(items) if total is None else total) - min(len(items), most)
    some = ", ".join(repr(value) for value in items[:most])
    return f"{some} and {more:,} more" if more > 0 else some
