"""Gates with ``surely`` and conditions in ``fail_if``, on planted runs and nights of jobs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import classifier_runs
import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy.stats import binomtest
from scipy.stats import t as student

import evalengine as ee
from evalengine import run
from evalengine.jobs.gates import check_gates, parse_gate, parse_gates
from evalengine.jobs.running import JobResult
from evalengine.jobs.verdicts import (
    Verdict,
    compare_with,
    compared_numbers,
    judge_gates,
    numbers_of,
    with_intervals,
)
from evalengine.schemas.errors import ResultError
from evalengine.schemas.option_values import make_options
from evalengine.statistics.intervals import clopper_pearson
from evalengine.statistics.resamples import NOT_MOVED

METRICS = ["Accuracy", "F1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ee.Scorecard]:
    folder = classifier_runs.write_all(tmp_path_factory.mktemp("planted"))
    return {
        name: ee.score(
            folder / f"{name}.parquet",
            folder / "truths.parquet",
            metrics=METRICS,
            by="kind",
            intervals=0.95,
            draws=300,
        )
        for name in classifier_runs.WRONG
    }


def verdicts(
    card: ee.Scorecard, earlier: ee.Scorecard | None, *gates: str, fail_if: tuple[str, ...] = ()
) -> list[Verdict]:
    return judge_gates(
        parse_gates(gates, fail_if),
        numbers_of(card),
        None if earlier is None else numbers_of(earlier),
        first=earlier is None,
        compare=compare_with(earlier, card),
    )


class TestGrammar:
    def test_surely_is_the_last_word(self) -> None:
        gate = parse_gate("mAP[iou=0.5] >= Baseline - 0.01 SURELY")
        assert (gate.surely, gate.margin, gate.written_bound) == (
            True,
            -0.01,
            ">= baseline - 0.01 surely",
        )
        assert parse_gate("mAP < baseline surely").margin == 0
        assert parse_gate("mAP > 0.5 surely").bound(None) == 0.5
        assert not parse_gate("mAP >= 0.5").surely

    @pytest.mark.parametrize(
        ("text", "refusal"),
        [
            ("mAP >= baseline * 0.9 surely", "gate_unfit"),
            ("mAP == 0.5 surely", "gate_unfit"),
            ("coverage >= 0.5 surely", "gate_unfit"),
            ("mAP >= 0.5surely", "gate_malformed"),
            ("mAP >= 0.5 surely not", "gate_malformed"),
            ("mAP >= surely 0.5", "gate_malformed"),
            ("mAP surely >= 0.5", "gate_malformed"),
        ],
    )
    def test_gates_that_are_refused(self, text: str, refusal: str) -> None:
        with refused(refusal):
            parse_gate(text)

    def test_the_operator_selects_the_interval_bound(self) -> None:
        for operator, end in ((">=", 1.0), (">", 1.0), ("<=", 2.0), ("<", 2.0)):
            assert parse_gate(f"m {operator} 0 surely").end(1.0, 2.0) == end


class TestPlanted:
    @pytest.mark.parametrize(
        ("name", "not_worse", "surely_worse", "worse"),
        [
            ("same", True, False, False),
            ("unlucky", True, False, True),
            ("worse", False, True, True),
            ("better", True, False, False),
        ],
    )
    def test_only_a_surely_worse_run_fails(
        self,
        runs: dict[str, ee.Scorecard],
        name: str,
        not_worse: bool,
        surely_worse: bool,
        worse: bool,
    ) -> None:
        results = verdicts(
            runs[name],
            runs["base"],
            "Accuracy >= baseline - 0.05 surely",
            fail_if=("Accuracy < baseline surely", "Accuracy < baseline"),
        )
        passed = [one.status == "passed" for one in results]
        assert passed == [not_worse, not surely_worse, not worse]

    def test_the_interval_is_that_of_the_comparison(self, runs: dict[str, ee.Scorecard]) -> None:
        (verdict,) = verdicts(runs["unlucky"], runs["base"], "Accuracy >= baseline - 0.05 surely")
        rows = ee.compare(runs["base"], runs["unlucky"], draws=300).differences
        row = rows.filter(pl.col("slice").is_null(), metric="Accuracy").row(0, named=True)
        assert (verdict.lower, verdict.upper) == (row["lower"], row["upper"])
        assert row["lower"] < row["difference"] < row["upper"]
        assert (verdict.value, verdict.baseline) == (row["b"], row["a"])
        assert (verdict.interval_of, verdict.level, verdict.n) == (
            "difference",
            0.95,
            classifier_runs.N,
        )

    def test_the_interval_of_a_number(self, runs: dict[str, ee.Scorecard]) -> None:
        metrics = runs["base"].metrics
        own = metrics.filter(pl.col("slice").is_null(), metric="Accuracy").row(0, named=True)
        shown = own["lower"], own["upper"]
        exact = binomtest(round(own["value"] * 400), 400).proportion_ci(0.95, method="exact")
        lower, upper = clopper_pearson(own["value"], own["trials"], 0.95)
        assert (lower, upper) == pytest.approx((exact.low, exact.high), rel=1e-9)
        assert lower < shown[0] < 0.9 < shown[1] < upper
        for gate, passed in (
            (f"Accuracy >= {lower} surely", True),
            (f"Accuracy >= {lower + 0.001} surely", False),
            (f"Accuracy <= {upper} surely", True),
            (f"Accuracy <= {upper - 0.001} surely", False),
            (f"Accuracy > {lower} surely", False),
        ):
            (verdict,) = verdicts(runs["base"], None, gate)
            assert (verdict.status == "passed") == passed, gate
            assert (verdict.lower, verdict.upper, verdict.interval_of) == (lower, upper, "number")

    @pytest.mark.parametrize(("rows", "passed"), [(5, False), (3000, False), (3800, True)])
    def test_no_errors_are_not_certainty(self, rows: int, passed: bool) -> None:
        """The lower bound reaches 0.999 with 3,688 correct rows."""
        table = pl.DataFrame({"actual": ["a"] * rows, "predicted": ["a"] * rows})
        card = ee.score(table, metrics=["Accuracy", "F1"], intervals=0.95, draws=20)
        exact, other = verdicts(
            card, None, "Accuracy >= 0.999 surely", "F1[average=macro] >= 0.9 surely"
        )
        assert (exact.status == "passed") == passed
        assert (exact.lower, exact.upper) == pytest.approx((0.025 ** (1 / rows), 1.0))
        assert (other.status, other.lower) == ("failed", None)
        assert NOT_MOVED in other.reason

    def test_plain_gates_next_to_surely_compare_values(self, runs: dict[str, ee.Scorecard]) -> None:
        """The plain gate may be on another metric than the gate with ``surely``."""
        plain, _ = verdicts(
            runs["unlucky"],
            runs["base"],
            "F1[average=macro] >= baseline - 0.5",
            "Accuracy >= baseline - 0.05 surely",
        )
        alone = verdicts(runs["unlucky"], runs["base"], "F1[average=macro] >= baseline - 0.5")
        assert [plain] == alone
        assert (plain.status, plain.lower) == ("passed", None)

    def test_slices_under_a_star(self, runs: dict[str, ee.Scorecard]) -> None:
        results = verdicts(runs["worse"], runs["base"], "F1[kind=*] >= baseline - 0.05 surely")
        assert [one.row for one in results] == ["kind=x", "kind=y"]
        assert {one.status for one in results} == {"failed"}
        assert [one.n for one in results] == [266, 134]
        assert all(one.lower is not None and one.lower < -0.05 for one in results)

    def test_without_an_interval_a_gate_fails_with_a_reason(self) -> None:
        bare = ee.score(
            pl.DataFrame({"datum_id": [1, 2], "actual": ["a", "b"], "predicted": ["a", "a"]}),
            metrics=["Accuracy"],
        )
        for given in ({"gates": ("Accuracy >= 0 surely",)}, {"fail_if": ("Accuracy < 0 surely",)}):
            (verdict,) = verdicts(
                bare, None, *given.get("gates", ()), fail_if=given.get("fail_if", ())
            )
            assert (verdict.status, verdict.lower) == ("failed", None)
            assert "no interval" in verdict.reason

    def test_few_datums_are_a_reason(self, tmp_path: Path) -> None:
        cards = [
            ee.score(
                classifier_runs.write(tmp_path, name, wrong, range(10)),
                tmp_path / "truths.parquet",
                metrics=["Accuracy"],
            )
            for name, wrong in (("base", {1}), ("worse", {1, 2, 3}))
        ]
        (verdict,) = verdicts(cards[1], cards[0], "Accuracy >= baseline surely")
        assert verdict.status == "failed"
        assert "10 clusters" in verdict.reason

    def test_no_earlier_run_skips(self, runs: dict[str, ee.Scorecard]) -> None:
        (verdict,) = verdicts(runs["same"], None, "Accuracy >= baseline surely")
        assert (verdict.status, verdict.reason) == ("skipped", "no earlier run")

    def test_baselines_with_other_options_are_refused(
        self, runs: dict[str, ee.Scorecard], tmp_path: Path
    ) -> None:
        folder = classifier_runs.write_all(tmp_path)
        other = ee.score(
            folder / "base.parquet", folder / "truths.parquet", metrics=METRICS, zero_division=0.0
        )
        with refused("runs_differ", option="zero_division", value=None):
            verdicts(runs["same"], other, "Accuracy >= baseline surely")

    def test_a_baseline_without_a_tally(
        self, runs: dict[str, ee.Scorecard], tmp_path: Path
    ) -> None:
        folder = runs["base"].save(tmp_path / "base")
        assert (folder / "tally.zip").is_file()
        saved = ee.load(folder)
        (verdict,) = verdicts(runs["same"], saved, "Accuracy >= baseline surely")
        assert verdict.status == "passed"
        account = json.loads((folder / "run.json").read_text())
        del account["files"]["tally.zip"]
        (folder / "run.json").write_text(json.dumps(account))
        (folder / "tally.zip").unlink()
        (verdict,) = verdicts(runs["same"], ee.load(folder), "Accuracy >= baseline surely")
        assert verdict.status == "skipped"
        assert "score it again" in verdict.reason
        with refused("not_kept", ResultError):
            verdicts(ee.load(folder), runs["base"], "Accuracy >= baseline surely")


class TestFailIf:
    @pytest.mark.parametrize(
        ("gate", "status"), [("Accuracy < 0.8", "passed"), ("Accuracy < 0.95", "failed")]
    )
    def test_a_true_condition_fails(
        self, runs: dict[str, ee.Scorecard], gate: str, status: str
    ) -> None:
        (verdict,) = verdicts(runs["base"], None, fail_if=(gate,))
        assert (verdict.status, verdict.gate) == (status, f"fail if {gate}")

    def test_an_undefined_value_fails(self) -> None:
        empty = ee.score(
            pl.DataFrame({"datum_id": [1], "actual": ["a"], "predicted": ["b"]}),
            metrics=["Precision"],
        )
        (verdict,) = verdicts(empty, None, fail_if=("Precision[label=a] < 0",))
        assert verdict.status == "failed"
        assert verdict.reason.startswith("undefined")


class TestChecked:
    """Gates are checked against the options before any table is read."""

    @pytest.mark.parametrize(
        ("gate", "options", "refusal"),
        [
            (
                "mAP[wether=rain] > 0",
                {"by": "weather"},
                {"code": "unknown_name", "value": "wether"},
            ),
            ("mAP[weather=rain] > 0", {}, {"code": "unknown_name", "value": "weather"}),
            ("mAP[iuo=0.5] > 0", {}, {"code": "unknown_name", "value": "iuo"}),
            ("F1 > 0", {"metrics": "Accuracy", "task": "classification"}, {"code": "unknown_name"}),
            ("mAR > 0", {"metrics": "mAP", "task": "detection"}, {"code": "unknown_name"}),
            ("Recall > 0", {"task": "detection"}, {"code": "unknown_name"}),
            ("ROUGE2 > 0", {"metrics": ["ROUGE1", "BLEU"]}, {"code": "unknown_name"}),
        ],
    )
    def test_gates_that_do_not_fit_the_options(
        self, gate: str, options: dict[str, Any], refusal: dict[str, Any]
    ) -> None:
        with refused(**refusal):
            check_gates(parse_gates([gate]), make_options(**options))

    @pytest.mark.parametrize(
        ("gate", "options"),
        [
            ("mAP[weather*camera='a*b', iou=0.5] > 0", {"by": "weather*camera"}),
            ("mAP[slice=weather] > 0", {"by": "weather"}),
            ("map[label_name=car, area=small, max_detections=10] > 0", {"metrics": "mAP"}),
            ("AP50 > 0", {"metrics": "mAP", "dialect": "coco"}),
            ("nDCG@10 > 0", {"metrics": "nDCG"}),
            ("P_5 > 0", {"metrics": "P@5", "task": "retrieval"}),
            ("Precision > 0", {"metrics": "PrecisionRecallF1", "task": "retrieval"}),
            ("ROUGE1 > 0", {"metrics": "ROUGE"}),
            ("coverage[metric=Bias] > 0.9", {"metrics": "Bias", "task": "judged"}),
            ("F1 > 0", {}),
        ],
    )
    def test_gates_that_fit_the_options(self, gate: str, options: dict[str, Any]) -> None:
        check_gates(parse_gates([gate]), make_options(**options))


def test_intervals_are_computed_if_gates_need_them() -> None:
    def level(*gates: str, **options: Any) -> float | None:
        return with_intervals(make_options(**options), parse_gates(gates)).intervals

    assert level("mAP >= 0.5") is None
    assert level("mAP >= 0.5 surely") == 0.95
    assert level("mAP >= 0.5 surely", intervals=0.9) == 0.9
    assert level("mAP >= baseline surely") is None  # needs only the interval of the difference
    assert level("mAP >= baseline surely", cluster="video") == 0.95


JOB = """
name = "nightly"
metrics = ["Accuracy"]
baseline = "last"
gates = ["Accuracy >= baseline - 0.06 surely"]
fail_if = ["Accuracy < baseline surely"]

[variables]
night = "1"

[inputs]
predictions = "night={night}/run.parquet"
ground_truths = "night={night}/truths.parquet"

[options]
draws = 200

[outputs]
folder = "FOLDER"
"""
Job = Callable[..., JobResult]


@pytest.fixture(params=["runs/{night}", "runs/only"])
def job(tmp_path: Path, request: pytest.FixtureRequest) -> Job:
    """Return a function that runs a night of a job; nights have separate folders or share one."""
    path = tmp_path / "job.toml"
    path.write_text(JOB.replace("FOLDER", request.param))

    def night(
        name: str, wrong: Any = None, ids: Any = range(classifier_runs.N), **given: Any
    ) -> JobResult:
        if wrong is not None:
            classifier_runs.write(tmp_path / f"night={name}", "run", wrong, ids)
        return ee.run_job(path, variables={"night": name}, **given)

    return night


def statuses(result: JobResult) -> list[str]:
    return [one.status for one in result.verdicts]


class TestNights:
    def test_a_worse_night_is_no_baseline(self, job: Job) -> None:
        assert statuses(job("1", classifier_runs.WRONG["base"])) == ["skipped", "skipped"]
        assert statuses(job("2", classifier_runs.WRONG["unlucky"])) == ["passed", "passed"]
        worse = job("3", classifier_runs.WRONG["worse"])
        assert statuses(worse) == ["failed", "failed"]
        repeated = job("3")
        assert (repeated.ran, statuses(repeated)) == (False, ["failed", "failed"])
        fourth = job("4", classifier_runs.WRONG["worse"] - {1})
        assert statuses(fourth) == ["failed", "failed"]  # compared with the second, not the third
        assert fourth.verdicts[0].baseline == pytest.approx(0.8925)
        forced = job("4", force=True)
        assert forced.ran
        assert forced.verdicts == fourth.verdicts

    def test_records(self, job: Job) -> None:
        job("1", classifier_runs.WRONG["base"])
        result = job("2", classifier_runs.WRONG["unlucky"])
        gates = json.loads((result.plan.folder / "job.json").read_text())["gates"]
        assert [one["gate"] for one in gates] == [
            "Accuracy >= baseline - 0.06 surely",
            "fail if Accuracy < baseline surely",
        ]
        for one in gates:
            assert one["lower"] < one["value"] - one["baseline"] < one["upper"]
            assert (one["interval_of"], one["level"], one["n"]) == (
                "difference",
                0.95,
                classifier_runs.N,
            )
        assert ee.load(result.plan.folder).metrics["lower"].null_count() == 0

    def test_a_repeated_run_has_the_same_verdicts(self, job: Job) -> None:
        job("1", classifier_runs.WRONG["base"])
        second = job("2", classifier_runs.WRONG["unlucky"])
        job("3", classifier_runs.WRONG["better"])
        if second.plan.folder.name == "2":  # otherwise the third run has replaced it
            repeated = job("2")
            assert (repeated.ran, repeated.verdicts) == (False, second.verdicts)
            # A changed gate is computed again, against the baseline of that run.
            path = second.plan.loaded.path
            path.write_text(path.read_text().replace("- 0.06", "- 0.005"))
            changed = job("2")
            assert (changed.ran, statuses(changed)) == (False, ["failed", "passed"])
            assert changed.verdicts[0].lower == second.verdicts[0].lower

    @pytest.mark.parametrize(("wrong", "status"), [(10, "passed"), (100, "failed")])
    def test_data_that_grew(self, job: Job, wrong: int, status: str) -> None:
        """Common datums cancel; errors on only the new datums fail the gate."""
        base = classifier_runs.WRONG["base"]
        job("1", base)
        grown = range(classifier_runs.N + 100)
        result = job("2", base | set(range(classifier_runs.N, classifier_runs.N + wrong)), grown)
        assert statuses(result) == [status, status]
        one = result.verdicts[0]
        assert one.value == result.card.value("Accuracy")
        assert (one.baseline, one.n) == (0.9, 500)
        assert re.findall(r"\d+", one.reason) == ["400", "500", "400"]
        assert one.lower is not None
        assert one.upper is not None
        # 0.2 x the variance of 100 new and 400 old datums, and that of the share of new ones.
        p, q = wrong / 100, 0.1
        within = 0.2**2 * (p * (1 - p) / 100 + q * (1 - q) / 400)
        se = (within + 0.2 * 0.8 * (p - q) ** 2 / 500) ** 0.5
        assert one.upper - one.lower == pytest.approx(2 * 1.96 * se, rel=0.25)

    def test_other_data_is_resampled_independently(self, job: Job) -> None:
        base = classifier_runs.WRONG["base"]
        job("1", base)
        shifted = {i + classifier_runs.N for i in base}
        result = job("2", shifted, range(classifier_runs.N, 2 * classifier_runs.N))
        one = result.verdicts[0]
        assert re.findall(r"\d+", one.reason) == ["0", "400", "400"]
        # Equal accuracies of two independent sets of 400: 2 x sqrt(2 x .9 x .1 / 400)
        assert one.lower == pytest.approx(-0.042, abs=0.012)
        assert one.upper == pytest.approx(0.042, abs=0.012)
        assert statuses(result) == ["passed", "passed"]

    def test_a_last_run_without_a_tally_skips_gates(self, job: Job) -> None:
        """Otherwise no later night could pass."""
        first = job("1", classifier_runs.WRONG["base"])
        account = json.loads((first.plan.folder / "run.json").read_text())
        del account["files"]["tally.zip"]
        (first.plan.folder / "run.json").write_text(json.dumps(account))
        (first.plan.folder / "tally.zip").unlink()
        second = job("2", classifier_runs.WRONG["same"])
        assert statuses(second) == ["skipped", "skipped"]
        assert "no tally" in second.verdicts[0].reason
        assert statuses(job("3", classifier_runs.WRONG["same"])) == ["passed", "passed"]


def test_a_named_baseline_without_a_tally_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier_runs.write(tmp_path / "night=1", "run", classifier_runs.BASE)
    text = JOB.replace("FOLDER", "runs/{night}")
    (tmp_path / "job.toml").write_text(text)
    made = ee.run_job(tmp_path / "job.toml").plan.folder
    release = tmp_path / "release"
    shutil.copytree(made, release)
    account = json.loads((release / "run.json").read_text())
    del account["files"]["tally.zip"]
    (release / "run.json").write_text(json.dumps(account))
    (release / "tally.zip").unlink()
    (tmp_path / "job.toml").write_text(text.replace('"last"', '"release"'))
    monkeypatch.setattr(run, "score_tables", None)
    with refused("not_kept", ResultError):
        ee.run_job(tmp_path / "job.toml", force=True)


class TestManyRows:
    """Conditions in ``fail_if`` are adjusted for multiple rows; gates are not."""

    LABELS = 40

    def card(self, seed: int, bad: float | None = None, each: int = 25) -> ee.Scorecard:
        rng = np.random.default_rng(seed)
        label = np.repeat([f"c{i:02}" for i in range(self.LABELS)], each)
        p = np.where(label == "c07", 0.8 if bad is None else bad, 0.8)
        right = rng.random(label.size) < p
        table = pl.DataFrame({"target": label, "prediction": np.where(right, label, "other")})
        return ee.score(table, metrics=["Recall"], task="classification", intervals=0.95, draws=20)

    def test_no_row_fails_by_chance(self) -> None:
        condition = ("Recall[label=*, average=null] < 0.8 surely",)
        alarms = [
            any(
                one.status == "failed"
                for one in verdicts(self.card(i), None, fail_if=condition)
                if one.lower is not None
            )
            for i in range(25)
        ]
        assert sum(alarms) <= 2  # unadjusted: about 10 of 25
        results = {one.row: one for one in verdicts(self.card(0, 0.2), None, fail_if=condition)}
        assert [
            row for row, one in results.items() if one.status == "failed" and one.lower is not None
        ] == ["label=c07"]

    def test_p_values_of_proportions_are_exact(self) -> None:
        card = self.card(3)
        results = verdicts(card, None, fail_if=("Recall[label=*, average=null] < 0.8 surely",))
        p = [
            binomtest(round(one.value * 25), 25, 0.8, "less").pvalue
            for one in results
            if one.lower is not None
        ]  # type: ignore[operator]
        assert [one.p for one in results if one.lower is not None] == pytest.approx(p)

    def test_gates_of_comparisons_use_students_t(self) -> None:
        """With few clusters, p equals that of the gate on runs."""
        rng = np.random.default_rng(1)
        doc = np.repeat(np.arange(6), 20)
        first = pl.DataFrame({"target": 0.0, "prediction": rng.normal(2, 0.1, 120), "doc": doc})
        second = first.with_columns(prediction=pl.Series(rng.normal(rng.normal(2.1, 0.1, 6)[doc])))
        options: dict[str, Any] = {
            "metrics": ["MAE"], "task": "regression", "intervals": 0.95, "cluster": "doc",
            "draws": 100,
        }  # fmt: skip
        cards = [ee.score(one, **options) for one in (first, second)]
        of_runs = verdicts(cards[1], cards[0], fail_if=("MAE > baseline surely",))[0]
        earlier, run, margins = compared_numbers(ee.compare(*cards, draws=100), None)
        (verdict,) = judge_gates(
            parse_gates([], ["MAE > baseline surely"]), run, earlier, compare=lambda m, s: margins
        )
        assert verdict.p == pytest.approx(of_runs.p)
        assert verdict.p is not None

    def test_a_budget_is_shared_by_all_conditions(self) -> None:
        card = self.card(3)
        gates = parse_gates(
            ["Recall[label=c07] >= 0.1 surely"],
            ["Recall[label=*, average=null] < 0.9 surely", "Recall[average=macro] < 0.7 surely"],
        )
        results = judge_gates(gates, numbers_of(card), budget=0.1)
        shared = [one for one in results if one.gate.startswith("fail if") and one.p is not None]
        assert len(shared) == 41
        p = np.sort([one.p for one in shared])
        failed = sum(one.status == "failed" for one in shared)
        least = next(i for i, one in enumerate(p) if one * (41 - i) > 0.1)
        assert 0 < failed == least < 40
        assert "false_alarms" in shared[0].reason
        (demand,) = [one for one in results if not one.gate.startswith("fail if")]
        assert (demand.status, "Holm" in demand.reason) == ("passed", False)

    @pytest.mark.parametrize("of_difference", [False, True])
    def test_few_clusters_use_students_t(self, of_difference: bool) -> None:
        """p is that of Student's t, consistent with the interval's bound."""
        rng = np.random.default_rng(1)
        doc = np.repeat(np.arange(6), 20)
        error = rng.normal(rng.normal(2, 0.3, 6)[doc], 0.1)
        frame = pl.DataFrame({"target": 0.0, "prediction": error, "doc": doc, "part": doc % 2})
        options: dict[str, Any] = {
            "metrics": ["MAE"], "task": "regression", "intervals": 0.95, "cluster": "doc",
            "method": "normal", "draws": 100, "by": "part",
        }  # fmt: skip
        card = ee.score(frame, **options)
        earlier = ee.score(frame.with_columns(prediction=0.0), **options) if of_difference else None
        bound = "baseline + 0.5" if of_difference else "0.5"
        for name, df in (("MAE", 5), ("MAE[part=0]", 2)):
            gate = f"{name} > {bound} surely"
            (verdict,) = verdicts(card, earlier, fail_if=(gate,))
            value = verdict.value if earlier is None else verdict.value - verdict.baseline
            t = student.ppf(0.975, df) * (value - 0.5) / (value - verdict.lower)
            assert verdict.p == pytest.approx(student.sf(t, df))

    def test_gates_are_not_adjusted(self) -> None:
        card = self.card(4)
        results = [
            one
            for one in verdicts(card, None, "Recall[label=*, average=null] >= 0.5 surely")
            if one.lower is not None
        ]
        assert all((one.status == "passed") == (one.lower >= 0.5) for one in results)  # type: ignore[operator]
        assert all("not adjusted" in one.reason for one in results)

    def test_one_row_is_judged_by_its_interval(self) -> None:
        for bound in (0.6, 0.7, 0.8, 0.9):
            (verdict,) = verdicts(
                self.card(5), None, fail_if=(f"Recall[label=c01] < {bound} surely",)
            )
            assert verdict.upper is not None
            assert (verdict.status == "failed") == (verdict.upper < bound) == (verdict.p < 0.025)  # type: ignore[operator]
