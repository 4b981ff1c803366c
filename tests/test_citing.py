"""Citation lines: digests of tables, the line of a scorecard, and ``evalengine verify``."""

from __future__ import annotations

import pickle
import random
import re
import sys
from pathlib import Path

import polars as pl
import pytest
from sizes import tune

import evalengine as ee
from evalengine.cli import main
from evalengine.ingest.digests import UNKNOWN, digest_of, of_buckets
from evalengine.report.citing import differences, read_line
from evalengine.schemas.errors import ResultError

MASK = (1 << 64) - 1


def mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def slow_text(data: bytes) -> int:
    state = len(data)
    while len(data) >= 8:
        word, data = int.from_bytes(data[:8], "little"), data[8:]
        state = (mixed(state ^ word) * 0x100000001B3 + 0x9E3779B97F4A7C15) & MASK
    return mixed(state ^ int.from_bytes(data, "little"))


def slow_word(text: str) -> int:
    """Hash a text like the integer that it denotes in decimal, if there is one."""
    if re.fullmatch(r"0|-?[1-9]\d*", text) and abs(int(text)) < 2**63:
        return int(text) & MASK
    return slow_text(text.encode())


def slow_digest(rows: list[dict[str, int | str | None]]) -> str:
    """Compute the digest of rows of integers and texts by its definition."""
    import zlib

    total = 0
    for row in rows:
        line = 0
        for name, value in row.items():
            if value is not None:
                word = value if isinstance(value, int) else slow_word(value)
                salted = (word + (zlib.crc32(name.encode()) << 16)) & MASK
                line += mixed((salted * 0x9E3779B97F4A7C15) & MASK)
        line &= MASK
        low, high = mixed((line + 0x9E3779B97F4A7C15) & MASK), mixed(line ^ 0xD1B54A32D192ED03)
        total += low + (high << 64)
    return f"{total % (1 << 128):032x}"


def test_the_digest_is_its_definition() -> None:
    draw = random.Random(0)
    texts = ["", "a", "seven..", "eight...", "nine.....", "längere Texte mit Umlauten", None]
    texts += ["0", "7", "-12", "007", "-0", "+1", "1.0", "-", " 3", "12a", "1" * 19, "9" * 19]
    texts += [str(2**63 - 1), str(2**63), str(1 - 2**63), "1" * 20, "/", ":", "1/2"]
    rows: list[dict[str, int | str | None]] = [
        {"n": draw.choice([None, 0, -1, 2**62, i]), "text": draw.choice(texts)} for i in range(500)
    ]
    schema = {"n": pl.Int64, "text": pl.String}
    assert digest_of(pl.DataFrame(rows, schema=schema)) == slow_digest(rows)


def test_digests_are_pinned() -> None:
    """Cited lines contain digests, so they may never change."""
    table = pl.DataFrame(
        {
            "datum_id": [1, 2, 3],
            "label_value": ["cat", None, "a longer label"],
            "score": [0.25, 1.0, None],
            "polygon": [[[0.0, 0.5, 2.0]], [], None],
            "mask": [{"counts": "ab", "size": [2, 3]}, None, {"counts": "c", "size": [1, 1]}],
            "iscrowd": [True, False, None],
        }
    )
    assert digest_of(table) == "9cb082b76342624d2abc5434c8fbd018"


def test_order_width_and_absent_columns_do_not_matter() -> None:
    table = pl.DataFrame({"a": [3, 1, 2], "b": [0.5, 2.0, None], "c": ["x", "y", "z"]})
    other = table.select(
        pl.lit(None, pl.Int64).alias("d"), "c", "b", pl.col("a").cast(pl.UInt8), dataset=pl.lit("s")
    )
    assert digest_of(other.reverse()) == digest_of(table)
    assert digest_of(table.with_columns(pl.col("a").cast(pl.Float64))) == digest_of(table)
    assert digest_of(table.with_columns(pl.col("c").cast(pl.Categorical))) == digest_of(table)
    assert digest_of(table.with_columns(pl.col("a").cast(pl.String))) == digest_of(table)
    padded = table.with_columns(pl.col("a").cast(pl.String).str.zfill(3))
    assert digest_of(padded) != digest_of(table)
    for changed in (
        table.with_columns(b=pl.col("b") + 1e-16 * pl.col("a")),
        table.with_columns(c=pl.col("c").reverse()),
        table.rename({"a": "c", "c": "a"}),
        pl.concat([table, table.head(1)]),
        table.with_columns(b=pl.col("b").fill_null(0.0)),
    ):
        assert digest_of(changed) != digest_of(table)


def test_buckets_add_up() -> None:
    table = pl.DataFrame({"datum_id": range(1000), "score": [i / 7 for i in range(1000)]})
    parts = [table.filter(pl.col("datum_id") % 7 == i) for i in range(7)]
    result = of_buckets([{"predictions": digest_of(one)} for one in parts])
    assert result == {"predictions": digest_of(table)}
    assert of_buckets([{"table": "01"}, {"table": UNKNOWN}]) == {"table": UNKNOWN}
    assert of_buckets([{"labels": "01"}, {"labels": "01"}]) == {"labels": "01"}


@pytest.fixture
def boxes() -> tuple[pl.DataFrame, pl.DataFrame]:
    draw = random.Random(1)
    rows = [
        {
            "datum_id": draw.randrange(60),
            "label_value": draw.choice(["cat", "dog"]),
            "score": draw.random(),
            "xmin": (x := float(draw.randrange(50))),
            "ymin": 1.5,
            "xmax": x + 20,
            "ymax": 30.25,
        }
        for _ in range(400)
    ]
    predictions = pl.DataFrame(rows)
    truths = predictions.head(150).drop("score").with_columns(pl.col("xmin") + 2)
    return predictions, truths


def written(table: pl.DataFrame, path: Path) -> str:
    form = {".csv": "write_csv", ".jsonl": "write_ndjson", ".arrow": "write_ipc"}
    getattr(table, form.get(path.suffix, "write_parquet"))(path)
    return str(path)


def test_formats_names_and_memory_give_one_line(tmp_path: Path, boxes) -> None:
    predictions, truths = boxes
    line = ee.score(predictions, truths, dialect="coco").cite
    assert read_line(line).digests.keys() == {"pred", "gt"}
    shuffled = predictions.sample(fraction=1, shuffle=True, seed=0)
    foreign = shuffled.rename({"label_value": "category", "score": "confidence"})
    narrow = foreign.with_columns(pl.col("datum_id").cast(pl.Int16))
    csv = written(narrow, tmp_path / "p.csv")
    jsonl = written(truths, tmp_path / "g.jsonl")
    parquet = written(shuffled, tmp_path / "p.parquet")
    arrow = written(truths, tmp_path / "g.arrow")
    assert ee.score(csv, jsonl, dialect="coco").cite == line
    assert ee.score(narrow.to_arrow(), truths.lazy(), dialect="coco").cite == line
    bounded = ee.score(parquet, arrow, dialect="coco", memory_limit="600MB")
    assert bounded.cite == line
    bounded.save(tmp_path / "run")
    assert ee.load(tmp_path / "run").cite == line
    assert pickle.loads(pickle.dumps(bounded)).cite == line


def test_coco_files_and_their_tables_give_one_line(tmp_path: Path, boxes) -> None:
    files = [written(one, tmp_path / f"{i}.parquet") for i, one in enumerate(boxes)]
    assert (
        main(["convert", "auto", files[1], files[0], "--to", "coco", "--out", str(tmp_path)]) == 0
    )
    json = [str(tmp_path / f"{name}.json") for name in ("predictions", "groundtruths")]
    line = ee.score(*json, dialect="coco").cite
    out = tmp_path / "tables"
    assert main(["convert", "coco", json[1], json[0], "--out", str(out)]) == 0
    tables = [str(out / f"{name}.parquet") for name in ("predictions", "groundtruths")]
    assert ee.score(*tables, dialect="coco").cite == line


def test_options_other_than_the_dialects_defaults_are_in_the_line(boxes) -> None:
    def options(**given) -> str:
        return read_line(ee.score(*boxes, **given).cite).options

    assert options() == options(pr_curve_iou_threshold=0.5) == ""
    assert options(dialect="coco", max_detections=[1, 10, 100]) == ""
    assert options(max_detections=[100]) == "--max-detections 100"
    assert options(intervals=0.9, seed=2) == "--intervals 0.9 --seed 2"
    assert options(intervals=95) == options(intervals=0.95) == "--intervals 0.95"
    assert options(intervals=99.9) == "--intervals 0.999"
    assert options(threads=1, memory_limit="2GB") == ""
    where = "label_value = 'cat' and \"score\" > 0.1"
    asked = {"predictions": where}
    assert "label_value" in options(where=asked, label_map={"cat": "pet"})


def test_options_that_are_tables_appear_as_digests(tmp_path: Path, boxes, capsys) -> None:
    table = pl.DataFrame({"label_value": ["cat"], "new_label_value": ["pet"]})
    table.write_csv(tmp_path / "map.csv")
    of_table = ee.score(*boxes, label_map=table).cite
    assert "map" not in read_line(of_table).options
    assert read_line(of_table).digests["label_map"] == digest_of(table)[:12]
    path = str(tmp_path / "map.csv")
    line = ee.score(*boxes, label_map=path).cite
    files = [written(one, tmp_path / f"{i}.parquet") for i, one in enumerate(boxes)]
    assert main(["verify", line, *files, "--label-map", path]) == 0
    capsys.readouterr()
    assert main(["verify", line, *files]) == 1
    assert "differs: label_map: line " in capsys.readouterr().out


def test_digests_of_large_files_are_those_of_small_ones(boxes, tmp_path) -> None:
    files = [written(one, tmp_path / f"{i}.parquet") for i, one in enumerate(boxes)]
    small = ee.score(*files).cite
    tune(undigested_bytes=0)
    assert ee.score(*files).cite == ee.score(*boxes).cite == small


def test_rows_of_large_files_are_kept_for_one_scorecard(boxes, tmp_path, monkeypatch) -> None:
    files = [written(one, tmp_path / f"{i}.parquet") for i, one in enumerate(boxes)]
    tune(undigested_bytes=0)
    digested: list[int] = []

    def counted(table: pl.DataFrame) -> str:
        digested.append(table.height)
        return digest_of(table)

    monkeypatch.setattr("evalengine.ingest.digests.digest_of", counted)
    first = ee.score(*files)
    assert not digested
    second = ee.score(*files)
    after_first = len(digested)
    assert after_first >= 2
    line = first.cite
    assert len(digested) == after_first
    del first
    third = ee.score(*files)
    assert len(digested) == 2 * after_first
    assert second.cite == third.cite == line
    monkeypatch.setattr("evalengine.run.free_memory", lambda: 0)
    before = len(digested)
    assert ee.score(*files).cite == line
    assert len(digested) >= before + after_first


def test_tables_of_paths_have_no_digest() -> None:
    assert digest_of(pl.DataFrame({"raster": ["a.png"]})) == UNKNOWN
    line = "evalengine 0.1.0 | panoptic coco | n 3 | pred ? gt ? | PQ 0.5000"
    output, _, loose = differences(read_line(line), read_line(line))
    assert output == []
    assert [one.split(":")[0] for one in loose] == ["pred", "gt"]
    known = read_line(line.replace("?", "9c0e9c0e"))
    output, _, loose = differences(read_line(line), known)
    assert output == []
    assert len(loose) == 2


@pytest.mark.parametrize(
    "line",
    [
        "",
        "evalengine 0.1.0 | detection coco | AP 0.5",
        "evalengine 0.1.0 | detection coco | n 5 | pred 1f3a gt 9c0e | AP 0.5",
        "evalengine 0.1.0 | detection coco | n 5 | pred 1f3a1f3a gt 9c0e9c0e | AP",
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(ResultError) as refused:
        read_line(line)
    assert refused.value.code == "not_a_citation"


def test_numbers_are_equal_to_the_digits_of_the_line() -> None:
    head = "evalengine 0.1.0 | detection coco | n 5 | pred 1f3a1f3a gt 9c0e9c0e | AP "
    result = read_line(f"{head}0.4926 [0.4811, 0.5049]")
    assert differences(read_line(f"{head}0.493 [0.481, 0.505]"), result) == ([], [], [])
    output, _, _ = differences(read_line(f"{head}0.492 [0.481, 0.505]"), result)
    assert output == ["AP (value): line 0.492, here 0.4926"]
    output, _, _ = differences(read_line(f"{head}0.493"), result)
    assert [one.split(":")[0] for one in output] == ["AP (lower)", "AP (upper)"]
    small, counted = read_line(f"{head}0.0012"), read_line(f"{head}7")
    assert differences(small, small) == differences(counted, counted) == ([], [], [])


@pytest.mark.parametrize(("few", "digits"), [("0", "1 digit"), ("0.5", "1 digit"), ("0.49", "2")])
def test_numbers_of_few_digits_are_noted(few: str, digits: str) -> None:
    head = "evalengine 0.1.0 | detection coco | n 5 | pred 1f3a1f3a gt 9c0e9c0e | AP "
    output, _, loose = differences(read_line(f"{head}{few}"), read_line(f"{head}0.4926"))
    assert output == []
    assert len(loose) == 1
    assert digits in loose[0]


def test_counts_of_zero_are_shown() -> None:
    line = "evalengine 0.1.0 | detection coco | n 300 | pred 1f3a1f3a gt 9c0e9c0e"
    output, _, _ = differences(read_line(line), read_line(line.replace("300", "0")))
    assert output == ["n: line 300, here 0"]


@pytest.mark.parametrize("around", ["{}.", "({},", "`{}`", '"{}";', " {}\n"])
def test_lines_in_a_text(around: str) -> None:
    line = "evalengine 0.1.0 | detection coco | n 5 | pred 1f3a1f3a gt ? | AP 0.7464"
    assert read_line(around.replace("(", "").format(line)) == read_line(line)


@pytest.mark.parametrize(
    ("part", "broken", "at"),
    [
        ("evalengine 0.1.0", "evalengin 0.1.0", "evalengin 0.1.0"),
        ("detection coco", "detection", "detection"),
        ("n 5", "n five", "n five"),
        ("gt 9c0e9c0e", "gt 9c0e", "pred 1f3a1f3a gt 9c0e"),
        ("AP 0.5", "AP 0.5.5", "AP 0.5.5"),
        ("AP 0.5", "AP [0.5, 0.6]", "AP [0.5, 0.6]"),
    ],
)
@pytest.mark.parametrize("options", ["", " | --seed 3"])
def test_the_unreadable_part_is_named(part: str, broken: str, at: str, options: str) -> None:
    line = f"evalengine 0.1.0 | detection coco{options} | n 5 | pred 1f3a1f3a gt 9c0e9c0e | AP 0.5"
    read_line(line)
    with pytest.raises(ResultError) as refused:
        read_line(line.replace(part, broken, 1))
    assert refused.value.facts["value"].partition(" | ")[0] == at


def test_verify(tmp_path: Path, boxes, capsys) -> None:
    predictions, truths = boxes
    files = [written(predictions, tmp_path / "p.csv"), written(truths, tmp_path / "g.parquet")]
    where = "score > 0.2 and label_value <> 'bird | n 3'"
    line = ee.score(*boxes, dialect="coco", where=where, intervals=0.9, draws=50, seed=3).cite
    assert main(["verify", line, *files]) == 0
    assert main(["verify", line.replace("0.1.0", "0.0.9"), *files]) == 0
    capsys.readouterr()
    changed = predictions.with_columns(score=pl.col("score").replace(predictions["score"][7], 0.9))
    assert main(["verify", line, written(changed, tmp_path / "c.parquet"), files[1]]) == 1
    assert "differs: pred: line " in capsys.readouterr().out
    assert main(["verify", line, *files, "--seed", "4"]) == 1
    output = capsys.readouterr().out
    assert "differs: AP (" in output
    assert "also: options: " in output
    assert "pred" not in output.split("also")[0]
    assert main(["verify", "AP 0.5", *files]) == 2


OWN = """
from pathlib import Path
import polars as pl
import evalengine as ee
Path("ran").touch()
@ee.metric(range=(0, 1))
def felid(rows):
    return rows.select("datum_id", value=pl.col("predicted") == "cat")
"""


def test_verifying_a_line_runs_no_code_and_reads_no_file(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("strangers_metrics.py").write_text(OWN, "utf-8")
    table = pl.DataFrame({"datum_id": [1, 2], "actual": ["cat", "dog"], "predicted": "cat"})
    path = written(table, tmp_path / "t.csv")
    start = "evalengine 0.1.0 | classification standard | "
    end = f" | n 2 | table {digest_of(table)[:12]} | felid mean 1.0000"
    line = f"{start}--metrics strangers_metrics:felid{end}"
    assert main(["verify", line, path]) == 2
    assert "--own-metrics" in capsys.readouterr().err
    assert not Path("ran").exists()
    trusting = f"{start}--metrics strangers_metrics:felid --own-metrics{end}"
    assert main(["verify", trusting, path]) == 2
    assert not Path("ran").exists()
    for option in ("--label-map", "--scratch", "--datums", "--embedder"):
        assert main(["verify", f"{start}{option} there.csv{end}", path]) == 2
        assert f" has {option}" in capsys.readouterr().err
    assert main(["verify", line, path, "--own-metrics"]) == 0
    assert Path("ran").exists()


def test_the_line_is_in_markdown_json_and_the_page(tmp_path: Path, boxes, capsys) -> None:
    files = [written(one, tmp_path / f"{i}.parquet") for i, one in enumerate(boxes)]
    line = ee.score(*boxes).cite
    assert main(["score", *files, "--format", "json", "--report", str(tmp_path / "r.html")]) == 0
    assert f'"cite": "{line}"' in capsys.readouterr().out
    assert line in (tmp_path / "r.html").read_text("utf-8")
    assert main(["score", *files, "--format", "markdown"]) == 0
    assert capsys.readouterr().out.endswith(f"- cite: `{line}`\n")
    assert main(["score", *files]) == 0
    assert "cite" not in capsys.readouterr().out


def test_comparisons_cite_runs_that_were_scored_before(tmp_path: Path, boxes, capsys) -> None:
    predictions, truths = boxes
    cards = [ee.score(one, truths) for one in (predictions, predictions.head(300))]
    folders = [str(card.save(tmp_path / name)) for card, name in zip(cards, "ab", strict=True)]
    lines = {name: card.cite for name, card in zip("ab", cards, strict=True)}
    result = ee.compare(*folders, draws=20)
    assert result.cites == ee.compare(*cards, names=["a", "b"], draws=20).cites == lines
    assert ee.compare(*boxes[:1] * 2, ground_truths=truths, draws=20).cites == {}
    result.save(tmp_path / "c")
    assert ee.load(tmp_path / "c").cites == lines
    for form, start, mark in (("latex", "% ", ""), ("markdown", "- ", "`")):
        assert main(["compare", *folders, "--draws", "20", "--format", form]) == 0
        out = capsys.readouterr().out
        for name, line in lines.items():
            assert f"\n{start}cite {name}: {mark}{line}{mark}\n" in out
