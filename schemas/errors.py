"""Errors caused by input, options or the environment.

Every such error is a :class:`EvalengineError`, which is a ``ValueError``. The command exits with 2
on them, but with 3 on :data:`PASSING` and on any other exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .wording import in_python, option, without_secrets

N_EXAMPLES = 3
"""Rows or values that a message quotes as examples."""
N_NAMES = 5
"""Ids, labels or columns that a message lists by name."""


class EvalengineError(ValueError):
    """Base of every error caused by input or options.

    Attributes:
        code: stable name of the error, such as ``"null_values"``. Empty if it has none.
        facts: values used in the message: ``column``, ``count``, ``rows`` and others.
        message: the message with marked options, see :mod:`evalengine.schemas.wording`. ``str`` of
            the error formats them for Python.
    """

    def __init__(self, message: str = "", *, code: str = "", **facts: Any) -> None:
        self.code = code
        self.facts = facts
        self.message = without_secrets(message)
        super().__init__(in_python(self.message))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.message, self.__dict__)


def not_installed(package: str, extra: str) -> str:
    """Return words for a package that is missing, with the command that adds it.

    pip and uv add an extra to an installed evalengine without asking an index for evalengine.
    """
    return f"{package}, which is not installed: pip install 'evalengine[{extra}]'"


def _restored(kind: type[EvalengineError], message: str, state: dict[str, Any]) -> EvalengineError:
    """Rebuild an error that crossed a process, whatever the arguments of its class."""
    error = kind.__new__(kind)
    EvalengineError.__init__(error, message)
    error.__dict__.update(state)
    return error


class InputError(EvalengineError):
    """A table breaks its contract: missing column, wrong type, null, NaN, inverted box, ..."""


class TruthsMissingError(InputError):
    """Only predictions were given, in a task whose ground truths are a separate table."""


class ReadError(InputError):
    """A file is missing, truncated, of an unknown format, or cannot be read."""


class ChangedError(InputError):
    """Files changed while they were read. It may pass."""


class OptionError(EvalengineError):
    """An option, metric, dialect or column name that does not exist or does not fit."""


class ScratchError(EvalengineError):
    """The scratch folder cannot be written, or its disk is full."""


class ExecutorError(EvalengineError):
    """Worker processes or a cluster failed: unreachable, or workers died."""


class ResultError(EvalengineError):
    """A question a scorecard cannot answer: no such metric in it, or more than one such row."""


class WriteError(ResultError):
    """The disk refused a result: it is full, or the folder cannot be written. It may pass."""


class EndpointError(EvalengineError):
    """An endpoint cannot be used: wrong key, unknown model, or unreachable address."""


class JudgeError(EndpointError):
    """The same of a judge."""


PASSING = (WriteError, ScratchError, EndpointError, ExecutorError, ChangedError)
"""Errors that may be temporary, so that the same command is worth repeating."""


def invalid(
    name: str, value: Any, rule: str, *, code: str = "option_value", **facts: Any
) -> OptionError:
    """Return the error for a value of an option that breaks a rule, such as ``write 1 or more.``"""
    message = f"{option(name, value)}: {rule}"
    return OptionError(message, code=code, option=name, value=value, **facts)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `` Did you mean 'mAP'?`` for similar names, or an empty string.

    A word misspells a name if one edit separates them, or two if it has seven letters or more;
    capitals do not count, and digits have to agree. Acronyms differ by single letters (MAE, MSE,
    MAPE), so for them only swapped letters, a doubled letter and a plural count as misspelt. If no
    name is misspelt, up to three names are suggested that start with the word or share its
    beginning (prediction, predicted), the shortest first.
    """
    # Imported here: only an error needs it. OSA counts a transposition as one edit ("mpa").
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    names = list(choices)
    plain = [name.casefold() for name in names]
    similar = extract(word.casefold(), plain, scorer=OSA.distance, score_cutoff=2, limit=None)
    # If names differ only in case (mAP, MAP), prefer the one closer to the user's spelling.
    similar.sort(key=lambda one: (one[1], OSA.distance(word, names[one[2]])))
    suggestions = [names[at] for _, edits, at in similar if _misspells(word, names[at], edits)][:1]
    if not suggestions:
        begun = [name for name, text in zip(names, plain, strict=True) if _begins(word, text)]
        suggestions = sorted(begun, key=len)[:_BEGUN]
    return f" Did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""


def _misspells(word: str, name: str, edits: float) -> bool:
    one, other = word.casefold(), name.casefold()
    if not edits:
        return True
    long = max(len(one), len(other))
    swapped = sorted(one) == sorted(other)
    digits = ["".join(filter(str.isdigit, text)) for text in (one, other)]
    if edits > (2 if long >= _LONG else 1) or (all(digits) and digits[0] != digits[1]):
        return False
    if len(name) <= _SHORT and sum(letter.isupper() for letter in name) > 1:
        struck = len(_TWICE.findall(one)) > len(_TWICE.findall(other)) and one not in _NO_SLIPS
        return swapped or struck or one == f"{other}s"
    # A letter more in front is a prefix (mRecall, nRMSE), no slip.
    return swapped or one[:1] == other[:1] or len(one) == len(other)


def _begins(word: str, text: str) -> bool:
    from rapidfuzz.distance import Prefix

    shared = Prefix.similarity(word.casefold(), text)
    if shared == len(word):
        return shared > 1
    return shared >= _SHARED and 3 * shared >= 2 * max(len(word), len(text))


_TWICE = re.compile(r"([a-z])(?=\1)")
_NO_SLIPS = frozenset(["maape", "rrmse", "ccc"])
"""Acronyms of metrics of others with a letter twice."""
_SHARED = 6
_LONG, _SHORT = 7, 5
"""Letters from which two edits are allowed, and up to which capitals make an acronym."""
_BEGUN = 3


def unknown(
    kind: str,
    word: str,
    choices: Iterable[str],
    *,
    before: str = "",
    after: str = "",
    error: type[EvalengineError] = OptionError,
) -> EvalengineError:
    """Return the error for a name that does not exist, with the nearest and others that do.

    Args:
        kind: noun for the word, e.g. ``"metric"``.
        word: the user's name.
        choices: every valid name.
        before: start of the message.
        after: its end.
        error: class of the error.
    """
    names = sorted(choices, key=str.casefold)
    listed = names[:_LISTED] if len(names) > _LISTED + _SPARED else names
    more = f" and {len(names) - len(listed)} more" if len(listed) < len(names) else ""
    message = f"{word!r} is not a known {kind}.{did_you_mean(word, names)}"
    message = f"{before}{message} Known: {', '.join(listed)}{more}.{after}"
    return error(message, code="unknown_name", value=word)


_LISTED, _SPARED = 20, 5
"""Names that are listed of many, and how many more are listed rather than counted."""
