"""Command-line options generated from the fields of ``Options``, so that both always agree.

The type of a field decides its form: a tuple is repeated or separated by commas, a mapping is
repeated ``key=value``, a mapping to pairs ``name=low:high``, a boolean ``--x`` or ``--no-x``.
Options that were not set are omitted, so that defaults follow from the dialect. Help texts are the
entries of the docstring of ``Options``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_origin

import click

from ..schemas.options import FIELDS, help_texts, kind_of
from .completion import OF_FIELDS, completes

# click 8.1 has no subscript at run time.
_ParamType = click.ParamType

SHORT: dict[str, tuple[str, ...]] = {
    "metrics": ("--metric",),
    "iou_thresholds": ("--iou",),
    "iou_thresholds_to_return": ("--iou-to-return",),
    "score_thresholds": ("--score-threshold",),
    "area_ranges": ("--area-range",),
    "value_columns": ("--values",),
    "statistics": ("--statistic",),
}
"""Field -> shorter option names, for values that are mostly given one at a time."""

_SIDES = re.compile(r"(predictions|ground_truths)=(?!=)")


_COMMA = re.compile(r",(?![^(\[{]*[)\]}])")
"""Comma outside brackets: inside, it belongs to a regular expression or a name."""


_QUOTED = re.compile(r'(?:^|(?<=[,=]))\s*"([^"]+)"\s*(?=[,=]|$)')
_PLACE = re.compile(r"\0(\d+)\0")


def _without_quoted(text: str) -> tuple[str, Callable[[str], str]]:
    """Replace quoted names by placeholders without commas; also return the inverse."""
    names: list[str] = []

    def hide(match: re.Match[str]) -> str:
        names.append(match[1])
        return f"\0{len(names) - 1}\0"

    return _QUOTED.sub(hide, text), lambda piece: _PLACE.sub(lambda at: names[int(at[1])], piece)


class Listed(_ParamType):  # type: ignore[type-arg]
    """One or several values separated by commas; a name with a comma is quoted."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.name = f"{kind.__name__},..."

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return {"float": "X,...", "int": "N,..."}.get(self.kind.__name__, "NAME,...")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Any]:
        text, original = _without_quoted(value)
        pieces = [original(piece.strip()) for piece in _COMMA.split(text)]
        try:
            return [self.kind(piece) for piece in pieces if piece]
        except ValueError:
            words = {float: "a number", int: "a whole number"}
            kind_name = words.get(self.kind, self.kind.__name__)
            way = " Ranges are not read: list the values, 0.5,0.75." if ":" in value else ""
            self.fail(f"{value!r} contains something that is not {kind_name}.{way}", param, ctx)


class Pairs(_ParamType):  # type: ignore[type-arg]
    """``key=value``; several separated by commas if each of them has an equals sign."""

    name = "key=value"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[str, Any]]:
        pairs, (text, original) = [], _without_quoted(value)
        for piece in separate(text):
            key, equals, end = (original(part.strip()) for part in piece.partition("="))
            parsed = self.parsed(end) if equals and key and end else None
            if parsed is None:
                self.fail(f"{original(piece)!r} is not of the form {self.name}.", param, ctx)
            pairs.append((key, parsed))
        return pairs

    def parsed(self, end: str) -> Any:
        """Return the value of a key; None if it is malformed."""
        return end


class Ranges(Pairs):
    """``name=low:high``."""

    name = "name=low:high"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "NAME=LOW:HIGH"

    def parsed(self, end: str) -> Any:
        low, _, high = end.partition(":")
        try:
            return float(low), float(high)
        except ValueError:
            return None


def separate(text: str) -> list[str]:
    """``a=1,b=2`` in two; ``chair, dining=chair`` in one, for the comma is part of a name."""
    pieces = text.split(",")
    return pieces if all("=" in piece for piece in pieces) else [text]


def _joined(ctx: click.Context, param: click.Parameter, value: Sequence[list[Any]]) -> Any:
    items = tuple(item for group in value for item in group)
    return items or None


def _mapping(ctx: click.Context, param: click.Parameter, value: Sequence[list[Any]]) -> Any:
    return dict(pair for pairs in value for pair in pairs) or None


def _conditions(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """Parse one condition for both sides, or one per side; several on a side are joined by AND."""
    sides: dict[str, list[str]] = {}
    for text in value:
        match = _SIDES.match(text)
        side, condition = (match[1], text[match.end() :]) if match else ("", text)
        sides.setdefault(side, []).append(condition)
    if "" in sides and len(sides) > 1:
        raise click.BadParameter(
            "give one condition for both sides, or predictions=... and ground_truths=...",
            ctx=ctx,
            param=param,
        )
    joined = {
        side: some[0] if len(some) == 1 else " AND ".join(f"({one})" for one in some)
        for side, some in sides.items()
    }
    return joined.get("", joined) or None


def label_map_of(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """``van=car`` as often as there are labels to rename, or the path of one table."""
    if len(value) == 1 and "=" not in value[0]:
        return value[0]
    return [piece for text in value for piece in separate(text)] or None


def _loose(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """One word, several between commas, or ``key=word`` for each key; numbers are converted."""
    pairs: list[tuple[str, ...]] = []
    for argument in value:
        text, original = _without_quoted(argument)
        listed = param.name in _LISTS and "=" not in text
        pairs += [
            tuple(original(part.strip()) for part in piece.partition("="))
            for piece in (text.split(",") if listed else separate(text))
        ]
    pairs = [pair for pair in pairs if any(pair)]
    number = param.name in _NUMBERS
    if any(equals for _, equals, _ in pairs):
        if not all(map(all, pairs)):
            raise click.BadParameter("write key=value for every one.", ctx=ctx, param=param)
        words = {key: word for key, _, word in pairs}
        return {k: _number(word) for k, word in words.items()} if number else words
    values = [_number(piece) if number else piece for piece, _, _ in pairs]
    single = len(value) == 1 and "," not in _without_quoted(value[0])[0]
    return (values[0] if single and values else values) or None


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_LISTS = ("score_columns", "stop_words", "keypoint_sigmas")
"""Options of which one text may list several words; others may be paths with commas."""
_NUMBERS = ("gains", "keypoint_sigmas", "thresholds")
"""Options whose words are numbers if they can be."""

_BY_FIELD: dict[str, tuple[str, Callable[..., Any]]] = {
    "where": ("CONDITION", _conditions),
    "label_map": ("OLD=NEW|PATH", label_map_of),
    **dict.fromkeys(
        ("training", "human", "regions"), ("PATH", lambda ctx, param, value: list(value) or None)
    ),
    "score_columns": ("NAME,...|LABEL=NAME", _loose),
    "gains": ("NAME|RELEVANCE=GAIN,...", _loose),
    "stop_words": ("WORD,...|PATH", _loose),
    "keypoint_sigmas": ("NAME|NUMBER,...|PATH", _loose),
    "thresholds": ("PATH|LABEL=NUMBER,...", _loose),
    "embedder": ("MODEL|NAME=VALUE,...", _loose),
}
"""Options whose type is not specific enough -> metavar, and callback."""


def generated() -> list[click.Option]:
    """One click option per field of ``Options``, in the order of its fields."""
    texts = help_texts()
    return [_option(name, texts.get(name, "")) for name in FIELDS]


def _option(name: str, message: str) -> click.Option:
    kind = kind_of(name)
    dashed = name.replace("_", "-")
    long = f"--{dashed}/--no-{dashed}" if kind is bool else f"--{dashed}"
    return click.Option(
        [name, *SHORT.get(name, ()), long],
        help=message,
        shell_complete=completes(OF_FIELDS[name]) if name in OF_FIELDS else None,
        is_eager=name == "task",  # --help depends on it
        **_reading(name, kind),
    )


def _reading(name: str, kind: Any) -> dict[str, Any]:
    """Return the click settings for a field of that type."""
    if name in _BY_FIELD:
        metavar, join = _BY_FIELD[name]
        return {"type": str, "multiple": True, "metavar": metavar, "callback": join}
    if get_origin(kind) is tuple:
        return {"type": Listed(get_args(kind)[0]), "multiple": True, "callback": _joined}
    if get_origin(kind) is dict:
        values = get_args(kind)[1]
        pairs = Ranges() if get_origin(values) is tuple else Pairs()
        return {"type": pairs, "multiple": True, "callback": _mapping}
    if kind is bool:
        return {"is_flag": True, "default": None}
    metavars = {"memory_limit": "SIZE", "scratch": "DIR", "raster_root": "DIR", "cluster": "COLUMN"}
    return {"type": kind, "metavar": metavars.get(name) or {int: "N", float: "X"}.get(kind, "NAME")}
