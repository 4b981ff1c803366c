"""Values of views and tallies that are computed on first access, for use on several threads."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar, overload

R = TypeVar("R")


class Lazy(Generic[R]):
    """Attribute computed on first access, without a lock; used as a decorator.

    Before Python 3.12, ``functools.cached_property`` has one lock for all instances: views on
    several threads would wait for each other, or forever.
    """

    def __init__(self, make: Callable[[Any], R]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Lazy[R]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> R: ...

    def __get__(self, instance: Any, owner: type) -> Lazy[R] | R:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value


class Deferred(Generic[R]):
    """Value of a field that is computed on first use; in files it is the value.

    Args:
        make: called at most once.
    """

    def __init__(self, make: Callable[[], R]) -> None:
        self._make: Callable[[], R] | None = make
        self._lock = Lock()  # views on several threads may ask at a time
        self._value: list[R] = []

    @property
    def value(self) -> R:
        with self._lock:
            if self._make is not None:
                self._value.append(self._make())
                self._make = None  # frees the rows that it needed
            return self._value[0]
