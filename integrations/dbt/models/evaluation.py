"""Metrics of two other models as a Python model of dbt (dbt-duckdb), one row per value."""


def model(dbt, session):
    import evalengine as ee

    dbt.config(materialized="table")
    options = dbt.config.get("options") or {}
    found, truth = dbt.ref("predictions"), dbt.ref("ground_truths")
    return ee.score(found, truth, **options).metrics.to_arrow()
