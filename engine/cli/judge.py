"""The judge's commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from .base import Commands, applying, debug, print_notes

_FORMATS = ("table", "json", "csv", "markdown")
_STRUCTURED = ("auto", "schema", "object", "none")
_LEVELS = click.Choice(("low", "high"))


@click.group(cls=Commands)
def judge() -> None:
    """Judge texts with a language model, and score the verdicts.

    \b
    Example:
      evalengine judge run answers.parquet --metric Faithfulness,Bias \\
        --model my-model --base-url http://localhost:8000/v1 \\
        --out verdicts.parquet
      evalengine score verdicts.parquet --task judged
    """


_with_asking = applying(
    click.option(
        "metrics",
        "--metric",
        "--metrics",
        multiple=True,
        required=True,
        metavar="NAME,...",
        help="Metrics to judge; repeatable. `evalengine metrics --task judged` lists them.",
    ),
    click.option("--model", required=True, metavar="NAME", help="Model, as the endpoint calls it."),
    click.option(
        "--base-url",
        required=True,
        metavar="URL",
        envvar="OPENAI_BASE_URL",
        show_envvar=True,
        help="OpenAI-compatible endpoint, such as http://localhost:8000/v1.",
    ),
    click.option("--cache", metavar="PATH", help="File of all answers; judge.sqlite."),
    click.option("--prompts", metavar="DIR", help="Prompts that replace those of the package."),
    click.option("--columns", multiple=True, metavar="MINE=NAME", help="Own column=its name here."),
    click.option(
        "--mode",
        type=click.Choice(("f1", "precision", "recall")),
        help="Score of FactualCorrectness; f1.",
    ),
    click.option("--atomicity", type=_LEVELS, help="How finely its claims are split; low."),
    click.option("--coverage", type=_LEVELS, help="How much its claims are to cover; low."),
    click.option("--judgments", type=int, metavar="N", help="Verdicts an item, which vote; 1."),
    click.option(
        "--temperature", metavar="X", help="Temperature of the model; 0. 'none' omits it."
    ),
    click.option("--max-output-tokens", type=int, metavar="N", help="Limit of one reply."),
    click.option(
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=JSON",
        help="Further field of each request, such as seed=1 or user=me; repeatable.",
    ),
    click.option("--retries", type=int, metavar="N", help="Repeats of a call that failed; 3."),
    debug,
)


def _parse_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """The shell's words as the call's arguments."""
    import json

    from .options import Pairs

    split = [name.strip() for text in arguments.pop("metrics") for name in text.split(",")]
    columns = arguments.pop("columns")
    parameters: dict[str, Any] = {}
    for text in arguments.pop("parameters"):
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not of the form name=json.")
        try:
            parameters[name] = json.loads(value)
        except (ValueError, RecursionError):
            parameters[name] = value
    temperature = arguments.pop("temperature")
    options = {name: value for name, value in arguments.items() if value is not None}
    if temperature is not None:
        try:
            none = temperature.casefold() == "none"
            options["temperature"] = None if none else float(temperature)
        except ValueError:
            message = f"--temperature {temperature!r}: write a number, or none."
            raise click.BadParameter(message) from None
    pairs = dict(pair for text in columns for pair in Pairs().convert(text, None, None))
    return {
        "metrics": [name for name in split if name],
        "columns": pairs or None,
        "parameters": parameters or None,
        **options,
    }


def _present(_: click.Context, __: click.Parameter, path: str) -> str:
    """Refuse a file that does not exist before options that are missing."""
    if ":" not in path and not os.path.exists(path):
        from ..ingest.sources.scanning import expand

        expand(path)
    return path


_data = click.argument("data", is_eager=True, callback=_present)


@judge.command()
@_data
@click.argument("references", required=False)
@click.option("-o", "--out", metavar="PATH", required=True, help="The verdict table, as Parquet.")
@click.option(
    "--api-key-env",
    metavar="NAME",
    default="OPENAI_API_KEY",
    show_default=True,
    help="Environment variable with the key.",
)
@click.option(
    "--concurrency",
    type=int,
    default=16,
    show_default=True,
    metavar="N",
    help="Requests under way at once.",
)
@click.option(
    "--timeout",
    type=float,
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait for a connection, and between two pieces of an answer.",
)
@click.option(
    "--structured",
    type=click.Choice(_STRUCTURED),
    default="auto",
    show_default=True,
    help="Response format that is asked for.",
)
@click.option("--requests-per-minute", type=float, metavar="X", help="How many are sent at most.")
@click.option("--max-requests", type=int, metavar="N", help="Stop after so many requests.")
@click.option("--max-tokens", type=int, metavar="N", help="Stop after so many tokens.")
@click.option("--max-cost", type=float, metavar="X", help="Stop at this cost; needs --prices.")
@click.option("--prices", metavar="PATH", help="TOML: a table per model with input and output.")
@click.option(
    "--until",
    metavar="GATE",
    help="Judge rows in random order until a gate is decided: 'Faithfulness >= 0.8 always'.",
)
@click.option("--offline", is_flag=True, help="Use only the cache; send no requests.")
@click.option("--dialect", metavar="NAME", help="Rules by which verdicts are scored.")
@click.option("--beta", type=float, metavar="X", help="Of FactualCorrectness; 1.")
@click.option(
    "form",
    "--format",
    type=click.Choice(_FORMATS),
    default="table",
    show_default=True,
    help="How to print the metrics.",
)
@_with_asking
def run(data: str, references: str | None, form: str, **given: Any) -> None:
    """Judge the rows of DATA, write the verdict table and print its metrics.

    DATA has one row per text: query, text, contexts, reference, source, as the metrics need them.
    REFERENCES, if given, has one ground truth per row: datum_id and text. Every answer is cached as
    it arrives: the same command resumes and repeats no request.

    \b
    Example:
      evalengine judge run answers.parquet --metric Faithfulness \\
        --model my-model --base-url http://localhost:8000/v1 \\
        --out verdicts.parquet --max-requests 1000
    """
    scoring = {name: given.pop(name) for name in ("dialect", "beta")}
    scoring = {name: value for name, value in scoring.items() if value is not None}
    gate = given.pop("until")
    arguments = _parse_arguments(given)
    from ..judge.judging import judge as call

    if gate is not None:
        from ..jobs.verdicts import until
        from ..schemas.option_values import make_options

        options = make_options(scoring, metrics=arguments["metrics"])
        arguments["until"] = until(gate, options)
    try:
        with _progress() as progress:
            judged = call(data, references, scoring=scoring, progress=progress, **arguments)
    except KeyboardInterrupt:
        cache = arguments.get("cache", "judge.sqlite")
        click.echo(f"answers so far are in {cache}; the same command goes on there", err=True)
        raise
    from ..ingest.problems import count_of
    from ..report.show import show

    show(judged.card, form, frames=False)
    if form == "csv":
        print_notes(judged.card)
    usage = judged.usage
    cost = "" if usage.cost is None else f", cost {usage.cost:.6g}"
    verdicts = judged.verdicts["verdict"].count()
    others = judged.verdicts.height - verdicts
    without = f" and {count_of(others, 'row')} without one" if others else ""
    lines = [
        *judged.notes,
        f"{verdicts} verdicts{without} in {given['out']}; {usage.requests} requests,"
        f" {usage.cached} answers from the cache,"
        f" {usage.input_tokens + usage.output_tokens} tokens{cost}",
    ]
    for line in lines:
        click.echo(line, err=True)
    if judged.verdicts.height and not judged.card.metrics["scored"].fill_null(0).sum():
        from ..schemas.errors import EndpointError

        raise EndpointError(f"no row could be scored; {given['out']} has the reason per row.")


@contextmanager
def _progress() -> Iterator[Callable[[Any], None]]:
    def ending(progress: Any) -> None:
        if progress.ending:
            click.echo("waiting for answers under way; Ctrl-C again ends at once", err=True)

    if not sys.stderr.isatty():
        yield ending
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("starting") as status:

        def show_progress(progress: Any) -> None:
            status.update(progress.line)
            ending(progress)

        yield show_progress


@judge.command()
@click.argument("names", nargs=-1)
@click.option("-o", "--out", metavar="DIR", help="Copy all files into a folder, for changing.")
@debug
def prompts(names: tuple[str, ...], out: str | None) -> None:
    """Print the prompts, or copy them.

    \b
    Example:
      evalengine judge prompts
      evalengine judge prompts faithfulness
      evalengine judge prompts --out my_prompts
    """
    from ..judge.prompts import copy_prompts, load_prompts, prompt_text

    if out is not None:
        click.echo(f"{len(copy_prompts(out))} prompts in {out}")
        return
    if not names:
        bundled = load_prompts()
        width = max(len(name) for name in bundled)
        for name, prompt in bundled.items():
            click.echo(f"{name:<{width}}  {prompt.version}  {prompt.about}")
        return
    for name in names:
        click.echo(prompt_text(name), nl=False)


@judge.command()
@_data
@click.argument("references", required=False)
@click.option("-o", "--out", metavar="DIR", required=True, help="Folder for the files.")
@click.option(
    "--structured",
    type=click.Choice(_STRUCTURED[1:]),
    default="schema",
    show_default=True,
    help="Response format that is asked for.",
)
@click.option(
    "--most-requests",
    type=click.IntRange(min=1),
    default=50_000,
    show_default=True,
    metavar="N",
    help="Requests in one file.",
)
@_with_asking
def export(
    data: str, references: str | None, out: str, structured: str, most_requests: int, **given: Any
) -> None:
    """Write the next requests as batch files (OpenAI's Batch API, vLLM's run-batch).

    Metrics of several steps need several rounds: export, have the files answered, import, and
    export again until no requests remain.

    \b
    Example:
      evalengine judge export answers.parquet --metric Bias --model my-model \\
        --base-url http://localhost:8000/v1 --out round1
    """
    from ..judge.judging import BatchFiles, collect_into, make_asking

    arguments = _parse_arguments(given)
    columns = arguments.pop("columns")
    asking = make_asking(**arguments)
    with BatchFiles(out, structured=structured, most_requests=most_requests) as files:
        collect_into(files.add, data, references, asking, columns=columns)
    if not files.written:
        click.echo("no request is open; `judge run --offline` makes the verdict table")
        return
    for path, lines in files.written.items():
        click.echo(f"{path}: {lines} requests")


@judge.command(name="import")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--cache",
    metavar="PATH",
    default="judge.sqlite",
    show_default=True,
    help="File of all answers.",
)
@debug
def import_(files: tuple[str, ...], cache: str) -> None:
    """Put the output and error files of batches into the cache.

    \b
    Example:
      evalengine judge import round1/output.jsonl round1/errors.jsonl
    """
    from ..judge.judging import read_batches

    imported = read_batches(files, cache)
    click.echo(f"{imported.answers} answers and {imported.failures} failures in {cache}")
    if imported.foreign:
        click.echo(
            f"{imported.foreign} of them belong to no request that was exported with this cache: is"
            " --cache the one of the export, and are these its files?",
            err=True,
        )
