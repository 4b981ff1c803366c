"""What can go wrong, in words that name the column, the count, the rows and the way out.

Every error a user can cause is a :class:`EvalengineError`, which is a ``ValueError``; the command
exits with 2 on those, but with 3 on what may pass (:data:`PASSING`) and on anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .wording import in_python, without_secrets


class EvalengineError(ValueError):
    """Base of every error that input or options can cause.

    Attributes:
        said: the message with its options marked, for :mod:`evalengine.schemas.wording`; ``str``
            of the error writes them as Python does.
    """

    def __init__(self, said: str = "") -> None:
        self.said = without_secrets(said)
        super().__init__(in_python(self.said))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.said, self.__dict__)


def _again(kind: type[EvalengineError], said: str, state: dict[str, Any]) -> EvalengineError:
    """An error from its parts, whatever its class is made from: errors cross processes."""
    error = kind.__new__(kind)
    EvalengineError.__init__(error, said)
    error.__dict__.update(state)
    return error


class InputError(EvalengineError):
    """A table breaks its contract: missing column, wrong type, null, NaN, inverted box, ..."""


class TruthsMissingError(InputError):
    """Predictions stand alone in a task whose ground truths are a table of their own."""


class ReadError(InputError):
    """A file is missing, truncated, of an unknown format, or cannot be read."""


class ChangedError(InputError):
    """Files changed while they were read. It may pass."""


class OptionError(EvalengineError):
    """An option, metric, dialect or column name that does not exist or does not fit."""


class ScratchError(EvalengineError):
    """The folder for what does not fit into memory: it cannot be written, or its disk is full."""


class ExecutorError(EvalengineError):
    """Other processes or a cluster cannot do their part: nobody there, or they die over it."""


class ResultError(EvalengineError):
    """A question a scorecard cannot answer: no such metric in it, or more than one such row."""


class WriteError(ResultError):
    """The disk refused a result: it is full, or the folder cannot be written. It may pass."""


class EndpointError(EvalengineError):
    """What stops an endpoint's use: a wrong key, an unknown model, an address nobody is at."""


class JudgeError(EndpointError):
    """The same of a judge."""


PASSING = (WriteError, ScratchError, EndpointError, ExecutorError, ChangedError)
"""What may pass, and is worth trying again with the same command."""


def did_you_mean(word: str, known: Iterable[str], *, n: int = 1) -> str:
    """`` Did you mean 'mAP'?`` for the nearest known words, or an empty string.

    Case is ignored when looking for the nearest. Of a word that several known ones begin with, and
    that is hardly misspelt, up to three of these are named, the shortest first.
    """
    # Imported here: only an error needs it. OSA counts a transposition as one edit ("mpa").
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    names = list(known)
    near = extract(
        word.casefold(),
        [name.casefold() for name in names],
        scorer=OSA.normalized_similarity,
        score_cutoff=0.5,
        limit=None,
    )
    # Of names that differ in case alone (mAP, MAP) the one written more alike.
    near.sort(key=lambda one: (-one[1], OSA.distance(word, names[one[2]])))
    found = [names[index] for _, _, index in near[:n]]
    begun = [name for name in names if name.casefold().startswith(word.casefold())]
    if begun and len(word) > 1 and (not near or near[0][1] < _MISSPELT):
        found = sorted(begun, key=len)[:_BEGUN]
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


_MISSPELT = 0.75
"""Likeness from which a word is another one misspelt, rather than the beginning of several."""
_BEGUN = 3


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """One line for a name that does not exist: what was written, the nearest, and others there are.

    Args:
        kind: what the word was meant to be, e.g. ``"metric"``.
        word: what the user wrote.
        known: every valid name.
    """
    names = sorted(known, key=str.casefold)
    shown = names[:_LISTED] if len(names) > _LISTED + _SPARED else names
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return (
        f"{word!r} is not a known {kind}.{did_you_mean(word, names)}"
        f" Known: {', '.join(shown)}{more}."
    )


_LISTED, _SPARED = 20, 5
"""Names that are listed of many, and how many more are listed rather than counted."""
