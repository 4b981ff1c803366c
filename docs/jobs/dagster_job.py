"""Evaluate a night as a Dagster asset with one partition per day; gates are its check."""

import dagster as dg

from evalengine.integrations.dagster import evaluation_asset

nights = dg.DailyPartitionsDefinition(start_date="2026-11-01")
evaluation = evaluation_asset("evaluation", "/srv/evaluation/nightly.toml", partitions_def=nights)
schedule = dg.build_schedule_from_partitioned_job(
    dg.define_asset_job("nightly", selection=[evaluation], partitions_def=nights), hour_of_day=2
)
definitions = dg.Definitions(assets=[evaluation], schedules=[schedule])
