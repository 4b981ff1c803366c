"""Command ``verify``."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from .base import WithOptions, arguments, progress_line, with_tables


@click.command(cls=WithOptions)
@click.argument("line")
@click.argument("predictions", type=click.Path())
@click.argument("ground_truths", required=False, type=click.Path())
@click.option(
    "--own-metrics", is_flag=True, help="Run own metrics and plugins that LINE names: their code."
)
@with_tables
def verify(
    line: str,
    predictions: str,
    ground_truths: str | None,
    datums: str | None,
    labels: str | None,
    own_metrics: bool,
    storage: tuple[str, ...],
    **fields: Any,
) -> int:
    """Check whether tables give a LINE to cite: its digests, counts and number.

    The tables are scored with the options in LINE. Names of columns are not in it, and of
    options that are tables, such as a label map, only the digest: give them as for `score`. Exits
    with 1 if a digest, a count or the number differs. A LINE that names own metrics is refused
    without --own-metrics, since their code would run.

    \b
    Example:
      evalengine verify 'evalengine 0.1.0 | detection coco | n 5 | pred ...' preds.json gts.json
    """
    from ..ingest.opening import Tables
    from ..report.citing import differences, line_of, read_line, refuse_strangers
    from ..run import score_tables

    cited = read_line(line)
    here = click.get_current_context()
    nested_context = here.command.make_context(
        "verify", [line, predictions, *cited.words], parent=here.parent
    )
    typed = ParameterSource.COMMANDLINE
    cited_values = {
        name: value
        for name, value in nested_context.params.items()
        if name not in ("line", "predictions")
        and nested_context.get_parameter_source(name) is typed
        and here.get_parameter_source(name) is not typed
    }
    refuse_strangers(line, cited_values, own_metrics=own_metrics)
    keywords = arguments(storage, datums, labels, fields | cited_values)
    with progress_line() as progress:
        options = keywords.pop("options")
        card = score_tables(
            Tables(predictions, ground_truths, **keywords), options, progress=progress
        )
        computed = line_of(card)
    differing, why, loose = differences(cited, read_line(computed))
    for text in differing:
        click.echo(f"differs: {text}")
    for text in why:
        click.echo(f"{'note' if not differing else 'also'}: {text}")
    for text in loose:
        click.echo(f"note: {text}")
    click.echo(computed if differing else "the tables give this line")
    return 1 if differing else 0
