"""Reading of job files."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tomllib
import zoneinfo
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ..metrics.own import look_in
from ..schemas.errors import OptionError, ReadError, unknown
from ..schemas.job import SHARED, Job, JobInputs, JobOutputs, JobReport
from ..schemas.option_values import make_options, path_of, read_stop_words
from ..schemas.options import FIELDS, Options, explain_foreign_name
from ..schemas.wording import in_python
from .gates import Gate, check_gates, parse_gates
from .verdicts import refuse_workers, with_intervals

# Variables in the texts of a job file: ``{name}``, ``{env.NAME}``, ``{name:otherwise}``.
#
# ``{{`` and ``}}`` are literal braces. Names that are known only later (a partition, the run's
# id) become placeholders, which :func:`filled` replaces.

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}:]*)(?::([^{}]*))?\}|[{}]")
_MARK = re.compile("\x00([^\x00]*)\x00")
_ENVIRONMENT = "env."

Lookup = Callable[[str], str | None]
"""Function from a name to its value, or None."""


def mark(name: str) -> str:
    """Return the placeholder of a variable."""
    return f"\x00{name}\x00"


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text whose marks are replaced."""
    return _MARK.sub(lambda match: values[match[1]], text)


def expanded(text: str, lookup: Lookup, names: Collection[str]) -> str:
    """Replace the variables of a text.

    Raises:
        OptionError: a variable without a value, or an unbalanced brace.
    """

    def value(match: re.Match[str]) -> str:
        token, name = match[0], match[1]
        if token in ("{{", "}}"):
            return token[0]
        if name is None:
            raise OptionError(
                f"{text!r} has a lone {token!r}; write it twice for a brace.",
                code="lone_brace",
                value=token,
            )
        answer = lookup(name)
        if answer is None:
            answer = match[2]
        if answer is None and name.startswith(_ENVIRONMENT):
            raise OptionError(
                f"{text!r}: the environment has no {name[len(_ENVIRONMENT) :]}; set it, or write"
                f" {{{name}:value}} to give a default.",
                code="variable_missing",
                value=name[len(_ENVIRONMENT) :],
            )
        if answer is None:
            raise unknown("variable", name, [*names, "env.NAME"], before=f"{text!r}: ")
        return answer

    return _PLACEHOLDER.sub(value, text)


def dates(now: datetime | None = None) -> dict[str, str]:
    """``today`` and ``yesterday`` as YYYY-MM-DD, by the zone of a time; by UTC without one."""
    now = now or datetime.now(UTC)
    return {
        "today": now.date().isoformat(),
        # Subtract from the date, not the time: days of 23 or 25 hours exist.
        "yesterday": (now.date() - timedelta(days=1)).isoformat(),
    }


def from_environment(name: str) -> str | None:
    """Return the value of ``env.NAME``; None for other names, and if it is not set."""
    if not name.startswith(_ENVIRONMENT):
        return None
    return os.environ.get(name[len(_ENVIRONMENT) :])


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A structure of tables and lists with all its texts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: in_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [in_texts(item, change) for item in value]
    return value


HIDDEN = "(hidden)"
_ONLY_PLACEHOLDERS = re.compile(r"(\{[^{}:]+\})+")
"""Text of only variables: literal text around them, or after a colon, may be the secret."""


def for_records(
    values: Mapping[str, str],
    written: Mapping[str, Any],
    uses: Mapping[str, set[str]],
    secret: Collection[str],
) -> dict[str, str]:
    """Return variables for job.json and history.

    Values from the environment, or used in credentials, are not recorded: such a variable is
    recorded as written in the file, ``{env.NAME}``, or as hidden if the file contains the value
    itself. The same applies to values derived from one.

    Args:
        written: name -> value as written in the file.
        uses: name -> variables in its value; empty if it is literal, or set.
    """
    hidden = {
        key for key, used in uses.items() if any(name.startswith(_ENVIRONMENT) for name in used)
    }
    credentials, todo = {*secret} & {*uses}, [*secret]
    while todo:  # parts of a credential, recursively
        for name in uses.get(todo.pop(), set()) & {*uses} - credentials:
            credentials.add(name)
            todo.append(name)
    hidden |= credentials
    for key, used in uses.items():  # in order: a variable rests on those before it
        if used & hidden:
            hidden.add(key)
    recorded: dict[str, str] = {}
    for key, used in uses.items():
        text = str(written[key])
        if key not in hidden:
            recorded[key] = values[key]
        elif used and (key not in credentials or _ONLY_PLACEHOLDERS.fullmatch(text)):
            recorded[key] = text
        else:
            recorded[key] = HIDDEN
    return recorded


# A job file read: variables replaced, keys and values checked, options and gates made.

LAST = "last"
RUN_ID = "run_id"
_HOW = tuple(
    name for name in ("threads", "memory_limit", "scratch", "client_reads") if name in FIELDS
)
"""Options that change no number."""
_TABLES: dict[str, tuple[str, ...]] = {
    "": Job.__struct_fields__,
    "inputs": JobInputs.__struct_fields__,
    "outputs": JobOutputs.__struct_fields__,
    "report": JobReport.__struct_fields__,
    "options": FIELDS,
}
"""Table of the file -> its keys."""


class LoadedJob(msgspec.Struct, frozen=True):
    """Parsed job, ready to be planned.

    Attributes:
        options: of the file, as ``score`` takes them, with the intervals that gates need.
        variables: name -> value, for records: without the environment's, and without secrets
            (:func:`evalengine.jobs.loading.for_records`).
        earlier: glob of folders of this job's results: ``outputs.folder`` with a star for every
            variable.
        origin: hash of what gates with ``always`` are about: model, tables as written, options.
        moving: whether the folder of the baseline contains a variable.
    """

    job: Job
    path: Path
    options: Options
    gates: tuple[Gate, ...]
    variables: dict[str, str]
    earlier: str
    origin: str = ""
    moving: bool = False

    @property
    def deciding(self) -> Options:
        """Options that determine the numbers, without those on execution."""
        return msgspec.structs.replace(self.options, **dict.fromkeys(_HOW, None))

    def resolve(self, path: str) -> str:
        """A path of the file as seen from the working folder."""
        return path if "://" in path else str(self.path.parent / Path(path).expanduser())

    def matching(self, pattern: str) -> str:
        """A glob of the file as seen from the working folder, whose own name is no pattern."""
        base = Path(glob.escape(str(self.path.parent)))
        return pattern if "://" in pattern else str(base / Path(pattern).expanduser())


def _choices(name: str) -> list[str]:
    """Return the values of a key of a job that has a few of them."""
    section, _, field = name.rpartition(".")
    hint = get_type_hints(JobOutputs if section == "outputs" else Job)[field]
    kinds = [one for one in (hint, *get_args(hint)) if get_origin(one) is Literal]
    return [value for kind in kinds for value in get_args(kind)]


def load_job(path: str | Path, changes: Mapping[str, str] | None = None) -> LoadedJob:
    """Read a job file.

    Args:
        changes: values for its variables (``--set``).

    Raises:
        ReadError: no such file, or not TOML.
        OptionError: an unknown key or variable, or a value of the wrong type.
    """
    path = Path(path)
    raw = _read(path)
    try:
        return _loaded(raw, path, dict(changes or {}))
    except OptionError as error:
        message = in_python(error.message)  # keys of the file have the names of Python
        raise OptionError(f"{path}: {message}", code=error.code, **error.facts) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ReadError(
            f"{path}: {error.strerror or error}.", code="file_missing", file=str(path)
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReadError(
            f"{path} is not TOML: {error}.", code="file_malformed", file=str(path)
        ) from None


def _loaded(raw: dict[str, Any], path: Path, changes: dict[str, str]) -> LoadedJob:
    _check_keys(raw)
    in_texts(raw, _without_nul)
    name, variables = raw.get("name"), raw.get("variables", {})
    if not isinstance(name, str) or not name.strip():
        raise OptionError(
            'name: write the name of the job, such as name = "nightly".',
            code="option_missing",
            option="name",
        )
    assigned, uses = _values(variables, name, changes, raw.get("time_zone"))
    partition = raw.get("inputs", {}).get("partition")
    if not isinstance(partition, str):  # refused below, if it is given
        partition = None
    if partition in variables:
        raise OptionError(
            f"inputs.partition: {partition!r} matches every value on disk; remove it from"
            " [variables], or rename the partition.",
            code="reserved_name",
            value=partition,
        )
    later = {"inputs": partition, "outputs": RUN_ID}
    outputs = raw.get("outputs", {})
    template = outputs.get("folder", JobOutputs().folder)
    texts = {
        key: in_texts(value, _expander(assigned, later.get(key)))
        for key, value in raw.items()
        if key != "variables"
    }
    options = _options(texts, path)
    if isinstance(options.stop_words, str):  # a file, relative to the job file
        file = path.parent / Path(options.stop_words).expanduser()
        options = msgspec.structs.replace(options, stop_words=read_stop_words(str(file)))
    values = {key: value for key, value in texts.items() if key != "options"}
    try:
        job = msgspec.convert(values, Job, strict=True)
        # The default contains {run_id}, which becomes a placeholder as in written texts.
        folder = _expander(assigned, RUN_ID)(template)
    except msgspec.ValidationError as error:
        name = path_of(error)
        choices = ", ".join(_choices(name)) if "enum value" in str(error) else ""
        known = f" Known: {choices}." if choices else ""
        raise OptionError(f"{error}.{known}", code="option_value", option=name) from None
    if not Path(os.path.normpath(folder)).name:
        raise OptionError(
            f"outputs.folder: {folder!r} cannot be replaced; name a folder in it.",
            code="option_value",
            option="outputs.folder",
            value=folder,
        )
    settled = msgspec.structs.replace(job.outputs, folder=folder)
    gates = parse_gates(job.gates, job.fail_if)
    _check_combinations(job, gates)
    _check_nights(job, gates, raw["inputs"]["predictions"], tuple(assigned))
    check_gates(gates, options)
    look_in(str(path.parent.resolve()), options.metrics or ())
    free = (*_HOW, "intervals", "draws", "seed", "method", "metrics")
    same = msgspec.structs.replace(options, **dict.fromkeys(free, None), by=())
    changed = [  # not the others: a release may add some
        (key, value)
        for key in sorted(FIELDS)
        if (value := getattr(same, key)) != getattr(_DEFAULTS, key)
    ]
    written = [raw["inputs"].get(table) for table in _SIDES]
    compared = raw.get("baseline") if _followed(gates) else None
    origin = [name, job.model, repr(changed), written, compared]
    options = with_intervals(options, gates)
    secret: set[str] = set()
    in_texts(raw.get("inputs", {}).get("storage_options"), _expander(assigned, None, secret))
    return LoadedJob(
        job=msgspec.structs.replace(job, outputs=settled),
        path=path,
        options=options,
        gates=gates,
        variables=for_records(assigned, variables, uses, secret),
        earlier=expanded(
            glob.escape(template), lambda key: glob.escape(name) if key == "job" else "*", ()
        ),
        moving=raw.get("baseline") != job.baseline,
        origin=hashlib.sha256(msgspec.json.encode(origin)).hexdigest()[:16],
    )


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise OptionError(
            f"{text!r}: no name of a file has a NUL in it.", code="option_value", value=text
        )
    return text


def _check_combinations(job: Job, gates: tuple[Gate, ...]) -> None:
    """Refuse keys that would have no effect in combination."""
    inputs = job.inputs
    refuse_workers(gates, job.executor)
    speaking = [gate.text for gate in gates if gate.needs_baseline]
    if speaking and job.baseline is None:
        raise OptionError(
            f"gate {speaking[0]!r} speaks of a baseline, and there is none: write"
            ' baseline = "last", or the folder of an earlier result.',
            code="option_missing",
            option="baseline",
        )
    if job.false_alarms is not None and not any(gate.fails and gate.how for gate in gates):
        raise OptionError(
            "false_alarms is shared by conditions of fail_if that end in surely or always, and"
            " there is none.",
            code="option_unread",
            option="false_alarms",
        )
    for key in ("first", "last", "required"):
        if getattr(inputs, key) is not None and inputs.partition is None:
            raise OptionError(
                f"inputs.{key}: only a job with inputs.partition has one.",
                code="option_unread",
                option=f"inputs.{key}",
            )
    if job.address is not None and job.executor not in ("dask", "ray"):
        raise OptionError(
            'address: only executor = "dask" and executor = "ray" have one.',
            code="option_unread",
            option="address",
        )
    if job.executor not in (None, "threads") and inputs.partition is not None:
        raise OptionError(
            "executor: partitions are matched by threads, one after the other; omit executor ="
            f" {job.executor!r} or inputs.partition.",
            code="options_conflict",
            options=["executor", "inputs.partition"],
        )


_DEFAULTS = Options()
_SIDES = ("predictions", "ground_truths", "datums", "partition")


def _followed(gates: tuple[Gate, ...]) -> list[Gate]:
    """Return the gates that compare all nights with a baseline."""
    return [gate for gate in gates if gate.always and gate.needs_baseline]


def _check_nights(
    job: Job, gates: tuple[Gate, ...], predictions: Any, variables: tuple[str, ...]
) -> None:
    """Refuse gates with ``always`` whose nights cannot be told apart, or whose model is unknown."""
    watching = next((gate for gate in gates if gate.always), None)
    if watching is None:
        return
    if job.model is None:
        raise OptionError(
            f"gate {watching.text!r} adds up nights of one model: name it, such as model ="
            ' "{env.MODEL}"; with another model the gate starts anew.',
            code="option_missing",
            option="model",
        )
    moving = _followed(gates)
    if job.baseline == LAST and moving:
        raise OptionError(
            f'gate {moving[0].text!r} is about one baseline, and baseline = "last" is another'
            ' every night: name a folder, such as baseline = "runs/release".',
            code="gate_unfit",
        )
    texts = [predictions] if isinstance(predictions, str) else predictions
    used = {match[1] for text in texts for match in _PLACEHOLDER.finditer(text)}
    if job.inputs.partition is None and not used & {*variables} - {"job"}:
        raise OptionError(
            f"gate {watching.text!r} distinguishes nights by the paths of their tables: write a"
            " variable, such as {date}, into inputs.predictions.",
            code="option_missing",
            option="inputs.predictions",
        )


def _check_keys(raw: Mapping[str, Any]) -> None:
    for table, allowed in _TABLES.items():
        keys = raw.get(table, {}) if table else raw
        if not isinstance(keys, dict):
            raise OptionError(
                f"{table}: write a table, [{table}].", code="wrong_type", option=table
            )
        for key in keys:
            if key not in allowed:
                kind = f"key of [{table}]" if table else "key of a job"
                message = explain_foreign_name(key) if table in ("", "options") else None
                if message and not table:
                    message = f"{message} Write it in [options]."
                message = message or unknown(kind, key, allowed).message
                raise OptionError(message, code="unknown_name", value=key)


def _values(
    variables: Any, name: str, changes: dict[str, str], zone: Any
) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the variables' values: those set, then the file's, which may refer to earlier ones.

    Returns:
        the values, including those of names that every job has; and, per variable of the file, the
        names used in its value.
    """
    if not isinstance(variables, dict) or not all(
        isinstance(value, (str, int, float, date)) and not isinstance(value, bool)
        for value in variables.values()
    ):
        raise OptionError(
            "variables: write a table of names to texts, numbers or dates.",
            code="wrong_type",
            option="variables",
        )
    for key in changes:
        if key not in variables:
            if variables:
                raise unknown("variable", key, variables, before=f"--set {key}: ")
            message = f"--set {key}: the job has no [variables]."
            raise OptionError(message, code="unknown_name", value=key)
    values = {**dates(_now_in(zone)), "job": name}
    uses: dict[str, set[str]] = {}
    for key, value in variables.items():
        if key in values or "." in key or key == RUN_ID:
            raise OptionError(
                f"variables: {key!r} is reserved; choose another name.",
                code="reserved_name",
                value=key,
            )
        uses[key] = set()
        expand = _expander(values, None, uses[key])
        values[key] = changes[key] if key in changes else expand(str(value))
    return values, uses


def _now_in(zone: Any) -> datetime:
    """The time in a zone; UTC unless given."""
    if zone is None:
        return datetime.now(UTC)
    try:
        return datetime.now(zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise OptionError(
            f"time_zone: there is no {zone!r} here; write a name of the IANA database, such as"
            ' "Europe/Berlin", or omit it for UTC.',
            code="option_value",
            option="time_zone",
            value=zone,
        ) from None


def _expander(variables: Mapping[str, str], later: str | None, used: set[str] | None = None) -> Any:
    """Return a function that replaces the variables of a text and adds the names it used to
    ``used``.
    """

    def lookup(key: str) -> str | None:
        if used is not None:
            used.add(key)
        if later is not None and key == later:
            return mark(key)
        return variables[key] if key in variables else from_environment(key)

    names = [*variables, *([later] if later else [])]
    typed: Lookup = lookup
    return lambda text: expanded(text, typed, names)


def _options(texts: Mapping[str, Any], path: Path) -> Options:
    """Parse the options of a file: those of [options], and those at its top.

    A file of thresholds is relative to the job file, and its content counts.
    """
    inner = dict(texts.get("options", {}))
    if isinstance(file := inner.get("thresholds"), str):
        inner["thresholds"] = str(path.parent / Path(file).expanduser())
    outer = {key: texts[key] for key in SHARED if key in texts}
    for key in outer:
        if key in inner:
            raise OptionError(
                f"{key} is both at the top and in [options]; write it once.",
                code="given_twice",
                option=key,
            )
    return make_options({**inner, **outer})
