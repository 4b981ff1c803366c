"""Notebooks as pages: text, code, and the output of the last execution.

MkDocs calls the functions whose names begin with `on_`. Nothing is executed here:
`notebooks/execute.py` does that, and a test fails if outputs are stale.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "notebooks"


def on_config(config: Any) -> Any:
    """Add the pages to the end of the navigation's start."""
    [start] = [part["Start"] for part in config["nav"] if "Start" in part]
    start.append({"Notebooks": [f"notebooks/{path.stem}.md" for path in notebooks()]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and their images to the written ones."""
    from mkdocs.structure.files import File

    for path in notebooks():
        text, pictures = page(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def notebooks() -> list[Path]:
    """Return all notebooks, in the order of their names."""
    return sorted(HERE.glob("*.ipynb"))


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its images by file name."""
    blocks: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        blocks.append(f"```python\n{source}\n```")
        for text, picture in shown(cell["outputs"]):
            if picture:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = picture
                blocks.append(f"![What the code above draws]({name})")
            else:
                blocks.append(f"```text\n{text.rstrip()}\n```")
    blocks.insert(1, f"[The notebook itself]({path.name})")
    return "\n\n".join(blocks) + "\n", pictures


def shown(outputs: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield the text or the image of each output."""
    for output in outputs:
        if "text" in output:
            yield "".join(output["text"]), b""
        elif "image/png" in output["data"]:
            yield "", base64.b64decode("".join(output["data"]["image/png"]))
        else:
            yield "".join(output["data"]["text/plain"]), b""
