"""Public call and command: options, refusals, cache, prompts."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from judge.conftest import ROWS
from judge.server import Answer, given_of, serving
from new_process import python
from refusals import refused

import evalengine as ee
from evalengine.cli import cli, main
from evalengine.endpoint import AnswerFile
from evalengine.judge.run import PLANS


@pytest.mark.parametrize("first", ["pass", "import evalengine.judge.judging", "ee.judge"])
def test_judge_is_callable_after_any_import(first):
    code = (
        f"import evalengine as ee; {first}\n"
        "try: ee.judge([], metrics=[], model='m', base_url='http://h')\n"
        "except ee.OptionError as error: assert 'choose one or more of' in str(error)\n"
        "else: raise SystemExit(1)\n"
        "import evalengine.judge.judging\nassert callable(ee.judge)"
    )
    python(code)


def test_every_metric_has_a_plan_and_every_plan_a_metric():
    names = [row["name"] for row in ee.metrics_table().filter(task="judged").iter_rows(named=True)]
    assert sorted(names) == sorted(PLANS)


WRONG = [
    ({"metrics": ["Fathfulness"]}, "Did you mean 'Faithfulness'"),
    ({"metrics": []}, "choose one or more of"),
    ({"mode": "f2"}, "mode='f2'"),
    ({"atomicity": "mid"}, "atomicity='mid'"),
    ({"judgments": 0}, "judgments: 1 or more"),
    ({"retries": -1}, "retries: 0 or more"),
    ({"model": " "}, "model"),
    ({"parameters": {"stream": True}}, "stream cannot be set"),
    ({"structured": "yaml"}, "structured='yaml'"),
    ({"concurrency": 0}, "concurrency: 1 or more"),
    ({"base_url": "h"}, "base_url"),
    ({"base_url": "http://h:99999/v1"}, "base_url"),
    ({"judgements": 3}, "Did you mean 'judgments'"),
    ({"out": "no/such/folder/v.parquet"}, "out="),
    ({"out": "."}, "out="),
    ({"out": "v.csv"}, "end it in .parquet"),
    ({"out": "v"}, "end it in .parquet"),
    ({"requests_per_minute": 0}, "requests_per_minute=0: more than 0"),
    ({"requests_per_minute": -5.0}, "requests_per_minute=-5"),
    ({"requests_per_minute": float("nan")}, "requests_per_minute=nan"),
    ({"max_requests": -1}, "max_requests=-1: 0 or more"),
    ({"max_tokens": -1}, "max_tokens=-1"),
    ({"max_cost": float("nan"), "prices": {"m": {"input": 1, "output": 1}}}, "max_cost=nan"),
    ({"timeout": float("nan")}, "timeout: more than 0"),
    ({"timeout": 0}, "timeout: more than 0"),
    ({"temperature": float("nan")}, "temperature=nan"),
    ({"max_output_tokens": 0}, "max_output_tokens: 1 or more"),
    ({"parameters": {"x": float("nan")}}, "x=nan is not JSON"),
    ({"parameters": {"x": object()}}, "is not JSON"),
    ({"parameters": {"temperature": 0.7}, "temperature": 0.5}, "temperature is given twice"),
    ({"parameters": {"max_tokens": 5}, "max_output_tokens": 9}, "max_output_tokens is given twice"),
    ({"api_key_env": "NOBODY_SET_THIS"}, "NOBODY_SET_THIS': this environment variable is not set"),
    ({"scoring": {"dialect": "x"}}, "'x' is not a known dialect"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[message for _, message in WRONG])
def test_invalid_options_are_refused_before_anything_is_sent(given, message, server, tmp_path):
    named = {"metrics": "Bias", "model": "m", "base_url": server.url, **given}
    with pytest.raises(ee.OptionError, match=message):
        ee.judge(ROWS, cache=str(tmp_path / "c"), **named)
    assert server.requests == []


def test_a_missing_extra_is_named(server, judged, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with refused("package_missing", package="httpx"):
        judged(server, ["Bias"])
    assert list(tmp_path.iterdir()) == []
    # Cached answers need no endpoint.
    assert judged(server, ["Bias"], offline=True).verdicts["status"][0] == "not_answered"


def test_no_rows_make_no_calls(server, judged):
    done = judged(server, ["Bias"], data=ROWS.clear())
    assert (done.verdicts.height, server.requests) == (0, [])
    assert done.card.metrics.select("value", "support").row(0) == (None, 0)


def test_missing_columns_of_a_metric_are_named(server, judged):
    with refused("column_missing", columns=["contexts"]):
        judged(server, ["Faithfulness"], data=ROWS.drop("contexts"))
    renamed = ROWS.rename({"contexts": "passages"})
    judged(server, ["Faithfulness"], data=renamed, columns={"passages": "contexts"})


def test_a_parameter_replaces_its_option(server, judged):
    judged(server, ["Coherence"], parameters={"temperature": 0.7, "max_tokens": 5})
    assert {body["temperature"] for body in server.requests} == {0.7}
    assert {body["max_tokens"] for body in server.requests} == {5}


def test_the_output_does_not_overwrite_inputs(server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ROWS.write_parquet("a.parquet")
    Path("link.parquet").symlink_to("a.parquet")
    before = Path("a.parquet").read_bytes()
    named = {"metrics": "Bias", "model": "m", "base_url": server.url}
    for data, out in (
        ("a.parquet", "a.parquet"),
        ("a.parquet", str(tmp_path / "a.parquet")),
        ("a.parquet", "link.parquet"),
        ("a*.parquet", "a.parquet"),
        (Path("a.parquet"), Path("a.parquet")),
        (["a.parquet"], "a.parquet"),
    ):
        with pytest.raises(ee.OptionError, match="would be replaced"):
            ee.judge(data, out=out, **named)
    with pytest.raises(ee.OptionError, match="would be replaced"):
        ee.judge(ROWS, "a.parquet", out="a.parquet", **named)
    with pytest.raises(ee.OptionError, match="would be replaced"):
        ee.judge(ROWS, cache="c.parquet", out="c.parquet", **named)
    command = ["judge", "run", "a.parquet", "--metric", "Bias", "--model", "m", "--base-url",
               server.url, "--out"]  # fmt: skip
    assert main([*command, "a.parquet"]) == 2
    assert main([*command, "q.csv"]) == 2
    assert ".parquet" in capsys.readouterr().err
    assert Path("a.parquet").read_bytes() == before
    assert server.requests == []
    assert not Path("judge.sqlite").exists()


def test_ground_truths_come_from_one_place(server, judged):
    references = pl.DataFrame({"datum_id": ["a"], "text": ["t"]})
    with refused("given_twice", column="reference"):
        judged(server, ["ContextRecall"], references=references)
    assert server.requests == []


def test_messages_about_rows_fit_the_judge(server, judged):
    flat = ROWS.with_columns(contexts=pl.lit("one; two"))
    with pytest.raises(ee.InputError, match="list of strings") as raised:
        judged(server, ["Hallucination"], data=flat)
    assert "doc_id" not in str(raised.value)
    assert "str.split" in str(raised.value)
    holes = ROWS.with_columns(datum_id=pl.Series(["a", None, "c"]))
    with pytest.raises(ee.InputError, match="1 null") as raised:
        judged(server, ["Bias"], data=holes)
    assert "where" not in str(raised.value)


def test_verdicts_and_rows_without_one_are_counted_separately(
    server, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    ROWS.write_ndjson("rows.jsonl")
    command = ["judge", "run", "rows.jsonl", "--metric", "Hallucination", "--model", "m",
               "--base-url", server.url, "--out", "v.parquet"]  # fmt: skip
    assert main(command) == 0
    assert "3 verdicts and 1 row" in capsys.readouterr().err


def test_invalid_tables_are_refused(server, judged):
    twice = pl.concat([ROWS, ROWS.head(1)])
    with refused(
        "repeated_values",
        side="judge_rows",
        column="datum_id",
        count=2,
        rows=[0, 3],
        values=1,
        key=["datum_id"],
    ):
        judged(server, ["Bias"], data=twice)
    holes = ROWS.with_columns(contexts=pl.Series([["a", None], ["b"], []]))
    with refused("null_in_list", side="judge_rows", column="contexts", count=1):
        judged(server, ["Hallucination"], data=holes)
    strange = pl.DataFrame({"datum_id": ["a", "x"], "text": ["t", "u"]})
    with refused("ids_unmatched", count=1):
        judged(server, ["ContextRecall"], data=ROWS.drop("reference"), references=strange)
    assert server.requests == []


def test_a_cache_that_is_no_database_is_refused(server, judged, tmp_path):
    (tmp_path / "text").write_text("no database, but long enough to be looked at " * 20)
    with pytest.raises(ee.InputError, match="cannot be used"):
        judged(server, ["Bias"], cache=str(tmp_path / "text"))


@pytest.mark.parametrize("sql", ["CREATE TABLE mine (a)", "CREATE TABLE answers (id INTEGER)"])
def test_another_database_is_refused_as_cache(sql, server, judged, tmp_path):
    path = tmp_path / "mine.db"
    with sqlite3.connect(path) as base:
        base.execute(sql)
    base.close()
    before = path.read_bytes()
    with refused("cache_unusable"):
        judged(server, ["Bias"], cache=str(path))
    assert path.read_bytes() == before
    assert server.requests == []


def test_a_cache_of_another_version_is_refused(server, judged, tmp_path):
    path = tmp_path / "judge.sqlite"
    judged(server, ["Coherence"])
    judged(server, ["Coherence"])  # a cache of this version is accepted
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version=9")
    base.close()
    with pytest.raises(ee.InputError, match="its form is 9"):
        judged(server, ["Coherence"])


def test_the_cache_distinguishes_endpoints(server, judged):
    judged(server, ["Coherence"])
    with serving() as other:
        judged(other, ["Coherence"])
        assert len(other.requests) == len(server.requests) == 3


def test_two_runs_on_one_cache_agree(tmp_path):
    """Both may send the same request at the same time; the first answer counts."""
    ratings = iter(range(10**6))

    def script(body: dict[str, Any], before: int) -> Answer:
        return Answer(json.dumps({"rating": 1 + next(ratings) % 5}), wait=0.05)

    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(30)]})
    results: list[Any] = []
    with serving(script) as server:
        named = {"metrics": "Coherence", "model": "m", "base_url": server.url, "concurrency": 2}
        threads = [
            threading.Thread(
                target=lambda: results.append(ee.judge(rows, cache=str(tmp_path / "c"), **named))
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        repeated = ee.judge(rows, cache=str(tmp_path / "c"), **named)
    assert repeated.usage.requests == 0
    for one in results:
        assert one.verdicts["verdict"].to_list() == repeated.verdicts["verdict"].to_list()


def test_several_runs_may_open_a_new_cache_at_the_same_time(tmp_path):
    """SQLite does not wait while two connections switch the journal of one file."""
    failures: list[Exception] = []
    for number in range(80):
        barrier = threading.Barrier(8)

        def open_cache(path: str = str(tmp_path / str(number)), at: Any = barrier) -> None:
            at.wait()
            try:
                AnswerFile(path, "CREATE TABLE IF NOT EXISTS a (key TEXT PRIMARY KEY)").close()
            except ee.InputError as error:
                failures.append(error)

        threads = [threading.Thread(target=open_cache) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_the_cache_distinguishes_parameters_models_and_prompts(server, judged, tmp_path):
    judged(server, ["Coherence"])
    sent = len(server.requests)
    judged(server, ["Coherence"], temperature=0.5)
    judged(server, ["Coherence"], model="other")
    judged(server, ["Coherence"], parameters={"seed": 1})
    assert main(["judge", "prompts", "--out", str(tmp_path / "mine")]) == 0
    prompt = tmp_path / "mine" / "coherence.toml"
    prompt.write_text(prompt.read_text().replace("version = 1", "version = 2"), "utf-8-sig")
    done = judged(server, ["Coherence"], prompts=str(tmp_path / "mine"))
    assert len(server.requests) == 5 * sent
    assert set(done.verdicts["prompt"]) == {"coherence/2"}
    bodies = [body for body in server.requests if "seed" in body]
    assert {body["temperature"] for body in bodies} == {0.0}
    bare = judged(server, ["Coherence"], temperature=None, max_output_tokens=50)
    assert bare.usage.requests == sent
    assert "temperature" not in server.requests[-1]
    assert server.requests[-1]["max_tokens"] == 50


def test_custom_prompts_are_checked(tmp_path, server, judged):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(ee.InputError, match="no prompts there"):
        judged(server, ["Bias"], prompts=str(folder))
    (folder / "bias.toml").write_text("version = 1\n")
    with refused("file_malformed", file="bias.toml"):
        judged(server, ["Bias"], prompts=str(folder))
    (folder / "bias.toml").rename(folder / "byas.toml")
    with refused("unknown_name", value="byas"):
        judged(server, ["Bias"], prompts=str(folder))
    (folder / "byas.toml").unlink()
    assert main(["judge", "prompts", "--out", str(folder)]) == 0
    assert main(["judge", "prompts", "--out", str(folder)]) == 2
    (folder / "bias.toml").write_text(
        (folder / "bias.toml").read_text().replace('["yes", "no"]', '["ja", "nein"]')
    )
    with pytest.raises(ee.InputError, match="words = "):
        judged(server, ["Bias"], prompts=str(folder))


def test_every_prompt_describes_its_data_and_reply(server, judged):
    judged(server, list(PLANS))
    assert len({body["messages"][0]["content"] for body in server.requests}) >= len(PLANS)
    for body in server.requests:
        system = body["messages"][0]["content"]
        assert "one JSON object" in system
        assert "be judged" in system
        for name in given_of(body):
            assert f'"{name}"' in system, (name, system)
        schema = body["response_format"]["json_schema"]
        assert schema["strict"] is True
        assert schema["schema"]["additionalProperties"] is False


def test_the_command_reports_an_unknown_model(server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ROWS.write_ndjson("rows.jsonl")
    error = {"message": "The model `x` does not exist", "code": "model_not_found"}
    server.script = lambda body, before: Answer(status=404, body={"error": error})
    command = ["judge", "run", "rows.jsonl", "--metric", "Bias", "--model", "x", "--base-url",
               server.url, "--out", "v.parquet"]  # fmt: skip
    assert main(command) == 3  # the run failed
    output = capsys.readouterr().err
    assert f"at {server.url}" in output
    assert "The model `x`" in output
    assert not (tmp_path / "v.parquet").exists()


def test_options_of_the_command(server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ROWS.write_parquet("rows.parquet")
    command = ["judge", "run", "rows.parquet", "--metric", "Bias,FactualCorrectness", "--model",
               "m", "--out", "v.parquet"]  # fmt: skip
    more = ["--mode", "recall", "--beta", "2", "--temperature", "none", "--param", "seed=7",
            "--param", "user=me", "--dialect", "ragas", "--format", "csv"]  # fmt: skip
    assert main([*command, *more]) == 0
    assert '""mode"": ""recall"", ""beta"": 2.0' in capsys.readouterr().out
    body = server.requests[0]
    assert (body["seed"], body["user"]) == (7, "me")
    assert "temperature" not in body
    for wrong in (["--temperature", "warm"], ["--param", "seed"]):
        assert main([*command, *wrong]) == 2


def test_notes_of_the_numbers_in_csv(server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    rows = pl.DataFrame(
        {"datum_id": [1, 2], "query": ["q", "q"], "text": ["t", "t"], "contexts": [["c"], []]}
    )
    rows.write_parquet("rows.parquet")
    command = ["judge", "run", "rows.parquet", "--metric", "ContextRelevance", "--model", "m"]
    assert main([*command, "--out", "v.parquet", "--format", "csv"]) == 0
    assert "1 of 2 rows scored; no_contexts 1." in capsys.readouterr().err


@pytest.mark.parametrize("task", [None, "judged"])
def test_texts_without_verdicts_are_refused_with_a_command(
    task: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "my answers.parquet"
    rows = {"question": ["q", "r"], "contexts": [["c"], ["d"]], "answer": ["a", "b"]}
    pl.DataFrame(rows).write_parquet(path)
    with pytest.raises(ee.InputError) as raised:
        ee.score(path, metrics=["Faithfulness"], task=task)
    command = shlex.split(str(raised.value).partition(": ")[2].partition(" && ")[0])
    words = command[command.index("evalengine") :]
    assert words[1:4] == ["judge", "run", str(path)]
    run = cli.commands["judge"].commands["run"]
    parsed = run.make_context("run", words[3:])
    assert parsed.params["metrics"] == ("Faithfulness",)


def test_a_metric_of_other_tasks_does_not_suggest_the_judge() -> None:
    table = pl.DataFrame({"answer": ["a b", "c"], "reference": ["a b", "d"]})
    assert ee.score(table, metrics=["ROUGE1"]).task == "text"
    with pytest.raises(ee.EvalengineError) as raised:
        ee.score(table.drop("reference"), metrics=["ROUGE1"])
    assert "judge" not in str(raised.value)
