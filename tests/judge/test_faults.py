"""Faults of endpoints and replies: repeated, then recorded as rows."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import polars as pl
import pytest
from judge.conftest import ROWS
from judge.server import Answer, answer_correctly, reply, serving
from refusals import refused

import evalengine as ee
from evalengine import endpoint
from evalengine.endpoint import Transient
from evalengine.judge.client import ChatClient

ONE = ROWS.head(1)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten waits before repeats; ``test_retries`` tests the waits."""
    monkeypatch.setattr(endpoint, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(endpoint, "_LEAST_SPREAD", 0.01)


def judge(server: Any, tmp_path: Any, data: pl.DataFrame = ONE, **more: Any) -> Any:
    named = {"metrics": "Hallucination", "model": "m", "cache": str(tmp_path / "c"), **more}
    return ee.judge(data, base_url=server.url, **named)


def first(*answers: Answer) -> Any:
    """Return a script that gives these answers first and valid replies afterwards."""

    def script(body: dict[str, Any], before: int) -> Answer:
        return answers[before] if before < len(answers) else answer_correctly(body, before)

    return script


VERDICTS = "verdicts"
SHORT = json.dumps({VERDICTS: []})
LONG = json.dumps({VERDICTS: [{"reason": "", "verdict": "yes"}] * 2})
STRANGE = json.dumps({VERDICTS: [{"reason": "", "verdict": "perhaps"}]})
BAD_REPLIES = {
    "malformed_reply": Answer("I would rather talk about the weather."),
    "missing_verdicts": Answer(SHORT),
    "extra_verdicts": Answer(LONG),
    "wrong_vocabulary": Answer(STRANGE),
    "truncated": Answer('{"verdicts": [{"reason": "it was', finish="length"),
    "refused": Answer(None, refusal="I cannot help with that."),
}


ENDED = ("truncated", "refused")


@pytest.mark.parametrize("kind", BAD_REPLIES)
def test_a_bad_reply_is_asked_for_again(kind, tmp_path):
    with serving(first(BAD_REPLIES[kind])) as server:
        done = judge(server, tmp_path, temperature=1.0)
        assert len(server.requests) == 2
    assert done.card.value("Hallucination") == 1.0


@pytest.mark.parametrize("kind", BAD_REPLIES)
def test_at_temperature_0_no_request_is_sent_twice(kind, tmp_path):
    """A repeat names the fault of the reply; truncated and refused replies are not repeated."""
    with serving(lambda body, before: BAD_REPLIES[kind]) as server:
        judge(server, tmp_path)
        bodies = [json.dumps(body, sort_keys=True) for body in server.requests]
    assert len(bodies) == len(set(bodies)) == (1 if kind in ENDED else 4)
    if kind not in ENDED:
        reply_message, correction = server.requests[1]["messages"][2:]
        assert reply_message == {"role": "assistant", "content": BAD_REPLIES[kind].text}
        assert correction["role"] == "user"
        assert "cannot be used" in correction["content"]


def test_an_empty_reply_is_not_sent_back(tmp_path):
    with serving(first(Answer(""))) as server:
        judge(server, tmp_path)
    roles = [message["role"] for message in server.requests[1]["messages"]]
    assert roles == ["system", "user", "user"]


def test_an_endpoint_that_always_fails_is_given_up(tmp_path):
    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(300)], "contexts": [["c"]] * 300})

    def script(body: dict[str, Any], before: int) -> Answer:
        return answer_correctly(body, before) if before < 5 else Answer(status=500)

    with serving(script) as server:
        with refused("endpoint_failing", ee.JudgeError, count=20):
            judge(server, tmp_path, data=rows, retries=1, concurrency=4)
        assert len(server.requests) < 5 + 2 * (20 + 4) + 1
        server.script = answer_correctly
        done = judge(server, tmp_path, data=rows)
    assert done.usage.cached == 5
    assert done.card.metrics["scored"][0] == 300


@pytest.mark.parametrize("kind", BAD_REPLIES)
def test_repeated_bad_replies_are_an_error_row(kind, tmp_path):
    with serving(lambda body, before: BAD_REPLIES[kind]) as server:
        done = judge(server, tmp_path, retries=2, temperature=1.0)
        assert len(server.requests) == 3
        repeated = judge(server, tmp_path, retries=2, temperature=1.0)
        assert len(server.requests) == 3  # bad replies are cached too
    assert done.verdicts["status"].to_list() == [kind]
    assert done.verdicts["verdict"].to_list() == [None]
    assert "asked 3 times" in done.verdicts["error"][0]
    assert done.card.value("Hallucination") is None
    assert done.card.metrics["reason"][0].endswith(f"{kind} 1")
    assert repeated.verdicts.equals(done.verdicts)
    assert done.verdicts["input_tokens"].to_list() == [300]


def test_a_bad_reply_of_the_first_step_is_one_error_row(tmp_path):
    with serving(lambda body, before: Answer("no braces")) as server:
        done = judge(server, tmp_path, metrics=["Bias", "AnswerCorrectness"], retries=0)
    rows = done.verdicts.select("metric", "step", "status").rows()
    assert rows == [
        ("Bias", "opinions", "malformed_reply"),
        ("AnswerCorrectness", "response", "malformed_reply"),
    ]
    assert done.card.metrics["scored"].to_list() == [0, 0]


FAULTS = {
    "rate_limited": Answer(status=429, headers={"Retry-After": "0.01"}),
    "server_error": Answer(status=500),
    "connection": Answer(drop=True),
    "bad_answer": Answer(body=b"<html>gateway</html>"),
}


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all threads continue at once after a pause."""
    monkeypatch.setattr("evalengine.endpoint._LEAST_SPREAD", 0.01)
    monkeypatch.setattr("evalengine.endpoint._MOST_SPREAD", 0.01)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_tried_again(kind, tmp_path):
    with serving(first(FAULTS[kind])) as server:
        done = judge(server, tmp_path)
        assert len(server.requests) == 2
    assert done.card.value("Hallucination") == 1.0
    assert (done.usage.requests, done.usage.answers) == (2, 1)


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.usefixtures("eager")
def test_a_lasting_fault_is_an_error_row_that_a_later_run_repeats(kind, tmp_path):
    with serving(lambda body, before: FAULTS[kind]) as server:
        done = judge(server, tmp_path, retries=1)
        assert done.verdicts["status"].to_list() == [kind]
        assert len(server.requests) == (9 if kind == "rate_limited" else 2)
        server.script = answer_correctly
        assert judge(server, tmp_path).card.value("Hallucination") == 1.0


def test_a_slow_answer_times_out(tmp_path):
    with serving(first(Answer("{}", wait=1.0))) as server:
        done = judge(server, tmp_path, timeout=0.3)
        assert len(server.requests) == 2
    assert done.card.value("Hallucination") == 1.0
    with serving(lambda body, before: Answer("{}", wait=1.0)) as server:
        done = judge(server, tmp_path, timeout=0.2, retries=0, cache=str(tmp_path / "d"))
    assert done.verdicts["status"].to_list() == ["timeout"]


def test_retry_after_delays_all_requests(tmp_path):
    with serving(first(Answer(status=429, headers={"Retry-After": "0.7"}))) as server:
        begun = time.monotonic()
        judge(server, tmp_path)
        assert time.monotonic() - begun >= 0.7


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "key was refused"),
        (402, "no credit left"),
        (403, "not allowed"),
        (404, "no such model"),
        (307, "somewhere"),
    ],
)
def test_permanent_errors_stop_at_once(status, message, tmp_path):
    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(200)], "contexts": [["c"]] * 200})
    body = {"error": {"message": "Incorrect API key provided: sk-secret-0123456789abcdef"}}
    with serving(lambda _, before: Answer(status=status, body=body)) as server:
        with pytest.raises(ee.JudgeError, match=message) as raised:
            judge(server, tmp_path, data=rows, concurrency=4)
        assert len(server.requests) <= 5
    assert "sk-secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_model_with_status_400_stops_at_once(tmp_path):
    body = {"error": {"message": "Model Not Exist", "code": "model_not_found"}}
    with serving(lambda _, before: Answer(status=400, body=body)) as server:
        with pytest.raises(ee.JudgeError, match="no such model"):
            judge(server, tmp_path)
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [403, 404])
def test_a_text_that_a_filter_refuses_is_a_row(status, tmp_path):
    """If the endpoint has answered other requests, the key and the model are valid."""
    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(12)], "contexts": [["c"]] * 12})

    def script(body: dict[str, Any], before: int) -> Answer:
        if "Text 7." in body["messages"][1]["content"]:
            return Answer(status=status, body={"error": {"message": "Your input was flagged"}})
        return answer_correctly(body, before)

    with serving(script) as server:
        done = judge(server, tmp_path, data=rows, concurrency=1)
        failed = done.verdicts.filter(pl.col("status") != "ok")
        failed = failed.select("datum_id", "status", "error")
        assert failed.rows() == [(7, "rejected", f"HTTP {status}: Your input was flagged")]
        repeated = judge(server, tmp_path, data=rows, concurrency=1)
        assert repeated.verdicts["status"].to_list() == done.verdicts["status"].to_list()
        assert len(server.requests) == 13


def test_a_key_that_is_withdrawn_stops_a_run(tmp_path):
    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(100)], "contexts": [["c"]] * 100})

    def script(body: dict[str, Any], before: int) -> Answer:
        return answer_correctly(body, before) if before < 10 else Answer(status=403)

    with serving(script) as server:
        with pytest.raises(ee.JudgeError, match="not allowed"):
            judge(server, tmp_path, data=rows, concurrency=1)
        assert len(server.requests) == 30


def test_a_lost_endpoint_is_an_error_row(tmp_path):
    """A run continues, because an endpoint that has answered before may return."""
    rows = pl.DataFrame({"text": ["One.", "Two."], "contexts": [["c"]] * 2})
    with serving() as server:
        server.script = lambda body, before: (
            answer_correctly(body, before) if before == 0 else Answer(drop=True)
        )
        done = judge(server, tmp_path, data=rows, concurrency=1, retries=0)
    assert done.verdicts["status"].to_list() == ["ok", "connection"]


def test_an_address_is_unreachable_only_before_its_first_answer():
    body = {"model": "m", "messages": [{}, {"content": "{}"}]}
    with serving(lambda body, before: Answer("{}")) as server:
        client, other = (ChatClient(server.url, None, 5.0, 1) for _ in range(2))
        client.complete(body)
    client._http.close()
    client._http = other._http  # a new connection, to a server that has stopped
    for one, unreachable in ((client, False), (ChatClient(server.url, None, 5.0, 1), True)):
        with pytest.raises(Transient) as raised:
            one.complete(body)
        assert raised.value.unreachable is unreachable
        one.close()


def test_an_empty_account_stops_at_once(tmp_path):
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    with serving(lambda _, before: Answer(status=429, body=body)) as server:
        with pytest.raises(ee.JudgeError, match="quota"):
            judge(server, tmp_path)
        assert len(server.requests) == 1


def test_an_unreachable_endpoint_stops_at_once(tmp_path):
    with serving() as server:
        pass
    with pytest.raises(ee.JudgeError, match="no endpoint answers"):
        judge(server, tmp_path, retries=1)


def test_an_endpoint_without_schemas_gets_plain_prompts(tmp_path):
    formats: list[Any] = []

    def script(body: dict[str, Any], before: int) -> Answer:
        form = body.get("response_format", {}).get("type")
        formats.append(form)
        if form is not None:
            error = {"message": f"response_format {form} is not supported"}
            return Answer(status=400, body={"error": error})
        return Answer("Sure!\n```json\n" + json.dumps(reply(body)) + "\n```\nAnything else?")

    with serving(script) as server:
        done = judge(server, tmp_path, data=ROWS, concurrency=1)
    assert done.card.metrics["scored"].to_list() == [2]
    assert formats == ["json_schema", "json_object", None, None]  # then remembered


def test_a_row_that_mentions_schemas_does_not_change_the_format(tmp_path):
    """The format may change only before the first answer in it."""
    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(6)], "contexts": [["c"]] * 6})

    def script(body: dict[str, Any], before: int) -> Answer:
        if "Text 2." in body["messages"][1]["content"]:
            error = {"message": "flagged: 'what is a json_schema?'"}
            return Answer(status=400, body={"error": error})
        return answer_correctly(body, before)

    with serving(script) as server:
        done = judge(server, tmp_path, data=rows, concurrency=1)
        formats = {body["response_format"]["type"] for body in server.requests}
    assert formats == {"json_schema"}
    assert done.verdicts["status"].to_list() == ["ok", "ok", "rejected", "ok", "ok", "ok"]


def test_a_required_schema_is_an_error_row_if_unsupported(tmp_path):
    error = {"message": "json_schema is not supported"}
    with serving(lambda _, before: Answer(status=400, body={"error": error})) as server:
        done = judge(server, tmp_path, structured="schema")
        assert len(server.requests) == 1
    assert done.verdicts["status"].to_list() == ["rejected"]


def test_a_request_that_is_too_long_is_an_error_row(tmp_path):
    error = {"message": "This model's maximum context length is 8192 tokens."}
    with serving(lambda _, before: Answer(status=400, body={"error": error})) as server:
        done = judge(server, tmp_path)
        assert len(server.requests) == 1
    assert done.verdicts.select("status", "error").rows() == [
        ("rejected", "HTTP 400: This model's maximum context length is 8192 tokens.")
    ]


@pytest.mark.usefixtures("eager")
def test_many_faults_lose_no_row(tmp_path):
    """Every third request fails; all rows are scored."""
    faults = [*FAULTS.values(), *BAD_REPLIES.values()]
    lock = threading.Lock()
    numbers = iter(range(10**6))

    def script(body: dict[str, Any], before: int) -> Answer:
        with lock:
            number = next(numbers)
        return (
            faults[number // 3 % len(faults)] if number % 3 == 0 else answer_correctly(body, before)
        )

    rows = pl.DataFrame({"text": [f"Text {i}." for i in range(60)], "contexts": [["c"]] * 60})
    with serving(script) as server:
        done = judge(server, tmp_path, data=rows, retries=12, concurrency=8, temperature=1.0)
    assert done.verdicts["datum_id"].to_list() == list(range(60))
    assert done.card.metrics.select("support", "scored").row(0) == (60, 60)
