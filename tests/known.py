"""Known answers of other tools, which stand beside the tests, and real data, which does not."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

ANSWERS = Path(__file__).parent / "known_answers"
"""A folder an area; its README says what made each file."""

DATA_VARIABLE = "EVALENGINE_TEST_DATA"
"""Environment variable that names the folder of real data; ``../shared/data`` unless set."""


def known_answers(*parts: str) -> Any:
    """A file of known answers, by the names of its folders and its own."""
    path = ANSWERS.joinpath(*parts).with_suffix(".json.gz")
    return json.loads(gzip.decompress(path.read_bytes()))


def real_data(*parts: str) -> Path:
    """A file or folder of real data; the test is skipped where there is none."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get(DATA_VARIABLE, beside)).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no real data: {DATA_VARIABLE} names no folder with {'/'.join(parts)}")
    return path
