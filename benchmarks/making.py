"""Sets of a benchmark with sections, written once per size and seed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

DATA = Path(__file__).resolve().parent / ".data"

Frames = dict[str, pl.DataFrame | Iterator[pl.DataFrame] | str]
Maker = Callable[[np.random.Generator, float], Frames]


def folder_of(benchmark: str, section: str, scale: float) -> str:
    """Return a folder below the data folder: `classification/long`, with suffix `-0.02`."""
    return f"{benchmark}/{section}" + ("" if scale == 1 else f"-{scale:g}")


def make(maker: Maker, folder: Path, scale: float, seed: int) -> None:
    """Write one section's set, unless it exists.

    Frames become Parquet; for names with `.txt`, lines of blank-separated fields, or complete text.
    A sequence of frames is written one row group at a time, before the next frame is made.
    """
    done = folder / f".seed-{seed}"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(".seed-*"):
        stale.unlink()
    for name, frame in maker(np.random.default_rng(seed), scale).items():
        if isinstance(frame, str):
            (folder / name).write_text(frame, encoding="utf-8")
        elif isinstance(frame, Iterator):
            write_parts(frame, folder / f"{name}.parquet")
        elif name.endswith(".txt"):
            frame.write_csv(folder / name, include_header=False, separator=" ")
        else:
            frame.write_parquet(folder / f"{name}.parquet")
    done.touch()


def write_parts(frames: Iterator[pl.DataFrame], path: Path) -> None:
    import pyarrow.parquet as pq

    tables = (frame.to_arrow() for frame in frames)
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as file:
        for table in chain([first], tables):
            file.write_table(table)


def main(benchmark: str, sections: dict[str, Maker]) -> None:
    """Make the sets on the command line."""
    parser = argparse.ArgumentParser(description=f"Make the {benchmark} benchmark's data.")
    parser.add_argument("sections", nargs="+", choices=list(sections))
    parser.add_argument("--out", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--scale", type=float, nargs="+", default=[1.0], help="shares of the size")
    parser.add_argument("--seed", type=int, default=20240601)
    options = parser.parse_args()
    for section in options.sections:
        for scale in options.scale:
            start = time.perf_counter()
            folder = options.out / folder_of(benchmark, section, scale)
            make(sections[section], folder, scale, options.seed)
            print(f"{folder} ({time.perf_counter() - start:.1f} s)")
