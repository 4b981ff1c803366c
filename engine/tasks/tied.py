"""Rule about right and wrong answers that share the highest score: the order of rows decides."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..ingest.problems import MANY, Note, count_of
from ..ingest.rules import NOTE, WARNING, Facts, Rule, apply


class Tied(msgspec.Struct, frozen=True):
    """Evidence of ties at the top.

    Attributes:
        n: datums in which a right and a wrong answer share the highest score.
        of: datums with a right answer.
        unit: word for one datum, and for several.
        answers: word for the ranked items, plural.
        numbers: numbers that depend on the order.
    """

    n: int
    of: int
    unit: tuple[str, str]
    answers: str
    numbers: str


def tied_notes(tied: Tied) -> list[Note]:
    """Return the note on ties at the top; a warning beyond a tenth of the datums."""
    return apply(RULES, "", {"tied_top"} if tied.n else set(), tied)[0]


def _look(tied: Tied) -> Iterator[Facts]:
    yield Facts(
        severity=WARNING if tied.n > MANY * tied.of else NOTE,
        count=tied.n,
        of=tied.of,
        values={
            "beyond": MANY,
            "unit": list(tied.unit),
            "answers": tied.answers,
            "numbers": tied.numbers,
        },
    )


def _say(facts: Facts) -> str:
    answers, numbers = facts.values["answers"], facts.values["numbers"]
    units = count_of(facts.count or 0, *facts.values["unit"])
    return (
        f"{units} with equal highest scores of right and wrong {answers}: the first row wins, so"
        f" {numbers} depend on the order of the rows."
    )


RULES: tuple[Rule[Tied], ...] = (
    Rule(code="tied_top_scores", needs=frozenset({"tied_top"}), look=_look, say=_say),
)
