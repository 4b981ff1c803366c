"""Judging of rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec
import polars as pl

from ..endpoint import Budget, GivenUp, Patience, Rejected, Unsent, Usage
from ..ingest.checks import check_side
from ..ingest.infer import check_columns, recognise
from ..ingest.problems import Problem, count_of, listing, refuse
from ..ingest.recognise import Naming
from ..ingest.shapes import SHAPES
from ..ingest.slices import split
from ..ingest.sources.formats import explain
from ..ingest.sources.tables import READ_FAILURES, open_source, schema_of
from ..schemas.contract import Table
from ..schemas.errors import InputError, JudgeError, did_you_mean
from ..schemas.tables import JUDGE_REFERENCES, JUDGE_ROWS, JUDGED_TABLE
from .client import Cache, ChatClient, Completion, Unstructured, key_of
from .prompts import BadReply, Prompt, Verdict, parse, response_schema

# Calls of each metric, as data, and their execution for one row.
#
# First lists are extracted from texts (statements, opinions, claims), then verdicts are requested
# for them, or for the contexts. Without items to judge no call is made: the verdict table then
# has a row of status ``empty`` with the missing item.

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

    def needed_in(self, mode: str) -> bool:
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
"""Function from prompt name, its inputs and judgment to texts or verdicts; raises :class:`Failed`.
"""
Record = dict[str, Any]


class MetricSettings(msgspec.Struct, frozen=True):
    """Settings of a judged metric."""

    metric: str
    mode: str = "f1"
    atomicity: str = "low"
    coverage: str = "low"
    judgments: int = 1


def judge_row(row: Row, settings: MetricSettings, ask: Ask) -> list[Record]:
    """Return all rows of the verdict table for one row and metric."""
    plan = PLANS[settings.metric]
    base = {"datum_id": row.datum, "metric": settings.metric}
    texts = {**row.given, REFERENCE: row.references}
    missing = [name for name in plan.needs if texts.get(name) is None]
    if missing:
        message = f"{' and '.join(missing)} null in this row"
        return [{**base, "status": "missing_input", "error": message}]
    # An empty text has no rating; lists are extracted from it without a call.
    rated = not plan.extracts and not any(judge.items for judge in plan.judges)
    empty = {
        "contexts": "contexts" in plan.needs and not row.given["contexts"],
        "references": plan.each and not row.references,
        TEXT: rated and TEXT in plan.needs and not row.given[TEXT].strip(),
    }
    if any(empty.values()):
        return [
            {**base, "step": name, "status": "empty"}
            for name, is_empty in empty.items()
            if is_empty
        ]
    inputs = dict(row.given)
    references = list(enumerate(row.references or ())) if plan.each else [(0, None)]
    try:
        for extract in plan.extracts:
            if extract.of == TEXT:
                inputs[extract.gives] = _extracted(extract, inputs[TEXT], settings, ask)
    except Failed as failure:
        if isinstance(failure, NotAnswered):
            _look_ahead(plan, row, settings, ask)
        return [_failed(base, extract.none, failure)]
    return [
        record
        for index, reference in references
        for record in _of_reference(
            {**base, "reference_index": index},
            plan,
            settings,
            ask,
            {**inputs, REFERENCE: reference},
        )
    ]


def _look_ahead(plan: Plan, row: Row, settings: MetricSettings, ask: Ask) -> None:
    """Request the lists of ground truths in advance, so that one batch contains all first steps."""
    for extract in plan.extracts:
        if extract.of == REFERENCE and extract.needed_in(settings.mode):
            for reference in row.references or ():
                with suppress(Failed):  # raised again by the row itself
                    _extracted(extract, reference, settings, ask)


def _extracted(extract: Extract, text: str, settings: MetricSettings, ask: Ask) -> list[str]:
    """Extract a list; a blank text gives an empty list without a call."""
    if not text.strip():
        return []
    name = extract.prompt.format(atomicity=settings.atomicity, coverage=settings.coverage)
    return ask(name, {"text": text}, 0)


def _of_reference(
    base: Record, plan: Plan, settings: MetricSettings, ask: Ask, inputs: dict[str, Any]
) -> Iterator[Record]:
    """Yield rows of one ground truth, or of the row itself without ground truths."""
    for extract in plan.extracts:
        if not extract.needed_in(settings.mode):
            continue
        if extract.of == REFERENCE:
            try:
                inputs[extract.gives] = _extracted(extract, inputs[REFERENCE], settings, ask)
            except Failed as failure:
                yield _failed(base, extract.none, failure)
                return
        if extract.final and not inputs.get(extract.gives, [None]):
            yield {**base, "step": extract.none, "status": "empty"}
            return
    for judge in plan.judges:
        if judge.only and settings.mode not in judge.only:
            continue
        if judge.items and not inputs[judge.items]:
            yield {**base, "step": judge.part, "status": "empty"}
            continue
        for judgment in range(settings.judgments):
            yield from _judged({**base, "judgment_index": judgment}, judge, ask, inputs)


def _judged(base: Record, judge: Judge, ask: Ask, inputs: dict[str, Any]) -> Iterator[Record]:
    read = {**inputs, **{name: inputs[source] for name, source in judge.renamed.items()}}
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
        sorted_from = None if verdict.place is None else inputs[judge.sorts[part]]
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
    outcome = {"status": failure.kind, "error": str(failure)}
    return {**base, "step": step, **outcome}


# Parsing and checking of the judge stage's tables.

_GIVEN = ("query", "text", "contexts", "source")
PROMPT = "prompt"
"""Column of our verdict tables in addition to those of the contract."""
_OURS = {*(column.name for column in JUDGED_TABLE.columns), PROMPT} - {"dataset"}


def read_rows(
    data: Any,
    references: Any = None,
    *,
    metrics: Sequence[str],
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> tuple[list[Row], pl.DataFrame, list[str]]:
    """Parse the rows to judge, and further columns for slices.

    Args:
        references: a table of ground truths, one per row, by ``datum_id``; or None if they are in
            the column ``reference``.
        columns: name in the input -> canonical name.

    Returns:
        the rows; ``datum_id`` and all further columns of plain values, one row each; notes.

    Raises:
        InputError: a column that a metric needs is missing, or a table breaks its contract.
    """
    inputs = {"data": (data, JUDGE_ROWS)}
    if references is not None:
        inputs["references"] = (references, JUDGE_REFERENCES)
    sources = {
        name: open_source(x, storage_options=storage_options) for name, (x, _) in inputs.items()
    }
    schemas = {name: schema_of(source) for name, source in sources.items()}
    check_columns(columns or {}, {name: (schemas[name], inputs[name][1]) for name in inputs})
    frames, notes = {}, []
    for name, (_, table) in inputs.items():
        naming = recognise(schemas[name], table, columns)
        try:
            further = _further(schemas[name], naming) if name == "data" else []
            frame = sources[name].frame.select(*naming.exprs.values(), *further).collect()
        except READ_FAILURES as error:
            raise explain(sources[name], error) from error
        _check(frame.drop(further), table, naming, sources[name].description)
        frames[name] = frame
        notes += [f"{name}: read {column} as {to}." for column, to in naming.recognised.items()]
    frame = frames["data"]
    if "datum_id" not in frame.columns:
        if references is not None:
            raise InputError(
                "references are joined to the rows by datum_id, which the rows do not have."
            )
        frame = frame.with_row_index("datum_id").with_columns(pl.col("datum_id").cast(pl.Int64))
    read = [column.name for column in JUDGE_ROWS.columns if column.name in frame.columns]
    carried = frame.select("datum_id", pl.all().exclude(*read))
    frame = frame.select(read)
    if references is not None:
        frame = _joined(frame, frames["references"])
    _refuse_missing(frame, metrics)
    rows = [_row(row) for row in frame.iter_rows(named=True)]
    return rows, carried, notes


def _further(schema: Mapping[str, pl.DataType], naming: Naming) -> list[str]:
    """Columns that the judge does not read, whose names are free in a verdict table."""
    used = {*naming.exprs, *naming.recognised, *_OURS}
    return [
        name
        for name, dtype in schema.items()
        if name not in used and not (dtype.is_nested() or dtype in (pl.Binary, pl.Object))
    ]


def refuse_slices(by: Sequence[str], carried: pl.DataFrame) -> None:
    """Refuse slices that the verdict table will not have, before any cost arises.

    Args:
        carried: from :func:`read_rows`.

    Raises:
        InputError: a column that is not carried along.
    """
    present = carried.columns[1:]
    for name in (piece for entry in by for piece in split(entry, present)):
        if name not in present:
            raise InputError(
                f"by: no slice column {name!r} among the columns of data that are carried along"
                " (plain values under names that verdict tables do not use)."
                f"{did_you_mean(name, present)} Columns there: {', '.join(present) or 'none'}.",
                code="column_missing",
                column=name,
            )


def with_carried(verdicts: pl.DataFrame, carried: pl.DataFrame) -> pl.DataFrame:
    """A verdict table with the columns that are carried along, of each row's datum."""
    if carried.width == 1:
        return verdicts
    return verdicts.join(carried, on="datum_id", how="left", maintain_order="left")


def _check(frame: pl.DataFrame, table: Table, naming: Naming, description: str) -> None:
    problems: list[Problem] = list(naming.problems)
    if not problems:
        problems, _ = check_side(frame, table, SHAPES[table.shape], naming.recognised)
    if not problems and "contexts" in frame.columns:
        holes = frame.filter(pl.col("contexts").list.eval(pl.element().is_null()).list.any()).height
        if holes:
            message = f"column 'contexts': {count_of(holes, 'row')} with a null in the list."
            problems = [Problem(table.side, "contexts", message, holes, kind="null_in_list")]
    refuse(problems, {table.side: description})


def _joined(frame: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    if frame.schema["datum_id"] != references.schema["datum_id"]:
        kinds = f"{frame.schema['datum_id']} and {references.schema['datum_id']}"
        raise InputError(f"column 'datum_id' is {kinds} in the two tables: cast one of them.")
    lists = references.group_by("datum_id", maintain_order=True).agg(
        pl.col("text").alias("reference")
    )
    if "reference" in frame.columns:
        raise InputError(
            "references: the rows already have ground truths in column 'reference'. Omit that"
            " column or the second table.",
            code="given_twice",
            column="reference",
        )
    strange = lists.join(frame, on="datum_id", how="anti")["datum_id"]
    if len(strange):
        raise InputError(
            f"references: {count_of(len(strange), 'datum_id')} that no row has:"
            f" {listing(strange.to_list())}.",
            code="ids_unmatched",
            count=len(strange),
        )
    joined = frame.join(lists, on="datum_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("reference").fill_null([]))


def _refuse_missing(frame: pl.DataFrame, metrics: Sequence[str]) -> None:
    missing = {
        metric: [name for name in PLANS[metric].needs if name not in frame.columns]
        for metric in metrics
    }
    problems = [
        f"{metric} needs {' and '.join(names)}" for metric, names in missing.items() if names
    ]
    if problems:
        able = [m for m, plan in PLANS.items() if set(plan.needs) <= set(frame.columns)]
        raise InputError(
            f"{'; '.join(problems)}. Columns there: {', '.join(frame.columns)}. They allow:"
            f" {', '.join(able) or 'no metric'}.",
            code="column_missing",
            columns=sorted({name for names in missing.values() for name in names}),
        )


def _row(row: dict[str, Any]) -> Row:
    inputs = {name: row.get(name) for name in _GIVEN}
    if inputs["contexts"] is not None:
        inputs["contexts"] = [str(context) for context in inputs["contexts"]]
    texts = row.get("reference")
    # If one ground truth is unknown, so is the maximum over all.
    complete = texts is not None and None not in texts
    return Row(row["datum_id"], inputs, tuple(texts) if texts is not None and complete else None)


# Concurrent judging of rows: every call is made once, and every answer is stored.

REJECTED = "rejected"
"""Status of a call that the endpoint does not take, however often it is sent."""
_REPORT_SECONDS = 0.2
_ENDED = ("refused", "truncated")
"""Bad replies that no further word mends: at temperature 0 the same request gives the same."""
_REPEATED = 4000
"""Characters of a bad reply that are sent back with the error."""


class Request(msgspec.Struct, frozen=True):
    """One call.

    Attributes:
        body: of the HTTP request, without a response format.
        count: number of items to judge, or None.
    """

    key: str
    prompt: Prompt
    body: dict[str, Any]
    count: int | None


class Source(Protocol):
    """Source of answers that are not in the cache."""

    def answer(self, request: Request) -> Completion:
        """The answer; raises Failed."""
        ...


class Progress(msgspec.Struct, frozen=True):
    """Progress of a run."""

    done: int
    total: int
    usage: Usage
    seconds: float
    ending: bool = False

    @property
    def line(self) -> str:
        """``120/500 rows, 240 requests (12.0/s), 300 cached, cost 0.0123``."""
        usage, rate = self.usage, self.usage.requests / max(self.seconds, 1e-9)
        cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
        return (
            f"{self.done:,}/{self.total:,} judged, {usage.requests:,} requests ({rate:.1f}/s),"
            f" {usage.cached:,} cached, {usage.input_tokens + usage.output_tokens:,} tokens{cost}"
        )


class Endpoint:
    """Source that sends requests to an endpoint, within a budget, with retries.

    Args:
        budget: decides when to stop.
        retries: maximum number of retries of a failed request.
        structured: ``auto`` requests a JSON schema until the endpoint refuses one; ``schema``,
            ``object`` and ``none`` are fixed.
        stop: set if the run ends early.
    """

    def __init__(
        self,
        client: ChatClient,
        budget: Budget,
        retries: int,
        structured: str,
        stop: threading.Event,
    ) -> None:
        self._client, self._patience = client, Patience(budget, retries, stop)
        self._form = "schema" if structured == "auto" else structured
        self._may_fall = structured == "auto"

    def mark_working(self) -> None:
        """An answer of this endpoint and model was there already, so that both are right."""
        self._client.worked = True

    def answer(self, request: Request) -> Completion:
        """Return the answer to a request.

        Raises:
            JudgeError: the endpoint cannot be used.
            Failed: no answer within the limits.
        """
        while True:
            form = self._form
            body = {**request.body, **self._response_format(form, request)}
            try:
                answer = self._patience.send(
                    partial(self._client.complete, body),
                    lambda answer: (answer.input_tokens, answer.output_tokens),
                )
            except Unstructured as error:
                if form != self._form:  # another thread has learnt it meanwhile
                    continue
                if not self._may_fall:
                    raise Failed(REJECTED, str(error)) from None
                self._form = {"schema": "object", "object": "none"}[form]
            except Rejected as error:
                raise Failed(REJECTED, str(error)) from None
            except Unsent as error:
                message = f"not asked: {error}" if error.kind == "budget" else str(error)
                raise Failed(error.kind, message) from None
            except GivenUp as error:
                if error.last.unreachable:
                    raise JudgeError(
                        f"no endpoint answers at the judge's address: {error.last}.",
                        code="endpoint_unreachable",
                    ) from None
                if error.down:
                    raise JudgeError(
                        f"the judge's endpoint stopped answering: {error.down} calls in a row"
                        f" failed, the last with {error}. Answers are in the cache: run again when"
                        " the endpoint works.",
                        code="endpoint_failing",
                        count=error.down,
                    ) from None
                raise Failed(error.last.kind, str(error)) from None
            else:
                # From now on a refusal that speaks of formats is about one request.
                self._may_fall = self._may_fall and form != self._form
                return answer

    @staticmethod
    def _response_format(form: str, request: Request) -> dict[str, Any]:
        if form == "none":
            return {}
        if form == "object":
            return {"response_format": {"type": "json_object"}}
        return {"response_format": response_schema(request.prompt, request.count)}


class Collector:
    """Source that answers no request but collects them, for batch files.

    Args:
        keep: receives each request once.
    """

    def __init__(
        self, cache: Cache, keep: Callable[[Request], object] = lambda request: None
    ) -> None:
        self.keys: set[str] = set()
        self._cache, self._keep = cache, keep

    def answer(self, request: Request) -> Completion:
        """Collect the request.

        Raises:
            NotAnswered: with a batch's failure, or because no request was sent.
            Failed: a batch rejected the request, which is not collected then.
        """
        failed = self._cache.failure(request.key)
        if failed is not None and failed[0] == REJECTED:
            raise Failed(*failed)
        if request.key not in self.keys:
            self.keys.add(request.key)
            self._keep(request)
        if failed is not None:
            raise NotAnswered(*failed)
        raise NotAnswered("not_answered", "no answer in the cache")


class Caller:
    """Answer calls from the cache, or from a source once.

    Args:
        retries: maximum number of repetitions of a call with an unusable reply.
        on_cached: called when an answer was in the cache.
    """

    def __init__(
        self,
        *,
        prompts: dict[str, Prompt],
        cache: Cache,
        source: Source,
        endpoint: str,
        model: str,
        parameters: dict[str, Any],
        retries: int,
        on_cached: Callable[[], None] = lambda: None,
    ) -> None:
        self._prompts, self._cache, self._source = prompts, cache, source
        self._endpoint, self._model, self._parameters = endpoint, model, parameters
        self._retries, self._on_cached = retries, on_cached
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Completion]] = {}

    def ask(self, name: str, inputs: dict[str, Any], judgment: int, spent: Spent) -> list[Any]:
        """Return texts or verdicts of one call; a call with an unusable reply is repeated.

        A repetition appends the reply and its error to the messages: the same request at
        temperature 0 would give, and cost, the same. Refused or truncated replies are requested
        again unchanged, but not at temperature 0.

        Raises:
            JudgeError: the endpoint cannot be used.
            Failed: no usable reply.
        """
        prompt = self._prompts[name]
        messages = prompt.messages(inputs)
        body = {"model": self._model, "messages": messages, **self._parameters}
        count = len(inputs[prompt.items]) if prompt.items else None
        message = f"{name}/{prompt.version}"
        bad: Failed | None = None
        for attempt in range(self._retries + 1):
            key = key_of(
                self._endpoint, self._model, messages, self._parameters, message, judgment, attempt
            )
            answer = self._answer(Request(key, prompt, body, count), message)
            spent.prompts[message] = None
            spent.calls[key] = (answer.input_tokens, answer.output_tokens)
            try:
                return parse(_whole(answer), prompt, inputs)
            except BadReply as error:
                bad = Failed(error.kind, f"{error} (asked {attempt + 1} times)")
                if error.kind not in _ENDED:
                    messages = [*messages, *_mended(answer.text, str(error))]
                    body = {**body, "messages": messages}
                elif self._parameters.get("temperature") == 0:
                    break
        assert bad is not None
        raise bad

    def _answer(self, request: Request, message: str) -> Completion:
        answer = self._cache.get(request.key)
        if answer is not None:
            self._on_cached()
            return answer
        with self._lock:
            under_way = self._under_way.get(request.key)
            if under_way is None:
                mine: Future[Completion] = Future()
                self._under_way[request.key] = mine
        if under_way is not None:
            return under_way.result()
        try:
            # Between the look into the cache and here another thread may have put it there.
            answer = self._cache.get(request.key)
            if answer is None:
                new = self._source.answer(request)
                answer = self._cache.put(request.key, message, self._model, new)
            mine.set_result(answer)
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[request.key]
        return answer


def _mended(reply: str, why: str) -> list[dict[str, str]]:
    """Messages that ask for a better reply; endpoints refuse an empty one of the assistant's."""
    message = f"That reply cannot be used: {why} Answer again, in the form that was asked for."
    before = [{"role": "assistant", "content": reply[:_REPEATED]}] if reply.strip() else []
    return [*before, {"role": "user", "content": message}]


def _whole(answer: Completion) -> str:
    """Return the text of a complete answer.

    Raises:
        BadReply: it was truncated, or refused.
    """
    if answer.refusal is not None or answer.finish == "content_filter":
        refusal = answer.refusal or "the endpoint's filter blocked the answer"
        raise BadReply("refused", " ".join(refusal.split())[:200])
    if answer.finish == "length":
        raise BadReply("truncated", "the reply was cut off at the limit of its tokens")
    return answer.text


class Spent(msgspec.Struct):
    """Usage by the calls of one row and metric.

    Attributes:
        calls: key -> tokens read and written.
        prompts: names and versions used, in order.
    """

    calls: dict[str, tuple[int, int]] = {}
    prompts: dict[str, None] = {}


class Outcome(msgspec.Struct, frozen=True):
    """Verdict rows of one row and metric, and their usage."""

    records: list[Record]
    spent: Spent


def run(
    rows: Sequence[Row],
    settings: Sequence[MetricSettings],
    caller: Caller,
    *,
    threads: int,
    stop: threading.Event,
    usage: Usage,
    grace: float = 0.0,
    progress: Callable[[Progress], None] | None = None,
) -> list[Outcome]:
    """Judge every row by every metric.

    Args:
        stop: set here if the run ends early, so that no further request is sent.
        grace: seconds that an interrupted run waits for pending answers, which are paid for; a
            second interruption ends it immediately.
        progress: called at intervals, from this thread.

    Returns:
        one outcome per row and metric, rows first.

    Raises:
        JudgeError: the endpoint cannot be used; answers so far are cached.
    """
    units = [(row, one) for row in rows for one in settings]
    outcomes: list[Outcome | None] = [None] * len(units)
    turn = iter(range(len(units)))
    lock = threading.Lock()
    errors: list[BaseException] = []
    done, busy = 0, max(1, min(threads, len(units)))

    def work() -> None:
        nonlocal busy
        try:
            judge_some()
        finally:
            with lock:
                busy -= 1
                if not busy:
                    ended.set()

    def judge_some() -> None:
        nonlocal done
        while not stop.is_set():
            with lock:
                place = next(turn, None)
            if place is None:
                return
            row, one = units[place]
            spent = Spent()
            try:
                records = judge_row(row, one, partial(caller.ask, spent=spent))
            except BaseException as error:
                errors.append(error)
                stop.set()
                return
            outcomes[place] = Outcome(records, spent)
            with lock:
                done += 1

    begun = time.monotonic()

    def now(ending: bool = False) -> Progress:
        return Progress(done, len(units), usage, time.monotonic() - begun, ending)

    # Not Thread.join: in Python 3.11 one that is interrupted takes its thread for ended.
    ended = threading.Event()
    for worker in [threading.Thread(target=work, daemon=True) for _ in range(busy)]:
        worker.start()
    try:
        while not ended.wait(_REPORT_SECONDS):
            if progress is not None:
                progress(now())
        if progress is not None:
            progress(now())
    except BaseException:
        stop.set()
        if progress is not None:
            progress(now(ending=True))
        ended.wait(grace)
        raise
    if errors:
        raise errors[0]
    return [outcome for outcome in outcomes if outcome is not None]
