"""What stages are given to know, in files that only a call of the run can vouch for.

Reading a pickle runs what it says. A folder on a disk that several machines share may let others in
whatever its mode says: so a call brings the digest of what it is to read along.
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
    """The thing that was left.

    Args:
        path: of its file.
        digest: as the call brought it, from the process that left it.

    Raises:
        ScratchError: the file is another one.
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
