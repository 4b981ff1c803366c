"""Forking while Polars' threads run is refused, because the child would wait for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from new_process import python

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork"),
    pytest.mark.slow,
]

EXAMPLE = Path(__file__).parents[1] / "examples" / "detection"
TABLES = tuple(str(EXAMPLE / f"{side}.parquet") for side in ("predictions", "groundtruths"))
START = f"""
import os, pickle, signal, sys, warnings
warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
tables = {TABLES!r}
def in_child(call):
    sys.stdout.flush()
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, status
        return
    signal.alarm(40)  # one that hangs fails
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)
    sys.stdout.flush()
    os._exit(0)
"""
REFUSED = "ExecutorError process"


def output_of(code: str, **variables: str) -> list[str]:
    """Return the lines that a new process and its children print."""
    return python(START + code, strict=False, **variables).stdout.splitlines()


def test_after_use_whatever_gives_polars_work_is_refused(tmp_path: Path) -> None:
    code = f"""
import evalengine as ee
card = ee.score(*tables)
card.save({str(tmp_path / "run")!r})
other = ee.load({str(tmp_path / "run")!r})
frame = card.metrics
for call in (
    lambda: ee.score(*tables),
    lambda: ee.check(*tables),
    lambda: ee.explain(*tables),
    lambda: ee.score([dict(datum_id="a", label_value="x")], [dict(datum_id="a", label_value="x")]),
    lambda: ee.fuse([dict(q=dict(d=1.0)), dict(q=dict(d=2.0))]),
    lambda: ee.rouge(["a b"], ["a b"]),
    lambda: ee.load({str(tmp_path / "run")!r}),
    lambda: other.metrics,
    lambda: card.value("mAP", iou_threshold=0.5),
    lambda: card.to_valor(),
    lambda: card.save({str(tmp_path / "again")!r}),
    lambda: pickle.dumps(card),
    lambda: repr(card),
):
    in_child(call)
in_child(lambda: len(frame.rows()) == card.metrics.height)
in_child(lambda: ee.precision_recall_fscore(["a", "b"], ["a", "a"])[0]["score"])
print(card.value("mAP", iou_threshold=0.5))
"""
    *refused, looked_at, single, parent = output_of(code)
    assert len(refused) == 13
    for line in refused:
        assert line.startswith(REFUSED), line
        assert "spawn" in line
        assert "first table is" in line
    assert (looked_at, single, parent) == ("True", "0.25", "0.7432474760635814")


@pytest.mark.parametrize(
    "query",
    [
        "pl.DataFrame({'a': [1]}).filter(a=1)",
        "pl.scan_parquet(tables[0]).collect_schema()",  # starts threads that read
        "pl.read_csv(b'a,b\\n1,2\\n')",
    ],
)
def test_the_users_own_queries_count(query: str) -> None:
    output = output_of(
        f"import evalengine as ee, polars as pl\n{query}\nin_child(lambda: ee.score(*tables))"
    )
    assert [line.startswith(REFUSED) for line in output] == [True]


@pytest.mark.parametrize("imported", ["evalengine, polars", "evalengine.api"])
def test_a_fork_before_use_scores(imported: str) -> None:
    """It is a process like any other: its own children are refused once it has read."""
    code = f"""
import {imported}
import evalengine as ee
def twice():
    found = ee.score(*tables).value("mAP", iou_threshold=0.5)
    in_child(lambda: ee.score(*tables))
    return found
in_child(twice)
in_child(lambda: ee.score(*tables).value("mAP", iou_threshold=0.5))
"""
    refused, first, second = output_of(code)
    assert refused.startswith(REFUSED)
    assert first == second == "0.7432474760635814"


def test_children_of_a_refused_one_are_refused() -> None:
    code = """
import evalengine as ee
ee.score(*tables)
in_child(lambda: in_child(lambda: ee.score(*tables)))
"""
    refused, nothing = output_of(code)
    assert refused.startswith(REFUSED)
    assert nothing == "None"


def test_if_threads_are_invisible_opened_files_count() -> None:
    code = """
import evalengine as ee
from evalengine import forked
forked._TASKS = "/nowhere"
import evalengine.api
in_child(lambda: ee.score(*tables).value("mAP", iou_threshold=0.5))
ee.score(*tables)
in_child(lambda: ee.score(*tables))
"""
    scored, refused = output_of(code)
    assert scored == "0.7432474760635814"
    assert refused.startswith(REFUSED)
