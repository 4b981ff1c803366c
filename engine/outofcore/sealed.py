"""Job parameters on disk, verified by digest.

Unpickling executes code, and a folder on a shared disk may be writable by others whatever its mode
is. So every call brings the digest of the file that it reads.
"""

from __future__ import annotations

import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..schemas.errors import ScratchError


def leave(path: Path, thing: Any) -> str:
    """Write a thing for the stages of a run; the digest that they need to read it."""
    written = pickle.dumps(thing, protocol=5)
    path.write_bytes(written)
    return sha256(written).hexdigest()


def taken(path: Path, digest: str) -> Any:
    """Load a stored object.

    Raises:
        ScratchError: the file has another digest.
    """
    found = path.read_bytes()
    if sha256(found).hexdigest() != digest:
        raise ScratchError(
            f"{path}: not what this run wrote there; somebody else can write to the folder. Name a"
            " scratch folder of your own.",
            code="scratch_unsafe",
            file=str(path),
        )
    return pickle.loads(found)
