# SPDX-License-Identifier: Apache-2.0
"""Black box: a hostile program in a sandbox gets nowhere. The rows of probes.def run as user agent and as user root;
beside it the runner looks from outside, as root of the host, whether anything changed or was reached.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import host
import pytest
from daemon import BUILD, STATE, Client, Daemon, role, wait_until

PROBE = BUILD / "tests/escape/probe"
MARK = f"demilune-victim-{os.getpid()}"
USERS = ("agent", "root")
REAPER = 65533  # uid inside of the process that watches a command
AGENT_CAPS = 0x1E0  # KILL, SETGID, SETUID, SETPCAP
POLICY = """\
egress:
  - fetch: {url: "https://docs.example.com:8443/**"}
  - tcp:   {name: mirror.internal, port: 8730}
"""
SMALL = {"memory_mb": 96, "disk_mb": 16, "disk_inodes": 2000, "pids": 48, "open_files": 128}


def rows() -> list[tuple[str, str]]:
    listed = subprocess.run([PROBE, "--list"], check=True, capture_output=True, text=True).stdout
    return [(line.split("\t")[0], line.split("\t")[2]) for line in listed.splitlines()]


# ---- the world: a daemon, a victim on the host, a victim in one sandbox, the attacker in another ----


class World:
    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.daemon, self.client = daemon, daemon.client
        self.canary = f"canary-{os.urandom(16).hex()}"
        self.canary_path = folder / f"canary-{os.urandom(4).hex()}"
        self.canary_path.write_text(self.canary)
        self.canary_path.chmod(0o644)
        self.host_victim = subprocess.Popen([PROBE, "--victim", MARK, self.canary], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        assert self.host_victim.stdout is not None
        assert self.host_victim.stdout.readline() == "ready\n"
        self.victim = self.sandbox()
        self.client.exec(self.victim["id"], f"sleep 1000 | /tmp/probe --victim {MARK} {self.canary} >/tmp/victim",
                         detach=True)
        wait_until("the victim is ready", lambda: self.client.exec(self.victim["id"], "cat /tmp/victim")["stdout"])
        self.attacker = self.sandbox()
        self.small = self.sandbox(limits=SMALL)
        self.policed = self.sandbox(policy="some")

    def sandbox(self, **fields: Any) -> dict[str, Any]:
        box: dict[str, Any] = self.client.create(**fields)
        self.client.write(box["id"], "/tmp/probe", PROBE.read_bytes(), "755").expect(200, 201, 204)
        return box

    def probe(self, box: dict[str, Any], user: str, where: list[str]) -> dict[str, tuple[str, str]]:
        limits = box["limits"]
        found = {}
        for part in where:
            done = self.client.exec(box["id"], [
                "/tmp/probe", "--where", part, "--canary", str(self.canary_path), "--mark", MARK,
                "--host-pid", str(self.host_victim.pid), "--socket", str(self.client.path),
                "--api-port", str(self.daemon.port), "--memory", str(limits["memory_mb"] << 20),
                "--disk", str(limits["disk_mb"] << 20), "--inodes", str(limits["disk_inodes"]),
                "--pids", str(limits["pids"]), "--open-files", str(limits["open_files"])],
                user=user, cwd="/tmp", timeout_seconds=80)
            for line in done["stdout"].splitlines():
                row, verdict, detail = line.split("\t")
                found[row] = verdict, detail
            assert done["exit_code"] == 0, done
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    policies = tmp_path_factory.mktemp("policies")
    policies.chmod(0o755)
    (policies / "some.yaml").write_text(POLICY)
    with Daemon({"egress.policies": str(policies)}, tcp=True) as daemon:
        made = World(daemon, daemon.home)
        try:
            yield made
        finally:
            if made.host_victim.poll() is None:
                made.host_victim.communicate(timeout=5)  # the end of its stdin: it takes away what it made


@pytest.fixture(scope="module")
def watched(world: World) -> dict[str, Any]:
    """Verdicts of all rows for both users, with the host before and after."""
    kept = [world.canary_path, BUILD / "guest/agent/demilune-agent", *(STATE / "templates").glob("*.json")]
    before, step = host.snapshot(kept), host.clock_step()
    verdicts = {(user, row): verdict for user in USERS
                for box, where in ((world.attacker, ["OPEN", "SHUT"]), (world.small, ["LIMIT"]))
                for row, verdict in world.probe(box, user, where).items()}
    policed = {(user, row): verdict for user in USERS
               for row, verdict in world.probe(world.policed, user, ["OPEN", "SHUT"]).items()}
    return {"verdicts": verdicts, "policed": policed, "before": before, "after": host.snapshot(kept), "step": host.clock_step() - step}


@pytest.mark.parametrize("row", [row for row, _ in rows()])
@pytest.mark.parametrize("user", USERS)
def test_row(watched: dict[str, Any], user: str, row: str) -> None:
    verdict, detail = watched["verdicts"][user, row]
    assert verdict == "held", detail


@pytest.mark.parametrize("row", [row for row, where in rows() if where in ("OPEN", "SHUT")])
@pytest.mark.parametrize("user", USERS)
def test_row_beside_a_gateway(watched: dict[str, Any], user: str, row: str) -> None:
    """A gateway's routes and sockets in the namespace change nothing, but that its addresses refuse instead of being nowhere."""
    verdict, detail = watched["policed"][user, row]
    if row == "connect_fake":
        assert "refused" in detail.lower() or "ECONNREFUSED" in detail, (verdict, detail)
    else:
        assert verdict == "held", detail


# ---- from outside, after all attempts ----


@pytest.mark.parametrize("what", ["names", "settings", "modules", "swaps", "addresses", "routes", "interfaces",
                                  "own namespaces", "init namespaces", "files"])
def test_host_unchanged(watched: dict[str, Any], what: str) -> None:
    before, after = watched["before"][what], watched["after"][what]
    if isinstance(before, dict):
        assert {k: (v, after.get(k)) for k, v in before.items() if after.get(k) != v} == {}
    assert before == after


def test_host_clock_not_set(watched: dict[str, Any]) -> None:
    assert abs(watched["step"]) < 0.5


def test_victims_not_contacted(watched: dict[str, Any], world: World) -> None:
    """Both victims saw no connection and no signal, and what they made is as they made it."""
    said = world.client.exec(world.victim["id"], "pkill -x sleep; sleep 0.2; cat /tmp/victim")["stdout"]
    assert said == "ready\nintact\n"
    out, _ = world.host_victim.communicate(timeout=5)
    assert out == "intact\n"


def test_nothing_of_a_sandbox_listens_on_the_host(watched: dict[str, Any], world: World) -> None:
    measured = world.attacker["measured"]
    uids = range(measured["uid_base"], measured["uid_base"] + measured["uid_count"])
    assert host.listeners(uids) == []


# ---- from outside, while a sandbox runs ----


def agent_of(box: dict[str, Any]) -> int:
    pid: int = box["measured"]["host_pid"]
    return pid


@pytest.mark.parametrize("kind", host.KINDS)
def test_namespace_is_own(world: World, kind: str) -> None:
    seen = {os.readlink(f"/proc/{pid}/ns/{kind}")
            for pid in (os.getpid(), agent_of(world.attacker), agent_of(world.victim), agent_of(world.small))}
    assert len(seen) == 4


@pytest.mark.parametrize("kind", [k for k in host.KINDS if k != "user"])
def test_namespace_belongs_to_the_host(world: World, kind: str) -> None:
    assert host.owner_of(agent_of(world.attacker), kind) == os.stat("/proc/self/ns/user").st_ino


def test_uid_maps_are_apart(world: World) -> None:
    ranges = []
    for box in (world.attacker, world.victim, world.small):
        for file in ("uid_map", "gid_map"):
            lines = Path(f"/proc/{agent_of(box)}/{file}").read_text().splitlines()
            assert len(lines) == 1
            first, on_host, count = map(int, lines[0].split())
            assert first == 0 and on_host >= 65536 and count == 65536
        ranges.append(on_host)
    assert sorted(ranges) == sorted(set(ranges))
    assert all(b - a >= 65536 for a, b in zip(sorted(ranges), sorted(ranges)[1:], strict=False))


@pytest.mark.parametrize("user", USERS)
def test_processes_seen_from_outside(world: World, user: str) -> None:
    """No process of a sandbox has a host uid outside its range. Capabilities have only PID 1 and the reapers of commands,
    which run no program of the guest, and no other than those to change ids and to kill."""
    box = world.attacker
    base = box["measured"]["uid_base"]
    world.client.exec(box["id"], "sleep 30 & sleep 30", user=user, detach=True)
    wait_until("the command runs", lambda: len(host.inside(agent_of(box))) >= 4, 3)
    seen = host.inside(agent_of(box))
    assert len(seen) >= 3
    for pid in seen:
        status = host.status(pid)
        for ids in status["Uid"], status["Gid"]:
            assert all(base <= int(i) < base + 65536 for i in ids.split()), (pid, status)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), (pid, status)
        ours = pid == agent_of(box) or status["Uid"].split()[0] == str(base + REAPER)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[name], 16) & ~(AGENT_CAPS if ours else 0) == 0, (pid, name, status[name])
    world.client.exec(box["id"], "pkill -x sleep", user=user)


def test_agent_holds_no_descriptor_of_the_host(world: World) -> None:
    box = world.client.create()
    held = {name: os.readlink(f"/proc/{agent_of(box)}/fd/{name}") for name in os.listdir(f"/proc/{agent_of(box)}/fd")}
    own = {name for name, target in held.items() if target == "/1/oom_score_adj"}
    for name, target in held.items():
        assert name in own or re.fullmatch(r"/dev/null|socket:.*|pipe:.*|anon_inode:.*", target), (name, target)
    assert own == {"4"}, held
    at = Path(f"/proc/{agent_of(box)}")
    assert (at / "fd/4").stat().st_dev == (at / "root/proc").stat().st_dev != Path("/proc").stat().st_dev
    # One leads to the relay; on two of its own network namespace it takes what programs ask for.
    names = {words[6]: words[7] for words in map(str.split, (at / "net/unix").read_text().splitlines()[1:]) if len(words) > 7}
    sockets = [names.get(target[8:-1], "") for target in held.values() if target.startswith("socket:")]
    assert sorted(sockets) == ["", "/run/demilune/propose", "/run/demilune/read"], held
    world.client.kill(box["id"]).expect(200)


def test_root_directory_is_the_image(world: World) -> None:
    """The mounts of a sandbox, from outside: nothing of a disk of the host but the image."""
    text = Path(f"/proc/{agent_of(world.attacker)}/mountinfo").read_text()
    kinds = {line.split(" - ")[1].split()[0] for line in text.splitlines()}
    assert kinds == {"erofs", "tmpfs", "proc", "devpts"}


# ---- what a command gets ----


@pytest.mark.parametrize("user", USERS)
def test_environment_is_what_was_given(world: World, user: str) -> None:
    record = next(path for path in (STATE / "templates").glob("*.json")
                  if json.loads(path.read_text())["manifest"]["name"] == "python")
    names = set(json.loads(record.read_text())["manifest"]["env"])
    done = world.client.exec(world.attacker["id"], ["/usr/bin/env", "-0"], user=user, env={"PROBE_GIVEN": "a b"})
    got = dict(pair.split("=", 1) for pair in done["stdout"].split("\0") if pair)
    assert set(got) == names | {"PROBE_GIVEN"}
    assert got["PROBE_GIVEN"] == "a b"


def test_etc_is_of_the_image(world: World) -> None:
    """No line of the host's own accounts, and the accounts of the image."""
    seen = world.client.exec(world.attacker["id"], "cat /etc/passwd /etc/shadow /etc/hostname 2>&1", user="root")["stdout"]
    assert "agent:x:10001:" in seen
    assert not [line for line in Path("/etc/shadow").read_text().splitlines() if line in seen]
    assert "agent:" not in Path("/etc/passwd").read_text()


def test_set_user_id_is_ignored(world: World) -> None:
    """A program that user agent made set-user-id gives user root no other id, and the other way round."""
    box = world.attacker["id"]
    for maker, user, uid in (("agent", "root", 0), ("root", "agent", 10001)):
        made = world.client.exec(box, f"cp /tmp/probe /tmp/as-{maker} && chmod 6755 /tmp/as-{maker}", user=maker)
        assert made["exit_code"] == 0, made
        assert world.client.exec(box, [f"/tmp/as-{maker}", "--ids"], user=user)["stdout"] == f"{uid} {uid}\n"


@pytest.mark.parametrize("user", USERS)
def test_kill_all_kills_only_its_own(world: World, user: str) -> None:
    other = agent_of(world.small)
    done = world.client.exec(world.attacker["id"], "kill -9 -1", user=user)
    assert done["reason"] in ("exited", "signalled")
    assert world.client.exec(world.attacker["id"], "echo alive")["stdout"] == "alive\n"
    assert role(other) == "agent"


def test_kill_init(world: World) -> None:
    """PID 1 takes no signal that would end it, from either user."""
    for user in USERS:
        for name in ("KILL", "TERM", "STOP", "SEGV", "INT", "HUP", "QUIT", "ABRT", "USR1"):
            world.client.exec(world.attacker["id"], f"kill -{name} 1", user=user)
    assert world.client.exec(world.attacker["id"], "echo alive")["stdout"] == "alive\n"


# ---- resources, seen by others ----


def answers(client: Client, box: str, within_s: float) -> dict[str, Any]:
    began = time.monotonic()
    done: dict[str, Any] = client.exec(box, ["/bin/echo", "alive"], timeout_s=within_s + 5)
    assert time.monotonic() - began < within_s, done
    return done


def run_beside(world: World, box: str, command: list[str], user: str, seconds: float) -> tuple[threading.Thread, list[Any]]:
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(
        world.client.exec(box, command, user=user, timeout_seconds=seconds)))
    thread.start()
    time.sleep(0.5)
    return thread, ended


HOG = "for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait"
BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass\n"


@pytest.mark.parametrize("user", USERS)
def test_fork_bomb(world: World, user: str) -> None:
    """Another sandbox answers at once, its own answers with a reason, and when it is over all is well."""
    box = world.small["id"]
    thread, ended = run_beside(world, box, ["/usr/bin/python3", "-c", BOMB], user, 3)
    assert answers(world.client, world.attacker["id"], 2)["stdout"] == "alive\n"
    own = answers(world.client, box, 6)
    assert own.get("stdout") == "alive\n" or own.get("reason") in ("pids", "not_started"), own
    thread.join(20)
    assert ended and ended[0]["reason"] == "timeout", ended
    assert answers(world.client, box, 2)["stdout"] == "alive\n"


@pytest.mark.parametrize("user", USERS)
def test_processor_hog(world: World, user: str) -> None:
    box = world.small["id"]
    thread, ended = run_beside(world, box, ["/bin/sh", "-c", HOG], user, 4)
    assert answers(world.client, world.attacker["id"], 2)["stdout"] == "alive\n"
    assert answers(world.client, box, 3)["stdout"] == "alive\n"
    thread.join(20)
    assert ended
    assert answers(world.client, box, 2)["stdout"] == "alive\n"


NOBODY = "import os\nfd = os.memfd_create('hog')\nfor i in range(400): os.write(fd, bytes(1 << 20))"


@pytest.mark.parametrize("hog", [["/usr/bin/python3", "-c", NOBODY], ["/tmp/probe", "--hog"]], ids=["python", "tiny"])
@pytest.mark.parametrize("user", USERS)
def test_memory_of_nobody(world: World, user: str, hog: list[str]) -> None:
    """Memory in a file that no process maps counts for none of them: the kernel takes jobs and not PID 1."""
    box = world.sandbox(limits=SMALL)
    done = world.client.exec(box["id"], hog, user=user, timeout_seconds=20)
    assert done.get("reason") == "oom", done
    assert answers(world.client, world.attacker["id"], 2)["stdout"] == "alive\n"
    for _ in range(3):
        assert answers(world.client, box["id"], 2).get("stdout") == "alive\n"
    world.client.kill(box["id"]).expect(200)


def test_jobs_go_before_the_agent(world: World) -> None:
    """What runs in a sandbox has the highest score there is, PID 1 has its own again; inside nobody changes it."""
    box = world.attacker
    world.client.exec(box["id"], "sleep 31", detach=True)
    wait_until("the command runs", lambda: len(host.inside(agent_of(box))) >= 3, 3)
    scores = {pid: Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in host.inside(agent_of(box))}
    assert scores.pop(agent_of(box)) == "500"
    assert set(scores.values()) == {"1000"}, scores
    for user in USERS:
        done = world.client.exec(box["id"], "echo 0 >/proc/self/oom_score_adj", user=user)
        assert done["exit_code"] != 0 and "Read-only" in done["stderr"], done
    world.client.exec(box["id"], "pkill -x sleep")


@pytest.mark.parametrize(("reason", "code"), [
    ("oom", "x = bytearray(400 << 20); print(len(x))"),
    ("disk", "open('/work/full', 'wb').write(bytes(40 << 20))"),
    ("pids", "import subprocess\nfor i in range(200): subprocess.Popen(['sleep', '20'])"),
], ids=["oom", "disk", "pids"])
def test_host_says_why(world: World, reason: str, code: str) -> None:
    box = world.small["id"]
    done = world.client.exec(box, ["/usr/bin/python3", "-c", code], timeout_seconds=20)
    world.client.exec(box, "rm -f /work/full; kill -9 -1")
    assert done["reason"] == reason, done
    assert answers(world.client, box, 2)["stdout"] == "alive\n"
