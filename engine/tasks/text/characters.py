"""Kinds of characters by code point, as Python's Unicode tables have them."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

import numpy as np

from ...kernels.rouge_words import ALONE
from ...kernels.rouge_words import WORD as TOKEN
from ...kernels.text_words import DECIMAL, SPACE, WORD

Array = np.ndarray[Any, Any]

_ASCII, _EVERY = 128, 0x110000
_ALONE = (
    (0x3040, 0x3100),  # kana
    (0x31F0, 0x3200),
    (0x3400, 0xA000),  # Chinese characters
    (0xF900, 0xFB00),
    (0x20000, 0x32000),
)
"""Ranges of scripts without spaces between words, whose letters are tokens one by one."""


def codes_needed(data: Array) -> int:
    """How long a table has to be for a text's bytes: most are ASCII."""
    return _ASCII if data.size == 0 or int(data.max()) < 0x80 else _EVERY


@cache
def regex_kinds(size: int) -> Array:
    r"""``WORD`` where the regular expression ``\w`` matches, ``DECIMAL`` ``\d``, ``SPACE`` ``\s``.

    Args:
        size: code points in the table.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        if character.isalnum() or code == 95:
            kinds[code] = WORD | DECIMAL if character.isdecimal() else WORD
        elif character.isspace():
            kinds[code] = SPACE
    return kinds


@cache
def token_kinds(size: int) -> Array:
    """What the Unicode tokenizer of ROUGE takes characters for.

    Letters, digits and the marks that belong to letters make tokens; Chinese characters and kana
    are tokens by themselves; everything else parts them.

    Args:
        size: code points in the table.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            kinds[code] = TOKEN
    for begin, end in _ALONE:
        some = kinds[begin:end]
        some[some == TOKEN] = ALONE
    return kinds
