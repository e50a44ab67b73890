# SPDX-License-Identifier: Apache-2.0
"""One daemon with a loopback listener for all foreign clients, and a tenant's token for them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import place
import pytest
from daemon import Daemon

try:
    sys.path.append(str(place.python_packages()))
except place.NotInstalled as why:
    pytest.exit(str(why), returncode=3)


def caller_of(daemon: Daemon, tenant: str) -> place.Caller:
    made = daemon.client.request("POST", "/v1/me/tokens", {"tenant": tenant, "label": "compat"}).expect(201).json
    return place.Caller(f"http://127.0.0.1:{daemon.port}", made["token"])


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    with Daemon(tcp=True) as running:
        yield running


@pytest.fixture(scope="session")
def caller(daemon: Daemon) -> place.Caller:
    return caller_of(daemon, "compat")


@pytest.fixture(scope="session")
def stranger(daemon: Daemon) -> place.Caller:
    return caller_of(daemon, "stranger")


@pytest.fixture(scope="session")
def npm_folder() -> Path:
    return place.npm_packages()
