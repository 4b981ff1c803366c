"""Metrics as users write them: a name, or a name with a cut-off behind an ``@``."""

from __future__ import annotations

import re

import msgspec

from .errors import OptionError


def in_name(number: float) -> str:
    """A number as names of metrics have it: the shortest text that reads back as the same one."""
    return repr(float(number)).removesuffix(".0")


_WHOLE = re.compile(r"[0-9]{1,9}")


class Asked(msgspec.Struct, frozen=True):
    """One requested metric.

    Attributes:
        metric: its name, without a cut-off.
        k: cut-off in the name, 0 or more; None without one.
    """

    metric: str
    k: int | None = None


def parse_metric(name: str) -> Asked:
    """Split ``nDCG@10`` into name and cut-off; a name without ``@`` has none.

    The registry checks that the metric exists and takes a cut-off.

    Raises:
        OptionError: the text after ``@`` is not an integer from 0 to 999999999.
    """
    metric, at, k = name.partition("@")
    if not at:
        return Asked(name)
    if not _WHOLE.fullmatch(k):
        raise OptionError(
            f"{name!r}: a cut-off follows the @, a whole number from 0 to 999999999,"
            f" such as '{metric}@10'."
        )
    return Asked(metric, int(k))
