"""Embedders: endpoints on loopback with faults, and objects of the user."""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import noted, refused
from text.embeddings_server import Server, letters, serving
from text.scoring import values

import evalengine as ee
from evalengine import endpoint
from evalengine.cli import main
from evalengine.endpoint import Transient, token_counts

NAME = "SemanticSimilarity"
PAIRS = pl.DataFrame(
    {
        "text": ["a piano", "a tea", "ice", "a tea", ""],
        "reference": [["a piano", "tin"], ["ate"], ["nose", "ice ice"], ["a tea"], ["a"]],
    }
)
DISTINCT = ["a piano", "a tea", "ice", " ", "tin", "ate", "nose", "ice ice", "a"]


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Connect to the loopback directly, without certificates, with temporary caches."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(endpoint, "_FIRST_WAIT", 0.01)  # tests of the judge check how waits grow
    monkeypatch.setattr(endpoint, "_LEAST_SPREAD", 0.01)


def score(server: Server, table: Any = PAIRS, **fields: Any) -> Any:
    embedder = {"model": "m", "base_url": server.url, "retries": 1, **fields}
    return ee.score(table, metrics=NAME, embedder=embedder)


def cosine(a: str, b: str) -> float | None:
    ours, theirs = np.array(letters([a, b]))
    norm = np.linalg.norm(ours) * np.linalg.norm(theirs)
    return float(ours @ theirs / norm) if norm else None


def wanted() -> list[float | None]:
    best = []
    for text, references in PAIRS.iter_rows():
        defined = [one for one in (cosine(text, other) for other in references) if one is not None]
        best.append(max(defined, default=None))
    return best


def numbered(places: Iterable[int], vector: list[float]) -> dict[str, Any]:
    """Return an answer whose vectors identify their texts."""
    return {"data": [{"index": i, "embedding": vector} for i in places]}


@pytest.mark.parametrize("form", ["float", "base64"])
def test_each_text_once_then_from_the_cache(form: str, tmp_path: Path) -> None:
    with serving(form=form) as server:
        card = score(server, batch_size=4, concurrency=2)
        assert values(card, NAME) == pytest.approx(wanted(), abs=1e-12)
        assert sorted(t for body in server.requests for t in body["input"]) == sorted(DISTINCT)
        assert max(len(body["input"]) for body in server.requests) == 4
        noted(card, "embedded", count=9, cached=0, requests=3)
        again = score(server)
        assert len(server.requests) == 3
        noted(again, "embedded", count=9, cached=9, requests=0)
        assert again.per_datum.equals(card.per_datum)
        score(server, PAIRS.head(1).with_columns(text=pl.lit("new")))
        assert server.requests[3]["input"] == ["new"]
        score(server, PAIRS.head(1), dimensions=2)
        assert [body["dimensions"] for body in server.requests[4:]] == [2]
    assert oct((tmp_path / "embeddings.sqlite").stat().st_mode & 0o777) == "0o600"


def test_the_key_goes_into_one_header(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "sk-verysecretverysecret"
    refused = (401, {}, {"error": {"message": f"bad {key}"}})
    message = r"the key was refused \(HTTP 401: bad \[key\]\)"

    def failing_once(body: dict[str, Any], before: int) -> Any:
        return None if before else (500, {}, {"error": f"no {key}"})

    monkeypatch.setenv("MY_KEY", key)
    with serving(fault=failing_once) as server:
        card = score(server, api_key_env="MY_KEY")
        card.save(tmp_path / "run")
        assert server.keys == [f"Bearer {key}"] * 2
    with (
        serving(fault=lambda body, before: refused) as server,
        pytest.raises(ee.EndpointError, match=message) as caught,
    ):
        score(server, api_key_env="MY_KEY", cache="other.sqlite")
    assert key not in str(caught.value)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 3
    for path in written:
        assert key.encode() not in path.read_bytes(), path
        if path.suffix == ".sqlite":
            assert b"piano" not in path.read_bytes()  # the texts are not stored either
    captured = capsys.readouterr()
    assert key not in captured.out + captured.err


def test_vectors_of_other_models_and_endpoints_are_not_reused() -> None:
    with serving() as server, serving(lambda texts: [[1.0]] * len(texts)) as other:
        first = score(server)
        assert values(score(other), NAME) == [1.0] * 5
        assert len(other.requests) == 1
        score(server, model="n")
        assert [body["model"] for body in server.requests] == ["m", "n"]
        assert score(server).per_datum.equals(first.per_datum)
        assert len(server.requests) == 2


def test_vectors_without_an_index_are_in_the_order_of_the_texts() -> None:
    def fault(body: dict[str, Any], before: int) -> Any:
        return 200, {}, {"data": [{"embedding": one} for one in letters(body["input"])]}

    with serving(fault=fault) as server:
        assert values(score(server), NAME) == pytest.approx(wanted(), abs=1e-12)


@pytest.mark.parametrize("given", [{"max_tokens": 2}, {"max_cost": 2.0, "prices": "prices.toml"}])
def test_limits_of_tokens_and_cost(given: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("[m]\ninput = 1e6\noutput = 1e6\n")
    limit = next(iter(given))
    with serving() as server:
        with refused("budget", ee.EndpointError, count=1, of=9, stopped=f"{limit}=2"):
            score(server, batch_size=1, concurrency=1, **given)  # "a piano" is two tokens
        assert len(server.requests) == 1
        with refused("budget", ee.EndpointError, count=2, of=9, stopped=f"{limit}=2"):
            score(server, batch_size=1, concurrency=1, **given)  # the cached one counts


def test_requests_a_minute() -> None:
    with serving() as server:
        begun = time.monotonic()
        score(server, batch_size=3, requests_per_minute=300)
        assert time.monotonic() - begun >= 0.4  # two intervals of 0.2 s are between three requests
        assert len(server.requests) == 3


def test_vectors_of_another_length_than_requested() -> None:
    def fault(body: dict[str, Any], before: int) -> Any:
        return 200, {}, numbered(range(len(body["input"])), [1.0, 2.0, 3.0])

    failed = refused("wrong_length", ee.EndpointError, match="vectors of 3 numbers")
    with serving(fault=fault) as server, failed:
        score(server, dimensions=2)


def test_a_limit_stops_and_the_next_call_goes_on() -> None:
    with serving() as server:
        with refused("budget", ee.EndpointError, count=4, of=9, stopped="max_requests=2"):
            score(server, batch_size=2, concurrency=1, max_requests=2)
        assert len(server.requests) == 2
        card = score(server, batch_size=2)
        assert len(server.requests) == 5
        assert "4 from the cache" in card.notes[-1]
        assert values(card, NAME) == pytest.approx(wanted(), abs=1e-12)


def test_temporary_faults() -> None:
    answers: list[Any] = [
        (429, {"Retry-After": "0"}, {"error": {"message": "slow down"}}),
        (200, {}, b"no json"),
        (200, {}, {"data": []}),
        (200, {}, {"data": [{"index": 0, "embedding": [1.0, None]}] * 9}),
        (503, {"Retry-After": "0"}, b""),
    ]

    def fault(body: dict[str, Any], before: int) -> Any:
        return answers[before] if before < len(answers) else None

    with serving(fault=fault) as server:
        card = score(server, retries=5)
        assert len(server.requests) == 6
        assert values(card, NAME) == pytest.approx(wanted(), abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        ((404, {}, {"error": "unknown model"}), {"code": "endpoint_refused", "status": 404}),
        ((500, {"Retry-After": "0"}, b"down"), {"code": "server_error", "count": 0, "of": 9}),
        (
            (400, {}, {"error": {"message": "not a model of embeddings"}}),
            {"code": "texts_refused", "count": 0, "of": 9},
        ),
        ((200, {}, {"data": [{"embedding": [1.0]}]}), {"code": "bad_answer", "count": 0, "of": 9}),
        ((200, {}, numbered(range(10), [1.0])), {"code": "bad_answer", "count": 0, "of": 9}),
        ((200, {}, numbered([*range(9), 0], [1.0])), {"code": "bad_answer", "count": 0, "of": 9}),
        ((200, {}, numbered([0, *range(8)], [1.0])), {"code": "bad_answer", "count": 0, "of": 9}),
        ((200, {}, numbered(range(-9, 0), [1.0])), {"code": "bad_answer", "count": 0, "of": 9}),
        ((200, {}, numbered(range(9), [])), {"code": "bad_answer", "count": 0, "of": 9}),
        (
            (200, {}, numbered(range(9), [float("inf")])),
            {"code": "bad_answer", "count": 0, "of": 9},
        ),
        (
            (200, {}, numbered(range(9), [float("nan")])),
            {"code": "bad_answer", "count": 0, "of": 9},
        ),
    ],
)
def test_permanent_faults(answer: Any, refusal: dict[str, Any]) -> None:
    with serving(fault=lambda body, before: answer) as server:
        with refused(**refusal, kind=ee.EndpointError):
            score(server)
        assert len(server.requests) <= 6


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, (0, 0)),
        ({"prompt_tokens": 7, "total_tokens": 9}, (7, 0)),
        ({"total_tokens": 9}, (9, 0)),
        ({"total_tokens": 9, "completion_tokens": 2}, (7, 2)),
        ({"completion_tokens": 2}, (0, 2)),
    ],
)
def test_tokens_are_counted_from_the_answers(usage: Any, counted: tuple[int, int]) -> None:
    assert token_counts({"usage": usage}) == counted


@pytest.mark.parametrize("count", [float("inf"), 10**20, -3, "many"])
def test_invalid_token_counts(count: Any) -> None:
    with pytest.raises(Transient, match="token counts"):
        token_counts({"usage": {"prompt_tokens": count}})


def test_a_rejected_text_is_undefined() -> None:
    def fault(body: dict[str, Any], before: int) -> Any:
        if any("tea" in text for text in body["input"]):
            return 400, {}, {"error": {"message": "too long"}}
        return None

    with serving(fault=fault) as server:
        card = score(server, PAIRS.head(4), concurrency=1)
    found = card.per_datum
    assert found["status"].to_list() == ["scored", "rejected", "scored", "rejected"]
    assert found["value"].null_count() == 2
    assert "HTTP 400: too long" in noted(card, "embedded", rejected=1).message
    row = card.metrics.row(0, named=True)
    assert (row["support"], row["scored"]) == (4, 2)


def test_no_server_and_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        url = server.url
    with pytest.raises(ee.EndpointError, match="stopped"):
        ee.score(PAIRS, metrics=NAME, embedder={"model": "m", "base_url": url, "retries": 0})
    with refused("option_missing", option="base_url"):
        ee.score(PAIRS, metrics=NAME, embedder="m")
    with serving() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        card = ee.score(PAIRS, embedder="m")  # in addition to the default metrics
        assert card.value(NAME) is not None
        assert card.value("ROUGE1") is not None


def test_vectors_that_changed_their_length() -> None:
    with serving() as server:
        score(server, PAIRS.head(1))
        server.vectors = lambda texts: [[1.0, 2.0]] * len(texts)
        with pytest.raises(ee.EndpointError, match=r"different lengths \(2, 4\)"):
            score(server)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"base_url": "http://localhost/v1"}, {"code": "option_missing", "option": "model"}),
        ({"model": "m", "url": "x"}, {"code": "unknown_name", "value": "url"}),
        (
            {"model": "m", "batch_size": 0},
            {
                "code": "option_value",
                "options": ["batch_size", "concurrency", "dimensions", "retries", "timeout"],
            },
        ),
        ({"model": "m", "batch_size": "many"}, {"code": "option_value", "option": "embedder"}),
        (
            {"model": "m", "base_url": "http://me:pw@localhost/v1"},
            {"code": "secret_in_address", "option": "base_url"},
        ),
        (7, {"code": "option_value", "option": "embedder"}),
    ],
)
def test_invalid_embedders(given: Any, refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        ee.score(PAIRS, metrics=NAME, embedder=given)


class Letters:
    """Embedder in the same process."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts: list[str]) -> Any:
        self.asked.append(texts)
        return letters(texts)


def test_an_object_of_the_users(tmp_path: Path) -> None:
    model = Letters()
    card = ee.score(PAIRS, metrics=NAME, embedder=model)
    assert model.asked == [DISTINCT]
    assert values(card, NAME) == pytest.approx(wanted(), abs=1e-12)
    assert card.notes[-1].endswith("test_embedders.Letters.")
    assert not list(tmp_path.iterdir())
    assert "Letters" in ee.explain(metrics=[NAME], task="text", embedder=model)
    for other in (pickle.loads(pickle.dumps(card)), copy.copy(card), copy.deepcopy(card)):
        assert other.value(NAME) == card.value(NAME)
    loaded = ee.load(card.save(tmp_path / "run"))
    assert loaded.value(NAME) == card.value(NAME)
    with refused("option_missing", option="embedder"):
        ee.score(PAIRS, options=loaded.options)
    vectors = PAIRS.with_columns(
        embedding=pl.Series([[1.0]] * 5), reference_embedding=pl.Series([[1.0]] * 5)
    )
    noted(ee.score(vectors, embedder=model), "option_not_read", option="embedder")
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("made", "refusal"),
    [
        (
            np.ones((3, 2)),
            {"code": "wrong_shape", "option": "embedder", "shape": (3, 2), "count": 9},
        ),
        (np.ones(9), {"code": "wrong_shape", "option": "embedder", "shape": (9,), "count": 9}),
        (np.full((9, 2), np.nan), {"code": "not_finite", "option": "embedder", "count": 9}),
        (
            np.full((9, 2), "x"),
            {"code": "wrong_shape", "option": "embedder", "shape": (9, 2), "count": 9},
        ),
    ],
)
def test_an_object_that_makes_something_else(made: Any, refusal: dict[str, Any]) -> None:
    class Other:
        def encode(self, texts: list[str]) -> Any:
            return made

    with refused(**refusal):
        ee.score(PAIRS, metrics=NAME, embedder=Other())


def test_from_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PAIRS.write_parquet("pairs.parquet")
    with serving() as server:
        spec = f"model=m,base_url={server.url},batch_size=3"
        status = main(
            ["score", "pairs.parquet", "--metric", NAME, "--embedder", spec, "--format", "json"]
        )
    captured = capsys.readouterr()
    assert status == 0, captured.err
    shown = json.loads(captured.out)
    rows = shown["metrics"] if isinstance(shown, dict) else shown
    defined = [one for one in wanted() if one is not None]
    assert rows[0]["value"] == pytest.approx(np.mean(defined), abs=1e-12)
    assert len(server.requests) == 3
    pl.DataFrame({"embedding": [[1.0, 0.0]], "reference_embedding": [[1.0, 1.0]]}).write_parquet(
        "vectors.parquet"
    )
    assert main(["score", "vectors.parquet", "--metric", NAME]) == 0
    assert "0.7071" in capsys.readouterr().out
    assert main(["score", "pairs.parquet", "--metric", NAME]) == 2
    assert "--embedder" in capsys.readouterr().err
    assert main(["score", "pairs.parquet", "--metric", NAME, "--embedder", "model=m,x"]) == 2
