"""Spans and calls: entities from tags, nervaluate's schemas, one-to-one pairs, trajectories."""

from __future__ import annotations

import numpy as np

from .jit import F64, I8, I32, I64, Array, Bools, inner, kernel
from .matching import Pairs

# Entities from the tags of sentences. Decisions are tables by class of the previous tag, class of
# the tag, and whether both have one type: bool [classes, classes, 2]. Class 0 is outside.


@kernel
def read_leniently(
    tag: I32, start: I64, prefix: I8, kind: I32, begins: Bools, ends: Bools, none: int
) -> tuple[I32, I32, I32, I32]:
    """Return the chunks of every sentence as conlleval and seqeval read them.

    Args:
        tag: codes of all tags.
        start: [sentences + 1], offsets.
        prefix: class of each tag code.
        kind: type of each tag code.
        begins: flat [classes, classes, 2], a chunk begins at the tag.
        ends: same, a chunk ends before the tag.
        none: type of the tag that is outside.

    Returns:
        sentence, first tag, tag after the last, and type of each chunk.
    """
    most = tag.size + start.size
    sentence, first = np.empty(most, np.int32), np.empty(most, np.int32)
    last, types = np.empty(most, np.int32), np.empty(most, np.int32)
    n = 0
    many = int(np.sqrt(begins.size // 2))
    for s in range(start.size - 1):
        begin, before, of_before = 0, 0, none
        for i in range(start[s], start[s + 1] + 1):
            here, of_here = 0, none
            if i < start[s + 1]:
                here, of_here = prefix[tag[i]], kind[tag[i]]
            elif before == 0:
                break
            if here == 0 and before == 0:
                of_before = of_here
                continue
            at = (before * many + here) * 2 + (of_before == of_here)
            if ends[at]:
                sentence[n], types[n] = s, of_before
                first[n], last[n] = begin, i - start[s]
                n += 1
            if begins[at]:
                begin = i - start[s]
            before, of_before = here, of_here
    return sentence[:n].copy(), first[:n].copy(), last[:n].copy(), types[:n].copy()


@kernel
def read_strictly(
    tag: I32,
    start: I64,
    prefix: I8,
    kind: I32,
    begins: Bools,
    inside: Bools,
    ends: Bools,
    none: int,
) -> tuple[I32, I32, I32, I32]:
    """Return the well-formed chunks of a scheme as seqeval's strict mode reads them.

    Args:
        inside: flat [classes, classes, 2], the tag continues the chunk of the one before.

    Others, and what is returned, as in :func:`read_leniently`.
    """
    most = tag.size + start.size
    sentence, first = np.empty(most, np.int32), np.empty(most, np.int32)
    last, types = np.empty(most, np.int32), np.empty(most, np.int32)
    n = 0
    many = int(np.sqrt(begins.size // 2))
    for s in range(start.size - 1):
        end = start[s + 1]
        i = start[s]
        before, of_before = 0, none
        while i < end:
            here, of_here = prefix[tag[i]], kind[tag[i]]
            if not begins[(before * many + here) * 2 + (of_before == of_here)]:
                before, of_before = here, of_here
                i += 1
                continue
            j = i + 1
            before, of_before = here, of_here
            while True:
                after, of_after = 0, none
                if j < end:
                    after, of_after = prefix[tag[j]], kind[tag[j]]
                at = (before * many + after) * 2 + (of_before == of_after)
                if j < end and inside[at]:
                    before, of_before = after, of_after
                    j += 1
                    continue
                if ends[at]:
                    sentence[n], types[n] = s, of_here
                    first[n], last[n] = i - start[s], j - start[s]
                    n += 1
                break
            i = j
    return sentence[:n].copy(), first[:n].copy(), last[:n].copy(), types[:n].copy()


# Outcomes by nervaluate 1.2.1: greedy, one to one, in the order of the rows.

STRICT, EXACT, PARTIAL, TYPE = range(4)
CORRECT, INCORRECT, HALF, MISSED, SPURIOUS = range(5)


@kernel
def judge_schemas(
    datum_start: tuple[I64, I64],
    begin: tuple[F64, F64],
    end: tuple[F64, F64],
    label: tuple[I32, I32],
    key: tuple[I32, I32],
    least: float,
) -> tuple[I8, I8]:
    """Return the outcome of every span under each schema, over all labels and within its own.

    Args:
        datum_start: [datums + 1], offsets of predictions and of ground truths, in row order.
        begin: first place of each span.
        end: place after the last.
        label: label codes.
        key: label keys; spans of different keys are never compared.
        least: percent of a true span that an overlap has to cover.

    Returns:
        [2, 4, n] and [2, 4, m], outcomes: over all labels and within labels, by schema.
    """
    starts, truth_starts = datum_start
    n, m = begin[0].size, begin[1].size
    ours, theirs = np.empty((2, 4, n), np.int8), np.empty((2, 4, m), np.int8)
    used = np.empty(m, np.bool_)
    for within in range(2):
        for schema in range(4):
            used[:] = False
            out = ours[within, schema]
            for d in range(starts.size - 1):
                for p in range(starts[d], starts[d + 1]):
                    right, fallback = -1, -1
                    nearest = np.inf
                    for g in range(truth_starts[d], truth_starts[d + 1]):
                        if used[g] or key[0][p] != key[1][g]:
                            continue
                        same = label[0][p] == label[1][g]
                        if within and not same:
                            continue
                        equal = begin[0][p] == begin[1][g] and end[0][p] == end[1][g]
                        shared = min(end[0][p], end[1][g]) - max(begin[0][p], begin[1][g])
                        length = end[1][g] - begin[1][g]
                        enough = shared > 0 and (shared / length) * 100.0 >= least
                        if schema == TYPE:
                            if enough and same:
                                away = abs(begin[0][p] - begin[1][g]) + abs(end[0][p] - end[1][g])
                                if away < nearest:
                                    right, nearest = g, away
                            elif enough and fallback < 0:
                                fallback = g
                            continue
                        if equal and (schema != STRICT or same) and (schema != PARTIAL or enough):
                            right = g
                            break
                        if enough and fallback < 0:
                            fallback = g
                    if right >= 0:
                        used[right] = True
                        out[p] = CORRECT
                    elif fallback >= 0:
                        used[fallback] = True
                        out[p] = HALF if schema == PARTIAL else INCORRECT
                    else:
                        out[p] = SPURIOUS
            for g in range(m):  # those that were taken are counted at their prediction
                theirs[within, schema, g] = -1 if used[g] else MISSED
    return ours, theirs


# One-to-one pairs, as many as possible: augmenting paths.


@kernel
def most_pairs(pairs: Pairs, n_truths: int) -> Bools:
    """Choose pairs so that every row is in one at most and their number is the largest.

    Args:
        pairs: by prediction; their similarity is not read.

    Returns:
        [pairs], chosen ones.
    """
    start, truth = pairs.start, pairs.ground_truth
    n = start.size - 1
    taker = np.full(n_truths, -1, np.int64)  # pair of each ground truth
    seen = np.full(n_truths, -1, np.int64)
    path, at = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    owner = np.empty(truth.size, np.int64)
    for p in range(n):
        owner[start[p] : start[p + 1]] = p
    for p in range(n):
        depth = 0
        path[0], at[0] = p, start[p]
        while depth >= 0:
            here = path[depth]
            if at[depth] == start[here + 1]:
                depth -= 1
                continue
            pair = at[depth]
            at[depth] += 1
            g = truth[pair]
            if seen[g] == p:
                continue
            seen[g] = p
            if taker[g] < 0:
                for k in range(depth + 1):  # every prediction on the path takes its last pair
                    taker[truth[at[k] - 1]] = at[k] - 1
                break
            depth += 1
            path[depth] = owner[taker[g]]
            at[depth] = start[path[depth]]
    chosen = np.zeros(truth.size, np.bool_)
    for g in range(n_truths):
        if taker[g] >= 0:
            chosen[taker[g]] = True
    return chosen


# Matches of the calls of two trajectories.


@inner
def same_call(one: int, other: int, similar: Array, n: int) -> bool:
    """Return whether a predicted call matches a reference call.

    Args:
        similar: codes of matching calls, predicted * n + reference, ascending; equal codes match
            without being listed.
    """
    if one == other:
        return True
    key = one * n + other
    at = np.searchsorted(similar, key)
    return bool(at < similar.size and similar[at] == key)


@kernel
def match_calls(
    first: int,
    last: int,
    starts: tuple[I64, I64],
    codes: tuple[I64, I64],
    similar: I64,
    n: int,
    out: Array,
) -> int:
    """Compare the trajectories of datums.

    Args:
        first: first datum.
        last: one past the last.
        starts: int64 [d + 1] twice, offsets of predicted and of reference calls.
        codes: int64 twice, calls in their order.
        similar: see :func:`same_call`.
        n: number of codes.
        out: int64 [d, 5], filled: whether all calls match in their order, whether the reference is
            a subsequence of the prediction, pairs of the largest one-to-one matching, predicted
            calls that match any reference call, reference calls that match any predicted call.
    """
    predicted, reference = codes
    for d in range(first, last):
        p0, r0 = starts[0][d], starts[1][d]
        n_p, n_r = starts[0][d + 1] - p0, starts[1][d + 1] - r0
        exact, place, k = n_p == n_r, 0, 0
        start, truth = np.zeros(n_p + 1, np.int64), np.empty(n_p * n_r, np.int32)
        reached = np.zeros(n_r, np.bool_)
        for i in range(n_p):
            along, next_place = False, place
            for j in range(n_r):
                if same_call(predicted[p0 + i], reference[r0 + j], similar, n):
                    truth[k] = j
                    k += 1
                    reached[j] = True
                    along = along or i == j
                    next_place += j == place
            exact, place, start[i + 1] = exact and along, next_place, k
            out[d, 3] += k > start[i]
        chosen = most_pairs(Pairs(start, truth[:k], np.empty(0)), n_r)
        out[d, 0], out[d, 1], out[d, 2] = exact, place == n_r, chosen.sum()
        out[d, 4] = reached.sum()
    return 0
