"""Commands that write reports, figures and tables, and ``verify``."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..schemas.wording import in_shell
from .base import Command, Commands, WithOptions, arguments, debug, progress_line, with_tables
from .completion import completes, demos

if TYPE_CHECKING:
    from ..jobs.verdicts import Verdict
    from ..scorecard.card import Scorecard

# Command ``plot``.


@click.command(cls=Command)
@click.argument("run", type=click.Path())
@click.argument("kind", required=False, shell_complete=completes("plots"))
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="An .svg, .png or .pdf file; KIND.svg unless given.",
)
@click.option("--label", metavar="LABEL", help="The only label to plot.")
@click.option("--iou", type=float, metavar="IOU", help="IoU threshold, of detection.")
@click.option(
    "--metric",
    metavar="NAME",
    shell_complete=completes("metrics"),
    help="The metric to plot, for kinds that plot one.",
)
@click.option("--baseline", metavar="DIR", help="Earlier result, shown dashed.")
@debug
def plot(
    run: str,
    kind: str | None,
    out: str | None,
    label: str | None,
    iou: float | None,
    metric: str | None,
    baseline: str | None,
) -> None:
    """Plot a figure of RUN.

    RUN is a folder that `score --out` or a job wrote. Without KIND the kinds available for this run
    are listed. Needs matplotlib: pip install 'evalengine[plot]'.

    \b
    Example:
      evalengine plot runs/tuesday
      evalengine plot runs/tuesday precision_recall -o pr.png \\
        --baseline runs/monday
    """
    from ..jobs.reports import scored_in
    from ..report.plots import FORMATS, Plots

    plots = Plots(scored_in(run))
    if kind is None:
        click.echo("\n".join(plots.kinds))
        return
    target = Path(out or f"{kind}.svg")
    if target.suffix.lower().lstrip(".") not in FORMATS:
        endings = ", ".join(f".{one}" for one in FORMATS)
        raise click.UsageError(
            f"-o {target}: the file ending selects the format, one of {endings}."
        )
    earlier = None if baseline is None else scored_in(baseline)
    chosen: dict[str, Any] = {"label_value": label, "iou_threshold": iou, "metric": metric}
    figure = plots.figure(kind, earlier, **chosen)
    from ..atomic import whole_file, written

    with written(target), whole_file(target, sweeps=True) as file:
        figure.savefig(file, dpi=150, format=target.suffix[1:].lower())
    click.echo(f"the {kind} plot is in {target}", err=True)


# Command ``report``, and its parts used by ``score``.

with_images = click.option(
    "--images",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Pictures by datum id; the report shows those of the worst datums, small.",
)


@click.command(cls=Command)
@click.argument("run", type=click.Path())
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    default="report.html",
    show_default=True,
    help="The HTML file; one that is there is replaced.",
)
@click.option(
    "--baseline",
    metavar="DIR",
    help="Earlier result; that of the job that made the run unless given.",
)
@click.option("--title", metavar="TEXT", help="Title of the page; default: the folder's name.")
@with_images
@click.option(
    "--draws", type=click.IntRange(1), metavar="N", help="Resamples of the comparison; 1000."
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of those resamples; 0.")
@debug
def report(
    run: str,
    out: str,
    baseline: str | None,
    title: str | None,
    images: str | None,
    draws: int | None,
    seed: int | None,
) -> None:
    """Write one HTML page about RUN, or about several runs over time.

    RUN is a folder that `score --out` or a job wrote; or a folder of such folders, a job file, or
    the folder of a job's history, whose page has a line per number. The page needs no network and
    no server: verdict, numbers, labels, curves, slices, errors, the worst datums, notes, and the
    origin of it all. With a baseline, differences are shown with their intervals.

    \b
    Example:
      evalengine score preds.parquet gts.parquet --out runs/tuesday
      evalengine report runs/tuesday --baseline runs/monday -o report.html
      evalengine report runs -o nights.html
    """
    from ..schemas.option_values import make_options

    with progress_line() as progress:
        from ..jobs.reports import report as make

        page = make(
            run,
            out,
            baseline=baseline,
            title=title or "",
            images=images,
            options=make_options(draws=draws, seed=seed),
            progress=progress,
            warn=lambda warning: click.echo(f"warning: {warning}", err=True),
        )
    _print_report_path(page)


def written(
    path: str,
    card: Scorecard,
    *,
    baseline: Scorecard | None,
    named: str | None,
    verdicts: Sequence[Verdict],
    images: str | None,
    folder: str | None,
) -> None:
    """Write the report of a run that was scored just now, and saved in a folder or not."""
    from ..jobs.reports import gate_lines
    from ..reporting import make_report

    with progress_line() as progress:
        page = make_report(
            card,
            path,
            baseline=baseline,
            names=(named or "baseline", "this run"),
            gates=gate_lines(verdicts),
            images=images,
            folder=folder,
            progress=progress,
        )
    _print_report_path(page)


def _print_report_path(path: Any) -> None:
    click.echo(f"the report is in {path}", err=True)


# The commands that turn other formats into tables.

AUTO = "auto"
"""Command that detects the format by content."""


class Formats(Commands):
    """Group with one command per annotation format, in addition to explicit ones."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from ..ingest.annotations.titles import TITLES

        return [AUTO, *super().list_commands(ctx), *TITLES]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from ..ingest.annotations.titles import TITLES

        written = super().get_command(ctx, name)
        if written is not None:
            return written
        titles = {**TITLES, AUTO: "annotations of any format, recognised by content"}
        return _annotations(name, titles[name]) if name in titles else None


@click.group(cls=Formats)
def convert() -> None:
    """Convert other formats to tables, COCO JSON or tracks as text.

    \b
    Example:
      evalengine convert auto labels/ --to coco --out coco
    """


_TO = click.option(
    "--to",
    type=click.Choice(["tables", "coco", "mot", "kitti-tracking"]),
    default="tables",
    show_default=True,
    help="Parquet tables, COCO JSON, or text of tracks, a file a sequence.",
)
_OUT = click.option("-o", "--out", metavar="DIR", required=True, help="Folder for the files.")


def _renaming(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> Any:
    from .options import label_map_of

    return label_map_of(ctx, param, value)


def _annotations(name: str, title: str) -> click.Command:
    """The command of one format."""

    @click.command(
        name,
        cls=Command,
        help=f"""{title[0].upper()}{title[1:]}, as tables or COCO JSON.

        Ground truths come first, predictions of any format second. A single table with scores
        has only predictions.

        \b
        Example:
          evalengine convert {name} labels predictions --to coco --out coco
        """,
    )
    @click.argument("ground_truths", type=click.Path())
    @click.argument("predictions", required=False, type=click.Path())
    @_OUT
    @_TO
    @click.option(
        "--datums", metavar="TABLE", help="Table of datum_id, width and height of the images."
    )
    @click.option(
        "--labels", metavar="TABLE", help="Table of label_value and label_name of the categories."
    )
    @click.option(
        "--box-format", metavar="NAME", help="Meaning of a list of four numbers in a table."
    )
    @click.option(
        "--label-map",
        metavar="OLD=NEW|PATH",
        multiple=True,
        callback=_renaming,
        help="Renames labels of both sides. E.g. person=pedestrian",
    )
    @debug
    def command(
        ground_truths: str,
        predictions: str | None,
        out: str,
        to: str,
        datums: str | None,
        labels: str | None,
        box_format: str | None,
        label_map: Any,
    ) -> None:
        from ..ingest.converting import convert as converted

        annotation_options = {"box_format": box_format, "label_map": label_map}
        files = converted(
            ground_truths,
            predictions,
            out=out,
            to=to,
            format=None if name == AUTO else name,
            datums=datums,
            labels=labels,
            options={name: one for name, one in annotation_options.items() if one is not None},
            tell=_print_note,
        )
        _listed(files, out)

    return command


def _print_note(message: str, warning: bool) -> None:
    click.echo(f"{'warning' if warning else 'note'}: {in_shell(message)}", err=True)


def _listed(files: dict[str, int], out: str) -> None:
    from ..ingest.problems import count_of

    for name, rows in files.items():
        click.echo(f"{os.path.join(out, name)}: {count_of(rows, 'row')}")


@convert.command()
@click.argument("ground_truths", type=click.Path())
@click.argument("predictions", required=False, type=click.Path())
@_OUT
@_TO
@debug
def coco(ground_truths: str, predictions: str | None, out: str, to: str) -> None:
    """COCO's ground-truth JSON, and a results JSON if there is one, as Parquet tables.

    \b
    Example:
      evalengine convert coco instances.json detections.json --out tables
      evalengine score tables/predictions.parquet tables/groundtruths.parquet \\
        --datums tables/datums.parquet --labels tables/labels.parquet \\
        --dialect coco
    """
    from ..ingest.converting import convert_coco

    _listed(convert_coco(ground_truths, predictions, out=out, to=to, tell=_print_note), out)


@convert.command()
@click.argument("run")
@click.argument("qrels", required=False)
@_OUT
@debug
def trec(run: str, qrels: str | None, out: str) -> None:
    """A run, and qrels if there are any, as Parquet tables.

    TREC's lines, BEIR's TSV and JSON and MS MARCO's files are read, gzip-compressed or not.

    \b
    Example:
      evalengine convert trec bm25.run qrels.txt --out tables
    """
    from ..ingest.converting import convert_trec

    _listed(convert_trec(run, qrels, out=out), out)


# The command that scores a bundled data set, for who has none at hand.

_REPORT = "report.html"


@click.command(cls=Command)
@click.argument("name", required=False, metavar="[TASK]", shell_complete=completes("demos"))
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="New or empty folder for the tables and the report; a temporary one unless given.",
)
@debug
@click.pass_context
def demo(context: click.Context, name: str | None, out: str | None) -> int:
    """Score a small bundled data set and write its report.

    TASK is detection by default. The tables are copied into a folder, and the command that scores
    them is printed first, so that you can change it and try again.

    \b
    Example:
      evalengine demo
      evalengine demo retrieval --out try
    """
    lines = demos()
    demo_name = name or next(iter(lines))
    if demo_name not in lines:
        from ..schemas.errors import OptionError, did_you_mean

        hint = did_you_mean(demo_name, lines)
        raise OptionError(f"no bundled set {demo_name!r}.{hint} There are: {', '.join(lines)}.")
    words = shlex.split(lines[demo_name])
    folder = _folder(out)
    with as_file(files("evalengine.examples")) as bundled:
        for top in {word.partition("/")[0] for word in words if (bundled / word).is_file()}:
            shutil.copytree(bundled / top, folder / top, copy_function=shutil.copyfile)
    command_line = shlex.join(["evalengine", "score", *words, "--report", _REPORT])
    click.echo(f"In {folder}:\n  {command_line}\n")
    placed = [str(folder / word) if (folder / word).is_file() else word for word in words]
    score = context.find_root().command.commands["score"]  # type: ignore[attr-defined]
    status: int = score.main(
        [*placed, "--report", str(folder / _REPORT)],
        prog_name="evalengine score",
        standalone_mode=False,
    )
    others = ", ".join(one for one in lines if one != demo_name)
    click.echo(f"\nOther sets for `evalengine demo NAME`: {others}")
    return status


def _folder(out: str | None) -> Path:
    if out is None:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="evalengine-demo-"))
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        from ..schemas.errors import OptionError

        raise OptionError(f"--out {out!r} has files in it; name a new or an empty folder.")
    from ..atomic import written

    with written(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


# Command ``verify``.


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
