# SPDX-License-Identifier: Apache-2.0
"""The probe's rows can fail: outside a sandbox each row marked OPEN gets through, as root in namespaces of its own.

Nothing of the host is changed: own mounts, processes, network, IPC and host name, and a root directory of its own.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import BUILD

PROBE = BUILD / "tests/escape/probe"
MARK = "demilune-control"
# What a row opens; on a kernel without it the row cannot get through anywhere.
NEEDS = {"sysrq": "/proc/sysrq-trigger",
         "kcore": "/proc/kcore", "modules": "/proc/modules", "timer_list": "/proc/timer_list",
         "modprobe_path": "/proc/sys/kernel/modprobe", "cgroup_files": "/sys/fs/cgroup"}
SCRIPT = """
set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
exec chroot . /probe --where OPEN --canary /canary/file --mark "$2" --host-pid 1 --socket /socket
"""


def rows(where: str) -> list[str]:
    listed = subprocess.run([PROBE, "--list"], check=True, capture_output=True, text=True).stdout
    return [line.split("\t")[0] for line in listed.splitlines() if line.split("\t")[2] == where]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    root = tmp_path_factory.mktemp("control") / "root"
    for name in ("tmp", "proc", "dev", "sys", "etc", "canary"):
        (root / name).mkdir(parents=True)
    (root / "canary/file").write_text("canary")
    shutil.copy2(PROBE, root / "probe")
    shutil.copy2("/usr/bin/env", root / "setuid")
    (root / "setuid").chmod(0o4755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        listening.listen()
        # The victim is in the same namespaces: both are children of the one that unshares.
        victim = f"ip link set lo up 2>/dev/null || true\n{root}/probe --victim {MARK} x <&3 >{root}/victim &\n"
        script = SCRIPT.replace('cd "$1"', victim + f"until grep -q ready {root}/victim; do sleep 0.02; done\ncd \"$1\"")
        with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE) as held:
            assert held.stdout is not None
            done = subprocess.run(
                ["unshare", "-mpniuC", "--fork", "--kill-child", "sh", "-c", f"exec 3<&0\n{script}", "sh", root, MARK],
                stdin=held.stdout, capture_output=True, text=True, check=False, timeout=60)
            held.kill()
    yield {line.split("\t")[0]: (line.split("\t")[1], line.split("\t")[2]) for line in done.stdout.splitlines()}
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("row", rows("OPEN"))
def test_row_can_fail(verdicts: dict[str, tuple[str, str]], row: str) -> None:
    if row in NEEDS and not Path(NEEDS[row]).exists():
        pytest.skip(f"this kernel has no {NEEDS[row]}")
    assert verdicts[row][0] == "broken", verdicts[row][1]
