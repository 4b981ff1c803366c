"""Tool calls: parsing, rules of arguments, and matches of trajectories."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import offsets_of
from ...kernels.spans import match_calls
from ...schemas.arrays import Array
from ...schemas.tables import ARGUMENT_FIELDS, TOOL_FIELDS
from ..encoding import Workers, ragged
from .dialects import Settings, tolerance

# Calls as tables have them: structs, JSON or names.

_WHOLE = 2.0**53
_SLACK = 1 + Decimal("1e-12")
"""Factor of tolerances: differences of computed numbers may exceed them by rounding."""
_BLOCKS = ("tool_use", "server_tool_use", "tool_call", "function_call")
_PROSE = ("text", "thinking", "reasoning", "tool_result", "function_call_output")
_ABOUT = {"id", "call_id", "tool_call_id", "type", "index", "status"}
"""Fields that are not part of a call and may be dropped without a note."""
_PYTHON = re.compile(r"[\s\[{(]+'")
"""Beginning of a list or dict with single quotes."""
_PATH = tuple[str, ...]


class Call(NamedTuple):
    """One call.

    Attributes:
        arguments: path of each argument, a key per level, and its value as canonical JSON; none
            that is null; ascending.
        in_json: the arguments are a JSON object, or absent.
    """

    tool: str
    arguments: tuple[tuple[_PATH, str], ...]
    in_json: bool = True


def parse(text: str) -> tuple[list[Call], set[str]]:
    """Parse one element of a list of calls.

    Args:
        text: a JSON object with a tool's name, of a message with calls, an array of those, or the
            name of a tool.

    Returns:
        the calls, and the fields that may belong to them but are not read.

    Raises:
        ValueError: it is JSON without a name, or an empty name.
    """
    unread: set[str] = set()
    if text.lstrip()[:1] not in ("{", "["):
        return [call(text, None)], unread
    try:
        return [*_calls_in(msgspec.json.decode(text), unread)], unread
    except (msgspec.DecodeError, RecursionError) as error:
        if _PYTHON.match(text):
            raise ValueError(
                "it is Python's repr, not JSON: write cells with json.dumps, or decode them in the"
                " table with ast.literal_eval"
            ) from None
        raise ValueError(f"it is not JSON: {error}") from None


def _calls_in(value: Any, unread: set[str]) -> Iterator[Call]:
    if isinstance(value, list):
        for one in value:
            yield from _calls_in(one, unread)
        return
    if isinstance(value, str):
        yield call(value, None)
        return
    if not isinstance(value, dict):
        raise ValueError(f"{json.dumps(value)} is not a call")
    present = {key for key, one in value.items() if one is not None}
    fields = {key: value[key] for key in present if value[key] not in ("", [], {})}
    arguments = [key for key in ARGUMENT_FIELDS if key in fields]
    inner = _inner(fields)
    if (
        present & {"role", "tool_calls", "function_call"}
        or ("content" in present and not arguments)
        or fields.get("type") in _PROSE
    ):  # a message: its name is that of who wrote it, or of the tool whose result it is
        unread.update(arguments)
        yield from _calls_in(inner or [], unread)
    elif inner:
        unread.update(fields.keys() - _ABOUT - {"function"})
        yield from _calls_in(inner, unread)
    else:
        names = (key for key in (*TOOL_FIELDS, "function") if isinstance(fields.get(key), str))
        if (name := next(names, None)) is None:
            raise ValueError(f"it has none of {', '.join(TOOL_FIELDS)}")
        unread.update(fields.keys() - _ABOUT - {name, *arguments[:1]})
        yield call(fields[name], fields[arguments[0]] if arguments else None)


def _inner(fields: dict[str, Any]) -> Any:
    """Return the calls within a message, or the function of a call; None without them."""
    for key in ("tool_calls", "function_call", "function"):
        if isinstance(fields.get(key), (list, dict)):
            return fields[key]
    content = fields.get("content")
    blocks = content if isinstance(content, list) else []
    return [one for one in blocks if isinstance(one, dict) and one.get("type") in _BLOCKS]


def call(tool: str, arguments: Any) -> Call:
    """Return a call.

    Args:
        arguments: a mapping, its JSON text, or another value, which becomes a single argument.

    Raises:
        ValueError: the name is empty.
    """
    if not tool.strip():
        raise ValueError("the name of its tool is empty")
    plain = True
    if isinstance(arguments, str) and (text := arguments.strip()):
        try:
            arguments = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            plain = False
        plain = plain and isinstance(arguments, dict)
    if arguments is None or arguments == "":
        return Call(tool, ())
    return Call(tool, tuple(sorted(_leaves((), arguments))), plain)


def _leaves(path: _PATH, value: Any) -> Iterator[tuple[_PATH, str]]:
    """Yield path and canonical JSON of all arguments other than null."""
    if isinstance(value, dict) and any(inner is not None for inner in value.values()):
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif value is not None and (path or not isinstance(value, dict)):
        yield path, _json(_canonical(value))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def typed_json(text: str) -> str:
    """Return the canonical JSON of a number, boolean or null in lower case."""
    return "null" if text == "none" else _json(_canonical(json.loads(text)))


def _canonical(value: Any) -> Any:
    """Return a JSON value in which equal numbers are written alike."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return int(value)
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    if isinstance(value, dict):
        return {key: _canonical(one) for key, one in value.items() if one is not None}
    return value


def _folded(value: Any) -> Any:
    """Return a JSON value whose texts are without case and excess white space."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    if isinstance(value, list):
        return [_folded(one) for one in value]
    if isinstance(value, dict):
        return {key: _folded(one) for key, one in value.items()}
    return value


def _is_close(ours: Any, theirs: Any, reach: Decimal, relative: bool) -> bool:
    """Return whether JSON values are equal except for numbers, as written, within a tolerance."""
    if type(ours) in (int, float) and type(theirs) in (int, float):
        mine, other = (Decimal(str(one)) for one in (ours, theirs))
        if not (mine.is_finite() and other.is_finite()):
            return ours == theirs
        return abs(mine - other) <= reach * (abs(other) if relative else 1) * _SLACK
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            _is_close(*pair, reach, relative) for pair in zip(ours, theirs, strict=True)
        )
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(
            _is_close(ours[key], theirs[key], reach, relative) for key in ours
        )
    return type(ours) is type(theirs) and bool(ours == theirs)


# Rules of arguments.


class Matching:
    """Comparison of calls under the settings of a run."""

    def __init__(self, settings: Settings) -> None:
        self._mode = settings.tool_arguments
        self._rules = settings.argument_rules
        self._tolerant = any(tolerance(rule) is not None for rule in self._rules.values())
        self.rule = cache(self._rule)
        self.met: set[str] = set()

    @property
    def by_equality(self) -> bool:
        """True if calls match if and only if they are equal once :meth:`plain`."""
        return self._mode == "ignore" or (self._mode == "exact" and not self._tolerant)

    def _rule(self, tool: str, path: _PATH) -> str:
        """Return the rule of an argument: that of the tool first, then of the longest path."""
        keys = [key.replace(".", r"\.") for key in path]
        paths = [".".join(keys[:n]) for n in range(len(keys), 0, -1)]
        for name in (*(f"{tool}.{one}" for one in paths), *paths):
            if name in self._rules:
                self.met.add(name)
                return self._rules[name]
        return "exact"

    def _ignores_below(self, tool: str, path: _PATH) -> bool:
        """Return whether a rule ignores arguments within an object."""
        name = "".join(key.replace(".", r"\.") + "." for key in path)
        return any(
            rule == "ignore" and below.startswith((name, f"{tool}.{name}"))
            for below, rule in self._rules.items()
        )

    def plain(self, one: Call) -> Call:
        """Return the call without ignored arguments, texts without case and excess white space."""
        if self._mode == "ignore":
            return Call(one.tool, ())
        if not self._rules:
            return Call(one.tool, one.arguments)
        arguments = []
        for path, value in one.arguments:
            rule = self.rule(one.tool, path)
            if rule == "text" and value[:1] in '"[':
                value = _json(_folded(json.loads(value)))
            if rule != "ignore" and not (value == "{}" and self._ignores_below(one.tool, path)):
                arguments.append((path, value))
        return Call(one.tool, tuple(arguments))

    def same(self, ours: Call, theirs: Call) -> bool:
        """Return whether a predicted call matches a reference call, both :meth:`plain`."""
        mine, other = dict(ours.arguments), dict(theirs.arguments)
        if ours.tool != theirs.tool:
            return False
        if self._mode != "superset" and not mine.keys() <= other.keys():
            return False
        if self._mode != "subset" and not mine.keys() >= other.keys():
            return False
        return all(
            self._equal(self.rule(ours.tool, path), mine[path], other[path])
            for path in mine.keys() & other.keys()
        )

    def _equal(self, rule: str, ours: str, theirs: str) -> bool:
        allowed = tolerance(rule)
        if ours == theirs or allowed is None:
            return ours == theirs
        return _is_close(json.loads(ours), json.loads(theirs), *allowed)


# Trajectories of datums, and their matches.


class Side(msgspec.Struct, frozen=True):
    """Calls of one side.

    Attributes:
        start: int64 [n + 1], offsets of the calls of each datum.
        code: int64 [m], code of each call, in the order of each trajectory.
    """

    start: Array
    code: Array

    @property
    def many(self) -> Array:
        """Calls per datum, int64 [n]."""
        return np.diff(self.start)

    @property
    def datum(self) -> Array:
        """Datum of each call, int64 [m]."""
        return np.repeat(np.arange(self.start.size - 1), self.many)


class Trajectories(msgspec.Struct, frozen=True, dict=True):
    """Trajectories of all datums.

    Attributes:
        calls: distinct calls by code, as the tables have them.
        predicted: calls of the agent.
        reference: expected calls.
    """

    calls: Sequence[Call]
    predicted: Side
    reference: Side
    settings: Settings
    workers: Workers

    @cached_property
    def matching(self) -> Matching:
        """Rules of the run; those that were met are known after :attr:`matches`."""
        return Matching(self.settings)

    @cached_property
    def tools(self) -> tuple[list[str], Array]:
        """Names of tools, and the tool of each call code, int64."""
        names = [one.tool for one in self.calls]
        distinct = {name: i for i, name in enumerate(dict.fromkeys(names))}
        return [*distinct], np.array([distinct[name] for name in names], np.int64)

    @cached_property
    def compared(self) -> tuple[list[Call], tuple[Array, Array], Array]:
        """What the rules compare.

        Distinct calls once :meth:`Matching.plain`; their codes of predicted and expected calls,
        int64; and different ones that match: predicted code * number of calls + expected code,
        int64 ascending.
        """
        matching = self.matching
        plain: dict[Call, int] = {}
        new = [plain.setdefault(matching.plain(one), len(plain)) for one in self.calls]
        recoded = np.array(new, np.int64)
        codes = recoded[self.predicted.code], recoded[self.reference.code]
        similar = np.zeros(0, np.int64)
        if not matching.by_equality:
            similar = self._similar(matching, [*plain], codes)
        return [*plain], codes, similar

    @cached_property
    def matches(self) -> Array:
        """Matches of each datum, int64 [n, 5]; see :func:`kernels.spans.match_calls`."""
        plain, codes, similar = self.compared
        n = max(len(plain), 1)
        out = np.zeros((self.predicted.start.size - 1, 5), np.int64)
        starts = self.predicted.start, self.reference.start

        def some(first: int, last: int) -> None:
            match_calls(first, last, starts, codes, similar, n, out)

        self.workers.over(starts[0] + starts[1], some)
        return out

    def _similar(
        self, matching: Matching, plain: Sequence[Call], codes: tuple[Array, Array]
    ) -> Array:
        """Return matching pairs of different calls that meet in some datum, ascending."""
        tool = np.unique([one.tool for one in plain], return_inverse=True)[1]
        frames = [
            pl.DataFrame({"datum": side.datum, name: code, "tool": tool[code]}).unique()
            for name, side, code in zip("pr", (self.predicted, self.reference), codes, strict=True)
        ]
        pairs = frames[0].join(frames[1], on=["datum", "tool"]).select("p", "r").unique()
        matches = [
            p * len(plain) + r
            for p, r in pairs.iter_rows()
            if p != r and matching.same(plain[p], plain[r])
        ]
        return np.sort(np.array(matches, np.int64))

    def times(self, side: Side, *, distinct: bool = False) -> tuple[Array, Array]:
        """Count the calls of each datum and tool.

        Args:
            distinct: count equal calls once.

        Returns:
            datum * number of tools + tool, int64 ascending; count of each.
        """
        names, tool = self.tools
        datum, code = side.datum, side.code
        if distinct and code.size:
            pairs = np.unique(np.stack([datum, code], axis=1), axis=0)
            datum, code = pairs[:, 0], pairs[:, 1]
        keys, many = np.unique(datum * max(len(names), 1) + tool[code], return_counts=True)
        return keys, many


def side_of(datum: Array, code: Array, n: int) -> Side:
    """Return the calls of one side, grouped by datum in their order.

    Args:
        datum: int64 [m], datum of each call.
        code: int64 [m].
        n: number of datums.
    """
    if datum.size and (np.diff(datum) < 0).any():
        order = np.argsort(datum, kind="stable")
        datum, code = datum[order], code[order]
    return Side(offsets_of(np.bincount(datum, minlength=n)), code)


def codes_of(
    texts: pl.DataFrame,
    parse_row: Callable[..., tuple[Sequence[Call], Collection[str]]],
    index: dict[Call, int],
) -> tuple[Array, Array, Mapping[int, str], Mapping[str, int]]:
    """Code the calls of rows; distinct rows are parsed once.

    Args:
        texts: String columns.
        parse_row: maps the values of a row to its calls and the fields that are not read.
        index: call -> code; receives new ones.

    Returns:
        number of calls of each row, and the codes of all, int64; rows of ``texts`` that cannot be
        parsed -> why; fields that are not read -> number of rows.
    """
    names = texts.columns
    distinct = texts.unique(maintain_order=True).with_row_index("__code")
    rows = texts.join(distinct, on=names, how="left", nulls_equal=True, maintain_order="left")
    at = rows["__code"].to_numpy().astype(np.int64)
    coded: list[list[int]] = []
    wrong: dict[int, str] = {}
    unread: Counter[str] = Counter()
    times = np.bincount(at, minlength=len(distinct)).tolist()
    for i, row in enumerate(distinct.select(names).iter_rows()):
        try:
            calls, fields = parse_row(*row)
        except ValueError as error:
            calls, fields, wrong[i] = (), (), str(error)
        unread.update(dict.fromkeys(fields, times[i]))
        coded.append([index.setdefault(one, len(index)) for one in calls])
    many = np.array([len(one) for one in coded], np.int64)
    flat = np.array([code for one in coded for code in one], np.int64)
    start = offsets_of(many)[:-1]
    each = many[at]
    where = {int(np.flatnonzero(at == i)[0]): why for i, why in wrong.items()}
    return each, flat[ragged(start[at], each)], where, dict(sorted(unread.items()))
