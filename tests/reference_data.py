"""Paths of known answers of other tools, next to the tests, and of real data outside the tree."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

ANSWERS = Path(__file__).parent / "known_answers"
"""Folder with one subfolder per area; its README states how each file was made."""

DATA_VARIABLE = "EVALENGINE_TEST_DATA"
"""Environment variable that names the folder of real data; ``../shared/data`` unless set."""


def known_answers(*parts: str) -> Any:
    """Return the path of a file of known answers, from the names of its folders and its name."""
    path = ANSWERS.joinpath(*parts).with_suffix(".json.gz")
    return json.loads(gzip.decompress(path.read_bytes()))


def real_data(*parts: str) -> Path:
    """Return a file or folder of real data; skip the test if it does not exist."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get(DATA_VARIABLE, beside)).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no real data: {DATA_VARIABLE} names no folder with {'/'.join(parts)}")
    return path
