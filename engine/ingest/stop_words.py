"""Stop words of token overlap, from options."""

from __future__ import annotations

from pathlib import Path

from evalengine.schemas.errors import OptionError
from evalengine.schemas.wording import option


def read_stop_words(given: tuple[str, ...] | str | None) -> tuple[str, ...] | None:
    """Return the stop words of the option, lower-case, distinct.

    Args:
        given: words, or the path of a UTF-8 file with one per line; or None.

    Raises:
        OptionError: no such file, a file that is not text, or white space within a word.
    """
    if given is None:
        return None
    words = given if not isinstance(given, str) else _lines(given)
    found = dict.fromkeys(word.strip().lower() for word in words)
    found.pop("", None)
    wide = [word for word in found if len(word.split()) > 1]
    if wide:
        raise OptionError(
            f"stop_words: {len(wide):,} of {len(found):,} contain white space, first "
            f"{wide[0]!r}, but tokens do not: write one word per line, or a list of single words.",
            code="option_value",
            option="stop_words",
            count=len(wide),
        )
    return tuple(found)


def _lines(path: str) -> list[str]:
    file = Path(path).expanduser()
    try:
        return file.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise OptionError(
            f"{option('stop_words', path)}: the file is not UTF-8 text; write one word a line.",
            code="file_unreadable",
            option="stop_words",
        ) from None
    except OSError as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise OptionError(
            f"{option('stop_words', path)}: {why}. Give the path of a file with one word a line,"
            " or several words: a list in Python, between commas in a shell.",
            code="file_missing",
            option="stop_words",
        ) from None
