# SPDX-License-Identifier: Apache-2.0
"""The real gateway in a network namespace of its own, between recording neighbours: an engine that keeps verdicts, a dialer that notes each
REACH and connects to an origin of the test's, a broker. So a refusal can be seen from three sides: what was told, that nothing was asked
for, and that the origin heard nothing."""

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wire

BUILD = Path(os.environ.get("DEMILUNE_BUILD", str(Path(__file__).resolve().parents[2] / "build")))
UID = 64190
SANITIZERS = ("ASAN_OPTIONS", "UBSAN_OPTIONS")  # of a build with them: all else of the environment is kept from it
SANITIZED = any(k in os.environ for k in SANITIZERS)  # whose memory is not the program's
BUDGETS = {
    "brokered": 200,
    "bytes_in": 1 << 31,
    "bytes_out": 1 << 26,
    "connections": 10000,
    "handshakes": 5000,
    "names": 100,
    "requests": 20000,
}
Json = dict[str, Any]


def namespace() -> None:
    """Into a network namespace with nothing but loopback and the pool of fake addresses, as a sandbox has."""
    os_unshare = __import__("ctypes").CDLL(None, use_errno=True).unshare
    assert os_unshare(0x40000000) == 0, "this needs root"
    for line in ("link set lo up", "route add local 198.18.0.0/15 dev lo", "-6 route add local fd00:5eed::/64 dev lo"):
        subprocess.run(["ip", *line.split()], check=True)


def fetch(url: str, **more: Any) -> Json:
    scheme, _, rest = url.partition("://")
    where, _, path = rest.partition("/")
    host, _, port = where.partition(":")
    rule: Json = {
        "host": host,
        "kind": "fetch",
        "methods": ["GET", "HEAD"],
        "path": "/" + path,
        "port": int(port) if port else (443 if scheme == "https" else 80),
        "response_max": 8 << 20,
    }
    if scheme == "https":
        rule["tls"] = True
    rule.update(more)
    return rule


def policy(*rules: Json, **more: Any) -> bytes:
    doc: Json = {"budgets": BUDGETS, "name": "test", "rules": list(rules), "v": 1, **more}
    return json.dumps(doc, sort_keys=True, separators=(",", ":")).encode()


def sealed(data: bytes) -> int:
    fd = os.memfd_create("policy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, 0xF)  # F_ADD_SEALS: seal, shrink, grow, write
    return fd


def whole(text: bytes) -> int | None:
    """Bytes of the request that begins here, when all of it is here. The gateway writes it in one form only."""
    head, found, body = text.partition(b"\r\n\r\n")
    if not found:
        return None
    length = 0
    for line in head.split(b"\r\n")[1:]:
        if line == b"Transfer-Encoding: chunked":
            end = body.find(b"0\r\n\r\n")  # bodies of the tests have no such bytes
            return None if end < 0 else len(head) + 4 + end + 5
        if line.startswith(b"Content-Length: "):
            length = int(line[16:])
    return len(head) + 4 + length if len(body) >= length else None


class Origin:
    """A server that notes all it hears, byte for byte, and answers as it is told."""

    def __init__(
        self, answer: Callable[["Origin", socket.socket, bytes], None] | bytes | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.answer = answer if answer is not None else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.tls = tls
        self.heard: list[bytes] = []  # one per connection
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.live: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s: socket.socket) -> None:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        n = len(self.heard)
        self.heard.append(b"")
        self.live.append(s)
        try:
            if self.tls is not None:
                s = self.tls.wrap_socket(s, server_side=True)
            rest = b""
            while True:
                data = s.recv(65536)
                if not data:
                    return
                self.heard[n] += data
                if callable(self.answer):
                    self.answer(self, s, data)
                    continue
                rest += data
                while (size := whole(rest)) is not None:
                    rest = rest[size:]
                    s.sendall(self.answer)
        except OSError:
            pass
        finally:
            s.close()

    def close(self) -> None:
        self.listener.close()
        for s in self.live:
            with contextlib.suppress(OSError):
                s.close()


def say(s: socket.socket, *words: Any, **fields: Any) -> None:
    """To a gateway that may be gone."""
    with contextlib.suppress(OSError):
        wire.send(s, *words, **fields)


def faults(m: Json) -> list[str]:
    """What an engine would lose its gateway for: src/engine/verdict_check.c."""
    found = []
    if not re.fullmatch(r"(/([A-Za-z0-9/._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)?", m["path"]):
        found.append("path " + m["path"])
    if not re.fullmatch(r"[A-Z]*", m["method"]) or not re.fullmatch(r"[a-z0-9.:-]*", m["name"]):
        found.append("method or name " + m["method"] + m["name"])
    if m["query"] and not m["query"].endswith(b"\0"):
        found.append("query")
    if (m["verdict"] == "allowed") != (m["reason"] == "none") or (
        m["verdict"] == "allowed" and (m["rule"] == 0xFFFF or not m["address"] and not brokered(m))
    ):
        found.append(f"{m['verdict']} {m['reason']} {m['rule']} {m['address']}")
    return found


def brokered(m: Json) -> bool:
    """Where it goes is the broker's to know."""
    return bool(m["scheme"] == "https")


class Clock:
    """The gateway's clocks are so many seconds ahead: clock.c."""

    def __init__(self) -> None:
        self.file = tempfile.NamedTemporaryFile(prefix="gateway-clock-")
        self.file.write(bytes(8))
        self.file.flush()
        os.chmod(self.file.name, 0o644)
        self.shared = mmap.mmap(self.file.fileno(), 8)
        self.seconds = 0
        self.environment = {"LD_PRELOAD": str(BUILD / "tests" / "gateway" / "gateway_clock.so"), "GATEWAY_CLOCK": self.file.name}

    def forward(self, seconds: int) -> None:
        self.seconds += seconds
        self.shared[:8] = struct.pack("=q", self.seconds)
        time.sleep(0.1)


class Gateway:
    """One gateway. `to` says where names lead: (name, port) to the port of an origin, or to a reason of the dialer's."""

    def __init__(
        self,
        document: bytes,
        to: dict[tuple[str, int], int | str] | None = None,
        *,
        keep: bool | str = True,
        lend: dict[str, int] | None = None,
        broker: Callable[[Json], Json] | None = None,
        roots: bytes = b"",
        engine: bool = True,
        clock: bool = False,
    ) -> None:
        self.document, self.to, self.keep, self.broker = document, to or {}, keep, broker
        self.lend = {**BUDGETS, **(lend or {})}
        self.over = True
        self.far = "192.0.2.7"  # where the dialer says that it connected to
        self.mute = False  # no more budgets are lent, and nothing is said
        self.slices = 0  # so many requests more are lent each time; 0: all at once
        self.verdicts: list[Json] = []
        self.flows: list[Json] = []
        self.faults: list[str] = []
        self.asks: list[Json] = []  # of budgets: what was used
        self.reaches: list[Json] = []
        self.leases: list[Json] = []
        self.brokered: list[Json] = []
        self.lease_reason = "none"
        self.ready: Json = {}
        self.lock = threading.Condition()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.supervisor = mine
        self.clock = Clock() if clock else None
        self.process = self._start(theirs, self.clock.environment if self.clock else {})
        fd = sealed(document)
        digest = hashlib.sha256(b"demilune-egress-v1\0" + document).digest()
        wire.send(mine, "GATEWAY_POLICY", 0, (fd,), sandbox=b"\1" * 10, policy=digest)
        os.close(fd)
        rules = json.loads(document)["rules"]
        self.listeners: list[socket.socket] = []
        self._listen("dns_udp", 53)
        self._listen("dns_tcp", 53)
        self._listen("proxy", 3128)
        for port in sorted({r["port"] for r in rules}):
            self._listen("port", port)
        with tempfile.NamedTemporaryFile() as file:
            file.write(roots)
            file.flush()
            fd = os.open(file.name, os.O_RDONLY)
            wire.send(mine, "ROOTS", 0, (fd,), name="")
            os.close(fd)
        self.edges: dict[str, socket.socket] = {}
        if engine:
            self.edge("ENGINE", self._engine)
        self.edge("DIALER", self._dialer)
        self.edge("BROKER", self._broker)
        wire.send(mine, "GATEWAY_BEGIN", 0)
        if engine:
            assert self.wait(lambda: bool(self.ready) and bool(self.asks)), "the gateway does not begin"

    @staticmethod
    def _start(theirs: socket.socket, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        def place() -> None:
            os.dup2(theirs.fileno(), 3)

        # As the supervisor starts it: an own uid, with what the jail needs to take all away.
        caps = "+setuid,+setgid,+setpcap"
        start = [
            "setpriv",
            f"--reuid={UID}",
            f"--regid={UID}",
            "--clear-groups",
            f"--inh-caps=-all,{caps}",
            f"--ambient-caps=-all,{caps}",
            f"--bounding-set=-all,{caps}",
        ]
        return subprocess.Popen(
            [*start, BUILD / "src" / "gateway" / "demilune-gateway"],
            stdin=subprocess.DEVNULL,
            preexec_fn=place,
            close_fds=True,
            pass_fds=(3,),
            env={k: os.environ[k] for k in SANITIZERS if k in os.environ} | (environment or {}),
        )

    def _listen(self, kind: str, port: int) -> None:
        udp = kind == "dns_udp"
        proxy = kind == "proxy"
        s = socket.socket(socket.AF_INET if proxy else socket.AF_INET6, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if not proxy:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if udp:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
                s.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
        s.bind(("127.0.0.1" if proxy else "::", port))
        if not udp:
            s.listen(512)
        wire.send(self.supervisor, "LISTENER", 0, (s.fileno(),), kind=kind, port=port)
        s.close()

    def edge(self, name: str, serve: Callable[[socket.socket], None]) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.send(self.supervisor, "GATEWAY_" + name, 0, (theirs.fileno(),))
        theirs.close()
        self.edges[name] = mine
        threading.Thread(target=serve, args=(mine,), daemon=True).start()

    def cut(self, name: str) -> None:
        """That neighbour is gone."""
        self.edges[name].shutdown(socket.SHUT_RDWR)
        self.edges[name].close()

    # ---- neighbours ----

    def _note(self, where: list[Json], m: Json) -> None:
        with self.lock:
            where.append(m)
            self.lock.notify_all()

    def _engine(self, s: socket.socket) -> None:
        while (got := wire.receive(s)) is not None:
            name, tag, m = got
            if name == "GATEWAY_READY":
                with self.lock:
                    self.ready = {**m, "there": True}
                    self.lock.notify_all()
            elif name == "VERDICT":
                self.faults += faults(m)
                self._note(self.verdicts, m)
                if m["verdict"] == "allowed" and self.keep is not None:
                    reason = "none" if self.keep is True else (self.keep or "audit-unavailable")
                    say(s, "VERDICT_KEPT", tag, kept=self.keep is True, reason=reason)
            elif name == "FLOW":
                self._note(self.flows, m)
            elif name == "ALLOTMENT_ASK":
                self._note(self.asks, m["used"])
                total = {**self.lend, "requests": m["used"]["requests"] + self.slices} if self.slices else self.lend
                if not self.mute:
                    say(s, "ALLOTMENT", tag, total=total, over=self.over)
            elif name == "LEASE_ASK":
                self._note(self.leases, m)
                if self.lease_reason:
                    wire.send(s, "LEASE_IS", tag, reason=self.lease_reason, lease=b"\2" * 10)

    def _dialer(self, s: socket.socket) -> None:
        while (got := wire.receive(s)) is not None:
            _, tag, m = got
            self._note(self.reaches, m)
            where = self.to.get((m["host"], m["port"]), "no_name")
            if isinstance(where, str):
                if where != "silent":
                    wire.send(s, "REACH_FAILED", tag, reason=where, text="the test says so")
                continue
            up = socket.create_connection(("127.0.0.1", where))
            up.setblocking(False)
            wire.send(s, "REACHED", tag, (up.fileno(),), address=self.far)
            up.close()

    def _broker(self, s: socket.socket) -> None:
        while (got := wire.receive(s)) is not None:
            _, tag, m = got
            self._note(self.brokered, m)
            if self.broker is not None:
                answer = {"reason": "none", "text": "", "status": 200, "answer": b"{}", **self.broker(m)}
                wire.send(s, "BROKERED_DONE", tag, **answer)

    # ---- what tests say ----

    def wait(self, what: Callable[[], bool], seconds: float = 5) -> bool:
        until = time.monotonic() + seconds
        with self.lock:
            while not what():
                left = until - time.monotonic()
                if left <= 0 or self.process.poll() is not None:
                    return what()
                self.lock.wait(min(left, 0.2))
        return True

    def told(self, reason: str) -> int:
        """Verdicts and counts of this reason."""
        counts: list[int] = [f["count"] for f in self.flows if f["reason"] == reason]
        return len([v for v in self.verdicts if v["reason"] == reason]) + sum(counts)

    def verdict(self, reason: str, seconds: float = 7, *, dns: bool = False) -> Json:
        """The verdict with this reason, that must come; about a question of DNS, or not about one."""

        def found() -> list[Json]:
            return [v for v in self.verdicts if v["reason"] == reason and (v["scheme"] == "dns") == dns]

        assert self.wait(lambda: bool(found()), seconds), (reason, self.verdicts)
        return found()[0]

    def address(self, name: str) -> str:
        """Of a name, as a program learns it. The first budget may be on its way to the gateway still."""
        for _ in range(50):
            code, address = self._resolve(name)
            if code != 2:
                break
            time.sleep(0.01)
        assert address is not None, f"{name} has no address: {code}"
        return address

    @staticmethod
    def _resolve(name: str) -> tuple[int, str | None]:
        query = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
        query += b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0" + struct.pack(">HH", 1, 1)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(5)
        s.sendto(query, ("127.0.0.1", 53))
        answer = s.recv(512)
        s.close()
        return answer[3] & 15, socket.inet_ntoa(answer[-4:]) if answer[7] == 1 else None

    def dial(self, name: str, port: int) -> socket.socket:
        s = socket.create_connection((self.address(name), port), 20)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def proxy(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", 3128), 20)

    def trust(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.ready["certificate"].decode())
        return context

    def dial_tls(self, name: str, port: int = 443, sni: str | None = None) -> ssl.SSLSocket:
        return self.trust().wrap_socket(self.dial(name, port), server_hostname=sni or name)

    def later(self, seconds: int) -> None:
        assert self.clock is not None
        self.clock.forward(seconds)

    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        alive = self.alive()
        self.supervisor.close()
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            code = self.process.wait()
        for s in self.edges.values():
            s.close()
        assert alive and code == 0, f"the gateway ended with {code}"
        assert not self.faults, self.faults


def drain(s: socket.socket, seconds: float = 10) -> tuple[bytes, str]:
    """All that comes, and how it ended: end, reset or open."""
    got = b""
    until = time.monotonic() + seconds
    while True:
        s.settimeout(max(0.01, until - time.monotonic()))
        try:
            data = s.recv(65536)
        except (TimeoutError, ssl.SSLWantReadError):
            return got, "open"
        except (ConnectionResetError, BrokenPipeError, ssl.SSLError, OSError):
            return got, "reset"
        if not data:
            return got, "end"
        got += data


def answer_of(s: socket.socket, seconds: float = 10) -> tuple[int, dict[str, str], bytes]:
    """One answer with a length, or chunked, or up to the end."""
    got = b""
    s.settimeout(seconds)
    while b"\r\n\r\n" not in got:
        data = s.recv(65536)
        if not data:
            raise EOFError(got)
        got += data
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])}
    status = int(lines[0].split()[1])
    if "content-length" in fields:
        while len(body) < int(fields["content-length"]):
            data = s.recv(65536)
            if not data:
                raise EOFError(got)
            body += data
    return status, fields, body


def ready(s: socket.socket, seconds: float) -> bool:
    return bool(select.select([s], [], [], seconds)[0])
