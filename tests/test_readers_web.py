"""Tables at web addresses: capabilities of servers, and messages about failures."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import polars as pl
import pytest
from loopback import FileServer
from new_process import python
from partitions.cases import FEW, in_buckets
from refusals import refused
from web_server import _Handler, web_server

import evalengine as ee
from evalengine.ingest.files import Source
from evalengine.ingest.sources.formats import explain

ROWS = pl.DataFrame(
    {"datum_id": range(300), "actual": [i % 3 for i in range(300)],
     "predicted": [i % 4 % 3 for i in range(300)]}
)  # fmt: skip
WRITE = {
    "t.parquet": lambda path: ROWS.write_parquet(path, row_group_size=50),
    "t.csv": ROWS.write_csv,
    "t.jsonl": ROWS.write_ndjson,
    "t.arrow": ROWS.write_ipc,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the table in every format."""
    here = tmp_path / "web"
    here.mkdir()
    for name, write in WRITE.items():
        write(here / name)
    return here


def accuracy(table: str, **how: object) -> float | None:
    return ee.score(table, task="classification", metrics=["Accuracy"], **how).value("Accuracy")


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("place", ["{}", "old/{}", "{}?signature=a%2Fb"])
def test_tables_are_read_by_their_address(folder: Path, name: str, place: str) -> None:
    """At its address, after a redirect, and at a signed address."""
    with web_server(folder) as server:
        assert accuracy(server.address(place.format(name))) == accuracy(str(folder / name))
        assert any(wanted for _, _, wanted in server.asked)


def test_only_parts_of_parquet_are_read(folder: Path) -> None:
    """A column that is not needed is not transferred."""
    number = pl.int_range(pl.len())
    wide = pl.concat([ROWS] * 100).with_columns(datum_id=number)
    notes = pl.concat_str([number.hash(seed) for seed in range(8)])
    wide.with_columns(notes=notes).write_parquet(folder / "wide.parquet", compression="lz4")
    with web_server(folder) as server:
        accuracy(server.address("wide.parquet"))
        ends = [one.removeprefix("bytes=").split("-") for _, _, one in server.asked if one]
    read = sum(int(last) - int(first) + 1 if first else int(last) for first, last in ends)
    assert 0 < read < (folder / "wide.parquet").stat().st_size / 2


def test_several_addresses_and_buckets(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = [folder / f"{i}.parquet" for i in range(2)]
    for i, half in enumerate(halves):
        ROWS.slice(150 * i, 150).write_parquet(half)
    expected = accuracy(str(folder / "t.parquet"))
    in_buckets(monkeypatch)
    with web_server(folder) as server:
        tables = [server.address(half.name) for half in halves]
        card = ee.score(
            tables, task="classification", metrics=["Accuracy"], memory_limit="1GB",
            scratch=str(tmp_path / "s"),
        )  # fmt: skip
    assert card.run["buckets"] == FEW.n
    assert card.value("Accuracy") == expected


@pytest.mark.parametrize("name", WRITE)
def test_a_server_without_ranges_is_reported(folder: Path, name: str) -> None:
    with web_server(folder) as server:
        server.ranges = False
        with refused("file_unreadable", ee.ReadError) as error:
            accuracy(server.address(name))
    assert "Write or copy" not in str(error.value)


@pytest.mark.parametrize("name", ["none.parquet", "none.csv", "none.jsonl", "*.parquet"])
def test_an_address_without_a_file_is_reported(folder: Path, name: str) -> None:
    with (
        web_server(folder) as server,
        pytest.raises(ee.ReadError, match=r"404.*Correct the address") as error,
    ):
        accuracy(server.address(name))
    assert "every row" not in str(error.value)


@pytest.mark.parametrize("name", WRITE)
def test_a_truncated_answer_is_reported(folder: Path, name: str) -> None:
    with web_server(folder) as server:
        server.cut = 100
        with pytest.raises(ee.ReadError, match=rf"{name}.*connection.*again"):
            accuracy(server.address(name))


def test_a_broken_file_is_reported_as_such(folder: Path) -> None:
    """The connection is fine; the error is about the file."""
    (folder / "t.parquet").write_bytes((folder / "t.parquet").read_bytes()[:-20])
    with web_server(folder) as server, refused("file_unreadable", ee.ReadError):
        accuracy(server.address("t.parquet"))


def test_a_fault_of_the_server_fails_its_test(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client that disconnects is no fault."""

    def server_error(error: Exception) -> Callable[..., None]:
        def answer(*_: object, **__: object) -> None:
            raise error

        return answer

    monkeypatch.setattr(FileServer, "block_on_close", True)  # its threads are joined
    monkeypatch.setattr(FileServer, "daemon_threads", False)
    monkeypatch.setattr(_Handler, "answer", server_error(BrokenPipeError()))
    with web_server(folder) as server, pytest.raises(OSError, match=r"closed|reset"):
        urlopen(server.address("t.csv"))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_Handler, "answer", server_error(KeyError("of a handler")))
    with (
        pytest.raises(KeyError, match="of a handler"),
        web_server(folder) as server,
        suppress(OSError),
    ):
        urlopen(server.address("t.csv"))
    assert "KeyError" in capsys.readouterr().err


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Write a certificate of the loopback that no authority signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by openssl")
    home = tmp_path_factory.mktemp("certificate")
    certificate, key = str(home / "certificate.pem"), str(home / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
         certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key


@pytest.fixture(scope="module")
def unreached(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[str, str]
) -> dict[str, BaseException | None]:
    """Return the error of reading a table from an address without a server or with an unknown one.

    Both addresses are read concurrently, because Polars tries each twenty times, which cannot be
    configured.
    """
    here = tmp_path_factory.mktemp("web")
    WRITE["t.parquet"](here / "t.parquet")
    with web_server(here) as gone:
        addresses = {"nobody": gone.address("t.parquet")}
    with web_server(here, certificate) as server, ThreadPoolExecutor(2) as pool:
        addresses["unknown"] = server.address("t.parquet")
        assert addresses["unknown"].startswith("https://")
        reads = {name: pool.submit(accuracy, one) for name, one in addresses.items()}
        return {name: read.exception() for name, read in reads.items()}


@pytest.mark.slow  # Polars retries for ten seconds
@pytest.mark.parametrize("who", ["nobody", "unknown"])
def test_an_address_without_an_answer_is_reported(
    who: str, unreached: dict[str, BaseException | None]
) -> None:
    """Either no server is there, or its certificate is unknown."""
    assert isinstance(unreached[who], ee.ReadError)
    assert re.search(r"t\.parquet: .*connection.*again", str(unreached[who]), re.DOTALL)


def test_a_named_certificate_is_trusted(folder: Path, certificate: tuple[str, str]) -> None:
    """``SSL_CERT_FILE`` names it."""
    code = (
        "import sys, evalengine as ee\n"
        "print(ee.score(sys.argv[1], task='classification').value('Accuracy', average=None))"
    )
    with web_server(folder, certificate) as server:
        done = python(code, server.address("t.parquet"), SSL_CERT_FILE=certificate[0])
    assert float(done.stdout) == accuracy(str(folder / "t.parquet"))


def test_a_port_is_not_a_status() -> None:
    """The 404 in a port's number does not mean that the address is wrong."""
    message = (
        "object-store error: Generic HTTP error: HTTP error: request or response body error"
        " (location: t.arrow) (path: http://127.0.0.1:40481)"
    )
    source = Source(pl.LazyFrame(), "http://127.0.0.1:40481/t.arrow", "ipc")
    told = str(explain(source, pl.exceptions.ComputeError(message)))
    assert "Check the address" in told
