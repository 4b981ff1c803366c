"""Summary-level ROUGE-L of Google's rouge-score 0.1.2: a union of subsequences, line by line.

Each line of the reference is held against every line of the candidate; its tokens that stand in
any of the longest common subsequences are hits, each token no more often than it stands in either
text (Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, 3.2). Which of several
longest subsequences is taken matters: walking back from both ends, equal tokens are taken;
otherwise the walk goes back in the candidate where table[i, j-1] > table[i-1, j], else in the
reference.

The table stands as columns of bits (see :mod:`.lcs`): bit i - 1 of column j is zero where
table[i, j] > table[i-1, j], which is all that the walk asks for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .coded_texts import coded_texts
from .jit import frozen, inner, kernel
from .lcs import place_codes, step_wide

Array = np.ndarray[Any, Any]

_ONE, _FULL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def _mark(
    r_code: Array,
    r0: int,
    r1: int,
    c_code: Array,
    c0: int,
    c1: int,
    head: Array,
    link: Array,
    mask: Array,
    columns: Array,
    hit: Array,
) -> None:
    """Mark tokens of the reference's line [r0, r1) on the walk through one line's table.

    ``head`` and ``link`` hold the places of the line's tokens.
    """
    width = (r1 - r0 + 63) >> 6
    for w in range(width):
        columns[w] = _FULL
    for j in range(c1 - c0):
        i = head[c_code[c0 + j]]
        at = i
        while at >= 0:
            mask[at >> 6] |= _ONE << np.uint64(at & 63)
            at = link[at]
        step_wide(columns, columns, j * width, (j + 1) * width, width, mask)
        while i >= 0:
            mask[i >> 6] = np.uint64(0)
            i = link[i]
    i, j = r1 - r0, c1 - c0
    while i > 0 and j > 0:
        if r_code[r0 + i - 1] == c_code[c0 + j - 1]:
            hit[i - 1] = 1
            i -= 1
            j -= 1
        elif columns[j * width + ((i - 1) >> 6)] >> np.uint64((i - 1) & 63) & _ONE:
            i -= 1
        else:
            j -= 1


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
    """Hits of the references [begin, stop) that have, or whose candidate has, several lines."""
    longest_r, longest_c = 0, 0
    for u in range(begin, stop):
        for line in range(r_lines[u], r_lines[u + 1]):
            longest_r = max(longest_r, r_start[line + 1] - r_start[line])
        for line in range(c_lines[candidate[u]], c_lines[candidate[u] + 1]):
            longest_c = max(longest_c, c_start[line + 1] - c_start[line])
    width = (longest_r + 63) >> 6
    columns, mask = np.empty((longest_c + 1) * width, np.uint64), np.zeros(width, np.uint64)
    head, link = np.full(n_codes, -1, np.int32), np.empty(longest_r, np.int32)
    hit = np.zeros(longest_r, np.uint8)
    left_r, left_c = np.zeros(n_codes, np.int32), np.zeros(n_codes, np.int32)
    for u in range(begin, stop):
        rl0, rl1 = r_lines[u], r_lines[u + 1]
        cl0, cl1 = c_lines[candidate[u]], c_lines[candidate[u] + 1]
        if rl1 - rl0 < 2 and cl1 - cl0 < 2:
            continue  # the length of the one subsequence, which stands there already
        for i in range(r_start[rl0], r_start[rl1]):
            left_r[r_code[i]] += 1
        for i in range(c_start[cl0], c_start[cl1]):
            left_c[c_code[i]] += 1
        hits = 0
        for r_line in range(rl0, rl1):
            r0, r1 = r_start[r_line], r_start[r_line + 1]
            place_codes(r_code, r0, r1, head, link)
            for c_line in range(cl0, cl1):
                c0, c1 = c_start[c_line], c_start[c_line + 1]
                _mark(r_code, r0, r1, c_code, c0, c1, head, link, mask, columns, hit)
            for i in range(r0, r1):
                code = r_code[i]
                head[code] = -1
                if hit[i - r0]:
                    hit[i - r0] = 0
                    if left_r[code] > 0 and left_c[code] > 0:
                        left_r[code] -= 1
                        left_c[code] -= 1
                        hits += 1
        for i in range(r_start[rl0], r_start[rl1]):
            left_r[r_code[i]] = 0
        for i in range(c_start[cl0], c_start[cl1]):
            left_c[c_code[i]] = 0
        out[u] = hits


def summary_hits(
    first: int,
    last: int,
    candidate: Array,
    candidates: tuple[Array, Array, Array],
    references: tuple[Array, Array, Array],
    n_codes: int,
    out: Array,
) -> None:
    """Tokens of each reference that are hit, line by line.

    Of one line each the hits are the length of their longest common subsequence.

    Args:
        first: first reference.
        last: one past the last.
        candidate: int64 [m], the candidate of each reference.
        candidates: offsets of the lines of each candidate, of the tokens of each line, int64; codes
            of the tokens, int32 in [0, n_codes).
        references: the same of the references.
        n_codes: one more than the highest code.
        out: int64 [m], lengths of longest common subsequences; replaced where lines are several.
    """
    _hits(
        first,
        last,
        frozen(candidate, np.int64),
        *coded_texts(candidates, references),
        n_codes,
        out,
    )
