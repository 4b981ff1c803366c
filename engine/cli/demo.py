"""The command that scores a bundled data set, for who has none at hand."""

from __future__ import annotations

import shlex
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import click

from .base import Command, debug

_REPORT = "report.html"


@click.command(cls=Command)
@click.argument("name", required=False, metavar="[TASK]")
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
    lines = _lines()
    wanted = name or next(iter(lines))
    if wanted not in lines:
        from ..schemas.errors import OptionError, did_you_mean

        near = did_you_mean(wanted, lines)
        raise OptionError(f"no bundled set {wanted!r}.{near} There are: {', '.join(lines)}.")
    words = shlex.split(lines[wanted])
    folder = _folder(out)
    _copy(words, folder)
    shown = shlex.join(["evalengine", "score", *words, "--report", _REPORT])
    click.echo(f"In {folder}:\n  {shown}\n")
    placed = [str(folder / word) if (folder / word).is_file() else word for word in words]
    score = context.find_root().command.commands["score"]  # type: ignore[attr-defined]
    status: int = score.main(
        [*placed, "--report", str(folder / _REPORT)], prog_name="evalengine score",
        standalone_mode=False,
    )  # fmt: skip
    others = ", ".join(one for one in lines if one != wanted)
    click.echo(f"\nOther sets for `evalengine demo NAME`: {others}")
    return status


def _lines() -> dict[str, str]:
    """Return the arguments of ``score`` for each bundled data set."""
    import tomllib

    text = files("evalengine.examples").joinpath("demos.toml").read_text("utf-8")
    return tomllib.loads(text)


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


def _copy(words: list[str], folder: Path) -> None:
    """Put the sets that are named there, under their own names."""
    with as_file(files("evalengine.examples")) as bundled:
        for top in {word.partition("/")[0] for word in words if (bundled / word).is_file()}:
            shutil.copytree(bundled / top, folder / top, copy_function=shutil.copyfile)
