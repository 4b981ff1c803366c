"""Runs laid out for fusion: one row per retrieved document, by run, query and rank."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from ..schemas.arrays import Array


class Pool:
    """Rows of all runs, by run, query and rank, with encoded ids.

    A *list* is the ranking of one run for one query. A *candidate* is a query and a document that
    at least one run has. Ties are broken by descending document id, as in trec_eval.

    Args:
        run: int32 [n], index of the run.
        query: int32 [n], code of the query, ascending with its id.
        document: int32 [n], code of the document, ascending with its id.
        score: float64 [n]; undefined in rows ordered by rank.
        rank: int64 [n], given ranks in rows ordered by them; 0 in rows ordered by score.
    """

    def __init__(
        self,
        run: Array,
        query: Array,
        document: Array,
        score: Array,
        rank: Array,
        n_runs: int,
    ) -> None:
        by = np.where(rank > 0, rank.astype(np.float64), -score)
        list_key = run.astype(np.int64) * (int(query.max(initial=0)) + 1) + query
        order = _ordered(list_key, by, document)
        if order is not None:
            run, query, document, list_key = (a[order] for a in (run, query, document, list_key))
            score = score[order]
        self.run, self.query, self.document, self.score = run, query, document, score
        self.n_runs = n_runs
        self.list_start = _starts(list_key)
        self.list_size = np.diff(np.append(self.list_start, run.size))

    @cached_property
    def list_of(self) -> Array:
        """The list of every row, int64 [n]."""
        return np.repeat(np.arange(self.list_start.size), self.list_size)

    @cached_property
    def rank(self) -> Array:
        """Rank of every row in its list, float64 [n], from 1."""
        place = np.arange(self.run.size) - np.repeat(self.list_start, self.list_size)
        ranks: Array = (place + 1).astype(np.float64)
        return ranks

    @cached_property
    def _grouped(self) -> tuple[Array, Array]:
        """Return rows by candidate, then by run, and the start of each candidate."""
        key = self.query.astype(np.int64) * (int(self.document.max(initial=0)) + 1) + self.document
        order = np.argsort(key, kind="stable")
        return order, _starts(key[order])

    @property
    def by_candidate(self) -> Array:
        """Rows by candidate, then by run, int64 [n]."""
        return self._grouped[0]

    @property
    def start(self) -> Array:
        """Start of each candidate in :attr:`by_candidate`, int64 [m]."""
        return self._grouped[1]

    @cached_property
    def found(self) -> Array:
        """Number of runs that have each candidate, int64 [m]."""
        return np.diff(np.append(self.start, self.run.size))

    @cached_property
    def candidate_query(self) -> Array:
        """Query of each candidate, int32 [m], ascending."""
        return self.query[self.by_candidate[self.start]]

    @cached_property
    def candidate_document(self) -> Array:
        """Document of each candidate, int32 [m]."""
        return self.document[self.by_candidate[self.start]]

    @cached_property
    def candidates(self) -> Array:
        """Number of candidates per query, int64 [q], by code."""
        return np.bincount(self.candidate_query)

    def total(self, values: Array) -> Array:
        """Sums of the rows' values by candidate, in the order of the runs, float64 [m]."""
        return self.reduced(np.add, values)

    def reduced(self, ufunc: np.ufunc, values: Array) -> Array:
        """The rows' values reduced by candidate, float64 [m]."""
        if not values.size:
            return values
        reduced: Array = ufunc.reduceat(values[self.by_candidate], self.start)
        return reduced

    def of_lists(self, ufunc: np.ufunc, values: Array) -> Array:
        """The rows' values reduced by list, float64 [lists]."""
        if not values.size:
            return values
        reduced: Array = ufunc.reduceat(values, self.list_start)
        return reduced

    def unranked(self) -> Array:
        """Return the Borda points of each document that is missing in a list, float64 [lists].

        The remaining points of the list are shared by the missing candidates of its query.
        """
        every = self.candidates[self.query[self.list_start]]
        points: Array = (every - self.list_size + 1) / 2.0
        return points

    def unranked_total(self) -> Array:
        """Return the points of missing documents summed over all runs, per query, float64 [q].

        A run without the query ranks no candidate of it.
        """
        every = self.candidates
        query = self.query[self.list_start]
        missing = self.n_runs - np.bincount(query, minlength=every.size)
        listed = np.bincount(query, self.unranked(), minlength=every.size)
        total: Array = listed + missing * (every + 1) / 2.0
        return total

    def ranks_of_candidates(self) -> Array:
        """Return the rank of each candidate in each run, int32 [m, runs]; 2**31 - 1 if missing."""
        ranks = np.full((self.start.size, self.n_runs), np.iinfo(np.int32).max, np.int32)
        candidate = np.repeat(np.arange(self.start.size), self.found)
        rows = self.by_candidate
        ranks[candidate, self.run[rows]] = self.rank[rows].astype(np.int32)
        return ranks

    def completed(self, values: Array) -> Pool:
        """Return the pool in which every run has every candidate, missing ones with Borda's share.

        Args:
            values: float64 [n], values of the present rows; become ``score``.
        """
        every = self.candidates
        share = np.repeat([(every + 1) / (2.0 * every)], self.n_runs, axis=0)
        query = self.query[self.list_start]
        share[self.run[self.list_start], query] = self.unranked() / every[query]
        worth = share[:, self.candidate_query]
        rows = self.by_candidate
        worth[self.run[rows], np.repeat(np.arange(self.start.size), self.found)] = values[rows]
        return Pool(
            np.repeat(np.arange(self.n_runs, dtype=np.int32), self.start.size),
            np.tile(self.candidate_query, self.n_runs),
            np.tile(self.candidate_document, self.n_runs),
            worth.ravel(),
            np.zeros(worth.size, np.int64),
            self.n_runs,
        )


def _starts(key: Array) -> Array:
    """Return the starts of runs of equal values, int64."""
    if not key.size:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))


def _ordered(key: Array, by: Array, document: Array) -> Array | None:
    """Rows by ascending key, then ascending ``by``, then descending document; None if they are."""
    start = _starts(key)
    lists = key[start]
    same = np.ones(max(key.size - 1, 0), bool)
    same[start[1:] - 1] = False
    right = (by[1:] > by[:-1]) | ((by[1:] == by[:-1]) & (document[1:] < document[:-1]))
    place = np.argsort(lists, kind="stable")
    whole = bool((np.diff(lists[place]) > 0).all())
    if whole and bool((right | ~same).all()):  # whole lists in order, as runs mostly are
        if bool((np.diff(lists) > 0).all()):
            return None
        size = np.diff(np.append(start, key.size))[place]
        ends = np.cumsum(size)
        moved: Array = np.arange(key.size) + np.repeat(start[place] - (ends - size), size)
        return moved
    rows = pl.DataFrame({"key": key, "by": by, "document": document})
    order = pl.arg_sort_by("key", "by", "document", descending=[False, False, True])
    return rows.select(order).to_series().to_numpy()
