"""Type alias of arrays, in a separate module because other contracts do not import NumPy."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
"""A NumPy array of any shape and dtype; docstrings state both."""
