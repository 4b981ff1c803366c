"""The options of intervals, before anything is computed."""

from __future__ import annotations

import msgspec

from .errors import OptionError, unknown
from .options import Options
from .wording import option

METHOD_NAMES = ("percentile", "recentred", "normal", "bca", "jackknife", "wilson", "delong")
BY_THEORY = ("wilson", "delong")
"""Methods that assume independent datums and use no resamples."""
LEVEL, DRAWS, SEED = 0.95, 1000, 0
FEW_CLUSTERS = 20
LEAST_DRAWS = 20


class Wanted(msgspec.Struct, frozen=True):
    """The options of intervals with every default filled in.

    Attributes:
        level: confidence, in (0, 1).
        draws: number of resamples.
        seed: seed of the resamples.
        method: one of :data:`METHOD_NAMES`; None for each metric's default.
        cluster: column of the clusters to resample; None to resample single datums.
    """

    level: float
    draws: int
    seed: int
    method: str | None
    cluster: str | None


def wanted(options: Options) -> Wanted | None:
    """Return the requested intervals; None without any.

    Raises:
        OptionError: an invalid value, or one without ``intervals``.
    """
    if options.intervals is None:
        for name in ("draws", "seed", "cluster", "method"):
            given = getattr(options, name)
            if given is not None:
                raise OptionError(
                    f"{option(name, given)} is of intervals: add {option('intervals', 0.95)}.",
                    code="option_unread",
                    option=name,
                    value=given,
                )
        return None
    level = options.intervals / 100 if options.intervals > 1 else options.intervals
    if not 0 < level < 1:
        raise OptionError(
            f"{option('intervals', options.intervals)}: write a confidence such as 0.95 or 95.",
            code="option_value",
            option="intervals",
            value=options.intervals,
        )
    draws = DRAWS if options.draws is None else options.draws
    if draws < LEAST_DRAWS:
        raise OptionError(
            f"{option('draws', draws)}: write {LEAST_DRAWS} or more.",
            code="option_value",
            option="draws",
            value=draws,
        )
    method = options.method
    if method is not None and method not in METHOD_NAMES:
        raise unknown("method", method, METHOD_NAMES)
    if method in BY_THEORY and options.cluster is not None:
        raise OptionError(
            f"{option('method', method)} takes every datum for independent of the others: leave"
            f" {option('cluster')} out, or take another method.",
            code="options_conflict",
            options=["method", "cluster"],
        )
    return Wanted(level, draws, options.seed or SEED, method, options.cluster)
