"""Weights of classes that differ by many orders of magnitude."""

from __future__ import annotations

import polars as pl
import pytest

import evalengine as ee


@pytest.mark.parametrize("small", [1.0, 1e-6, 1e-14, 1e-16, 1e-30])
def test_agreement_does_not_lose_the_lighter_class(small: float) -> None:
    """Two datums of the light class, one of them right; two of the heavy class, both right."""
    table = pl.DataFrame(
        {"actual": [1, 1, 0, 0], "predicted": [1, 0, 0, 0], "weight": [small, small, 1.0, 1.0]}
    )
    card = ee.score(table, metrics=["MCC", "CohenKappa"])
    # By hand: 1 / sqrt(2 + e), and 1 - e (2 + 2 e) / (2 e (2 + e) + 2 e) for weights e and 1.
    assert card.value("MCC") == pytest.approx((2 + small) ** -0.5, rel=1e-14)
    kappa = 1 - (2 + 2 * small) / (2 * (2 + small) + 2)
    assert card.value("CohenKappa") == pytest.approx(kappa, rel=1e-14)
