"""Generated pages of the site: options, commands, tables and Python names, as Markdown.

MkDocs calls the functions whose names begin with `on_`; `pages` needs only the package.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

import evalengine as ee
from evalengine.cli import cli
from evalengine.report import show
from evalengine.schemas.options import DECLARED, FIELDS, TOPICS

FOLDER = "reference"
_WORKER = "scripts/worker_in_a_frame.js"
_SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes|Example):$")


def pages() -> dict[str, tuple[str, str]]:
    """Return address in the site -> title in its navigation, and Markdown."""
    made = {"commands": ("Commands", commands()), "options": ("Options", options())}
    made["tables"] = ("Tables and frames", tables())
    made["python"] = ("Python", python())
    return {f"{FOLDER}/{name}.md": page for name, page in made.items()}


def on_config(config: Any) -> Any:
    """Add the pages to the end of the navigation's reference."""
    generated = [{title: address} for address, (title, _) in pages().items()]
    [reference] = [part["Reference"] for part in config["nav"] if "Reference" in part]
    reference.append({"Generated": generated})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to the written ones."""
    from mkdocs.structure.files import File

    for address, (_, text) in pages().items():
        files.append(File.generated(config, address, content=text))
    return files


def on_post_build(config: Any) -> None:
    """Load the search script from the folder instead of another host."""
    top = Path(config["site_dir"])
    for path in top.rglob("*.html"):
        ours = f"{'../' * (len(path.relative_to(top).parts) - 1)}{_WORKER}"
        text = path.read_text("utf-8")
        path.write_text(text.replace("https://unpkg.com/iframe-worker/shim", ours), "utf-8")


def options() -> str:
    """List every option, by topic."""
    by_name = {option.name: option for option in every_option()}
    lines = [
        "# Options",
        "Of `score` and whatever scores; in Python fields of `ee.Options`, in a job file keys of"
        " `[options]`, with underscores.",
    ]
    titles: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for topic in TOPICS:
        for name, declared in DECLARED.items():
            if declared.topic == topic:
                titles.setdefault((topic, declared.tasks), []).append(name)
    for (title, tasks), names in titles.items():
        heading = f"## {title}" + (f" ({', '.join(tasks)})" if tasks else "")
        rows = [
            (code(", ".join(by_name[name].opts)), f"`{name}`", plain(by_name[name].help or ""))
            for name in names
        ]
        lines += [heading, table(("shell", "Python", "what it says"), rows)]
    return "\n\n".join(lines) + "\n"


def every_option() -> list[click.Option]:
    """Return the options that are fields, from the command that has them all."""
    score = cli.commands["score"]
    context = click.Context(score, info_name="score")
    return [
        param
        for param in score.get_params(context)
        if isinstance(param, click.Option) and param.name in FIELDS
    ]


def commands() -> str:
    """Format the help of every command."""
    lines = ["# Commands", "What `evalengine COMMAND --help` prints."]
    for name, command in walked(cli, "evalengine"):
        context = click.Context(command, info_name=name, terminal_width=96, max_content_width=96)
        lines += [f"## {name}", f"```text\n{command.get_help(context).rstrip()}\n```"]
    return "\n\n".join(lines) + "\n"


def walked(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group, with the words that call it."""
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from walked(command, f"{path} {name}")


def tables() -> str:
    """List the columns of input tables and output frames."""
    listed = show.schemas_listing((), "text").rstrip().split("\n\n")
    lines = ["# Tables and frames", "What `evalengine schemas` prints."]
    for block in listed:
        title, _, columns = block.partition("\n")
        lines += [f"## {title}", f"```text\n{columns}\n```"]
    return "\n\n".join(lines) + "\n"


def python() -> str:
    """List public names with signature and docstring."""
    lines = ["# Python", "What `import evalengine as ee` has."]
    for name in sorted(set(ee.__all__) - {"__version__"}, key=str.casefold):
        value = getattr(ee, name)
        lines += [f"## {name}", *described(value, name)]
        if inspect.isclass(value) and not issubclass(value, Exception) and name != "Options":
            for inner, member in vars(value).items():
                if callable(member) and not inner.startswith("_") and inspect.getdoc(member):
                    lines += [f"### {name}.{inner}", *described(member, inner)]
    return "\n\n".join(lines) + "\n"


def described(value: Any, name: str) -> list[str]:
    """Return the signature as Python code, and the docstring as Markdown."""
    kind = "class " if inspect.isclass(value) else "def "
    shown = "" if inspect.isclass(value) else f"{spread(inspect.signature(value))}"
    doc = inspect.getdoc(value) or ""
    return [f"```text\n{kind}{name}{shown}\n```", docstring(doc)]


def spread(signature: inspect.Signature) -> str:
    """Format a signature on one line, or one parameter per line if that is too long."""
    text = str(signature).replace("'", "")
    if len(text) <= 80:
        return text
    starred = False
    lines = []
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            lines.append("    *,")
        lines.append(f"    {one},".replace("'", ""))
    end = signature.return_annotation
    back = "" if end is inspect.Signature.empty else f" -> {end}"
    return "(\n" + "\n".join(lines) + f"\n){back}"


def docstring(text: str) -> str:
    """Convert a Google docstring to Markdown: sections become headed lists, examples code."""
    text = re.sub(r":\w+:`~?\.*([^`]+)`", r"`\1`", text).replace("``", "`")
    out: list[str] = []
    for section, lines in sections(text):
        body = inspect.cleandoc("\n" + "\n".join(lines))
        if section:
            out.append(f"**{section}**")
        if section == "Example":
            out.append(f"```pycon\n{body}\n```")
        elif section:
            out.append("\n".join(item(line) for line in body.splitlines()))
        else:
            out.append(body)
    return "\n\n".join(one for one in out if one)


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Split a docstring into headed sections and their lines; unindented text has no heading."""
    title, lines = "", list[str]()
    for line in text.splitlines():
        match = _SECTION.match(line)
        if match or (title and line and not line.startswith(" ")):
            yield title, lines
            title, lines = (match[1], []) if match else ("", [line])
        else:
            lines.append(line)
    yield title, lines


def item(line: str) -> str:
    """Format a line of a section as an item of a list."""
    head, colon, rest = line.partition(": ")
    if line.startswith(" "):
        return f"    {line.strip()}"
    return f"- `{head}`: {rest}" if colon and " " not in head else f"- {line}"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a table whose cells are Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', r'&#124;') for cell in row)} |" for row in lines
    )


def code(names: str | None) -> str:
    """Format names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names.split(", ")) if names else ""


def plain(text: str) -> str:
    """Escape all markup in a text."""
    return re.sub(r"([\\`*_\[\]])", r"\\\1", html.escape(text, quote=False))
