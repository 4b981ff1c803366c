"""OpenLineage events of a run, as lines of a file or to a URL: plain JSON, by its spec 2-0-2.

https://openlineage.io/spec/2-0-2/OpenLineage.json. Failures to send are logged and do not stop the
run.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from .._version import __version__
from ..schemas.errors import OptionError
from ..schemas.job import JobOutputs
from .sources import Found, without_secrets
from .verdicts import FAILED, SKIPPED, Verdict

START, COMPLETE, FAIL, ABORT = "START", "COMPLETE", "FAIL", "ABORT"
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
_PRODUCER = f"urn:evalengine:{__version__}"
_SECONDS = 3.0

Send = Callable[[bytes], None]


class Lineage:
    """Events of one run; without a target none are sent.

    Args:
        target: the file relative to the working folder, or the URL; or None.
        warn: called with messages on failures to send.

    Raises:
        OptionError: a URL, and httpx is not installed.
    """

    def __init__(
        self, outputs: JobOutputs, target: str | None, job: str, warn: Callable[[str], None]
    ) -> None:
        self._job = {"namespace": outputs.lineage_namespace, "name": job}
        self._warn = warn
        self._run_id = str(uuid.uuid4())
        self._inputs: list[dict[str, Any]] = []
        self._outputs: list[dict[str, Any]] = []
        self._target = target
        self._send: Send | None = None
        if target is not None:
            self._send = _sender(target, os.environ.get(outputs.lineage_key_env))

    def start(self, found: Found, folder: Path) -> None:
        """The run begins to work on its inputs."""
        self._about(found, folder)
        self._event(START, {})

    def _about(self, found: Found, folder: Path) -> None:
        self._inputs = [
            _dataset(file.path, local=file.stamp is not None)
            for own in found.files.values() for file in own
        ]  # fmt: skip
        self._outputs = [_dataset(str(folder), local=True)]

    def never_began(self, message: str) -> None:
        """Report a run that ends before its inputs are known: they are missing or invalid.

        Also sends START, since an end needs one.
        """
        self._event(START, {})
        self.stop(FAIL, message)

    @property
    def run_id(self) -> str | None:
        """Id of the run in its events; None if none are sent."""
        return None if self._send is None else self._run_id

    def resume(self, run_id: str, found: Found, folder: Path) -> None:
        """Continue for a run that ended before reporting it."""
        self._run_id = run_id
        self._about(found, folder)

    def complete(self, verdicts: Sequence[Verdict]) -> bool:
        """Report that the result exists; gates become assertions on the first input.

        Returns:
            True if it was sent, or if there is no target.
        """
        inputs = [dict(one) for one in self._inputs]
        if verdicts and inputs:
            inputs[0]["inputFacets"] = {
                "dataQualityAssertions": {
                    **_facet("1-0-1", "DataQualityAssertionsDatasetFacet"),
                    "assertions": [
                        {"assertion": f"{one.gate} [{one.row}]" if one.row else one.gate,
                         "success": one.status != FAILED}
                        for one in verdicts if one.status != SKIPPED
                    ],
                }
            }  # fmt: skip
        return self._event(COMPLETE, {}, inputs)

    def stop(self, kind: str, message: str) -> None:
        """Report a run without a result: ``FAIL``, or ``ABORT`` if it was interrupted."""
        facet = {**_facet("1-0-0", "ErrorMessageRunFacet"), "message": message,
                 "programmingLanguage": "python"}  # fmt: skip
        self._event(kind, {"errorMessage": facet})

    def _event(
        self, kind: str, facets: dict[str, Any], inputs: list[dict[str, Any]] | None = None
    ) -> bool:
        if self._send is None:
            return True
        engine = {**_facet("1-1-1", "ProcessingEngineRunFacet"), "version": __version__,
                  "name": "evalengine"}  # fmt: skip
        event = {
            "eventType": kind,
            "eventTime": datetime.now(UTC).isoformat(),
            "run": {"runId": self._run_id, "facets": {"processing_engine": engine, **facets}},
            "job": self._job,
            "inputs": self._inputs if inputs is None else inputs,
            "outputs": self._outputs,
            "producer": _PRODUCER,
            "schemaURL": _SCHEMA,
        }
        try:
            self._send(msgspec.json.encode(event))
        except OSError as error:
            self._warn(f"lineage: {kind} could not be sent to {self._target}: {error}")
            return False
        return True


def _dataset(path: str, *, local: bool) -> dict[str, Any]:
    """A dataset by the naming of https://openlineage.io/docs/spec/naming: store, and path in it."""
    if local:
        return {"namespace": "file", "name": os.path.abspath(path)}
    scheme, _, rest = without_secrets(path).partition("://")
    store, _, name = rest.partition("/")
    return {"namespace": f"{scheme}://{store}", "name": name}


def _facet(version: str, name: str) -> dict[str, str]:
    return {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_FACETS}/{version}/{name}.json#/$defs/{name}",
    }


def _sender(target: str, key: str | None) -> Send:
    if target.startswith(("http://", "https://")):
        return _poster(target, key)
    path = Path(target)

    def add(event: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write at the end of the file: lines of runs side by side stay whole.
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, event + b"\n")
        finally:
            os.close(handle)

    return add


def _poster(url: str, key: str | None) -> Send:
    try:
        import httpx
    except ImportError:
        raise OptionError(
            "outputs.lineage is a URL, which needs httpx: pip install 'evalengine[judge]', or"
            " write to a file."
        ) from None
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"

    def post(event: bytes) -> None:
        try:
            answer = httpx.post(url, content=event, headers=headers, timeout=_SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(str(error) or type(error).__name__) from None
        if answer.status_code >= 400:
            raise OSError(f"HTTP {answer.status_code}")

    return post
