"""The pool of a name."""

from __future__ import annotations

from ..schemas.errors import OptionError, unknown
from .pools import InTurn, Pool

NAMES = ("threads", "processes", "dask")


def pool_of(name: str | None, address: str | None, threads: int | None) -> Pool:
    """Return the pool of a name.

    Args:
        name: one of :data:`NAMES`; threads by default.

    Raises:
        OptionError: no such pool, or one that is not installed.
        ExecutorError: the address does not answer.
    """
    if name not in (None, *NAMES):
        raise unknown("executor", str(name), NAMES, before="executor: ")
    if address is not None and name != "dask":
        raise OptionError(
            "address: only executor='dask' has one.", code="option_unread", option="address"
        )
    # Imported here: a run in this process needs neither.
    if name == "dask":
        from .cluster import OnDask

        return OnDask(address, threads)
    if name == "processes":
        from .processes import Processes

        return Processes(threads)
    return InTurn(threads)
