# SPDX-License-Identifier: Apache-2.0
"""A daemon of its own for end-to-end tests, a client for it, and proof that it left nothing behind.

    with Daemon() as daemon:              # DEMILUNE_BUILD, DEMILUNE_STATE: where binaries and templates are
        box = daemon.client.create()      # HTTP over the Unix socket, as root: the administrator
        done = daemon.client.exec(box["id"], "id")
        assert done["exit_code"] == 0

Leaving the block sends SIGTERM and raises AssertionError with what is left: processes, control groups, mounts,
namespaces, loop devices, files of the run directory. Every daemon has its own state and run directory, its own uids and
its own control groups, so that several can run beside each other and what is left is known to be its.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

BUILD = Path(os.environ.get("DEMILUNE_BUILD", "build"))
STATE = Path(os.environ.get("DEMILUNE_STATE", "state"))
CGROUPS = ("memory", "pids", "cpu", "cpuacct", "freezer", "")  # controllers of version 1; "" is version 2
NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "user", "cgroup")
NAMESPACE = re.compile(rf"({'|'.join(NAMESPACES)}):\[\d+\]$")
NS_GET_ID = 0x8008B70D
serial = itertools.count()
LANE = int(os.environ.get("DEMILUNE_LANE", "0"))  # 0 or 1, of suites that run beside each other: no two daemons have the same users


def wait_until(what: str, true: Callable[[], Any], within_s: float = 10.0) -> Any:
    """The first true value of `true`; AssertionError when there is none in time."""
    end = time.monotonic() + within_s
    while True:
        value = true()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {within_s} s: {what}")
        time.sleep(0.01)


def read(path: Path | str) -> str:
    """The text of a file of /proc or /sys; empty when it is gone meanwhile."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def link(path: Path | str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


# ---- client ----


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self.path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def expect(self, *statuses: int) -> Answer:
        assert self.status in statuses, f"status {self.status}, wanted {statuses}: {self.body[:600]!r}"
        return self


class Client:
    """The API over the Unix socket; safe for threads (a connection per request)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def request(self, method: str, path: str, body: bytes | Mapping[str, Any] | None = None,
                headers: Mapping[str, str] | None = None, timeout_s: float = 90.0) -> Answer:
        connection = UnixConnection(self.path, timeout_s)
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, sent)  # a refusal may come before all was sent
            got = connection.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            connection.close()

    def create(self, headers: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        fields.setdefault("template", "python")
        answer: dict[str, Any] = self.request("POST", "/v1/sandboxes", fields, headers).expect(200, 201).json
        return answer

    def exec(self, sandbox: str, command: str | list[str], timeout_s: float = 90.0, **fields: Any) -> dict[str, Any]:
        """The whole answer, also of a timeout (504) and of a sandbox that ended meanwhile; `http` is its status."""
        key = "cmd" if isinstance(command, str) else "argv"
        done = self.request("POST", f"/v1/sandboxes/{sandbox}/exec", {key: command, **fields}, timeout_s=timeout_s)
        answer: dict[str, Any] = done.json
        answer["http"] = done.status
        return answer

    def write(self, sandbox: str, path: str, data: bytes, mode: str = "644") -> Answer:
        return self.request("PUT", f"/v1/sandboxes/{sandbox}/fs?path={quote(path, safe='')}&mode={mode}", data)

    def read(self, sandbox: str, path: str) -> Answer:
        return self.request("GET", f"/v1/sandboxes/{sandbox}/fs?path={quote(path, safe='')}")

    def get(self, sandbox: str, ended: bool = False) -> Answer:
        return self.request("GET", f"/v1/sandboxes/{sandbox}" + ("?ended=1" if ended else ""))

    def sandboxes(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self.request("GET", "/v1/sandboxes?limit=200").expect(200).json["items"]
        return answer

    def kill(self, sandbox: str) -> Answer:
        return self.request("DELETE", f"/v1/sandboxes/{sandbox}?proof=1")

    def ready(self) -> bool:
        try:
            return self.request("GET", "/readyz", timeout_s=5).status == 200
        except (OSError, http.client.HTTPException):
            return False


# ---- what a daemon holds on the host ----


def cgroup_here(controller: str) -> Path | None:
    """The directory of our own group in the hierarchy of a version 1 controller, or of version 2."""
    kind = "cgroup" if controller else "cgroup2"
    own = ""
    for line in read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names.split(",") == [controller] or (controller and controller in names.split(",")):
            own = path
    for line in read("/proc/self/mountinfo").splitlines():
        left, right = line.split(" - ")
        root, at = left.split()[3:5]
        fstype, _, options = right.split()[:3]
        if fstype == kind and (not controller or controller in options.split(",")):
            inside = os.path.relpath(own, root) if own.startswith(root.rstrip("/")) else "."
            return Path(at, inside)
    return None


@dataclass
class Holdings:
    """What there is of one daemon: all empty before it starts and after it ended."""

    processes: dict[int, str] = field(default_factory=dict)
    cgroups: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join(f"{kind}: {what}" for kind, what in vars(self).items() if what)


def role(pid: int) -> str:
    """supervisor, engine, api, relay, config; agent for PID 1 of a sandbox, spare for what may become one, else guest."""
    name = os.path.basename(link(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    inside = [line.split()[1:] for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("NSpid:")]
    first = bool(inside) and len(inside[0]) > 1 and inside[0][-1] == "1"
    if name.startswith("demilune-"):
        return "spare" if first else name.removeprefix("demilune-")
    return "agent" if first else "guest"


def namespace_name(path: Path | str) -> str:
    """Kind and identity of a namespace file. Inode numbers are used again soon; Linux 6.18 has numbers that are not."""
    name = link(path)
    if not NAMESPACE.match(name):
        return ""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return name.split(":")[0] + ":" + str(struct.unpack("Q", fcntl.ioctl(fd, NS_GET_ID, bytes(8)))[0])
    except OSError:
        return name
    finally:
        os.close(fd)


def namespaces_of(pid: int) -> set[str]:
    return {namespace_name(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES} - {""}


class Daemon:
    def __init__(self, settings: Mapping[str, str | int] | None = None, tcp: bool = False,
                 build: Path | None = None) -> None:
        self.build = build or BUILD
        self.number = (os.getpid() * 7 + next(serial)) % 95 * 2 + LANE
        self.home = Path(tempfile.mkdtemp(prefix="demilune-test-"))
        self.state, self.run = self.home / "state", self.home / "run"
        self.log_path = self.home / "log"
        self.port = free_port() if tcp else 0
        self.client = Client(self.run / "api.sock")
        self.process: subprocess.Popen[bytes] | None = None
        self.wrap = ""  # a command before the program's own, which it becomes
        self.instead: dict[str, Path] = {}  # programs that the supervisor starts in the place of ours, by room
        self.groups = self.groups_make()
        self.seen_namespaces: set[str] = set()
        self.own_namespaces = namespaces_of(os.getpid())
        self.home.chmod(0o755)
        self.templates_link()
        uid = 1_000_000_000 + 10 * self.number
        self.uids = {room: uid + at for at, room in enumerate(("engine", "api", "relay", "broker", "dialer"))}
        lines: dict[str, str | int] = {
            "state_dir": str(self.state), "run_dir": str(self.run),
            "listen.tcp": f"127.0.0.1:{self.port}" if tcp else "none",
            **{f"uids.{room}": own for room, own in self.uids.items()},
            "uids.sandbox_base": 2_200_000_000 + self.number * 10_000_000, "uids.sandbox_slots": 150,
            "uids.gateway_base": 2_209_900_000 + self.number * 10_000_000,
            "limits.sandboxes": 140, "tenant.sandboxes": 130, "tenant.creates_per_minute": 100_000,
            **(settings or {})}
        (self.home / "demilune.yaml").write_text(yaml(lines))

    def groups_make(self) -> list[Path]:
        """A control group of its own in each hierarchy where that takes nothing away from the daemon."""
        groups = []
        for controller in CGROUPS:
            here = cgroup_here(controller)
            if here is None:
                continue
            wanted = [name for name in read(here / "cgroup.controllers").split() if name in CGROUPS]
            try:  # version 2 gives a controller to children only where the group has no processes of its own
                if wanted:
                    (here / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
            except OSError:
                continue
            group = here / self.home.name
            group.mkdir(exist_ok=True)
            groups.append(group)
        return groups

    def templates_link(self) -> None:
        """The templates of DEMILUNE_STATE: images are linked, not copied, where they are on the same disk."""
        for path in sorted((STATE / "templates").rglob("*")):
            to = self.state / "templates" / path.relative_to(STATE / "templates")
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                to.symlink_to(os.readlink(path))
            elif path.is_file():
                try:
                    to.hardlink_to(path)
                except OSError:
                    shutil.copy2(path, to)

    # ---- life ----

    def start(self) -> None:
        program = f"'{self.build / 'src/supervisor/demilune-supervisor'}'" + (f" --libexec '{self.libexec()}'" if self.instead else "")
        # The shell enters the control groups, then is the supervisor. It dies with the thread that starts it, so that a test
        # run that was killed leaves no daemon; what that had in turn dies with it.
        enter = "".join(f"echo 0 >'{group}/cgroup.procs' && " for group in self.groups)
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", f"{enter}exec setpriv --pdeathsig KILL {self.wrap} {program} --config '{self.home}/demilune.yaml'"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True)
        wait_until("/readyz answers 200", lambda: self.ended() or self.client.ready(), 30)
        if self.ended():
            raise AssertionError(f"the supervisor ended at once:\n{self.log()}")

    def libexec(self) -> Path:
        folder = self.home / "libexec"
        folder.mkdir(exist_ok=True)
        for name in ("config", "engine", "api", "broker", "dialer", "relay", "gateway", "agent"):
            own = self.build / ("guest" if name == "agent" else "src") / name / f"demilune-{name}"
            (folder / own.name).symlink_to(self.instead.get(name, own))
        return folder

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def log(self) -> str:
        return read(self.log_path)

    def stop(self, within_s: float = 15.0) -> int:
        """SIGTERM; the exit code. The caller judges what is left: leaving the `with` block does both."""
        assert self.process is not None
        self.observe()
        if not self.ended():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
            raise AssertionError(f"the supervisor did not end within {within_s} s of SIGTERM:\n{self.log()}") from None

    def __enter__(self) -> Daemon:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            code = self.stop()
            left = self.settled()
            if kind is None:
                assert not left.text(), f"left by the daemon:\n{left.text()}\nits log:\n{self.log()[-4000:]}"
                assert code == 0, f"the supervisor ended with {code}:\n{self.log()[-4000:]}"
        finally:
            self.remove()

    def remove(self) -> None:
        """Takes away what the daemon should have and what the test made; by pid, and only in its own groups."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(5)
        for _ in range(50):
            pids = list(self.pids())
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            if not pids:
                break
            time.sleep(0.02)
        shutil.rmtree(self.home, ignore_errors=True)  # first: groups may be busy for a moment still
        for group in self.groups:
            for path in sorted((p for p in [group, *group.rglob("*")] if p.is_dir()), reverse=True):
                wait_until(f"{path} is empty", partial(removed, path), 2)

    # ---- what there is of it ----

    def pids(self) -> Iterator[int]:
        """Every process in the daemon's own control groups; each once."""
        found: set[int] = set()
        for path in self.group_paths():
            found.update(int(pid) for pid in read(path / "cgroup.procs").split() if pid != "0")
        yield from sorted(found)

    def group_paths(self) -> Iterator[Path]:
        """Its control groups in all hierarchies, those that the test made included; they come and go meanwhile."""
        for group in self.groups:
            for folder, _, _ in os.walk(group):
                yield Path(folder)

    @property
    def supervisor(self) -> int:
        """Its pid. By its role there may be two for a moment: a child that has not become another program yet."""
        assert self.process is not None
        return self.process.pid

    def by_role(self, wanted: str) -> list[int]:
        return [pid for pid in self.pids() if role(pid) == wanted]

    def observe(self) -> None:
        """Remembers the namespaces that there are now, to look for them at the end."""
        for pid in self.pids():
            self.seen_namespaces |= namespaces_of(pid) - self.own_namespaces

    def holdings(self) -> Holdings:
        held = Holdings(processes={pid: role(pid) for pid in self.pids()})
        held.cgroups = [str(path) for path in self.group_paths() if path not in self.groups]
        mine = str(self.home)
        held.mounts = [line for line in read("/proc/self/mountinfo").splitlines() if mine in line]
        held.loops = [str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file") if mine in read(path)]
        held.files = [path.name for path in self.run.iterdir()] if self.run.exists() else []
        held.namespaces = sorted(self.seen_namespaces & namespaces_alive())
        return held

    def settled(self, within_s: float = 3.0) -> Holdings:
        """What is left once the kernel had time to finish: empty, or the same for so long."""
        end = time.monotonic() + within_s
        while True:
            held = self.holdings()
            if not held.text() or time.monotonic() > end:
                return held
            time.sleep(0.05)

    def descriptors(self) -> dict[str, int]:
        """Open descriptors by role, of processes that live as long as the daemon."""
        return {name: len(os.listdir(f"/proc/{pid}/fd"))
                for name in ("supervisor", "engine", "api", "broker", "dialer") for pid in self.by_role(name)}


def removed(group: Path) -> bool:
    """A group is busy until the kernel is through with the last of its processes."""
    with contextlib.suppress(FileNotFoundError):
        try:
            group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
    return True


def namespaces_alive() -> set[str]:
    """Namespaces that any process of the host is in or holds by a descriptor."""
    alive: set[str] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        alive |= namespaces_of(int(entry.name))
        try:
            alive |= {namespace_name(fd) for fd in (entry / "fd").iterdir()}
        except OSError:
            continue
    return alive - {""}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def yaml(lines: Mapping[str, str | int]) -> str:
    """Options "a.b: v" as the nested mapping that demilune.yaml wants."""
    text, section = "", ""
    for name, value in sorted(lines.items(), key=lambda item: ("." in item[0], item[0])):
        group, _, key = name.rpartition(".")
        if group != section:
            text += f"{group}:\n"
            section = group
        text += f"{'    ' if group else ''}{key}: {value}\n"
    return text
