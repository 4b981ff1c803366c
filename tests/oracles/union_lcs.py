"""Reference of ROUGE-L recall over distinct words, with full tables and backtracking."""

from __future__ import annotations


def _backtrack(x: list[str], y: list[str]) -> set[str]:
    table = [[0] * (len(y) + 1)]
    for a in x:
        above, row = table[-1], [0]
        for j, b in enumerate(y):
            row.append(above[j] + 1 if a == b else max(above[j + 1], row[j]))
        table.append(row)
    words = set()
    i, j = len(x), len(y)
    while i and j:
        if x[i - 1] == y[j - 1]:
            i, j = i - 1, j - 1
            words.add(x[i])
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words


def recall(retrieved: list[list[str]], gold: list[list[str]]) -> float | None:
    """Compute the recall of the reference's distinct words; None if a side has no sentence."""
    if not retrieved or not gold:
        return None
    hit = set().union(*(_backtrack(x, y) for x in gold for y in retrieved))
    return len(hit) / len(set().union(*gold))
