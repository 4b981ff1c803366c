"""Types of CSV columns, inferred in batches, equal those that Polars infers from all rows."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from new_process import python
from partitions.cases import in_buckets
from polars.testing import assert_frame_equal
from refusals import refused

import evalengine as ee
from evalengine.ingest.sources.scanning import scan_csv

VALUES = (
    "1", "-2", "+3", "1.5", ".5", "-.5", "1.", "1e5", "1E-3", "inf", "-inf", "NaN", "nan", "true",
    "False", "TRUE", "abc", " 5", "5 ", "", "9223372036854775807", "0x1F", "1_000", "0", "-0",
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.lists(st.sampled_from(VALUES), min_size=3, max_size=3), max_size=6))
def test_as_polars_infers_from_all_rows(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text("a,b,c\n" + "".join(f"{','.join(row)}\n" for row in rows))
    ours = scan_csv([str(path)]).collect()
    theirs = pl.read_csv(path, infer_schema_length=None)
    assert ours.schema == theirs.schema
    assert ours.equals(theirs.filter(pl.any_horizontal(pl.all().is_not_null())))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["007", "8"], pl.String),
        (["-07"], pl.String),
        (["007", "1.5"], pl.Float64),
        (["007", "1.5", "1.0"], pl.Float64),
        (["007", "7.0", "7"], pl.String),
        (["18446744073709551615", "1"], pl.UInt64),
        (["18446744073709551615", "-1"], pl.Int128),
        (["9" * 42], pl.String),
        (["9" * 42, "1.5"], pl.Float64),
        (["9223372036854775807", "-9223372036854775808"], pl.Int64),
    ],
)
def test_names_and_long_integers(tmp_path: Path, values: list[str], dtype: type) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a", *values]) + "\n")
    assert scan_csv([str(path)]).collect_schema() == {"a": dtype}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes on Linux")
@pytest.mark.parametrize("numbers", [("01", "1.0"), ("007", "2")])
def test_numbers_with_leading_zeros(tmp_path: Path, numbers: tuple[str, str]) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("datum_id,prediction,target\n" + "a,{},0\nb,{},0\n".format(*numbers))
    card = ee.score(str(file), task="regression", metrics=["MAE"])
    assert card.value("MAE") == sum(map(float, numbers)) / 2
    assert card.notes == ()


def test_a_compressed_file_is_not_loaded_to_infer_its_types(tmp_path: Path) -> None:
    """For 150 MB compressed to 600 kB, types are inferred in the memory of a few batches."""
    path = tmp_path / "a.csv.gz"
    row = b"12345678,some words that take room,0.25\n"
    with gzip.open(path, "wb", 1) as file:
        file.write(b"a,b,c\n")
        for _ in range(40):
            file.write(row * 100_000)
    code = (
        "import resource, sys; from evalengine.ingest.sources.scanning import scan_csv;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "schema = scan_csv([sys.argv[1]]).collect_schema();"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, schema.len())"
    )
    grown, columns = map(int, python(code, str(path)).stdout.split())
    assert columns == 3
    assert grown < 120_000


@pytest.mark.parametrize("limit", [None, "600MiB"])
def test_columns_of_an_empty_file_exist_with_any_type(tmp_path: Path, limit: str | None) -> None:
    """An optional score is a column of strings if there are no rows."""
    truths = pl.DataFrame({"id": [1, 2], "label": ["a", "b"]})
    names = {"id": pl.Int64, "label": pl.String, "confidence": pl.Float64}
    (tmp_path / "p.csv").write_text(",".join(names) + "\n")
    pl.DataFrame(schema=names).write_parquet(tmp_path / "p.parquet")
    given = {"task": "classification", "memory_limit": limit}
    ours, theirs = (ee.score(tmp_path / name, truths, **given) for name in ("p.csv", "p.parquet"))
    assert_frame_equal(ours.metrics, theirs.metrics)
    assert ours.metrics.filter(metric="mROCAUC").height == 2  # macro, weighted


def test_lists_as_texts_are_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text('query_id,retrieved,relevant\n1,"[""a"", ""b""]","[""a""]"\n')
    words = r"'retrieved' has dtype String.*JSON Lines or Parquet.*no single quotes.*pl.String\)"
    with refused("wrong_dtype", match=words):
        ee.score(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_skipped_with_a_note(tmp_path: Path, end: str) -> None:
    lines = ["id,y_true,y_pred", "1,a,a", "", "2,b,a", ",,", "3,b,b", ""]
    (tmp_path / "a.csv").write_bytes("".join(line + end for line in lines).encode())
    card = ee.score(tmp_path / "a.csv")
    assert card.value("Accuracy") == pytest.approx(2 / 3)
    assert [one.count for one in card.findings if one.code == "blank_lines"] == [3]
    quoted = f'y_true,y_pred,"two{end}lines"{end}a,a,{end}b,a,c{end}'
    (tmp_path / "b.csv").write_bytes(quoted.encode())
    assert ee.score(tmp_path / "b.csv").value("Accuracy") == 0.5
    (tmp_path / "b.csv").write_text("y_true,y_pred\na,a\n\nb,a\n\n")
    assert ee.score(tmp_path / "b.csv").value("Accuracy") == 0.5


def test_blank_lines_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{i},{'ab'[i % 2]},{'aab'[i % 3]}\n{chr(10) * (i % 2)}" for i in range(400))
    (tmp_path / "a.csv").write_text("id,y_true,y_pred\n" + rows)
    whole = ee.score(tmp_path / "a.csv")
    in_buckets(monkeypatch)
    bounded = ee.score(tmp_path / "a.csv", memory_limit="1GB", scratch=str(tmp_path))
    assert_frame_equal(whole.metrics, bounded.metrics)
    for card in (whole, bounded):
        assert [one.count for one in card.findings if one.code == "blank_lines"] == [200]


def test_blank_lines_do_not_make_other_columns_read(tmp_path: Path) -> None:
    frame = scan_csv([_file(tmp_path, "id,text,y\n1,a,1\n\n2,,0\n")])
    assert frame.collect().height == 2
    assert "PROJECT 2/3" in frame.select("y").explain()


def test_rows_of_empty_texts_are_not_blank_lines(tmp_path: Path) -> None:
    text = "reference,prediction\na b,a c\n,\n"
    assert ee.score(_file(tmp_path, text), metrics=["WER"], nulls="empty").per_datum.height == 2
    assert scan_csv([_file(tmp_path, "text\na\n\nb\n")]).collect().height == 3


def _file(folder: Path, text: str) -> str:
    (folder / "b.csv").write_text(text)
    return str(folder / "b.csv")


@pytest.mark.parametrize(
    "text",
    [
        "# by x\nid,y_true,y_pred\n1,a,a\n",
        "# by x, on y\n# again\nid,y_true,y_pred\n1,a,a\n",
        "# by x\nid\ty_true\ty_pred\n1\ta\ta\n",
        "id,y_true,y_pred\n1,a,a\n# the rest\n2,b,b\n",
    ],
)
def test_comments_are_refused(tmp_path: Path, text: str) -> None:
    with refused("comment_lines"):
        ee.score(_file(tmp_path, text))


def test_values_may_begin_with_a_hash(tmp_path: Path) -> None:
    texts = ("#id,y\n1,2\n", "#id,y\n1,a; b; c\n", "id,a,b\n#1,2,3\n#2,,\n")
    texts += ('#,a,b\n1,"c, d, e","f, g"\n', "a,b\n#12,\nc,d\n")
    for text, rows in zip(texts, (1, 1, 2, 1, 2), strict=True):
        assert scan_csv([_file(tmp_path, text)]).collect().height == rows


def test_labels_of_true_and_false(tmp_path: Path) -> None:
    """Two tables of Boolean labels are scored, as 1 and 0."""
    (tmp_path / "p.csv").write_text("id,label,score\n1,True,.9\n2,False,.8\n3,True,.7\n")
    (tmp_path / "g.csv").write_text("id,label\n1,True\n2,False\n3,False\n")
    card = ee.score(tmp_path / "p.csv", tmp_path / "g.csv", metrics=["Accuracy", "F1"])
    assert card.value("Accuracy") == pytest.approx(2 / 3)
    assert set(card.labels["label_value"]) == {0, 1}
    numbers = pl.DataFrame({"id": [1, 2, 3], "label": [1, 0, 0]})
    assert ee.score(tmp_path / "p.csv", numbers).value("Accuracy") == pytest.approx(2 / 3)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "id,one|two|three|four|five,actual,predicted\n1,x,a,a\n2,x,b,a\n",
        "id;a, long, very long, name;actual;predicted\n1;x, y;a;a\n2;x;b;a\n",
        'id,"text\n;;;;",actual,predicted\n1,"x\n,,",a,a\n2,x,b,a',
        f"id,a|b|c|d|e,actual,predicted\n1,{'x' * 40_000},a,a\n2,{'y' * 40_000},b,a\n",
        "id,actual,predicted," + "x" * 140_000 + ",a|b\n1,a,a," + "y" * 70_000 + ",\n2,a,b,,\n",
    ],
)
def test_the_separator_fits_header_and_rows(tmp_path: Path, text: str, packed: bool) -> None:
    path = tmp_path / ("table.csv.gz" if packed else "table.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert ee.score(path, metrics=["Accuracy"]).value("Accuracy") == 0.5
