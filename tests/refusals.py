"""Assertions on codes and facts of errors and notes, and on peaks of memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evalengine.ingest.problems import ChecksFailed
from evalengine.schemas.errors import EvalengineError
from evalengine.schemas.results import Finding


@contextmanager
def refused(
    code: str,
    kind: type[EvalengineError] = EvalengineError,
    *,
    match: str | None = None,
    **facts: Any,
) -> Iterator[pytest.ExceptionInfo[EvalengineError]]:
    """Expect an error with a code and with these facts.

    Args:
        code: expected ``error.code``, or ``kind`` of one of the problems of a table.
        kind: expected class of the error.
        match: pattern of a few words or a number that are in the message, but in no fact.
        **facts: expected items of the facts; there may be others.

    Yields:
        The ``ExceptionInfo`` of ``pytest.raises``, for further assertions.
    """
    with pytest.raises(kind, match=match) as info:
        yield info
    assert Refusal(info.value).has(code, **facts)


class Refusal(str):
    """Message of an error, with its code and facts."""

    error: EvalengineError

    def __new__(cls, error: EvalengineError) -> Refusal:
        made = super().__new__(cls, str(error))
        made.error = error
        return made

    def has(self, code: str, **facts: Any) -> bool:
        """Fail unless the error, or one problem of a table, has this code and these facts."""
        found = [(self.error.code, self.error.facts)]
        if isinstance(self.error, ChecksFailed):
            found = [(one.kind, one.as_facts()) for one in self.error.problems]
        same = [of for name, of in found if name == code]
        assert same, f"{[name for name, _ in found]}: {self}"
        assert facts in [{name: of[name] for name in facts if name in of} for of in same], same
        return True


def noted(result: Any, code: str, **facts: Any) -> Finding:
    """Return the only finding with a code; check its ``count``, ``severity`` and facts.

    Args:
        result: a scorecard or the report of ``check``.
        code: of the finding.
        **facts: expected ``count``, ``severity`` or items of its facts.
    """
    findings = [one for one in result.findings if one.code == code]
    assert len(findings) == 1, result.findings
    have = {"count": findings[0].count, "severity": findings[0].severity, **findings[0].facts}
    assert {name: have[name] for name in facts if name in have} == facts
    return findings[0]


def peak(*arguments: object) -> tuple[int, int, str]:
    """Run a command and return its exit status, peak memory in MB and messages."""
    code = (
        "import sys; from evalengine.cli import main; status = main(sys.argv[1:]);"
        "lines = open('/proc/self/status').read().splitlines();"
        "print(*(line.split()[1] for line in lines if line.startswith('VmHWM'))); sys.exit(status)"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, int(done.stdout.split()[-1]) >> 10, done.stderr
