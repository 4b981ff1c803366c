"""JSON arrays of flat objects to columns, with correctly rounded numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .bits import (
    ABOVE_NINE,
    HIGH_BITS,
    POWERS_OF_TEN,
    ZERO_DIGITS,
    decimal,
    high_word,
    leading_zeros,
    lowest,
    word,
)
from .jit import I64, U8, U64, Array, Bools, frozen, inner, instruction, kernel

MISSING, WHOLE, FLOAT, NUMBERS = range(4)
"""Kinds of a value; others are the first byte of its text: ``"``, ``[``, ``{``, ``t``, ``f``, n."""
ENDED, MORE, ODD = range(3)
"""Reasons why :func:`scan_rows` returns: end of the array, a full piece, or unexpected text."""

# Decimal to binary: D. Lemire, Number parsing at a gigabyte per second, 2021 (Eisel-Lemire). A
# product of 64 x 128 bits decides for up to 19 digits; N. Mushtak and D. Lemire, 2023, proved that
# no further case is open.

_LEAST, _MOST = -342, 308
"""Exponents of ten outside of which every number of 19 digits is 0 or infinite."""
_EXACT = 22  # largest power of ten that float64 has
_TENS = 2 * (_MOST - _LEAST + 1)
_SIGNIFICANT = 19
_DEPTH = 60  # of nested values, as bits of one word
_ZERO, _ONE, _TEN = np.uint64(0), np.uint64(1), np.uint64(10)
_INFINITE = np.uint64(0x7FF << 52)
_HIDDEN = np.uint64(1 << 52)
_SIGN = np.uint64(1 << 63)
_THREE, _BYTE, _WORD = np.uint64(3), np.uint64(8), np.uint64(64)
_WHOLE_BYTES = np.uint64(0x78)  # mask: a position of a bit, down to the first bit of its byte


@cache
def powers_of_five() -> Array:
    """Leading 128 bits of 5^q, as pairs of uint64, high word first, for all exponents; then bits of
    the powers of ten that float64 has.
    """
    table = []
    for q in range(_LEAST, _MOST + 1):
        power = 5 ** abs(q)
        if q < 0:
            bits = (power - 1).bit_length()
            power = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // power + 1
        size = power.bit_length() - 128
        power = power >> size if size > 0 else power << -size
        table += [power >> 64, power & (1 << 64) - 1]
    tens = np.array([10.0**q for q in range(_EXACT + 1)])
    return frozen(table + tens.view(np.uint64).tolist(), np.uint64)


def _divided(builder: Any, a: Any, b: Any) -> Any:
    from numba.core.cgutils import ir

    double = ir.DoubleType()
    quotient = builder.fdiv(builder.uitofp(a, double), builder.bitcast(b, double))
    return builder.bitcast(quotient, a.type)


@instruction(_divided)
def quotient(a: Any, b: Any) -> Any:
    """Bits of a uint64 divided by a float64, which is given as bits."""
    return (np.float64(a) / np.uint64(b).view(np.float64)).view(np.uint64)


@inner
def _rounded(digits: Any, exponent: Any, powers: Any) -> Any:
    """Bits of the float64 nearest to ``digits * 10^exponent``, ties to even."""
    if digits == _ZERO or exponent < _LEAST:
        return _ZERO
    if exponent > _MOST:
        return _INFINITE
    zeros = leading_zeros(digits)
    digits = digits << zeros
    at = 2 * (exponent - _LEAST)
    high, low = high_word(digits, powers[at]), digits * powers[at]
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more = high_word(digits, powers[at + 1])
        low += more
        if low < more:
            high += _ONE
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    mantissa = high >> shift
    binary = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if binary <= 0:
        if binary <= -63:
            return _ZERO
        mantissa = mantissa >> np.uint64(1 - binary)
        return (mantissa + (mantissa & _ONE)) >> _ONE
    if (
        low <= _ONE
        and exponent >= -4
        and exponent <= 23
        and mantissa & np.uint64(3) == _ONE
        and mantissa << shift == high
    ):
        mantissa -= _ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >= _HIDDEN + _HIDDEN:
        mantissa = _HIDDEN
        binary += 1
    if binary >= 0x7FF:
        return _INFINITE
    return (mantissa & ~_HIDDEN) | np.uint64(binary) << np.uint64(52)


@inner
def _digits(text: Any, at: Any, value: Any) -> Any:
    """Append digits to a number; return the position after them and the number, modulo 2^64."""
    c = text[at]
    while c >= 48 and c <= 57:
        value = value * _TEN + np.uint64(c - 48)
        at += 1
        c = text[at]
    return at, value


@inner
def _many_digits(text: Any, at: Any, value: Any) -> Any:
    """Do the same as :func:`_digits`, up to eight digits at a time: for fractions."""
    while at + 8 <= text.size:
        eight = word(text, np.uint64(at)) ^ ZERO_DIGITS
        n = np.int64(lowest((eight | (eight + ABOVE_NINE)) & HIGH_BITS) >> np.uint64(3))
        if n == 0:
            return at, value
        value = value * POWERS_OF_TEN[n] + decimal(eight << np.uint64(64 - 8 * n))
        at += n
        if n < 8:
            return at, value
    return _digits(text, at, value)


@inner
def _with_exponent(text: Any, at: Any, exponent: Any) -> Any:
    """Read what follows an e: position, -1 if it is no exponent; the sum of both exponents."""
    below = text[at + 1] == 45
    start = at + 1 + (below or text[at + 1] == 43)
    at, power = _digits(text, start, _ZERO)
    exponent += -np.int64(power) if below else np.int64(power)
    return at if at > start and at - start < 9 else -1, exponent


@inner
def _leading_digits(text: Any, first: Any, last: Any) -> Any:
    """The digits of a number that count, and how many more there are."""
    digits, count, more = _ZERO, 0, 0
    for i in range(first, last):
        if text[i] != 46:
            if count < _SIGNIFICANT:
                digits = digits * _TEN + np.uint64(text[i] - 48)
                count += digits != _ZERO
            else:
                more += 1
    return digits, more


@inner
def _number(text: Any, at: Any, real: Any, powers: Any) -> Any:
    """Read a number.

    Args:
        real: whether integers become floats.

    Returns:
        position after it, or -1 if it is no number or too large; its bits; its kind; whether the
        float is not certain.
    """
    negative = text[at] == 45
    first = at + negative
    at, digits = _digits(text, first, _ZERO)
    count = at - first
    exponent: Any = 0
    good = count > 0 and (count == 1 or text[first] != 48)
    if text[at] == 46:
        point = at + 1
        at, digits = _many_digits(text, point, digits)
        exponent = point - at
        count -= exponent
        real = True
        good &= exponent < 0
    last, cut, unsure = at, False, False
    if text[at] | 32 == 101:
        at, exponent = _with_exponent(text, at, exponent)
        real = True
    if count > _SIGNIFICANT:
        digits, more = _leading_digits(text, first, last)
        exponent += more
        cut = more > 0
    if real:
        if exponent <= 0 and exponent >= -_EXACT and digits <= _HIDDEN + _HIDDEN:  # both are exact
            bits = quotient(digits, powers[_TENS - exponent])
        else:
            bits = _rounded(digits, exponent, powers)
        if cut:
            unsure = bits != _rounded(digits + _ONE, exponent, powers)
        good &= bits != _INFINITE
        if negative and (digits != _ZERO or exponent < 0 or last < at):
            bits |= _SIGN
    else:
        bits = ~digits + _ONE if negative else digits
        good &= not cut and digits < _SIGN
    return at if good else -1, bits, FLOAT if real else WHOLE, unsure


@inner
def _short_number(text: Any, at: Any, powers: Any) -> Any:
    """Read a number without an exponent, whose digits and point fit in eight bytes, as a float.

    Returns:
        position after it, or -1 if :func:`_number` has to read it; its bits.
    """
    negative = text[at] == 45
    first = at + negative
    if first + 8 >= text.size:
        return -1, _ZERO
    digits = word(text, np.uint64(first)) ^ ZERO_DIGITS
    # A bit per byte that is no digit. A carry can make one, but only after the first.
    others = (digits | (digits + ABOVE_NINE)) & HIGH_BITS
    whole = lowest(others) & _WHOLE_BYTES  # bits before the point
    if whole == _ZERO or others == _ZERO or (text[first] == 48 and whole > _BYTE):
        return -1, _ZERO
    end, places = whole, np.int64(0)
    if text[first + np.int64(whole >> _THREE)] == 46:  # a point makes no carry: 0x1E + 0x76
        end = lowest(others & (others - _ONE)) & _WHOLE_BYTES  # the next one
        places = np.int64((end - whole) >> _THREE) - 1
        if places == 0:
            return -1, _ZERO
        below = (_ONE << whole) - _ONE
        digits = (digits & below) | ((digits >> _BYTE) & ~below)
        whole = end - _BYTE
    at = first + np.int64(end >> _THREE)
    value = decimal(digits << (_WORD - whole))
    c = text[at]
    if c | 32 == 101 or (c >= 48 and c <= 57) or (negative and value == _ZERO):
        return -1, _ZERO
    bits = quotient(value, powers[_TENS + places])
    return at, bits | _SIGN if negative else bits


@inner
def _blank(text: Any, at: Any) -> Any:
    """Position of the next byte that is not white space."""
    c = text[at]
    while c == 32 or c == 10 or c == 13 or c == 9:
        at += 1
        c = text[at]
    return at


@inner
def _string(text: Any, at: Any, plain: Any) -> Any:
    """Position after the string that begins at a quote; -1 also if it has surrogates.

    Args:
        plain: whether escapes are refused.
    """
    n = text.size
    at += 1
    while at < n:
        c = text[at]
        if c == 34:
            return at + 1
        if c < 32 or (plain and c == 92):
            return -1
        if c == 92:
            at += 1
            c = text[at]
            if c == 117 and at + 5 < n and (text[at + 1] | 32 != 100 or text[at + 2] < 56):
                for i in range(at + 1, at + 5):
                    c = text[i]
                    if not ((c >= 48 and c <= 57) or (c | 32 >= 97 and c | 32 <= 102)):
                        return -1
                at += 4
            elif c == 117 or not (
                c == 34
                or c == 92
                or c == 47
                or c == 98
                or c == 102
                or c == 110
                or c == 114
                or c == 116
            ):
                return -1
        at += 1
    return -1


@inner
def _match(text: Any, at: Any, words: Any, bounds: Any, k: Any) -> Any:
    """Length of the k-th word if the text continues with it, otherwise 0; eight bytes at a time."""
    begin, n = bounds[k], bounds[k + 1] - bounds[k]
    m = 0
    if at + n + 8 <= text.size:
        while m < n:
            other = word(text, np.uint64(at + m)) ^ word(words, np.uint64(begin + m))
            if n - m < 8:
                other = other << np.uint64(64 - 8 * (n - m))
            if other != _ZERO:
                return 0
            m += 8
        return n
    for m in range(n):
        if text[at + m] != words[begin + m]:
            return 0
    return n


@kernel
def scan_rows(
    text: U8,
    at: int,
    stop: int,
    words: U8,
    bounds: I64,
    raw: Bools,
    powers: U64,
    kind: Array,
    value: Array,
    pool: Array,
    texts: Array,
    used: Array,
    following: Array,
    slow: Array,
    out: Array,
) -> Any:
    """Read objects of an array to columns, from the first one's brace on.

    Args:
        text: whole text, whose last byte is a bracket or brace.
        stop: position after which no further object is begun.
        words: names of the k columns, in quotes, then ``true``, ``false``, ``null``,
            and eight more bytes.
        bounds: [k + 4], their limits.
        raw: [k], whether values remain text; elsewhere arrays may contain only numbers.
        powers: of :func:`powers_of_five`.
        kind: uint8 [k, rows], kinds of values.
        value: uint64 [k, rows]: integers, bits of floats, or the end of a list in ``pool`` or of a
            text in ``texts``.
        pool: uint64 [k, n], bits of the numbers of lists.
        texts: uint8 [k, 8 n], the same memory: strings without quotes, or raw values.
        used: int64 [k], zeros.
        following: int64 [k + 1], the column that came after each one in earlier rows.
        slow: int64 [n, 3], column (of lists, -1 - column), place in it, and position of numbers
            that are left to Python.
        out: int64 [3]: position, rows, rows of ``slow``.

    Returns:
        reason.
    """
    n_keys, capacity = kind.shape
    depth, objects, flat = 0, _ZERO, False  # a bit per open value: whether it is an object
    k, last, n, n_slow, first, start, u = -1, n_keys, 0, 0, text[at], at, 0
    while True:
        c, closed = text[at], True
        if depth == 0:
            out[0], out[1], out[2] = at, n, n_slow
            if n == capacity or at >= stop:
                return MORE
            if c != 123:
                return ODD
            last = n_keys
            for q in range(n_keys):
                kind[q, n] = MISSING
        elif depth == 1:
            start, first, flat = at, c, False
            if k >= 0:
                if kind[k, n] != MISSING:
                    return ODD
                flat, u = not raw[k], used[k]
        if c == 91 or c == 123:
            if depth == _DEPTH:
                return ODD
            flat &= depth == 1 and c == 91
            depth += 1
            objects = objects << _ONE | np.uint64(c == 123)
            at, closed = at + 1, False
        elif c == 45 or (c >= 48 and c <= 57):
            while True:
                begin, at = at, -1
                if flat and depth > 1:
                    at, bits = _short_number(text, begin, powers)
                    real, unsure = FLOAT, False
                if at < 0:
                    at, bits, real, unsure = _number(text, begin, depth > 1, powers)
                if k >= 0 and (depth == 1 or flat):
                    if u >= pool.shape[1] or n_slow == slow.shape[0]:
                        return MORE
                    if depth == 1:
                        first, value[k, n] = real, bits
                    else:
                        pool[k, u] = bits
                    if unsure:
                        slow[n_slow, 0] = k if depth == 1 else -1 - k
                        slow[n_slow, 1], slow[n_slow, 2] = n if depth == 1 else u, begin
                        n_slow += 1
                    u += 1
                if not flat or depth == 1 or at < 0 or text[at] != 44:
                    break
                # The next number of a list, which needs none of the checks of other values.
                begin = at + 1 + (text[at + 1] == 32)
                c = text[begin]
                if c != 45 and (c < 48 or c > 57):
                    break
                at = begin
        elif c == 34:
            at, flat = _string(text, at, c == 92), False  # False; a constant has another type
        else:
            size = 0
            for q in range(n_keys, n_keys + 3):
                size += _match(text, at, words, bounds, q)
            at, flat = at + size if size else -1, False
        while True:
            if at < 0 or at == text.size:
                return ODD
            if closed:
                if depth == 0:
                    n += 1
                elif depth == 1 and k >= 0:
                    kind[k, n] = first
                    if flat and first == 91:
                        kind[k, n], value[k, n], used[k] = NUMBERS, u, u
                    elif first == 34 or (raw[k] and first > 34):
                        quote = first == 34
                        u = used[k]
                        if u + at - start > texts.shape[1]:
                            return MORE
                        for q in range(start + quote, at - quote):
                            texts[k, u] = text[q]
                            u += 1
                        value[k, n], used[k] = u, u
            at = _blank(text, at)
            c = text[at]
            if c == (125 if objects & _ONE else 93):
                at, closed = at + 1, True
                if depth == 0:
                    out[0], out[1], out[2] = at, n, n_slow
                    return ENDED
                depth -= 1
                objects = objects >> _ONE
                continue
            if closed:
                if c != 44:
                    return ODD
                at = _blank(text, at + 1)
            if objects & _ONE:
                begin = at
                if depth == 1:
                    k = following[last]
                    size = _match(text, at, words, bounds, k)
                    if size == 0:
                        k = -1
                        for q in range(n_keys):
                            m = _match(text, at, words, bounds, q)
                            if m:
                                size, k = m, q
                    if k >= 0:
                        following[last] = k
                        last = k
                        at += size
                if at == begin:
                    if text[at] != 34:
                        return ODD
                    at = _string(text, at, depth == 1)
                    if at < 0:
                        return ODD
                at = _blank(text, at)
                if text[at] != 58:
                    return ODD
                at = _blank(text, at + 1)
            break
