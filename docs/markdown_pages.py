"""Every page as Markdown next to its HTML, and `llms.txt` and `llms-full.txt` for language models.

`llms.txt` lists the pages with their first sentence, as llmstxt.org describes. `llms-full.txt`
contains the text of all pages but those of the sections in `OPTIONAL`. MkDocs calls the functions
whose names begin with `on_`; `files` needs no MkDocs.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any, NamedTuple

OPTIONAL = ("Benchmarks", "Decisions")
_LINK = '<link rel="alternate" type="text/markdown" href="{}">'
_MATH = re.compile(r'<math alttext="([^"]*)".*?</math>', re.S)
_BLOCK = re.compile(r"^```.*?^```$", re.S | re.M)
_SENTENCE = re.compile(r"([^:]+?[.?])(?:\s|$)", re.S)

_texts: dict[str, str] = {}
_sections: list[tuple[str, Any]] = []


class Page(NamedTuple):
    """Page of the site: its section, address and Markdown, which begins with its title."""

    section: str
    address: str
    text: str


def on_nav(nav: Any, **_: Any) -> None:
    """Remember the order of the navigation."""
    _texts.clear()
    _sections[:] = [(section_of(page), page) for page in nav.pages]


def section_of(page: Any) -> str:
    """Return the title of the page's section, or of an optional section below it."""
    titles = [one.title for one in page.ancestors]
    return next((one for one in titles if one in OPTIONAL), titles[-1])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Remember the Markdown of a page."""
    _texts[page.file.src_uri] = markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Link to the Markdown of a page in its head."""
    name = Path(page.file.src_uri).name
    return output.replace("</head>", f"{_LINK.format(name)}</head>", 1)


def on_post_build(config: Any) -> None:
    """Write all files into the site."""
    addresses = [(section, page.file.src_uri) for section, page in _sections]
    pages = [Page(section, address, _texts[address]) for section, address in addresses]
    for address, text in files(config["site_name"], config["site_description"], pages).items():
        path = Path(config["site_dir"], address)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def files(name: str, description: str, pages: list[Page]) -> dict[str, str]:
    """Return address of each file -> text."""
    texts = {page.address: _MATH.sub(tex, page.text) for page in pages}
    lists: dict[str, list[str]] = {}
    full = []
    for section, address, text in pages:
        title = text.partition("\n")[0].removeprefix("# ")
        lists.setdefault("Optional" if section in OPTIONAL else section, []).append(
            f"- [{title}]({address}){first_sentence(text)}"
        )
        if section not in OPTIONAL:
            full.append(f"<!-- {address} -->\n\n{texts[address].strip()}\n")
    head = f"# {name}\n\n> {description}\n\n- [All pages but the optional ones](llms-full.txt)\n"
    lines = [f"## {section}\n\n" + "\n".join(lines) + "\n" for section, lines in lists.items()]
    return {"llms.txt": "\n".join([head, *lines]), "llms-full.txt": "\n".join(full), **texts}


def tex(formula: re.Match[str]) -> str:
    """Return a formula of MathML as TeX."""
    return f"${html.unescape(formula[1])}$"


def first_sentence(text: str) -> str:
    """Return the first sentence after a colon, on one line without links; empty if none."""
    parts = re.split(r"\n\s*\n", _BLOCK.sub("", text).strip())
    prose = next((part for part in parts if not re.match(r"\s*([#|<*!-]|\[The)", part)), "")
    match = _SENTENCE.match(prose.strip())
    told = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(match[1].split())) if match else ""
    return f": {told}" if told else ""
