# SPDX-License-Identifier: Apache-2.0
"""A gateway that was taken over (taken_over.c in its place, obeying a program of its sandbox): it has the names of its own policy, by the dialer,
and nothing else: no name without a rule, no address of the host, no other sandbox, no other gateway, no file."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import daemon
import pytest
from daemon import wait_until
from outside import Zone, in_namespace
from world import World

PLAIN, PRIVATE, HOST, LOCAL, TCP, CARRIER, SLOW = range(7)
POLICY = """egress:
  - fetch: {url: "http://plain.test/v1/**"}
  - fetch: {url: "http://private.test/**"}
  - fetch: {url: "http://host.test/**"}
  - fetch: {url: "http://local.test/**"}
  - tcp: {name: tcp.test, port: 873}
  - brokered: {url: "https://api.carrier.test/v1/*", credential: carrier, response_fields: [status], roots: test}
  - fetch: {url: "http://slow.test/**"}
"""
NAMES = {"plain.test": ["93.184.216.35"], "private.test": ["10.0.0.5"], "host.test": ["192.0.2.1"], "local.test": ["127.0.0.1"], "tcp.test": ["93.184.216.39"],
         "api.carrier.test": ["93.184.216.37"], "evil.test": ["93.184.216.36"], "slow.test": Zone(silent=True)}
AT_EMPTY_PATH, MSG_FASTOPEN = 0x1000, 0x20000000
seccomp = ctypes.CDLL("libseccomp.so.2")


def numbers(enum: str, prefix: str) -> dict[str, int]:
    """The values of an enum as the build made them of proto/."""
    text = (daemon.BUILD / "src/lib/ipc/proto_gen.h").read_text()
    found = re.search(rf"enum {enum} \{{(.*?)\}};", text, re.S)
    assert found is not None
    values, at = {}, 0
    for name, number in re.findall(rf"{prefix}_(\w+)(?: = (\d+))?", found[1]):
        at = int(number) if number else at
        values[name] = at
        at += 1
    return values


MESSAGES, DIAL, REASONS = numbers("msg_type", "MSG"), numbers("dial", "DIAL"), numbers("egress_reason", "EGRESS_REASON")


def message(kind: str | int, body: bytes = b"", tag: int = 1, fds: int = 0, length: int | None = None) -> bytes:
    number = MESSAGES[kind] if isinstance(kind, str) else kind
    return struct.pack(">HHIQ", number, fds, len(body) if length is None else length, tag) + body


def reach(rule: int, host: bytes | str, port: int, timeout_ms: int = 3000) -> bytes:
    host = host.encode() if isinstance(host, str) else host
    return message("REACH", struct.pack(">H256sHI", rule, host, port, timeout_ms))


def counted(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(">I", len(data)) + data


def at(address: str, port: int) -> str:
    """A sockaddr_in6, for a command."""
    six = address if ":" in address else "::ffff:" + address
    return "@" + (struct.pack("<H", socket.AF_INET6) + struct.pack(">HI", port, 0) + socket.inet_pton(socket.AF_INET6, six) + bytes(4)).hex()


class Taken:
    """One sandbox and its gateway, which obeys."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.task, self.box = world.sandbox("test")

    def tell(self, *words: object, wait: float = 5) -> str:
        """What came of the command; empty when there was no answer any more."""
        line = " ".join(word.hex() if isinstance(word, bytes) else str(word) for word in words)
        got = self.world.probe(self.box, do="dns", send=[line.encode()], wait=wait)
        return got.data.decode()

    def call(self, name: str, *args: object, wait: float = 5) -> str:
        return self.tell("call", number_of(name), *args, wait=wait)

    def hear(self, fd: str, ms: int = 4000) -> bytes | str:
        """The next message on that edge; `end` or `timeout`."""
        got = self.tell("hear", fd, ms, wait=ms / 1000 + 3)
        return got if got in ("end", "timeout") or got.startswith("-") else bytes.fromhex(got.partition("|")[0])

    def reach(self, rule: int, host: bytes | str, port: int) -> str:
        assert int(self.tell("say", "dialer", reach(rule, host, port))) > 0
        got = self.hear("dialer")
        if isinstance(got, str):
            return got
        kind = struct.unpack(">H", got[:2])[0]
        return "connected" if kind == MESSAGES["REACHED"] else next(name for name, number in DIAL.items() if number == got[16])

    @property
    def ended(self) -> bool:
        return bool(self.world.client.get(self.box).status == 404)

    def why(self) -> str:
        row = self.world.client.get(self.box, ended=True).json
        return str(row)


def number_of(name: str) -> int:
    number: int = seccomp.seccomp_syscall_resolve_name(name.encode())
    assert number >= 0, name
    return number


def gateways(world: World) -> list[int]:
    return [pid for pid in world.daemon.pids() if os.path.basename(daemon.link(f"/proc/{pid}/exe")) == "demilune-taken-over"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("taken")
    for path in (folder, *folder.parents):
        if path not in (Path("/"), Path("/tmp")):
            path.chmod(0o755)
    secrets, trust = folder / "secrets", folder / "trust"
    secrets.mkdir(mode=0o700)
    trust.mkdir(mode=0o755)
    (secrets / "carrier").write_text("carrier-secret-8c1f")
    (secrets / "carrier").chmod(0o600)

    class Made(World):
        def prepare(self) -> None:
            (trust / "test.pem").write_bytes(self.outside.authority.pem.read_bytes())
            self.instead = {"gateway": daemon.BUILD.resolve() / "tests/egress/demilune-taken-over"}
            self.outside.origin("93.184.216.37", 443, tls=["api.carrier.test"])
            self.outside.origin("93.184.216.39", 873)
            self.outside.origin("10.0.0.5", 80)
            for address in ("127.0.0.1", "192.0.2.1"):
                self.outside.origin(address, 80, host=True)

    with Made({"test": POLICY}, NAMES, {"actions.secrets": str(secrets), "actions.trust": str(trust)}) as made:  # type: ignore[arg-type]
        yield made


@pytest.fixture(scope="module")
def taken(world: World) -> Taken:
    return Taken(world)


@pytest.fixture
def fresh(world: World) -> Taken:
    return Taken(world)


def test_it_obeys_and_the_names_of_its_policy_are_its_own(world: World, taken: Taken) -> None:
    """Else all of the below could fail for another reason."""
    assert {"supervisor", "engine", "dialer", "broker", "dns_udp", "proxy", "policy"} <= {word.partition("=")[0] for word in taken.tell("fds").split()}
    assert taken.call("getpid") != "" and int(taken.call("getpid")) in gateways(world)
    world.plain.forget()
    assert int(taken.tell("say", "dialer", reach(PLAIN, "plain.test", 80))) > 0
    fd = taken.tell("hear", "dialer", 4000).partition("|")[2]
    assert fd.isdigit()
    assert taken.tell("say", fd, b"GET /v2/not-allowed HTTP/1.1\r\nHost: plain.test\r\n\r\n") == "50"
    wait_until("it is there", lambda: b"GET /v2" in world.plain.data, 5)


# ---- the dialer ----


@pytest.mark.parametrize(("rule", "host", "port"), [
    (PLAIN, "evil.test", 80), (PLAIN, "plain.test", 443), (PLAIN, "plain.test", 22), (PRIVATE, "plain.test", 80), (99, "plain.test", 80), (0xffff, "plain.test", 80),
    (PLAIN, "127.0.0.1", 80), (PLAIN, "93.184.216.35", 80), (PLAIN, "::1", 80), (PLAIN, "", 80), (PLAIN, "PLAIN.test", 80), (PLAIN, "plain.test.", 80),
    (PLAIN, "x.plain.test", 80), (PLAIN, "localhost", 80), (TCP, "tcp.test", 80), (TCP, "plain.test", 873), (CARRIER, "api.carrier.test", 443), (PLAIN, "plain.test", 0)])
def test_no_name_without_a_rule(world: World, taken: Taken, rule: int, host: str, port: int) -> None:
    with world.outside.silent():
        assert taken.reach(rule, host, port) == "NOT_LISTED"


@pytest.mark.parametrize(("rule", "host"), [(PRIVATE, "private.test"), (HOST, "host.test"), (LOCAL, "local.test")])
def test_no_address_of_the_host_nor_behind_it(world: World, taken: Taken, rule: int, host: str) -> None:
    for origin in world.outside.origins:
        origin.forget()
    world.resolver.forget()
    assert taken.reach(rule, host, 80) == "ADDRESS"
    assert {name for name, _ in world.resolver.asked} == {host}
    assert [origin.address for origin in world.outside.origins if origin.connections] == []


BROKEN = {
    "no message": b"x", "empty": b"", "unknown type": message(0xffff), "of another edge": message("GATEWAY_READY", bytes(9)), "of the other side": message("REACHED", bytes(64)),
    "too short": message("REACH", bytes(10)), "too long": message("REACH", bytes(300)), "length": message("REACH", bytes(264), length=9),
    "descriptors that are not there": message("REACH", reach(0, "plain.test", 80)[16:], fds=1), "no time": reach(PLAIN, "plain.test", 80, 0),
    "bytes behind the name": reach(PLAIN, b"plain.test\0evil.test", 80), "name without an end": reach(PLAIN, b"a" * 256, 80)}


@pytest.mark.parametrize("what", [name for name in BROKEN if name != "empty"])
def test_who_breaks_the_dialers_protocol_is_lost_alone(world: World, taken: Taken, fresh: Taken, what: str) -> None:
    dialer = world.daemon.by_role("dialer")
    with world.outside.silent():
        fresh.tell("say", "dialer", BROKEN[what])
        assert fresh.hear("dialer") == "end"
    assert taken.reach(PLAIN, "plain.test", 80) == "connected", "another one was lost too"
    assert world.daemon.by_role("dialer") == dialer


def test_descriptors_beside_a_request_are_a_broken_protocol(fresh: Taken) -> None:
    fresh.tell("say", "dialer", reach(PLAIN, "plain.test", 80), "dns_udp")
    assert fresh.hear("dialer") == "end"


def test_it_cannot_use_the_dialer_up(world: World, taken: Taken, fresh: Taken) -> None:
    for _ in range(100):
        if not fresh.tell("say", "dialer", reach(SLOW, "slow.test", 80)).isdigit():
            break
    assert taken.reach(PLAIN, "plain.test", 80) == "connected"


# ---- engine and broker ----


def verdict(rule: int, name: str, port: int, scheme: int = 2, path: str = "/v1/x") -> bytes:
    return message("VERDICT", struct.pack(">BBBHH", 0, 0, scheme, rule, port) + counted(name) + counted("93.184.216.35") + counted("GET") + counted(path) + counted(b"")
                   + bytes(32))


def test_a_broker_that_nobody_leased_sends_nothing(world: World, taken: Taken) -> None:
    with world.outside.silent():
        taken.tell("say", "engine", message("LEASE_ASK", struct.pack(">H", CARRIER) + bytes(32)))
        while isinstance(got := taken.hear("engine"), bytes) and struct.unpack(">H", got[:2])[0] != MESSAGES["LEASE_IS"]:
            pass
        assert isinstance(got, bytes) and got[16] != REASONS["NONE"]
        taken.tell("say", "broker", message("BROKERED", bytes(10) + struct.pack(">H", CARRIER) + counted("api.carrier.test") + counted("/v1/x") + counted(b"")))
        got = taken.hear("broker", 6000)
        assert isinstance(got, bytes) and struct.unpack(">H", got[:2])[0] == MESSAGES["BROKERED_DONE"]
        assert got[16] != REASONS["NONE"]
        assert b"carrier-secret" not in got


@pytest.mark.parametrize("lie", ["a rule that leads elsewhere", "a rule that is none", "no message", "a descriptor"])
def test_lies_to_the_engine_end_the_liar_alone(world: World, taken: Taken, fresh: Taken, lie: str) -> None:
    engine = world.daemon.by_role("engine")
    said = {"a rule that leads elsewhere": verdict(PLAIN, "evil.test", 80), "a rule that is none": verdict(99, "plain.test", 80), "no message": b"x",
            "a descriptor": verdict(PLAIN, "plain.test", 80)}[lie]
    with contextlib.suppress(AssertionError):  # its sandbox may be gone before the probe has ended
        fresh.tell("say", "engine", said, *(["dns_udp"] if lie == "a descriptor" else []))
    wait_until("its sandbox is ended", lambda: fresh.ended, 10)
    assert world.daemon.by_role("engine") == engine
    assert int(taken.call("getpid")) > 0
    assert all(row["name"] != "evil.test" for row in world.verdicts(fresh.task) if row["verdict"] == "allowed")


# ---- the kernel ----


@pytest.mark.parametrize("address", ["192.0.2.1", "192.0.2.2", "10.0.0.5", "169.254.169.254", "93.184.216.34", "93.184.216.53", "8.8.8.8", "2606:4700:4700::1111", "fe80::1"])
def test_datagrams_have_no_way(world: World, taken: Taken, address: str) -> None:
    with world.outside.silent():
        got = taken.call("sendto", "dns_udp", "@78", 1, 0, at(address, 53), 28)
    assert -int(got) in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EINVAL, errno.EADDRNOTAVAIL), got


@contextlib.contextmanager
def listener(pid: int, make: Callable[[], socket.socket]) -> Iterator[socket.socket]:
    sock: socket.socket = in_namespace(pid, make)
    with sock:
        yield sock


def test_its_127_0_0_1_is_that_of_its_sandbox(world: World, taken: Taken) -> None:
    def make() -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 5354))
        return sock

    with listener(world.outside.host, make) as sock:
        with world.outside.silent():
            taken.call("sendto", "dns_udp", "@78", 1, 0, at("127.0.0.1", 5354), 28)
        sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            sock.recv(1)


def test_J9_no_abstract_name_of_the_host(world: World, taken: Taken) -> None:
    """Neither by the gateway, whose sockets are of other families, nor by a program, whose names are of its own namespace."""
    name = f"\0demilune-test-{os.getpid()}"

    def make() -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(name)
        return sock

    address = "@" + (struct.pack("<H", socket.AF_UNIX) + name.encode()).hex()
    for pid in (world.outside.host, os.getpid()):
        with listener(pid, make) as sock:
            got = taken.call("sendto", "dns_udp", "@78", 1, 0, address, 2 + len(name))
            assert -int(got) in (errno.EAFNOSUPPORT, errno.EINVAL), got
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                seen = world.probe(taken.box, do="socket", family=int(socket.AF_UNIX), type=int(kind), at=name)
                assert seen.error in ("ECONNREFUSED", "EPERM", "EACCES"), seen
            sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                sock.recv(1)


def test_it_cannot_signal_another_gateway_nor_a_room(world: World, taken: Taken) -> None:
    own = int(taken.call("getpid"))
    others = [pid for pid in gateways(world) if pid != own]
    assert others
    for pid in (*others[:3], *world.daemon.by_role("engine"), *world.daemon.by_role("broker"), *world.daemon.by_role("dialer")):
        assert -int(taken.call("tgkill", pid, pid, int(signal.SIGABRT))) == errno.EPERM
        for inside in ("ns/net", "fd/3", "root", "mem", "environ"):
            path = f"/proc/{pid}/{inside}\0".encode()
            got = taken.call("newfstatat", -100, "@" + path.hex(), "@" + bytes(144).hex(), AT_EMPTY_PATH)
            if inside not in ("mem", "environ"):  # of which the permissions are seen; there is no call to open them
                assert -int(got) in (errno.EACCES, errno.EPERM, errno.ENOENT), (inside, got)


def test_no_file_that_it_was_given_can_be_written(taken: Taken) -> None:
    assert -int(taken.call("write", "policy", "@78", 1)) in (errno.EPERM, errno.EBADF)
    assert -int(taken.call("write", "roots", "@78", 1)) == errno.EBADF


def test_a_connection_leads_nowhere_else(world: World, taken: Taken) -> None:
    """A name beside the bytes of a connected socket is not looked at."""
    world.plain.forget()
    taken.tell("say", "dialer", reach(PLAIN, "plain.test", 80))
    fd = taken.tell("hear", "dialer", 4000).partition("|")[2]
    for origin in world.outside.origins:
        origin.forget()
    world.resolver.forget()
    taken.call("sendto", fd, "@" + b"GET / HTTP/1.1\r\n\r\n".hex(), 18, 0, at("93.184.216.36", 80), 28)
    wait_until("the server that it is connected to has it", lambda: b"GET" in world.plain.data, 5)
    assert [origin.address for origin in world.outside.origins if origin.connections] == ["93.184.216.35"]


KILLED: dict[str, tuple[object, ...]] = {
    "connect": ("dns_udp", at("192.0.2.1", 53), 28), "bind": ("dns_udp", at("127.0.0.1", 5353), 28), "listen": ("proxy", 1),
    "socket": (2, 1, 0), "socketpair": (1, 1, 0, "@0000000000000000"), "sendto": ("dns_udp", "@78", 1, MSG_FASTOPEN, at("192.0.2.1", 80), 28),
    "openat": (-100, "@2f6574632f70617373776400", 0), "open_by_handle_at": (-100, "@00", 0), "getdents64": ("policy", "@" + "00" * 64, 64), "memfd_create": ("@7800", 0),
    "clone": (17, 0, 0, 0, 0), "execve": ("@2f62696e2f7472756500", 0, 0), "kill": (1, 9), "ptrace": (16, 1, 0, 0), "process_vm_readv": (1, 0, 0, 0, 0, 0),
    "pidfd_open": (1, 0), "pidfd_getfd": (3, 0, 0), "setns": ("proxy", 0x40000000), "unshare": (0x40000000,), "mount": (0, 0, 0, 0, 0), "bpf": (0, "@00", 1),
    "io_uring_setup": (1, "@" + "00" * 120), "keyctl": (0, 0, 0), "shmget": (1, 4096, 0o1000), "setuid": (0,), "chroot": ("@2f00",), "mprotect": (0, 4096, 5)}


@pytest.mark.parametrize("name", KILLED)
def test_any_other_call_is_its_end_and_that_of_its_sandbox(world: World, taken: Taken, fresh: Taken, name: str) -> None:
    with world.outside.silent():
        with contextlib.suppress(AssertionError):
            assert fresh.call(name, *KILLED[name], wait=1) == ""
        wait_until("its sandbox is ended", lambda: fresh.ended, 10)
    assert "gateway_lost" in fresh.why()
    assert int(taken.call("getpid")) > 0, "another one was lost too"
