"""What tests of the judge share."""

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
"""Three rows that every metric can be judged of."""


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback is reached directly, whatever the machine's environment says.

    Nothing there has a certificate: a folder without any saves reading all that are known.
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
    """``ee.judge`` with a cache of the test's own."""

    def call(server: Server, metrics: Any, data: Any = ROWS, **more: Any) -> Any:
        named = {"model": "loopback", "cache": str(tmp_path / "judge.sqlite"), **more}
        return ee.judge(data, metrics=metrics, base_url=server.url, **named)

    return call
