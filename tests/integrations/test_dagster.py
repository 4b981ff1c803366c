"""The asset, in Dagster if it is installed, and with stand-ins for its classes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .stand_ins import REAL, integration, module, program, standing_in


class Failure(Exception):
    def __init__(self, message: str, *, allow_retries: bool) -> None:
        super().__init__(message)
        self.allow_retries = allow_retries


def namespace(*_: Any, **named: Any) -> SimpleNamespace:
    return SimpleNamespace(**named)


def test_an_asset_of_a_night(folder: Path) -> None:
    stand_in = module(
        asset=lambda **options: lambda function: function,
        AssetExecutionContext=SimpleNamespace,
        Failure=Failure,
        **dict.fromkeys(
            ("MaterializeResult", "AssetCheckResult", "AssetCheckSpec", "RetryPolicy"), namespace
        ),
    )
    with standing_in(dagster=stand_in):
        asset = integration("dagster").evaluation_asset("night", folder / "job.toml")
        # Dagster inspects the annotation itself, so it must not be a string.
        assert asset.__annotations__["context"] is SimpleNamespace
        done = asset(SimpleNamespace(has_partition_key=True, partition_key="2026-11-19"))
        assert done.metadata["folder"] == str(folder / "runs" / "2026-11-19")
        assert done.metadata["mAP_iou_0.5"] == 1
        [check] = done.check_results
        assert (check.passed, check.metadata) == (True, {"failed": []})
        with pytest.raises(Failure, match="2026-12-24") as caught:
            asset(SimpleNamespace(has_partition_key=True, partition_key="2026-12-24"))
        assert not caught.value.allow_retries


@pytest.mark.skipif(not REAL["dagster"], reason="Dagster is not installed")
@pytest.mark.filterwarnings("ignore")
def test_dagster_materialises_a_partition(folder: Path, tmp_path: Path) -> None:
    import dagster as dg

    text = (folder / "job.toml").read_text()
    space = program("dagster_job.py", folder / "job.toml", tmp_path)
    asset = space["evaluation"]
    done = dg.materialize([asset], partition_key="2026-11-19")
    assert done.success
    [check] = done.get_asset_check_evaluations()
    assert check.passed
    [event] = done.asset_materializations_for_node("evaluation")
    assert event.metadata["mAP_iou_0.5"].value == 1
    assert space["definitions"].get_job_def("nightly")
    (folder / "job.toml").write_text(text.replace(">= 0.5", "> 1"))
    again = dg.materialize([asset], partition_key="2026-11-20")
    [check] = again.get_asset_check_evaluations()
    assert not check.passed
    assert "mAP" in str(check.metadata["failed"].value)
    broken = dg.materialize([asset], partition_key="2026-11-22", raise_on_error=False)
    assert not broken.success
