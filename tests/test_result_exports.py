"""Exports of any task: model-index, OpenMetrics, OpenTelemetry.

The formats were checked with huggingface_hub 2.4 (ModelCard, model_index_to_eval_results) and the
parser of prometheus_client 0.26.
"""

from __future__ import annotations

import json

import polars as pl
import pytest

import evalengine as ee
from evalengine.cli import main
from evalengine.schemas.errors import OptionError, ResultError

RUN = pl.DataFrame({"query_id": ["a", "a", "b"], "doc_id": [1, 2, 3], "score": [0.9, 0.8, 0.7]})
QRELS = pl.DataFrame({"query_id": ["a", "b"], "doc_id": [2, 4], "relevance": [1, 1]})


@pytest.fixture(scope="module")
def retrieval():
    return ee.score(RUN, QRELS, metrics=["MRR", "MAP"])


def test_model_index(retrieval) -> None:
    index = retrieval.to_model_index("bm25", "Tiny: 2", dataset_split="test")
    assert index == {
        "model-index": [
            {
                "name": "bm25",
                "results": [
                    {
                        "task": {"type": "text-retrieval"},
                        "dataset": {"name": "Tiny: 2", "type": "Tiny: 2", "split": "test"},
                        "metrics": [
                            {
                                "type": "mrr",
                                "name": "MRR",
                                "value": 0.25,
                                "args": {"support": 2, "cite": retrieval.cite},
                            },
                            {"type": "map", "name": "MAP", "value": 0.25, "args": {"support": 2}},
                        ],
                    }
                ],
            }
        ]
    }
    assert index.to_yaml() == (
        "model-index:\n"
        '  - name: "bm25"\n'
        "    results:\n"
        "      - task:\n"
        '          type: "text-retrieval"\n'
        "        dataset:\n"
        '          name: "Tiny: 2"\n'
        '          type: "Tiny: 2"\n'
        '          split: "test"\n'
        "        metrics:\n"
        '          - type: "mrr"\n'
        '            name: "MRR"\n'
        "            value: 0.25\n"
        "            args:\n"
        "              support: 2\n"
        f'              cite: "{retrieval.cite}"\n'
        '          - type: "map"\n'
        '            name: "MAP"\n'
        "            value: 0.25\n"
        "            args:\n"
        "              support: 2\n"
    )


def test_model_index_of_tasks_that_the_hub_does_not_have() -> None:
    card = ee.score(pl.DataFrame({"actual": [1, 0], "predicted": [1, 1]}))
    with pytest.raises(OptionError, match="task_type"):
        card.to_model_index("m", "d")
    for wrong in ("bogus", "Text Classification"):
        with pytest.raises(OptionError, match="task_type"):
            card.to_model_index("m", "d", task_type=wrong)
    index = card.to_model_index("m", "d", task_type="text-classification", task_name="Spam")
    result = index["model-index"][0]["results"][0]
    assert result["task"] == {"type": "text-classification", "name": "Spam"}
    assert result["metrics"][0]["type"] == "accuracy"


def test_openmetrics_has_every_defined_value(retrieval) -> None:
    assert retrieval.to_openmetrics({"model": "bm25"}, timestamp=5) == (
        "# TYPE evalengine_value gauge\n"
        "# HELP evalengine_value Value of a metric.\n"
        'evalengine_value{task="retrieval",dialect="standard",model="bm25",metric="MRR"} 0.25 5\n'
        'evalengine_value{task="retrieval",dialect="standard",model="bm25",metric="MAP"} 0.25 5\n'
        "# TYPE evalengine_support gauge\n"
        "# HELP evalengine_support Rows that the value rests on.\n"
        'evalengine_support{task="retrieval",dialect="standard",model="bm25",metric="MRR"} 2 5\n'
        'evalengine_support{task="retrieval",dialect="standard",model="bm25",metric="MAP"} 2 5\n'
        "# EOF\n"
    )
    card = ee.score(
        pl.DataFrame({"actual": ["a", "b"], "predicted": ["b", "b"]}), metrics=["Precision"]
    )
    defined = card.metrics["value"].drop_nulls()
    assert 0 < len(defined) < card.metrics.height
    values = [x for x in card.to_openmetrics().splitlines() if x.startswith("evalengine_value{")]
    assert [float(line.rpartition(" ")[2]) for line in values] == defined.to_list()


VERDICTS = pl.DataFrame(
    {
        "datum_id": ["x", "x", "y", "z"],
        "metric": ["Bias", "Bias", "Bias", "Bias"],
        "item_index": [0, 1, 0, None],
        "verdict": ["no", "no", "yes", None],
        "reason": ["fair", "balanced", None, None],
        "status": ["ok", "ok", "ok", "rate_limited"],
    }
)


def events(text: str) -> list[dict[str, object]]:
    scope = json.loads(text)["resourceLogs"][0]["scopeLogs"][0]
    assert scope["scope"]["name"] == "evalengine"
    found = []
    for record in scope["logRecords"]:
        assert record["eventName"] == "gen_ai.evaluation.result"
        assert int(record["timeUnixNano"]) > 0
        pairs = {one["key"]: next(iter(one["value"].items())) for one in record["attributes"]}
        kinds = {kind: type(value) for kind, value in pairs.values()}
        assert set(kinds.items()) <= {("stringValue", str), ("doubleValue", float)}
        found.append({key.removeprefix("gen_ai."): value for key, (_, value) in pairs.items()})
    return found


def test_judged_rows_are_events() -> None:
    card = ee.score(VERDICTS)
    assert card.per_datum["value"].to_list() == [0.0, 1.0, None]
    text = card.to_otlp(VERDICTS)
    assert text.count("\n") == 1
    assert events(text) == [
        {
            "evaluation.name": "Bias",
            "response.id": "x",
            "evaluation.score.value": 0.0,
            "evaluation.score.label": "pass",  # without bias
            "evaluation.explanation": "fair\nbalanced",
        },
        {
            "evaluation.name": "Bias",
            "response.id": "y",
            "evaluation.score.value": 1.0,
            "evaluation.score.label": "fail",
        },
        {"evaluation.name": "Bias", "response.id": "z", "error.type": "rate_limited"},
    ]
    with pytest.raises(OptionError, match="reason"):
        card.to_otlp(VERDICTS.drop("reason"))


def test_runs_without_rows_per_datum_have_no_events() -> None:
    card = ee.score(pl.DataFrame({"actual": [1, 0], "predicted": [1, 1]}))
    with pytest.raises(ResultError, match="per_datum"):
        card.to_otlp()


def test_the_command_prints_them(tmp_path, capsys) -> None:
    VERDICTS.write_parquet(tmp_path / "v.parquet")
    assert main(["score", str(tmp_path / "v.parquet"), "--export", "otlp"]) == 0
    assert len(events(capsys.readouterr().out)) == 3
    assert main(["score", str(tmp_path / "v.parquet"), "--export", "openmetrics"]) == 0
    assert capsys.readouterr().out.endswith("# EOF\n")
