"""Problems that stop a run, notes that do not, and nouns for datums per task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..schemas.errors import InputError
from ..schemas.wording import options_in

# Nouns for datums, per task.


class Speech(NamedTuple):
    """Nouns for the datums of a task."""

    column: str = "datum_id"
    one: str = "datum"
    many: str = "datums"

    def named(self, column: str) -> str:
        """A column as the user knows it."""
        return self.column if column == "datum_id" else column


PLAIN = Speech()


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


def not_read(said: str) -> Note:
    """Return the note about an unread option, the first that the text names."""
    return Note("option_not_read", said, facts={"option": options_in(said)[0]})


MANY = 0.1
"""Share of datums from which a note on them is a warning."""
DOCUMENTS_APART = "documents_apart"
"""Kind of a note: no document has a judgment; true of the whole if it is true of each part."""


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
    said = f"{before}{count_of(n, one, several)} {what}{named}."
    return Note(kind, said, n, words, some, before)


def tied_notes(
    n: int,
    of: int,
    words: tuple[str, str],
    answers: str,
    numbers: str,
    order: str = "the order of the rows",
    *,
    beyond: float = MANY,
) -> list[Note]:
    """The note on ties of right and wrong answers at the top.

    Args:
        n: datums in which a right and a wrong answer share the highest score.
        of: datums with a right answer.
        words: word for one datum, and for several.
        answers: noun for the ranked items, in the plural.
        numbers: the numbers that depend on the order of rows.
        order: the tie-breaker.
        beyond: share of datums beyond which the note is a warning.
    """
    if not n:
        return []
    what = f"with equal highest scores of right and wrong {answers}: {numbers} depend on {order}"
    note = note_of("tied_top_scores", n, (*words, what))
    facts = {"count": n, "of": of, "beyond": beyond}
    return [msgspec.structs.replace(note, warning=n > beyond * of, facts=facts)]


Say = Callable[[str, dict[str, Any]], str | None]
"""Function from code and facts to the message; None for a code without a rule."""


def notes_of_parts(parts: Iterable[Sequence[Note]], say: Say | None = None) -> list[Note]:
    """Merge notes of parts of one input: counts are added, the lowest ids named.

    The order is that of the parts, whichever part is the first to have a note.
    """
    told = [*parts]
    return [_whole(notes, len(told), say) for notes in _by_kind(told, _kind)]


T = TypeVar("T")


def _by_kind(
    parts: Iterable[Sequence[T]], kind_of: Callable[[T], tuple[str, ...]]
) -> list[list[T]]:
    """Group the findings of parts by kind, in the order that parts have kinds in."""
    found: dict[tuple[str, ...], list[T]] = {}
    order: list[tuple[str, ...]] = []
    for told in parts:
        kinds = [kind_of(one) for one in told]
        for i, (kind, one) in enumerate(zip(kinds, told, strict=True)):
            if kind not in found:  # before those that follow it here, as in one run of all
                follows = [order.index(other) for other in kinds[i + 1 :] if other in found]
                order.insert(min(follows, default=len(order)), kind)
            found.setdefault(kind, []).append(one)
    return [found[kind] for kind in order]


def _kind(note: Note) -> tuple[str, str]:
    """Return the key by which notes of parts are merged."""
    plain = note.message
    if note.words is not None:
        plain = note.before + note.words[2]
    elif note.facts:
        same = {k: v for k, v in note.facts.items() if k not in _ADDED and type(v) is not float}
        plain = repr(same)
    elif note.count is not None:
        plain = _PLURAL.sub(r"# \1", _COUNTED.sub("#", plain, count=1))
    return note.kind, plain


_COUNTED = re.compile(r"\b[0-9][0-9,]*\b")
_NOUN = r"(?: (row|null|value|inverted box)\b)?"
_FIRST = re.compile(_COUNTED.pattern + _NOUN)
_OF_DATUMS = ("with_ground_truths", "ground_truths", "busy", "busy_missing", "lost")
_ADDED = ("count", "of", "values", *_OF_DATUMS)
"""Facts of parts that add up."""


def _whole(notes: Sequence[Note], parts: int, say: Say | None) -> Note:
    first = notes[0]
    if first.count is None and not first.facts:
        return first
    counts = [note.count for note in notes if note.count is not None]
    n = sum(counts) if counts else None
    facts = _facts_of_parts([note.facts for note in notes])
    warning = any(note.warning for note in notes)
    if "beyond" in facts:  # a share of the whole decides; parts without a note have none
        warning = (n or 0) > facts["beyond"] * facts["of"] * parts / len(notes)
    if first.words is not None and n is not None:
        lowest = sorted({i for note in notes for i in note.lowest})
        whole = note_of(first.kind, n, first.words, lowest, first.before)
    elif say is not None and first.facts and (said := say(first.kind, facts)) is not None:
        whole = Note(first.kind, said, n)
    elif len(notes) == 1 or n is None:
        whole = first
    else:
        whole = Note(
            first.kind, _FIRST.sub(lambda found: _counted(n, found[1]), first.message, count=1), n
        )
    return msgspec.structs.replace(whole, warning=warning, facts=facts)


def _facts_of_parts(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Facts of the whole: counts add up, of other numbers the mean, weighted by ``of``."""
    facts = dict(parts[0])
    for name, one in facts.items():
        if name in _ADDED:
            facts[name] = sum(part.get(name, 0) for part in parts)
        elif type(one) is float:
            weights = [part.get("of", 1) for part in parts]
            total = sum(w * part[name] for w, part in zip(weights, parts, strict=True))
            facts[name] = total / sum(weights)
    for name, pick in (("lowest", min), ("highest", max)):
        if name in facts:
            facts[name] = pick(part[name] for part in parts)
    return facts


class Problem(msgspec.Struct, frozen=True):
    """Something that stops the run.

    Attributes:
        side: the table, e.g. ``predictions``; empty if the message names it.
        column: canonical column it concerns, empty if none.
        message: the fault, its place and the remedy.
        count: number of rows, if known.
        shown: the rows named in the message: number in the table, and how it is written.
        step: of the check that found it, from 1; problems of parts are in the order of these.
            0 for rules and for columns, whose problems are of the whole.
        kind: stable code, such as ``null_values``.
        facts: further values the message is made of.
    """

    side: str
    column: str
    message: str
    count: int | None = None
    shown: tuple[tuple[int, str], ...] = ()
    step: int = 0
    kind: str = ""
    facts: dict[str, Any] = {}

    def as_facts(self) -> dict[str, Any]:
        """Return side, column, count and rows, if known, with the other facts."""
        rows = [row for row, _ in self.shown]
        known = {"side": self.side, "column": self.column, "count": self.count, "rows": rows}
        return {k: v for k, v in known.items() if v not in ("", None, [])} | self.facts


def problems_of_parts(parts: Iterable[Sequence[Problem]]) -> list[Problem]:
    """Merge problems of parts of one input: counts are added, the first rows named."""
    whole = [_in_all(problems) for problems in _by_kind(parts, _kind_of_problem)]
    return sorted(whole, key=lambda problem: problem.step)


def _kind_of_problem(problem: Problem) -> tuple[str, str, str]:
    """Return the key by which problems of parts are merged."""
    plain = _PLURAL.sub(r"# \1", _NUMBER.sub("#", _without_rows(problem)))
    return problem.side, problem.column, plain


_NUMBER = re.compile(r"(?<![\w.='])[0-9]{1,3}(?:,[0-9]{3})*(?= [a-z])")
_PLURAL = re.compile(r"# ((?:inverted )?[a-z]+?)(?:(?<=x)es|s)?\b")


def _rows_of(problem: Problem) -> str:
    return "; ".join(row for _, row in problem.shown)


def _without_rows(problem: Problem) -> str:
    """Return the message with a placeholder for the named rows."""
    rows = _rows_of(problem)
    return problem.message.replace(rows, _MARK) if rows else problem.message


_MARK = "<rows>"


def _in_all(problems: Sequence[Problem]) -> Problem:
    """One problem of several parts, in the words of the one with most rows."""
    most = max(problems, key=lambda problem: problem.count or 0)
    if len(problems) == 1 or most.count is None or (most.kind and not most.step):  # of the whole
        return most
    texts = [_NUMBER.findall(_without_rows(problem)) for problem in problems]
    sums = [
        sum(int(number.replace(",", "")) for number in place) for place in zip(*texts, strict=True)
    ]
    shown = tuple(sorted({row for problem in problems for row in problem.shown})[:3])
    total = iter(sums)
    said = _COUNTED_NOUN.sub(lambda found: _counted(next(total), found[1]), _without_rows(most))
    said = said.replace(_MARK, "; ".join(row for _, row in shown))
    n = sum(problem.count or 0 for problem in problems)
    return msgspec.structs.replace(
        most, message=said, count=n, shown=shown, facts=_facts_of_parts([p.facts for p in problems])
    )


_COUNTED_NOUN = re.compile(_NUMBER.pattern + _NOUN)


def _counted(n: int, noun: str | None) -> str:
    """A number, and the noun behind it: of one in each part there are several in all."""
    if noun is None or n == 1:
        return f"{n:,}" if noun is None else f"{n:,} {noun}"
    return f"{n:,} {noun}es" if noun.endswith("x") else f"{n:,} {noun}s"


class PointsAlone(InputError):
    """Rows with only keypoints, read for boxes, polygons or masks."""


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
        message: text before the count, its words for one and for several, and the rest.
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
        self.message = before, words, after
        self.about = code, facts
        said = f"{before}{count_of(count, *words)}{after}"
        super().__init__(said, code=code, **facts | {"count": count, "first": first})

    def of_all(self, parts: Sequence[Any]) -> PartRefused:
        """Merge the errors of this step."""
        first = min(parts, key=lambda part: part.first)
        count = sum(part.count for part in parts)
        (before, words, after), (code, facts) = first.message, first.about
        return PartRefused(self.step, count, first.first, before, words, after, code=code, **facts)


def refusal_of_parts(parts: Sequence[PartRefused]) -> PartRefused:
    """Merge the errors of parts: the earliest step, counted over all parts with it.

    Args:
        parts: at least one, rows numbered as in the whole.
    """
    step = min(part.step for part in parts)
    same = [part for part in parts if part.step == step]
    return same[0].of_all(same)


def refuse(problems: Sequence[Problem], sources: dict[str, str]) -> None:
    """Raise if there is any problem.

    Raises:
        ChecksFailed: names every problem on a separate line, grouped by side.
    """
    if problems:
        raise ChecksFailed(problems, sources)


def _lines(problems: Sequence[Problem], sources: dict[str, str]) -> list[str]:
    lines = []
    for side in dict.fromkeys(problem.side for problem in problems):
        said = [problem.message for problem in problems if problem.side == side]
        if side:
            source = f" ({sources[side]})" if side in sources else ""
            lines.append(f"{side.replace('_', ' ')}{source} cannot be used:")
            said = [f"- {one}" for one in said]
        lines += said
    return lines


def count_of(n: int, noun: str, plural: str | None = None) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listing(values: Iterable[Any], total: int | None = None, most: int = 5) -> str:
    """``'a', 'b' and 3 more``: the first few of some values."""
    found = list(values)
    more = (len(found) if total is None else total) - min(len(found), most)
    some = ", ".join(repr(value) for value in found[:most])
    return f"{some} and {more:,} more" if more > 0 else some
