"""Words that two texts share, each counted once: anywhere, and in common subsequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, kernel
from .union_lcs import fill, walk

Array = np.ndarray[Any, Any]


@kernel
def _shared(
    begin: int,
    stop: int,
    candidate: Array,
    c_start: Array,
    c_code: Array,
    r_start: Array,
    r_code: Array,
    n_codes: int,
    out: Array,
) -> None:
    """Distinct codes that the references [begin, stop) and their candidates share."""
    mark = np.zeros(n_codes, np.int64)
    stamp = 0
    for u in range(begin, stop):
        stamp += 2
        for i in range(r_start[u], r_start[u + 1]):
            mark[r_code[i]] = stamp
        shared = 0
        for j in range(c_start[candidate[u]], c_start[candidate[u] + 1]):
            if mark[c_code[j]] == stamp:
                mark[c_code[j]] = stamp + 1
                shared += 1
        out[u] = shared


@kernel
def _hits(
    begin: int,
    stop: int,
    candidate: Array,
    c_lines: Array,
    c_start: Array,
    c_code: Array,
    r_lines: Array,
    r_start: Array,
    r_code: Array,
    n_codes: int,
    out: Array,
) -> None:
    """Distinct codes of both sides, and those that are hit, of the references [begin, stop)."""
    longest = 0
    for u in range(begin, stop):
        for line in range(c_lines[candidate[u]], c_lines[candidate[u] + 1]):
            longest = max(longest, c_start[line + 1] - c_start[line])
    head, link = np.full(n_codes, -1, np.int32), np.empty(longest, np.int32)
    in_r, in_c = np.full(n_codes, -1, np.int64), np.full(n_codes, -1, np.int64)
    hit = np.full(n_codes, -1, np.int64)
    rows = np.empty(1024, np.uint64)
    for u in range(begin, stop):
        rl0, rl1 = r_lines[u], r_lines[u + 1]
        cl0, cl1 = c_lines[candidate[u]], c_lines[candidate[u] + 1]
        theirs, ours, possible, hits = 0, 0, 0, 0
        for i in range(r_start[rl0], r_start[rl1]):
            if in_r[r_code[i]] != u:
                in_r[r_code[i]] = u
                theirs += 1
        for j in range(c_start[cl0], c_start[cl1]):
            if in_c[c_code[j]] != u:
                in_c[c_code[j]] = u
                ours += 1
                if in_r[c_code[j]] == u:
                    possible += 1
        for r_line in range(rl0, rl1):
            x = r_code[r_start[r_line] : r_start[r_line + 1]]
            for c_line in range(cl0, cl1):
                if hits == possible:
                    break  # no more to be hit
                y = c_code[c_start[c_line] : c_start[c_line + 1]]
                need = (x.size + 1) * ((y.size + 63) >> 6)
                if rows.size < need:
                    rows = np.empty(2 * need, np.uint64)
                fill(x, x.size, y, y.size, rows, head, link)
                hits += walk(x, x.size, y, y.size, rows, hit, u)
        out[u, 0], out[u, 1], out[u, 2] = hits, ours, theirs


def shared_words(
    first: int,
    last: int,
    candidate: Array,
    candidates: tuple[Array, Array],
    references: tuple[Array, Array],
    n_codes: int,
    out: Array,
) -> None:
    """How many different words each reference shares with its candidate.

    Args:
        first: first reference.
        last: one past the last.
        candidate: int64 [m], the candidate of each reference.
        candidates: offsets of the words of each candidate, int64; their codes, int32 in
            [0, n_codes).
        references: the same of the references, int64 [m + 1].
        n_codes: one more than the highest code.
        out: int64 [m], filled.
    """
    _shared(
        first,
        last,
        frozen(candidate, np.int64),
        *coded_texts(candidates, references),
        n_codes,
        out,
    )


def union_hits(
    first: int,
    last: int,
    candidate: Array,
    candidates: tuple[Array, Array, Array],
    references: tuple[Array, Array, Array],
    n_codes: int,
    out: Array,
) -> None:
    """How many different words stand in longest common subsequences of any two sentences.

    Of several longest subsequences it is the one that :mod:`.union_lcs` walks along.

    Args:
        first: first reference.
        last: one past the last.
        candidate: int64 [m], the candidate of each reference.
        candidates: offsets of the sentences of each candidate, of the words of each sentence (none
            is empty), int64; codes of the words, int32 in [0, n_codes).
        references: the same of the references.
        n_codes: one more than the highest code.
        out: int64 [m, 3], filled: words that are hit, different words of the candidate and of the
            reference.
    """
    _hits(
        first,
        last,
        frozen(candidate, np.int64),
        *coded_texts(candidates, references),
        n_codes,
        out,
    )
