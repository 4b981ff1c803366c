"""Options of the command ``score``: the arguments they become, and the output."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricated
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import evalengine as ee
from evalengine.cli import main
from evalengine.cli.options import SHORT, generated
from evalengine.schemas.option_values import make_options
from evalengine.schemas.options import FIELDS

Run = Callable[..., tuple[int, str, str]]


class TestOptions:
    def test_every_field_has_an_option_with_its_dashed_name(self) -> None:
        output = {option.name: option for option in generated()}
        assert tuple(output) == FIELDS
        for name, option in output.items():
            assert f"--{name.replace('_', '-')}" in option.opts
            assert set(SHORT.get(name, ())) <= set(option.opts)
            assert option.help

    @pytest.mark.parametrize(
        ("args", "field", "value"),
        [
            (["--dialect", "coco"], "dialect", "coco"),
            (["--metric", "AP,mAP", "--metric", "AR"], "metrics", ("AP", "mAP", "AR")),
            (["--metrics", "AP"], "metrics", ("AP",)),
            (["--iou", "0.5, 0.75"], "iou_thresholds", (0.5, 0.75)),
            (["--iou-thresholds", "0.5"], "iou_thresholds", (0.5,)),
            (["--iou-thresholds-to-return", "0.5"], "iou_thresholds_to_return", (0.5,)),
            (["--score-threshold", ".1"], "score_thresholds", (0.1,)),
            (["--recall-score-threshold", "0.3"], "recall_score_threshold", 0.3),
            (["--pr-curve-max-examples", "0"], "pr_curve_max_examples", 0),
            (["--max-detections", "1,10"], "max_detections", (1, 10)),
            (["--by", "weather", "--by", "a*b"], "by", ("weather", "a*b")),
            (["--threads", "2"], "threads", 2),
            (["--columns", "a=datum_id,b=score"], "columns", {"a": "datum_id", "b": "score"}),
            (["--columns", "a,b=score"], "columns", {"a,b": "score"}),
            (
                ["--columns", '"a,b"=score, "c=d" = datum_id'],
                "columns",
                {"a,b": "score", "c=d": "datum_id"},
            ),
            (["--values", 'x, "a,b",c"d'], "value_columns", ("x", "a,b", 'c"d')),
            (["--better", '"a,b"=higher,c=lower'], "better", {"a,b": "higher", "c": "lower"}),
            (["--score-columns", '0="a,b",1=b'], "score_columns", {"0": "a,b", "1": "b"}),
            (["--score-columns", '"a,b",c'], "score_columns", ("a,b", "c")),
            (["--where", "score > 0.1, 2"], "where", "score > 0.1, 2"),
            (["--where", "a > 1", "--where", "b = 2"], "where", "(a > 1) AND (b = 2)"),
            (
                ["--where", "predictions=score > 0.1", "--where", "ground_truths=area > 1"],
                "where",
                {"predictions": "score > 0.1", "ground_truths": "area > 1"},
            ),
            (["--label-map", "van=car,bus=car"], "label_map", ["van=car", "bus=car"]),
            (["--label-map", "map.csv"], "label_map", "map.csv"),
            (["--multilabel"], "multilabel", True),
            (["--no-multilabel"], "multilabel", False),
            (["--positive-label", "spam"], "positive_label", "spam"),
            (["--positive-label", "1"], "positive_label", "1"),
            (["--k", "1,5"], "k", (1, 5)),
            (["--beta", "0.5"], "beta", 0.5),
            (["--n-bins", "10"], "n_bins", 10),
            (["--score-columns", "a", "--score-columns", "b"], "score_columns", ("a", "b")),
            (["--score-columns", "a,p_*"], "score_columns", ("a", "p_*")),
            (["--score-columns", "0=a,1=b"], "score_columns", {"0": "a", "1": "b"}),
            (
                ["--area-range", "small=0:1024,large=1024:inf"],
                "area_ranges",
                {"small": (0.0, 1024.0), "large": (1024.0, float("inf"))},
            ),
        ],
    )
    def test_reach_score(
        self, run: Run, received: dict[str, Any], args: list[str], field: str, value: Any
    ) -> None:
        status, _, err = run("score", "p.parquet", "g.parquet", *args)
        assert (status, err) == (0, "")
        assert received["options"] == make_options(**{field: value})
        assert getattr(received["options"], field) == value

    def test_missing_options_are_not_set(self, run: Run, received: dict[str, Any]) -> None:
        assert run("score", "p.parquet")[0] == 0
        assert received.pop("options") == make_options()
        received.pop("planned")  # used by the check of gates
        assert received == {
            "predictions": "p.parquet",
            "ground_truths": None,
            "datums": None,
            "labels": None,
            "storage_options": None,
            "matched": False,
            "executor": None,
            "address": None,
            "progress": None,
            "paged": False,
        }

    def test_tables_and_storage(self, run: Run, received: dict[str, Any]) -> None:
        args = ["--datums", "d.csv", "--labels", "l.csv", "--storage-option", "key=a=b"]
        assert run("score", "p", "g", *args)[0] == 0
        assert (received["datums"], received["labels"]) == ("d.csv", "l.csv")
        assert received["storage_options"] == {"key": "a=b"}

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (["--iou", "x"], "not a number"),
            (["--max-detections", "1.5"], "a whole number"),
            (["--threads", "two"], "'two' is not"),
            (["--columns", "mine"], "key=value"),
            (["--score-columns", "a", "--score-columns", "x=b"], "key=value for every"),
            (["--area-range", "small=1"], "name=low:high"),
            (["--storage-option", "key"], "key=value"),
            (["--where", "a = 1", "--where", "predictions=b = 2"], "condition for both"),
            (["--dialekt", "coco"], "--dialect"),
            (["--format", "jsn"], "json"),
        ],
    )
    def test_invalid_values_are_refused(self, run: Run, args: list[str], words: str) -> None:
        status, out, err = run("score", "p", "g", *args)
        assert (status, out) == (2, "")
        assert words in err
        assert "Traceback" not in err


class TestScore:
    def test_prints_a_table(self, run: Run, received: dict[str, Any]) -> None:
        status, out, err = run("score", "p", "g")
        assert (status, err) == (0, "")
        assert "mAP @ IoU 0.5        0.7000" in out

    def test_formats(self, run: Run, received: dict[str, Any]) -> None:
        assert (
            json.loads(run("score", "p", "g", "--format", "json")[1])["metrics"][0]["value"] == 0.5
        )
        assert run("score", "p", "g", "--format", "csv")[1].startswith("metric,statistic,")
        assert "| mAR | 0.6000 |" in run("score", "p", "g", "--format", "markdown")[1]

    @pytest.mark.parametrize(
        ("form", "start"),
        [
            ([], "metric,statistic,"),
            (["--format", "csv"], "metric,statistic,"),
            (["--format", "json"], '{"metrics": [{"metric":'),
            (["--format", "markdown"], "| metric | label_key |"),
            (["--format", "table"], "metric               label_key  label_value  "),
        ],
    )
    def test_a_frame_in_any_format(
        self, run: Run, received: dict[str, Any], form: list[str], start: str
    ) -> None:
        status, out, err = run("score", "p", "g", "--frame", "metrics", *form)
        assert (status, err) == (0, "")
        assert out.startswith(start)
        assert out.count("mAR") == 1
        status, out, err = run("score", "p", "g", "--frame", "confusion", *form)
        assert (status, out) == (2, "")
        assert "ConfusionMatrix fills it." in err

    def test_a_frame_as_parquet(
        self, received: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
        assert main(["score", "p", "g", "--frame", "metrics", "--format", "parquet"]) == 0
        raw.seek(0)
        assert_frame_equal(pl.read_parquet(raw), fabricated.card().metrics)

    def test_out(self, run: Run, received: dict[str, Any], tmp_path: Path) -> None:
        folder = str(tmp_path / "run")
        status, out, err = run("score", "p", "g", "--out", folder, "--format", "json")
        assert status == 0
        assert json.loads(out)
        assert folder in err
        assert ee.load(folder).value("mAR") == 0.6
        status, out, err = run("score", "p", "g", "-o", folder)
        assert (status, out) == (2, "")
        assert "--overwrite" in err
        assert run("score", "p", "g", "-o", folder, "--overwrite")[0] == 0

    def test_written_output_is_not_suggested(self, run: Run, tmp_path: Path) -> None:
        table = pl.DataFrame({"datum_id": [1], "metric": ["Bias"], "verdict": ["yes"]})
        table.write_parquet(tmp_path / "verdicts.parquet")
        args = ("score", str(tmp_path / "verdicts.parquet"))
        _, out, _ = run(*args)
        assert "per_datum (1 row)" in out
        assert out.endswith("all with --out\n")
        _, out, _ = run(*args, "--out", str(tmp_path / "run"))
        assert out.endswith("one with --frame\n")

    def test_out_is_refused_before_the_work(
        self, run: Run, received: dict[str, Any], tmp_path: Path
    ) -> None:
        (tmp_path / "thesis.txt").write_text("dear")
        assert run("score", "p", "g", "--out", str(tmp_path), "--overwrite")[0] == 2
        assert received == {}

    def test_parquet_on_a_terminal_is_refused_before_the_work(
        self, run: Run, received: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        status, _, err = run("score", "p", "g", "--format", "parquet")
        assert status == 2
        assert "--out" in err
        assert received == {}

    def test_scoring_end_to_end(self, run: Run, tables: tuple[str, str]) -> None:
        status, out, _ = run("score", *tables, "--format", "json", "--metric", "mAP")
        assert status == 0
        assert [row["value"] for row in json.loads(out)["metrics"]] == [pytest.approx(1.0)] * 2


EXAMPLES = {
    "coco": ("detection/predictions.parquet", "detection/groundtruths.parquet"),
    "valor": ("detection/predictions.parquet", "detection/groundtruths.parquet"),
    "trec": ("retrieval/run.parquet", "retrieval/qrels.parquet"),
    "phoenix": ("classification/urgent.parquet",),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_other_tools_shapes_are_printed(run: Run, name: str) -> None:
    tables = [f"examples/{path}" for path in EXAMPLES[name]]
    status, out, err = run("score", *tables, "--export", name)
    assert status == 0
    output = getattr(ee.score(*tables), f"to_{name}")()
    if name == "trec":
        assert out.strip() == output.strip()
    elif name == "coco":
        printed = json.loads(out)
        assert printed["stats"] == output["stats"]
        assert not {"precision", "scores"} & set(printed)
    else:
        assert json.loads(out) == json.loads(json.dumps(output))
    assert "note:" in err or not ee.score(*tables).notes


def test_a_shape_that_a_task_does_not_have_is_refused(run: Run) -> None:
    tables = [f"examples/{path}" for path in EXAMPLES["coco"]]
    status, out, err = run("score", *tables, "--export", "ragas")
    assert (status, out) == (2, "")
    assert "to_ragas() has no" in err
    status, _, err = run("score", *tables, "--export", "coco", "--format", "json")
    assert status == 2
    assert "omit --format and --frame" in err
