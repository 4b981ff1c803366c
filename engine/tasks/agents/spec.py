"""Agents as a task: encoding of tables as trajectories of call codes, tally, specification."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ... import metrics as registry
from ...ingest.frames import Frames
from ...ingest.problems import UNMET, Note, count_of, listing, note_of
from ...ingest.rules import reworded
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ...schemas.errors import InputError, OptionError
from ...schemas.wording import option
from ...tallies.datums import Datums
from ...tallies.stats import Stats
from ..contents import Content, Contents, word_diffs
from ..encoding import (
    Workers,
    encode_sides,
    hashes_of,
    pop_column,
    pop_if_present,
    row_numbers,
    row_of_datums,
    table_datums,
)
from ..per_datum import OF_VALUES, StatsTallies, losses, no_labels, truth
from ..task import Sample, Task
from .calls import Call, Side, Trajectories, call, codes_of, parse, side_of, typed_json
from .dialects import Settings
from .metrics import SINGLE_USE

# Encoding and tally.

STATUS = ("scored", "no_calls_predicted", "no_calls_expected", "no_calls")
"""Status of a datum; all of them count."""
_NEARLY_ALL = 0.99
_COLUMNS = ("predicted_trajectory", "reference_trajectory")
_ROLES = (PREDICTIONS, GROUND_TRUTHS)
_SEPARATED, _JSON = r"\S[\s,;]+\S", r"^\s*[\[{]"
"""Patterns of texts with several words, and of texts that are parsed as JSON."""


def encode(
    frames: Frames, settings: Settings, workers: Workers
) -> tuple[Datums, Trajectories, Array | None, int | None]:
    """Return the trajectories; also first rows of datums and the height of the single table.

    Raises:
        InputError: an element of a list is no call.
    """
    index: dict[Call, int] = {}
    row, height = None, None
    table = frames.sides.get(TABLE)
    if table is not None:
        height = table.height
        numbers = row_numbers(table)
        datums, codes = table_datums(frames, table, height, numbers)
        datum = np.arange(height) if codes is None else codes.astype(np.int64)
        sides = [
            _of_lists(frames, pop_if_present(table, name), name, datum, datums, index)
            for name in _COLUMNS
        ]
        row = row_of_datums(numbers, codes, len(datums), height)
        height = height if numbers is None else None
    else:
        datums, codes_of_sides = encode_sides(frames, _ROLES)
        sides = [
            _of_rows(frames.sides[role], role, code.astype(np.int64), datums, index)
            for role, code in zip(_ROLES, codes_of_sides, strict=True)
        ]
        for role, side in zip(_ROLES, sides, strict=True):
            what = "without a row count as trajectories without a call"
            _note_without_calls(frames, datums, side, role, what, f"{role.replace('_', ' ')}: ")
    calls = [*index]
    for what, side in zip(("predicted", "expected"), sides, strict=True):
        odd = np.array([not one.in_json for one in calls], bool)
        if n := int(odd[side.code].sum()) if odd.any() else 0:
            why = "whose arguments are not a JSON object: each is compared as one value"
            frames.notes.append(
                note_of("arguments_not_json", n, (f"{what} call", f"{what} calls", why))
            )
    predicted, reference = sides
    return datums, Trajectories(calls, predicted, reference, settings, workers), row, height


def _of_lists(
    frames: Frames,
    lists: pl.Series | None,
    name: str,
    datum: Array,
    datums: Datums,
    index: dict[Call, int],
) -> Side:
    if lists is None:  # no metric reads it
        return Side(np.zeros(len(datums) + 1, np.int64), np.zeros(0, np.int64))
    many = lists.list.len().to_numpy().astype(np.int64)
    texts = lists.explode(empty_as_null=False, keep_nulls=False).alias("text")
    each, code, wrong, unread = codes_of(texts.to_frame(), parse, index)
    rows = np.repeat(np.arange(many.size), many)
    if wrong:
        first, why = min(wrong.items())
        are = "is not a call" if len(wrong) == 1 else "are not calls"
        raise InputError(
            f"column {name!r}: {count_of(len(wrong), 'distinct element')} of lists {are}, first in"
            f" list {rows[first] + 1:,}: {texts[first][:80]!r}: {why}. Write a name, or an object"
            " with name and arguments.",
            code="not_a_call",
            column=name,
            count=len(wrong),
        )
    for field, times in unread.items():
        words = ("element", "elements", f"of {name} with the field {field!r}, which is not read")
        note = note_of("call_field_not_read", times, words)
        facts = {"column": name, "field": field}
        frames.notes.append(msgspec.structs.replace(note, facts=facts))
    if many.max(initial=0) <= 1:  # texts are lists of one element
        parts = texts.str.contains(_SEPARATED) & ~texts.str.contains(_JSON)
        if n := int(parts.sum()):
            what = f"in {name} with spaces or commas, read as the name of one tool each"
            example = f": {texts.filter(parts)[0][:80]!r}. Several calls are a JSON array"
            note = note_of("text_is_one_name", n, ("text", "texts", what + example))
            frames.notes.append(msgspec.structs.replace(note, facts={"column": name}))
    side = side_of(datum[np.repeat(rows, each)], code, len(datums))
    _note_without_calls(frames, datums, side, name, f"without a call in {name}")
    return side


def _of_rows(
    rows: pl.DataFrame, role: str, datum: Array, datums: Datums, index: dict[Call, int]
) -> Side:
    step, tool = pop_if_present(rows, "step"), pop_column(rows, "tool").alias("tool")
    arguments = pop_if_present(rows, "arguments")
    if arguments is None:
        arguments = pl.repeat(None, len(tool), dtype=pl.String, eager=True)
    frame = pl.DataFrame([tool, arguments.alias("arguments")])
    _, code, wrong, _ = codes_of(frame, lambda name, own: ([call(name, own)], ()), index)
    if wrong:
        n = int((tool.str.strip_chars() == "").sum())
        raise InputError(
            f"{role.replace('_', ' ')}: column 'tool': {count_of(n, 'empty name')}, first in row"
            f" {min(wrong) + 1:,}. Remove rows that are no calls.",
            code="not_a_call",
            column="tool",
            count=n,
        )
    if step is not None:
        place = step.to_numpy()
        order = np.lexsort((place, datum))
        datum, code, place = datum[order], code[order], place[order]
        twice = np.flatnonzero((np.diff(datum) == 0) & (np.diff(place) == 0))
        if twice.size:
            first = datums.id.gather(datum[twice[:3]])
            raise InputError(
                f"{role.replace('_', ' ')}: column 'step': {count_of(twice.size, 'call')} with the"
                f" step of another, first of datums {listing(first, twice.size)}. Number the calls"
                " of a datum, or remove the column to keep the order of rows.",
                code="repeated_values",
                column="step",
                count=int(twice.size),
            )
    return side_of(datum, code, len(datums))


def _note_without_calls(
    frames: Frames, datums: Datums, side: Side, name: str, what: str, before: str = ""
) -> None:
    """Add a note on trajectories without a call; a warning if a side has no other ones."""
    none = np.flatnonzero(side.many == 0)
    if none.size:
        first = [] if datums.ids is None else datums.ids.gather(none[:5]).to_list()
        note = note_of("no_calls", none.size, ("datum", "datums", what), first, before)
        facts = {"side": name, "count": none.size, "of": len(datums), "beyond": _NEARLY_ALL}
        warning = none.size > _NEARLY_ALL * len(datums)
        frames.notes.append(msgspec.structs.replace(note, warning=warning, facts=facts))


def _note_unmet(frames: Frames, runs: Trajectories) -> None:
    """Add notes on rules and names of tools that no call has."""
    settings = runs.settings
    if "matches" in vars(runs):
        for name in settings.argument_rules:
            if name not in runs.matching.met:
                message = f"the rule of {name!r} applies to no argument of any call: is its name"
                facts = {"option": "argument_rules", "value": name}
                frames.notes.append(Note(UNMET, f"{message} as in the calls?", facts=facts))
    for name in settings.tools:
        if name not in runs.tools[0]:
            message = f"no call has the tool {name!r} of {option('tools')}: is its name as in the"
            facts = {"option": "tools", "value": name}
            frames.notes.append(Note(UNMET, f"{message} calls?", facts=facts))


_TYPED_TEXT = re.compile(
    r'"(-?(?:0|[1-9]\d{0,30})(?:\.\d+)?(?:e[-+]?\d+)?|true|false|null|none)"', re.IGNORECASE
)
"""Canonical JSON of texts of numbers, booleans and null."""


def _note_types(frames: Frames, runs: Trajectories) -> None:
    """Add a note on calls that match none of their datum, but one with texts read as numbers."""
    if "matches" not in vars(runs):
        return
    plain, codes, similar = runs.compared
    index: dict[tuple[str, tuple[Any, ...]], int] = {}
    untyped = np.array([index.setdefault(_untyped(one), len(index)) for one in plain], np.int64)
    if len(index) == len(plain):
        return
    predicted, expected = (
        pl.DataFrame({"datum": side.datum, name: code, "untyped": untyped[code]})
        for name, side, code in zip("pr", (runs.predicted, runs.reference), codes, strict=True)
    )
    predicted, expected = predicted.with_row_index("call"), expected.unique(maintain_order=True)
    pairs = (
        predicted.join(expected, on=["datum", "untyped"], maintain_order="left_right")
        .join(expected, left_on=["datum", "p"], right_on=["datum", "r"], how="anti")
        .sort("call", maintain_order=True)
    )
    if similar.size:
        every = pairs.select("datum", "p").unique().join(expected, on="datum")
        matched = every.filter(
            (every["p"] * len(plain) + every["r"]).is_in(pl.Series(similar).implode())
        )
        pairs = pairs.join(matched, on=["datum", "p"], how="anti", maintain_order="left")
    if pairs.height:
        first, other = (plain[pairs[name][0]] for name in "pr")
        mine, theirs = dict(first.arguments), dict(other.arguments)
        path = min(path for path, _ in {*first.arguments} ^ {*other.arguments})
        value, given = mine.get(path, "null"), theirs.get(path, "null")
        why = (
            "whose arguments differ from expected ones in their type only, so that they do not"
            f" match: {'.'.join(path)!r} of {first.tool!r} is {value} for {given}"
        )
        n = pairs["call"].n_unique()
        frames.notes.append(
            note_of("argument_types", n, ("predicted call", "predicted calls", why))
        )


def _warn_one_sided(frames: Frames, runs: Trajectories) -> None:
    """Warn if only one side of a table has arguments; rules of columns check two tables."""
    if "matches" not in vars(runs) or TABLE not in frames.sides:
        return
    plain, codes, _ = runs.compared
    has_arguments = np.array([bool(one.arguments) for one in plain], bool)
    counts = [int(has_arguments[code].sum()) for code in codes]
    least = 1 if frames.whole else _ENOUGH
    for mine, mode in ((0, "superset"), (1, "subset")):
        count, other = counts[mine], 1 - mine
        if not count or counts[other] or codes[other].size < least:
            continue
        if runs.settings.tool_arguments == mode:  # the other side need not have them
            continue
        code, facts = "arguments_on_one_side", {"side": _ROLES[mine], "count": count}
        message = reworded(code, facts) or code
        frames.notes.append(Note(code, message, count, warning=True, facts=facts))


_ENOUGH = 100  # calls without arguments, in a bucket, for a warning


def _untyped(one: Call) -> tuple[str, tuple[Any, ...]]:
    """Return a call with texts of numbers and booleans as such, without texts of null."""
    typed = [
        (path, typed_json(text[1].lower()) if (text := _TYPED_TEXT.fullmatch(value)) else value)
        for path, value in one.arguments
    ]
    return one.tool, tuple((path, value) for path, value in typed if value != "null")


def _hashed(runs: Trajectories) -> Array:
    """Hash the expected calls of each datum, uint64 [n]."""
    side = runs.reference
    texts = [f"{one.tool}\x1f{one.arguments!r}" for one in runs.calls]
    hashes = hashes_of(pl.Series(texts, dtype=pl.String))[side.code]
    place = np.arange(side.code.size) - side.start[side.datum]
    out = np.zeros(side.start.size - 1, np.uint64)
    np.add.at(out, side.datum, hashes * (2 * place + 1).astype(np.uint64))  # wraps around
    return out


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, match and measure.

    Raises:
        InputError: an element of a list is no call.
    """
    begun = time.perf_counter()
    datums, runs, row, height = encode(frames, settings, workers)
    encoded = time.perf_counter()
    measures = metrics.measures("agents")
    columns = {need: measures[need](runs, settings, workers) for need in sorted(needs)}
    _note_types(frames, runs)
    _warn_one_sided(frames, runs)
    _note_unmet(frames, runs)
    none = [side.many == 0 for side in (runs.predicted, runs.reference)]
    status = (none[0] + 2 * none[1]).astype(np.int8)
    stats = Stats(np.ones(len(datums), bool), columns, (STATUS, status), _hashed(runs))
    seconds = {"encode": encoded - begun, "measure": time.perf_counter() - encoded}
    return StatsTallies(datums, no_labels(), stats, row, height, seconds)


# Fit, explanations and the task.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics; with ``tools``, also their use.

    Raises:
        OptionError: the use of tools was requested without names.
    """
    use = registry.get("agents", SINGLE_USE)
    if use in metrics and not settings.tools:
        raise OptionError(
            f"{SINGLE_USE} needs names of tools: write {option('tools', ['search'])}.",
            code="option_missing",
            option="tools",
        )
    return (*metrics, *([use] if settings.tools and not requested else [])), []


def contents(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`: the calls of both sides, one per line."""
    return word_diffs(frames, ids, ("predicted_trajectory", "reference_trajectory"), _lines)


def _lines(rows: pl.DataFrame | None, name: str) -> list[str]:
    """Return the calls of a datum as one text; separate tables have a row per call."""
    if rows is None:
        return []
    if name in rows.columns:
        lines = rows[name].explode(empty_as_null=False, keep_nulls=False)
    else:
        rows = rows.sort("step") if "step" in rows.columns else rows
        names = [one for one in ("tool", "arguments") if one in rows.columns]
        texts = rows.select(pl.concat_str(names, separator=" ", ignore_nulls=True))
        lines = texts.to_series()
    text = "\n".join(lines.to_list())
    return [text] if text else []


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    own = ", ".join(f"{path} {rule}" for path, rule in settings.argument_rules.items())
    return [
        f"match     calls by tool and arguments ({settings.tool_arguments}{own and f'; {own}'})",
        f"tally     {', '.join(sorted(needs))}, one value per datum",
        "mean      over datums",
    ]


def samples() -> Iterator[Sample]:
    """Two trajectories, equal calls and similar ones."""
    table = pl.DataFrame(
        {
            "predicted_trajectory": [['{"name":"a","args":{"x":1}}', "b"], ["b"]],
            "reference_trajectory": [["b", '{"name":"a","args":{"x":1.5}}'], ["b"]],
        }
    )
    yield table, None, {}
    yield table, None, {"argument_rules": {"x": "1"}, "tools": ["a"]}


TASK = Task(
    name="agents",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    contents=Contents(of_tables=contents),
    no_limits="every call is compared as it is, so no choice is open",
    truth=truth,
    growth=8,  # calls in addition to their texts
    **{**OF_VALUES, "losses": partial(losses, first=("TrajectoryF1", "ToolCorrectness"))},
)
