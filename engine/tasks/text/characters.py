"""Kinds of characters by code point, as Python's Unicode tables have them."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from ...kernels.rouge_words import ALONE
from ...kernels.rouge_words import WORD as TOKEN
from ...kernels.text_words import DECIMAL, SPACE, WORD
from ...schemas.arrays import Array

_ASCII, _EVERY = 128, 0x110000
_OTHER_WORDS = (
    (0x200C, 0x200E),  # joiners
    (0x24B6, 0x24EA),  # circled letters
    (0x1F130, 0x1F14A),  # squared letters
    (0x1F150, 0x1F16A),
    (0x1F170, 0x1F18A),
)
"""Ranges of word characters that are neither letters, marks nor numbers by their category."""
_ALONE = (
    (0x3040, 0x3100),  # kana
    (0x31F0, 0x3200),
    (0x3400, 0xA000),  # Chinese characters
    (0xF900, 0xFB00),
    (0x20000, 0x32000),
)
"""Ranges of scripts without spaces between words, whose letters are tokens one by one."""


def codes_needed(data: Array) -> int:
    """Return the length of a code table for a text's bytes: most are ASCII."""
    return _ASCII if data.size == 0 or int(data.max()) < 0x80 else _EVERY


@cache
def regex_kinds(size: int) -> Array:
    r"""Classify code points: ``WORD`` as ``\w``, ``DECIMAL`` as ``\d``, ``SPACE`` as ``\s``.

    These are the classes of the engine ``regex``, used by NLTK 3.10: marks, letter numbers, circled
    letters and joiners belong to words, superscripts and fractions do not; the four separators of
    ASCII (0x1C to 0x1F) are not white space.

    Args:
        size: code points in the table.

    Returns:
        uint8 [size].
    """
    kinds = np.zeros(size, np.uint8)
    for code in range(size):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Nd":
            kinds[code] = WORD | DECIMAL
        elif category[0] in "LM" or category in ("Nl", "Pc"):
            kinds[code] = WORD
        elif character.isspace() and not 0x1C <= code <= 0x1F:
            kinds[code] = SPACE
    for begin, end in _OTHER_WORDS:
        kinds[begin:end] = WORD
    return kinds


@cache
def token_kinds(size: int) -> Array:
    """Classify code points for the Unicode tokenizer of ROUGE.

    Letters, digits and combining marks form tokens; Chinese characters and kana are single tokens;
    everything else is a separator.

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
