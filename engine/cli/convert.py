"""The commands that turn other formats into tables."""

from __future__ import annotations

import os
from typing import Any

import click

from ..schemas.wording import in_shell
from .base import Command, Commands, debug

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
    "--to", type=click.Choice(["tables", "coco", "mot", "kitti-tracking"]), default="tables",
    show_default=True, help="Parquet tables, COCO JSON, or text of tracks, a file a sequence.",
)  # fmt: skip
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

        Ground truths come first, predictions of any format after them; alone, files with scores
        are predictions.

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
        "--box-format", metavar="NAME", help="What a list of four numbers holds, in a table."
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
        box_format: str | None,
        label_map: Any,
    ) -> None:
        from ..ingest.converting import convert as converted

        said = {"box_format": box_format, "label_map": label_map}
        files = converted(
            ground_truths,
            predictions,
            out=out,
            to=to,
            format=None if name == AUTO else name,
            datums=datums,
            options={name: one for name, one in said.items() if one is not None},
            tell=_tell,
        )
        _listed(files, out)

    return command


def _tell(message: str, warning: bool) -> None:
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
        --datums tables/datums.parquet --labels tables/labels.parquet --dialect coco
    """
    from ..ingest.converting import convert_coco

    _listed(convert_coco(ground_truths, predictions, out=out, to=to, tell=_tell), out)


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
    from ..ingest.sources.convert_trec import convert_trec

    _listed(convert_trec(run, qrels, out=out), out)
