"""Texts split into characters, words and tokens, as hashes.

Everywhere, ``data`` is uint8, the UTF-8 bytes of all texts, and ``start`` int64 [t + 1] the offsets
of the texts. Results named *tokens* are the first and second hash of each token, uint64, and the
offsets of the tokens of each text, int64 [t + 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import I64, U8, U64, Array, frozen, inner, kernel

# Hashes of tokens, eight bytes at a time, and codes of tokens within one datum. Two tokens are
# equal if both 64-bit hashes are: a million different ones collide with a chance below 1e-26.

SEED, OTHER_SEED = np.uint64(0xCBF29CE484222325), np.uint64(0x9AE16A3B2F90404F)
_MIX, _OTHER_MIX = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0x9E3779B97F4A7C15)
_SHIFT, _OTHER_SHIFT = np.uint64(32), np.uint64(29)
_EIGHT = np.uint64(8)


@inner
def add_bytes(a: Any, b: Any, eight: Any) -> tuple[Any, Any]:
    """Update both hashes by eight more bytes, the first in the lowest bits."""
    a = (a ^ eight) * _MIX
    b = (b + eight) * _OTHER_MIX
    return a ^ (a >> _SHIFT), b ^ (b >> _OTHER_SHIFT)


@inner
def put_token(data: Array, begin: int, end: int, n: int, first: Array, second: Array) -> None:
    """Write the hashes of the bytes [begin, end) as token ``n``."""
    a, b = SEED, OTHER_SEED
    i = begin
    while i < end:
        eight, shift = np.uint64(0), np.uint64(0)
        stop = min(i + 8, end)
        while i < stop:
            eight |= np.uint64(data[i]) << shift
            shift += _EIGHT
            i += 1
        a, b = add_bytes(a, b, eight)
    first[n], second[n] = add_bytes(a, b, np.uint64(end - begin))


@kernel
def local_codes(
    first: int,
    last: int,
    group_start: I64,
    candidates: tuple[I64, U64, U64],
    references: tuple[I64, U64, U64],
    out: tuple[Array, Array],
) -> int:
    """Code the tokens of each datum: equal tokens of one datum have one code, from 0 on.

    Args:
        first: first datum.
        last: one past the last.
        group_start: int64 [n + 1], offsets of the references of each datum.
        candidates: offsets of the tokens of each datum's candidate, int64 [n + 1]; both hashes of
            each token, uint64.
        references: offsets of the tokens of each reference, int64 [m + 1]; both hashes.
        out: int32, filled: codes of the tokens of candidates, of references.

    Returns:
        the most codes of any datum.
    """
    c_code, r_code = out
    c_start, c_first, c_second = candidates
    r_start, r_first, r_second = references
    longest = 0
    for d in range(first, last):
        g0, g1 = group_start[d], group_start[d + 1]
        longest = max(longest, c_start[d + 1] - c_start[d] + r_start[g1] - r_start[g0])
    room = 16
    while room < 2 * longest:
        room *= 2
    slot = np.empty(room, np.int32)
    seen = np.empty((longest, 2), np.uint64)
    most = 0
    for d in range(first, last):
        g0, g1 = group_start[d], group_start[d + 1]
        size = 16
        while size < 2 * (c_start[d + 1] - c_start[d] + r_start[g1] - r_start[g0]):
            size *= 2
        for s in range(size):
            slot[s] = -1
        mask = np.uint64(size - 1)
        n_codes = 0
        for side in range(2):
            if side == 0:
                i0, i1 = r_start[g0], r_start[g1]
                one, two, code = r_first, r_second, r_code
            else:
                i0, i1 = c_start[d], c_start[d + 1]
                one, two, code = c_first, c_second, c_code
            for i in range(i0, i1):
                a, b = one[i], two[i]
                at = a & mask
                entry = slot[at]
                while entry >= 0 and not (seen[entry, 0] == a and seen[entry, 1] == b):
                    at = (at + np.uint64(1)) & mask
                    entry = slot[at]
                if entry < 0:
                    entry = np.int32(n_codes)
                    slot[at] = entry
                    seen[n_codes, 0] = a
                    seen[n_codes, 1] = b
                    n_codes += 1
                code[i] = entry
        most = max(most, n_codes)
    return most


# Code points of UTF-8 texts, with white space or without, and the words of chrF++.

_PUNCTUATION = np.zeros(256, np.bool_)
_PUNCTUATION[np.r_[33:48, 58:65, 91:97, 123:127]] = True
_PUNCTUATION.flags.writeable = False


@kernel
def _decode(data: U8, start: I64, spaces: bool, code: Array, text_end: Array) -> int:
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            byte = data[i]
            if not spaces and (byte <= 32 or byte >= 0x80):
                width = space_at(data, i, end)
                if width > 0:
                    i += width
                    continue
            if byte < 0x80:
                code[n] = byte
                i += 1
            else:
                char, width = code_at(data, i)
                code[n] = char
                i += width
            n += 1
        text_end[t + 1] = n
    return n


def code_points(data: Array, start: Array, *, spaces: bool) -> tuple[Array, Array]:
    """Code points of texts, as offsets by text, int64 [t + 1], and int32.

    Args:
        spaces: whether to keep white space (as in Python's ``str.split``).
    """
    code = np.empty(int(start[-1] - start[0]), np.int32)
    text_end = np.zeros(start.size, np.int64)
    n = _decode(data, start, spaces, code, text_end)
    return text_end, code[:n]


@kernel
def _bare_words(data: U8, start: I64, first: Array, second: Array, text_end: Array) -> int:
    """See :func:`words_and_stops`."""
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            width = space_at(data, i, end) if data[i] <= 32 or data[i] >= 0x80 else 0
            if width > 0:
                i += width
                continue
            begin = i
            while i < end and ((32 < data[i] < 0x80) or space_at(data, i, end) == 0):
                i += 1
            cut = i
            if i - begin > code_at(data, begin)[1]:  # more than one character
                if _PUNCTUATION[data[i - 1]]:
                    cut = i - 1
                elif _PUNCTUATION[data[begin]]:
                    cut = begin + 1
            put_token(data, begin, cut, n, first, second)
            n += 1
            if cut < i:
                put_token(data, cut, i, n, first, second)
                n += 1
        text_end[t + 1] = n
    return n


def words_and_stops(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Words between white space; one ASCII punctuation mark at the end, else start, is a token.

    The rule of chrF++ (Popović, "chrF++: words helping character n-grams", 2017). Returns tokens.
    """
    return _written(_bare_words, data, start)


# Tokens of translation metrics: at whitespace, by character, by NLTK's rules. A table of kinds by
# code point replaces regular expressions.

WORD, DECIMAL, SPACE = 1, 2, 4
"""Bits of a character's kind: part of a word, a decimal digit, whitespace."""
_DOLLAR, _STOP = 36, 46


@inner
def kind_at(kinds: Array, data: Array, i: int, end: int) -> tuple[Any, Any]:
    """Kind and bytes of the character at ``i``; zeros at the end."""
    if i >= end:
        return np.uint8(0), 0
    code, width = code_at(data, i)
    return kinds[code], width


@kernel
def _by_rules(data: U8, start: I64, kinds: U8, first: Array, second: Array, text_end: Array) -> int:
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            begin = i
            kind, width = kind_at(kinds, data, i, end)
            if kind & WORD:
                while kind & WORD:
                    i += width
                    kind, width = kind_at(kinds, data, i, end)
            elif data[i] == _STOP or kind & SPACE:
                i += width
                continue
            elif data[i] == _DOLLAR and kind_at(kinds, data, i + 1, end)[0] & DECIMAL:
                kind = np.uint8(DECIMAL)
                while kind & DECIMAL:
                    i += width
                    kind, width = kind_at(kinds, data, i, end)
            else:
                while width > 0 and data[i] != _STOP and not kind & SPACE:
                    i += width
                    kind, width = kind_at(kinds, data, i, end)
            put_token(data, begin, i, n, first, second)
            n += 1
        text_end[t + 1] = n
    return n


def _written(write: Any, data: Array, start: Array, *rule: Any) -> tuple[Array, Array, Array]:
    """Tokens that a kernel writes; pages that are never written cost no memory."""
    room = int(start[-1] - start[0]) + 1
    first, second = np.empty(room, np.uint64), np.empty(room, np.uint64)
    text_end = np.zeros(start.size, np.int64)
    n = write(data, start, *rule, first, second, text_end)
    return first[:n], second[:n], text_end


@kernel
def words_at_spaces(data: U8, start: I64) -> tuple[Array, Array, Array]:
    """Tokens between whitespace, as in Python's ``str.split``."""
    room = start[-1] - start[0] + 1
    first, second = np.empty(room, np.uint64), np.empty(room, np.uint64)
    text_end = np.zeros(start.size, np.int64)
    n = 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        while i < end:
            byte = data[i]
            width = 0
            if byte <= 32 or byte >= 0x80:
                width = space_at(data, i, end)
            if width > 0:
                i += width
                continue
            begin = i
            while i < end and ((32 < data[i] < 0x80) or space_at(data, i, end) == 0):
                i += 1
            put_token(data, begin, i, n, first, second)
            n += 1
        text_end[t + 1] = n
    return first[:n], second[:n], text_end


def words_by_rules(data: Array, start: Array, kinds: Array) -> tuple[Array, Array, Array]:
    r"""Tokens of the regular expression ``\w+|\$[\d]+|[^\s\.]+``, which Valor gives NLTK.

    Full stops separate tokens; other punctuation includes the text that follows it up to a space or
    stop.

    Args:
        kinds: uint8 by code point, bits ``WORD``, ``DECIMAL`` and ``SPACE``, at least up to the
            highest one in ``data``.
    """
    return _written(_by_rules, data, start, kinds)


# Tokens of mteval-v13a, without a regular expression. Four rewritings, each from left to right and
# without overlap, separate most ASCII marks; a full stop or comma unless a digit precedes it, then
# unless one follows it; a hyphen after a digit. Tokens are split at white space.

_SPLIT = np.zeros(256, np.bool_)
_SPLIT[np.r_[32:39, 40:44, 47, 58:65, 91:97, 123:127]] = True  # all but ' , - .
_SPLIT.flags.writeable = False
_SPACE, _COMMA, _HYPHEN, _MT_STOP = np.uint8(32), np.uint8(44), np.uint8(45), np.uint8(46)


@inner
def _digit(byte: int) -> bool:
    return 48 <= byte <= 57


@inner
def _pointed(byte: int) -> bool:
    return byte in (_MT_STOP, _COMMA)


@inner
def _behind(text: Array, n: int, out: Array) -> int:
    """Separate a stop or comma that no digit precedes."""
    i, m = 0, 0
    while i < n:
        out[m] = text[i]
        m += 1
        if i + 1 < n and not _digit(text[i]) and _pointed(text[i + 1]):
            out[m], out[m + 1], out[m + 2] = _SPACE, text[i + 1], _SPACE
            m += 3
            i += 1
        i += 1
    return m


@inner
def _before(text: Array, n: int, out: Array) -> int:
    """Separate a stop or comma that no digit follows."""
    i, m = 0, 0
    while i < n:
        if i + 1 < n and _pointed(text[i]) and not _digit(text[i + 1]):
            out[m], out[m + 1], out[m + 2], out[m + 3] = _SPACE, text[i], _SPACE, text[i + 1]
            m += 4
            i += 2
            continue
        out[m] = text[i]
        m += 1
        i += 1
    return m


@inner
def _dashed(text: Array, n: int, out: Array) -> int:
    """Separate a hyphen after a digit."""
    i, m = 0, 0
    while i < n:
        out[m] = text[i]
        m += 1
        if i + 1 < n and _digit(text[i]) and text[i + 1] == _HYPHEN:
            out[m], out[m + 1], out[m + 2] = _SPACE, _HYPHEN, _SPACE
            m += 3
            i += 1
        i += 1
    return m


@kernel
def _tokens(
    data: U8, start: I64, padded: bool, first: Array, second: Array, text_end: Array
) -> int:
    longest = 0
    for t in range(start.size - 1):
        longest = max(longest, start[t + 1] - start[t])
    a, b = np.empty(6 * longest + 16, np.uint8), np.empty(12 * longest + 16, np.uint8)
    c = np.empty(24 * longest + 16, np.uint8)
    n = 0
    for t in range(start.size - 1):
        size = 0
        if padded:
            a[0] = _SPACE
            size = 1
        for i in range(start[t], start[t + 1]):
            byte = data[i]
            if _SPLIT[byte]:
                a[size], a[size + 1], a[size + 2] = _SPACE, byte, _SPACE
                size += 3
            else:
                a[size] = byte
                size += 1
        if padded:
            a[size] = _SPACE
            size += 1
        size = _behind(a, size, b)
        size = _before(b, size, c)
        if 4 * size > b.size:
            b = np.empty(8 * size, np.uint8)
        size = _dashed(c, size, b)
        i = 0
        while i < size:
            width = space_at(b, i, size) if b[i] <= 32 or b[i] >= 0x80 else 0
            if width > 0:
                i += width
                continue
            begin = i
            while i < size and ((32 < b[i] < 0x80) or space_at(b, i, size) == 0):
                i += 1
            put_token(b, begin, i, n, first, second)
            n += 1
        text_end[t + 1] = n
    return n


def mteval_words(data: Array, start: Array, *, padded: bool) -> tuple[Array, Array, Array]:
    """Tokens of texts by the rules of mteval-v13a for Western languages.

    Callers handle entities, ``<skipped>`` and hyphens before line breaks.

    Args:
        padded: whether a space surrounds each text.
    """
    return _written(_tokens, data, start, padded)


# Tokens of ROUGE: runs of letters and digits in lower case, and their lines, either of ASCII only
# (Google's rouge-score 0.1.2: every other letter separates tokens) or of all scripts.

_LOWER = np.zeros(256, np.uint8)
_LOWER[np.r_[48:58, 97:123]] = np.r_[48:58, 97:123]
_LOWER[65:91] = np.arange(97, 123)
_LOWER.flags.writeable = False
_BYTE, _WORD_BITS = np.uint64(8), np.uint64(64)

GAP, TOKEN, SINGLE = 0, 1, 2
"""Kinds of characters: between tokens, part of one, a single-character token."""


@inner
def lower_at(data: Array, i: int, end: int) -> tuple[Any, Any]:
    """ASCII letter or digit of the character at ``i`` in lower case, 0 if none; its bytes.

    Beyond ASCII these are the Kelvin sign, which becomes k, and the dotted capital I, which becomes
    i and a mark that separates tokens; for the latter the first byte is returned.
    """
    byte = data[i]
    if byte < 0x80:
        return _LOWER[byte], 1
    if byte == 0xE2 and i + 2 < end and data[i + 1] == 0x84 and data[i + 2] == 0xAA:
        return np.uint8(107), 3
    if byte == 0xC4 and i + 1 < end and data[i + 1] == 0xB0:
        return np.uint8(105), 1  # its second byte parts tokens
    return np.uint8(0), 1


@kernel
def _ascii_words(data: Array, start: Array, out: Any) -> int:
    """Write tokens and the ends of non-empty lines and of texts; return the number of tokens."""
    first, second, place, stop, line_end, text_end, lines = out
    n, line = 0, 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        before = n
        while i < end:
            byte = data[i]
            lower, width = _LOWER[byte], 1
            if lower == 0:
                if byte >= 0x80:
                    lower, width = lower_at(data, i, end)
                elif byte == 10 and n > before:
                    line_end[line] = n
                    line += 1
                    before = n
                if lower == 0:
                    i += 1
                    continue
            place[n] = i
            a, b = SEED, OTHER_SEED
            eight, shift, length = np.uint64(0), np.uint64(0), np.uint64(0)
            while lower > 0:
                if shift == _WORD_BITS:
                    a, b = add_bytes(a, b, eight)
                    eight, shift = np.uint64(0), np.uint64(0)
                eight |= np.uint64(lower) << shift
                shift += _BYTE
                length += np.uint64(1)
                i += width
                if i >= end:
                    break
                lower = _LOWER[data[i]]
                width = 1
                if data[i] >= 0x80:
                    lower, width = lower_at(data, i, end)
            a, b = add_bytes(a, b, eight)
            first[n], second[n] = add_bytes(a, b, length)
            stop[n] = i
            n += 1
        if n > before:
            line_end[line] = n
            line += 1
        text_end[t + 1] = n
        lines[t + 1] = line
    return n


@kernel
def _letter_words(data: Array, start: Array, kinds: U8, out: Any) -> int:
    """The same for the kinds of all characters."""
    first, second, place, stop, line_end, text_end, lines = out
    n, line = 0, 0
    for t in range(start.size - 1):
        i, end = start[t], start[t + 1]
        before = n
        while i < end:
            code, width = code_at(data, i)
            kind = kinds[code]
            begin = i
            i += width
            if kind == GAP:
                if code == 10 and n > before:
                    line_end[line] = n
                    line += 1
                    before = n
                continue
            while kind == TOKEN and i < end:
                code, width = code_at(data, i)
                if kinds[code] != TOKEN:
                    break
                i += width
            put_token(data, begin, i, n, first, second)
            place[n] = begin
            stop[n] = i
            n += 1
        if n > before:
            line_end[line] = n
            line += 1
        text_end[t + 1] = n
        lines[t + 1] = line
    return n


def rouge_words(data: Array, start: Array, kinds: Array | None = None) -> tuple[Array, ...]:
    """Tokens of texts and of their lines.

    Args:
        data: in lower case with ``kinds``.
        kinds: uint8 by code point, ``GAP``, ``TOKEN`` or ``SINGLE``; None for rouge-score's
            rule: lower case, runs of ``[a-z0-9]``.

    Returns:
        first and second hash of each token, uint64; its first byte and one past its last, int64;
        offsets of the tokens of each text, int64 [t + 1]; offsets of the tokens of each line that
        has any, int64; offsets of these lines of each text, int64 [t + 1].
    """
    data, start = frozen(data, np.uint8), frozen(start, np.int64)
    used = int(start[-1] - start[0])
    # Tokens of one character without anything between them only come of kinds.
    room = (used // 2 + start.size if kinds is None else used) + 1
    first, second = np.empty(room, np.uint64), np.empty(room, np.uint64)
    place, stop = np.empty(room, np.int64), np.empty(room, np.int64)
    breaks = int(np.count_nonzero(data[start[0] : start[-1]] == 10))
    line_end = np.zeros(breaks + start.size + 1, np.int64)
    text_end, lines = np.zeros(start.size, np.int64), np.zeros(start.size, np.int64)
    out = first, second, place, stop, line_end[1:], text_end, lines
    n = _ascii_words(data, start, out) if kinds is None else _letter_words(data, start, kinds, out)
    tokens = first[:n], second[:n], place[:n], stop[:n]
    return *tokens, text_end, line_end[: lines[-1] + 1], lines


# Words of UTF-8 texts as pairs of 64-bit hashes: two ways to cut a text into sentences of words.
# :func:`evalengine.kernels.datums.hash_codes` makes dense codes of them.

_SEED, _OTHER_SEED = np.uint64(0xCBF29CE484222325), np.uint64(0x9AE16A3B2F90404F)
_STEP, _OTHER_STEP = np.uint64(0x100000001B3), np.uint64(0xC6A4A7935BD1E995)

_SEPARATOR, _WORD, _SINGLE = 0, 1, 2
_ASCII = np.zeros(256, np.uint8)
_ASCII[np.r_[48:58, 65:91, 95, 97:123]] = _WORD
_ASCII.flags.writeable = False


@inner
def _put(data: Array, begin: int, end: int, n: int, first: Array, second: Array) -> None:
    """Write the two hashes of the bytes [begin, end) as word ``n``."""
    a, b = _SEED, _OTHER_SEED
    for i in range(begin, end):
        byte = np.uint64(data[i])
        a = (a ^ byte) * _STEP
        b = (b + byte + np.uint64(1)) * _OTHER_STEP
        b ^= b >> _SHIFT
    a = (a ^ (a >> _SHIFT)) * _MIX
    b = (b ^ (b >> _SHIFT)) * _OTHER_MIX
    first[n] = a ^ (a >> _SHIFT)
    second[n] = b ^ (b >> _SHIFT)


@inner
def space_at(data: Array, i: int, end: int) -> Any:
    """Bytes of the whitespace character at ``i``, 0 if there is none: those of Python's split."""
    byte = data[i]
    if byte < 0x80:
        return 1 if 9 <= byte <= 13 or 28 <= byte <= 32 else 0
    if byte == 0xC2 and i + 1 < end:
        return 2 if data[i + 1] == 0x85 or data[i + 1] == 0xA0 else 0
    if i + 2 < end:
        second, third = data[i + 1], data[i + 2]
        if byte == 0xE2:
            if second == 0x80 and (
                third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
            ):
                return 3
            return 3 if second == 0x81 and third == 0x9F else 0
        if byte == 0xE1:
            return 3 if second == 0x9A and third == 0x80 else 0
        if byte == 0xE3:
            return 3 if second == 0x80 and third == 0x80 else 0
    return 0


@inner
def code_at(data: Array, i: int) -> tuple[Any, Any]:
    """Code point at ``i`` and its bytes, of valid UTF-8."""
    byte = np.int64(data[i])
    if byte < 0x80:
        return byte, 1
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | np.int64(data[i + 1]) & 0x3F, 2
    low = (np.int64(data[i + 1]) & 0x3F) << 6 | np.int64(data[i + 2]) & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | low, 3
    return (byte & 0x07) << 18 | low << 6 | np.int64(data[i + 3]) & 0x3F, 4


@inner
def _kind(code: int) -> Any:
    """Class of a character: separator, part of a word, or a word of one character."""
    if code < 0x80:
        return np.int64(_ASCII[code])
    if code < 0xC0:
        return _WORD if code == 0xAA or code == 0xB5 or code == 0xBA else _SEPARATOR
    if code == 0xD7 or code == 0xF7:
        return _SEPARATOR
    if code < 0x1680:
        return _WORD
    if code == 0x1680 or 0x2000 <= code < 0x2C00 or 0x2E00 <= code < 0x2E80:
        return _SEPARATOR
    if 0x3000 <= code < 0x3005 or 0x3008 <= code < 0x3021 or code == 0x3030:
        return _SEPARATOR
    if code == 0x30FB or 0xFE10 <= code < 0xFE70 or code == 0xFEFF or 0xE000 <= code < 0xF900:
        return _SEPARATOR
    if 0xFF00 <= code < 0xFF66:  # full-width forms of ASCII
        inside = 0xFF10 <= code < 0xFF1A or 0xFF21 <= code < 0xFF3B or 0xFF41 <= code < 0xFF5B
        return _WORD if inside else _SEPARATOR
    if 0x1F000 <= code < 0x1FC00 or 0xFFF0 <= code < 0x10000:
        return _SEPARATOR
    if 0x3040 <= code < 0x3100 or 0x3400 <= code < 0xA000 or 0xF900 <= code < 0xFB00:
        return _SINGLE
    return _SINGLE if 0x20000 <= code < 0x40000 else _WORD


@kernel
def _split_at_stops(data: U8, start: I64, first: Array, second: Array, bounds: Array) -> Any:
    """Sentences between full stops, words between whitespace; one empty word for a blank."""
    sentence_start = np.zeros(start.size, np.int64)
    n, sentences = 0, 0
    for t in range(start.size - 1):
        end = start[t + 1]
        i = start[t]
        while i < end:
            if data[i] == 46:
                i += 1
                continue
            before = n
            while i < end and data[i] != 46:
                width = space_at(data, i, end)
                if width > 0:
                    i += width
                    continue
                begin = i
                while i < end and data[i] != 46:
                    if (data[i] <= 32 or data[i] >= 0x80) and space_at(data, i, end) > 0:
                        break
                    i += 1
                _put(data, begin, i, n, first, second)
                n += 1
            if n == before:
                _put(data, i, i, n, first, second)
                n += 1
            sentences += 1
            bounds[sentences] = n
        sentence_start[t + 1] = sentences
    return n, sentences, sentence_start


@kernel
def _split_words(data: U8, start: I64, first: Array, second: Array, bounds: Array) -> int:
    """Words of given sentences."""
    n = 0
    for s in range(start.size - 1):
        i, end = start[s], start[s + 1]
        while i < end:
            code, width = np.int64(data[i]), 1
            if code < 0x80:
                kind = np.int64(_ASCII[code])
            else:
                code, width = code_at(data, i)
                kind = _kind(code)
            begin = i
            i += width
            if kind == _SEPARATOR:
                continue
            while kind == _WORD and i < end:
                if _ASCII[data[i]] == _WORD:
                    i += 1
                    continue
                digit = 48 <= data[i - 1] <= 57
                code, width = code_at(data, i)
                if _kind(code) == _WORD:
                    i += width
                    continue
                # an apostrophe inside a word; a stop or comma between digits
                if i + width >= end:
                    break
                after = _kind(code_at(data, i + width)[0])
                quote = code in (39, 0x2019) and after == _WORD
                point = code in (44, 46) and digit and 48 <= data[i + width] <= 57
                if not quote and not point:
                    break
                i += width
            _put(data, begin, i, n, first, second)
            n += 1
        bounds[s + 1] = n
    return n


def _sentence_room(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Memory for the words of texts: at most half their bytes plus one per text.

    Pages that are never written cost no memory.
    """
    room = data.size // 2 + start.size + 1
    return np.empty(room, np.uint64), np.empty(room, np.uint64), np.zeros(room, np.int64)


def words_between_stops(data: Array, start: Array) -> tuple[Array, Array, Array, Array]:
    """Words as in the package rouge 1.0.1: sentences at every ".", words at whitespace.

    Case and all other punctuation stay. Two adjacent stops make no sentence; only whitespace
    between stops makes a sentence of one empty word.

    Returns:
        first and second hash of every word, uint64; offsets of the words of each sentence, int64
        [sentences + 1]; offsets of the sentences of each text, int64 [t + 1].
    """
    first, second, bounds = _sentence_room(data, start)
    n, sentences, sentence_start = _split_at_stops(data, start, first, second, bounds)
    return first[:n], second[:n], bounds[: sentences + 1], sentence_start


def words_of_sentences(data: Array, start: Array) -> tuple[Array, Array, Array]:
    """Words without punctuation: runs of letters, digits and ``_``, as tokens.

    An apostrophe between letters and a stop or comma between digits belong to the word ("don't",
    "3.14"). Beyond ASCII all characters are letters except the punctuation, symbols and emoji of
    Unicode's blocks for these; Chinese characters and kana are words of one character each. To
    ignore case, ``data`` must be in lower case.
    """
    first, second, bounds = _sentence_room(data, start)
    n = _split_words(data, start, first, second, bounds)
    return first[:n], second[:n], bounds[: start.size]
