"""ROUGE-L recall over distinct words, the slow and obvious way: whole tables, one walk back."""

from __future__ import annotations


def _walk_back(x: list[str], y: list[str]) -> set[str]:
    table = [[0] * (len(y) + 1)]
    for a in x:
        above, row = table[-1], [0]
        for j, b in enumerate(y):
            row.append(above[j] + 1 if a == b else max(above[j + 1], row[j]))
        table.append(row)
    found = set()
    i, j = len(x), len(y)
    while i and j:
        if x[i - 1] == y[j - 1]:
            i, j = i - 1, j - 1
            found.add(x[i])
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


def recall(retrieved: list[list[str]], gold: list[list[str]]) -> float | None:
    """Recall of the gold's distinct words; None where either has no sentence."""
    if not retrieved or not gold:
        return None
    hit = set().union(*(_walk_back(x, y) for x in gold for y in retrieved))
    return len(hit) / len(set().union(*gold))
