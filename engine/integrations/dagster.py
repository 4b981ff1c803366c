"""Dagster: a job file as an asset, its gates as asset checks, its numbers as metadata."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

import evalengine as ee
from evalengine.jobs.process import LockedError
from evalengine.schemas.errors import PASSING
from evalengine.schemas.results import FAILED

# Annotations are not texts here: Dagster looks at those of the asset's function.


def evaluation_asset(
    name: str,
    job: str | Path,
    *,
    variables: Callable[[Any], Mapping[str, str]] | None = None,
    wait: float = 600,
    flat: Mapping[str, Any] | None = None,
    **asset: Any,
) -> Any:
    """Create an asset that runs a job, see docs/jobs.md.

    Args:
        name: of the asset.
        job: path of the job file.
        variables: maps the run's context to the job's ``[variables]``; by default ``date`` is the
            partition.
        wait: seconds to wait for another run of the same folder.
        flat: selects the numbers in the metadata: arguments of
            :meth:`evalengine.Scorecard.to_dict`.
        **asset: of ``dagster.asset``, such as ``partitions_def`` and ``deps``.

    Returns:
        the asset, with one check, ``gates``, that passes if all gates passed.
    """

    def of_run(context: Any) -> Mapping[str, str]:
        if variables is not None:
            return variables(context)
        return {"date": context.partition_key} if context.has_partition_key else {}

    @dg.asset(  # type: ignore[untyped-decorator,unused-ignore]
        name=name,
        check_specs=[dg.AssetCheckSpec("gates", asset=name)],
        **{"retry_policy": dg.RetryPolicy(max_retries=3, delay=600), **asset},
    )
    def evaluation(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        try:
            result = ee.run_job(job, variables=of_run(context), wait=wait)
        except ee.EvalengineError as error:
            again = isinstance(error, (LockedError, *PASSING))
            raise dg.Failure(str(error), allow_retries=again) from error
        failing = [one.gate for one in result.verdicts if one.status == FAILED]
        numbers = result.card.to_dict(**(flat or {}))
        metadata = {"folder": str(result.plan.folder), "run_id": result.plan.run_id, **numbers}
        check = dg.AssetCheckResult(
            check_name="gates", passed=not result.gate_failed, metadata={"failed": failing}
        )
        return dg.MaterializeResult(metadata=metadata, check_results=[check])

    return evaluation
