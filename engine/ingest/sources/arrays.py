"""What holds numbers as an array does: NumPy's arrays, tensors on whatever device, images."""

from __future__ import annotations

from typing import Any

import numpy as np

from evalengine.schemas.errors import InputError

_TABLES = ("polars", "pandas", "pyarrow")


def is_array(thing: Any) -> bool:
    """NumPy's arrays and what becomes one without loss (tensors, images), but no table."""
    named = type(thing).__module__.split(".")[0]
    if named in _TABLES or hasattr(thing, "columns") or hasattr(thing, "__arrow_c_stream__"):
        return False
    return (
        isinstance(thing, np.ndarray)
        or hasattr(thing, "__array_interface__")
        or (hasattr(thing, "__array__") and hasattr(thing, "shape"))
    )


def as_array(thing: Any) -> np.ndarray[Any, Any]:
    """A tensor or what is like one as an array: taken off the graph and its device.

    Halves of NumPy and ``bfloat16``, which NumPy does not have, become float32, which holds both.

    Raises:
        TypeError, ValueError, RuntimeError: what NumPy or the tensor say where there is no array.
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
