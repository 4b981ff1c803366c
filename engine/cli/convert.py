"""The commands that turn other formats into tables."""

from __future__ import annotations

import os

import click

from .base import Commands, debug


@click.group(cls=Commands)
def convert() -> None:
    """Turn other formats into tables.

    \b
    Example:
      evalengine convert coco instances.json detections.json --out tables
    """


@convert.command()
@click.argument("ground_truths", type=click.Path())
@click.argument("predictions", required=False, type=click.Path())
@click.option("-o", "--out", metavar="DIR", required=True, help="Folder for the tables.")
@debug
def coco(ground_truths: str, predictions: str | None, out: str) -> None:
    """COCO's ground-truth JSON, and a results JSON if there is one, as Parquet tables.

    \b
    Example:
      evalengine convert coco instances.json detections.json --out tables
      evalengine score tables/predictions.parquet tables/groundtruths.parquet \\
        --datums tables/datums.parquet --labels tables/labels.parquet --dialect coco
    """
    from ..ingest.sources.coco import convert_coco

    def tell(message: str) -> None:
        click.echo(f"warning: {message}", err=True)

    for name, rows in convert_coco(ground_truths, predictions, out=out, tell=tell).items():
        click.echo(f"{os.path.join(out, name)}: {rows} rows")


@convert.command()
@click.argument("run")
@click.argument("qrels", required=False)
@click.option("-o", "--out", metavar="DIR", required=True, help="Folder for the tables.")
@debug
def trec(run: str, qrels: str | None, out: str) -> None:
    """A run, and qrels if there are any, as Parquet tables.

    TREC's lines, BEIR's TSV and JSON and MS MARCO's files are read, gzip-compressed or not.

    \b
    Example:
      evalengine convert trec bm25.run qrels.txt --out tables
    """
    from ..ingest.sources.convert_trec import convert_trec

    for name, rows in convert_trec(run, qrels, out=out).items():
        click.echo(f"{os.path.join(out, name)}: {rows} rows")
