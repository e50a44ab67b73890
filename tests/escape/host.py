# SPDX-License-Identifier: Apache-2.0
"""What can be seen of the host from the host, to compare before and after hostile programs ran in sandboxes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import socket
import time
from pathlib import Path

from daemon import link, read

NS_GET_USERNS = 0xB701
KINDS = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
# Settings that count or draw anew at each look, and those that the host's own services change.
VOLATILE = re.compile(r"/proc/sys/(kernel/random/|kernel/ns_last_pid|kernel/pty/nr|fs/(aio-nr|dentry-state|file-nr|inode-)"
                      r"|net/netfilter/nf_conntrack_count|kernel/(max_lock_depth|panic_on_oops_count)|kernel/.*_count"
                      r"|debug/|vm/stat_refresh|net/ipv4/route/flush|net/ipv6/route/flush|vm/compact_memory|vm/drop_caches)")
FILES = ("/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/hostname", "/usr/bin/env")


def digest(path: str | Path) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def settings() -> dict[str, str]:
    """Every readable file of /proc/sys."""
    found = {}
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = f"{folder}/{name}"
            if not VOLATILE.match(path):
                found[path] = read(path)
    return found


def listeners(uids: range) -> list[str]:
    """Listening TCP and bound UDP sockets of the host's network that belong to these uids."""
    found = []
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", ""), ("udp6", "")):
        for line in read(f"/proc/net/{table}").splitlines()[1:]:
            words = line.split()
            if int(words[7]) in uids and (not state or words[3] == state):
                found.append(f"{table} {words[1]}")
    return found


def snapshot(kept: list[Path]) -> dict[str, object]:
    """All that must be the same afterwards. `kept`: more files whose bytes must not change."""
    return {
        "names": (socket.gethostname(), read("/proc/sys/kernel/domainname")),
        "settings": settings(),
        "modules": read("/proc/modules"),
        "swaps": read("/proc/swaps"),
        "addresses": read("/proc/net/fib_trie"),
        "routes": (read("/proc/net/route"), read("/proc/net/ipv6_route")),
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "own namespaces": [link(f"/proc/self/ns/{kind}") for kind in KINDS],
        "init namespaces": [link(f"/proc/1/ns/{kind}") for kind in KINDS],
        "files": {str(path): digest(path) for path in [*map(Path, FILES), *kept]},
    }


def clock_step() -> float:
    """Wall clock minus monotonic clock: jumps when somebody sets the clock."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def owner_of(pid: int, kind: str) -> int:
    """Inode of the user namespace that owns this namespace of the process."""
    with open(f"/proc/{pid}/ns/{kind}") as namespace:
        fd = fcntl.ioctl(namespace, NS_GET_USERNS)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def status(pid: int) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
    return {name: value.strip() for name, value in pairs}


def inside(agent: int) -> list[int]:
    """Host pids of all processes in the pid namespace of this PID 1."""
    namespace = link(f"/proc/{agent}/ns/pid")
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and link(f"/proc/{entry}/ns/pid") == namespace]
