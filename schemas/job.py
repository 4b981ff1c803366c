"""The job file, read by ``evalengine run``, and its JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from .options import Options, help_texts


def _meta(description: str, *examples: Any) -> msgspec.Meta:
    return msgspec.Meta(description=description, examples=list(examples) or None)


class JobInputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths of the input tables. Paths are relative to the job file; ``{name}`` is a variable."""

    predictions: Annotated[
        str | list[str],
        _meta("Path, glob or list of them; of both sides if there is no other.", "p/{date}/*.csv"),
    ]
    ground_truths: Annotated[
        str | list[str] | None, _meta("Path, glob or list of them.", "truths/{date}/*.parquet")
    ] = None
    datums: Annotated[
        str | None, _meta("Table of all datum ids, with slice columns.", "datums.parquet")
    ] = None
    labels: Annotated[str | None, _meta("Table of the declared labels.", "labels.csv")] = None
    partition: Annotated[
        str | None, _meta("Variable in the paths that matches every value found on disk.", "date")
    ] = None
    first: Annotated[
        str | None, _meta("Least value of the partition variable, as text.", "2026-11-01")
    ] = None
    last: Annotated[
        str | None, _meta("Greatest value of the partition variable, as text.", "{yesterday}")
    ] = None
    required: Annotated[
        str | list[str] | None,
        _meta("Values of the partition variable that must be there, as text.", ["{yesterday}"]),
    ] = None
    storage_options: Annotated[
        dict[str, str] | None,
        _meta("Credentials and the like for remote paths; never recorded.", {"aws_region": "x"}),
    ] = None
    version: Annotated[
        str | None,
        _meta("Identifier of the content of remote paths, which are not read twice.", "{date}"),
    ] = None


class JobOutputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths of the results. Paths are relative to the job file; ``{name}`` is a variable."""

    folder: Annotated[
        str, _meta("Folder of this run's result; {run_id} may be in it.", "runs/{date}")
    ] = "runs/{run_id}"
    tallies: Annotated[
        str | None, _meta("Folder of kept tallies, of jobs with partitions; .tallies.", ".tallies")
    ] = None
    history: Annotated[
        str | None, _meta("Dataset to which each run's metrics are added.", "history")
    ] = None
    history_format: Annotated[
        Literal["parquet", "delta"], _meta("A folder of Parquet files, or a Delta table.")
    ] = "parquet"
    lineage: Annotated[
        str | None, _meta("File or URL that OpenLineage events are written to.", "lineage.jsonl")
    ] = None
    lineage_namespace: Annotated[str, _meta("Namespace of the job in those events.")] = "evalengine"
    lineage_key_env: Annotated[
        str, _meta("Environment variable with the key for a lineage URL, if it takes one.")
    ] = "OPENLINEAGE_API_KEY"


class JobReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page about each run, ``report.html`` in its folder."""

    title: Annotated[
        str, _meta("Title of the page; job and folder unless given.", "Boxes, {date}")
    ] = ""
    images: Annotated[
        str | None, _meta("Folder of pictures by datum id, shown small for the worst.", "images")
    ] = None


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheduled evaluation: inputs, options, gates and outputs."""

    name: Annotated[str, _meta("Name of the job, in logs, locks and history.", "nightly")]
    inputs: JobInputs
    outputs: JobOutputs = msgspec.field(default_factory=JobOutputs)
    report: Annotated[JobReport | None, _meta("Write a page about each run.")] = None
    time_zone: Annotated[
        str | None, _meta("Zone of {today} and {yesterday}; UTC.", "Europe/Berlin")
    ] = None
    variables: Annotated[
        dict[str, str | int | float],
        _meta("Values for {name} in any text of this file; --set changes them.", {"date": "x"}),
    ] = {}
    task: Annotated[str | None, _meta("Task; follows from the columns unless given.")] = None
    dialect: Annotated[str | None, _meta("Named rule set; standard.", "coco")] = None
    metrics: Annotated[
        str | list[str] | None, _meta("Metrics, or 'all'; the task's default set.", ["mAP"], "all")
    ] = None
    by: Annotated[
        str | list[str] | None, _meta("Slice columns; 'a*b' crosses two.", ["weather"])
    ] = None
    model: Annotated[
        str | None,
        _meta("Name or version of the model; gates with always start anew with another.", "v3"),
    ] = None
    executor: Annotated[
        Literal["threads", "processes", "dask", "ray"] | None,
        _meta("Executor of the work; threads. The numbers are the same.", "processes"),
    ] = None
    address: Annotated[
        str | None, _meta("Scheduler of executor dask; a local one if none.", "tcp://host:8786")
    ] = None
    options: Annotated[
        Options, _meta("Any option of `evalengine score`, with underscores for dashes.")
    ] = msgspec.field(default_factory=Options)
    gates: Annotated[
        list[str], _meta("Conditions for exit status 0.", ["mAP[iou=0.5] >= 0.42"])
    ] = []
    fail_if: Annotated[
        list[str], _meta("Inverse gates: the run fails if one is true.", ["AP < baseline surely"])
    ] = []
    false_alarms: Annotated[
        Annotated[float, msgspec.Meta(gt=0, lt=0.5)] | None,
        _meta(
            "Probability that any of the fail_if with surely or always is wrong, in equal"
            " parts for all of them; each has its own unless given.",
            0.05,
        ),
    ] = None
    strict: Annotated[bool, _meta("Whether a warning fails the job as a gate does; false.")] = False
    baseline: Annotated[
        str | None,
        _meta("Earlier result that gates speak of: its folder, or last.", "last", "runs/release"),
    ] = None


SHARED = ("task", "dialect", "metrics", "by")
"""Options at the top level of a job file, since nearly every job has them."""


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a job file; unknown keys are errors in every table of fixed keys."""
    schema = msgspec.json.schema(Job)
    texts = help_texts()
    for name, field in schema["$defs"]["Options"]["properties"].items():
        field["description"] = texts.get(name, "")
        lists = [one for one in field.get("anyOf", ()) if one.get("type") == "array"]
        # One value may be written without its list, as everywhere.
        field.get("anyOf", []).extend(one["items"] for one in lists if one.get("items"))
    for table in schema["$defs"].values():
        if "properties" in table:
            table["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "evalengine job",
        **schema,
    }
