"""Job files: keys, variables, options, and the JSON schema for editors."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jobs.conftest import JOB
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.jobs import loading
from evalengine.jobs.loading import dates, expanded, load_job
from evalengine.jobs.process import _dataset
from evalengine.jobs.sources import without_secrets
from evalengine.schemas.errors import ReadError
from evalengine.schemas.job import json_schema
from evalengine.schemas.options import FIELDS

Write = Callable[..., Path]


def test_a_job_file(write: Write) -> None:
    above = ("by =", 'dialect = "coco"\nmetrics = ["mAP"]\nby =')
    inside = ("[outputs]", "[options]\niou_thresholds = [0.5]\n[outputs]")
    loaded = load_job(write(above, inside))
    assert loaded.job.name == "nightly"
    assert loaded.job.inputs.predictions == "tables/date=2026-11-20/predictions.parquet"
    assert loaded.options.by == ("weather",)
    assert loaded.options.iou_thresholds == (0.5,)
    assert (loaded.options.dialect, loaded.options.metrics) == ("coco", ("mAP",))
    assert [gate.metric for gate in loaded.gates] == ["mAP"]
    assert loaded.earlier == "runs/*"


class TestKeys:
    @pytest.mark.parametrize(
        ("old", "new", "refusal"),
        [
            ("gates =", "gate =", {"code": "unknown_name", "value": "gate"}),
            ("predictions =", "predictons =", {"code": "unknown_name", "value": "predictons"}),
            ("history =", "histroy =", {"code": "unknown_name", "value": "histroy"}),
            ("[outputs]", "[output]", {"code": "unknown_name", "value": "output"}),
            (
                "[outputs]",
                "[options]\niou_treshold = 1\n[outputs]",
                {"code": "unknown_name", "value": "iou_treshold"},
            ),
            ("by =", 'values = ["a"]\nby =', {"code": "unknown_name", "match": "value_columns="}),
            (
                "[outputs]",
                '[options]\nvalues = ["a"]\n[outputs]',
                {"code": "unknown_name", "match": "value_columns="},
            ),
            ("by =", "inputs = 3\nby =", {"code": "file_malformed"}),
            (
                '"history"',
                '"history"\nhistory_format = "csv"',
                {
                    "code": "option_value",
                    "option": "outputs.history_format",
                    "match": "Known: parquet, delta",
                },
            ),
            ('by = ["weather"]', "by = 3", {"code": "option_value", "option": "by"}),
            (
                "[outputs]",
                'last = "2026-11-20"\n[outputs]',
                {"code": "option_unread", "option": "inputs.last"},
            ),
            (
                "[outputs]",
                'partition = "date"\n[outputs]',
                {"code": "reserved_name", "value": "date"},
            ),
            (
                "[outputs]",
                "partition = {}\n[outputs]",
                {"code": "option_value", "option": "inputs.partition"},
            ),
            (
                "mAP[iou=0.5] >= 0.5",
                "mAP >= baseline",
                {"code": "option_missing", "option": "baseline"},
            ),
            (
                "by =",
                'executor = "spark"\nby =',
                {"code": "option_value", "option": "executor", "match": "processes, dask"},
            ),
            ("by =", 'address = "tcp://x"\nby =', {"code": "option_unread", "option": "address"}),
            (
                "by =",
                'time_zone = "Europe/Bärlin"\nby =',
                {"code": "option_value", "option": "time_zone", "value": "Europe/Bärlin"},
            ),
            ('date = "2026-11-20"', "date = true", {"code": "wrong_type", "option": "variables"}),
            ('name = "nightly"', "", {"code": "option_missing", "option": "name"}),
            (
                "[outputs]",
                '[options]\nby = ["x"]\n[outputs]',
                {"code": "given_twice", "option": "by"},
            ),
            ("mAP[iou=0.5] >= 0.5", "mAP", {"code": "gate_malformed", "at": ""}),
            (
                'predictions = "tables/date={date}/predictions.parquet"',
                "",
                {"code": "option_value", "option": "inputs"},
            ),
        ],
    )
    def test_keys_that_are_refused(
        self, write: Write, old: str, new: str, refusal: dict[str, Any]
    ) -> None:
        with refused(**refusal) as caught:
            load_job(write((old, new)))
        assert "job.toml" in str(caught.value)

    def test_a_missing_file_and_invalid_toml(self, folder: Path) -> None:
        with pytest.raises(ReadError, match="No such file"):
            load_job(folder / "none.toml")
        broken = folder / "job.toml"
        broken.write_text("name = \n")
        with refused("file_malformed", ReadError):
            load_job(broken)


def test_a_byte_order_mark(write: Write) -> None:
    path = write()
    path.write_text(path.read_text("utf-8"), "utf-8-sig")
    assert load_job(path).job.name == "nightly"


def test_a_single_value_for_a_list(write: Write) -> None:
    loaded = load_job(write(('by = ["weather"]', 'by = "weather"\nmetrics = "all"')))
    assert (loaded.options.by, loaded.options.metrics) == (("weather",), ("all",))


class TestVariables:
    def test_given_variables_take_precedence(self, folder: Path) -> None:
        loaded = load_job(folder / "job.toml", {"date": "2026-11-19"})
        assert loaded.job.outputs.folder == "runs/2026-11-19"
        assert loaded.variables == {"date": "2026-11-19"}

    def test_variables_use_others_and_the_environment(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CITY", "ulm")
        loaded = load_job(
            write(
                (
                    'date = "2026-11-20"',
                    'n = 3\ndate = "2026-11-20"\nwhere = "{env.CITY}-{env.NONE:x}-{n}"',
                ),
                ("runs/{date}", "runs/{job}/{where}/{run_id}"),
            )
        )
        assert loaded.job.outputs.folder == "runs/nightly/ulm-x-3/\x00run_id\x00"
        assert loaded.earlier == "runs/nightly/*/*"

    @pytest.mark.parametrize(
        ("changes", "text", "refusal"),
        [
            ({"dat": "x"}, "{date}", {"code": "unknown_name", "value": "dat"}),
            ({}, "{dte}", {"code": "unknown_name", "value": "dte"}),
            ({}, "{env.NO_SUCH}", {"code": "variable_missing", "value": "NO_SUCH"}),
            ({}, "{date", {"code": "lone_brace", "value": "{"}),
            ({}, "date}", {"code": "lone_brace", "value": "}"}),
            ({}, "{run_id}", {"code": "unknown_name", "value": "run_id"}),
        ],
    )
    def test_variables_that_are_refused(
        self, write: Write, changes: dict[str, str], text: str, refusal: dict[str, Any]
    ) -> None:
        with refused(**refusal):
            load_job(write(("tables/date={date}/predictions", f"tables/{text}/p")), changes)

    def test_secrets_are_not_recorded(
        self, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Hidden: values of the environment and of credentials, and values made from these."""
        monkeypatch.setenv("TOKEN", "s3cret-1")
        monkeypatch.setenv("PLACE", "s3cret-2")
        more = """
set = ""
part = "s3cret-3"
key = "{part}"
mixed = "s3cret-4-{today}"
token = "{env.TOKEN}"
other = "{env.NO_SUCH:s3cret-5}"
place = "{env.PLACE:tables}"
deep = "x-{place}"
plain = "p-{date}"
"""
        credentials = """
[inputs.storage_options]
a = "{key}"
b = "{mixed}"
c = "{token}{other}"
d = "{set}"
[outputs]"""
        path = write(
            ('date = "2026-11-20"\n', f'date = "2026-11-20"{more}'), ("[outputs]", credentials)
        )
        ee.run_job(path, variables={"set": "s3cret-6"})
        details = (folder / "runs" / "2026-11-20" / "job.json").read_text()
        [entry] = (folder / "history").iterdir()
        history = pl.read_parquet(entry)["variables"][0]
        assert "s3cret" not in details + history
        recorded = json.loads(details)["variables"]
        assert recorded == json.loads(history)
        assert recorded == {
            "date": "2026-11-20", "set": "(hidden)", "part": "(hidden)", "key": "{part}",
            "mixed": "(hidden)", "token": "{env.TOKEN}", "other": "(hidden)",
            "place": "{env.PLACE:tables}", "deep": "x-{place}", "plain": "p-2026-11-20",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("address", "recorded"),
        [
            ("https://u:p@host/a.parquet?sig=x#y", ("https://host", "a.parquet")),
            ("s3://bucket/a?.parquet", ("s3://bucket", "a?.parquet")),
            ("s3://key:secret@bucket/a@b.parquet", ("s3://bucket", "a@b.parquet")),
        ],
    )
    def test_addresses_are_recorded_without_secrets(
        self, address: str, recorded: tuple[str, str]
    ) -> None:
        assert without_secrets(address) == "/".join(recorded)
        assert tuple(_dataset(address, local=False).values()) == recorded

    def test_reserved_names(self, write: Write) -> None:
        with refused("reserved_name", value="today"):
            load_job(write(('date = "', 'today = "a"\ndate = "')))

    def test_a_toml_date(self, write: Write) -> None:
        loaded = load_job(write(('date = "2026-11-20"', "date = 2026-11-20")))
        assert loaded.job.outputs.folder == "runs/2026-11-20"

    def test_dates_are_those_of_the_zone(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:
                return datetime(2026, 11, 21, 17, 15, tzinfo=UTC).astimezone(tz)

        monkeypatch.setattr(loading, "datetime", Clock)
        for zone, expected in (("", "2026-11-20"), ('time_zone = "Asia/Tokyo"\n', "2026-11-21")):
            path = write(("by =", f"{zone}by ="), ('"2026-11-20"', '"{yesterday}"'))
            assert load_job(path).variables == {"date": expected}

    def test_dates_and_braces(self) -> None:
        now = datetime(2026, 3, 1, 0, 30, tzinfo=UTC)
        assert dates(now) == {"today": "2026-03-01", "yesterday": "2026-02-28"}
        assert dates(now + timedelta(days=1))["yesterday"] == "2026-03-01"
        assert expanded("{{{a}}}", {"a": "x"}.get, ()) == "{x}"


class TestSchema:
    def test_the_schema_has_every_key(self) -> None:
        defs = json_schema()["$defs"]
        assert set(defs["Options"]["properties"]) == set(FIELDS)
        assert defs["Job"]["required"] == ["name", "inputs"]
        for name in ("Job", "JobInputs", "JobOutputs", "Options"):
            assert defs[name]["additionalProperties"] is False
            assert all("description" in one or "$ref" in one or "allOf" in one
                       for one in defs[name]["properties"].values())  # fmt: skip
        used = tomllib.loads(JOB)
        assert set(used) <= set(defs["Job"]["properties"])
        assert set(used["outputs"]) <= set(defs["JobOutputs"]["properties"])

    def test_the_schema_accepts_a_single_value_for_a_list(self) -> None:
        jsonschema = pytest.importorskip("jsonschema")
        check = jsonschema.Draft202012Validator(json_schema())
        plain = tomllib.loads(JOB)
        for more, good in (
            ({"iou_thresholds": 0.5}, True),
            ({"iou_thresholds": [0.5, 0.75]}, True),
            ({"metrics": "all"}, True),
            ({"iou_thresholds": "half"}, False),
            ({"iou_treshold": 0.5}, False),
        ):
            assert check.is_valid({**plain, "options": more}) is good, more

    def test_the_command_prints_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["schemas", "job"]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(json_schema()))
