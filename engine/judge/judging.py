"""Public calls of the judge, and batch files."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any

import msgspec
import polars as pl

from .. import dialects
from .. import metrics as registry
from ..api import score
from ..atomic import guarding, whole_file
from ..endpoint import (
    KEY_VARIABLE,
    Budget,
    Limits,
    Transient,
    Usage,
    checked_url,
    error_in,
    key_from,
    price_of,
    redacted,
    sound,
)
from ..evaluation.planner import make_plan
from ..ingest.files import by_extension
from ..ingest.problems import count_of
from ..schemas.errors import InputError, OptionError, invalid, unknown
from ..schemas.option_values import make_options
from ..schemas.options import DECLARED
from ..scorecard.card import Scorecard
from .client import Cache, ChatClient, read_completion
from .prompts import load_prompts, response_schema
from .run import (
    PLANS,
    REJECTED,
    Caller,
    Collector,
    Endpoint,
    MetricSettings,
    Outcome,
    Progress,
    Request,
    Row,
    read_rows,
    refuse_slices,
    run,
    with_carried,
)

# Checks of the judge's options before any input is read, sent or paid for.

STRUCTURED = ("auto", "schema", "object", "none")
_OURS = ("model", "messages", "stream", "n", "response_format")


def check_sending(limits: Limits, *, concurrency: int, timeout: float, structured: str) -> None:
    """Check limits, rates and formats.

    Args:
        concurrency: maximum number of concurrent requests.
        timeout: seconds.
        structured: requested response format.

    Raises:
        OptionError: an invalid number, or one out of range.
    """
    if structured not in STRUCTURED:
        raise OptionError(
            f"structured={structured!r}: write {', '.join(STRUCTURED)}.",
            code="option_value",
            option="structured",
        )
    if concurrency < 1 or not 0 < timeout < math.inf:
        raise OptionError(
            "concurrency: 1 or more; timeout: more than 0 seconds.",
            code="option_value",
            options=["concurrency", "timeout"],
        )
    if limits.per_minute is not None and not 0 < limits.per_minute < math.inf:
        raise OptionError(
            f"requests_per_minute={limits.per_minute:g}: more than 0, or none.",
            code="option_value",
            option="requests_per_minute",
        )
    for name, most in (
        ("max_requests", limits.requests),
        ("max_tokens", limits.tokens),
        ("max_cost", limits.cost),
    ):
        if most is not None and not 0 <= most < math.inf:
            raise OptionError(
                f"{name}={most:g}: 0 or more, or none.", code="option_value", option=name
            )


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Check further fields of the request.

    Raises:
        OptionError: a field that the judge sets itself, or a value that JSON does not support.
    """
    reserved = sorted(set(_OURS) & set(parameters))
    if reserved:
        raise OptionError(
            f"parameters: {', '.join(reserved)} cannot be set there.",
            code="reserved_parameter",
            values=reserved,
        )
    for name, value in parameters.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise OptionError(
                f"parameters: {name}={value!r} is not JSON; write a finite number, string,"
                " boolean, list or dict of those.",
                code="option_value",
                option="parameters",
                value=name,
            ) from None


def check_out(out: str | Path) -> None:
    """Check that a verdict table can be written to a path.

    Raises:
        OptionError: no folder, or a suffix other than that of Parquet.
    """
    path = Path(out)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise OptionError(
            f"out={str(out)!r}: write the path of a file in a folder that is there.",
            code="folder_missing",
            option="out",
        )
    if by_extension(str(path)) != "parquet":
        raise OptionError(
            f"out={str(out)!r}: the verdict table is Parquet; end it in .parquet.",
            code="format_unknown",
            option="out",
        )


CACHE = "judge.sqlite"
_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "step": pl.String,
    "reference_index": pl.Int64,
    "item_index": pl.Int64,
    "judgment_index": pl.Int64,
    "items": pl.Int64,
    "statement": pl.String,
    "verdict": pl.String,
    "reason": pl.String,
    "status": pl.String,
    "error": pl.String,
    "prompt": pl.String,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
}
"""Columns of the verdict table after datum_id."""
_OF_CALLS = ("prompt", "input_tokens", "output_tokens")
"""Columns about the calls of a row and metric."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a judge, the same for a run, its resumption and its batch files.

    Attributes:
        metrics: names of judged metrics.
        model: its name at the endpoint.
        base_url: the endpoint, without ``/chat/completions``.
        cache: file of all answers.
        prompts: folder of prompts that replace the package's.
        mode: of FactualCorrectness; ``precision`` saves the call on the reference's claims.
        atomicity: of its claims.
        coverage: of its claims.
        judgments: number of judgments per verdict; the majority decides when scored.
        temperature: of the model; None omits it from the request.
        max_output_tokens: limit of one reply; None omits it.
        parameters: further fields of the request, as the endpoint defines them; temperature or
            max_tokens override the options.
        retries: maximum number of repetitions of a call that failed or has an unusable reply.
    """

    metrics: tuple[str, ...]
    model: str
    base_url: str
    cache: str = CACHE
    prompts: str | None = None
    mode: str = "f1"
    atomicity: str = "low"
    coverage: str = "low"
    judgments: int = 1
    temperature: float | None = 0.0
    max_output_tokens: int | None = None
    parameters: dict[str, Any] = {}
    retries: int = 3

    def metric_settings(self) -> list[MetricSettings]:
        """Return the settings of each metric."""
        return [
            MetricSettings(name, self.mode, self.atomicity, self.coverage, self.judgments)
            for name in self.metrics
        ]

    def sent(self) -> dict[str, Any]:
        """Return the fields of the request in addition to model and messages."""
        fields = dict(self.parameters)
        if self.temperature is not None:
            fields["temperature"] = self.temperature
        if self.max_output_tokens is not None:
            fields["max_tokens"] = self.max_output_tokens
        return fields


class Judged(msgspec.Struct, frozen=True):
    """Result of a judge.

    Attributes:
        verdicts: the verdict table, one row per verdict, with further columns for slices; ``score``
            reads it without network access.
        card: its scorecard.
        usage: requests, tokens and cost of this run.
        notes: notes on the inputs.
    """

    verdicts: pl.DataFrame
    card: Scorecard
    usage: Usage
    notes: tuple[str, ...] = ()


def make_asking(metrics: Sequence[str] | str, **options: Any) -> Asking:
    """Return the checked settings of a judge.

    Raises:
        OptionError: a metric or value that does not exist.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise OptionError(
            f"metrics: choose one or more of {', '.join(PLANS)}.",
            code="option_missing",
            option="metrics",
        )
    fields = Asking.__struct_fields__
    for name in options:
        if name not in fields:
            raise unknown("option of the judge", name, fields)
    resolved = tuple(dict.fromkeys(registry.get("judged", name).name for name in names))
    try:
        asking = msgspec.convert(
            {"metrics": resolved, **{k: v for k, v in options.items() if v is not None}},
            Asking,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise OptionError(str(error)) from None
    if "temperature" in options and options["temperature"] is None:
        asking = msgspec.structs.replace(asking, temperature=None)
    for name in ("mode", "atomicity", "coverage"):
        words, value = DECLARED[name].accepts, getattr(asking, name)
        if isinstance(words, tuple) and value not in words:
            raise invalid(name, value, f"write {' or '.join(words)}.")
    if asking.judgments < 1 or asking.retries < 0:
        raise OptionError(
            "judgments: 1 or more; retries: 0 or more.",
            code="option_value",
            options=["judgments", "retries"],
        )
    if asking.max_output_tokens is not None and asking.max_output_tokens < 1:
        raise OptionError(
            "max_output_tokens: 1 or more, or none.",
            code="option_value",
            option="max_output_tokens",
        )
    if not asking.model.strip():
        raise OptionError(
            "model: write the name that the endpoint knows it by.",
            code="option_missing",
            option="model",
        )
    check_parameters(asking.parameters)
    if asking.temperature is not None and not math.isfinite(asking.temperature):
        raise OptionError(
            f"temperature={asking.temperature}: write a number, or none.",
            code="option_value",
            option="temperature",
        )
    for name, field in (("temperature", "temperature"), ("max_output_tokens", "max_tokens")):
        if field in asking.parameters:
            if options.get(name) is not None:
                raise OptionError(
                    f"{name} is given twice: as an option and as a parameter.",
                    code="given_twice",
                    option=name,
                )
            asking = msgspec.structs.replace(asking, **{name: None})
    return msgspec.structs.replace(asking, base_url=checked_url(asking.base_url))


@guarding
def judge(
    data: Any,
    references: Any = None,
    *,
    metrics: Sequence[str] | str,
    model: str,
    base_url: str,
    out: str | Path | None = None,
    api_key_env: str = KEY_VARIABLE,
    concurrency: int = 16,
    timeout: float = 120.0,
    structured: str = "auto",
    requests_per_minute: float | None = None,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    prices: str | Path | Mapping[str, Mapping[str, float]] | None = None,
    offline: bool = False,
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
    scoring: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
    until: Callable[[Scorecard], str] | None = None,
    **asking: Any,
) -> Judged:
    """Judge texts with a language model, and score its verdicts.

    Args:
        data: path, glob or table with one row per text: ``query``, ``text``, ``contexts`` (list of
            strings, in ranked order), ``reference`` (string or list), ``source``, as the metrics
            need them; ``datum_id``, by default the row numbers.
        references: ground truths as a separate table (``datum_id``, ``text``), one per row.
        metrics: names of judged metrics.
        model: its name at the endpoint.
        base_url: any OpenAI-compatible endpoint, such as ``http://localhost:8000/v1``.
        out: file for the verdict table, ending in ``.parquet``.
        api_key_env: environment variable with the key; sent in one header, never stored.
        concurrency: maximum number of concurrent requests.
        timeout: seconds for a connection, and between two chunks of an answer.
        structured: requested response format: ``auto``, ``schema``, ``object`` or ``none``. Replies
            are always parsed and checked.
        requests_per_minute: maximum rate of requests.
        max_requests: limit of the run; rows beyond it have status ``budget``.
        max_tokens: limit of the run.
        max_cost: limit of the run, by the price table.
        prices: model -> ``input`` and ``output`` per million tokens, or a TOML file of that.
        offline: use only the cache and send no requests.
        columns: name in the input -> canonical name.
        storage_options: for remote paths, as Polars takes them.
        scoring: options of :func:`evalengine.score` for the verdicts: ``dialect``, ``beta``, ...
        progress: called at intervals while rows are judged.
        until: judge rows in an order by hash of their ids, and call this with the scorecard of
            those so far; a text ends the run, and is among its notes.
        **asking: further fields of :class:`Asking`: ``cache``, ``judgments``, ``retries``, ...

    Returns:
        the verdict table and its scorecard.

    Raises:
        InputError: a table breaks its contract.
        OptionError: an option or metric that does not exist; the extra ``judge`` is missing.
        JudgeError: the endpoint cannot be used: wrong key, unknown model, no connection.
    """
    dialect = dialects.get("judged", (scoring or {}).get("dialect") or "standard")
    named = [metrics] if isinstance(metrics, str) else metrics
    metrics = [dialect.own_names.get(name, name) for name in named]
    setup = make_asking(metrics, model=model, base_url=base_url, **asking)
    limits = Limits(
        requests=max_requests, tokens=max_tokens, cost=max_cost, per_minute=requests_per_minute
    )
    check_sending(limits, concurrency=concurrency, timeout=timeout, structured=structured)
    read = {name for metric in setup.metrics for name in registry.get("judged", metric).params}
    scored: dict[str, Any] = {
        name: getattr(setup, name) for name in ("mode", "atomicity", "coverage") if name in read
    }
    scored |= scoring or {}
    options = make_options(scored, task="judged", metrics=setup.metrics)
    if out is not None:
        check_out(out)
    make_plan(options, "judged")  # refuses invalid options before requests cost money
    rows, carried, notes = read_rows(
        data, references, metrics=setup.metrics, columns=columns, storage_options=storage_options
    )
    refuse_slices(options.by, carried)
    stop = threading.Event()
    budget = Budget(limits, price_of(model, prices), sleep=stop.wait)
    client = None
    if not offline:
        client = ChatClient(setup.base_url, key_from(api_key_env), timeout, concurrency)
    cache = Cache(setup.cache)
    try:
        source: Endpoint | Collector = Collector(cache)
        if client is not None:
            source = Endpoint(client, budget, setup.retries, structured, stop)
        caller = _caller(setup, cache, source, partial(_count_cached, budget, source))
        judged = partial(
            run,
            settings=setup.metric_settings(),
            caller=caller,
            threads=1 if offline else concurrency,
            stop=stop,
            usage=budget.usage,
            grace=timeout,
            progress=progress,
        )
        if until is None:
            outcomes = judged(rows)
        else:
            decide = until

            def look(some: list[Row], new_outcomes: list[Outcome]) -> str:
                table = with_carried(verdict_table(some, new_outcomes), carried)
                return decide(score(table, options=options))

            total = len(rows)
            rows, outcomes, why = _in_turn(rows, judged, look, max(_FIRST, 2 * concurrency))
            if why:
                notes = [*notes, f"{count_of(len(rows), 'row')} of {total:,} judged: {why}."]
    finally:
        if client is not None:
            client.close()
        cache.close()
    verdicts = with_carried(verdict_table(rows, outcomes), carried)
    if out is not None:
        write_whole(verdicts, out)
    card = score(verdicts, options=options)
    if budget.usage.stopped:
        notes = [*notes, f"stopped by {budget.usage.stopped}; rows not asked have status budget."]
    return Judged(verdicts, card, budget.usage, tuple(notes))


_FIRST = 50
"""Rows that are judged before the first look; each further part has a quarter of all before it."""


def _in_turn(
    rows: Sequence[Row],
    judged: Callable[[list[Row]], list[Outcome]],
    look: Callable[[list[Row], list[Outcome]], str],
    first: int,
) -> tuple[list[Row], list[Outcome], str]:
    """Judge rows in an order by hash of their ids until a look at them gives a reason to end.

    Returns:
        the judged rows in their own order, their outcomes, and the reason; empty if all are judged.
    """
    places = sorted(
        range(len(rows)), key=lambda i: hashlib.sha256(repr(rows[i].datum).encode()).digest()
    )
    finished: dict[int, list[Outcome]] = {}
    judged_rows: list[Row] = []
    outcomes: list[Outcome] = []
    why = ""
    while len(finished) < len(places) and not why:
        some = places[len(finished) : len(finished) + max(first, len(finished) // 4)]
        new_outcomes = judged([rows[i] for i in some])
        each = len(new_outcomes) // len(some)
        finished |= {i: new_outcomes[k * each : (k + 1) * each] for k, i in enumerate(some)}
        order = sorted(finished)
        judged_rows, outcomes = (
            [rows[i] for i in order],
            [one for i in order for one in finished[i]],
        )
        why = look(judged_rows, outcomes)
    return judged_rows, outcomes, why if len(finished) < len(places) else ""


def _caller(
    setup: Asking,
    cache: Cache,
    source: Endpoint | Collector,
    on_cached: Callable[[], None] = lambda: None,
) -> Caller:
    return Caller(
        prompts=load_prompts(setup.prompts),
        cache=cache,
        source=source,
        endpoint=setup.base_url,
        model=setup.model,
        parameters=setup.sent(),
        retries=setup.retries,
        on_cached=on_cached,
    )


def _count_cached(budget: Budget, source: Endpoint | Collector) -> None:
    """An answer was in the cache."""
    budget.count_cached()
    if isinstance(source, Endpoint):
        source.mark_working()


def collect(
    data: Any,
    references: Any,
    setup: Asking,
    *,
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> list[Request]:
    """Return the list of all calls possible now that have no cached answer.

    The arguments are those of :func:`collect_into`, which does not build a list.
    """
    result: list[Request] = []
    collect_into(
        result.append, data, references, setup, columns=columns, storage_options=storage_options
    )
    return result


def collect_into(
    keep: Callable[[Request], object],
    data: Any,
    references: Any,
    setup: Asking,
    *,
    columns: Mapping[str, str] | None = None,
    storage_options: dict[str, str] | None = None,
) -> None:
    """Find all calls possible now that have no cached answer.

    Args:
        keep: receives each call once.
        data: as for :func:`judge`.
        references: as for :func:`judge`.
        columns: name in the input -> canonical name.
        storage_options: for remote paths.
    """
    rows, _, _ = read_rows(
        data, references, metrics=setup.metrics, columns=columns, storage_options=storage_options
    )
    cache = Cache(setup.cache)
    try:
        source = Collector(cache, keep)
        caller = _caller(setup, cache, source)
        run(rows, setup.metric_settings(), caller, threads=1, stop=threading.Event(), usage=Usage())
        cache.export(source.keys)
    finally:
        cache.close()


def verdict_table(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """Build the verdict table; the tokens of a call count once, in the first row that used it."""
    seen: set[str] = set()
    names = [name for name in ("datum_id", *_SCHEMA) if name not in _OF_CALLS]
    columns: dict[str, list[Any]] = {name: [] for name in (*names, *_OF_CALLS)}
    for outcome in outcomes:
        calls = outcome.spent.calls
        new = [tokens for key, tokens in calls.items() if key not in seen]
        seen.update(calls)
        for record in outcome.records:
            for name in names:
                columns[name].append(record.get(name))
        if not outcome.records:
            continue
        rest = len(outcome.records) - 1
        prompts = ", ".join(outcome.spent.prompts) or None
        columns["prompt"] += [prompts] * (rest + 1)
        columns["input_tokens"] += [sum(one[0] for one in new) if new else None] + [None] * rest
        columns["output_tokens"] += [sum(one[1] for one in new) if new else None] + [None] * rest
    datums = pl.Series("datum_id", [row.datum for row in rows])
    schema = {"datum_id": datums.dtype if len(rows) else pl.String(), **_SCHEMA}
    return pl.DataFrame({name: columns[name] for name in schema}, schema=schema)


def write_whole(table: pl.DataFrame, path: str | Path) -> None:
    with whole_file(path, sweeps=True) as file:
        table.write_parquet(file)


# Batch files for OpenAI's Batch API and vLLM's run-batch: export of requests, import of answers.
#
# One file per step, split at the limits. Lines are matched by ``custom_id``, which is the cache
# key, never by order. File names contain only the prompt's name and a number.

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
URL = "/v1/chat/completions"
_PASSING = (401, 402, 403, 404, 408, 409, 425, 429)
"""Statuses 4xx that are unrelated to the request itself: it is exported again."""
_LONGEST_QUOTE = 300


class BatchFiles:
    """Batch files, written as requests arrive; they appear once all are complete.

    Args:
        folder: created if missing; must contain no JSONL yet.
        structured: requested response format: ``schema``, ``object`` or ``none``.
        most_requests: maximum number of lines per file.
        most_bytes: maximum size of a file.

    Attributes:
        written: file -> number of lines, by step in the order of their first requests.

    Raises:
        InputError: the folder already contains batch files.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        structured: str = "schema",
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._folder, self._structured = Path(folder), structured
        self._most = most_requests, most_bytes
        self._steps: dict[str, list[_Part]] = {}
        self._open = ExitStack()
        if any(self._folder.glob("*.jsonl")):
            raise InputError(
                f"{folder} already contains JSONL files; give an empty folder.", code="folder_used"
            )

    def __enter__(self) -> BatchFiles:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    @property
    def written(self) -> dict[Path, int]:
        return {part.path: part.lines for part in self._all()}

    def add(self, request: Request) -> None:
        """Write one request into the file of its step."""
        line = _line(request, self._structured)
        parts = self._steps.setdefault(request.prompt.name, [])
        full = parts and (
            parts[-1].lines == self._most[0] or parts[-1].size + len(line) > self._most[1]
        )
        if full:
            parts[-1].file.close()
        if full or not parts:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{request.prompt.name}-{len(parts) + 1:03d}.jsonl"
            parts.append(_Part(path, self._open.enter_context(whole_file(path))))
        parts[-1].file.write(line)
        parts[-1].lines += 1
        parts[-1].size += len(line)

    def _all(self) -> Iterator[_Part]:
        return (part for parts in self._steps.values() for part in parts)


class _Part(msgspec.Struct):
    """One file: final path, open draft, lines and bytes so far."""

    path: Path
    file: IO[bytes]
    lines: int = 0
    size: int = 0


def _line(request: Request, structured: str) -> bytes:
    body = dict(request.body)
    if structured == "schema":
        body["response_format"] = response_schema(request.prompt, request.count)
    elif structured == "object":
        body["response_format"] = {"type": "json_object"}
    line = {"custom_id": request.key, "method": "POST", "url": URL, "body": body}
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


class Imported(msgspec.Struct):
    """Counts of imported lines.

    Attributes:
        foreign: lines of both kinds whose request was not exported with this cache.
    """

    answers: int = 0
    failures: int = 0
    foreign: int = 0


def read_batches(paths: Sequence[str | Path], cache: str | Path) -> Imported:
    """Import the answers of output files and the failures of error files into the cache.

    Existing answers are kept.

    Args:
        paths: files in any order and of either kind.

    Raises:
        InputError: an invalid line, by file and number.
    """
    result = Imported()
    store = Cache(cache)
    try:
        for path in paths:
            try:
                with open(path, encoding="utf-8-sig") as file:
                    for number, line in enumerate(file, 1):
                        if line.strip():
                            _take(line, f"{path}, line {number}", store, result)
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{path}: cannot be read: {error}.") from None
    finally:
        store.close()
    return result


def _take(line: str, where: str, cache: Cache, imported: Imported) -> None:
    try:
        entry: dict[str, Any] = json.loads(line)
        key = entry["custom_id"]
        if not isinstance(key, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{where}: no line of a batch's output (JSON with custom_id).", code="file_malformed"
        ) from None
    if "body" in entry and "response" not in entry:
        raise InputError(
            f"{where}: this is a request; give the file that the batch wrote.",
            code="file_is_request",
        )
    key = sound(key)
    imported.foreign += not cache.was_exported(key)
    error, response = entry.get("error"), entry.get("response")
    body = response.get("body", response) if isinstance(response, dict) else None
    status = response.get("status_code", 200) if isinstance(response, dict) else None
    if body is not None and status == 200 and not error:
        try:
            answer = read_completion(body)
        except Transient as failure:
            cache.fail(key, failure.kind, _storable(str(failure)))
            imported.failures += 1
            return
        model = body.get("model") if isinstance(body, dict) else None
        cache.put(key, "batch", sound(str(model or "")), answer)
        imported.answers += 1
        return
    problem = error_in({"error": error}) or error_in(body)
    if problem is None:
        problem = (body, "") if isinstance(body, str) and body.strip() else (f"status {status}", "")
    refused = isinstance(status, int) and 400 <= status < 500 and status not in _PASSING
    cache.fail(key, REJECTED if refused else "batch_failed", _storable(problem[0]))
    imported.failures += 1


def _storable(message: str) -> str:
    """A message as it may be kept: no key in it, on one line, not long."""
    return sound(redacted(" ".join(message.split()), None)[:_LONGEST_QUOTE])
