"""Python code run in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def python(
    code: str, *args: str, strict: bool = True, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What such a process said, which must end well.

    Args:
        code: what it runs.
        *args: of the code.
        strict: whether a warning is an error.
        cwd: its folder.
        **variables: of its environment, beside this process's own.
    """
    flags = ("-W", "error") if strict else ()
    done = subprocess.run(
        [sys.executable, *flags, "-c", code, *args],
        env={**os.environ, **variables},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
