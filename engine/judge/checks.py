"""What the judge's options must be, before anything is read, sent or paid for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..endpoint.budget import Limits
from ..ingest.extensions import by_extension
from ..schemas.errors import OptionError

STRUCTURED = ("auto", "schema", "object", "none")
_OURS = ("model", "messages", "stream", "n", "response_format")


def check_sending(limits: Limits, *, concurrency: int, timeout: float, structured: str) -> None:
    """Limits, rates and formats.

    Args:
        limits: of the run.
        concurrency: requests under way at once.
        timeout: seconds.
        structured: the response format that is asked for.

    Raises:
        OptionError: a number that is none, or out of its range.
    """
    if structured not in STRUCTURED:
        raise OptionError(f"structured={structured!r}: write {', '.join(STRUCTURED)}.")
    if concurrency < 1 or not 0 < timeout < math.inf:
        raise OptionError("concurrency: 1 or more; timeout: more than 0 seconds.")
    if limits.per_minute is not None and not 0 < limits.per_minute < math.inf:
        raise OptionError(f"requests_per_minute={limits.per_minute:g}: more than 0, or none.")
    for name, most in (
        ("max_requests", limits.requests),
        ("max_tokens", limits.tokens),
        ("max_cost", limits.cost),
    ):
        if most is not None and not 0 <= most < math.inf:
            raise OptionError(f"{name}={most:g}: 0 or more, or none.")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Further fields of the request.

    Raises:
        OptionError: a field that the judge sets itself, or a value that JSON does not have.
    """
    own = sorted(set(_OURS) & set(parameters))
    if own:
        raise OptionError(f"parameters: {', '.join(own)} cannot be set there.")
    for name, value in parameters.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise OptionError(
                f"parameters: {name}={value!r} is nothing that JSON can hold; write a finite"
                " number, string, boolean, list or dict of those."
            ) from None


def check_out(out: str | Path) -> None:
    """Refuse a file that no verdict table can be written to.

    Raises:
        OptionError: no folder, or another extension than that of Parquet.
    """
    path = Path(out)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise OptionError(f"out={str(out)!r}: write the path of a file in a folder that is there.")
    if by_extension(str(path)) != "parquet":
        raise OptionError(f"out={str(out)!r}: the verdict table is Parquet; end it in .parquet.")
