"""Small files that expand to large data are refused first, with and without a memory limit."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import peak, refused

import evalengine as ee
from evalengine.geometry.masks import read_masks
from evalengine.ingest.annotations.format import mask_row
from evalengine.ingest.files import LONG, Room, measure_arrow, measure_text

TRUTHS = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": ["a", "b", "a"]})
TRACK = '<box frame="{}" xtl="1" ytl="1" xbr="5" ybr="5" outside="0"/>'


def video(frames: int, *keyframes: int) -> str:
    """Return a CVAT video with one object."""
    boxes = "".join(map(TRACK.format, keyframes))
    return (
        f"<annotations><meta><task><size>{frames}</size></task><original_size><width>9</width>"
        f'<height>9</height></original_size></meta><track id="0" label="a">{boxes}</track>'
        "</annotations>"
    )


def wide_groups(path: Path, rows: int) -> Path:
    """Write one row group of constant columns."""
    labels = pa.array(["a"] * rows).dictionary_encode()
    table = pa.table({"datum_id": np.arange(rows), "label_value": labels, "more": np.zeros(rows)})
    pq.write_table(table, path, row_group_size=rows, compression="zstd")
    return path


def test_the_longest_line_of_a_text(tmp_path: Path) -> None:
    for ending in ("", ".gz"):
        path = tmp_path / f"t.csv{ending}"
        for longest in (LONG // 3, LONG + 1000, 3 * LONG):
            lines = [b"a,b", b"x" * longest, b"1,2"] * 2 + [b"1,2"] * 500_000
            data = b"\n".join(lines)
            path.write_bytes(gzip.compress(data, 1) if ending else data)
            found = measure_text(str(path))
            assert found.cell == found.least == (longest if longest > LONG else 0)
            assert found.group == 10 * found.cell  # two such lines
            assert found.total == (len(data) if ending else 0)


def test_compressed_files_are_read_once(tmp_path: Path) -> None:
    """A wrong checksum is found only if the file is decompressed."""
    text = pl.DataFrame({"a": np.random.default_rng(0).random(10_000)}).write_csv().encode()
    path = tmp_path / "t.csv.gz"

    def damaged(data: bytes) -> int:
        packed = bytearray(gzip.compress(data))
        packed[-8] ^= 1
        path.write_bytes(packed)
        return len(packed)

    size = damaged(text)
    much = 2000 * size
    assert measure_text(str(path), Room(lambda: much, 0, given=False)).total == len(text)
    for room in (Room(lambda: much, 0), Room(lambda: 900 * size, 0, given=False), None):
        with pytest.raises(ee.ReadError, match="gzip"):
            measure_text(str(path), room)
    damaged(b"1" * LONG)
    with pytest.raises(ee.ReadError, match="gzip"):
        measure_text(str(path), Room(lambda: 10**15, 0, given=False))


def test_small_tables_do_not_ask_for_free_memory(tmp_path: Path) -> None:
    """A run in memory reads none of the files in which the system reports memory."""
    TRUTHS.write_parquet(tmp_path / "t.parquet")
    code = f"""
import sys
import evalengine as ee, polars as pl
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
table = pl.read_parquet({str(tmp_path / "t.parquet")!r})
ee.check(table, table)
ee.score(table, table)
print(len(opened), *[one for one in opened if "meminfo" in one or "cgroup" in one])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz"])
def test_invalid_texts(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    frame = pl.DataFrame({"datum_id": [1], "label_value": ["a" * 140_000_000]})
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending == "csv":
        frame.write_csv(path)
    else:
        path.write_bytes(gzip.compress(frame.write_csv().encode(), 1))
    status, megabytes, message = peak("check", path, path)
    assert status == 2
    assert "140 MB" in message
    assert megabytes < 300


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow", "arrows"])
def test_long_texts_under_a_limit(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    labels = [letter * 20_000_000 for letter in "abc"]
    frame = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": labels})
    writer = {"arrow": frame.write_ipc, "arrows": frame.write_ipc_stream}
    writer.get(ending, getattr(frame, f"write_{ending}", None))(path)
    status, megabytes, message = peak("score", path, path, "--memory-limit", "512MB")
    assert status == 2
    assert "--memory-limit " in message
    assert "MiB" in message
    assert megabytes < 300


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
@pytest.mark.parametrize("dtype", [pl.String(), pl.List(pl.String()), pl.Categorical()])
def test_the_longest_text_of_arrow_files(
    tmp_path: Path, dtype: pl.DataType, compression: str
) -> None:
    longest = "x" * (LONG + 1000)
    texts = pl.Series("text", ["a", None, longest, "b" * (LONG + 1)])
    column = texts.reshape((4, 1)).arr.to_list() if dtype == pl.List else texts.cast(dtype)
    frame = pl.DataFrame({"id": range(4), "short": ["a"] * 4, "text": column})
    for level in (pl.CompatLevel.oldest(), pl.CompatLevel.newest()):
        path = tmp_path / "t.arrow"
        frame.write_ipc(path, compression=compression, compat_level=level)
        found = measure_arrow(str(path), streamed=False)
        assert {name: (one.cell, one.least) for name, one in found.items()} == {
            "text": (len(longest), len(longest))
        }
        frame[:2].write_ipc_stream(path, compression=compression, compat_level=level)
        assert measure_arrow(str(path), streamed=True) == {}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "arrow"])
def test_the_limit_in_the_message_is_sufficient(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    labels = [letter * 50_000_000 for letter in "abc"]
    frame = pl.DataFrame({"datum_id": [1, 2, 3], "label_value": labels})
    (frame.write_csv if ending == "csv" else frame.write_ipc)(path)
    status, _, message = peak("score", path, path, "--memory-limit", "512MB")
    assert status == 2
    named = message.rpartition("MiB")[0].rpartition(" ")[2]
    status, megabytes, _ = peak("score", path, path, "--memory-limit", f"{named}MiB")
    assert status == 0
    assert megabytes <= int(named)


@pytest.mark.slow
def test_row_groups_beyond_a_limit(tmp_path: Path) -> None:
    """Only columns that are read count."""
    path = wide_groups(tmp_path / "p.parquet", 12_000_000)
    assert path.stat().st_size < 20_000_000
    status, megabytes, message = peak("score", path, path, "--memory-limit", "512MB")
    assert status == 2
    assert megabytes < 300
    named = int(message.rpartition("MiB")[0].rpartition(" ")[2])
    assert 600 < named < 1200
    few = wide_groups(tmp_path / "q.parquet", 1_000_000)
    assert ee.check(few, few, options=ee.Options(memory_limit="512MB")).rows["predictions"] == 10**6


@pytest.mark.slow
def test_videos_of_few_lines(tmp_path: Path) -> None:
    path = tmp_path / "v.xml"
    for frames, keyframes in ((1, (0, 2 * 10**9)), (4_000_000, (5, 3_000_000)), (10**9, (0,))):
        path.write_text(video(frames, *keyframes))
        with refused("file_malformed", ee.ReadError, match="are the most"):
            ee.check(path, path)
    status, megabytes, message = peak("check", path, path)
    assert status == 2
    assert "are the most" in message
    assert megabytes < 300
    path.write_text(video(300_000, 0, 200_000))
    status, megabytes, message = peak("check", path, path, "--memory-limit", "512MB")
    assert status == 2
    assert "least --memory-limit" in message
    assert megabytes < 300
    path.write_text(video(3000, 0, 2999))
    assert ee.convert(path, out=tmp_path / "out")["groundtruths.parquet"] == 3000


ALIASES = {"merge": "k{0}: &k{0} {{<<: [{1}]}}\n", "list": "k{0}: &k{0} [{1}]\n"}


@pytest.mark.parametrize("kind", ALIASES)
def test_aliases_of_a_description(tmp_path: Path, kind: str) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    text = "k0: &k0 {a: 1}\n"
    for i in range(1, 10):
        text += ALIASES[kind].format(i, ", ".join([f"*k{i - 1}"] * 7))
    yaml = tmp_path / "data.yaml"
    for names in ("names: [x]\n", "names: *k9\n", "names: &n [*n]\n", f"names: {'[' * 4000}\n"):
        yaml.write_text(text + names)
        with pytest.raises(ee.ReadError, match=r"data\.yaml"):
            ee.check(tmp_path, tmp_path)
    yaml.write_text("a: &a [x, y]\nnames: *a\n")
    assert (
        ee.convert(tmp_path / "labels", out=tmp_path / "o", datums=sizes())["labels.parquet"] == 2
    )


def sizes() -> pl.DataFrame:
    return pl.DataFrame({"datum_id": ["a"], "width": [100], "height": [100]})


@pytest.mark.slow
def test_compressed_annotations(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"0 0.5 0.5 0.2 0.2\n" * 16_000_000, 6))
    status, megabytes, message = peak("check", tmp_path, tmp_path)
    assert status == 2
    assert "expands to more" in message
    assert megabytes < 700


def test_masks_are_read_without_decoding_the_image() -> None:
    """Runs cover the complete image, which is never decoded."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        (height, width), part = rng.integers(1, 9, 2), rng.random(rng.integers(1, 7, 2)) < 0.5
        left, top = rng.integers(-4, 9, 2)
        whole = np.zeros((height + 40, width + 40), bool)
        whole[20 + top : 20 + top + part.shape[0], 20 + left : 20 + left + part.shape[1]] = part
        whole = whole[20 : 20 + height, 20 : 20 + width]
        row = mask_row(part, int(left), int(top), int(width), int(height))
        mask = read_masks(pl.Series([row["mask"]]), side="predictions")
        assert mask.area.tolist() == [whole.sum()]
        changes = np.flatnonzero(np.diff(whole.T.reshape(-1), prepend=False))
        counts = np.diff(np.concatenate([[0], changes, [whole.size]])).tolist()
        assert row["mask"]["counts"] == (counts[:-1] if counts[-1] == 0 else counts)
    huge = mask_row(np.ones((2, 2), bool), 10, 10, 10**6, 10**6)
    assert sum(huge["mask"]["counts"]) == 10**12
