"""The public surface equals ``surface.txt``, and is the same text in every process."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys

import surface


def test_the_surface_is_the_recorded_one() -> None:
    """The surface is computed in a process that has only imported the package.

    The recorded text was made with another hash seed, which must not matter.
    """
    code = "import surface; print(surface.surface(), end='')"
    env = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(surface.FILE.parent)}
    made = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout
    recorded = surface.FILE.read_text("utf-8")
    changes = difflib.unified_diff(
        recorded.splitlines(), made.splitlines(), "recorded", "made", lineterm="", n=1
    )
    assert recorded == made, (
        f"The public surface has changed. If that is intended: {surface.COMMAND}\n"
        + "\n".join(changes)
    )


def test_every_part_is_filled() -> None:
    blocks = surface.FILE.read_text("utf-8").split("\n\n# ")[1:]
    assert len(blocks) == 10
    lines = {block.partition("\n")[0]: len(block.splitlines()) for block in blocks}
    assert min(lines.values()) > 5, lines
