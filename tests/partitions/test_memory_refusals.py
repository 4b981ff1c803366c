"""Memory limits that a run would exceed, refused in advance with a sufficient one."""

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


def test_one_datum_with_more_rows_than_fit_is_refused() -> None:
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
def test_run_files_that_do_not_fit_are_refused(tmp_path: Path, packed: bool) -> None:
    lines = "".join(f"q{i} Q0 d{i} 1 0.5 tag\n" for i in range(600_000)).encode()
    run = tmp_path / ("a.run.gz" if packed else "a.run")
    run.write_bytes(gzip.compress(lines, 1) if packed else lines)
    with refused("memory_limit_too_small", least="512MiB") as raised:
        ee.score(run, {"q1": {"d1": 1}}, memory_limit="448MiB")
    assert limit_named(raised.value) > bytes_of_limit("448MiB") + 4 * len(lines) - bytes_of_limit(
        "64MiB"
    )


def test_the_suggested_limit_suffices_for_both_files(tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("".join(f"q{i % 999:06} Q0 d{i} 1 0.5 tag\n" for i in range(400_000)))
    qrels.write_text("".join(f"q{i % 999:06} 0 d{i} 1\n" for i in range(600_000)))
    with refused("memory_limit_too_small") as raised:
        ee.score(run, qrels, memory_limit="400MiB")
    assert limit_named(raised.value) > 5 * qrels.stat().st_size + bytes_of_limit("400MiB")
    with refused("memory_limit_too_small", least=raised.value.facts["least"]):
        ee.score([run], str(tmp_path / "*.qrels"), memory_limit="400MiB")
    assert ee.score(run, qrels, memory_limit=raised.value.facts["least"]).value("nDCG@10") == 1.0


def test_rows_of_the_other_file_are_included(tmp_path: Path) -> None:
    """The estimate for the rows of the file read first is at least their size in memory."""
    run = tmp_path / "a.run"
    run.write_text("".join(f"q{i} Q0 doc{i} 1 0.5 tag\n" for i in range(20_000)))
    rows = open_source(run).frame.collect().estimated_size()
    ratio = rows / whole_size([str(run)], "trec")
    size = 10 << 30
    with refused("memory_limit_too_small") as raised:
        refuse_whole(Room(lambda: 0, base=0), {"one": size, "other": size})
    assert ratio * size < limit_named(raised.value) - size < size  # type: ignore[arg-type]


def test_coco_results_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    row = json.dumps({"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5})
    (tmp_path / "dets.json").write_text(f"[{','.join([row] * 200_000)}]")
    with refused("memory_limit_too_small", least="512MiB"):
        ee.score(tmp_path / "dets.json", pl.DataFrame({"image_id": [1]}), memory_limit="448MiB")


@pytest.mark.parametrize("rows", [20_000, 300_000])
def test_frames_of_many_labels_that_do_not_fit_are_refused(rows: int) -> None:
    """20,000 labels, scored in memory and in buckets."""
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


def test_explain_reports_memory_as_a_run_does(tmp_path: Path) -> None:
    n = 1_200_000
    path = tmp_path / "table.parquet"
    hit = pl.int_range(n, eager=True) % 3 == 0
    pl.DataFrame({"actual": hit, "score": pl.int_range(n, eager=True) / n}).write_parquet(path)
    with refused("memory_limit_too_small", least="448MiB") as raised:
        ee.explain(path, memory_limit="1MB")
    limit = limit_named(raised.value)
    assert re.search(r"memory +\d+ buckets", ee.explain(path, memory_limit=limit))
    explained = ee.explain(path, memory_limit="8GB")
    assert "memory    all rows" in explained
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
def test_the_suggested_limit_is_sufficient(
    tmp_path: Path, make: Callable[[Path], list[str]]
) -> None:
    """Neither the refused run nor the run with the suggested limit exceeds its limit."""
    sides = [tmp_path / name for name in make(tmp_path)]
    status, megabytes, message = peak("score", *sides, "--memory-limit", "448MiB")
    assert status == 2
    assert megabytes < 448
    (suggested,) = set(re.findall(r"--memory-limit (\d+)MiB", message)) - {"448"}
    status, megabytes, message = peak("score", *sides, "--memory-limit", f"{suggested}MiB")
    assert status == 0, message
    assert megabytes <= int(suggested)


def test_short_strings_count_with_their_views(tmp_path: Path) -> None:
    """Polars keeps 16 bytes of a string of one character; longer than 12, its characters too."""
    n = 700_000
    numbers = pl.int_range(n, eager=True) % 10
    texts = {"actual": numbers.cast(pl.String), "predicted": (9 - numbers).cast(pl.String)}
    longer = {name: values.str.pad_start(40, "x") for name, values in texts.items()}
    for columns, bytes_of_row in ((texts, 40), (longer, 120)):
        pl.DataFrame(columns).write_parquet(path := tmp_path / f"{bytes_of_row}.parquet")
        fitting = (400 << 20) + int(3.5 * bytes_of_row * n)
        above, below = (ee.explain(path, memory_limit=fitting + some) for some in (1000, -1000))
        assert "all rows at once" in above
        assert re.search(r"memory +\d+ buckets", below)
