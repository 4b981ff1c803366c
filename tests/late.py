"""Packages that take long to import, imported by the worker that runs a test of theirs."""

from __future__ import annotations

from typing import Any

import pytest


class Late:
    """A module that is imported when something of it is first asked for.

    Every worker imports every module of tests, and most run none of one package's.

    Args:
        name: of the module; where it is not installed, the test that asks is skipped.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks at every name of a module for fixtures
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)
