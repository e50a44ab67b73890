#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our numbers beside bubblewrap and runc, and the gateway beside other proxies, on one machine in one run; `./run bench` is this program.

    bench.py --build DIR --state DIR [--rounds N] [--live N] [--part sandboxes|egress] [--json]

A row is a question; its value is the median (and the 99th percentile) of all rounds, beside it the number that the design
wants to reach and the ratio to bubblewrap's `true` in the same run. The machine is what it is: compare ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import actions  # noqa: E402
import daemon  # noqa: E402
import egress  # noqa: E402
from acting import Acting  # noqa: E402


@dataclass
class Row:
    what: str
    p50: float
    p99: float
    unit: str
    reach: float | None = None
    rounds: int = 0
    more: bool = False  # is better


def percentile(values: list[float], p: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p))]


def row(what: str, values: list[float], unit: str = "ms", reach: float | None = None) -> Row:
    return Row(what, statistics.median(values), percentile(values, 0.99), unit, reach, len(values))


def timed(rounds: int, act: Callable[[], object]) -> list[float]:
    act()  # once for the caches
    values = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        values.append((time.perf_counter() - began) * 1000)
    return values


@contextmanager
def mounted_template(state: Path) -> Iterator[Path]:
    """The python template's image as a directory, for the peers."""
    digest = (state / "templates/index/python").read_text().strip()
    with tempfile.TemporaryDirectory(prefix="demilune-bench-") as place:
        image = str(state / f"templates/{digest}.erofs")
        subprocess.run(["mount", "-t", "erofs", "-o", "ro,loop", image, place], check=True)
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", place], check=True)


def peers(root: Path, rounds: int) -> list[Row]:
    """One fresh sandbox per `true`, everything gone afterwards."""
    bwrap = ["bwrap", "--unshare-all", "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
             "--die-with-parent", "/bin/true"]
    rows = [row("bubblewrap: create, run true, destroy", timed(rounds, lambda: subprocess.run(bwrap, check=True)))]
    with tempfile.TemporaryDirectory(prefix="demilune-bench-") as bundle:
        subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
        config = Path(bundle, "config.json")
        spec = json.loads(config.read_text())
        spec["process"].update(args=["/bin/true"], terminal=False)
        spec["root"] = {"path": str(root), "readonly": True}
        config.write_text(json.dumps(spec))
        number = iter(range(1_000_000))
        run = lambda: subprocess.run(  # noqa: E731
            ["runc", "--root", f"{bundle}/runc", "run", "--bundle", bundle, f"bench-{os.getpid()}-{next(number)}"],
            check=True, stdin=subprocess.DEVNULL, capture_output=True)
        rows.append(row("runc: create, run true, destroy", timed(max(10, rounds // 4), run)))
    return rows


class Inside:
    """The daemon with bench/driver.c in the api's place: what it costs without HTTP."""

    def __init__(self, build: Path, state: Path) -> None:
        self.build, self.state = build, state

    def measure(self, rounds: int, execs: int, live: int) -> dict[str, list[float]]:
        home = daemon.Daemon({"limits.sandboxes": 300, "uids.sandbox_slots": 400, "tenant.sandboxes": 300,
                              "tenant.creates_per_minute": 100_000, "limits.memory": "16384GiB",
                              "tenant.memory": "16384GiB", "defaults.ttl": "1h", "defaults.idle": "1h"}, build=self.build)
        libexec = home.home / "libexec"
        libexec.mkdir()
        for name, folder in (("config", "src/config"), ("engine", "src/engine"), ("broker", "src/broker"), ("dialer", "src/dialer"),
                             ("gateway", "src/gateway"), ("relay", "src/relay"), ("agent", "guest/agent")):
            (libexec / f"demilune-{name}").symlink_to(self.build / folder / f"demilune-{name}")
        # Its environment is empty, so the settings come by a script.
        driver = libexec / "demilune-api"
        driver.write_text(f"#!/bin/sh\nDEMILUNE_BENCH='rounds={rounds} execs={execs} live={live}' "
                          f"exec '{self.build}/bench/demilune-api'\n")
        driver.chmod(0o755)
        found: dict[str, list[float]] = {}
        with socket.socket(socket.AF_UNIX) as root, subprocess.Popen(
                              [str(self.build / "src/supervisor/demilune-supervisor"), "--libexec",
                               str(libexec), "--config", str(home.home / "demilune.yaml")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            log = ""
            try:
                for line in process.stdout:
                    log += line
                    if " bench: " in line:
                        raise SystemExit(f"the driver failed:\n{log[-2000:]}")
                    if line.startswith("{"):
                        said = json.loads(line)
                        if said["what"] == "end":
                            break
                        if said["what"] == "listening":
                            root.connect(str(home.run / "api.sock"))
                            continue
                        found.setdefault(said["what"], []).append(said["us"] / 1000)
                else:
                    raise SystemExit(f"the daemon ended early:\n{log[-2000:]}")
            finally:
                process.terminate()
                process.stdout.read()
        home.remove()
        return found


def over_http(client: daemon.Client, rounds: int, policy: str = "none", ends: list[float] | None = None) -> list[float]:
    """Create to first result; into `ends` how long each took to destroy."""
    def once() -> None:
        began = time.perf_counter()
        box = client.create(policy=policy)["id"]
        client.exec(box, ["/bin/true"])
        there = time.perf_counter()
        client.kill(box)
        values.append((there - began) * 1000)
        if ends is not None:
            ends.append((time.perf_counter() - there) * 1000)

    values: list[float] = []
    once()
    values.clear()
    if ends is not None:
        ends.pop()
    for _ in range(rounds):
        once()
    return values


def with_policy(build: Path, rounds: int) -> list[Row]:
    """On one host that has a policy, in turns: sandboxes without one, and with."""
    plain: list[float] = []
    policed: list[float] = []
    ends: list[float] = []
    with tempfile.TemporaryDirectory(prefix="demilune-bench-") as place:
        Path(place).chmod(0o755)
        Path(place, "web.yaml").write_text('egress:\n  - fetch: {url: "https://docs.example.com/help/**"}\n')
        with daemon.Daemon({"egress.policies": place}, build=build) as here:
            for _ in range(10):
                plain += over_http(here.client, max(1, rounds // 10))
                policed += over_http(here.client, max(1, rounds // 10), policy="web", ends=ends)
    return [row("create to first result, policies on the host", plain, reach=10),
            row("create to first result, with a policy", policed, reach=round(1 + statistics.median(plain), 2)),
            row("destroy with a policy (waits for RCU: 0004)", ends)]


SDK = """
import json, sys, time
from pandastack import Client
client = Client(api_url=sys.argv[1], api_key=sys.argv[2])
values = []
for _ in range(int(sys.argv[3]) + 1):
    began = time.perf_counter()
    box = client.sandboxes.create(template="python")
    box.exec("true")
    values.append((time.perf_counter() - began) * 1000)
    box.kill()
print(json.dumps(values[1:]))
"""


def over_sdk(build: Path, here: daemon.Daemon, rounds: int) -> list[float]:
    venv = build / "bench-venv"
    if not (venv / "bin/python").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin/pip"), "install", "-q", "pandastack==0.10.0"], check=True)
    made = here.client.request("POST", "/v1/me/tokens", {"label": "bench", "tenant": "default"})
    token = made.expect(200, 201).json["token"]
    done = subprocess.run([str(venv / "bin/python"), "-c", SDK, f"http://127.0.0.1:{here.port}", token, str(rounds)],
                          check=True, capture_output=True, text=True)
    values: list[float] = json.loads(done.stdout)
    return values


def pss_mib(pids: list[int]) -> float:
    """Proportional set size of these processes together."""
    total = 0
    for pid in pids:
        for line in daemon.read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def sizes(here: daemon.Daemon, count: int) -> list[Row]:
    """What an idle daemon weighs, and what each further sandbox adds over its agent and relay."""
    time.sleep(1)
    resting = pss_mib([p for p in here.pids() if daemon.role(p) in ("supervisor", "engine", "api", "broker", "dialer")])
    boxes = [here.client.create()["id"] for _ in range(count)]
    time.sleep(1)
    inside = {here.client.get(box).json["measured"]["host_pid"] for box in boxes}
    relays = here.by_role("relay")
    per = (pss_mib(list(inside)) + pss_mib(relays)) / count
    for box in boxes:
        here.client.kill(box)
    return [Row("idle daemon: its five processes", resting, resting, "MiB", 25, 1),
            Row(f"idle sandbox: agent and relay, mean of {count}", per, per, "MiB", 3, count)]


def acts(build: Path, rounds: int) -> list[Row]:
    """From a signed decision to the provider; what sandboxes can ask for in a second; what the record costs who checks it."""
    shop = actions.Shop()
    with Acting(port=shop.port, build=build) as host:
        first, whole = actions.approvals(host, shop, rounds)
        rate = actions.proposals_per_s(host, 4, 10)
    shop.close()
    with tempfile.TemporaryDirectory(prefix="demilune-bench-") as place:
        path = Path(place, "receipt")
        proof = float(actions.export(path, 100_000))
        verify = actions.verified(build, path, 10)
    return [row("approve to first byte at the provider", first, reach=10),
            row("approve to the answer that it is done", whole),
            Row("proposals checked in 4 sandboxes for 10 s", rate, rate, "/s", 200, 1, more=True),
            row("verify a receipt of 100,000 records", verify, reach=2000),
            Row("proof of one record among 100,000", proof, proof, "B", 17 * 32, 1)]


def measure(build: Path, state: Path, rounds: int, live: int) -> list[Row]:
    def progress(text: str) -> None:
        print(f"==> {text}", file=sys.stderr, flush=True)

    progress("peers")
    with mounted_template(state) as root:
        rows = peers(root, rounds)
    progress("without HTTP")
    inside = Inside(build, state)
    few = inside.measure(rounds, 10, 1)
    rows += [row("create to first result, without HTTP", few["create_first_result"], reach=6),
             row("create, without HTTP", few["create"]),
             row("command in a live sandbox, without HTTP", few["exec"]),
             row("destroy with proof, without HTTP", few["kill_with_proof"], reach=3)]
    progress(f"with {live} live sandboxes")
    many = inside.measure(rounds, 1, live)
    rows.append(row(f"create, {live} live, without HTTP", many["create"],
                    reach=round(1.5 * statistics.median(few["create"]), 2)))
    with daemon.Daemon(tcp=True, build=build) as here:
        progress("over HTTP")
        rows.append(row("create to first result, over HTTP", over_http(here.client, rounds), reach=10))
        box = here.client.create()["id"]
        rows.append(row("command in a live sandbox, over HTTP",
                        timed(rounds, lambda: here.client.exec(box, ["/bin/true"])), reach=2))
        here.client.kill(box)
        progress("through the Python SDK")
        rows.append(row("create to first result, Python SDK", over_sdk(build, here, rounds), reach=15))
        progress("sizes")
        rows += sizes(here, 20)
    progress("with a policy")
    rows += with_policy(build, rounds)
    progress("actions")
    return rows + acts(build, rounds)


def table(rows: list[Row]) -> None:
    base = next(r.p50 for r in rows if r.what.startswith("bubblewrap"))
    print(f"{'question':52} {'p50':>9} {'p99':>9}      {'reach':>7}  {'of bwrap':>8}  rounds")
    for r in rows:
        ratio = f"{r.p50 / base:7.2f}x" if r.unit == "ms" else ""
        reach = "" if r.reach is None else f"{r.reach:7.2f}"
        met = " " if r.reach is None else "+" if (r.p50 >= r.reach if r.more else r.p50 <= r.reach) else "-"
        print(f"{r.what:52} {r.p50:9.2f} {r.p99:9.2f} {r.unit:3}  {reach:>7}{met} {ratio:>8}  {r.rounds:6}")


def main() -> int:
    parser = argparse.ArgumentParser(description="our numbers beside bubblewrap and runc")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--live", type=int, default=200)
    parser.add_argument("--part", choices=("sandboxes", "egress"), help="only that half")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    daemon.BUILD, daemon.STATE = arguments.build.resolve(), arguments.state.resolve()
    rows = measure(daemon.BUILD, daemon.STATE, arguments.rounds, arguments.live) if arguments.part != "egress" else []
    gateway = egress.measure(daemon.BUILD) if arguments.part != "sandboxes" else []
    if arguments.json:
        print(json.dumps([*map(asdict, rows), *map(asdict, gateway)]))
        return 0
    if rows:
        table(rows)
    if gateway:
        egress.table(gateway)
    return 0


if __name__ == "__main__":
    sys.exit(main())
