"""Large tables that can be tallied as they are read: each kind of them has a way of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ...inputs.collecting import Prepared
from ...metrics.registry import Metric
from ...schemas.options import Options
from ..workers import Workers
from .counting import counts_suffice
from .settings import Settings
from .streaming import Streamed
from .streaming import stream as stream_binary
from .streaming_grids import stream_grid


def stream(
    ready: Prepared,
    options: Options,
    settings: Settings,
    needs: frozenset[str],
    metrics: Sequence[Metric],
    threads: Workers,
) -> Streamed | None:
    """Tables read in batches and tallied; None where they have to be read whole.

    Args:
        ready: the tables, their columns recognised.
        options: those of the run.
        settings: the run's settings.
        needs: what must be tallied.
        metrics: those of the run.
        threads: where scores are sorted.

    Raises:
        InputError: what the columns alone tell is wrong.
    """
    found = stream_grid(ready, options, settings, needs)
    if found is not None:
        return found
    counter = threads if counts_suffice(metrics, settings, {}, ()) else None
    return stream_binary(ready, options, settings, needs, counter)
