"""Options as keywords: their types for type checkers, and their names in other tools."""

from __future__ import annotations

import typing

import pytest
import surface
from refusals import refused

import evalengine as ee
from evalengine import dialects
from evalengine.cli import main
from evalengine.jobs.loading import load_job
from evalengine.schemas.named import Dialect, Named, Task
from evalengine.schemas.options import ELSEWHERE, FIELDS
from evalengine.tasks import NAMES


@pytest.mark.parametrize("call", [ee.score, ee.check, ee.explain])
def test_type_checkers_know_every_option(call):
    assert tuple(typing.get_type_hints(Named)) == FIELDS
    assert surface.NAMED.read_text("utf-8") == surface.named()
    hint = call.__annotations__["named"]
    assert hint == "Unpack[Named]"


def test_type_checkers_know_the_names_of_tasks_and_dialects():
    assert typing.get_args(Task) == NAMES
    assert set(typing.get_args(Dialect)) == {one for task in NAMES for one in dialects.names(task)}
    hints = typing.get_type_hints(Named)
    assert hints["task"] == Task | None
    assert hints["dialect"] == Dialect | None


@pytest.mark.parametrize("theirs", sorted(ELSEWHERE))
def test_names_of_other_tools_suggest_ours(theirs):
    ours = ELSEWHERE[theirs]
    assert theirs not in FIELDS
    assert ours in FIELDS
    with refused("unknown_name", ee.OptionError):
        ee.explain(**{theirs: 1})


@pytest.mark.parametrize("name", ["k_list", "metrics_to_return", "filters"])
def test_the_command_suggests_them_too(name, capsys):
    flag = "--" + name.replace("_", "-")
    assert main(["score", "a.parquet", "b.parquet", flag, "1"]) == 2
    message = capsys.readouterr().err
    assert f"It is --{ELSEWHERE[name]} here." in message


def test_a_job_file_suggests_them_too(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text('name = "n"\n[inputs]\npredictions = "a"\n[options]\nk_list = [1]\n')
    with refused("unknown_name", ee.OptionError, value="k_list"):
        load_job(job)


@pytest.mark.parametrize("asked", [{"k": [0]}, {"k": [0, 5]}, {"metrics": ["nDCG@0"]}])
@pytest.mark.parametrize("dialect", ["standard", "trec_eval", "remem"])
def test_a_cut_off_of_0_is_refused_if_the_reference_has_none(asked, dialect):
    given = {"metrics": ["nDCG", "RetrievalRecall"], "dialect": dialect, **asked}
    with refused("option_value", ee.OptionError, option="k", value=[0]) as error:
        ee.explain(task="retrieval", **given)
    assert ("RetrievalRecall takes it" in str(error.value)) is ("k" in asked)


def test_the_command_refuses_a_cut_off_of_0(tmp_path, capsys):
    assert main(["explain", "--task", "retrieval", "--k", "0"]) == 2
    assert "--k 0 for nDCG" in capsys.readouterr().err


@pytest.mark.parametrize("dialect", ["standard", "remem"])
def test_a_cut_off_of_0_of_remem_s_metrics(dialect):
    card = ee.score(
        {"query_id": [1], "text": ["a"]},
        {"query_id": [1], "text": ["a"]},
        task="retrieval",
        dialect=dialect,
        metrics=["RetrievalRecall", "RetrievalRecallAll", "RetrievalNDCGAny"],
        k=[0, 1],
    )
    assert card.metrics.select("k", "value").unique(maintain_order=True).rows() == [
        (0, 0.0),
        (1, 1.0),
    ]
