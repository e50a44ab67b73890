# SPDX-License-Identifier: Apache-2.0
"""What an action and its record cost, measured outside of the daemon; bench.py makes rows of it. The provider is a thread here,
which notes when a byte comes."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/cli")]
from acting import Acting  # noqa: E402
from signed_log import Log  # noqa: E402

ORDER = json.dumps({"tenant": "acme", "paid_cents": 1_000_000, "status": "paid"}).encode()


class Shop:
    """Answers reads and effects at once; `posts` has the monotonic nanosecond of the first byte of each effect."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self.socket.getsockname()[1]
        self.posts: list[int] = []
        self.reads = 0
        for _ in range(4):
            threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.one(connection)

    def one(self, connection: socket.socket) -> None:
        data = connection.recv(65536)
        came = time.monotonic_ns()
        if not data.startswith(b"POST"):
            self.reads += 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(ORDER), ORDER))
            return
        self.posts.append(came)
        while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < length_of(data):
            data += connection.recv(65536)
        body = json.dumps({"id": f"re_{came}", "amount": json.loads(data.split(b"\r\n\r\n", 1)[1])["amount"]}).encode()
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def close(self) -> None:
        self.socket.close()


def length_of(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def approvals(host: Acting, shop: Shop, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the POST of a signed decision to the first byte at the provider, and to its own answer."""
    task = host.task()
    host.grant(task, uses=10000)
    rows = [host.pending(task, cents=number + 1) for number in range(rounds + 1)]
    bodies = [host.signed(row["id"]) for row in rows]
    first, whole = [], []
    for row, body in zip(rows, bodies, strict=True):
        before = len(shop.posts)
        began = time.monotonic_ns()
        host.decide(row["id"], body).expect(200)
        ended = time.monotonic_ns()
        assert len(shop.posts) == before + 1
        first.append((shop.posts[-1] - began) / 1e6)
        whole.append((ended - began) / 1e6)
    return first[1:], whole[1:]  # the first is for the caches


# In a sandbox: asks again and again, with as many open as a relay takes, and prints how many were answered with a proposal.
ASK = """
import json, socket, sys, threading, time
base, seconds = int(sys.argv[1]), float(sys.argv[2])
end, done, lock = time.monotonic() + seconds, [0], threading.Lock()
number = iter(range(base, base + 1000000))
def loop():
    while time.monotonic() < end:
        with lock:
            order = next(number)
        s = socket.socket(socket.AF_UNIX)
        s.connect("/run/demilune/propose")
        s.sendall(json.dumps({"operation": "refund", "arguments": {"order_id": str(order), "cents": 1}}).encode())
        s.shutdown(socket.SHUT_WR)
        answer = json.load(s.makefile())
        s.close()
        assert "proposal" in answer, answer
        with lock:
            done[0] += 1
threads = [threading.Thread(target=loop) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(done[0])
"""


def proposals_per_s(host: Acting, sandboxes: int, seconds: float) -> float:
    """Proposals that became pending in a second, each with a read of the system of record, asked for in so many sandboxes at once."""
    asked: list[int] = []
    boxes = []
    for _ in range(sandboxes):
        task = host.task()
        host.grant(task, uses=10000)
        boxes.append(host.daemon.client.create(task=task)["id"])

    def run(number: int, box: str) -> None:
        done = host.daemon.client.exec(box, ["python3", "-c", ASK, str(number * 1_000_000 + 1), str(seconds)], timeout_s=seconds + 60)
        assert done["exit_code"] == 0, done
        asked.append(int(done["stdout"]))

    threads = [threading.Thread(target=run, args=one) for one in enumerate(boxes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for box in boxes:
        host.daemon.client.kill(box)
    assert len(asked) == sandboxes
    return sum(asked) / seconds


def export(path: Path, records: int) -> int:
    """A receipt of a task with so many records, each with its proof in a signed log of as many; how many bytes the longest proof has."""
    digests, rows, previous = [], [], bytes(32)
    for number in range(1, records + 1):
        text = (b'{"data":{"code":0,"kind":"exec","reason":"exited","stderr_seen":0,"stdout_seen":%d,"wall_us":1200},"event":"job.end",'
                b'"job":"ex_0123456789abcdef","seq":%d,"task":"tk_0123456789abcdef","task_seq":%d,"tenant":"acme","ts_ms":1795972751435,'
                b'"v":1}' % (number, number, number))
        digest = hashlib.sha256(b"demilune-audit-v1\0" + previous + text).digest()
        rows.append((previous, digest, text))
        digests.append(digest)
        previous = digest
    log, longest = Log(digests), 0
    with path.open("wb") as file:
        file.write(json.dumps({"export": "demilune-audit-v1", "task": "tk_0123456789abcdef", "audit_key": log.key,
                               "checkpoint": log.note()}).encode() + b"\n")
        for leaf, (before, digest, text) in enumerate(rows):
            proof = "".join(log.inclusion(leaf, log.size)).encode()
            longest = max(longest, len(proof) // 2)
            file.write(b'{"number":%d,"previous":"sha256:%b","digest":"sha256:%b","leaf":%d,"proof":"%b","record":%b}\n'
                       % (leaf + 1, before.hex().encode(), digest.hex().encode(), leaf, proof, text))
    return longest


def verified(build: Path, path: Path, rounds: int) -> list[float]:
    """Milliseconds of the program that checks it, from its start to its end."""
    values = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run([str(build / "src/cli/demilune"), "audit", "verify", str(path)], check=True, capture_output=True)
        values.append((time.perf_counter() - began) * 1000)
    return values
