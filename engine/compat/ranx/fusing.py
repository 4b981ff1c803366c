"""``fuse``: several runs into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...fusion.fuse import fuse as fuse_runs
from ...fusion.methods import METHODS
from ...schemas.errors import unknown
from .results import Run

_KNOWN = {name: one for one in METHODS.values() for name in (one.name, *one.aliases)}
_PARAMS = {"k": "k", "weights": "weights", "gamma": "gamma", "phi": "persistence"}
"""Parameter of a method -> what it is called here."""


def fuse(
    runs: Sequence[Run],
    norm: str | None = "min-max",
    method: str = "wsum",
    params: Mapping[str, Any] | None = None,
) -> Run:
    """One run out of several; see :func:`evalengine.fuse`.

    Args:
        runs: two or more; a query that one lacks is one for which it retrieved nothing.
        norm: of each list's scores: min-max, max, sum, zmuv, rank, borda or None. Methods of ranks
            take none.
        method: rrf, isr, log_isr, rbc, wsum, mixed, gmnz, condorcet, bordafuse, sum, mnz, anz, max,
            min or med.
        params: weights of wsum and mixed, k of rrf, gamma of gmnz, phi of rbc; name.

    Raises:
        OptionError: a method, normalisation or parameter that is not there.
    """
    if method not in _KNOWN:
        raise unknown("fusion method", method, tuple(_KNOWN))
    given = dict(params or {})
    name = given.pop("name", method)
    odd = next((key for key in given if key not in _PARAMS), None)
    if odd is not None:
        raise unknown("parameter", odd, tuple(_PARAMS))
    fused = fuse_runs(
        [run.rows for run in runs],
        method=method,
        normalisation=norm.replace("_", "-") if norm and _KNOWN[method].scores else None,
        **{_PARAMS[key]: value for key, value in given.items()},
    )
    return Run.from_df(fused, "query_id", "doc_id", "score", name)
