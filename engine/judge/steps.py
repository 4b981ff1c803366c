"""Calls of each metric, as data, and their execution for one row.

First lists are extracted from texts (statements, opinions, claims), then verdicts are requested for
them, or for the contexts. Without items to judge no call is made: the verdict table then has a row
of status ``empty`` with the missing item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from .parsing import Verdict

TEXT, REFERENCE = "text", "reference"


class Failed(Exception):
    """Call without a usable answer."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class NotAnswered(Failed):
    """Call that was not sent now; the answer may come later."""


class Row(msgspec.Struct, frozen=True):
    """One row to judge.

    Attributes:
        given: column -> text, or list of texts for ``contexts``; None if null. Without
            ``reference``.
        references: ground truths, possibly empty; None if the column is null.
    """

    datum: Any
    given: dict[str, Any]
    references: tuple[str, ...] | None = ()


class Extract(msgspec.Struct, frozen=True):
    """Call that extracts a list from a text.

    Attributes:
        prompt: name of the prompt; ``{atomicity}`` and ``{coverage}`` are filled in.
        of: ``text`` or ``reference``.
        none: name of the missing item if the list is empty.
        final: stop if the list is empty.
        only: modes of FactualCorrectness with this call; empty for all.
    """

    prompt: str
    of: str
    gives: str
    none: str
    final: bool = True
    only: tuple[str, ...] = ()

    def wanted(self, mode: str) -> bool:
        return not self.only or mode in self.only


class Judge(msgspec.Struct, frozen=True):
    """Call that returns verdicts.

    Attributes:
        renamed: name in the prompt -> name of the input or extracted list, if different.
        part: ``step`` of its rows if the reply does not contain it.
        only: modes of FactualCorrectness with this call; empty for all.
        words: word of the reply -> recorded word, if different.
        sorts: part -> name of the list whose items the reply classifies, if it does.
    """

    prompt: str
    items: str = ""
    part: str = ""
    renamed: dict[str, str] = {}
    only: tuple[str, ...] = ()
    words: dict[str, str] = {}
    sorts: dict[str, str] = {}


class Plan(msgspec.Struct, frozen=True):
    """Calls of one metric.

    Attributes:
        each: whether all calls are made once per ground truth.
    """

    needs: tuple[str, ...]
    judges: tuple[Judge, ...]
    extracts: tuple[Extract, ...] = ()
    each: bool = False


_CLAIMS = "claims_{atomicity}_{coverage}"
_RECALLING = ("f1", "recall")
PLANS: dict[str, Plan] = {
    "AnswerCorrectness": Plan(
        ("query", TEXT, REFERENCE),
        (
            Judge(
                "answer_correctness",
                sorts={part: f"{part}_statements" for part in ("response", "reference")},
            ),
        ),
        (
            Extract("statements", TEXT, "response_statements", "response"),
            Extract("statements", REFERENCE, "reference_statements", "reference", final=False),
        ),
        each=True,
    ),
    "AnswerRelevance": Plan(
        ("query", TEXT),
        (Judge("answer_relevance", "statements", "statements"),),
        (Extract("statements", TEXT, "statements", "statements"),),
    ),
    "Bias": Plan(
        (TEXT,),
        (Judge("bias", "opinions", "opinions"),),
        (Extract("opinions", TEXT, "opinions", "opinions"),),
    ),
    "Toxicity": Plan(
        (TEXT,),
        (Judge("toxicity", "opinions", "opinions"),),
        (Extract("opinions", TEXT, "opinions", "opinions"),),
    ),
    "Coherence": Plan((TEXT,), (Judge("coherence", part="rating"),)),
    "SummaryCoherence": Plan(("source", TEXT), (Judge("summary_coherence", part="rating"),)),
    "ContextPrecision": Plan(
        ("query", "contexts", REFERENCE),
        (Judge("context_precision", "contexts", "contexts"),),
        each=True,
    ),
    "ContextRecall": Plan(
        ("contexts", REFERENCE),
        (Judge("context_recall", "statements", "statements"),),
        (Extract("statements", REFERENCE, "statements", "statements"),),
        each=True,
    ),
    "ContextRelevance": Plan(
        ("query", "contexts"), (Judge("context_relevance", "contexts", "contexts"),)
    ),
    "Faithfulness": Plan(
        (TEXT, "contexts"),
        (Judge("faithfulness", "claims", "claims"),),
        (Extract("claims", TEXT, "claims", "claims"),),
    ),
    "Hallucination": Plan(
        (TEXT, "contexts"),
        (
            Judge(
                "hallucination",
                "contexts",
                "contexts",
                words={"yes": "contradicted", "no": "agrees"},
            ),
        ),
    ),
    "LLMContextRecall": Plan(
        ("query", "contexts", REFERENCE),
        (Judge("llm_context_recall", part="statements"),),
        each=True,
    ),
    "FactualCorrectness": Plan(
        (TEXT, REFERENCE),
        (
            Judge(
                "entailment",
                "response_claims",
                "response",
                {"premise": REFERENCE, "claims": "response_claims"},
            ),
            Judge(
                "entailment",
                "reference_claims",
                "reference",
                {"premise": TEXT, "claims": "reference_claims"},
                _RECALLING,
            ),
        ),
        (
            Extract(_CLAIMS, TEXT, "response_claims", "response", final=False),
            Extract(
                _CLAIMS, REFERENCE, "reference_claims", "reference", final=False, only=_RECALLING
            ),
        ),
        each=True,
    ),
}
"""Metric -> its calls."""

Ask = Callable[[str, dict[str, Any], int], list[Any]]
"""Function from prompt name, its inputs and judgment to texts or verdicts; raises
:class:`Failed`.
"""
Record = dict[str, Any]


class Asked(msgspec.Struct, frozen=True):
    """Settings of a judged metric."""

    metric: str
    mode: str = "f1"
    atomicity: str = "low"
    coverage: str = "low"
    judgments: int = 1


def judge_row(row: Row, asked: Asked, ask: Ask) -> list[Record]:
    """Return all rows of the verdict table for one row and metric."""
    plan = PLANS[asked.metric]
    base = {"datum_id": row.datum, "metric": asked.metric}
    texts = {**row.given, REFERENCE: row.references}
    lacking = [name for name in plan.needs if texts.get(name) is None]
    if lacking:
        said = f"{' and '.join(lacking)} null in this row"
        return [{**base, "status": "missing_input", "error": said}]
    # An empty text has no rating; lists are extracted from it without a call.
    rated = not plan.extracts and not any(judge.items for judge in plan.judges)
    empty = {
        "contexts": "contexts" in plan.needs and not row.given["contexts"],
        "references": plan.each and not row.references,
        TEXT: rated and TEXT in plan.needs and not row.given[TEXT].strip(),
    }
    if any(empty.values()):
        return [{**base, "step": name, "status": "empty"} for name, there in empty.items() if there]
    given = dict(row.given)
    references = list(enumerate(row.references or ())) if plan.each else [(0, None)]
    try:
        for extract in plan.extracts:
            if extract.of == TEXT:
                given[extract.gives] = _extracted(extract, given[TEXT], asked, ask)
    except Failed as failure:
        if isinstance(failure, NotAnswered):
            _look_ahead(plan, row, asked, ask)
        return [_failed(base, extract.none, failure)]
    return [
        record
        for index, reference in references
        for record in _of_reference(
            {**base, "reference_index": index}, plan, asked, ask, {**given, REFERENCE: reference}
        )
    ]


def _look_ahead(plan: Plan, row: Row, asked: Asked, ask: Ask) -> None:
    """Request the lists of ground truths in advance, so that one batch contains all first steps."""
    for extract in plan.extracts:
        if extract.of == REFERENCE and extract.wanted(asked.mode):
            for reference in row.references or ():
                with suppress(Failed):  # told when the row's turn comes
                    _extracted(extract, reference, asked, ask)


def _extracted(extract: Extract, text: str, asked: Asked, ask: Ask) -> list[str]:
    """Extract a list; a blank text gives an empty list without a call."""
    if not text.strip():
        return []
    name = extract.prompt.format(atomicity=asked.atomicity, coverage=asked.coverage)
    return ask(name, {"text": text}, 0)


def _of_reference(
    base: Record, plan: Plan, asked: Asked, ask: Ask, given: dict[str, Any]
) -> Iterator[Record]:
    """Yield rows of one ground truth, or of the row itself without ground truths."""
    for extract in plan.extracts:
        if not extract.wanted(asked.mode):
            continue
        if extract.of == REFERENCE:
            try:
                given[extract.gives] = _extracted(extract, given[REFERENCE], asked, ask)
            except Failed as failure:
                yield _failed(base, extract.none, failure)
                return
        if extract.final and not given.get(extract.gives, [None]):
            yield {**base, "step": extract.none, "status": "empty"}
            return
    for judge in plan.judges:
        if judge.only and asked.mode not in judge.only:
            continue
        if judge.items and not given[judge.items]:
            yield {**base, "step": judge.part, "status": "empty"}
            continue
        for judgment in range(asked.judgments):
            yield from _judged({**base, "judgment_index": judgment}, judge, ask, given)


def _judged(base: Record, judge: Judge, ask: Ask, given: dict[str, Any]) -> Iterator[Record]:
    read = {**given, **{name: given[own] for name, own in judge.renamed.items()}}
    try:
        verdicts: list[Verdict] = ask(judge.prompt, read, base["judgment_index"])
    except Failed as failure:
        yield _failed(base, judge.part or None, failure)
        return
    if not verdicts:
        yield {**base, "step": judge.part or None, "status": "empty"}
    for place, verdict in enumerate(verdicts):
        part = verdict.part or judge.part
        # A reply may omit statements that it should classify; their lists define the number.
        sorted_from = None if verdict.place is None else given[judge.sorts[part]]
        yield {
            **base,
            "step": part,
            "item_index": place if verdict.place is None else verdict.place,
            "items": len(verdicts if sorted_from is None else sorted_from),
            "statement": verdict.statement,
            "verdict": judge.words.get(verdict.word.casefold(), verdict.word),
            "reason": verdict.reason,
            "status": "ok",
        }


def _failed(base: Record, step: str | None, failure: Failed) -> Record:
    told = {"status": failure.kind, "error": str(failure)}
    return {**base, "step": step, **told}
