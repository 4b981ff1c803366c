"""A dbt model of Python (dbt-duckdb): the metrics of two other models, one row a number."""


def model(dbt, session):
    import evalengine as ee

    dbt.config(materialized="table")
    options = dbt.config.get("options") or {}
    found, truth = dbt.ref("predictions"), dbt.ref("ground_truths")
    return ee.score(found, truth, **options).metrics.to_arrow()
