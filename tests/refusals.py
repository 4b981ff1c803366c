"""Assertions on refusals: the code and the facts of an error, not its wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evalengine.schemas.errors import EvalengineError


@contextmanager
def refused(
    code: str, kind: type[EvalengineError] = EvalengineError, **facts: Any
) -> Iterator[pytest.ExceptionInfo[EvalengineError]]:
    """Expect an error with a code and, among its facts, these.

    Args:
        code: expected ``error.code``.
        kind: expected class of the error.
        **facts: expected items of ``error.facts``; others may be there too.

    Yields:
        The ``ExceptionInfo`` of ``pytest.raises``, for further assertions.
    """
    with pytest.raises(kind) as info:
        yield info
    assert info.value.code == code, f"{info.value.code!r}: {info.value}"
    assert {name: info.value.facts.get(name) for name in facts} == facts
