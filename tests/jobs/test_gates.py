"""Gates: grammar, selected rows, baselines, coverage, checks before a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.evaluation.planner import make_plan
from evalengine.jobs.gates import Gate, check_gates, parse_gate, parse_gates, refuse_unknown
from evalengine.jobs.reports import gates_table
from evalengine.jobs.verdicts import Numbers, judge_gates, numbers_of
from evalengine.schemas.errors import OptionError, ResultError
from evalengine.schemas.options import Options

AT = {"iou_threshold": 0.5}


def card(shift: float = 0.0, labels: tuple[str, ...] = ("cat", "dog")) -> Numbers:
    """Return mAP of all datums and by weather, and recall by label, one of them undefined."""
    key = {"label_key": "label", "support": 10}
    rows: list[dict[str, Any]] = [
        {"metric": "mAP", "value": 0.6 + shift, **AT, **key},
        {"metric": "mAP", "value": 0.4 + shift, "iou_threshold": 0.75, **key},
        {"metric": "mAR", "value": 0.7 + shift, **key},
    ]
    rows += [
        {"metric": "mAP", "value": value + shift, "slice": "weather", "slice_value": name, **AT,
         **key}
        for name, value in (("rain", 0.5), ("sun", 0.65), ("black ice, 0", 0.3))
    ]  # fmt: skip
    rows += [
        {"metric": "Recall", "label_value": name, "value": 0.8 + shift, **key} for name in labels
    ]
    rows.append(
        {"metric": "Recall", "label_value": "owl", "value": None, "reason": "no ground truth",
         "label_key": "label", "support": 0}
    )  # fmt: skip
    return numbers_of(fabricated.card(rows))


def judge(*texts: str, baseline: Numbers | None = None, first: bool = False) -> list[Any]:
    gates = [parse_gate(text) for text in texts]
    return judge_gates(gates, card(), baseline, first=first)


def status(text: str, **given: Any) -> str:
    [verdict] = judge(text, **given)
    return str(verdict.status)


class TestGrammar:
    @pytest.mark.parametrize(
        ("text", "gate"),
        [
            ("mAP>=0.42", ("mAP", (), ">=", 0.42, "")),
            ("  mAP  <  4.2e-1 ", ("mAP", (), "<", 0.42, "")),
            ("nDCG@10 > .5", ("nDCG@10", (), ">", 0.5, "")),
            ("chrF++ >= 1", ("chrF++", (), ">=", 1.0, "")),
            ("F0.5==1.", ("F0.5", (), "==", 1.0, "")),
            ("TER <= -1", ("TER", (), "<=", -1.0, "")),
            ("recall[label=cat] >= baseline - 0.01",
             ("recall", (("label", "cat"),), ">=", 0.01, "-")),
            ("recall [ label = cat , k=3 ]>=Baseline*0.98",
             ("recall", (("label", "cat"), ("k", "3")), ">=", 0.98, "*")),
            ("mAP >= baseline", ("mAP", (), ">=", 0.0, "+")),
            ("mAP >= baseline+1e-3", ("mAP", (), ">=", 0.001, "+")),
            ("""a["b c"='x, y]', d=traffic light]>0""",
             ("a", (("b c", "x, y]"), ("d", "traffic light")), ">", 0.0, "", ("b c",))),
            ("mAP[weather*camera=rain*front]>0", ("mAP", (("weather*camera", "rain*front"),),
             ">", 0.0, "")),
        ],
    )  # fmt: skip
    def test_valid_gates(self, text: str, gate: tuple[Any, ...]) -> None:
        assert parse_gate(text) == Gate(text.strip(), *gate)

    @pytest.mark.parametrize(
        ("text", "refusal"),
        [
            ("", {"code": "gate_malformed", "at": ""}),
            ("mAP", {"code": "gate_malformed", "at": ""}),
            ("mAP 0.5", {"code": "gate_malformed", "at": "0.5"}),
            ("mAP => 0.5", {"code": "gate_malformed", "at": "=> 0.5"}),
            ("Accuracy >= 80%", {"code": "gate_malformed", "at": ">= 80%"}),
            ("mAP >= half", {"code": "gate_malformed", "at": ">= half"}),
            ("mAP >= 0.5 0.6", {"code": "gate_malformed", "at": ">= 0.5 0.6"}),
            ("mAP >= baseline 0.01", {"code": "gate_malformed", "at": ">= baseline 0.01"}),
            ("mAP >= 0.01 + baseline", {"code": "gate_malformed", "at": ">= 0.01 + baseline"}),
            ("mAP[iou=0.5 >= 1", {"code": "gate_malformed", "at": "iou=0.5 >= 1"}),
            ("mAP[iou] >= 1", {"code": "gate_malformed", "at": "iou] >= 1"}),
            ("mAP[] >= 1", {"code": "gate_malformed", "at": "] >= 1"}),
            (">= 1", {"code": "gate_malformed", "at": ">= 1"}),
        ],
    )
    def test_malformed_gates(self, text: str, refusal: dict[str, Any]) -> None:
        with refused(**refusal):
            parse_gate(text)

    def test_a_repeated_condition_and_an_infinite_bound(self) -> None:
        with pytest.raises(OptionError, match="'k' is named twice"):
            parse_gate("P[k=1,k=2] > 0")
        with pytest.raises(OptionError, match="too large"):
            parse_gate("P > 1e999")

    @given(
        st.floats(-1e6, 1e6), st.sampled_from([">=", "<=", ">", "<", "=="]), st.floats(-1e6, 1e6)
    )
    def test_operators_are_those_of_python(self, value: float, operator: str, bound: float) -> None:
        gate = parse_gate(f"m {operator} {bound!r}")
        close = abs(value - bound) <= 1e-12 * max(1.0, abs(bound))
        exact = {
            ">=": value >= bound,
            "<=": value <= bound,
            ">": value > bound,
            "<": value < bound,
            "==": value == bound,
        }[operator]
        assert gate.holds(value, bound) == (exact if not close else "=" in operator)

    def test_rounding_errors_fail_no_gate(self) -> None:
        assert 0.3 < 0.1 + 0.2
        assert parse_gate("m >= baseline + 0.2").holds(0.3, 0.1 + 0.2)
        assert not parse_gate("m > 0.3").holds(0.1 + 0.2, 0.3)


class TestRows:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("mAR >= 0.7", "passed"),
            ("mar >= 0.71", "failed"),
            ("MAP[iou=0.5] >= 0.6", "passed"),
            ("mAP[iou_threshold=0.75] >= 0.6", "failed"),
            ("mAP[iou=0.5, weather=rain] >= 0.6", "failed"),
            ("mAP[iou=0.5, weather=sun] >= 0.6", "passed"),
            ("mAP[iou=0.5, weather='black ice, 0'] < 0.31", "passed"),
            ("mAP[iou=0.5, slice=weather, slice_value=sun] >= 0.6", "passed"),
            ("recall[label=cat] == 0.8", "passed"),
            ("Recall[label_value=dog] != 0.8".replace("!=", ">"), "failed"),
        ],
    )
    def test_one_row(self, text: str, expected: str) -> None:
        assert status(text) == expected

    def test_a_star_matches_every_value(self) -> None:
        for text in ("mAP[iou=0.5, weather=*] >= 0.4", "mAP[iou=0.5, slice=weather] >= 0.4"):
            statuses = {one.row: one.status for one in judge(text)}
            assert statuses == {
                "weather=rain": "passed",
                "weather=sun": "passed",
                "weather=black ice, 0": "failed",
            }
        assert [one.row for one in judge("mAP[iou=*] > 0")] == ["iou=0.5", "iou=0.75"]
        assert len(judge("mAP[iou=0.5, slice=*] > 0")) == 3

    def test_undefined_fails_with_its_reason(self) -> None:
        verdicts = judge("recall[label=*] >= 0")
        assert [one.status for one in verdicts] == ["passed", "passed", "failed"]
        assert verdicts[-1].reason.startswith("undefined")
        assert verdicts[-1].value is None

    @pytest.mark.parametrize(
        ("text", "refusal"),
        [
            ("mAPP > 0", {"code": "unknown_name", "value": "mAPP"}),
            ("mAP > 0.5", {"code": "ambiguous", "columns": ["iou_threshold"], "count": 2}),
            (
                "mAP[iou=0.6] > 0",
                {"code": "no_such_row", "metric": "mAP", "column": "iou_threshold"},
            ),
            (
                "mAP[iou=half] > 0",
                {"code": "no_such_row", "metric": "mAP", "column": "iou_threshold"},
            ),
            (
                "recall[label=cta] > 0",
                {"code": "no_such_row", "metric": "Recall", "column": "label_value"},
            ),
            ("mAP[wether=rain] > 0", {"code": "unknown_name", "value": "wether"}),
            (
                "mAP[iou=0.5, weather=snow] > 0",
                {"code": "no_such_row", "metric": "mAP", "column": "slice_value"},
            ),
            ("mAR[label=*] > 0", {"code": "no_such_row", "metric": "mAR", "column": "label_value"}),
            ("recall > 0", {"code": "ambiguous", "columns": ["label_value"], "count": 3}),
        ],
    )
    def test_no_row_or_several_is_an_error(self, text: str, refusal: dict[str, Any]) -> None:
        with refused(**refusal, kind=ResultError) as caught:
            judge(text)
        assert str(caught.value).startswith(f"gate {text!r}: ")

    def test_quoted_star_and_null_are_labels(self) -> None:
        rows = [
            {"metric": "Recall", "label_value": name, "value": n / 10}
            for n, name in enumerate(("*", "null", "cat"))
        ]
        labels = pl.DataFrame(
            {"label_key": ["l"] * 3, "label_value": ["*", "null", "cat"], "label_name": [None] * 3},
            schema_overrides={"label_name": pl.String},
        )
        numbers = Numbers("detection", fabricated.frame("metrics", rows), labels)
        for text, expected in (("'*'", [0.0]), ('"null"', [0.1]), ("*", [0.0, 0.1, 0.2])):
            verdicts = judge_gates([parse_gate(f"Recall[label={text}] >= 0")], numbers)
            assert [one.value for one in verdicts] == expected

    def test_names_and_numbers_of_labels(self) -> None:
        rows = [{"metric": "Recall", "label_value": n, "value": n / 10} for n in (7, 8)]
        labels = pl.DataFrame(
            {"label_key": ["l"] * 2, "label_value": [7, 8], "label_name": ["cat", "dog"]}
        )
        frame = fabricated.frame("metrics", rows, label=pl.Int64())
        numbers = Numbers("detection", frame, labels)
        for text in ("Recall[label=cat] == 0.7", "Recall[label=8] == 0.8"):
            [verdict] = judge_gates([parse_gate(text)], numbers)
            assert verdict.status == "passed"


class TestBaseline:
    @pytest.mark.parametrize(
        ("shift", "text", "expected", "bound"),
        [
            (0.0, "mAR >= baseline", "passed", 0.7),
            (0.1, "mAR >= baseline", "failed", 0.8),
            (0.1, "mAR >= baseline - 0.1", "passed", 0.7),
            (0.1, "mAR >= baseline - 0.09", "failed", 0.71),
            (0.1, "mAR >= baseline * 0.5", "passed", 0.4),
            (-0.1, "mAR <= baseline + 0.05", "failed", 0.65),
        ],
    )
    def test_bounds_relative_to_the_baseline(
        self, shift: float, text: str, expected: str, bound: float
    ) -> None:
        [verdict] = judge(text, baseline=card(shift))
        assert (verdict.status, verdict.bound) == (expected, pytest.approx(bound))
        assert verdict.baseline == pytest.approx(0.7 + shift)

    def test_a_missing_baseline_is_an_error_except_in_the_first_run(self) -> None:
        with refused("option_missing", option="baseline"):
            judge("mAR >= baseline")
        [verdict] = judge("mAR >= baseline", first=True)
        assert (verdict.status, verdict.reason) == ("skipped", "no earlier run")

    def test_a_new_label_is_skipped_under_a_star_only(self) -> None:
        before = card(labels=("cat",))
        verdicts = {one.row: one.status for one in judge("recall[label=*] >= baseline",
                                                       baseline=before)}  # fmt: skip
        assert verdicts == {"label=cat": "passed", "label=dog": "skipped", "label=owl": "failed"}
        with pytest.raises(ResultError, match="of the baseline"):
            judge("recall[label=dog] >= baseline", baseline=before)

    def test_a_label_that_only_the_baseline_has_is_skipped(self) -> None:
        verdicts = judge_gates(
            [parse_gate("recall[label=*] >= baseline")], card(labels=("cat",)), card()
        )
        by_row = {one.row: one for one in verdicts}
        assert by_row["label=cat"].status == "passed"
        gone = by_row["label=dog"]
        assert gone.status == "skipped"
        assert "only in the baseline" in gone.reason
        assert gone.value is None
        assert gone.baseline is not None

    def test_undefined_in_the_baseline_fails(self) -> None:
        before = card()
        hidden = before.metrics.with_columns(
            value=pl.when(pl.col("metric") == "mAR").then(None).otherwise(pl.col("value"))
        )
        gone = Numbers(before.task, hidden, before.labels)
        [verdict] = judge("mAR >= baseline", baseline=gone)
        assert (verdict.status, verdict.value) == ("failed", 0.7)
        assert verdict.reason.startswith("undefined in")


def test_the_table_lists_failed_gates_first() -> None:
    verdicts = judge("mAR > 0.5", "mAR > 0.7000001", "mAP[iou=0.5] > baseline", first=True)
    lines = gates_table(verdicts).splitlines()
    assert "1 of 3 failed, 1 skipped" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["status", "failed", "skipped", "passed"]
    assert "0.7" in lines[2]


class TestCoverage:
    """A mean over few datums passes no gate unless a gate on ``coverage`` accepts it."""

    @staticmethod
    def numbers(scored: int) -> Numbers:
        key = {"label_key": None, "support": 60}
        rows = [
            {"metric": "Faithfulness", "value": 0.9, "scored": scored, **key},
            {"metric": "Bias", "value": 0.1, "scored": 60, **key},
        ]
        return numbers_of(fabricated.card(rows))

    @pytest.mark.parametrize(
        ("scored", "gates", "passed"),
        [
            (60, ["Faithfulness >= 0.5"], [True]),
            (30, ["Faithfulness >= 0.5"], [True]),
            (5, ["Faithfulness >= 0.5"], [False]),
            (5, ["Faithfulness >= 0.5", "coverage >= 0.05"], [True, True]),
            (5, ["Faithfulness >= 0.5", "Coverage >= 0.95"], [True, False]),
            (5, ["Bias <= 0.5"], [True]),
            (5, ["coverage[metric=Bias] >= 1", "coverage[metric=Faithfulness] < 0.1"], [True] * 2),
            (60, ["coverage == 1"], [True]),
        ],
    )
    def test_gates_on_partly_scored_metrics(
        self, scored: int, gates: list[str], passed: list[bool]
    ) -> None:
        verdicts = judge_gates([parse_gate(text) for text in gates], self.numbers(scored))
        assert [one.status == "passed" for one in verdicts] == passed

    @pytest.mark.parametrize("whole", [False, True])
    def test_tasks_whose_means_skip_datums(self, whole: bool) -> None:
        truth = pl.DataFrame({"datum_id": range(50), "target": [i + 0.5 for i in range(50)]})
        mine = truth.rename({"target": "prediction"}).head(50 if whole else 20)
        gates = ["MAE < 1", "coverage >= 0.4", "coverage >= 0.5", "coverage[metric=MAE] >= 0.4"]
        verdicts = judge_gates(
            [parse_gate(text) for text in gates], numbers_of(ee.score(mine, truth))
        )
        assert [one.status == "passed" for one in verdicts] == [True, True, whole, True]
        assert verdicts[1].value == (1.0 if whole else 0.4)

    def test_a_metric_named_coverage_takes_precedence(self) -> None:
        table = {"target": [0.5, 9.5], "prediction": [0.4, 0.6], "lower": [0, 0], "upper": [1, 1]}
        numbers = numbers_of(ee.score(table, metrics=["Coverage"]))
        (verdict,) = judge_gates([parse_gate("coverage >= 0.6")], numbers)
        assert (verdict.status, verdict.value) == ("failed", 0.5)

    def test_the_reason_names_the_remedy(self) -> None:
        (verdict,) = judge_gates([parse_gate("Faithfulness >= 0.5")], self.numbers(5))
        assert verdict.reason.startswith("only 8%")
        assert "'coverage >= 0.08'" in verdict.reason


def test_a_gate_on_an_unknown_metric_is_refused_before_any_work() -> None:
    plan = make_plan(Options(), "detection")
    with refused("unknown_name", value="mPA"):
        refuse_unknown(parse_gates(["mAP >= 0.5", "mPA > 1"]), plan)
    valid = parse_gates(["map >= 0.5", "nDCG@10 > 0", "P_5 > 0", "F0.5 > 0", "coverage > 0"])
    refuse_unknown(valid, plan)
    assert len(valid) == 5


def test_percentages_are_refused() -> None:
    with pytest.raises(OptionError, match=r"0\.805"):
        parse_gate("Accuracy >= 80.5%")


def test_bounds_outside_a_metrics_range_are_refused() -> None:
    plan = make_plan(Options(), "classification")
    for gate, code in (("Accuracy >= 80", "too_high"), ("accuracy < -0.1", "too_low")):
        with refused(code):
            refuse_unknown(parse_gates([gate]), plan)
    with refused("too_high"):
        refuse_unknown(parse_gates(["nDCG@10 >= 80"]), make_plan(Options(), "retrieval"))
    valid = parse_gates(["Accuracy >= 1", "Accuracy >= baseline - 2"])
    refuse_unknown(valid, plan)
    refuse_unknown(parse_gates(["MAE < 80"]), make_plan(Options(), "regression"))


@pytest.mark.parametrize(
    ("gate", "remedy"),
    [
        ("mAP50 > 0.3", "mAP[iou=0.5] > 0.3"),
        ("mAP@0.75[area=small] > baseline - 0.1", "mAP[iou=0.75, area=small] > baseline - 0.1"),
    ],
)
def test_names_with_an_iou_threshold_have_a_remedy_for_gates(gate: str, remedy: str) -> None:
    options = ee.Options(dialect="coco")
    with pytest.raises(OptionError) as raised:
        check_gates(parse_gates([gate]), options)
    assert remedy in str(raised.value)
    check_gates(parse_gates([remedy, "AP50 > 0.3"]), options)
    with refused("unknown_name", value=gate.partition("[")[0].partition(" ")[0]):
        refuse_unknown(parse_gates([gate]), make_plan(options, "detection"))


@pytest.mark.parametrize(
    ("options", "gate", "chosen"),
    [
        ({"task": "retrieval", "k": (5, 10)}, "P > 0", ["P@5 > 0", "P[k=10] > 0", "nDCG > 0"]),
        ({"task": "detection"}, "mAP > 0", ["mAP[iou=0.5] > 0", "mAR > 0"]),
        ({"task": "detection", "metrics": ("F1",)}, "F1[iou=0.5] > 0", ["F1[iou=0.5,score=*] > 0"]),
    ],
)
def test_a_gate_that_fits_several_rows_is_refused_before_reading(
    options: Any, gate: str, chosen: list[str]
) -> None:
    with refused("ambiguous", OptionError):
        check_gates(parse_gates([gate]), ee.Options(**options))
    check_gates(parse_gates(chosen), ee.Options(**options))


@pytest.mark.parametrize(
    ("shift", "gate", "value", "reason"),
    [
        (-0.2, "mAP[iou_threshold=0.5] >= 0.7", 0.4, True),
        (0.2, "mAP[iou_threshold=0.5] >= 0.7", 0.8, False),
        (0.2, "mAP[iou_threshold=0.5] >= 0.5", 0.8, False),
    ],
)
def test_fixed_bounds_show_the_baseline(
    shift: float, gate: str, value: float, reason: bool
) -> None:
    (verdict,) = judge_gates([parse_gate(gate)], card(), card(shift))
    assert verdict.baseline == pytest.approx(value)
    assert bool(verdict.reason) == reason
    (verdict,) = judge_gates([parse_gate(gate)], card())
    assert verdict.baseline is None
    assert not verdict.reason


@pytest.mark.parametrize(
    ("rows", "severity"), [(100, None), (50, None), (49, "note"), (9, "warning")]
)
def test_far_fewer_datums_than_the_baseline(
    rows: int, severity: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({"datum_id": range(100), "actual": ["a", "b"] * 50, "predicted": "a"})
    for name, some in (("before", table), ("now", table.head(rows))):
        some.write_parquet(f"{name}.parquet")
        gates = ["--baseline", "before", "--fail-under", "Accuracy >= baseline - 0.1"]
        options = ["--metric", "Accuracy", "--out", name, *(gates if name == "now" else [])]
        assert main(["score", f"{name}.parquet", *options]) == 0
    notes = [one for one in ee.load("now").findings if one.code == "fewer_datums"]
    assert [one.severity for one in notes] == ([] if severity is None else [severity])
    assert [(one.count, one.facts["of"]) for one in notes] == [(rows, 100)] * len(notes)
