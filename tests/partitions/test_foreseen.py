"""Limits that would be passed are refused before, with one that will do."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import peak, refused

import evalengine as ee
from evalengine.ingest.files import Room, refuse_whole, whole_size
from evalengine.ingest.sources.tables import open_source
from evalengine.outofcore.memory import bytes_of_limit


def limit_named(error: ee.OptionError) -> int:
    return bytes_of_limit(error.facts["least"])


def test_rows_of_one_datum_that_take_more_than_a_process_may() -> None:
    rng = np.random.default_rng(0)
    n = 400_000
    x, y = rng.random((2, n)) * 1000
    boxes = pl.DataFrame(
        {"datum_id": np.where(np.arange(n) % 10 > 0, 0, np.arange(n)), "label_value": "a",
         "xmin": x, "ymin": y, "xmax": x + 5, "ymax": y + 5}
    )  # fmt: skip
    scored = boxes.with_columns(score=rng.random(n))
    truths = boxes.head(100)
    with refused("memory_limit_too_small", least="512MiB") as raised:
        ee.score(scored, truths, memory_limit="448MiB")
    assert bytes_of_limit("448MiB") < limit_named(raised.value) < bytes_of_limit("1GiB")
    even = [one.with_columns(datum_id=pl.int_range(pl.len())) for one in (scored, truths)]
    assert ee.score(*even, memory_limit="480MiB").metrics.height


@pytest.mark.parametrize("packed", [False, True])
def test_runs_and_json_that_are_read_as_a_whole(tmp_path: Path, packed: bool) -> None:
    lines = "".join(f"q{i} Q0 d{i} 1 0.5 tag\n" for i in range(600_000)).encode()
    run = tmp_path / ("a.run.gz" if packed else "a.run")
    run.write_bytes(gzip.compress(lines, 1) if packed else lines)
    with refused("memory_limit_too_small", least="512MiB") as raised:
        ee.score(run, {"q1": {"d1": 1}}, memory_limit="448MiB")
    assert limit_named(raised.value) > bytes_of_limit("448MiB") + 4 * len(lines) - bytes_of_limit(
        "64MiB"
    )


def test_a_limit_that_is_named_suffices_for_both_files(tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("".join(f"q{i % 999:06} Q0 d{i} 1 0.5 tag\n" for i in range(400_000)))
    qrels.write_text("".join(f"q{i % 999:06} 0 d{i} 1\n" for i in range(600_000)))
    with refused("memory_limit_too_small") as raised:
        ee.score(run, qrels, memory_limit="400MiB")
    assert limit_named(raised.value) > 5 * qrels.stat().st_size + bytes_of_limit("400MiB")
    with refused("memory_limit_too_small", least=raised.value.facts["least"]):
        ee.score([run], str(tmp_path / "*.qrels"), memory_limit="400MiB")
    assert ee.score(run, qrels, memory_limit=raised.value.facts["least"]).value("nDCG@10") == 1.0


def test_rows_of_another_file_stay_in_memory(tmp_path: Path) -> None:
    """What is foreseen for them is at least what they take."""
    run = tmp_path / "a.run"
    run.write_text("".join(f"q{i} Q0 doc{i} 1 0.5 tag\n" for i in range(20_000)))
    rows = open_source(run).frame.collect().estimated_size()
    kept = rows / whole_size([str(run)], "trec")
    size = 10 << 30
    with refused("memory_limit_too_small") as raised:
        refuse_whole(Room(lambda: 0, base=0), {"one": size, "other": size})
    assert kept * size < limit_named(raised.value) - size < size  # type: ignore[arg-type]


def test_coco_results_that_are_read_as_a_whole(tmp_path: Path) -> None:
    row = json.dumps({"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5})
    (tmp_path / "dets.json").write_text(f"[{','.join([row] * 200_000)}]")
    with refused("memory_limit_too_small", least="512MiB"):
        ee.score(tmp_path / "dets.json", pl.DataFrame({"image_id": [1]}), memory_limit="448MiB")


@pytest.mark.parametrize("rows", [20_000, 300_000])
def test_labels_whose_frames_take_more_than_there_is(rows: int) -> None:
    """As many labels as rows, in memory and in buckets."""
    x = np.arange(rows) % 1000.0
    boxes = pl.DataFrame(
        {"datum_id": np.arange(rows) // 5, "label_value": np.arange(rows) % 20_000, "xmin": x,
         "ymin": x, "xmax": x + 5, "ymax": x + 5}
    )  # fmt: skip
    given = boxes.with_columns(score=pl.lit(0.5)), boxes
    with pytest.raises(ee.OptionError, match="20,000 labels need frames") as raised:
        ee.score(*given, memory_limit="480MiB")
    enough = ee.score(*given, memory_limit=limit_named(raised.value), metrics=["mAP"])
    assert enough.value("mAP", iou=0.5) is not None


def test_explain_tells_of_memory_what_a_run_would(tmp_path: Path) -> None:
    n = 600_000
    path = tmp_path / "table.parquet"
    hit = pl.int_range(n, eager=True) % 3 == 0
    pl.DataFrame({"actual": hit, "score": pl.int_range(n, eager=True) / n}).write_parquet(path)
    with refused("memory_limit_too_small", least="448MiB") as raised:
        ee.explain(path, memory_limit="1MB")
    limit = limit_named(raised.value)
    assert re.search(r"memory +\d+ buckets", ee.explain(path, memory_limit=limit))
    held = ee.explain(path, memory_limit="8GB")
    assert "memory    all rows" in held
    assert "\nmemory " not in ee.explain(path)


def _one_datum(folder: Path) -> list[str]:
    n = 600_000
    x, y = np.random.default_rng(0).random((2, n)) * 1000
    corners = {"xmin": x, "ymin": y, "xmax": x + 5, "ymax": y + 5}
    boxes = pl.DataFrame({"datum_id": np.zeros(n, int), "label_value": "a", **corners})
    boxes.with_columns(score=pl.lit(0.5)).write_parquet(folder / "p.parquet")
    boxes.head(100).write_parquet(folder / "t.parquet")
    return ["p.parquet", "t.parquet"]


def _many_labels(folder: Path) -> list[str]:
    x = np.arange(60_000) % 1000.0
    boxes = pl.DataFrame(
        {"datum_id": np.arange(60_000) // 5, "label_value": np.arange(60_000) % 20_000, "xmin": x,
         "ymin": x, "xmax": x + 5, "ymax": x + 5}
    )  # fmt: skip
    boxes.with_columns(score=pl.lit(0.5)).write_parquet(folder / "p.parquet")
    boxes.write_parquet(folder / "t.parquet")
    return ["p.parquet", "t.parquet"]


def _json(folder: Path) -> list[str]:
    row = json.dumps({"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5})
    (folder / "dets.json").write_text(f"[{','.join([row] * 1_000_000)}]")
    pl.DataFrame(
        {"image_id": [1], "category_id": [1], "xmin": [0], "ymin": [0], "xmax": [9], "ymax": [9]}
    ).write_parquet(folder / "t.parquet")
    return ["dets.json", "t.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [_one_datum, _many_labels, _json])
def test_a_limit_that_a_refusal_names_is_enough(
    tmp_path: Path, make: Callable[[Path], list[str]]
) -> None:
    """The refused run stays far below its limit, and the run within the named one below that."""
    sides = [tmp_path / name for name in make(tmp_path)]
    status, megabytes, said = peak("score", *sides, "--memory-limit", "448MiB")
    assert status == 2
    assert megabytes < 448
    (named,) = set(re.findall(r"--memory-limit (\d+)MiB", said)) - {"448"}
    status, megabytes, said = peak("score", *sides, "--memory-limit", f"{named}MiB")
    assert status == 0, said
    assert megabytes <= int(named)
