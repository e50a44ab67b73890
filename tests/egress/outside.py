# SPDX-License-Identifier: Apache-2.0
"""The world outside of a host, as far as a test needs it: two network namespaces with one link between them, made and ended by the test.

    with Outside() as outside:                                    # Linux, root; nothing of the machine's own network is touched
        names = outside.resolver({"allowed.test": ["93.184.216.34"]})
        site = outside.origin("93.184.216.34", 443, tls=["allowed.test"])
        with Daemon({"dialer.resolvers": RESOLVER, ...}) as daemon: # with daemon.wrap = outside.wrap
            before = outside.packets()
            ...
            assert outside.packets() == before                     # nothing left, not even a question of ARP
            assert names.asked == [] and site.connections == 0

The daemon lives in the namespace `host`, whose only way is the link; the addresses of `outside` are those of servers that the test runs
there, public and private ones alike, so that what is refused would have been answered. All neighbours are static and IPv6 is off on the
link: a packet there is one that the daemon sent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

RESOLVER = "93.184.216.53"
# Where servers may stand: public ones, and those that nothing may ever reach.
ADDRESSES = (RESOLVER, *(f"93.184.216.{n}" for n in range(34, 48)), "10.0.0.5", "100.64.0.1", "169.254.169.254", "168.63.129.16", "198.18.7.7",
             "1.1.1.1")
CLONE_NEWNET = 0x40000000
LINK = ("192.0.2.1", "192.0.2.2")
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
libc = ctypes.CDLL(None, use_errno=True)


def in_namespace(pid: int, work: Callable[[], Any]) -> Any:
    """What `work` returns, run by a thread in the network namespace of that process; sockets that it makes stay there."""
    got: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with open(f"/proc/{pid}/ns/net", "rb") as ns:
                if libc.setns(ns.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            got.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return got[0]


# ---- certificates ----


class Authority:
    """A certificate authority of the test, and leaves of any kind, made with openssl(1)."""

    def __init__(self, folder: Path, name: str = "test roots") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.pem, self.key = folder / "ca.pem", folder / "ca.key"
        self.serial = 0
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(self.key), "-out", str(self.pem),
                "-days", "30", "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def leaf(self, names: Sequence[str], subject: str = "leaf", start: str = "", end: str = "") -> tuple[Path, Path]:
        """Certificate and key. names: DNS names, or "IP:..." and other values of subjectAltName; none: no such extension."""
        self.serial += 1
        base = self.folder / f"leaf{self.serial}"
        key, request, pem, ext = (base.with_suffix(s) for s in (".key", ".csr", ".pem", ".ext"))
        san = ",".join(n if ":" in n else f"DNS:{n}" for n in names)
        ext.write_text("[e]\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n" + (f"subjectAltName={san}\n" if san else ""))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key), "-out", str(request), "-subj", f"/CN={subject}")
        dates = ["-startdate", start, "-enddate", end] if end else []
        if dates:
            database = self.folder / "index.txt"
            database.touch()
            config = self.folder / "ca.cnf"
            config.write_text(f"[ca]\ndefault_ca=d\n[d]\ndatabase={database}\nnew_certs_dir={self.folder}\npolicy=p\nunique_subject=no\n"
                              f"rand_serial=yes\ndefault_md=sha256\n[p]\ncommonName=supplied\n")
            openssl("ca", "-batch", "-config", str(config), "-cert", str(self.pem), "-keyfile", str(self.key), "-in", str(request), "-out", str(pem),
                    "-notext", "-extfile", str(ext), "-extensions", "e", *dates)
        else:
            openssl("x509", "-req", "-in", str(request), "-CA", str(self.pem), "-CAkey", str(self.key), "-set_serial", str(self.serial + 1000),
                    "-days", "20", "-extfile", str(ext), "-extensions", "e", "-out", str(pem))
        return pem, key


def openssl(*args: str) -> None:
    done = subprocess.run(["openssl", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")


# ---- servers ----


@dataclass(eq=False)
class Seen:
    """One connection to an origin, with all bytes that came."""

    peer: str
    origin: Origin
    data: bytearray = field(default_factory=bytearray)
    handshake: str = ""  # why TLS failed

    def note(self, data: bytes) -> None:
        """Bytes on a connection from before the last forget() make it seen again."""
        with self.origin.lock:
            self.data.extend(data)
            if self not in self.origin.seen:
                self.origin.seen.append(self)


Script = Callable[[socket.socket, Seen, bytes], None]


class Origin:
    """A server that keeps every byte and answers as it is told: `answers[path]` is the whole answer, or a function that talks itself."""

    def __init__(self, pid: int, address: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.address, self.port, self.tls = address, port, tls
        self.answers: dict[str, bytes | Script] = {}
        self.greeting: bytes | None = None  # a server that speaks first
        self.seen: list[Seen] = []
        self.lock = threading.Lock()

        def listen() -> socket.socket:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            sock.listen(256)
            return sock

        self.socket: socket.socket = in_namespace(pid, listen)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, peer = self.socket.accept()
                threading.Thread(target=self.serve, args=(sock, str(peer[0])), daemon=True).start()

    def serve(self, sock: socket.socket, peer: str) -> None:
        seen = Seen(peer, self)
        with self.lock:
            self.seen.append(seen)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is not None:
                try:
                    sock = self.tls.wrap_socket(sock, server_side=True)
                except OSError as error:
                    seen.handshake = str(error)
                    return
            if self.greeting is not None:
                sock.sendall(self.greeting)
            with sock:
                while self.exchange(sock, seen):
                    pass

    def exchange(self, sock: socket.socket, seen: Seen) -> bool:
        request = read_request(sock, seen)
        if not request:
            return False
        path = request.split(b" ", 2)[1].split(b"?")[0].decode("latin-1") if request.count(b" ") >= 2 else ""
        answer = self.answers.get(path, self.answers.get("*", OK))
        if callable(answer):
            answer(sock, seen, request)
            return True
        sock.sendall(answer)
        return b"connection: close" not in answer.lower()

    @property
    def connections(self) -> int:
        with self.lock:
            return len(self.seen)

    @property
    def data(self) -> bytes:
        with self.lock:
            return b"".join(bytes(one.data) for one in self.seen)

    def forget(self) -> None:
        with self.lock:
            for one in self.seen:
                one.data.clear()
            self.seen = []

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nfine.\n"


def read_request(sock: socket.socket, seen: Seen) -> bytes:
    """One request with its body, as framed; all bytes are kept."""
    got = bytearray()

    def more() -> bool:
        data = sock.recv(65536)
        seen.note(data)
        got.extend(data)
        return data != b""

    while b"\r\n\r\n" not in got:
        if not more():
            return b""
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while not (body.endswith(b"0\r\n\r\n") and (body == b"0\r\n\r\n" or b"\r\n0\r\n\r\n" in body)):
            if not more():
                return b""
            body = bytes(got).partition(b"\r\n\r\n")[2]
    while len(body) < int(fields.get(b"content-length", b"0") or b"0"):
        if not more():
            return b""
        body = bytes(got).partition(b"\r\n\r\n")[2]
    return bytes(got)


# ---- names ----

Record = tuple[int, bytes]  # type and data
A, NS, CNAME, AAAA = 1, 2, 5, 28


def encode(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split(".")) + b"\0"


def address_record(text: str) -> Record:
    return (AAAA, socket.inet_pton(socket.AF_INET6, text)) if ":" in text else (A, socket.inet_aton(text))


@dataclass
class Zone:
    """What is answered to one name: addresses, or after `cname` those of another; rcode instead; or a function of the call's number."""

    addresses: Sequence[str] = ()
    cname: str = ""
    rcode: int = 0
    silent: bool = False


Answers = Mapping[str, Sequence[str] | Zone | Callable[[int], Zone]]


class Resolver:
    """A name server that keeps every question. `asked`: (name in lower case, type)."""

    def __init__(self, pid: int, answers: Answers) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[str, int]] = []
        self.lock = threading.Lock()

        def sockets() -> tuple[socket.socket, socket.socket]:
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind((RESOLVER, 53))
            tcp = socket.socket()
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((RESOLVER, 53))
            tcp.listen(16)
            return udp, tcp

        self.udp, self.tcp = in_namespace(pid, sockets)
        threading.Thread(target=self.serve_udp, daemon=True).start()
        threading.Thread(target=self.serve_tcp, daemon=True).start()

    def serve_udp(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                data, peer = self.udp.recvfrom(4096)
                answer = self.answer(data)
                if answer:
                    self.udp.sendto(answer, peer)

    def serve_tcp(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.tcp.accept()
                with sock, contextlib.suppress(OSError, struct.error):
                    size = struct.unpack(">H", sock.recv(2))[0]
                    answer = self.answer(sock.recv(size))
                    sock.sendall(struct.pack(">H", len(answer)) + answer)

    def answer(self, query: bytes) -> bytes:
        if len(query) < 17:
            return b""
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1").lower())
            at += 1 + query[at]
        question = query[12:at + 5]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        name = ".".join(labels)
        with self.lock:
            self.asked.append((name, kind))
            calls = self.asked.count((name, kind))
        zone = self.answers.get(name, Zone(rcode=3))
        if callable(zone):
            zone = zone(calls)
        if not isinstance(zone, Zone):
            zone = Zone(zone)
        if zone.silent:
            return b""
        rows: list[tuple[bytes, Record]] = []
        owner = b"\xc0\x0c"
        if zone.cname:
            rows.append((owner, (CNAME, encode(zone.cname))))
            owner = encode(zone.cname)
            target = self.answers.get(zone.cname, ())
            addresses: Sequence[str] = target.addresses if isinstance(target, Zone) else () if callable(target) else target
        else:
            addresses = zone.addresses
        rows += [(owner, r) for r in map(address_record, addresses) if r[0] == kind]
        body = b"".join(o + struct.pack(">HHIH", r[0], 1, 0, len(r[1])) + r[1] for o, r in rows)
        return query[:2] + struct.pack(">HHHHH", 0x8180 | zone.rcode, 1, len(rows), 0, 0) + question + body

    def forget(self) -> None:
        with self.lock:
            self.asked = []

    def close(self) -> None:
        for sock in (self.udp, self.tcp):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


# ---- the two namespaces ----


class Outside:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="demilune-outside-"))
        self.holders: list[subprocess.Popen[bytes]] = []
        self.closing = contextlib.ExitStack()
        self.authority = Authority(self.folder / "ca")
        self.origins: list[Origin] = []
        self.names: Resolver | None = None

    def __enter__(self) -> Outside:
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()

    def holder(self) -> int:
        """A process that does nothing in a network namespace of its own, which ends with it."""
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        self.holders.append(process)
        mine = os.readlink("/proc/self/ns/net")
        for _ in range(500):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{process.pid}/ns/net") != mine:
                    return process.pid
            time.sleep(0.01)
        raise AssertionError("no network namespace")

    def make(self) -> None:
        self.host, self.outside = self.holder(), self.holder()
        for pid in (self.host, self.outside):
            self.command(pid, "sh", "-c", "for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done")
            self.command(pid, "ip", "link", "set", "lo", "up")
        self.command(self.host, "ip", "link", "add", "link0", "address", MACS[0], "type", "veth", "peer", "name", "link0", "address", MACS[1],
                     "netns", str(self.outside))
        for pid, at in ((self.host, 0), (self.outside, 1)):
            self.command(pid, "ip", "address", "add", f"{LINK[at]}/30", "dev", "link0")
            self.command(pid, "ip", "link", "set", "link0", "up")
            self.command(pid, "ip", "neighbour", "add", LINK[1 - at], "lladdr", MACS[1 - at], "dev", "link0", "nud", "permanent")
        self.command(self.host, "ip", "route", "add", "default", "via", LINK[1])
        for address in ADDRESSES:
            self.command(self.outside, "ip", "address", "add", f"{address}/32", "dev", "lo")

    def command(self, pid: int, *words: str) -> None:
        done = subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout.decode(errors='replace')}"

    @property
    def wrap(self) -> str:
        """For Daemon.wrap: it lives in the namespace `host`."""
        return f"nsenter --net=/proc/{self.host}/ns/net"

    def context(self, names: Sequence[str], **leaf: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pem, key = self.authority.leaf(names, **leaf)
        context.load_cert_chain(pem, key)
        return context

    def origin(self, address: str, port: int, tls: Sequence[str] | ssl.SSLContext | None = None, host: bool = False) -> Origin:
        """host: on the daemon's own side, where nothing may be reached either."""
        context = tls if isinstance(tls, ssl.SSLContext) or tls is None else self.context(tls)
        one = Origin(self.host if host else self.outside, address, port, context)
        self.origins.append(one)
        return one

    def resolver(self, answers: Answers) -> Resolver:
        self.names = Resolver(self.outside, answers)
        return self.names

    def packets(self) -> int:
        """That came over the link, from the daemon's side, since the beginning."""
        for line in Path(f"/proc/{self.outside}/net/dev").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name.strip() == "link0":
                return int(rest.split()[1])
        raise AssertionError("the link is gone")

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Whoever leaves this block without an exception knows that nothing left the host: no question, no connection, no packet."""
        for origin in self.origins:
            origin.forget()
        if self.names is not None:
            self.names.forget()
        before = self.packets()
        yield
        assert self.names is None or self.names.asked == [], f"asked of the resolver: {self.names.asked}"
        assert {f"{o.address}:{o.port}": bytes(o.data[:200]) for o in self.origins if o.connections} == {}, "an origin was reached"
        assert self.packets() == before, "packets left"

    def remove(self) -> None:
        for origin in self.origins:
            origin.close()
        if self.names is not None:
            self.names.close()
        for process in self.holders:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(5)
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)
