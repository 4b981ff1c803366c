"""Changes between nights: false alarms, power, and the confidence sequences behind them."""

from __future__ import annotations

import numpy as np
import pytest

from evalengine.statistics import sequences as module
from evalengine.statistics.sequences import (
    Change,
    are_few,
    asymptotic,
    betting,
    changes,
    differ,
    log_capital,
    reach_of,
)


def counts_of(values: np.ndarray, trials: np.ndarray) -> np.ndarray:
    return module._counts(values, trials)


class TestSequences:
    """The vectorised sequences equal those of gates with ``always``."""

    def test_interpolated_reaches_are_not_smaller_than_exact_ones(self) -> None:
        reaches = module._reaches(400, 0.01)
        assert np.isinf(reaches[:10]).all()
        exact = np.array(
            [reach_of(t, 0.01, min(t - 1, module._LARGEST_DF)) for t in range(10, 401)]
        )
        assert (reaches[10:] >= exact - 1e-12).all()
        assert (reaches[10:] <= exact * 1.1).all()

    def test_capital_and_bounds_are_those_of_betting(self) -> None:
        right, wrong = np.array([80.0, 3.0, 20.0]), np.array([20.0, 1.0, 0.0])
        counts = counts_of(right / (right + wrong), right + wrong)
        mean = np.array([0.7, 0.4, 0.9])
        found = module._log_capital(right, wrong, mean)
        expected = [log_capital(row, m) for row, m in zip(counts, mean, strict=True)]
        assert found == pytest.approx(expected)
        bounds = [betting(row, 0.95) for row in counts]
        least = np.log(2 / 0.05)
        assert module._lower_bounds(right, wrong, least) == pytest.approx(
            [low for low, _ in bounds]
        )
        assert 1 - module._lower_bounds(wrong, right, least) == pytest.approx(
            [high for _, high in bounds]
        )

    def test_errors_add_up_to_half(self) -> None:
        k = np.arange(1, 1 << 14)
        spent = sum(
            module._alpha_of(power, 0.05) * n
            for power, n in zip(*np.unique(module._power(k), return_counts=True), strict=True)
        )
        assert 0.02 < spent < 0.025


class TestTheRule:
    """The fast search equals a loop over all pairs of sequences."""

    def test_numbers(self) -> None:
        rng = np.random.default_rng(0)
        values = rng.normal(0, 1, (40, 60))
        values[:, 30:] += rng.uniform(0, 5, 40)[:, None]
        alpha, nights = 0.01, values.shape[1]

        def certain(row: np.ndarray) -> int:
            seen = [
                k + w - 1
                for w in module._windows(nights - 9, 10)
                for k in range(10, nights - w + 1)
                if disjoint(
                    asymptotic(row[:k], 1 - alpha / 2),
                    asymptotic(row[k : k + w], 1 - module._alpha_of(module._power(k), alpha)),
                )
            ]
            return min(seen, default=-1)

        expected = [certain(row) for row in values]
        assert 5 < sum(one > 0 for one in expected) < 40
        assert module._certain(values, alpha).tolist() == expected

    def test_shares(self) -> None:
        rng = np.random.default_rng(1)
        alpha, nights = 0.01, 24
        trials = np.full(nights, 100.0)
        rates = np.repeat(rng.uniform(0.6, 0.9, (30, 2)), 12, axis=1)
        values = rng.binomial(100, rates) / 100

        def certain(row: np.ndarray) -> int:
            counts = counts_of(row, trials)
            bounds = [betting(counts[:k].sum(axis=0), 1 - alpha / 2) for k in range(1, nights + 1)]
            found = []
            for w in module._windows(nights - 2, 3):
                for k in range(3, nights - w + 1):
                    after = counts[k : k + w].sum(axis=0)
                    (low, high), least = bounds[k - 1], module._alpha_of(module._power(k), alpha)
                    least = np.log(2 / least)
                    if (high < 1 and log_capital(after, high) >= least) or (
                        low > 0 and log_capital(after[::-1], 1 - low) >= least
                    ):
                        found.append((k + w - 1, k))
            sound = (
                seen
                for seen, k in sorted(found)
                if not differ(counts[:k]) and not differ(counts[k : seen + 1])
            )
            return next(sound, -1)

        expected = [certain(row) for row in values]
        assert 5 < sum(one > 0 for one in expected) < 30
        assert [module._certain_share(row, trials, alpha) for row in values] == expected

    def test_both_sequences_of_shares_share_the_errors(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[float] = []
        monkeypatch.setattr(
            module, "_certain_number", lambda row, alpha, n: given.append(alpha) or -1
        )
        monkeypatch.setattr(
            module, "_certain_share", lambda row, n, alpha: given.append(alpha) or -1
        )
        values = np.full((1, 8), 0.5)
        changes(values, np.full((1, 8), 10.0))
        assert given == pytest.approx([0.025, 0.025])
        changes(values)
        assert given[2:] == pytest.approx([0.05])

    def test_datums_are_used_up_to_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        values = np.array([[0.9] * 4 + [0.6] * 4])
        trials = np.full(values.shape, 500.0)
        for most, n in ((8, 1), (7, 0)):
            monkeypatch.setattr(module, "MOST_CELLS", most)
            assert len(changes(values, trials)[0]) == n


def disjoint(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return first[1] < second[0] or second[1] < first[0]


class TestErrors:
    def test_numbers_that_do_not_change(self) -> None:
        rng = np.random.default_rng(1)
        named = sum(
            bool(one) for row in rng.normal(0.7, 0.01, (200, 60)) for one in changes(row[None])
        )
        assert named <= 10

    def test_shares_that_do_not_change(self) -> None:
        rng = np.random.default_rng(2)
        shares = rng.binomial(50, 0.9, (150, 40)) / 50
        trials = np.full((1, 40), 50.0)
        assert sum(bool(changes(row[None], trials)[0]) for row in shares) <= 8

    def test_many_numbers_share_the_errors(self) -> None:
        rng = np.random.default_rng(3)
        found = changes(rng.normal(0.7, 0.01, (2000, 100)))
        assert sum(map(bool, found)) == 0

    def test_nights_with_extra_variance(self) -> None:
        """Shares that vary between nights by more than their datums do not change every night."""
        rng = np.random.default_rng(4)
        rates = np.clip(0.8 + rng.normal(0, 0.05, (60, 50)), 0, 1)
        shares = np.round(1000 * rates) / 1000
        named = sum(len(changes(row[None], np.full((1, 50), 1000.0))[0]) for row in shares)
        assert named <= 6


class TestPower:
    def test_a_step(self) -> None:
        rng = np.random.default_rng(5)
        values = rng.normal(0.7, 0.01, (20, 60))
        values[:, 30:] -= 0.05
        for [change] in (changes(row[None])[0] for row in values):
            assert abs(change.at - 30) <= 1
            assert change.seen >= 39
            assert change.before - change.after == pytest.approx(0.05, abs=0.015)

    @pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
    def test_a_step_of_large_numbers(self, offset: float) -> None:
        rng = np.random.default_rng(5)
        values = offset + np.where(np.arange(40) < 20, 0.0, 1.0) + rng.normal(0, 0.1, 40)
        [[change]] = changes(values[None])
        assert change.at == 20
        assert change.after - change.before == pytest.approx(1, abs=0.1)

    def test_a_dip_that_recovers_is_two_changes(self) -> None:
        rng = np.random.default_rng(6)
        values = rng.normal(0.7, 0.005, 90)
        values[30:60] -= 0.1
        [found] = changes(values[None])
        assert [change.at for change in found] == [30, 60]
        assert found[0].after == pytest.approx(found[1].before)

    def test_shares_of_datums_need_few_nights(self) -> None:
        values = np.array([[0.9] * 4 + [0.6] * 4])
        [[change]] = changes(values, np.full(values.shape, 500.0))
        assert change.at == 4
        assert change.seen == 6

    def test_equal_numbers(self) -> None:
        values = np.array([[0.7] * 12 + [0.75] * 12])
        assert changes(values) == [[Change(12, 21, pytest.approx(0.7), pytest.approx(0.75))]]
        assert changes(np.full((1, 50), 0.7)) == [[]]
        once = np.array([[0.7] * 12 + [0.75] + [0.7] * 12])
        assert changes(once) == [[]]

    def test_missing_nights_are_skipped(self) -> None:
        rng = np.random.default_rng(7)
        values = np.full((1, 80), np.nan)
        values[0, ::2] = rng.normal(0.7, 0.01, 40)
        values[0, 40::2] += 0.1
        [[change]] = changes(values)
        assert change.at == 40

    def test_one_of_many(self) -> None:
        rng = np.random.default_rng(8)
        values = rng.normal(0.7, 0.01, (500, 100))
        values[123, 50:] -= 0.1
        found = changes(values)
        assert [i for i, one in enumerate(found) if one] == [123]
        assert found[123][0].at == 50


@pytest.mark.parametrize("nights", [0, 1, 2, 19])
def test_few_nights(nights: int) -> None:
    values = np.arange(float(nights))[None]
    assert changes(values) == [[]]
    assert changes(np.zeros((0, nights))) == []


def test_numbers_of_few_nights() -> None:
    """Three nights per side are enough for shares of datums, ten for other values."""
    gap = [0.5, np.nan, *[0.5] * 4]
    for nights, trials, few in (
        (6, [100.0] * 6, False),
        (5, [100.0] * 5, True),
        (19, None, True),
        (20, None, False),
        (6, [100.0] * 5 + [np.nan], True),
    ):
        values = np.full((1, nights), 0.5)
        given = None if trials is None else np.array([trials])
        assert are_few(values, given).tolist() == [few]
    assert are_few(np.array([gap]), np.full((1, 6), 100.0)).tolist() == [True]
