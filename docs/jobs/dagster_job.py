"""A night's evaluation as a Dagster asset with a partition a day; gates are its checks."""

import dagster as dg

import evalengine as ee

JOB = "/srv/evaluation/nightly.toml"
nights = dg.DailyPartitionsDefinition(start_date="2026-11-01")


@dg.asset(
    partitions_def=nights,
    check_specs=[dg.AssetCheckSpec("gates", asset="evaluation")],
    retry_policy=dg.RetryPolicy(max_retries=3, delay=600),
)
def evaluation(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The night's numbers, in the folder that the job names."""
    result = ee.run_job(JOB, variables={"date": context.partition_key}, wait=600)
    failing = [one.gate for one in result.verdicts if one.status == "failed"]
    return dg.MaterializeResult(
        metadata={"folder": str(result.plan.folder), "run_id": result.plan.run_id},
        check_results=[
            dg.AssetCheckResult(
                check_name="gates", passed=not result.gate_failed, metadata={"failed": failing}
            )
        ],
    )


schedule = dg.build_schedule_from_partitioned_job(
    dg.define_asset_job("nightly", selection=[evaluation], partitions_def=nights), hour_of_day=2
)
definitions = dg.Definitions(assets=[evaluation], schedules=[schedule])
