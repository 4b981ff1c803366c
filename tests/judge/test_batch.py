"""Batch files: export, answers of a batch endpoint, import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judge.conftest import ROWS
from judge.server import Answer, completion, reply

import evalengine as ee
from evalengine.cli import main
from evalengine.judge.client import Cache, Completion
from evalengine.judge.judging import BatchFiles, collect, make_asking, read_batches
from evalengine.judge.run import PLANS

URL = "http://127.0.0.1:9/v1"


def write_answers(path: Path, *, bare: bool = False, failing: int = 0) -> tuple[Path, Path]:
    """Write a batch endpoint's files: answers in reverse order, and errors."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    done, failed = [], []
    for place, line in enumerate(reversed(lines)):
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        if place < failing:
            error = {"code": "server_error", "message": "worker died"}
            failed.append({"custom_id": line["custom_id"], "response": None, "error": error})
            continue
        body = completion(Answer(json.dumps(reply(line["body"]))))
        response = body if bare else {"status_code": 200, "request_id": "r", "body": body}
        done.append({"custom_id": line["custom_id"], "response": response, "error": None})
    output, errors = path.with_suffix(".out"), path.with_suffix(".err")
    output.write_text("\n".join(map(json.dumps, done)))
    errors.write_text("\n".join(map(json.dumps, failed)))
    return output, errors


def write_batches(requests, folder, **limits):
    """Write requests to files; return file -> number of lines."""
    with BatchFiles(folder, **limits) as files:
        for request in requests:
            files.add(request)
    return files.written


@pytest.mark.parametrize("bare", [False, True], ids=["response.body", "response"])
def test_a_round_trip_equals_an_endpoint(bare, server, judged, tmp_path):
    cache = str(tmp_path / "batch.sqlite")
    asks = make_asking(list(PLANS), model="loopback", base_url=URL, cache=cache)
    rounds = 0
    while requests := collect(ROWS, None, asks):
        files = write_batches(requests, tmp_path / f"round{rounds}")
        steps = {path.name.rsplit("-", 1)[0] for path in files}
        assert steps == {request.prompt.name for request in requests}  # one file per step
        for path in files:
            read_batches(write_answers(path, bare=bare), cache)
        rounds += 1
    assert rounds == 2
    named: dict[str, Any] = {"metrics": list(PLANS), "model": "loopback", "base_url": URL}
    ours = ee.judge(ROWS, cache=cache, offline=True, **named)
    theirs = judged(server, list(PLANS))
    columns = list(ours.verdicts.columns)
    assert ours.verdicts.select(columns).equals(theirs.verdicts.select(columns))
    assert ours.card.metrics["value"].to_list() == theirs.card.metrics["value"].to_list()


def test_failed_requests_are_reported_and_exported_again(tmp_path):
    cache = str(tmp_path / "c")
    asks = make_asking("Hallucination", model="m", base_url=URL, cache=cache)
    requests = collect(ROWS, None, asks)
    (path,) = write_batches(requests, tmp_path / "one")
    summary = read_batches(write_answers(path, failing=1), cache)
    assert (summary.answers, summary.failures) == (1, 1)
    done = ee.judge(
        ROWS, metrics="Hallucination", model="m", base_url=URL, cache=cache, offline=True
    )
    failed = done.verdicts.filter(done.verdicts["status"] == "batch_failed")
    assert failed["error"].to_list() == ["worker died"]
    remaining = collect(ROWS, None, asks)
    assert len(remaining) == 1
    (path,) = write_batches(remaining, tmp_path / "two")
    read_batches(write_answers(path), cache)
    assert collect(ROWS, None, asks) == []


def test_files_appear_only_when_all_are_complete(tmp_path):
    """Requests are written at once, but an interrupted export leaves no file."""
    asks = make_asking("Bias", model="m", base_url=URL, cache=str(tmp_path / "c"))
    first, second, _ = collect(ROWS, None, asks)
    folder = tmp_path / "a"

    def interrupted() -> None:
        with BatchFiles(folder, most_requests=1) as files:
            files.add(first)
            files.add(second)  # the first file is full and closed
            (early,) = folder.glob(".opinions-001*")
            assert early.stat().st_size > 0
            assert not list(folder.glob("*.jsonl"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(folder.iterdir()) == []


def test_files_are_split_at_both_limits(tmp_path):
    asks = make_asking("Bias", model="m", base_url=URL, cache=str(tmp_path / "c"))
    requests = collect(ROWS, None, asks)
    assert len(requests) == 3
    two = write_batches(requests, tmp_path / "a", most_requests=2)
    assert [(path.name, n) for path, n in two.items()] == [
        ("opinions-001.jsonl", 2),
        ("opinions-002.jsonl", 1),
    ]
    one = write_batches(requests, tmp_path / "b", most_bytes=10)
    assert list(one.values()) == [1, 1, 1]
    with pytest.raises(ee.InputError, match="empty folder"):
        write_batches(requests, tmp_path / "b")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no line of a batch"),
        ("[]", "no line of a batch"),
        ('{"id": 1}', "no line of a batch"),
        ('{"custom_id": 1}', "no line of a batch"),
        ('{"custom_id": "a", "method": "POST", "body": {}}', "this is a request"),
    ],
)
def test_other_files_are_refused_by_line(line, message, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n" + line)
    with pytest.raises(ee.InputError, match=f"line 2: .*{message}"):
        read_batches([path], tmp_path / "c")


def test_a_failed_response_and_a_broken_one_are_failures(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [
        {"custom_id": "a", "response": {"status_code": 400, "body": {"error": {"message": "no"}}}},
        {"custom_id": "b", "response": {"status_code": 200, "body": {"choices": []}}},
        {"custom_id": "c", "response": None, "error": None},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    summary = read_batches([path], tmp_path / "c")
    assert (summary.answers, summary.failures) == (0, 3)


def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ROWS.write_parquet("rows.parquet")
    asking = ["rows.parquet", "--metric", "Bias", "--model", "m", "--base-url", URL]
    for folder in ("one", "two"):
        assert main(["judge", "export", *asking, "--out", folder]) == 0
        (path,) = Path(folder).glob("*.jsonl")
        assert main(["judge", "import", *map(str, write_answers(path))]) == 0
    assert main(["judge", "export", *asking, "--out", "three"]) == 0
    printed = capsys.readouterr().out
    assert "opinions-001.jsonl: 3 requests" in printed
    assert "3 answers and 0" in printed
    assert "no request is open" in printed
    assert main(["judge", "run", *asking, "--offline", "--out", "v.parquet"]) == 0
    assert "Bias  0.6667" in capsys.readouterr().out


def line_of(path: Path, entry: Any) -> Path:
    path.write_text(entry if isinstance(entry, str) else json.dumps(entry))
    return path


@pytest.mark.parametrize(
    "entry",
    [
        {"response": {"status_code": 502, "body": "upstream connect error"}, "error": None},
        {"response": {"status_code": 502, "body": ["x"]}, "error": None},
        {"response": {"status_code": 200, "body": "fine"}, "error": None},
        {"response": {"status_code": 200, "body": ["fine"]}, "error": None},
        {"response": None, "error": {"message": "half \ud800"}},
        {"response": None, "error": "plain"},
        {"response": 7, "error": 7},
    ],
)
def test_unusual_lines_are_failures(entry, tmp_path):
    path = line_of(tmp_path / "x", {"custom_id": "a \udfff", **entry})
    summary = read_batches([path], tmp_path / "c")
    assert (summary.answers, summary.failures) == (0, 1)


@pytest.mark.parametrize("count", ["1e400", "99999999999999999999", "-3"])
def test_invalid_token_counts_are_a_failure(count, tmp_path):
    body = completion(Answer("{}"))
    text = json.dumps({"custom_id": "a", "response": {"status_code": 200, "body": body}})
    path = line_of(
        tmp_path / "x", text.replace('"prompt_tokens": 100', f'"prompt_tokens": {count}')
    )
    assert count in path.read_text()
    summary = read_batches([path], tmp_path / "c")
    assert (summary.answers, summary.failures) == (0, 1)


def test_an_answer_with_an_error_status_is_a_failure(tmp_path):
    body = completion(Answer("{}"))
    path = line_of(
        tmp_path / "x", {"custom_id": "a", "response": {"status_code": 500, "body": body}}
    )
    summary = read_batches([path], tmp_path / "c")
    assert (summary.answers, summary.failures) == (0, 1)


def test_a_key_in_an_error_is_not_stored(tmp_path):
    error = {"message": "Incorrect API key provided: sk-secret-0123456789abcdef"}
    read_batches([line_of(tmp_path / "x", {"custom_id": "a", "error": error})], tmp_path / "c")
    cache = Cache(tmp_path / "c")
    failure = cache.failure("a")
    cache.close()
    assert failure[0] == "batch_failed"
    assert failure[1].endswith("key provided: [key]")


def test_the_first_answer_replaces_a_failure(tmp_path):
    cache = Cache(tmp_path / "c")
    cache.fail("a", "batch_failed", "worker died")
    first, second = Completion("first"), Completion("second")
    assert cache.put("a", "p", "m", first) == first
    assert cache.failure("a") is None
    assert cache.put("a", "p", "m", second) == first
    assert cache.get("a") == first
    cache.close()


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "x"
    body = completion(Answer("{}"))
    path.write_text("\ufeff" + json.dumps({"custom_id": "a", "response": body}), "utf-8")
    assert read_batches([path], tmp_path / "c").answers == 1


@pytest.mark.parametrize(("status", "remaining"), [(400, 1), (413, 1), (429, 2), (500, 2)])
def test_rejected_requests_are_not_exported_again(status, remaining, tmp_path):
    cache = str(tmp_path / "c")
    asks = make_asking("Hallucination", model="m", base_url=URL, cache=cache)
    first, _ = collect(ROWS, None, asks)
    body = {"error": {"message": "too long"}}
    entry = {"custom_id": first.key, "response": {"status_code": status, "body": body}}
    summary = read_batches([line_of(tmp_path / "x", entry)], cache)
    assert (summary.failures, summary.foreign) == (1, 0)
    assert len(collect(ROWS, None, asks)) == remaining
    done = ee.judge(
        ROWS, metrics="Hallucination", model="m", base_url=URL, cache=cache, offline=True
    )
    kind = "rejected" if remaining == 1 else "batch_failed"
    assert done.verdicts.filter(done.verdicts["error"] == "too long")["status"].to_list() == [kind]


def test_answers_to_unknown_requests_are_noted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    body = completion(Answer("{}"))
    line_of(tmp_path / "x", {"custom_id": "a", "response": body})
    assert main(["judge", "import", "x"]) == 0
    assert "1 of them" in capsys.readouterr().err
