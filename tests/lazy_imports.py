"""Lazy imports of slow packages, for tests in several workers."""

from __future__ import annotations

from typing import Any

import pytest


class LazyModule:
    """Module that is imported at the first access to an attribute.

    Every worker imports all test modules, but most workers run no test of a given package.

    Args:
        name: name of the module. If it is not installed, tests that use it are skipped.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest reads every name of a module to find fixtures
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)
