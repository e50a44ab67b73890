# SPDX-License-Identifier: Apache-2.0
"""Brokered rules: the credential is added behind the gateway, once for each lease; a program sees fields of the answer (research: egress, K)."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import wait_until
from outside import Seen
from world import World

SECRET = "carrier-secret-8c1f"
POLICY = """egress:
  - brokered:
      url: "https://api.carrier.test/v1/track/*"
      methods: [GET]
      credential: carrier
      query: [number]
      response_fields: [status, eta, parcel.weight]
      roots: test
  - brokered: {url: "https://few.carrier.test/**", credential: {secret: carrier, header: X-Api-Key}, response_fields: [status], roots: test, uses: 2}
  - fetch: {url: "https://allowed.test/v1/**"}
"""
ANSWER = {"status": "in transit", "eta": "2026-12-01", "parcel": {"weight": 3, "owner": "somebody"}, "internal": "not for you"}


def said(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\n".encode() + b"".join(line.encode() + b"\r\n" for line in (*lines, f"Content-Length: {len(body)}")) + b"\r\n" + body


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("broker")
    os.chmod(folder, 0o755)
    for path in folder.parents:
        if path != Path("/") and path != Path("/tmp"):
            path.chmod(0o755)
    secrets, trust = folder / "secrets", folder / "trust"
    secrets.mkdir(mode=0o700)
    trust.mkdir(mode=0o755)
    (secrets / "carrier").write_text(SECRET)
    (secrets / "carrier").chmod(0o600)
    names = {"api.carrier.test": ["93.184.216.37"], "few.carrier.test": ["93.184.216.37"], "allowed.test": ["93.184.216.34"]}

    class Brokering(World):
        def prepare(self) -> None:
            (trust / "test.pem").write_bytes(self.outside.authority.pem.read_bytes())

    with Brokering({"test": POLICY}, names, {"actions.secrets": str(secrets), "actions.trust": str(trust)}) as world:
        world.carrier = world.outside.origin("93.184.216.37", 443, tls=["api.carrier.test", "few.carrier.test"])  # type: ignore[attr-defined]
        yield world


@pytest.fixture
def world(made: World) -> Iterator[World]:
    made.carrier.answers = {"*": said(json.dumps(ANSWER).encode(), "Content-Type: application/json")}  # type: ignore[attr-defined]
    made.carrier.forget()  # type: ignore[attr-defined]
    yield made


def curl(world: World, url: str, *more: str, box: str = "") -> tuple[int, str]:
    done = world.client.exec(box or world.box, ["curl", "-sS", "-m", "20", "-w", "\n%{http_code}", *more, url])
    text, _, code = done["stdout"].rpartition("\n")
    return int(code or 0), text + done["stderr"]


def test_a_look_up_gives_its_fields_and_nothing_else(world: World) -> None:
    code, text = curl(world, "https://api.carrier.test/v1/track/88?number=17")
    assert code == 200, text
    assert json.loads(text) in ({"status": "in transit", "eta": "2026-12-01", "parcel.weight": 3}, {"eta": "2026-12-01", "parcel__weight": 3, "status": "in transit"},
                                {"status": "in transit", "eta": "2026-12-01", "parcel": {"weight": 3}})
    data = world.carrier.data  # type: ignore[attr-defined]
    assert data.startswith(b"GET /v1/track/88?number=17 HTTP/1.1\r\n")
    assert f"Authorization: Bearer {SECRET}".encode() in data
    assert SECRET not in text


def test_the_record_has_the_verdict_and_no_secret(world: World) -> None:
    curl(world, "https://api.carrier.test/v1/track/89?number=hidden-value")
    text = json.dumps([*world.records(), *world.records("egress.flow")])
    assert '"api.carrier.test"' in text and "/v1/track/89" in text and "number" in text
    assert "hidden-value" not in text
    assert SECRET not in world.client.request("GET", f"/v1/audit/{world.task}?format=ndjson").expect(200).body.decode()


@pytest.mark.parametrize("field", ["Authorization: Bearer mine", "X-Api-Key: mine", "Cookie: a=b", "x_api_key: mine", "Proxy-Authorization: Basic eDp5"])
def test_K4_K9_a_program_cannot_bring_its_own_credential(world: World, field: str) -> None:
    with world.refused("cred-scope", name="api.carrier.test"):
        code, text = curl(world, "https://api.carrier.test/v1/track/88", "-H", field)
    assert code == 403 and json.loads(text)["code"] == "cred-scope"


@pytest.mark.parametrize(("url", "more", "reasons"), [
    ("https://api.carrier.test/v1/other/88", (), ("path",)),
    ("https://api.carrier.test/v1/track/88/x", (), ("path",)),
    ("https://api.carrier.test/v1/track/88?admin=1", (), ("query",)),
    ("https://api.carrier.test/v1/track/88", ("-X", "POST"), ("method",)),
    ("https://api.carrier.test/v1/track/88", ("-X", "DELETE"), ("method",)),
    ("https://api.carrier.test/v1/track/88", ("-d", "x=1", "-X", "GET"), ("body-limit",)),
    ("http://api.carrier.test/v1/track/88", ("-x", "http://127.0.0.1:3128"), ("scheme", "port")),
])
def test_scheme_port_method_and_path_belong_to_the_credential(world: World, url: str, more: tuple[str, ...], reasons: tuple[str, ...]) -> None:
    with world.refused(reasons, name="api.carrier.test"):
        code, _ = curl(world, url, *more)
    assert code in (400, 403, 413)


def test_K6_a_secrets_name_is_never_replaced_by_its_value(world: World) -> None:
    code, _ = curl(world, "https://api.carrier.test/v1/track/carrier?number=$carrier", "-H", "X-Note: carrier Bearer")
    assert code == 200
    data = world.carrier.data  # type: ignore[attr-defined]
    assert data.count(SECRET.encode()) == 1


def test_I13_D8_a_credential_that_comes_back_is_taken_out(world: World) -> None:
    world.carrier.answers["*"] = said(json.dumps({"status": f"you sent Bearer {SECRET}", "eta": SECRET}).encode(), f"X-Echo: {SECRET}")  # type: ignore[attr-defined]
    code, text = curl(world, "https://api.carrier.test/v1/track/88", "-i")
    assert SECRET not in text, text
    assert code in (200, 502)


def test_a_redirect_of_the_provider_goes_nowhere(world: World) -> None:
    world.carrier.answers["*"] = said(b"{}", f"Location: https://api.carrier.test/v1/track/99?{SECRET}", status="302 Found")  # type: ignore[attr-defined]
    code, text = curl(world, "https://api.carrier.test/v1/track/88", "-i")
    assert world.carrier.data.count(b"GET ") == 1  # type: ignore[attr-defined]
    assert SECRET not in text and "99" not in text
    assert code in (302, 502)


@pytest.mark.parametrize("body", [b"no JSON", b"[1,2]", b'{"status": 1e400}', b'{"status":"a","status":"b"}', b"x" * (1 << 20), b""])
def test_an_answer_that_is_none(world: World, body: bytes) -> None:
    world.carrier.answers["*"] = said(body)  # type: ignore[attr-defined]
    code, text = curl(world, "https://api.carrier.test/v1/track/88")
    assert code in (200, 502) and b"no JSON" not in text.encode() and "xxxx" not in text


def test_a_provider_that_does_not_answer(world: World) -> None:
    def never(sock: socket.socket, seen: Seen, request: bytes) -> None:
        time.sleep(40)

    world.carrier.answers["*"] = never  # type: ignore[attr-defined]
    began = time.monotonic()
    code, _ = curl(world, "https://api.carrier.test/v1/track/88", "-m", "60")
    assert code in (502, 503, 504)
    assert time.monotonic() - began < 45


def test_uses_are_counted_for_the_task(world: World) -> None:
    task, box = world.sandbox("test")
    for n in range(2):
        assert curl(world, f"https://few.carrier.test/{n}", box=box)[0] == 200
    code, text = curl(world, "https://few.carrier.test/3", box=box)
    assert code in (403, 429) and json.loads(text)["code"] == "quota", text
    assert f"X-Api-Key: {SECRET}".encode() in world.carrier.data  # type: ignore[attr-defined]
    again = world.client.request("POST", f"/v1/tasks/{task}/resume").expect(200, 201).json["id"]
    assert curl(world, "https://few.carrier.test/4", box=again)[0] in (403, 429)
    assert world.carrier.data.count(b"GET ") == 2  # type: ignore[attr-defined]


def test_without_the_broker_nothing_goes(world: World) -> None:
    """Killed, it comes again; what is asked meanwhile is refused or waits, and is sent at most once."""
    for pid in world.daemon.by_role("broker"):
        os.kill(pid, signal.SIGSTOP)
    try:
        code, text = curl(world, "https://api.carrier.test/v1/track/88", "-m", "60")
        assert code in (502, 503, 504), text
        assert world.carrier.connections == 0  # type: ignore[attr-defined]
        assert curl(world, "https://allowed.test/v1/x")[0] == 200, "what needs no broker goes on"
    finally:
        for pid in world.daemon.by_role("broker"):
            os.kill(pid, signal.SIGKILL)
    wait_until("a look-up works again", lambda: curl(world, "https://api.carrier.test/v1/track/88")[0] == 200, 20)


def test_a_contained_task_gets_nothing_more(world: World) -> None:
    task, box = world.sandbox("test")
    assert curl(world, "https://api.carrier.test/v1/track/1", box=box)[0] == 200
    done = world.client.request("POST", "/v1/containments", {"scope": f"task:{task}", "reason": "test"})
    assert done.status in (200, 201), done
    wait_until("its sandbox is gone", lambda: world.client.get(box).status == 404, 10)
