"""A label given in an option, such as ``positive_label``, in the dtype the tables have."""

from __future__ import annotations

import re

import polars as pl

from evalengine.schemas.errors import OptionError

from . import dtypes

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def as_label(value: str | int | bool, dtype: pl.DataType, option: str) -> str | int | bool:
    """The value as the tables would hold it: a shell knows text alone, and true is 1.

    Args:
        value: as given.
        dtype: of the labels; a list counts by what it holds.
        option: for the message.

    Raises:
        OptionError: a value that no such label can be.
    """
    dtype = dtypes.inner_of(dtype)
    text = str(value)
    if dtype == pl.String and isinstance(value, str):
        return value
    if dtype == pl.Boolean and text.casefold() in _BOOLEANS:
        return _BOOLEANS[text.casefold()]
    if dtype.is_integer():
        if not isinstance(value, str):
            return int(value)
        if _WHOLE.fullmatch(value):
            return int(value)
    raise OptionError(
        f"{option}={value!r}: the labels are {dtypes.kind_of(dtype)}; write one of them."
    )
