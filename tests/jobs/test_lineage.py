"""OpenLineage events, written to a file or sent to a URL that may not answer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import evalengine as ee
from evalengine.jobs.process import Lineage
from evalengine.jobs.sources import File, JobTables
from evalengine.schemas.errors import OptionError, ReadError
from evalengine.schemas.job import JobOutputs

Write = Callable[..., Path]
FACETS = "https://openlineage.io/spec/facets/"


def check(event: dict[str, Any]) -> None:
    """Check an event and its facets against version 2-0-2 of the specification."""
    assert (
        event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    )
    assert event["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert ":" in event["producer"]
    uuid.UUID(event["run"]["runId"])
    assert {"namespace", "name"} <= set(event["job"])
    facets = [*event["run"]["facets"].values()]
    for dataset in (*event["inputs"], *event["outputs"]):
        assert {"namespace", "name"} <= set(dataset)
        facets += dataset.get("inputFacets", {}).values()
    for facet in facets:
        assert facet["_producer"] == event["producer"]
        assert facet["_schemaURL"].startswith(FACETS)


def events(path: Path) -> list[dict[str, Any]]:
    parsed = [json.loads(line) for line in path.read_text().splitlines()]
    for event in parsed:
        check(event)
    return parsed


def test_a_run_that_completes(write: Write, folder: Path) -> None:
    ee.run_job(write(("gates = [", 'gates = ["mAP[iou=0.5] > 1", "AR[label=*] > 0", ')))
    start, complete = events(folder / "lineage.jsonl")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"] == {"namespace": "evalengine", "name": "nightly"}
    tables = folder / "tables" / "date=2026-11-20"
    assert [one["name"] for one in start["inputs"]] == [
        str(tables / "predictions.parquet"), str(tables / "truths.parquet"),
    ]  # fmt: skip
    assert start["outputs"][0]["name"] == str(folder / "runs" / "2026-11-20")
    assert "inputFacets" not in start["inputs"][0]
    facet = complete["inputs"][0]["inputFacets"]["dataQualityAssertions"]
    assert facet["assertions"] == [
        {"assertion": "mAP[iou=0.5] > 1", "success": False},
        {"assertion": "AR[label=*] > 0 [label=cat]", "success": True},
        {"assertion": "AR[label=*] > 0 [label=dog]", "success": True},
        {"assertion": "mAP[iou=0.5] >= 0.5", "success": True},
    ]


def test_a_run_that_fails(write: Write, folder: Path) -> None:
    with refused("unknown_name", OptionError, value="mAPP"):
        ee.run_job(write(("by =", 'metrics = ["mAPP"]\nby =')))
    start, fail = events(folder / "lineage.jsonl")
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert "mAPP" in fail["run"]["facets"]["errorMessage"]["message"]


def test_a_run_without_inputs_is_reported(write: Write, folder: Path) -> None:
    with refused("file_missing", ReadError):
        ee.run_job(write(), variables={"date": "2026-12-24"})
    start, fail = events(folder / "lineage.jsonl")
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert start["run"]["runId"] == fail["run"]["runId"]
    assert "no such file" in fail["run"]["facets"]["errorMessage"]["message"]


def test_remote_inputs_are_named_by_their_store(tmp_path: Path) -> None:
    target = tmp_path / "lineage.jsonl"
    file = File("s3://lake/night=1/p.parquet", "", None, None, "0")
    events_of = Lineage(JobOutputs(), str(target), "nightly", print)
    events_of.start(JobTables({"predictions": (file,)}), tmp_path)
    [start] = events(target)
    assert start["inputs"] == [{"namespace": "s3://lake", "name": "night=1/p.parquet"}]


def test_a_finished_run_emits_no_events(write: Write, folder: Path) -> None:
    for _ in range(2):
        ee.run_job(write())
    assert len(events(folder / "lineage.jsonl")) == 2


@pytest.fixture
def collector() -> Iterator[Any]:
    """Yield a server that records requests and answers with its ``status``."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(server.status)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.status = [], 201
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_with_a_key(write: Write, collector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret-7")
    url = f"http://127.0.0.1:{collector.server_port}/api/v1/lineage"
    result = ee.run_job(write(("lineage.jsonl", url)))
    assert [(path, key) for path, key, _ in collector.got] == [
        ("/api/v1/lineage", "Bearer secret-7")
    ] * 2
    for _, _, event in collector.got:
        check(event)
    for path in result.plan.folder.iterdir():
        assert b"secret-7" not in path.read_bytes()


@pytest.mark.parametrize("what", ["refuses", "is not there"])
def test_events_that_cannot_be_sent_do_not_stop_a_run(
    write: Write, collector: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    collector.status = 500
    port = collector.server_port if what == "refuses" else 9
    log: list[tuple[str, str]] = []

    def tell(text: str, *, level: str = "info", **facts: Any) -> None:
        log.append((level, text))

    result = ee.run_job(write(("lineage.jsonl", f"http://127.0.0.1:{port}/")), tell=tell)
    assert result.ran
    warnings = [text for level, text in log if level == "warning"]
    assert len(warnings) == 2
    assert warnings[0].startswith("lineage: START")
    assert f"http://127.0.0.1:{port}/" in warnings[0]


def test_the_next_run_completes_the_events_of_a_killed_one(write: Write, folder: Path) -> None:
    """A run killed after the rename has a result, but has not sent COMPLETE."""
    path = write()
    code = (
        "import os, sys; import evalengine as ee; from evalengine.jobs.process import Lineage;"
        "Lineage.complete = lambda self, verdicts: os._exit(9); ee.run_job(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    assert [one["eventType"] for one in events(folder / "lineage.jsonl")] == ["START"]
    assert not ee.run_job(path).ran
    start, complete = events(folder / "lineage.jsonl")
    assert complete["eventType"] == "COMPLETE"
    assert complete["run"]["runId"] == start["run"]["runId"]
    assert complete["inputs"][0]["name"] == start["inputs"][0]["name"]
    assert complete["outputs"] == start["outputs"]
    assert not ee.run_job(path).ran
    assert len(events(folder / "lineage.jsonl")) == 2  # once


def test_the_next_run_sends_events_that_could_not_be_sent(
    write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()
    (folder / "lineage.jsonl").mkdir()
    assert ee.run_job(path).ran
    (folder / "lineage.jsonl").rmdir()
    assert not ee.run_job(path).ran
    assert [one["eventType"] for one in events(folder / "lineage.jsonl")] == ["COMPLETE"]
