# SPDX-License-Identifier: Apache-2.0
"""What the demo sees of the host, from outside of every sandbox: taken before, during and after the story."""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# Files that a program which got out would change first.
WATCHED = (
    "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/sudoers", "/etc/crontab", "/etc/cron.d", "/etc/ld.so.preload",
    "/etc/profile", "/etc/profile.d", "/etc/hosts", "/etc/resolv.conf", "/var/spool/cron", "/root", "/usr/local/bin",
    "/usr/bin/python3", "/usr/lib/python3/dist-packages", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
)  # fmt: skip

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "user", "cgroup")


def digest_of(path: str) -> str:
    """A file by its bytes, a directory by the names in it; "" where nothing is."""
    try:
        if os.path.isdir(path):
            data = "\0".join(sorted(os.listdir(path))).encode(errors="surrogateescape")
        else:
            data = Path(path).read_bytes()
    except OSError:
        return ""
    return hashlib.sha256(data).hexdigest()


def mounts() -> frozenset[str]:
    """Point, type and source of each mount of this namespace."""
    found = set()
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        found.add(" ".join([left.split()[4], *right.split()[:2]]))
    return frozenset(found)


def loops() -> frozenset[str]:
    return frozenset(str(p) for p in Path("/sys/block").glob("loop*/loop/backing_file"))


def adopt() -> None:
    """From now on every orphan among our descendants becomes our child: what the daemon left behind is ours to see."""
    set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(root: int) -> dict[int, str]:
    """pid → name of each process below `root`, at any depth; those that only wait to be reaped are not meant."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # "pid (name) state parent ...": the name may hold anything.
                name, _, rest = Path("/proc", entry, "stat").read_text(errors="replace").rpartition(")")
                state, parent = rest.split()[:2]
                if state != "Z":
                    names[int(entry)], parents[int(entry)] = name.partition("(")[2], int(parent)
    found = {root}
    while grown := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= grown
    return {pid: names[pid] for pid in sorted(found - {root})}


def listening(pids: Iterable[int]) -> frozenset[str]:
    """Addresses and named sockets of this network namespace on which one of the processes waits for strangers."""
    held = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    held.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    found = set()
    for protocol, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with contextlib.suppress(OSError):
            for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
                word = line.split()
                if word[3] == state and f"socket:[{word[9]}]" in held:
                    found.add(f"{protocol} {word[1]}")
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]:
        word = line.split(maxsplit=7)
        if len(word) == 8 and int(word[3], 16) & 0x10000 and f"socket:[{word[6]}]" in held:
            found.add(f"unix {word[7]}")
    return frozenset(found)


@dataclass(frozen=True)
class Snapshot:
    mounts: frozenset[str] = field(default_factory=mounts)
    loops: frozenset[str] = field(default_factory=loops)
    files: tuple[str, ...] = field(default_factory=lambda: tuple(digest_of(path) for path in WATCHED))

    def differences(self, later: "Snapshot") -> list[str]:
        found = []
        for what in ("mounts", "loops"):
            before, after = getattr(self, what), getattr(later, what)
            found += [f"{what}: new: {item}" for item in sorted(after - before)]
            found += [f"{what}: gone: {item}" for item in sorted(before - after)]
        pairs = zip(WATCHED, self.files, later.files, strict=True)
        return found + [f"{path} has changed" for path, before, after in pairs if before != after]


@dataclass(frozen=True)
class Place:
    """The kernel objects of one living sandbox, by the host pid of its PID 1."""

    namespaces: frozenset[str]  # of it alone
    cgroups: frozenset[Path]


def namespace_of(path: str) -> str:
    """A namespace by its file, "" if it is none. Numbers of inodes are soon used again; Linux 6.18 has a second one that is not."""
    ns_get_id = 0x8008B70D
    name = os.readlink(path)
    if name.partition(":")[0] not in NAMESPACES:
        return ""
    fd = os.open(path, os.O_RDONLY)
    try:
        return f"{name} {struct.unpack('Q', fcntl.ioctl(fd, ns_get_id, bytes(8)))[0]}"
    except OSError as e:
        if e.errno != errno.ENOTTY:
            raise
        return name
    finally:
        os.close(fd)


def place_of(pid: int) -> Place:
    own = {namespace_of(f"/proc/self/ns/{kind}") for kind in NAMESPACES}
    theirs = {namespace_of(f"/proc/{pid}/ns/{kind}") for kind in NAMESPACES}
    groups = {line.split(":", 2)[2] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()}
    folders = {
        root / group.lstrip("/")
        for group in groups
        if "/demilune-" in group
        for root in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir())
    }
    return Place(frozenset(theirs - own), frozenset(f for f in folders if f.is_dir()))


def held_namespaces() -> set[str]:
    """Namespaces that any process is in or holds open, and those that are mounted (by the name of the inode alone)."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        for folder in ("ns", "fd"):
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{entry}/{folder}"):
                    with contextlib.suppress(OSError):
                        found.add(namespace_of(f"/proc/{entry}/{folder}/{name}"))
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - nsfs " in line:
            found.add(line.split()[3])
    return found


def remains(place: Place) -> list[str]:
    """What is left of a sandbox that ended."""
    held = held_namespaces()
    left = [f"namespace {name}" for name in sorted(place.namespaces) if not held.isdisjoint({name, name.split()[0]})]
    return left + [f"control group {folder}" for folder in sorted(place.cgroups) if folder.exists()]
