"""The assignment of rows to columns of the largest total weight, by shortest augmenting paths.

Crouse 2016, On implementing 2D rectangular assignment algorithms. Of several assignments of equal
total the one is found that SciPy's ``linear_sum_assignment`` finds: rows are the shorter side and
are added in their order, the last columns are looked at first, and of columns that are equally far
the last one that is free, else the first one seen, is next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import inner

Array = np.ndarray[Any, Any]


class AssignmentScratch(NamedTuple):
    """Room for an assignment; each array is as long as the longer side.

    Attributes:
        u: float64, dual value of each row.
        v: float64, dual value of each column.
        far: float64, length of the shortest path to each column.
        path: int32, the row before each column on it.
        column_of: int32, the column that each row has.
        row_of: int32, the row that each column has.
        left: int32, columns not reached yet.
        reached_row: bool.
        reached_column: bool.
    """

    u: Array
    v: Array
    far: Array
    path: Array
    column_of: Array
    row_of: Array
    left: Array
    reached_row: Array
    reached_column: Array


@inner
def assignment_scratch(n: int) -> AssignmentScratch:
    """Room for sides of up to n."""
    return AssignmentScratch(
        np.empty(n, np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.bool_),
        np.empty(n, np.bool_),
    )


@inner
def assign(weight: Array, n: int, m: int, scratch: AssignmentScratch, out: Array) -> None:
    """Give each of n rows another one of m columns, or as many as there are, at the most weight.

    Args:
        weight: float64 [n * m or more], row after row; finite.
        n: number of rows.
        m: number of columns.
        scratch: room for the longer side.
        out: int32 [n or more], the column of each row, -1 for none.
    """
    u, v, far, path, column_of, row_of, left, reached_row, reached_column = scratch
    turned = n > m
    n_rows, n_columns = (m, n) if turned else (n, m)
    down, right = (1, m) if turned else (m, 1)
    u[:n_rows] = 0.0
    v[:n_columns] = 0.0
    column_of[:n_rows] = -1
    row_of[:n_columns] = -1
    for new in range(n_rows):
        for at in range(n_columns):
            left[at] = n_columns - 1 - at
        far[:n_columns] = np.inf
        reached_row[:n_rows] = False
        reached_column[:n_columns] = False
        n_left = n_columns
        length = 0.0
        row = new
        end = -1
        while end < 0:
            reached_row[row] = True
            least = np.inf
            best = -1
            for at in range(n_left):
                column = left[at]
                cost = -weight[row * down + column * right]
                through = length + cost - u[row] - v[column]
                if through < far[column]:
                    far[column] = through
                    path[column] = row
                if far[column] < least or (far[column] == least and row_of[column] < 0):
                    least = far[column]
                    best = at
            length = least
            column = left[best]
            n_left -= 1
            left[best] = left[n_left]
            reached_column[column] = True
            if row_of[column] < 0:
                end = column
            else:
                row = row_of[column]
        u[new] += length
        for i in range(n_rows):
            if reached_row[i] and i != new:
                u[i] += length - far[column_of[i]]
        for j in range(n_columns):
            if reached_column[j]:
                v[j] -= length - far[j]
        column = end
        while True:
            row = path[column]
            row_of[column] = row
            before = column_of[row]
            column_of[row] = column
            if row == new:
                break
            column = before
    for i in range(n):
        out[i] = row_of[i] if turned else column_of[i]
