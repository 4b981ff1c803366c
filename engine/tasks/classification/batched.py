"""Large tables that can be tallied as they are read: each kind of them has a way of its own."""

from __future__ import annotations

from ...inputs.collecting import Prepared
from ...schemas.options import Options
from .settings import Settings
from .streaming import Streamed
from .streaming import stream as stream_binary
from .streaming_grids import stream_grid

_WAYS = (stream_grid, stream_binary)


def stream(
    ready: Prepared, options: Options, settings: Settings, needs: frozenset[str]
) -> Streamed | None:
    """Tables read in batches and tallied; None where they have to be read whole.

    Args:
        ready: the tables, their columns recognised.
        options: those of the run.
        settings: the run's settings.
        needs: what must be tallied.

    Raises:
        InputError: what the columns alone tell is wrong.
    """
    for way in _WAYS:
        found = way(ready, options, settings, needs)
        if found is not None:
            return found
    return None
