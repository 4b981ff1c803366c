"""Run Python code in a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def python(
    code: str, *args: str, strict: bool = True, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Return the output of a new process, which must exit with status 0.

    Args:
        code: source to run.
        *args: arguments of the code.
        strict: whether warnings are errors.
        cwd: working directory.
        **variables: environment variables, in addition to those of this process.
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
