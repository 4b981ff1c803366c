"""Gates with ``always``, which accumulate the nights of a job."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.jobs import loading
from evalengine.jobs.gates import check_gates, parse_gate
from evalengine.jobs.loading import load_job
from evalengine.jobs.running import JobResult
from evalengine.jobs.verdicts import Verdict
from evalengine.schemas.option_values import make_options
from evalengine.schemas.options import FIELDS, Options
from evalengine.statistics.sequences import asymptotic, betting, counted

JOB = """
name = "watch"
metrics = ["Accuracy", "F1"]
model = "v1"
gates = ["Accuracy >= 0.8 always"]

[variables]
date = "1"

[inputs]
predictions = "tables/{date}.parquet"

[outputs]
folder = "runs/{date}"
"""
Night = Callable[..., JobResult]


def write_night(folder: Path, date: int, wrong: int = 10, n: int = 100, first: int = 0) -> None:
    """Write a table of ``n`` rows, the last ``wrong`` of them wrong, with ids of this night."""
    truth = ["a", "b"] * (n // 2)
    table = pl.DataFrame(
        {
            "datum_id": np.arange(n) + 1000 * (first or date),
            "actual": truth,
            "predicted": [
                label if place < n - wrong else "b" if label == "a" else "a"
                for place, label in enumerate(truth)
            ],
        }
    )
    (folder / "tables").mkdir(exist_ok=True)
    table.write_parquet(folder / f"tables/{date}.parquet")


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """Return a function that writes a night's table and runs the job on it."""

    def made(date: int, *pairs: tuple[str, str], force: bool = False, **facts: int) -> JobResult:
        if facts or not (tmp_path / f"tables/{date}.parquet").exists():
            write_night(tmp_path, date, **facts)
        text = JOB
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        (tmp_path / "job.toml").write_text(text)
        return ee.run_job(tmp_path / "job.toml", variables={"date": str(date)}, force=force)

    return made


def interval(right: int, wrong: int, level: float = 0.95) -> tuple[float, float]:
    values = np.repeat([1.0, 0.0], [right, wrong])
    return betting(np.array(counted(values, (0.0, 1.0))), level)


def single_verdict(result: JobResult) -> Verdict:
    (verdict,) = result.verdicts
    return verdict


class TestGrammar:
    def test_always_is_the_last_word(self) -> None:
        gate = parse_gate("Accuracy >= baseline - 0.01 Always")
        assert (gate.always, gate.surely, gate.written_bound) == (
            True,
            False,
            ">= baseline - 0.01 always",
        )

    @pytest.mark.parametrize("text", ["F1 == 0.5 always", "F1 >= baseline * 0.9 always"])
    def test_gates_that_are_refused(self, text: str) -> None:
        with refused("gate_unfit"):
            parse_gate(text)

    @pytest.mark.parametrize(
        ("pairs", "code"),
        [
            ([('model = "v1"\n', "")], "option_missing"),
            ([("{date}.parquet", "1.parquet")], "option_missing"),
            (
                [
                    ("Accuracy >= 0.8 always", "Accuracy >= baseline always"),
                    ('model = "v1"', 'model = "v1"\nbaseline = "last"'),
                ],
                "gate_unfit",
            ),
        ],
    )
    def test_jobs_that_cannot_accumulate_nights(
        self, night: Night, pairs: list[tuple[str, str]], code: str
    ) -> None:
        with refused(code):
            night(1, *pairs)

    def test_names_are_checked(self) -> None:
        with refused("unknown_name"):
            check_gates(
                [parse_gate("Acuracy >= 0.8 always")], make_options({"metrics": ["Accuracy"]})
            )


class TestNights:
    def test_datums_of_nights_accumulate(self, night: Night) -> None:
        first, second = single_verdict(night(1)), single_verdict(night(2, wrong=5))
        assert (first.lower, first.upper) == interval(90, 10)
        assert (second.lower, second.upper) == interval(185, 15)
        assert (first.n, second.n, second.level) == (100, 200, 0.95)
        assert (first.status, second.status) == ("failed", "passed")
        assert second.value == 0.95  # of this night

    def test_a_baseline_of_other_gates_keeps_the_nights(self, night: Night) -> None:
        last = (
            ('model = "v1"', 'model = "v1"\nbaseline = "last"'),
            ('"Accuracy >= 0.8 always"', '"Accuracy >= 0.8 always", "Accuracy >= baseline - 0.5"'),
        )
        seen = [[one.n for one in night(date, *last).verdicts if one.n] for date in (1, 2, 3)]
        assert [max(of) for of in seen] == [100, 200, 300]

    def test_a_repeated_night_counts_once(self, night: Night) -> None:
        night(1)
        night(2)
        assert single_verdict(night(2, force=True)).n == 200
        assert not night(2).ran
        assert single_verdict(night(2)).n == 200
        assert (
            single_verdict(night(1, wrong=14, force=True)).upper == interval(176, 24)[1]
        )  # both nights, the first one corrected

    def test_the_same_data_counts_once(self, night: Night) -> None:
        night(1)
        assert single_verdict(night(2, first=1, wrong=12)).n == 100
        assert single_verdict(night(3)).n == 200

    def test_the_same_files_of_other_tasks_count_once(self, night: Night, tmp_path: Path) -> None:
        pairs = ('"Accuracy", "F1"', '"MAE"'), ("Accuracy >= 0.8 always", "MAE <= 1 always")
        (tmp_path / "tables").mkdir()
        for date in (1, 2, 3):
            table = pl.DataFrame({"target": [1.0, 2.0], "prediction": [1.5, date // 3 + 0.5]})
            table.write_parquet(tmp_path / f"tables/{date}.parquet")
        reasons = [single_verdict(night(date, *pairs)).reason for date in (1, 2, 3)]
        assert [reason.split()[0] for reason in reasons] == ["1", "1", "2"]

    def test_only_files_that_the_newest_does_not_contain_are_read(
        self, night: Night, tmp_path: Path
    ) -> None:
        night(1)
        night(2)
        file = tmp_path / "runs/1/nights.json"
        time_ns = file.stat().st_mtime_ns
        file.write_text(file.read_text().replace("tables/1", "tables/0"))
        os.utime(file, ns=(time_ns, time_ns))
        assert single_verdict(night(3)).n == 300  # runs/2 contains that night
        os.utime(file)
        text = file.read_text()
        file.write_text(text[: text.index('"digest"')] + '"digest":"x"' + text[text.index("}}") :])
        assert single_verdict(night(4)).n == 500

    def test_nights_in_one_folder(self, night: Night) -> None:
        same = ("runs/{date}", "runs/all")
        assert [single_verdict(night(date, same)).n for date in (1, 2, 3)] == [100, 200, 300]

    @pytest.mark.parametrize(
        "change",
        [
            ('model = "v1"', 'model = "v2"'),
            ("tables/{date}", "./tables/{date}"),
            ("[inputs]", "[options]\npositive_label = 'a'\n\n[inputs]"),
            ("0.8 always", "0.75 always"),
        ],
    )
    def test_changes_that_discard_earlier_nights(
        self, night: Night, change: tuple[str, str]
    ) -> None:
        night(1)
        assert single_verdict(night(2)).n == 200
        assert single_verdict(night(3, change)).n == 100
        assert single_verdict(night(4)).n == 300  # 1, 2 and 4

    def test_new_options_with_default_values_keep_the_nights(
        self, night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        night(1)
        before = load_job(tmp_path / "job.toml").origin
        wider = msgspec.defstruct("Options", [("novel", bool | None, None)], bases=(Options,))

        def made(given: object) -> Options:
            return msgspec.convert(msgspec.to_builtins(make_options(given)), wider)

        monkeypatch.setattr(loading, "make_options", made)
        monkeypatch.setattr(loading, "FIELDS", (*FIELDS, "novel"))
        monkeypatch.setattr(loading, "_DEFAULTS", wider())
        assert load_job(tmp_path / "job.toml").origin == before

    def test_other_gates_and_metrics_keep_the_nights(self, night: Night) -> None:
        night(1)
        more = ('"Accuracy >= 0.8 always"', '"Accuracy >= 0.8 always", "F1[average=macro] > 0"')
        assert [one.n for one in night(2, more, ('"F1"]', '"F1", "MCC"]')).verdicts] == [200, None]

    def test_a_gate_that_is_added_later(self, night: Night) -> None:
        night(1, (' always"', '"'))
        repeated = night(1)  # without scoring again
        assert (repeated.ran, single_verdict(repeated).n) == (False, 100)
        assert single_verdict(night(2)).n == 200

    def test_other_metrics_count_nights_instead_of_datums(self, night: Night) -> None:
        pair = ("Accuracy >= 0.8", "F1[average=macro] >= 0.8")
        verdicts = [single_verdict(night(date, pair, wrong=10 + date % 3)) for date in range(1, 12)]
        assert [one.status for one in verdicts[:9]] == ["skipped"] * 9
        values = np.array([one.value for one in verdicts])
        assert (verdicts[9].lower, verdicts[9].upper) == pytest.approx(
            asymptotic(values[:10], 0.95)
        )
        assert (verdicts[10].lower, verdicts[10].upper) == pytest.approx(asymptotic(values, 0.95))
        assert (verdicts[10].status, verdicts[10].n) == ("passed", None)

    def test_runs_with_clusters_count_nights(self, night: Night, tmp_path: Path) -> None:
        write_night(tmp_path, 1)
        table = pl.read_parquet(tmp_path / "tables/1.parquet").with_columns(video=1)
        table.write_parquet(tmp_path / "tables/1.parquet")
        verdict = single_verdict(night(1, ("[inputs]", "[options]\ncluster = 'video'\n\n[inputs]")))
        assert (verdict.status, verdict.n) == ("skipped", None)

    def test_an_outage_before_the_tenth_night_fails(self, night: Night) -> None:
        conditions = '["Accuracy < 0.5 always"]'
        pair = ('always"]', f'always"]\nfail_if = {conditions}')
        for date in range(1, 7):
            night(date, pair, wrong=20, n=200)
        demand, condition = night(7, pair, wrong=200, n=200).verdicts
        assert (demand.status, demand.n) == ("failed", 1400)
        assert (condition.status, condition.n) == ("passed", 1400)
        assert "differ by more than chance" in demand.reason

    def test_conditions_to_fail_by(self, night: Night) -> None:
        pair = ('gates = ["Accuracy >= 0.8 always"]', 'fail_if = ["Recall[label=*] < 0.6 always"]')
        more = ('"F1"]', '"Recall"]')
        verdicts = night(1, pair, more, wrong=60).verdicts
        assert [one.level for one in verdicts] == [0.9875, 0.9875]
        assert [(one.lower, one.upper) for one in verdicts] == [interval(20, 30, 0.9875)] * 2
        assert [one.status for one in verdicts] == ["passed", "passed"]
        assert [one.status for one in night(2, pair, more, wrong=60).verdicts] == ["failed"] * 2

    def test_rows_that_appear_later_do_not_exceed_the_budget(
        self, night: Night, tmp_path: Path
    ) -> None:
        conditions = 'fail_if = ["Recall[label=*, average=null] < 0.1 always"]'
        pairs = ('gates = ["Accuracy >= 0.8 always"]', conditions), ('"F1"]', '"Recall"]')
        spent: dict[str, float] = {}
        for date, labels in ((1, "ab"), (2, "abcd"), (3, "cdefghi")):
            table = pl.DataFrame({"actual": list(labels) * 30}).with_row_index("datum_id")
            table = table.with_columns(pl.col("datum_id") + 1000 * date, predicted="actual")
            (tmp_path / "tables").mkdir(exist_ok=True)
            table.write_parquet(tmp_path / f"tables/{date}.parquet")
            for one in night(date, *pairs).verdicts:
                assert one.level is not None
                assert spent.setdefault(one.row, 1 - one.level) == pytest.approx(1 - one.level)
        assert len(spent) == 9
        # Shares of 0.05: 2 rows share 1/2, 2 rows 1/6, 5 rows 1/12; 3/4 after three nights.
        assert [*spent.values()] == pytest.approx(
            [0.05 / 4] * 2 + [0.05 / 12] * 2 + [0.05 / 60] * 5
        )

    def test_a_budget_is_shared(self, night: Night) -> None:
        conditions = '["Recall[label=*] < 0.6 always", "Accuracy < 0.5 surely"]'
        pair = 'gates = ["Accuracy >= 0.8 always"]', f"false_alarms = 0.03\nfail_if = {conditions}"
        verdicts = night(1, pair, ('"F1"]', '"Recall"]')).verdicts
        assert [one.level for one in verdicts[:2]] == [
            pytest.approx(0.9925)
        ] * 2  # 0.375 % per side
        assert "against 0.015 of false_alarms" in verdicts[2].reason
        with refused("option_unread"):
            night(1, ('gates = ["', 'false_alarms = 0.05\ngates = ["'))


class TestBaseline:
    @pytest.fixture
    def paired(self, night: Night, tmp_path: Path) -> Night:
        """Return a function that runs a night after a release, whose result is the baseline."""

        def made(date: int, wrong: int) -> JobResult:
            release = ('"watch"', '"release"'), ('gates = ["Accuracy >= 0.8 always"]', "")
            night(date, *release, ("runs/{date}", "release/{date}"), wrong=12)
            shutil.copy(tmp_path / f"tables/{date}.parquet", tmp_path / "kept.parquet")
            gate = ("Accuracy >= 0.8 always", "Accuracy >= baseline - 0.05 always")
            baseline = ('model = "v1"', 'model = "v1"\nbaseline = "release/{date}"')
            return night(date, gate, baseline, wrong=wrong)

        return made

    def test_differences_of_the_same_datums(self, paired: Night) -> None:
        first, second = single_verdict(paired(1, wrong=10)), single_verdict(paired(2, wrong=10))
        values = np.repeat([1.0, 0.0], [4, 196])
        expected = betting(np.array(counted(values, (-1.0, 1.0))), 0.95, (-1.0, 1.0))
        assert (second.lower, second.upper) == pytest.approx(expected)
        assert (first.n, second.n, second.interval_of) == (100, 200, "difference")
        assert second.status == "passed"
        assert expected[0] > -0.05

    def test_a_fixed_baseline_of_other_data_counts_nights(self, night: Night) -> None:
        night(1)
        gate = ("Accuracy >= 0.8 always", "Accuracy >= baseline - 0.05 always")
        verdict = single_verdict(
            night(2, gate, ('model = "v1"', 'model = "v1"\nbaseline = "runs/1"'))
        )
        assert (verdict.status, verdict.n) == ("skipped", None)


class TestPartitions:
    def test_every_partition_is_a_night(self, night: Night, tmp_path: Path) -> None:
        for date in range(2, 12):
            write_night(tmp_path, date, wrong=10 + date % 2)
        pairs = (
            ('[variables]\ndate = "1"\n', '[variables]\ndate = "1"\n\n'),
            (
                'predictions = "tables/{date}.parquet"',
                'partition = "day"\npredictions = "tables/{day}.parquet"',
            ),
            ('always"]', 'always", "F1[average=macro] > 0.5 always"]'),
            ("runs/{date}", "runs/all"),
        )
        accuracy, f1 = night(1, *pairs).verdicts
        assert (accuracy.n, accuracy.lower) == (1100, interval(985, 115)[0])
        assert f1.n is None
        assert f1.status == "passed"
        assert f1.lower is not None

    def test_a_metric_that_no_partition_has_is_skipped(self, tmp_path: Path) -> None:
        for name in "ab":
            scores = pl.Series([0.2, 0.7, 0.4] if name == "a" else [0.6, 0.8, 0.5])
            table = pl.DataFrame({"actual": [int(name == "b")] * 3, "score": scores})
            table = table.with_columns(datum_id=pl.Series([f"{name}{i}" for i in range(3)]))
            table.write_parquet(tmp_path / f"{name}.parquet")
        (tmp_path / "job.toml").write_text(
            'name = "parts"\nmodel = "v1"\nmetrics = ["ROCAUC"]\n'
            'gates = ["ROCAUC >= 0.5 always"]\n'
            "[options]\npositive_label = 1\n"
            '[inputs]\npartition = "part"\npredictions = "{part}.parquet"\n'
        )
        verdict = single_verdict(ee.run_job(tmp_path / "job.toml"))
        assert (verdict.status, verdict.n) == ("skipped", None)
        assert verdict.value is not None
        assert verdict.reason == "no night has a value"


def test_score_is_a_single_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_night(tmp_path, 1)
    table = str(tmp_path / "tables/1.parquet")
    gates = ["--fail-under", "Accuracy >= 0.7 always", "--fail-under", "Accuracy >= 0.8 always"]
    assert main(["score", table, "--metric", "Accuracy", *gates]) == 1
    assert "1 of 2 failed" in capsys.readouterr().err
    assert main(["compare", table, table, "--fail-under", "Accuracy >= baseline always"]) == 2
    assert "a single look" in capsys.readouterr().err


def test_saved_nights(night: Night, tmp_path: Path) -> None:
    night(1)
    night(2)
    saved = json.loads((tmp_path / "runs/2/nights.json").read_bytes())
    (seen,) = saved["seen"].values()
    assert [*seen] == ["tables/1.parquet", "tables/2.parquet"]
    assert [one["counts"][-1] for one in seen.values()] == [90, 90]


def test_earlier_nights_are_saved_twice(night: Night, tmp_path: Path) -> None:
    def saved_nights() -> list[int]:
        files = [tmp_path / f"runs/{date}/nights.json" for date in range(1, 6)]
        texts = [json.loads(file.read_bytes()) for file in files if file.is_file()]
        return [len(*text["seen"].values()) for text in texts]

    for date in (1, 2, 3, 4):
        assert single_verdict(night(date)).n == 100 * date
    assert saved_nights() == [1, 1, 3, 4]
    shutil.rmtree(tmp_path / "runs/4")  # runs/3 has all other nights
    shutil.rmtree(tmp_path / "runs/1")
    assert single_verdict(night(5)).n == 400
    assert saved_nights() == [1, 3, 4]


def test_concurrent_nights_are_all_counted(night: Night, tmp_path: Path) -> None:
    for date in (1, 2, 3):
        night(date)
    (tmp_path / "runs/3").rename(tmp_path / "elsewhere")
    assert single_verdict(night(4)).n == 300  # as if both ran at the same time
    (tmp_path / "elsewhere").rename(tmp_path / "runs/3")
    assert single_verdict(night(5)).n == 500


@pytest.mark.parametrize("metric", ["MRR", "ROUGE1"])
def test_ground_truths_without_a_digest(night: Night, tmp_path: Path, metric: str) -> None:
    """Two tables of documents or texts: their tallies do not have the ground truths."""
    name = "doc_id" if metric == "MRR" else "text"
    (tmp_path / "tables").mkdir()
    for date in (1, 2):
        ids = [f"{date}-{i}" for i in range(60)]
        values = [f"a{i % 5}" for i in range(60)]
        truth = pl.DataFrame({"query_id" if metric == "MRR" else "datum_id": ids, name: values})
        right = [value if i % 4 else "b" for i, value in enumerate(values)]
        found = truth.with_columns(pl.Series(name, right), score=1.0)
        found.write_parquet(tmp_path / f"tables/{date}.parquet")
        truth.write_parquet(tmp_path / f"tables/{date}-truth.parquet")
    pairs = [
        ('metrics = ["Accuracy", "F1"]', f'metrics = ["{metric}"]\nbaseline = "last"'),
        (
            '"Accuracy >= 0.8 always"',
            f'"{metric} >= 0.3 always", "{metric} >= baseline - 1 surely"',
        ),
        ('{date}.parquet"', '{date}.parquet"\nground_truths = "tables/{date}-truth.parquet"'),
    ]
    night(1, *pairs)
    result = night(2, *pairs)
    assert [(gate.status, gate.n) for gate in result.verdicts] == [("passed", 120), ("passed", 60)]
