"""Pool of Ray tasks, with a stand-in for Ray that runs tasks in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from refusals import refused

import evalengine as ee
from evalengine.executors.processes import pool_of


class TaskError(Exception):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class LostError(Exception):
    pass


class Ray(ModuleType):
    """Stand-in for the part of Ray that the pool uses."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayTaskError=TaskError, RayError=LostError)
        self.started: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.lost = False
        self.losses = 0
        self.every = 0
        self.bare = False
        self.gone = False

    def init(self, **how: Any) -> None:
        if how["address"] == "ray://nowhere":
            raise ConnectionError("refused")
        self.started.append(how)

    def is_initialized(self) -> bool:
        return bool(self.started)

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address=self.started[0]["address"])

    def shutdown(self) -> None:
        self.started.clear()

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 6.0}

    def nodes(self) -> list[dict[str, Any]]:
        node = {"Alive": True, "Resources": {"CPU": 3.0}, "NodeManagerAddress": "10.0.0.1"}
        gone = {**node, "Alive": False, "NodeID": "gone"}
        return [{**node, "NodeID": "one"}, {**node, "NodeID": "two"}, gone]

    def remote(self, **how: Any) -> Callable[[Any], Any]:
        where = how.get("scheduling_strategy")
        self.asked += [where] if where else []

        def made(function: Any) -> Any:
            return SimpleNamespace(remote=lambda *given: self.submitted(function, given))

        return made

    def submitted(self, function: Any, given: Any) -> Any:
        if self.gone and self.losses:
            raise LostError("the control service is away.")
        return function, given

    def wait(self, left: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return left[:num_returns], left[num_returns:]

    def get(self, future: Any, timeout: float | None = None) -> Any:
        if isinstance(future, list):
            return [self.get(one) for one in future]
        self.every += self.every > 0
        if self.lost or self.every % 2:
            self.losses += 1
            raise LostError("node died")
        if self.bare:
            raise TaskError(ModuleNotFoundError("No module named 'evalengine'"))
        function, given = future
        try:
            return function(*given)
        except Exception as error:
            raise TaskError(error) from error

    def cancel(self, future: Any, force: bool) -> None:
        if self.gone:
            raise LostError("the control service is away.")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    stand_in = Ray()
    strategies = ModuleType("strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    monkeypatch.setitem(sys.modules, "ray.util", ModuleType("util"))
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    return stand_in


def refuse_odd(number: int) -> None:
    if number % 2:
        raise ee.InputError(f"{number} is odd")


def raise_import_error(number: int) -> None:
    raise ModuleNotFoundError("No module named 'evalengine'")


def fail(number: int) -> None:
    raise OSError("disk")


def test_input_errors_are_results_in_order(ray: Ray) -> None:
    pool = pool_of("ray", None, 2)
    results = pool.run(refuse_odd, [(0,), (1,), (2,), (3,)])
    assert [None if one is None else str(one) for one in results] == [
        None, "1 is odd", None, "3 is odd",
    ]  # fmt: skip
    assert ray.started[0]["address"] == "local"
    pool.close()
    assert ray.started == []


def test_other_errors_and_lost_workers_end_the_run(ray: Ray) -> None:
    pool = pool_of("ray", None, 1)
    with pytest.raises(OSError, match="disk"):
        pool.run(fail, [(0,)])
    with refused("versions_differ", ee.ExecutorError, package="evalengine"):
        pool.run(raise_import_error, [(0,)])
    ray.lost = True
    with refused("workers_died", ee.ExecutorError):
        pool.run(refuse_odd, [(0,)])


def test_any_number_of_workers_may_die_while_calls_finish(ray: Ray) -> None:
    """Every second task is lost, so that as many workers die as there are calls."""
    pool = pool_of("ray", None, 1)
    ray.every = 1
    results = pool.run(refuse_odd, [(number,) for number in range(100)])
    assert [one is not None for one in results] == [False, True] * 50
    assert ray.losses > 90
    ray.lost, ray.losses = True, 0
    with refused("workers_died", ee.ExecutorError, count=8):
        pool.run(refuse_odd, [(0,), (1,)])
    assert ray.losses == 8


def test_a_lost_cluster_is_reported(ray: Ray) -> None:
    pool = pool_of("ray", None, 1)
    ray.lost = ray.gone = True
    with refused("scheduler_lost", ee.ExecutorError, match="may have gone away"):
        pool.run(refuse_odd, [(0,), (1,)])


def test_every_node_of_a_cluster_is_checked(ray: Ray) -> None:
    pool = pool_of("ray", "auto", None)
    assert (pool.least, pool.share(10)) == (24, 10)
    assert pool.refusal(refuse_odd, (2,)) == ""
    assert ray.asked == ["one", "two"]
    assert pool.refusal(refuse_odd, (3,)) == "10.0.0.1: 3 is odd"
    ray.lost = True
    assert pool.refusal(refuse_odd, (2,)) == "10.0.0.1: node died"
    assert pool_of("ray", None, 2).refusal(refuse_odd, (3,)) == ""
    ray.lost, ray.bare = False, True
    with refused("versions_differ", ee.ExecutorError, package="evalengine"):
        pool.refusal(refuse_odd, (2,))


def test_a_cluster_that_does_not_answer_is_named(ray: Ray) -> None:
    with refused("scheduler_unreachable", ee.ExecutorError, address="ray://nowhere"):
        pool_of("ray", "ray://nowhere", None)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused("package_missing", ee.OptionError, package="ray"):
        pool_of("ray", None, None)


def test_a_second_cluster_is_refused(ray: Ray) -> None:
    ray.init(address="10.0.0.1:6379")
    for address in (None, "auto", "10.0.0.1:6379", "localhost:6379", "ray://10.0.0.1:10001"):
        pool_of("ray", address, 2).close()
    for address in ("10.0.0.9:6379", "10.0.0.1:6380"):
        with refused("option_unfit", ee.OptionError, value=address):
            pool_of("ray", address, None)
    assert ray.is_initialized()
