"""Inputs, refusals and output of ``fuse``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from refusals import refused

import evalengine as ee
from evalengine.cli import main
from evalengine.fusion import write
from evalengine.ingest.sources.tables import open_source

ONE = {"q1": {"a": 3.0, "b": 2.0}, "q2": {"c": 1.0}}
TABLE = pl.DataFrame({"qid": ["q1", "q1"], "docno": ["b", "d"], "score": [10.0, 6.0]})
RANKED = pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["b", "d"], "rank": [1, 2]})


def test_runs_of_every_kind_are_fused(tmp_path: Path) -> None:
    path = tmp_path / "one.run"
    path.write_text("q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq2 Q0 c 1 1 x\n")
    TABLE.write_parquet(tmp_path / "two.parquet")
    whole = ee.fuse([path, tmp_path / "two.parquet"])
    assert whole.equals(ee.fuse([ONE, TABLE]))
    assert whole.equals(ee.fuse([ONE, RANKED]))
    assert whole.equals(ee.fuse([ONE, RANKED.with_columns(pl.col("rank") - 1)]))
    assert whole.schema == {
        "query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.Int64,
    }  # fmt: skip
    assert whole.rows()[0] == ("q1", "b", 1 / 62 + 1 / 61, 1)
    assert whole["query_id"].to_list() == ["q1", "q1", "q1", "q2"]


def test_scores_have_priority_over_ranks_as_in_trec_eval() -> None:
    both = RANKED.with_columns(score=pl.Series([1.0, 2.0]))
    assert ee.fuse([both, both])["doc_id"].to_list() == ["d", "b"]


def test_integer_ids_stay_integers() -> None:
    small = pl.DataFrame({"query_id": [2, 10], "doc_id": [5, 5], "score": [1.0, 1.0]})
    got = ee.fuse([small, small.with_columns(pl.col("doc_id").cast(pl.Int32))])
    assert got["query_id"].to_list() == [2, 10]
    assert got.schema["doc_id"] == pl.Int64


def test_runs_without_rows_fuse_to_none() -> None:
    for method in ("rrf", "combmed", "borda", "condorcet"):
        assert ee.fuse([TABLE.clear(), TABLE.clear()], method=method).height == 0
    assert ee.fuse([TABLE.clear(), TABLE])["doc_id"].to_list() == ["b", "d"]


def test_repeated_documents_are_refused() -> None:
    with refused("repeated_values", column="doc_id", count=4, values=2):
        ee.fuse([ONE, pl.concat([TABLE, TABLE])])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None])
def test_scores_that_are_no_numbers_are_refused(bad: float | None) -> None:
    code = "null_values" if bad is None else "not_finite"
    with refused(code, column="score", count=1, match="run 1"):
        ee.fuse([TABLE.with_columns(score=pl.Series([1.0, bad])), ONE])


def test_ids_of_two_kinds_are_refused() -> None:
    other = pl.DataFrame({"query_id": ["q1"], "doc_id": [7], "score": [1.0]})
    with refused("types_differ", column="doc_id") as error:
        ee.fuse([ONE, other])
    assert "such as 'a'" in str(error.value)
    assert "such as 7" in str(error.value)


def test_integers_of_a_csv_match_strings_of_a_trec_run(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("query_id,doc_id,score\n1,7,2.0\n1,8,1.0\n")
    (tmp_path / "two.run").write_text("1 Q0 8 1 9.0 t\n")
    paths = [tmp_path / "one.csv", tmp_path / "two.run"]
    for runs in (paths, paths[::-1]):
        fused = ee.fuse(runs)
        assert fused.select("query_id", "doc_id").rows() == [("1", "8"), ("1", "7")]
    frame = pl.read_csv(paths[0])
    with refused("types_differ", match="such as 1"):
        ee.fuse([frame, paths[1]])


def test_shared_ranks_are_refused_as_score_refuses_them() -> None:
    with refused("tied_ranks", column="rank", count=2) as error:
        ee.fuse([ONE, RANKED.with_columns(rank=pl.lit(4))])
    assert str(error.value).startswith("run 2 (")
    assert "row 1 (query_id='q1'" in str(error.value)
    both = RANKED.with_columns(rank=pl.lit(4), score=pl.Series([2.0, 1.0]))
    assert ee.fuse([ONE, both])["doc_id"][0] == "b"  # ranks next to scores are not read


@pytest.mark.parametrize("query", ["qid", "question_id", "queryid", "topic"])
@pytest.mark.parametrize("order", [{"score": "confidence"}, {"score": "sim"}, {"score": "ranking"}])
def test_every_name_that_score_knows(query: str, order: dict[str, str]) -> None:
    other = TABLE.rename({"qid": query, "docno": "item_id", **order})
    assert set(ee.fuse([ONE, other])["doc_id"]) == {"a", "b", "c", "d"}
    assert ee.score(other, {"q1": {"b": 1}}, metrics=["MRR"]).value("MRR") is not None


@pytest.mark.parametrize(
    ("options", "code", "facts"),
    [
        ({"method": "rff"}, "unknown_name", {"value": "rff"}),
        ({"method": "combsum", "normalisation": "minimax"}, "unknown_name", {"value": "minimax"}),
        ({"normalisation": "max"}, "options_conflict", {"option": "normalisation"}),
        ({"weights": [1.0]}, "lengths_differ", {"option": "weights", "count": 1}),
        ({"weights": [1.0, float("nan")]}, "option_value", {"option": "weights"}),
        ({"method": "wsum"}, "option_missing", {"option": "weights"}),
        ({"method": "combmax", "weights": [1, 2]}, "options_conflict", {"option": "weights"}),
        ({"k": -1}, "option_value", {"option": "k", "value": -1}),
        ({"persistence": 1}, "option_value", {"option": "persistence", "value": 1}),
        ({"method": "combsum"}, "scores_missing", {"count": 1}),
        ({"method": "combsum", "normalisation": "min-max"}, "scores_missing", {"count": 1}),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], code: str, facts: dict[str, Any]
) -> None:
    with refused(code, **facts):
        ee.fuse([ONE, RANKED], **options)


def test_ranks_suffice_for_normalisations_by_rank() -> None:
    got = ee.fuse([ONE, RANKED], method="combsum", normalisation="rank")
    assert got.row(0) == ("q1", "b", 1.5, 1)


@pytest.mark.parametrize("normalisation", ["min-max", "sum", "zmuv"])
def test_scores_too_far_apart_are_refused(normalisation: str) -> None:
    far = {"q1": {"a": 1e308, "b": -1e308, "c": 0.0}}
    with refused("not_finite", normalisation=normalisation, run=2, match=r"-1e\+308 to 1e\+308"):
        ee.fuse([ONE, far], method="combsum", normalisation=normalisation)
    assert ee.fuse([ONE, far]).height == 4
    if normalisation != "min-max":  # its differences are finite here
        wide = {"q1": {"a": 1.7e308, "b": 1.6e308, "c": 0.0}}
        with refused("not_finite", normalisation=normalisation, run=1):
            ee.fuse([wide, ONE], method="combsum", normalisation=normalisation)


def test_sums_beyond_floats_are_refused() -> None:
    large = {"q1": {"a": 1e308}}
    with refused("too_high", method="combsum"):
        ee.fuse([large, large], method="combsum")
    assert ee.fuse([large, large], method="combmax")["score"].item() == 1e308


def test_max_needs_scores_above_0() -> None:
    low = {"q1": {"a": -1.0, "b": -2.0}}
    with refused("too_low", normalisation="max", count=1, match="-1, not"):
        ee.fuse([low, ONE], method="combsum", normalisation="max")


@pytest.mark.parametrize("runs", [[ONE], ONE, "one.run", []])
def test_a_single_run_is_refused(runs: Any) -> None:
    with refused("runs_missing"):
        ee.fuse(runs)


def test_written_files_are_read_back(tmp_path: Path) -> None:
    fused = ee.fuse([ONE, TABLE])
    for name in ("fused.run", "fused.parquet"):
        write(fused, tmp_path / name, "mine")
        again = open_source(tmp_path / name).frame.select(fused.columns).collect()
        assert again.equals(fused)
    assert (tmp_path / "fused.run").read_text().endswith("q2 Q0 c 1 0.01639344262295082 mine\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fused.parquet", "fused.run"]
    with pytest.raises(ee.OptionError, match=r"\.parquet, \.run"):
        write(fused, tmp_path / "fused.xlsx")
    with refused("label_unwritable", column="doc_id", count=1):
        write(ee.fuse([ONE, {"q1": {"two words": 1.0}}]), tmp_path / "bad.run")
    with pytest.raises(ee.InputError, match="one word"):
        write(fused, tmp_path / "bad.run", "two words")
    assert not (tmp_path / "bad.run").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\n")
    TABLE.write_parquet(tmp_path / "b.parquet")
    runs = [str(tmp_path / "a.run"), str(tmp_path / "b.parquet")]
    assert main(["fuse", *runs, "--method", "wsum", "--weights", "1,0.5", "--tag", "t"]) == 0
    assert capsys.readouterr().out == "q1 Q0 b 1 7.0 t\nq1 Q0 d 2 3.0 t\nq1 Q0 a 3 3.0 t\n"
    out = str(tmp_path / "fused.parquet")
    assert main(["fuse", *runs, "--out", out, "--columns", "docno=doc_id"]) == 0
    assert capsys.readouterr().out == f"{out}: 3 rows\n"
    assert pl.read_parquet(out).height == 3
    assert main(["fuse", runs[0]]) == 2
    capsys.readouterr()
    assert main(["fuse", *runs, "--method", "wsum"]) == 2
    assert "needs --weights, one" in capsys.readouterr().err
