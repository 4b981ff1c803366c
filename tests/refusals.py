"""Assertions on refusals: the code and the facts of an error, not its wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evalengine.ingest.problems import ChecksFailed
from evalengine.schemas.errors import EvalengineError


@contextmanager
def refused(
    code: str, kind: type[EvalengineError] = EvalengineError, **facts: Any
) -> Iterator[pytest.ExceptionInfo[EvalengineError]]:
    """Expect an error with a code and, among its facts, these.

    Args:
        code: expected ``error.code``, or ``kind`` of one of the problems of a table.
        kind: expected class of the error.
        **facts: expected items of its facts; others may be there too.

    Yields:
        The ``ExceptionInfo`` of ``pytest.raises``, for further assertions.
    """
    with pytest.raises(kind) as info:
        yield info
    found = [(info.value.code, info.value.facts)]
    if isinstance(info.value, ChecksFailed):
        found = [(one.kind, one.as_facts()) for one in info.value.problems]
    same = [of for name, of in found if name == code]
    assert same, f"{[name for name, _ in found]}: {info.value}"
    assert facts in [{name: of.get(name) for name in facts} for of in same], same
