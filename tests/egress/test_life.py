# SPDX-License-Identifier: Apache-2.0
"""Policies that change under a request (research: egress, L11), and servers that stop in the middle (L9)."""

from __future__ import annotations

import base64
import json
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from daemon import wait_until
from outside import OK, Seen
from world import Got, World

V1 = 'egress:\n  - fetch: {url: "http://plain.test/v1/**", methods: [GET, POST], request_max: 1MiB}\n  - fetch: {url: "http://gone.test/v1/**", methods: [POST], request_max: 1MiB}\n'
V2 = 'egress:\n  - fetch: {url: "http://plain.test/v2/**"}\n'


@pytest.fixture
def world() -> Iterator[World]:
    with World({"test": V1}, {"plain.test": ["93.184.216.35"], "gone.test": ["93.184.216.38"]}) as made:
        yield made


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: plain.test\r\n\r\n".encode()


class Asked:
    """A request on its way, by a program that nobody waits for: the call that started it may be lost with the engine."""

    def __init__(self, world: World, box: str, send: bytes, wait: float, name: str = "plain.test") -> None:
        self.world, self.box, self.began = world, box, time.monotonic()
        world.client.write(box, "/workspace/send", send).expect(200, 201, 204)
        ask = json.dumps({"do": "talk", "host": name, "port": 80, "file": "/workspace/send", "wait": wait, "most": 1 << 24})
        command = f"python3 /workspace/probe.py '{ask}' >/workspace/came && mv /workspace/came /workspace/got"
        self.thread = threading.Thread(target=world.client.exec, args=(box, command))
        self.thread.start()

    def join(self, within_s: float = 60) -> Got:
        done = wait_until("its answer", lambda: self.world.client.ready() and (a := self.world.client.read(self.box, "/workspace/got")).status == 200 and a, within_s)
        self.took = time.monotonic() - self.began
        self.thread.join()
        said = json.loads(done.body)
        return Got(base64.b64decode(said.pop("data")), **said)


def reload(world: World, **policies: str | None) -> None:
    folder = world.outside.folder / "policy.d"
    for name, text in policies.items():
        if text is None:
            (folder / f"{name}.yaml").unlink()
        else:
            (folder / f"{name}.yaml").write_text(text)
    before = len(world.daemon.log())
    assert world.daemon.process is not None
    world.daemon.process.send_signal(signal.SIGHUP)
    wait_until("they are read", lambda: "from now on" in world.daemon.log()[before:] or "stay" in world.daemon.log()[before:], 10)
    wait_until("the daemon is ready again", world.daemon.client.ready)


def status(world: World, box: str, path: str) -> int:
    return world.probe(box, do="talk", host="plain.test", port=80, send=[get(path)], wait=1).status


@pytest.mark.parametrize("change", ["another rule", "no policy of that name"])
def test_L11_a_sandbox_keeps_the_policy_that_it_began_with(world: World, change: str) -> None:
    go_on = threading.Event()

    def halves(sock: socket.socket, seen: Seen, request: bytes) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfirst ")
        assert go_on.wait(30)
        sock.sendall(b"second")

    world.plain.answers["/v1/slow"] = halves
    digest = [row["data"]["policy"] for row in world.records()]
    asked = Asked(world, world.box, get("/v1/slow"), 6)
    wait_until("the server has it", lambda: b"/v1/slow" in world.plain.data, 5)
    reload(world, test=V2 if change == "another rule" else None)
    go_on.set()
    got = asked.join()
    assert got.status == 200 and got.data.endswith(b"first second"), "the request did not go on"
    # Engine and dialer are new ones; the rules of this sandbox are not.
    assert status(world, world.box, "/v1/x") == 200
    with world.refused("path"):
        assert status(world, world.box, "/v2/x") == 403
    assert len({row["data"]["policy"] for row in world.records()} | set(digest)) == 1
    if change == "another rule":
        task, box = world.sandbox("test")
        assert status(world, box, "/v2/x") == 200
        assert status(world, box, "/v1/x") == 403
        assert {row["data"]["policy"] for row in world.records(task=task)}.isdisjoint({row["data"]["policy"] for row in world.records()})
    else:
        assert world.client.request("POST", "/v1/sandboxes", {"template": "python", "policy": "test"}).status in (400, 404, 422)
    assert status(world, world.box, "/v1/x") == 200


def test_L11_a_file_that_is_none_changes_nothing(world: World) -> None:
    folder = world.outside.folder / "policy.d"
    (folder / "test.yaml").write_text("egress:\n  - fetch: {url: 7}\n")
    before = len(world.daemon.log())
    assert world.daemon.process is not None
    world.daemon.process.send_signal(signal.SIGHUP)
    wait_until("it is said", lambda: "test.yaml" in world.daemon.log()[before:], 10)
    wait_until("the daemon is ready", world.daemon.client.ready)
    _, box = world.sandbox("test")
    assert status(world, box, "/v1/x") == 200 and status(world, world.box, "/v1/x") == 200


def test_L9_a_storm_of_resets(world: World) -> None:
    def reset(sock: socket.socket, seen: Seen, request: bytes) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        raise OSError

    world.plain.answers["*"] = reset
    done = world.run("for n in $(seq 100); do curl -s -o /dev/null -w '%{http_code} ' http://plain.test/v1/$n; done")
    assert set(done["stdout"].split()) == {"502"}, done
    world.plain.answers["*"] = OK
    assert status(world, world.box, "/v1/x") == 200


def test_L9_servers_that_take_nothing(world: World) -> None:
    """One never reads; the address of another is taken away in the middle of an upload, so that nothing comes, no end, no reset. Others go on."""
    gone = world.outside.origin("93.184.216.38", 80)
    over = threading.Event()

    def exchange(sock: socket.socket, seen: Seen) -> bool:
        first = sock.recv(1024)
        seen.note(first)
        if first.startswith(b"POST"):
            over.wait(60)
        elif first:
            sock.sendall(OK)
        return False

    uploads = []
    for origin, name in ((world.plain, "plain.test"), (gone, "gone.test")):
        origin.exchange = exchange  # type: ignore[method-assign]
        origin.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        task, box = world.sandbox("test")
        head = f"POST /v1/up HTTP/1.1\r\nHost: {name}\r\nContent-Length: 1048576\r\n\r\n".encode()
        uploads.append((task, Asked(world, box, head + b"x" * 1048576, 50, name)))
    wait_until("they are on their way", lambda: b"POST" in world.plain.data and b"POST" in gone.data, 10)
    world.outside.command(world.outside.outside, "ip", "address", "del", f"{gone.address}/32", "dev", "lo")
    try:
        assert status(world, world.box, "/v1/x") == 200
        for task, upload in uploads:
            got = upload.join()
            assert 25 < upload.took < 50
            assert got.status in (0, 504) and (got.ended or got.reset)
            assert [row["verdict"] for row in world.verdicts(task) if row["reason"] == "timeout"] == ["aborted"]
            assert status(world, upload.box, "/v1/x") == 200
    finally:
        over.set()
        world.outside.command(world.outside.outside, "ip", "address", "add", f"{gone.address}/32", "dev", "lo")
