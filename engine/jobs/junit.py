"""Verdicts as JUnit XML, which CI servers read: a test case a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from ..atomic import whole_file
from ..report.summary import plain
from ..schemas.errors import WriteError
from .showing import named, sentence
from .verdicts import FAILED, SKIPPED, Verdict

_NUMBERS = (
    "value",
    "bound",
    "baseline",
    "interval_of",
    "lower",
    "upper",
    "level",
    "n",
    "support",
    "coverage",
)


def write_junit(
    path: str | Path, verdicts: Sequence[Verdict], name: str, about: Mapping[str, object]
) -> None:
    """Write verdicts to a file, atomically.

    Raises:
        WriteError: the file cannot be written.
    """
    suite = ET.Element(
        "testsuite",
        name=plain(name),
        tests=str(len(verdicts)),
        failures=str(sum(one.status == FAILED for one in verdicts)),
        skipped=str(sum(one.status == SKIPPED for one in verdicts)),
        errors="0",
    )
    _properties(suite, about)
    for one in verdicts:
        case = ET.SubElement(suite, "testcase", classname=plain(name), name=plain(named(one)))
        numbers = {key: getattr(one, key) for key in _NUMBERS}
        _properties(case, {key: value for key, value in numbers.items() if value not in (None, "")})
        said = plain(sentence(one))
        if one.status == FAILED:
            ET.SubElement(case, "failure", message=said, type="gate").text = said
        elif one.status == SKIPPED:
            ET.SubElement(case, "skipped", message=said)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    try:
        with whole_file(path, sweeps=True) as file:
            ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
            file.write(b"\n")
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error}.") from error


def _properties(element: ET.Element, about: Mapping[str, object]) -> None:
    if about:
        group = ET.SubElement(element, "properties")
        for key, value in about.items():
            ET.SubElement(group, "property", name=key, value=plain(str(value)))
