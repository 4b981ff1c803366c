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
"""Parameter of ranx's method -> name of the engine's option."""


def fuse(
    runs: Sequence[Run],
    norm: str | None = "min-max",
    method: str = "wsum",
    params: Mapping[str, Any] | None = None,
) -> Run:
    """Fuse several runs into one; see :func:`evalengine.fuse`.

    Args:
        runs: two or more; a missing query counts as an empty list.
        norm: normalisation of each list's scores: min-max, max, sum, zmuv, rank, borda or None.
            Methods on ranks take none.
        method: rrf, isr, log_isr, rbc, wsum, mixed, gmnz, condorcet, bordafuse, sum, mnz, anz, max,
            min or med.
        params: weights of wsum and mixed, k of rrf, gamma of gmnz, phi of rbc; name.

    Raises:
        OptionError: an unknown method, normalisation or parameter.
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
