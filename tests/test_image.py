"""The Dockerfile's steps in a temporary root, as far as they run without Docker.

Folders of the image are folders of the root, packages come from this environment instead of an
index, and one task's kernels are compiled. The result is used as ``docker run --read-only`` does:
every file system is read-only but one temporary folder, and the user is not root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
IGNORED = shutil.ignore_patterns(
    *(line.removeprefix("**/") for line in (TOP / ".dockerignore").read_text().split())
)


def steps() -> list[tuple[str, str]]:
    """Return instructions and their arguments, with continued lines joined."""
    text = (TOP / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def variables() -> dict[str, str]:
    """Return the environment of the image."""
    words = [word for name, rest in steps() if name == "ENV" for word in rest.split()]
    return dict(word.split("=", 1) for word in words)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the image's folders, after its steps."""
    root = tmp_path_factory.mktemp("image")
    shutil.copytree(TOP, root / "source", ignore=IGNORED)

    def run(command: str) -> None:
        here = {
            "/opt/": f"{root}/opt/",
            "/source": f"{root}/source",
            "python ": f"{sys.executable} ",
        }
        here |= {"--no-cache-dir": "--no-deps", "warmup": "warmup --task text"}
        for there, place in here.items():
            command = command.replace(there, place)
        around = {name: value.replace("/opt/", f"{root}/opt/") for name, value in env.items()}
        around["PATH"] = os.path.expandvars(around.get("PATH", "$PATH"))
        environment = {**os.environ, **around}
        done = subprocess.run(
            command, shell=True, check=False, env=environment, capture_output=True, text=True
        )
        if "No matching distribution" in done.stderr:
            pytest.skip("no index of packages with setuptools")
        assert done.returncode == 0, done.stderr

    env: dict[str, str] = {}
    for name, rest in steps():
        if name == "ENV":
            env = variables()
        for command in rest.split("&&") if name == "RUN" else ():
            if not command.strip().startswith("useradd"):
                run(command.strip())
            if "-m venv" in command:
                (lib,) = (root / "opt/evalengine/lib").glob("python*/site-packages")
                packages = (path for path in sys.path if path.endswith("packages"))
                (lib / "here.pth").write_text("\n".join(packages))
    return root


@pytest.mark.slow
def test_the_image_scores_read_only_and_without_rights(root: Path) -> None:
    """Nothing is compiled again, and only the temporary folder is written."""
    folder, data = root / "tmp", root / "data"
    folder.mkdir()
    shutil.copytree(TOP / "examples/text", data)
    unshare = shutil.which("unshare")
    outer = [unshare or "", "--map-root-user", "--mount", "sh", "-ec"]
    if unshare is None or subprocess.run([*outer, "true"], check=False).returncode:
        pytest.skip("unshare cannot make a user namespace here")
    kernels = root / "opt/evalengine/kernels"
    before = {file: file.stat().st_mtime_ns for file in kernels.rglob("*.nb*")}
    assert before
    score = f"evalengine score {data}/answers.parquet --metric ROUGE1"
    script = f"""
        mount -t tmpfs tmpfs {folder}
        mount -o remount,ro,bind /
        exec unshare --user --map-user=65534 --map-group=65534 sh -c '
            test $(id -u) = 65534
            ! touch {root}/opt/evalengine/written 2>/dev/null
            {score}'
    """
    around = {name: value.replace("/opt/", f"{root}/opt/") for name, value in variables().items()}
    around["PATH"] = os.path.expandvars(around["PATH"])
    done = subprocess.run(
        [*outer, script],
        env={**os.environ, **around, "TMPDIR": str(folder), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ROUGE1" in done.stdout
    assert "compil" not in done.stderr
    assert {file: file.stat().st_mtime_ns for file in kernels.rglob("*.nb*")} == before
