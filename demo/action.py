# SPDX-License-Identifier: Apache-2.0
"""What stands outside of the sandbox when an agent asks for an action: a provider, the host's catalogue, a person with a key.

The provider is a real HTTP server that keeps its own ledger (tests/provider.py); the person signs with a real ssh-agent. Both
are children of the demo and end with it.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from network import Network

ROOT = Path(__file__).resolve().parents[1]
APPROVER = "anna"
CREDENTIAL = "sk_demo_credential_of_the_shop"


def operations(port: int) -> str:
    """shop.yaml with the port that this provider got."""
    return (ROOT / "demo/shop.yaml").read_text().replace("127.0.0.1:7421", f"127.0.0.1:{port}")


class Shop:
    """The provider, and what it says has happened."""

    def __init__(self, directory: Path):
        self.directory = directory
        directory.mkdir()
        self.process = subprocess.Popen(
            ["/usr/bin/python3", str(ROOT / "tests/provider.py"), "--dir", str(directory)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[1])

    def effects(self) -> list[dict[str, Any]]:
        path = self.directory / "effects"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def next_time(self, script: str) -> None:
        (self.directory / "script").write_text(script + "\n")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Person:
    """Anna, with a key in an ssh-agent that nobody but her reaches."""

    def __init__(self, directory: Path):
        directory.mkdir(mode=0o700)
        self.key = directory / "id_ed25519"
        self.socket = directory / "agent"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", APPROVER, "-f", str(self.key)], check=True)
        self.process = subprocess.Popen(["ssh-agent", "-D", "-a", str(self.socket)], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it listens now
        subprocess.run(["ssh-add", "-q", str(self.key)], check=True, env=self.environment())

    def environment(self) -> dict[str, str]:
        return dict(os.environ) | {"SSH_AUTH_SOCK": str(self.socket)}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class Outside:
    """Provider, catalogue, secret, approver and network of the demo's daemon."""

    def __init__(self, build: Path):
        # Not below the state directory: what the host trusts is nothing that its processes write.
        self.directory = directory = Path(tempfile.mkdtemp(prefix="demilune-demo-"))
        self.program = build / "src/cli/demilune"
        self.shop = Shop(directory / "shop")
        self.person = Person(directory / "anna")
        for name, mode in (("operations.d", 0o755), ("secrets", 0o700), ("trust", 0o755)):
            (directory / name).mkdir(mode=mode)
        (directory / "operations.d" / "shop.yaml").write_text(operations(self.shop.port))
        secret = directory / "secrets" / "shop"
        secret.touch(mode=0o600)
        secret.write_text(CREDENTIAL + "\n")
        self.network = Network(directory / "network", directory / "trust", directory / "secrets")
        subprocess.run(
            [str(self.program), "approver", "enrol", "--trust", str(directory / "trust"), "--key", f"{self.person.key}.pub",
             "--name", APPROVER, "--may", "refund", "--role", "support,release", "--up-to", "cents=5000"],
            check=True, stdout=subprocess.DEVNULL,
        )

    def settings(self) -> str:
        """The parts of demilune.yaml that are about actions and egress."""
        return (
            f"actions:\n  operations: {self.directory}/operations.d\n  secrets: {self.directory}/secrets\n"
            f"  trust: {self.directory}/trust\n" + self.network.settings()
        )

    def stop(self) -> None:
        self.person.stop()
        self.shop.stop()
        self.network.stop()
        shutil.rmtree(self.directory)
