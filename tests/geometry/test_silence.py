"""Warnings about pictures without georeference are suppressed, whatever other threads do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import rasterio

from evalengine.geometry.rasters import grid_of, opened, silenced
from evalengine.tasks.pixels import in_thread, quiet


@pytest.fixture
def picture(tmp_path: Path) -> str:
    path = tmp_path / "picture.tif"
    profile = {"driver": "GTiff", "width": 4, "height": 3, "count": 1, "dtype": "uint8"}
    with silenced(), rasterio.open(path, "w", **profile) as file:
        file.write(np.zeros((1, 3, 4), np.uint8))
    return str(path)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_many_threads(picture: str) -> None:
    """Some threads open files separately, some within a quiet run; runs begin and end meanwhile."""

    def separate(_: int) -> None:
        with opened(picture) as dataset:
            grid_of(dataset)

    def within(_: int) -> None:
        with in_thread(), rasterio.open(picture) as dataset:
            grid_of(dataset)

    def run(_: int) -> None:
        with quiet(), rasterio.open(picture) as dataset:
            grid_of(dataset)

    with warnings.catch_warnings(), ThreadPoolExecutor(6) as pool:
        warnings.simplefilter("error")
        with quiet():
            list(pool.map(lambda i: (separate, within, run)[i % 3](i), range(1500)))
        list(pool.map(lambda i: (separate, run)[i % 2](i), range(1000)))


def test_filters_are_put_back(picture: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        with silenced():
            with pytest.raises(OSError, match="missing"), opened(picture + ".missing"):
                pass
            with silenced():
                assert warnings.filters != before
            assert warnings.filters != before
        assert warnings.filters == before
        with pytest.raises(rasterio.errors.NotGeoreferencedWarning):
            rasterio.open(picture)
