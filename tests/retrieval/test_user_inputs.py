"""Inputs of retrieval: checks, unusual tables, notes, titles of variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from merging.parts import Case
from partitions.cases import in_buckets, same_as_in_memory
from refusals import noted, refused

import evalengine as ee
from evalengine.report.summary import sections

RUN = pl.DataFrame(
    {"query_id": ["a", "a", "b"], "doc_id": ["x", "y", "z"], "score": [2.0, 1.0, 1.0]}
)
QRELS = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["y", "z"], "relevance": [2, 1]})
TEXTS = pl.DataFrame({"retrieved": [["one text", "two"]], "relevant": [["one text"]]})


@pytest.mark.parametrize(
    ("run", "refusal"),
    [
        (
            pl.concat([RUN, RUN]),
            {
                "code": "repeated_values",
                "side": "predictions",
                "column": "doc_id",
                "count": 2,
                "rows": [1, 4, 2, 5],
            },
        ),
        (
            RUN.drop("score").with_columns(rank=pl.Series([1, 1, 1])),
            {"code": "tied_ranks", "column": "rank", "count": 2},
        ),
    ],
)
def test_check_refuses_what_encoding_refuses(run: pl.DataFrame, refusal: dict[str, Any]) -> None:
    with refused(**refusal):
        ee.check(run, QRELS)


def test_check_has_the_notes_of_score() -> None:
    gaps = RUN.drop("score").with_columns(rank=pl.Series([1, 7, 1]))
    report = ee.check(gaps, QRELS)
    assert report.rows == {"predictions": 3, "ground_truths": 2}
    assert report.notes == list(ee.score(gaps, QRELS).notes)
    assert any("have gaps: 'a'" in note for note in report.notes)


def test_check_refuses_undefined_combinations_of_options() -> None:
    with pytest.raises(ee.OptionError, match="no formula"):
        ee.check(RUN, QRELS, metrics=["bpref"], ties="average")


def test_repeated_judgments_are_refused() -> None:
    with refused(
        "repeated_values", side="ground truths", column="doc_id", count=2, rows=[0, 2, 1, 3]
    ):
        ee.score(RUN, pl.concat([QRELS, QRELS]))


@pytest.mark.parametrize("side", ["retrieved", "relevant"])
def test_a_list_with_a_repeated_document_is_refused(side: str) -> None:
    table = pl.DataFrame({"retrieved": [["p", "q"]], "relevant": [["q", "r"]]})
    with refused("repeated_values", column="doc_id", count=1, rows=[0, 1]):
        ee.score(table.with_columns(pl.Series(side, [["q", "q"]])))


@pytest.mark.parametrize("side", ["retrieved", "relevant"])
def test_a_table_without_one_side_is_refused(side: str) -> None:
    missing = {"retrieved", "relevant"} - {side}
    with pytest.raises(ee.InputError, match=f"column '{missing.pop()}' is missing"):
        ee.score(TEXTS.select(side), task="retrieval")


def test_scores_that_are_strings_are_one_problem() -> None:
    with pytest.raises(ee.InputError) as caught:
        ee.score(RUN.with_columns(score=pl.lit("high")), QRELS)
    assert str(caught.value).count("\n- ") == 1
    assert "dtype String" in str(caught.value)


def test_ids_that_never_match_are_a_warning() -> None:
    card = ee.score(RUN, QRELS.with_columns(pl.col("doc_id").str.to_uppercase()))
    assert card.value("MAP") == 0
    text = noted(card, "documents_apart", severity="warning").message
    assert "letter case" in text
    other = ee.score(
        RUN,
        QRELS.with_columns(doc_id=pl.format("{}{}", pl.lit("x"), pl.int_range(pl.len()).hash())),
    )
    assert "one collection" in noted(other, "documents_apart", severity="warning").message
    assert not [note for note in ee.score(RUN, QRELS).notes if "one collection" in note]


@pytest.mark.parametrize(("common", "warned"), [(0, 1), (1, 0), (3, 0)])
def test_ids_that_match_in_only_one_bucket_are_no_warning(
    common: int, warned: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries are in four buckets, and some of them retrieve a judged document."""
    in_buckets(monkeypatch)
    queries = [f"q{i}" for i in range(24)]
    docs = ["d"] * common + ["other"] * (24 - common)
    run = pl.DataFrame({"query_id": queries, "doc_id": docs, "score": 1.0})
    judged = pl.DataFrame({"query_id": queries, "doc_id": "d", "relevance": 1})
    card = same_as_in_memory(Case((run, judged), {}, "query_id"), "retrieval", tmp_path)
    assert len(card.warnings) == warned


def test_a_column_of_query_ids_does_not_make_texts_ids() -> None:
    table = TEXTS.rename({"retrieved": "retrieved_contexts", "relevant": "reference_contexts"})
    card = ee.score(table.with_columns(question_id=pl.Series(["q1"])))
    assert card.value("Precision") == 0.5
    assert card.metrics["metric"].to_list() == ee.score(table).metrics["metric"].to_list()


def test_an_unread_threshold() -> None:
    with refused("option_unread", option="match_threshold"):
        ee.score(TEXTS, match="exact_chunk", match_threshold=0.5)
    notes = ee.score(RUN, QRELS, match_threshold=0.5).notes
    assert [note.split()[0] for note in notes if "not read" in note] == ["match_threshold=0.5"]


def test_titles_distinguish_relevance_levels() -> None:
    run = RUN.with_columns(kind=pl.col("query_id"))
    (shown,) = sections(ee.score(run, QRELS, metrics=["MAP"], relevance_levels=[1, 2], by="kind"))
    titles = ("MAP (relevance level 1)", "MAP (relevance level 2)")
    assert [(line.title, line.value) for line in shown.headline] == [
        (titles[0], 0.75),
        (titles[1], 0.25),
    ]
    (grid,) = shown.slices
    assert grid.columns == titles
    rows = [(row.names, row.numbers, row.support) for row in grid.rows]
    assert rows == [(("a",), (0.5, 0.5), 1), (("b",), (1.0, 0.0), 1)]


def test_titles_distinguish_recall_levels() -> None:
    text = repr(ee.score(RUN, QRELS, metrics=["InterpolatedPrecision"]))
    assert all(f"InterpolatedPrecision (recall {level:g})" in text for level in (0.0, 0.1, 1.0))


def test_an_empty_run_file(tmp_path) -> None:
    (tmp_path / "empty.run").touch()
    with refused("file_empty", ee.ReadError):
        ee.score(tmp_path / "empty.run", QRELS)


@pytest.mark.parametrize("empty", [{}, pl.DataFrame()])
def test_a_side_without_a_column_is_empty(empty) -> None:
    """An empty dict is a run without documents, or an empty set of judgments."""
    judged = {"q": {"d": 1}}
    options = {"task": "retrieval", "metrics": ["P@1"]}
    assert ee.score(empty, judged, **options).metrics["scored"].to_list() == [0]
    assert ee.score(judged, empty, **options).metrics["scored"].to_list() == [0]
    asked = ee.score(empty, judged, **options, complete=True)
    assert asked.value("P", k=1) == 0.0


@pytest.mark.parametrize(("relevant", "severity"), [(0, "warning"), (9, "warning"), (10, "note")])
def test_queries_without_a_relevant_document(relevant: int, severity: str) -> None:
    names = [f"q{i:02}" for i in range(20)]
    qrels = pl.DataFrame({"query_id": names, "doc_id": "d"})
    qrels = qrels.with_columns(relevance=pl.int_range(20) < relevant).cast({"relevance": pl.Int64})
    run = qrels.select("query_id", "doc_id", score=1.0)
    findings = ee.score(run, qrels, task="retrieval").findings
    (note,) = [one for one in findings if one.facts.get("of") == 20]
    assert (note.severity, note.facts["count"]) == (severity, 20 - relevant)


@pytest.mark.parametrize(
    ("retrieved", "relevant", "recall"),
    [(["a b c", "d"], ["x a b c y"], 1.0), (["abc", "d"], ["xabcy"], 0.0)],
    ids=["texts", "ids"],
)
def test_lists_of_strings_are_texts_only_with_white_space(
    retrieved: list[str], relevant: list[str], recall: float
) -> None:
    """Chunks may be parts of relevant texts, ids are equal or not; the interpretation is noted."""
    table = pl.DataFrame({"datum_id": [1], "retrieved": [retrieved], "relevant": [relevant]})
    card = ee.score(table, task="retrieval", metrics=["Recall"])
    assert {*card.metrics["value"]} == {recall}
    (note,) = (one for one in card.findings if one.code == "retrieval")
    assert note.severity == "note"
