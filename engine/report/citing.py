"""A line to cite: version, rules, options, digests of the tables and the first number.

evalengine 0.1.0 | detection coco | --seed 3 | n 50 | pred 1f3a09c2d4e8 gt 9c0e... | AP 0.4930
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..dialects import defaults
from ..metrics.own import is_plugin, is_reference
from ..schemas.contract import GROUND_TRUTHS, PREDICTIONS, TABLE
from ..schemas.errors import OptionError, ResultError
from ..schemas.option_values import level_of
from ..schemas.options import DECLARED, TABLE_OPTIONS
from ..schemas.wording import in_shell, option, without_secrets
from .provenance import given_options, written
from .summary import lead
from .text import fixed, number, plain

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_UNCITED = (
    *("task", "dialect", "by", "spread", "columns", "limits", "label_next"),
    *("threads", "memory_limit", "scratch", "client_reads", "pr_curve_max_examples", "embedder"),
)
"""Options that are elsewhere in the line, or that do not change the number."""
_SHORT = {PREDICTIONS: "pred", GROUND_TRUTHS: "gt", TABLE: "table"}
_DIGITS = 12  # hexadecimal digits of a digest
_LEAST = 8
"""Minimum number of hexadecimal digits of a digest in a line."""
_UNKNOWN = "?"
_UNDEFINED = "undefined"

_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_DIGEST = rf"\w+ (?:[0-9a-f]{{{_LEAST},32}}|\?)"
_PARTS = {
    "the version": r"evalengine (?P<version>\S+)",
    "task and dialect": r"(?P<task>\S+) (?P<dialect>\S+)",
    "options": r"(?P<options>--.*)",
    "the datums, as in 'n 5,000'": r"n (?P<n>\d[\d,]*)",
    f"digests of {_LEAST} or more hexadecimal digits, as in 'pred 1f3a09c2d4e8 gt ?'": (
        rf"(?P<digests>{_DIGEST}(?: {_DIGEST})*)"
    ),
    "a name and a number, as in 'AP 0.4930 [0.4812, 0.5049]'": (
        rf"(?P<title>.+) (?P<value>{_NUMBER}|{_UNDEFINED})"
        rf"(?: \[(?P<lower>{_NUMBER}), (?P<upper>{_NUMBER})\])?"
    ),
}
"""Parts of a line, in order, and their patterns; options and the number may be absent."""
_OPTIONAL = ("options", [*_PARTS][-1])
_LINE = re.compile(
    "".join(
        rf"(?:{' [|] ' * (i > 0)}{pattern}){'?' * (name in _OPTIONAL)}"
        for i, (name, pattern) in enumerate(_PARTS.items())
    )
)
_AROUND = " \t\n`'\".,;"
"""Characters that may surround a line: Markdown, quotes, the end of a sentence."""


class Citation(msgspec.Struct, frozen=True):
    """The parts of a line.

    Attributes:
        options: words of the shell; only those that differ from the dialect's defaults.
        digests: table or option -> the first digits of its digest; ``?`` if it is not known.
        title: name of the number; empty if there is none.
        value: the number as text.
        lower: lower end of its interval as text; None without one.
        upper: upper end.
    """

    version: str
    task: str
    dialect: str
    options: str
    n: int
    digests: Mapping[str, str]
    title: str = ""
    value: str = ""
    lower: str | None = None
    upper: str | None = None

    @property
    def words(self) -> list[str]:
        """The options as arguments of the command, with task and dialect."""
        return ["--task", self.task, "--dialect", self.dialect, *shlex.split(self.options)]


def line_of(card: Scorecard) -> str:
    """Return the line of a scorecard."""
    digests = " ".join(f"{name} {digest}" for name, digest in _digests(card).items())
    parts = [f"evalengine {card.version}", f"{card.task} {card.dialect}"]
    parts += [options] if (options := _options(card)) else []
    parts += [f"n {card.read.get('datums', 0):,}", digests]
    leading = lead(card)
    if leading is not None:
        value = (
            _UNDEFINED if leading.value is None else number(leading.value, counted=leading.counted)
        )
        text = f"{plain(leading.title)} {value}"
        lower, upper = leading.row.get("lower"), leading.row.get("upper")
        if lower is not None and upper is not None:
            text += f" [{fixed(lower, 4)}, {fixed(upper, 4)}]"
        parts.append(text)
    return " | ".join(parts)


def _options(card: Scorecard) -> str:
    """Options that differ from the dialect's defaults, as in the shell."""
    usual = defaults(card.task, card.dialect)
    words = []
    for name in given_options(card.options):
        value = getattr(card.options, name)
        if name == "intervals":  # 95 and 0.95 are one option
            value = float(f"{level_of(card.options):.12g}")
        if name in _UNCITED or name in card.content or _is_object(name, value):
            continue
        if name not in usual or value != usual[name]:
            words.append(in_shell(option(name, written(name, value))))
    return without_secrets(plain(" ".join(words)))


def _is_object(name: str, value: object) -> bool:
    """Return True if an option cannot be written in the shell, as a table in memory."""
    return bool(written(name, value) == f"<{name}>")


def _digests(card: Scorecard) -> dict[str, str]:
    digests = {
        _SHORT.get(name, name): one[:_DIGITS] or _UNKNOWN for name, one in card.content.items()
    }
    names = ["table"] if "rows" in card.read else ["pred", "gt"]
    names += [name for name in TABLE_OPTIONS if _is_object(name, getattr(card.options, name))]
    return {**dict.fromkeys(names, _UNKNOWN), **digests}


def read_line(line: str) -> Citation:
    """Split a line to cite.

    Raises:
        ResultError: it is not such a line.
    """
    text = " ".join(line.strip(_AROUND).split())
    match = _LINE.fullmatch(text)
    if match is None:
        raise _unreadable(line, text)
    parts = match.groupdict()
    words = parts["digests"].split()
    return Citation(
        version=parts["version"],
        task=parts["task"],
        dialect=parts["dialect"],
        options=parts["options"] or "",
        n=int(parts["n"].replace(",", "")),
        digests=dict(zip(words[::2], words[1::2], strict=True)),
        title=parts["title"] or "",
        value=parts["value"] or "",
        lower=parts["lower"],
        upper=parts["upper"],
    )


def _unreadable(line: str, text: str) -> ResultError:
    """Return the error for a line, which names its first part that cannot be read."""
    start, end = "", 0
    for expected, pattern in _PARTS.items():
        least = pattern.replace(".*", ".*?")
        longer = rf"{start}(?:{' [|] ' * bool(start)}{least})"
        match = re.match(rf"{longer}(?= [|] |$)", text)
        if match is not None:
            start, end = longer, match.end()
        elif expected != _OPTIONAL[0]:
            break
    rest = text[end:].removeprefix(" | ")
    if not rest:
        where = f"it ends before {expected}"
    else:
        where = f"{rest.partition(' | ')[0]!r} cannot be read: expected {expected}"
    return ResultError(
        f"{line!r} is not a line to cite: {where}. A line looks like: evalengine 0.1.0 | detection"
        " coco | n 5,000 | pred 1f3a09c2d4e8 gt 9c0e55ab01fd | AP 0.4930.",
        code="not_a_citation",
        value=rest,
    )


def refuse_strangers(line: str, fields: Mapping[str, Any], *, own_metrics: bool) -> None:
    """Refuse options of a line that read files, call addresses or run code.

    Args:
        fields: options that are taken from the line.
        own_metrics: True if own metrics may run.

    Raises:
        ResultError: an option that no line has.
        OptionError: an own metric.
    """
    for name, value in fields.items():
        strange = name in _UNCITED[2:] or name not in DECLARED
        if strange or (name in TABLE_OPTIONS and isinstance(value, (str, Path))):
            raise ResultError(
                f"{line!r} has {option(name)}, which no line to cite has: leave it out, or give it"
                " next to the line.",
                code="not_a_citation",
                value=name,
            )
    custom = [one for one in fields.get("metrics") or () if is_reference(one) or is_plugin(one)]
    if custom and not own_metrics:
        raise OptionError(
            f"the line names {', '.join(custom)}, whose code would run here. If you trust that"
            " code, add --own-metrics.",
            code="plugins_refused",
            value=custom[0],
        )


def differences(cited: Citation, actual: Citation) -> tuple[list[str], list[str], list[str]]:
    """Compare a line with that of tables at hand.

    Returns:
        what differs in digests, counts and numbers; what differs in version and options, which
        explains it, if anything does; what was not compared, or to few digits.
    """
    differing: list[str] = []
    why: list[str] = []
    imprecise: list[str] = []

    def differs(to: list[str], what: str, cited: object, actual: object) -> None:
        texts = ["-" if one in (None, "") else one for one in (cited, actual)]
        to.append(f"{what}: line {texts[0]}, here {texts[1]}")

    for name in dict.fromkeys((*cited.digests, *actual.digests)):
        pair = cited.digests.get(name, ""), actual.digests.get(name, "")
        if _UNKNOWN in pair and all(pair):
            imprecise.append(f"{name}: unknown, not compared")
        elif not all(pair) or not (pair[0].startswith(pair[1]) or pair[1].startswith(pair[0])):
            differs(differing, name, *pair)
    if cited.n != actual.n:
        differs(differing, "n", cited.n, actual.n)
    if cited.title != actual.title:
        differs(differing, "number", cited.title, actual.title)
    else:
        for part in ("value", "lower", "upper"):
            line, here = getattr(cited, part), getattr(actual, part)
            name = f"{cited.title} ({part})"
            if not _close(line, here):
                differs(differing, name, line, here)
            elif line != here and (digits := _significant(line)) < _FEW:
                compared = "1 digit" if digits == 1 else f"{digits} digits"
                imprecise.append(f"{name}: compared to {compared} only: line {line}, here {here}")
    for part in ("version", "task", "dialect", "options"):
        pair = getattr(cited, part), getattr(actual, part)
        if pair[0] != pair[1]:
            differs(why, part, *pair)
    return differing, why, imprecise


_FEW = 3
"""Number of significant digits below which a note reports the precision of a comparison."""


def _significant(number: str) -> int:
    """Count the significant digits of a number as text."""
    digits = re.sub(r"[eE].*|\D", "", number).lstrip("0")
    return max(len(digits), 1)


def _close(a: str | None, b: str | None) -> bool:
    """Return True if numbers are equal to the digits of the shorter one."""
    if a == b or not a or not b or _UNDEFINED in (a, b):
        return a == b
    first, second = (one.replace(",", "") for one in (a, b))
    digits = min(len(one.partition(".")[2]) for one in (first, second))
    return math.isclose(
        float(first), float(second), rel_tol=1e-12, abs_tol=0.5000001 * 10.0**-digits
    )
