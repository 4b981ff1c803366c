"""Models with several seeds: averages, and variances over seeds and datums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy import stats

import evalengine as ee
from evalengine.cli import main

N = 400


def seeds(model: int, many: int, spread: float, gain: float = 0.0) -> list[pl.DataFrame]:
    """Return tables of a model's seeds; the difficulty of questions is the same for all."""
    ease = np.random.default_rng(0).normal(0.6, 0.25, N)
    rng = np.random.default_rng(model)
    target = np.random.default_rng(1).choice(["a", "b"], N)
    other = np.where(target == "a", "b", "a")
    return [
        pl.DataFrame(
            {
                "datum_id": range(N),
                "target": target,
                "prediction": np.where(
                    rng.random(N) < ease + gain + rng.normal(0, spread), target, other
                ),
            }
        )
        for _ in range(many)
    ]


def right(tables: list[pl.DataFrame]) -> np.ndarray[Any, Any]:
    return np.stack([(one["target"] == one["prediction"]).to_numpy() for one in tables]) * 1.0


def compared(first: Any, second: Any, **options: Any) -> ee.Comparison:
    names = ["a"] * len(first) + ["b"] * len(second)
    options = {"metrics": ["Accuracy"], "task": "classification", "draws": 2000} | options
    return ee.compare(*first, *second, names=names, **options)


def by_hand(first: Any, second: Any) -> tuple[float, float, float]:
    """Compute the difference, its standard error over seeds and datums, and degrees of freedom."""
    of_a, of_b = right(first), right(second)
    gone = of_b.mean(axis=0) - of_a.mean(axis=0)
    of_datums = gone.var() / N
    between, shared = 0.0, 0.0
    parts = of_datums**2 / (N - 1)
    for each in (of_a, of_b):
        many = len(each)
        own = each.mean(axis=1).var(ddof=1) / many
        # Seeds on single datums: the residual variance without the means of both.
        separate = each - each.mean(axis=1, keepdims=True) - each.mean(axis=0) + each.mean()
        shared += (separate**2).sum() / (many - 1) / N / N / many
        between += own
        parts += own**2 / (many - 1)
    variance = of_datums + max(0.0, between - shared)
    return gone.mean(), variance**0.5, max(1, int(variance**2 / parts))


@pytest.mark.parametrize(("many", "other"), [(5, 5), (2, 4)])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_variance_over_seeds_and_datums(many: int, other: int, spread: float) -> None:
    first, second = seeds(3, many, spread), seeds(4, other, spread, 0.05)
    result = compared(first, second)
    row = result.differences.row(0, named=True)
    gap, se, df = by_hand(first, second)
    assert (row["a"], row["b"]) == pytest.approx((right(first).mean(), right(second).mean()))
    assert row["difference"] == pytest.approx(gap)
    assert row["se"] == pytest.approx(se, rel=0.06)  # of 2,000 resamples
    assert row["p"] == pytest.approx(2 * stats.t.sf(abs(gap) / row["se"], df), rel=0.1)
    reach = (row["upper"] - row["lower"]) / 2 / row["se"]
    assert reach == pytest.approx(stats.t.ppf(0.975, df), rel=0.05)
    assert (row["lower"] + row["upper"]) / 2 == pytest.approx(gap)
    assert result.test == "replicates"
    assert any("replicates" in note for note in result.notes)


def test_seeds_that_differ_widen_the_interval() -> None:
    alike, separate = (
        compared(seeds(3, 5, spread), seeds(4, 5, spread)).differences["se"][0]
        for spread in (0.0, 0.2)
    )
    assert separate > 1.5 * alike


def test_a_run_that_is_given_twice_is_a_warning() -> None:
    first, second = seeds(5, 2, 0.1), seeds(6, 2, 0.1)
    assert not compared(first, second, draws=50).warnings
    twice = compared(first, [second[0], second[0].sample(fraction=1, shuffle=True)], draws=50)
    assert len(twice.warnings) == 1
    assert "b 1 and b 2" in twice.warnings[0]


def test_swapped_models_and_orders(tmp_path: Path) -> None:
    first, second = seeds(5, 3, 0.1), seeds(6, 3, 0.1, 0.05)
    row = compared(first, second).differences.row(0, named=True)
    other = compared(second, first).differences.row(0, named=True)
    assert (other["p"], other["difference"]) == pytest.approx((row["p"], -row["difference"]))
    assert (other["wins"], other["losses"]) == (row["losses"], row["wins"])
    mixed = [one.sample(fraction=1.0, shuffle=True, seed=1) for one in first[::-1]]
    again = compared(mixed, second).differences.row(0, named=True)
    assert again["p"] == pytest.approx(row["p"])
    assert again["lower"] == pytest.approx(row["lower"])


def test_flips_are_of_averages() -> None:
    first, second = seeds(5, 3, 0.1), seeds(6, 3, 0.1)
    result = compared(first, second)
    gone = right(second).mean(axis=0) - right(first).mean(axis=0)
    assert result.flips.height == (np.abs(gone) > 1e-9).sum()
    row = result.differences.row(0, named=True)
    assert (row["wins"], row["losses"]) == ((gone > 1e-9).sum(), (gone < -1e-9).sum())


class TestContract:
    @pytest.fixture
    def tables(self, tmp_path: Path) -> list[Path]:
        """Return the seeds of two models as a table with one column each."""
        paths = []
        for model in (5, 6):
            parts = [one.with_columns(seed=i) for i, one in enumerate(seeds(model, 3, 0.1))]
            paths.append(tmp_path / f"model{model}.parquet")
            pl.concat(parts).write_parquet(paths[-1])
        return paths

    def test_a_column_is_the_same_as_names(self, tables: list[Path]) -> None:
        result = ee.compare(*tables, replicate="seed", metrics=["Accuracy", "F1"], draws=100)
        named = compared(seeds(5, 3, 0.1), seeds(6, 3, 0.1), metrics=["Accuracy", "F1"], draws=100)
        assert [*result.runs] == ["model5", "model6"]
        same = ["difference", "se", "lower", "p", "p_adjusted"]
        assert result.differences.select(same).equals(named.differences.select(same))

    def test_partitions_of_paths(self, tmp_path: Path) -> None:
        for model in (5, 6):
            for i, one in enumerate(seeds(model, 3, 0.1)):
                folder = tmp_path / f"model{model}" / f"seed={i}"
                folder.mkdir(parents=True)
                one.write_parquet(folder / "p.parquet")
        paths = [str(tmp_path / f"model{model}" / "seed=*" / "p.parquet") for model in (5, 6)]
        result = ee.compare(
            *paths, replicate="seed", names=["a", "b"], metrics="Accuracy", draws=50
        )
        assert result.differences["a"][0] == pytest.approx(right(seeds(5, 3, 0.1)).mean())

    def test_the_command(self, tables: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
        paths = [str(path) for path in tables]
        gate = ["--fail-under", "Accuracy >= baseline - 0.5 surely"]
        arguments = ["--replicate", "seed", "--metric", "Accuracy", "--draws", "50", *gate]
        assert main(["compare", *paths, *arguments]) == 0
        captured = capsys.readouterr()
        assert "averages of replicates (model5 3, model6 3)" in " ".join(captured.out.split())
        assert "gates: 1 passed" in captured.err

    def test_saved_runs_of_one_name(self, tmp_path: Path) -> None:
        folders = []
        for model in (5, 6):
            for i, one in enumerate(seeds(model, 2, 0.1)):
                card = ee.score(one, metrics=["Accuracy"], task="classification")
                folders.append(card.save(tmp_path / f"{model}-{i}"))
        result = ee.compare(*folders, names=["a", "a", "b", "b"], draws=50)
        named = compared(seeds(5, 2, 0.1), seeds(6, 2, 0.1), draws=50)
        assert result.differences.equals(named.differences)
        with refused("not_kept", ee.InputError):
            ee.compare(*folders[::2], replicate="seed")

    def test_refusals(self, tables: list[Path]) -> None:
        first, second = (pl.read_parquet(path) for path in tables)
        with refused("column_missing", ee.InputError):
            ee.compare(first, second, replicate="epoch")
        with refused("too_few_replicates", ee.InputError):
            ee.compare(first, second.filter(seed=0), replicate="seed")
        with refused("too_few_replicates"):
            ee.compare(*seeds(5, 2, 0.1), *seeds(6, 1, 0.1), names=["a", "a", "b"])
        with refused("options_conflict"):
            ee.compare(first, second, replicate="seed", test="t")


def test_labels_and_slices_of_every_seed() -> None:
    parts = {"part": ["x", "y"] * (N // 2)}
    first, second = (
        [one.with_columns(**{name: pl.Series(v) for name, v in parts.items()}) for one in side]
        for side in (seeds(5, 3, 0.1), seeds(6, 3, 0.1))
    )
    rows = compared(first, second, metrics=["Accuracy", "Recall"], by="part", draws=50).differences
    half = rows.filter(metric="Accuracy", slice_value="x").row(0, named=True)
    assert half["a"] == pytest.approx(right(first)[:, ::2].mean())
    assert rows.filter(metric="Recall", label_value="a")["p"].null_count() == 0


def test_identical_averages_without_a_p_value_are_equal() -> None:
    target = ["a", "b"] * 20
    tables = [
        pl.DataFrame(
            {"target": target, "prediction": np.random.default_rng(seed).choice(["a", "b"], 40)}
        )
        for seed in (1, 2)
    ]
    result = compared(tables, tables)
    assert result.differences.select("difference", "p").row(0) == (0.0, None)
    assert result.verdict == f"a and b are equal: Accuracy is {right(tables).mean():.4f} in both."
