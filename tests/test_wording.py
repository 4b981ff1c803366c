"""Options in messages: one message, in the notations of Python and of the command line."""

from __future__ import annotations

import copy
import pickle
import re
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import source

import evalengine as ee
from evalengine.cli import main
from evalengine.cli.options import generated
from evalengine.schemas.errors import EvalengineError, InputError
from evalengine.schemas.options import FIELDS
from evalengine.schemas.wording import in_python, in_shell, option, options_in, sql_name


@pytest.mark.parametrize(
    ("value", "python", "shell"),
    [
        ((), "k=", "--k"),
        ((3,), "k=3", "--k 3"),
        (([1, 5],), "k=[1, 5]", "--k 1,5"),
        ((True,), "k=True", "--k"),
        ((False,), "k=False", "--no-k"),
        (("it's",), 'k="it\'s"', '--k "it\'s"'),
        (({"mine": "datum_id"},), 'k={"mine": "datum_id"}', "--k mine=datum_id"),
        (({"a b": "x", "c": "y"},), 'k={"a b": "x", "c": "y"}', "--k 'a b=x' --k c=y"),
        (({"mine": "xmin", "...": ""},), 'k={"mine": "xmin", ...}', "--k mine=xmin"),
        (({"small": (0, 9)},), 'k={"small": (0, 9)}', "--k small=0:9"),
    ],
)
def test_both_forms(value: tuple[Any, ...], python: str, shell: str) -> None:
    text = f"before {option('k', *value)}, after"
    assert in_python(text) == f"before {python}, after"
    assert in_shell(text) == f"before {shell}, after"
    assert options_in(text + option("task")) == ("k", "task")


@given(st.text())
def test_quoted_values_survive_a_shell(value: str) -> None:
    assert shlex.split(in_shell(option("where", value))) == ["--where", value]


def test_dashes() -> None:
    assert in_shell(option("box_format", "xywh")) == "--box-format xywh"


def test_errors_survive_pickling_with_their_options() -> None:
    error = InputError(f"write {option('task', 'detection')}")
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is InputError
        assert str(twin) == "write task='detection'"
        assert in_shell(twin.message) == "write --task detection"
    with pytest.raises(InputError) as caught:
        ee.score({"datum_id": [1], "label_value": ["a"]}, {"datum_id": [1]}, task="classification")
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (type(twin), str(twin)) == (type(caught.value), str(caught.value))
    assert twin.problems == caught.value.problems


BOX = {"xmin": [0.0], "ymin": [0.0], "xmax": [4.0], "ymax": [4.0]}
LONG = {"datum_id": [1], "label_value": ["a"]}
REFUSED: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "no task": ([{"a": [1]}, {"b": [1]}], []),
    "torn": ([{**LONG, **BOX, "score": [0.5]}, LONG], []),
    "missing": ([{"id": [1], "nonsense": [2]}, LONG], ["--task", "classification"]),
    "lists": ([{**LONG, "score": [0.5], "bbox": [[0.0, 0.0, 1.0, 1.0]]}, {**LONG, **BOX}], []),
    "null": ([{**LONG, "score": [None]}, LONG], []),
    "positive": ([{"actual": ["x", "y"], "score": [0.1, 0.2]}], []),
    "several": ([{"datum_id": [1, 1], "label_value": ["a", "b"]}, LONG], []),
    "several true": ([LONG, {"datum_id": [1, 1], "label_value": ["a", "b"]}], []),
    "average": ([LONG, LONG], ["--average", "samples"]),
    "cut-off": ([LONG, LONG], ["--k", "0"]),
    "columns": ([LONG, LONG], ["--columns", "nowhere=datum_id"]),
    "where": ([LONG, LONG], ["--where", "nowhere = 1"]),
    "no meeting": ([LONG, {"datum_id": [7], "label_value": ["a"]}], []),
    "scores": ([LONG, LONG], ["--metric", "ROCAUC"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_command_speaks_of_flags(case: str, tmp_path: Path, capsys: Any) -> None:
    tables, args = REFUSED[case]
    paths = [str(tmp_path / f"{i}.parquet") for i in range(len(tables))]
    for table, path in zip(tables, paths, strict=True):
        pl.DataFrame(table).write_parquet(path)
    assert main(["score", *paths, *args]) == 2
    message = capsys.readouterr().err
    flags = {flag for made in generated() for flag in (*made.opts, *made.secondary_opts)}
    flags |= {"--datums", "--labels", "--debug"}
    words = {word.strip("().,:;'") for word in message.split() if word.startswith(("--", "(--"))}
    assert words
    assert words <= flags
    for name in FIELDS:
        assert f" {name}=" not in message
        assert f"({name}=" not in message
    with pytest.raises(EvalengineError) as caught:
        run_in_python(paths, args)
    assert "--" not in str(caught.value)
    assert "\x0e" not in str(caught.value) + message


def run_in_python(paths: list[str], args: list[str]) -> None:
    """Make the same call without the command: metrics are a list, numbers are numbers."""
    names = {"--metric": "metrics"}
    given: dict[str, Any] = {}
    for flag, value in zip(args[::2], args[1::2], strict=True):
        name = names.get(flag, flag[2:])
        given[name] = dict([value.split("=")]) if name == "columns" else value
        given[name] = int(value) if name == "k" else given[name]
    ee.score(*paths, **given)


@pytest.mark.parametrize(
    ("name", "written"),
    [("score", "score"), ("sco re*", '"sco re*"'), ("order", '"order"'), ('a"b', '"a""b"')],
)
def test_names_in_conditions(name: str, written: str) -> None:
    assert sql_name(name) == written
    table = pl.DataFrame({name: [1, None, 3]})
    assert pl.SQLContext(t=table).execute(
        f"SELECT * FROM t WHERE {sql_name(name)} IS NOT NULL", eager=True
    ).height == 2  # fmt: skip


UNIDIOMATIC = re.compile(
    r"(?<!here )\b(is|are) no (number|string|table|file|label|whole|folder|JSON|share|score)s?\b"
    r"|\bstands? (in|twice|once|beside|alone|more|at)\b"
    r"|\b(meets?|told|tells?|dealt|slabs?|held against)\b"
)


def test_messages_are_in_plain_english() -> None:
    """Messages say `x is not a table`, not `x is no table`, and ids match; docstrings are free."""
    assert [one for one in source().strings if UNIDIOMATIC.search(one[1])] == []
