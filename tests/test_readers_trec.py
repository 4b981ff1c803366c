"""Runs and qrels of retrieval tools are recognised by content and refused by line."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import refusals
from hypothesis import given
from hypothesis import strategies as st
from reference_data import real_data

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.sources import objects
from evalengine.ingest.sources.formats import detect
from evalengine.ingest.sources.tables import open_source
from evalengine.ingest.sources.trec import layout_of

RUN = "q1 Q0 d1 1 2.5 tag\nq1 Q0 007 2 -1e-3 tag\nq2 Q0 7 1 3 tag\n"
ROWS = [("q1", "d1", 1, 2.5, "tag"), ("q1", "007", 2, -0.001, "tag"), ("q2", "7", 1, 3.0, "tag")]
QRELS = "q1 0 d1 1\nq1 0 007 -2\nq2 0 7 0.5\n"
JUDGED = [("q1", "d1", 1.0), ("q1", "007", -2.0), ("q2", "7", 0.5)]


def rows(thing: Any) -> list[tuple[Any, ...]]:
    return open_source(thing).frame.collect().rows()


def refused(path: Path, text: str | bytes) -> refusals.Refusal:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ee.ReadError) as caught:
        open_source(path)
    assert str(path) in str(caught.value)
    return refusals.Refusal(caught.value)


@pytest.mark.parametrize("name", ["a.run", "a.res", "a.trec", "a.txt", "a.test", "a.tsv", "a"])
def test_runs_are_recognised_by_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(RUN)
    assert open_source(path).format == "trec"
    assert rows(path) == ROWS


@pytest.mark.parametrize("name", ["a.qrels", "a.qrel", "a.txt", "qrels.test", "a.tsv", "qrels"])
def test_qrels_are_recognised_by_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(QRELS)
    assert rows(path) == JUDGED
    path.write_text(QRELS.replace(" ", "\t"))
    assert rows(path) == JUDGED


FORMS = {
    "tabs": lambda text: text.replace(" ", "\t"),
    "several blanks": lambda text: text.replace(" Q0 ", "  Q0\t\t"),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "windows and blanks": lambda text: text.replace(" Q0", "  Q0").replace("\n", "\r\n"),
    "no last newline": lambda text: text.removesuffix("\n"),
    "blank lines": lambda text: "\n" + text.replace("\n", "\n\n \n"),
    "blanks at the ends": lambda text: "".join(f" {line} \n" for line in text.splitlines()),
    "byte-order mark": lambda text: "\ufeff" + text,
    "mark and blanks": lambda text: "\ufeff" + text.replace("Q0", " Q0"),
    "blanks beside tabs": lambda text: text.replace(" ", " \t").replace("\n", " \n"),
    "comments": lambda text: "# a comment\n#four words of it\n" + text.replace("\n", "\n#\n"),
    "comment behind a mark": lambda text: "\ufeff# a comment\n" + text,
    "fields behind the tag": lambda text: text.replace("tag\n", "tag 0.5 more\n", 2),
    "tabs in later lines": lambda text: text.replace("q2 Q0", "q2\tQ0"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_any_blanks_separate(form: str, packed: bool, tmp_path: Path) -> None:
    data = FORMS[form](RUN).encode()
    path = tmp_path / ("a.run.gz" if packed else "a.run")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert rows(path) == ROWS


def test_compressed_files_need_no_special_name(tmp_path: Path) -> None:
    for name in ("run.gz", "run.txt.gz", "packed", "a.tsv.gz"):
        (tmp_path / name).write_bytes(gzip.compress(RUN.encode()))
        assert rows(tmp_path / name) == ROWS


FIELD = st.text(
    st.characters(exclude_categories=("Z", "C"), exclude_characters='"'), min_size=1, max_size=8
)

FIRST = FIELD.filter(lambda text: not text.startswith("#"))


@given(
    st.lists(
        st.tuples(FIRST, FIELD, st.integers(-5, 10**6), st.floats(allow_nan=False)), min_size=1
    ),
    st.data(),
)
def test_every_field_is_read(lines: list[tuple[Any, ...]], data: st.DataObject) -> None:
    import tempfile

    blanks = st.sampled_from([" ", "  ", "\t", " \t "])
    text = ""
    for query, document, rank, score in lines:
        fields = (query, "Q0", document, str(rank), repr(score), "tag")
        text += "".join(field + data.draw(blanks) for field in fields) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.run"
        path.write_text(text, encoding="utf-8", newline="")
        assert rows(path) == [(*line, "tag") for line in lines]


def test_ids_are_strings_and_numbers_are_floats(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("1 Q0 10 1 3 x\n")
    schema = open_source(tmp_path / "a.run").frame.collect_schema()
    assert schema == {
        "query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64,
        "run_id": pl.String,
    }  # fmt: skip


def test_qrels_may_have_comments(tmp_path: Path) -> None:
    for name in ("a.qrels", "a.txt"):
        path = tmp_path / name
        path.write_text("# judged by two people\n#\n" + QRELS.replace("q2", "#q3 0 d 1\nq2"))
        source = open_source(path)
        assert source.frame.collect().rows() == JUDGED
        (note,) = source.notes
        assert (note.kind, note.count) == ("comments_not_read", 1)
        assert "first '#q3 0 d 1'" in note.message


def test_lines_are_counted_with_comments(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.run", "# one\n" + RUN + "q1 Q0 d1\n").has(
        "file_malformed", count=1, lines=[5]
    )
    beir = "# one\n\nquery-id\tcorpus-id\tscore\n1\t2\t3\n# two\n1\t2\n"
    assert refused(tmp_path / "a.qrels", beir).has("file_malformed", count=1, lines=[6])


def test_fields_after_the_tag_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(RUN.replace("tag\n", "tag and more\n", 2))
    (note,) = open_source(path).notes
    assert (note.kind, note.count) == ("fields_not_read", 2)
    path.write_text("q1 Q0 d1 - 2.5 tag more\n")
    assert rows(path) == [("q1", "d1", 2.5, "tag")]
    path = tmp_path / "found"
    path.write_text(RUN.replace("tag", "tag more"))
    assert rows(path) == ROWS
    assert "7 fields instead of 6" in refused(path, RUN + "q1 Q0 a b 1 2.5 t\n")
    blank = "q1 Q0 report 0 1 10.0 bm25\nq1 Q0 report 1 2 9.0 bm25\n"
    for name in ("a.run", "found"):
        assert refused(tmp_path / name, blank).has("file_malformed", count=2, lines=[1, 2])
    path.write_text("q1 Q0 d1 1 19 3 note\n")  # an integer score, and a number as the tag
    assert rows(path) == [("q1", "d1", 1, 19.0, "3")]
    path.write_text(RUN.replace("tag", "tag more").replace("Q0", "0"))
    assert detect(str(tmp_path / "a.run")) == "trec"
    with refusals.refused("format_unknown", ee.ReadError):
        detect(str(path))


def test_other_layouts(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    for text, expected in (
        ("q1 Q0 d1 1 2.5\n", [("q1", "d1", 1, 2.5)]),
        ("query-id\tcorpus-id\tscore\n1\t007\t2\n", [("1", "007", 2.0)]),
        ("query-id\tcorpus-id\tscore\r\n1\t007\t2\r\n\r\n", [("1", "007", 2.0)]),
        ("1048585\t7187158\t1\n1048585\t7187157\t2\n", [("1048585", "7187158", 1),
                                                        ("1048585", "7187157", 2)]),
        ("1185869\t0\t0\t1\n", [("1185869", "0", 1.0)]),
    ):  # fmt: skip
        path.write_text(text, newline="")
        assert rows(path) == expected
    path.write_text("query-id\tcorpus-id\tscore\n")
    assert open_source(path).frame.collect().shape == (0, 3)


def test_runs_in_the_columns_of_beir(tmp_path: Path) -> None:
    header, run, qrels = (
        "query-id\tcorpus-id\tscore\n",
        tmp_path / "run.tsv",
        tmp_path / "qrels.tsv",
    )
    for scores, grades in itertools.product(((0.9, 0.5), (90, 50)), ((1, 2), (1, 0.5))):
        run.write_text(f"{header}q1\td1\t{scores[0]}\nq1\td2\t{scores[1]}\nq2\td3\t12\n")
        qrels.write_text(f"{header}q1\td2\t{grades[0]}\nq2\td3\t{grades[1]}\n")
        assert ee.score(run, qrels, metrics=["MRR"]).value("MRR") == 0.75
        assert ee.convert_trec(run, qrels, out=tmp_path / f"{grades}") == {
            "run.parquet": 3,
            "qrels.parquet": 2,
        }
        assert pl.read_parquet(tmp_path / f"{grades}" / "qrels.parquet").columns[2] == "relevance"
        assert ee.fuse([run, run], method="combsum").height == 3
    qrels.write_text(f"{header}q1\td2\t1\nq2\td3\t2\n")
    codes = {sides: {one.code for one in ee.score(*sides, task="retrieval").findings}
             for sides in itertools.product((run, qrels), repeat=2)}  # fmt: skip
    assert codes == {
        (run, qrels): set(),
        (qrels, run): {"mappings_swapped"},
        (run, run): {"same_file"},
        (qrels, qrels): {"same_file"},
    }


def test_fractions_in_qrels_of_beir_change_no_names(tmp_path: Path) -> None:
    """One night has fractions and the other has none; exchanged sides are a warning."""
    nights = []
    for night, grade in enumerate((1, 0.5)):
        run, qrels = tmp_path / f"{night}.run", tmp_path / f"{night}.tsv"
        run.write_text(f"q{night} Q0 d1 1 0.5 a\n")
        qrels.write_text(f"query-id\tcorpus-id\tscore\nq{night}\td1\t{grade}\n")
        nights.append((run, qrels))
    where = {"ground_truths": "relevance > 0"}
    plan = ee.plan(*nights[0], metrics=["nDCG"], where=where)
    card = ee.merge([plan.tally(*night) for night in nights]).summarise()
    both = [list(files) for files in zip(*nights, strict=True)]
    assert card.metrics.equals(ee.score(*both, metrics=["nDCG"], where=where).metrics)
    run, qrels = nights[1]
    (one,) = ee.score(qrels, run, task="retrieval").findings
    assert (one.code, one.severity, one.count) == ("mappings_swapped", "warning", 1)


TABLES = [
    "a\tb\tc\td\n1\t0\t3\t1\n",
    "0\t1\t2\t3\n1\t0\t3\t1\n",
    "0\t1\t2\n7\t8\t1\n",
    "0\t1\t2\t3\t4\t5\n1\t0\t3\t1\t2\t3\n",
    "datum_id\tlabel_value\tscore\n1\t2\t0.5\n",
    "query_id\tdoc_id\tscore\n1\t2\t0.5\n",
    "id, x, name, 2\n1, 0, d, 1\n",
    "5\t6\t7\n1\t2\t3\n",
    "#id\tx\tname\ty\n1\t0\td\t1\n",
    "1\t0\t3\t1\t2\t3\t4\n2\t0\t3\t1\t2\t3\t4\n",
]


@pytest.mark.parametrize("text", TABLES)
def test_ordinary_tables_are_not_runs(text: str, tmp_path: Path) -> None:
    for name in ("a.tsv", "a.txt"):
        (tmp_path / name).write_text(text)
        assert detect(str(tmp_path / name)) == "csv"


def test_a_csv_file_is_never_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(RUN)
    assert detect(str(tmp_path / "a.csv")) == "csv"


def test_a_table_may_be_called_a_run(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("query_id,doc_id,score\nq,d,1.5\n")
    assert rows(path) == [("q", "d", 1.5)]
    pl.DataFrame({"query_id": ["q"]}).write_parquet(path)
    assert rows(path) == [("q",)]
    path.write_text('{"q": {"d": 1}}')
    assert rows(path) == [("q", "d", 1.0)]


def test_several_files_are_one_run(tmp_path: Path) -> None:
    first, *rest = RUN.splitlines(keepends=True)
    (tmp_path / "1.run").write_text(first)
    (tmp_path / "2.run").write_text("".join(rest).replace(" ", "\t"))
    for thing in (tmp_path / "*.run", tmp_path, [tmp_path / "1.run", tmp_path / "2.run"]):
        assert rows(thing) == ROWS
    (tmp_path / "3.run").write_text(QRELS)
    with refusals.refused("formats_differ", ee.ReadError, match=r"1\.run .*3\.run"):
        open_source(tmp_path / "*.run")


BROKEN = [
    ("q1 Q0 d1 1 2.5\n", "line 4: 5 fields instead of 6: 'q1 "),
    ("q1 Q0 a b 1 2.5 t\n", "line 4: 7 fields instead of 6"),
    ("q1 Q0 d3 1 high t\n", "line 4: score 'high' is not a number"),
    ("q1 Q0 d3 1 high t\n\nq1\nq2\nq3 Q0 d 1 2 t\n", "3 lines do not fit a TREC run"),
]


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_broken_lines_are_named(text: str, words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path / "a.run", RUN + text)
    assert words in refused(tmp_path / "a.run", (RUN + text).replace("q1 Q0", "q1  Q0"))


def test_other_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    assert refused(path, "q 0 d 1\nq 0 d x\n").has("file_malformed", count=1, lines=[2])
    assert refused(path, "q 0 d x\n").has("file_malformed", count=1, lines=[1])
    assert refused(path, b"q 0 d 1\nq 0 \xff 1\n").has("not_utf8", lines=[2])
    assert refused(path, "some words\n").has("format_unknown")
    whole = gzip.compress(RUN.encode() * 1000)
    assert refused(tmp_path / "a.run.gz", whole[: len(whole) // 2]).has("file_unreadable")
    beir = "query-id\tcorpus-id\tscore\n1\t2\t3\n1\t2\n"
    assert refused(path, beir).has("file_malformed", count=1, lines=[3])


def test_trec_evals_own_files() -> None:
    run = open_source(real_data("trec_eval", "results.test"))
    qrels = open_source(real_data("trec_eval", "qrels.test"))
    assert run.frame.collect().height == 1500
    assert qrels.frame.collect().filter(pl.col("relevance") > 0).height == 561


@pytest.mark.parametrize("odd", ["-", "?", "1.5", "99999999999999999999"])
def test_invalid_ranks_next_to_scores(odd: str, tmp_path: Path) -> None:
    path, whole = tmp_path / "a.run", tmp_path / "b.run"
    whole.write_text(RUN)
    path.write_text(RUN.replace(" 007 2 ", f"  007 {odd} "))
    source = open_source(path)
    assert source.frame.collect().rows() == [(q, d, s, tag) for q, d, _, s, tag in ROWS]
    (note,) = source.notes
    assert note.kind == "ranks_not_read"
    both = open_source([whole, path])
    assert both.frame.collect().rows() == [(q, d, s, tag) for q, d, _, s, tag in ROWS * 2]
    assert len(both.notes) == 1
    message = refused(path, RUN + f"q1 Q0 d1 {odd} x tag\n")
    assert message.has("file_malformed", count=1, lines=[4])


def test_a_run_of_dashes_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text("q1 Q0 d1 - 1.5 tag\nq1 Q0 d2 - 2.5 tag\n")
    assert ee.score(path, {"q1": {"d2": 1}}, metrics=["MRR"]).value("MRR") == 1.0


def test_ranks_without_scores_are_required(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.run", "1\t7\t1\n1\t8\t-\n").has(
        "file_malformed", count=1, lines=[2]
    )
    large = "1\t7\t1\n1\t8\t99999999999999999999\n"
    assert refused(tmp_path / "a.run", large).has("number_too_large")


MAPPING = {"q1": {"d1": 2.5, "007": -0.001}, "q2": {"7": 3}}
MAPPED = [("q1", "d1", 2.5), ("q1", "007", -0.001), ("q2", "7", 3.0)]


@pytest.mark.parametrize("indent", [None, 2])
def test_json_mappings(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(MAPPING, indent=indent))
    assert open_source(path).format == "mapping"
    assert rows(path) == MAPPED
    path.write_text(json.dumps({"q0": {}, **MAPPING}, indent=indent))
    source = open_source(path)
    assert source.frame.collect().rows() == MAPPED
    assert [(note.kind, note.count) for note in source.notes] == [("queries_without_documents", 1)]
    assert "mapping of queries" in refused(path, json.dumps({**MAPPING, "q3": {"d": "high"}}))
    assert refused(path, json.dumps(MAPPING)[:-1]).has("file_truncated")


def test_coco_files_are_not_mappings(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    coco = {"info": {"year": 2014}, "images": [], "annotations": [], "categories": []}
    path.write_text(json.dumps(coco))
    assert open_source(path).format == "coco"


def test_python_mappings() -> None:
    assert rows(MAPPING) == MAPPED
    assert rows({"q": {"d": np.float32(0.5)}}) == [("q", "d", 0.5)]
    assert rows({1: {10: 2}, 2: {10: 1.5}}) == [(1, 10, 2.0), (2, 10, 1.5)]
    assert rows({"query_id": ["q"], "doc_id": ["d"]}) == [("q", "d")]


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"q": {"d": "high"}}, {"code": "wrong_type", "count": 1, "query": "q"}),
        ({"q": {"d": None, "e": 1.0}}, {"code": "wrong_type", "count": 1, "query": "q"}),
        ({"q": {"d": 1.0}, "r": [1]}, {"code": "wrong_type", "query": "r"}),
        ({"q": {"d": 1.0, 7: 2.0}}, {"code": "types_mixed", "what": "document"}),
        ({"q": {2**64: 1.0, 1: 2.0}}, {"code": "number_too_large", "what": "document"}),
        ({-1: {"d": 1.0}, 2**63: {"d": 2.0}}, {"code": "number_too_large", "what": "query"}),
        ({"q": {"d": 10**400}}, {"code": "number_too_large"}),
        ({"q": {1.5: 2.0}}, {"code": "types_mixed", "what": "document"}),
        (
            {"id": {0: 7, 1: 8}, "label": {0: 1, 1: 1}},
            {"code": "wrong_format", "columns": ["id", "label"]},
        ),
        ({"id": {3: 7, 1: 8}, "label": {3: 1, 1: 1}}, {"code": "wrong_format"}),
    ],
)
def test_mappings_that_do_not_fit_are_refused(mapping: Any, words: dict[str, Any]) -> None:
    with refusals.refused(**words):
        open_source(mapping)


def test_documents_may_be_numbered(tmp_path: Path) -> None:
    run = {"q1": {"0": 0.5, "1": 0.7}, "id": {"0": 0.1, "1": 0.2}}
    assert len(rows(run)) == 4
    file = tmp_path / "table.json"
    file.write_text(json.dumps({"y_true": run["q1"], "y_pred": run["id"]}))
    with refusals.refused("wrong_format", columns=["y_true", "y_pred"]):
        open_source(file)


def test_large_integer_ids() -> None:
    large = {2**63: {2**64 - 1: 1.0, 0: 0.5}}
    assert rows(large) == [(2**63, 2**64 - 1, 1.0), (2**63, 0, 0.5)]
    card = ee.score(large, {2**63: {2**64 - 1: 1}}, metrics=["MRR"])
    assert card.value("MRR") == 1.0


def test_integers_beyond_floats_are_noted(tmp_path: Path) -> None:
    large = {"q": {"a": 2**53 + 1, "b": 2**53, "c": 2.0**60, "d": 2**60}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(large))
    for thing in (large, path):
        (note,) = open_source(thing).notes
        assert (note.kind, note.count) == ("values_rounded", 1)
        assert "first 9007199254740993" in note.message
    assert open_source({"q": {"a": 2**53, "b": 1e300}}).notes == ()


def test_objects_of_ranx(monkeypatch: pytest.MonkeyPatch) -> None:
    class Run:
        def to_dict(self) -> dict[str, dict[str, float]]:
            return MAPPING

    loaded = {"ranx": SimpleNamespace(Run=Run, Qrels=type("Qrels", (), {}))}
    monkeypatch.setattr(objects.sys, "modules", {**objects.sys.modules, **loaded})
    assert rows(Run()) == MAPPED


def test_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, qrels, out = tmp_path / "a.run", tmp_path / "qrels.json", tmp_path / "tables"
    run.write_text(RUN)
    qrels.write_text(json.dumps(MAPPING))
    assert main(["convert", "trec", str(run), str(qrels), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}/run.parquet: 3 rows\n{out}/qrels.parquet: 3 rows\n"
    assert pl.read_parquet(out / "run.parquet").rows() == ROWS
    judged = pl.read_parquet(out / "qrels.parquet")
    assert judged.columns == ["query_id", "doc_id", "relevance"]
    assert judged.rows() == MAPPED
    assert sorted(path.name for path in out.iterdir()) == ["qrels.parquet", "run.parquet"]


def test_convert_is_all_or_nothing(tmp_path: Path) -> None:
    run, qrels, out = tmp_path / "a.run", tmp_path / "a.qrels", tmp_path / "tables"
    run.write_text(RUN)
    qrels.write_text(QRELS + "broken\n")
    with refusals.refused("file_malformed", ee.ReadError, count=1, lines=[4]):
        ee.convert_trec(run, qrels, out=out)
    assert not out.exists()
    qrels.write_text(QRELS)
    with refusals.refused("wrong_format", ee.ReadError):
        ee.convert_trec(qrels, run, out=out)
    table = tmp_path / "a.csv"
    table.write_text("query_id,doc_id,score\nq,d,1\n")
    with refusals.refused("wrong_format", ee.ReadError, format="csv"):
        ee.convert_trec(table, out=out)


@given(st.text(alphabet="q10 .\tQd-x", max_size=30))
def test_recognition_ignores_a_line_with_other_fields(line: str) -> None:
    layout = layout_of(line.encode())
    found = line.split()
    more = found[1:2] == ["Q0"] and len(found) > 6
    assert layout is None or len(layout.fields) == (6 if more else len(found))
