# SPDX-License-Identifier: Apache-2.0
"""What a sandbox can use up (research: egress, L, K11): caps, deadlines, budgets; and that its neighbour does not feel it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from daemon import wait_until
from world import POLICY, World

GET = b"GET /v1/x HTTP/1.1\r\nHost: plain.test\r\n\r\n"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    plenty = "budgets: {connections: 1000000, requests: 1000000, names: 10000}\n"
    with World({"test": POLICY + plenty}) as made:
        yield made


@pytest.mark.parametrize("way", ["length", "chunked"])
def test_K11_a_body_above_the_rules_maximum_never_arrives_whole(world: World, way: str) -> None:
    world.plain.forget()
    body = b"x" * ((1 << 20) + 1)
    if way == "length":
        send = b"POST /v1/x HTTP/1.1\r\nHost: plain.test\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    else:
        send = b"POST /v1/x HTTP/1.1\r\nHost: plain.test\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
            b"%x\r\n" % len(body[n:n + 65536]) + body[n:n + 65536] + b"\r\n" for n in range(0, len(body), 65536)) + b"0\r\n\r\n"
    with world.refused("body-limit", verdict=None, silent=False):
        got = world.talk("plain.test", 80, file=send)
    assert got.status == 413 or got.reset
    time.sleep(0.2)
    assert not world.plain.data.endswith(b"0\r\n\r\n"), "a body that was cut was ended cleanly"


@pytest.mark.parametrize(("case", "first", "pause"), [("L1_head", b"GET /v1/x HTTP/1.1\r\nHost: plain.test\r\nX: " + b"a" * 30, 0.5)])
def test_L1_a_slow_head_is_given_up(world: World, case: str, first: bytes, pause: float) -> None:
    began = time.monotonic()
    with world.refused("timeout"):
        got = world.talk("plain.test", 80, *[bytes([b]) for b in first], pause=pause, wait=12)
    assert got.ended
    assert 8 < time.monotonic() - began < 20


def test_L2_connections_have_a_cap_and_others_go_on(world: World) -> None:
    program = ("import socket,time\nk=[]\n"
               "for n in range(600):\n"
               "    s=socket.socket(); s.settimeout(1)\n"
               "    try: s.connect(('plain.test',80))\n"
               "    except OSError: break\n"
               "    k.append(s)\n"
               "print(len(k),flush=True); time.sleep(3)\n")
    _, other = world.sandbox("test")
    thread = threading.Thread(target=world.client.exec, args=(world.box, ["python3", "-c", program]))
    thread.start()
    time.sleep(1)
    try:
        got = world.probe(other, do="talk", host="plain.test", port=80, send=[GET])
        assert got.status == 200
    finally:
        thread.join()
    assert world.talk("plain.test", 80, GET).status == 200, "it does not recover"


def budget(text: str) -> str:
    return POLICY + f"budgets: {{{text}}}\n"


@pytest.mark.parametrize(("text", "command"), [
    ("requests: 8", "for n in $(seq 20); do curl -s -o /dev/null -w '%{http_code} ' http://plain.test/v1/$n; done"),
    ("connections: 8", "for n in $(seq 20); do curl -s -o /dev/null -w '%{http_code} ' http://plain.test/v1/$n; done"),
    ("handshakes: 8", "for n in $(seq 20); do curl -s -o /dev/null -w '%{http_code} ' https://allowed.test/v1/$n; done"),
    ("bytes_out: 4KiB", "for n in $(seq 60); do curl -s -o /dev/null -w '%{http_code} ' http://plain.test/v1/$n; done"),
    ("bytes_in: 4KiB", "for n in $(seq 60); do curl -s -o /dev/null -w '%{http_code} ' http://plain.test/v1/$n; done"),
])
def test_budgets_end_it_and_say_so(text: str, command: str) -> None:
    with World({"test": budget(text)}) as world:
        with world.refused("quota", verdict=None, silent=False):
            done = world.run(command)
        codes = done["stdout"].split()
        assert codes[0] == "200" and codes[-1] != "200", codes
        row = world.client.request("GET", f"/v1/tasks/{world.task}/net").expect(200).json
        assert row["budgets"], row
        # The budget is of the task: a second sandbox of it has no more.
        again = world.client.request("POST", f"/v1/tasks/{world.task}/resume").expect(200, 201).json["id"]
        done = world.run(command, again)
        assert "200" not in done["stdout"].split(), done


def test_the_name_budget() -> None:
    policy = 'egress:\n  - fetch: {url: "http://*.labels.test/**"}\nbudgets: {names: 5}\n'
    with World({"test": policy}) as world:
        done = world.run("for n in $(seq 12); do getent ahostsv4 n$n.labels.test >/dev/null && echo yes || echo no; done")
        answers = done["stdout"].split()
        assert answers.count("yes") == 5 and answers[-1] == "no", answers


def test_a_sandbox_at_its_cap_does_not_slow_another_down(world: World) -> None:
    """Its neighbour's 99th percentile moves by less than twice (and what the machine does by itself)."""
    program = ("import http.client,time\nt=[]\n"
               "c=http.client.HTTPConnection('plain.test')\n"
               "for n in range(400):\n"
               "    b=time.perf_counter(); c.request('GET','/v1/x'); c.getresponse().read(); t.append(time.perf_counter()-b); time.sleep(0.002)\n"
               "t.sort(); print(t[len(t)//2]*1e3, t[len(t)*99//100]*1e3)\n")
    greedy = ("import socket,threading,time\nend=time.time()+9\n"
              "def go():\n"
              "    while time.time()<end:\n"
              "        try:\n"
              "            s=socket.create_connection(('plain.test',80),1); s.sendall(b'GET /v2/x HTTP/1.1\\r\\nHost: plain.test\\r\\n\\r\\n'); s.recv(999); s.close()\n"
              "        except OSError: pass\n"
              "for n in range(16): threading.Thread(target=go).start()\n")
    _, other = world.sandbox("test")

    def measure() -> tuple[float, float]:
        done = world.client.exec(other, ["python3", "-c", program])
        p50, p99 = map(float, done["stdout"].split())
        return p50, p99

    measure()
    # The best of some: what the machine does beside, which is busy, is not what this is about.
    before = min(measure()[1] for _ in range(4))
    busy = threading.Thread(target=world.client.exec, args=(world.box, ["python3", "-c", greedy]))
    busy.start()
    time.sleep(0.5)
    beside = []
    while busy.is_alive():
        beside.append(measure()[1])
    assert len(beside) > 2
    # Sixteen greedy threads take half of this machine's processors whatever the gateway does: the floor is a scheduling slice. The last one was
    # not wholly beside it.
    assert min(beside[:-1]) < 2 * before + 8, (before, beside)


def test_L8_the_record_is_bounded_and_counts_what_it_leaves_out(world: World) -> None:
    """Each kind is recorded once, up to so many kinds; beyond them there is one sum, and nothing is lost of it."""
    task, box = world.sandbox("test")
    program = ("import socket,struct\n"
               "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(5); s.connect(('127.0.0.1',53)); n=0\n"
               "for i in range(2000):\n"
               "    l=b'n%d' % i\n"
               "    s.send(struct.pack('>HHHHHH',i,256,1,0,0,0)+bytes([len(l)])+l+b'\\4evil\\4test\\0'+struct.pack('>HH',1,1))\n"
               "    n+=s.recv(512)[3]&15==3\n"
               "print(n)\n")
    done = world.client.exec(box, ["python3", "-c", program])
    assert done["stdout"] == "2000\n", done

    def counted() -> int:
        rows = [row["data"] for event in ("egress.verdict", "egress.flow", "egress.flows") for row in world.records(event, task)]
        return sum(row.get("count", 1) for row in rows)

    wait_until("all are counted", lambda: counted() == 2000, 5)
    assert len(world.records(task=task)) < 1000


def test_L8_nothing_of_the_request_can_write_into_the_record(world: World) -> None:
    with world.refused(("path", "framing", "url-syntax"), silent=True):
        world.talk("plain.test", 80, b"GET /v1/\x1b[2J\"},{ HTTP/1.1\r\nHost: plain.test\r\nX: \x1b[31m\r\n\r\n")
    text = world.client.request("GET", f"/v1/audit/{world.task}?format=ndjson").expect(200).body
    assert b"\x1b" not in text and b"[2J" not in text
