"""Command-line options generated from the fields of ``Options``, so that both always agree.

The type of a field decides its form: a tuple is repeated or separated by commas, a mapping is
repeated ``key=value``, a mapping to pairs ``name=low:high``, a boolean ``--x`` or ``--no-x``.
Options that were not set are omitted, so that defaults follow from the dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import msgspec

from ..schemas.options import FIELDS, Options

# click 8.1 has no subscript at run time.
_ParamType = click.ParamType

SHORT: dict[str, tuple[str, ...]] = {
    "metrics": ("--metric",),
    "iou_thresholds": ("--iou",),
    "iou_thresholds_to_return": ("--iou-to-return",),
    "score_thresholds": ("--score-threshold",),
    "area_ranges": ("--area-range",),
}
"""Field -> shorter option names, for values that are mostly given one at a time."""

_SIDES = re.compile(r"(predictions|ground_truths)=(?!=)")


_COMMA = re.compile(r",(?![^(\[{]*[)\]}])")
"""Comma outside brackets: inside, it belongs to a regular expression or a name."""


class Listed(_ParamType):  # type: ignore[type-arg]
    """One or several values separated by commas."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.name = f"{kind.__name__},..."

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return {"float": "X,...", "int": "N,..."}.get(self.kind.__name__, "NAME,...")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Any]:
        pieces = [piece.strip() for piece in _COMMA.split(value)]
        try:
            return [self.kind(piece) for piece in pieces if piece]
        except ValueError:
            words = {float: "a number", int: "a whole number"}
            wanted = words.get(self.kind, self.kind.__name__)
            self.fail(f"{value!r} contains something that is not {wanted}.", param, ctx)


class Pairs(_ParamType):  # type: ignore[type-arg]
    """``key=value``; several separated by commas if each of them has an equals sign."""

    name = "key=value"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[str, Any]]:
        return [self.pair(piece, param, ctx) for piece in separate(value)]

    def pair(
        self, piece: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """One key and its value."""
        key, equals, value = piece.partition("=")
        if not equals or not key.strip() or not value.strip():
            self.fail(f"{piece!r} is not of the form {self.name}.", param, ctx)
        return key.strip(), value.strip()


class Ranges(Pairs):
    """``name=low:high``."""

    name = "name=low:high"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "NAME=LOW:HIGH"

    def pair(
        self, piece: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """One name and its two ends."""
        name, ends = super().pair(piece, param, ctx)
        low, _, high = ends.partition(":")
        try:
            return name, (float(low), float(high))
        except ValueError:
            self.fail(f"{piece!r} is not of the form {self.name}.", param, ctx)


def separate(text: str) -> list[str]:
    """``a=1,b=2`` in two; ``chair, dining=chair`` in one, for the comma is part of a name."""
    pieces = text.split(",")
    return pieces if all("=" in piece for piece in pieces) else [text]


def _joined(ctx: click.Context, param: click.Parameter, value: Sequence[list[Any]]) -> Any:
    items = tuple(item for given in value for item in given)
    return items or None


def _mapping(ctx: click.Context, param: click.Parameter, value: Sequence[list[Any]]) -> Any:
    return dict(pair for given in value for pair in given) or None


def _conditions(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """Parse one condition for both sides, or one per side; several on a side are joined by AND."""
    sides: dict[str, list[str]] = {}
    for given in value:
        match = _SIDES.match(given)
        side, condition = (match[1], given[match.end() :]) if match else ("", given)
        sides.setdefault(side, []).append(condition)
    if "" in sides and len(sides) > 1:
        raise click.BadParameter(
            "give one condition for both sides, or predictions=... and ground_truths=...",
            ctx=ctx,
            param=param,
        )
    joined = {side: _all_of(conditions) for side, conditions in sides.items()}
    return joined.get("", joined) or None


def _all_of(conditions: list[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return " AND ".join(f"({condition})" for condition in conditions)


def label_map_of(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """``van=car`` as often as there are labels to rename, or the path of one table."""
    if len(value) == 1 and "=" not in value[0]:
        return value[0]
    return [piece for given in value for piece in separate(given)] or None


def _score_columns(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """Names of columns, or ``label=name`` for each."""
    pieces = [
        piece.strip()
        for given in value
        for piece in (separate(given) if "=" in given else given.split(","))
    ]
    pieces = [piece for piece in pieces if piece]
    pairs = [piece.partition("=") for piece in pieces]
    if pieces and all(equals and label and name for label, equals, name in pairs):
        return {label.strip(): name.strip() for label, _, name in pairs}
    if any(equals for _, equals, _ in pairs):
        raise click.BadParameter(
            "give names of columns, or label=name for every one.", ctx=ctx, param=param
        )
    return pieces or None


def _gains(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """``exponential``, or ``relevance=gain`` for each relevance."""
    if not any("=" in given for given in value):
        return value[-1] if value else None
    pairs = [piece.partition("=") for given in value for piece in separate(given)]
    try:
        return {float(level): float(gain) for level, _, gain in pairs}
    except ValueError:
        raise click.BadParameter(
            "give linear, exponential, or relevance=gain for every relevance, such as 1=3,2=9.",
            ctx=ctx,
            param=param,
        ) from None


def _stop_words(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """The path of a file, or words between commas."""
    if len(value) == 1 and "," not in value[0]:
        return value[0]
    words = (word.strip() for given in value for word in given.split(","))
    return [word for word in words if word] if value else None


def _sigmas(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """A name or path, one number, numbers between commas, or ``label=`` before any but several."""
    pieces = [piece for given in value for piece in separate(given)]
    if any("=" in piece for piece in pieces):
        named = (piece.partition("=") for piece in pieces)
        return {label: _sigma(one) for label, _, one in named}
    found = [_sigma(piece) for piece in pieces]
    return (found if len(found) > 1 else found[0]) if found else None


def _thresholds(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """The path of a file, or ``label=number`` for each."""
    if len(value) == 1 and "=" not in value[0]:
        return value[0]
    pairs = [piece.partition("=") for given in value for piece in separate(given)]
    try:
        return {label.strip(): float(number) for label, _, number in pairs} or None
    except ValueError:
        raise click.BadParameter(
            "give a file, or label=number for every label, such as car=0.4,bus=0.3.",
            ctx=ctx,
            param=param,
        ) from None


def _sigma(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _embedder(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """The name of a model, or ``model=name`` and other fields."""
    pieces = [piece for given in value for piece in separate(given)]
    if len(pieces) == 1 and "=" not in pieces[0]:
        return pieces[0]
    pairs = [piece.partition("=") for piece in pieces]
    if any(not equals or not name.strip() for name, equals, _ in pairs):
        raise click.BadParameter(
            "give the name of a model, or fields such as model=my-model,"
            "base_url=http://localhost:8000/v1.",
            ctx=ctx,
            param=param,
        )
    return {name.strip(): field.strip() for name, _, field in pairs} or None


def _training(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Any:
    """Paths of files, or a glob."""
    return list(value) or None


_BY_FIELD: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "where": (str, "CONDITION", _conditions),
    "label_map": (str, "OLD=NEW|PATH", label_map_of),
    "score_columns": (str, "NAME,...|LABEL=NAME", _score_columns),
    "gains": (str, "NAME|RELEVANCE=GAIN,...", _gains),
    "stop_words": (str, "WORD,...|PATH", _stop_words),
    "keypoint_sigmas": (str, "NAME|NUMBER,...|PATH", _sigmas),
    "thresholds": (str, "PATH|LABEL=NUMBER,...", _thresholds),
    "training": (str, "PATH", _training),
    "embedder": (str, "MODEL|NAME=VALUE,...", _embedder),
}
"""Fields whose type is not specific enough -> type of each piece, metavar, and callback."""


def generated() -> list[click.Option]:
    """One click option per field of ``Options``, in the order of its fields."""
    hints = get_type_hints(Options, include_extras=True)
    return [_option(name, hints[name]) for name in FIELDS]


def _option(name: str, hint: Any) -> click.Option:
    base, *notes = get_args(hint)
    meta = next((note for note in notes if isinstance(note, msgspec.Meta)), msgspec.Meta())
    dashed = name.replace("_", "-")
    long = f"--{dashed}/--no-{dashed}" if _given(base) is bool else f"--{dashed}"
    declared = [name, *SHORT.get(name, ()), long]
    said = meta.description or ""
    if meta.examples:
        said += f" E.g. {meta.examples[0]}"
    complete = partial(_values, name) if name in ("task", "dialect", "metrics") else None
    return click.Option(
        declared,
        help=said,
        shell_complete=complete,
        is_eager=name == "task",  # --help depends on it
        **_reading(name, base),
    )


def _values(name: str, ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Values of an option that a shell completes; of lists the piece behind the last comma."""
    from .. import dialects, metrics, tasks

    given = ctx.params.get("task")
    of = [given] if given in tasks.NAMES else list(tasks.NAMES)
    known = {
        "task": lambda: list(tasks.NAMES),
        "dialect": lambda: [one for task in of for one in dialects.names(task)],
        "metrics": lambda: [one for task in of for one in metrics.names(task)],
    }[name]()
    before, comma, piece = begun.rpartition(",")
    return [
        before + comma + one
        for one in dict.fromkeys(known)
        if one.casefold().startswith(piece.casefold())
    ]


def _given(kind: Any) -> Any:
    """The type that a value has in a shell: of several the first, None aside."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not NoneType)
    return kind


def _reading(name: str, kind: Any) -> dict[str, Any]:
    """Return the click settings for a field of that type."""
    if name in _BY_FIELD:
        piece, metavar, join = _BY_FIELD[name]
        return {"type": piece, "multiple": True, "metavar": metavar, "callback": join}
    kind = _given(kind)
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
