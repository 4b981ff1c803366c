"""Ranks of points among scores, without a sort of them all, against a sort of them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classification.strategies import modest
from hypothesis import given
from hypothesis import strategies as st

from evalengine.kernels.near_points import near_points
from evalengine.tally import columns
from evalengine.tally.columns import ranks

Array = np.ndarray[Any, Any]

TINY = np.nextafter(0.0, 1.0)
VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, TINY, -TINY, 1e-310, 0.25, 0.5, 1.0, 1e300, -1e300]),
    st.sampled_from([1.0 + 2.0**-52, 1.0 - 2.0**-53, np.finfo(float).max, np.finfo(float).min]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1),
)
POINTS = VALUES | st.sampled_from([np.inf, -np.inf])


def assert_ranks(value: Array, point: Array, found: tuple[Array, Array]) -> None:
    """Scores below and at most each point are those of plain comparisons."""
    assert found[0].tolist() == (value < point[:, None]).sum(axis=1).tolist()
    assert found[1].tolist() == (value <= point[:, None]).sum(axis=1).tolist()


@modest
@given(st.lists(VALUES, max_size=60), st.lists(POINTS, min_size=1, max_size=5), st.data())
def test_every_order_of_magnitude(
    values: list[float], points: list[float], data: st.DataObject
) -> None:
    """Whatever is near and whatever is not, with points that are values themselves."""
    drawn = data.draw(st.lists(st.sampled_from(values), max_size=3)) if values else []
    value, point = np.array(values, np.float64), np.array(points + drawn)
    found = near_points(value, point)
    if found is None:
        return
    near, below = found
    assert set(near.tolist()) <= set(value.tolist())
    assert_ranks(value, point, (below + (near < point[:, None]).sum(1),
                                below + (near <= point[:, None]).sum(1)))  # fmt: skip


def drawn(kind: str, n: int) -> Array:
    """So many scores of a kind."""
    rng = np.random.default_rng(7)
    normal = rng.standard_normal(n)
    kinds = {
        "probabilities": 1 / (1 + np.exp(4 - 2 * normal)),
        "zeros": np.where(normal < 0.5, 0.0, np.abs(normal)),
        "logarithms": -np.exp(normal),
        "logits": normal * 3 - 2,
        "single": normal.astype(np.float32).astype(np.float64),
        "few": np.round(normal, 1),
        "one": np.full(n, 0.5),
        "far apart": normal * 10.0 ** rng.integers(-200, 200, n),
        "an outlier": np.r_[1e300, normal[1:]],
        "largest": normal / np.abs(normal).max() * np.finfo(np.float64).max,
    }
    return kinds[kind]


KINDS = [
    "probabilities", "zeros", "logarithms", "logits", "single", "few", "one", "far apart",
    "an outlier", "largest",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_points", [0, 1, 40, 900])
def test_scores_of_every_kind(kind: str, n_points: int) -> None:
    """More values than are looked at together, some of them points, beside round thresholds."""
    value = drawn(kind, 10_007)
    cuts = np.array([-1.0, 0.0, 0.05, 0.5, 0.95])
    point = np.r_[np.sort(value[np.arange(n_points) * 11]), cuts]
    order = np.sort(value)
    before = value.copy()
    below, at_most = ranks(value, point)
    assert below.tolist() == np.searchsorted(order, point, "left").tolist()
    assert at_most.tolist() == np.searchsorted(order, point, "right").tolist()
    assert value.tobytes() == before.tobytes()


def test_few_are_near() -> None:
    """A sort is saved where positives are few, and not tried where all scores are near one."""
    value = drawn("probabilities", 100_000)
    found = near_points(value, value[::100])
    assert found is not None
    assert found[0].size < value.size / 4
    found = near_points(drawn("logits", 100_000), drawn("logits", 100_000)[::100])
    assert found is not None
    assert found[0].size < value.size / 4
    assert near_points(drawn("few", 100_000), drawn("few", 100_000)[::100]) is None


def test_no_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label that is never true, without thresholds; few scores are sorted, not looked through."""
    for found in ranks(np.ones(5000), np.zeros(0)):
        assert found.tolist() == []
    monkeypatch.setattr(columns, "near_points", None)
    value = np.array([0.5, 0.25, 0.5])
    assert_ranks(value, np.array([0.5]), ranks(value, np.array([0.5])))
