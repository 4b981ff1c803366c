"""Fixtures of the judge's tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from judge.server import Server, serving

import evalengine as ee

ROWS = pl.DataFrame(
    {
        "datum_id": ["a", "b", "c"],
        "query": ["Who wrote it?", "When?", "Where?"],
        "text": ["Ann wrote it. It is not long.", "In 1931. She did not say.", "In Lima."],
        "contexts": [["Ann wrote it."], ["It was 1931.", "That is not known."], []],
        "reference": [["Ann wrote it."], ["In 1931."], ["In Lima.", "In Peru. In Lima."]],
        "source": ["s", "s", "s"],
    }
)
"""Three rows with the columns of every metric."""


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bypass proxies for the loopback, and clear API keys.

    A folder without certificates saves reading those of the system.
    """
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", os.fspath(Path(__file__).parent))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that calls ``ee.judge`` with a cache in the test's folder."""

    def call(server: Server, metrics: Any, data: Any = ROWS, **more: Any) -> Any:
        named = {"model": "loopback", "cache": str(tmp_path / "judge.sqlite"), **more}
        return ee.judge(data, metrics=metrics, base_url=server.url, **named)

    return call
