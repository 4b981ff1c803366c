"""Intrinsics of the compiler return the values of their Python equivalents."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evalengine.kernels.bits import lowest, set_bits, word
from evalengine.kernels.jit import kernel
from evalengine.kernels.label_maps import LANES, borders


@kernel
def _found(a: Any, b: Any, at: Any, out: Any) -> None:
    out[0] = borders(a, b, at)
    out[1] = word(a, at)
    out[2], out[3] = lowest(out[0]), set_bits(out[0])


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 70), st.sampled_from([0.0, 0.02, 0.5, 1.0]))
def test_compiled_as_in_python(seed: int, at: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = (
        np.cumsum(rng.random(at + LANES) < share).astype(np.uint8) * np.uint8(37) for _ in range(2)
    )
    here = np.uint64(at)
    compiled = np.zeros(4, np.uint64)
    _found(a, b, here, compiled)
    changed = borders(a, b, here)
    expected = [changed, word(a, here), lowest(changed), set_bits(changed)]
    assert compiled.tolist() == [int(one) for one in expected]
    one_by_one = [
        k for k in range(LANES) if a[at + k] != a[at + k - 1] or b[at + k] != b[at + k - 1]
    ]
    assert int(changed) == sum(1 << k for k in one_by_one)
    assert int(lowest(changed)) == (one_by_one[0] if one_by_one else 64)
    assert int(set_bits(changed)) == len(one_by_one)


def test_pickled_by_name() -> None:
    for operation in (borders, lowest, set_bits, word):
        assert pickle.loads(pickle.dumps(operation)) is operation
