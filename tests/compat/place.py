# SPDX-License-Identifier: Apache-2.0
"""Where the foreign clients are and whom they speak as: installed once beside the build, at fixed versions."""

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BUILD = Path(os.environ.get("DEMILUNE_BUILD", "build")).resolve()
PYPI = ("pandastack==0.10.0", "requests==2.32.3", "urllib3==2.2.3")
INSPECT = ("inspect_ai==0.3.285",)
NPM = ("@pandastack/sdk@0.9.0",)
INSTALL_SECONDS = 180


class NotInstalled(Exception):
    """A client could not be had; the sentence says why."""


@dataclass(frozen=True)
class Caller:
    """A token and where to send it."""

    url: str
    token: str


def record(caller: Caller, ticket: str) -> list[dict[str, Any]]:
    """The audit of the newest task of a ticket."""
    asked = urllib.request.Request(
        f"{caller.url}/v1/audit/{ticket}?format=ndjson", headers={"Authorization": f"Bearer {caller.token}"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return [json.loads(line)["record"] for line in answer.read().splitlines()]


def install(what: str, registry: str, commands: list[list[str]], folder: Path, wanted: str) -> None:
    """Runs the commands unless `folder` was completed with the same wishes before."""
    stamp = folder / "complete"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
            code, said = done.returncode, done.stdout + done.stderr
        except (subprocess.TimeoutExpired, OSError) as late:
            code, said = 1, str(late)
        if code != 0:
            raise NotInstalled(
                f"{what} could not be installed from {registry}; these tests need that registry once"
                f" ({' '.join(command)}): {said[-2000:]}"
            )
    stamp.write_text(wanted)


def virtualenv(name: str, packages: tuple[str, ...]) -> Path:
    folder = BUILD / name
    commands = [
        ["/usr/bin/python3", "-m", "venv", str(folder)],
        [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-compile", *packages],
    ]
    install(packages[0], "PyPI", commands, folder, " ".join(packages))
    return folder


def python_packages() -> Path:
    """The folder with the SDK of PyPI, for sys.path."""
    folder = virtualenv("compat-python", PYPI)
    return folder / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def inspect_python() -> Path:
    """The Python in which inspect_ai is installed."""
    return virtualenv("compat-inspect", INSPECT) / "bin/python3"


def npm_packages() -> Path:
    """The folder in which the SDK of npm was installed."""
    folder = BUILD / "compat-npm"
    folder.mkdir(parents=True, exist_ok=True)
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
    commands = [["npm", "install", "--prefix", str(folder), *quiet, *NPM]]
    install(NPM[0], "the npm registry", commands, folder, " ".join(NPM))
    return folder
