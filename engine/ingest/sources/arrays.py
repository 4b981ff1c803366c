"""Array-like values: NumPy arrays, tensors on any device, images."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalengine.schemas.errors import InputError

_TABLES = ("polars", "pandas", "pyarrow")


def is_array(thing: Any) -> bool:
    """Return whether a value is an array or converts to one without loss (tensors, images); not
    tables.
    """
    named = type(thing).__module__.split(".")[0]
    if named in _TABLES or hasattr(thing, "columns") or hasattr(thing, "__arrow_c_stream__"):
        return False
    return (
        isinstance(thing, np.ndarray)
        or hasattr(thing, "__array_interface__")
        or (hasattr(thing, "__array__") and hasattr(thing, "shape"))
    )


def as_array(thing: Any) -> np.ndarray[Any, Any]:
    """Convert a tensor or array-like to an array, detached and on the CPU.

    NumPy's float16 and ``bfloat16``, which NumPy does not have, become float32, which is exact for
    both.

    Raises:
        TypeError, ValueError, RuntimeError: from NumPy or the tensor if conversion fails.
    """
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu()
        if str(thing.dtype).endswith("bfloat16"):
            thing = thing.float()
    masked = int(np.sum(thing.mask)) if isinstance(thing, np.ma.MaskedArray) else 0
    if masked:
        raise InputError(
            f"an array with {masked:,} masked values: fill these, or remove their datums from both"
            " sides."
        )
    found = np.asarray(thing)
    if found.dtype == np.float16 or found.dtype.name == "bfloat16":
        return found.astype(np.float32)
    return found
