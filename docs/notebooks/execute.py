"""Execute the given notebooks, by default all, and write their outputs into them.

``python docs/notebooks/execute.py detection``
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).parent
KEPT = ("text/plain", "image/png")
"""Forms of an output that are kept."""


def executed(path: Path) -> Any:
    """Return a notebook with new outputs and without times."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=300, coalesce_streams=True, resources=where).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if "data" in output:
                output.data = {form: output.data[form] for form in KEPT if form in output.data}
                if "image/png" in output.data:
                    output.data["image/png"] = smaller(output.data["image/png"])
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def smaller(picture: str) -> str:
    """Reduce an image to 64 colours, a quarter of the bytes."""
    made = io.BytesIO()
    whole = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    whole.quantize(64).save(made, "png", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


def printed(notebook: Any) -> list[str]:
    """Return the printed and shown text of the cells of a notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [one["text"] if "text" in one else one["data"]["text/plain"] for one in outputs]


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.ipynb")):
        nbformat.write(executed(HERE / f"{name}.ipynb"), HERE / f"{name}.ipynb")
