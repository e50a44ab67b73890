# SPDX-License-Identifier: Apache-2.0
"""
Policies with a real daemon: what a person writes, tries, runs, sees and replays. The server that the policy names is one of this
host, by its address. Needs root and a template.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from daemon import Daemon, wait_until
from fake import BINARY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a daemon needs root")
Run = Callable[..., subprocess.CompletedProcess[bytes]]
GET = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as e:
    print(e.code, e.read().decode())
except OSError as e:
    print("no way:", e)
"""


class Docs(BaseHTTPRequestHandler):
    """The documentation site."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b"page of " + self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Host:
    """A daemon with a directory of policies, and the server that they name."""

    def __init__(self, folder: Path) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Docs)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        folder.chmod(0o755)
        self.policies = folder / "policy.d"
        self.policies.mkdir(mode=0o755)
        self.write("support", self.text())
        self.write("internal", "tenants: [acme]\negress: []\n")
        self.daemon = Daemon({"egress.policies": str(self.policies)})

    def text(self, path: str = "/help/**") -> str:
        return (f'egress:\n  - fetch: {{url: "http://docs.example:{self.port}{path}", query: [lang], address: 127.0.0.1}}\n'
                "  - tcp: {name: mirror.internal, port: 873, address: 127.0.0.1}\n")

    def write(self, name: str, text: str) -> Path:
        path = self.policies / f"{name}.yaml"
        path.write_text(text)
        path.chmod(0o644)
        return path

    def anew(self) -> None:
        """Policies are read again."""
        supervisor = self.daemon.supervisor
        before = len(self.daemon.log())
        os.kill(supervisor, signal.SIGHUP)
        wait_until("they are read again", lambda: "from now on" in self.daemon.log()[before:])
        wait_until("the daemon is ready again", self.daemon.client.ready)

    def url(self, path: str) -> str:
        return f"http://docs.example:{self.port}{path}"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("host"))
    with host.daemon:
        yield host
    host.server.shutdown()


@pytest.fixture
def run(host: Host) -> Run:
    def call(*args: str | Path, code: int = 0) -> subprocess.CompletedProcess[bytes]:
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "DEMILUNE_SOCKET": str(host.daemon.run / "api.sock")}
        done = subprocess.run([BINARY, *map(str, args)], env=env, capture_output=True, timeout=60, check=False)
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:], host.daemon.log()[-3000:])
        return done

    return call


def task(run: Run, ticket: str, policy: str = "support") -> str:
    return run("task", "create", "--tenant", "acme", "--label", f"ticket={ticket}", "--policy", policy).stdout.decode().strip()


def fetch(run: Run, name: str, url: str) -> str:
    return run("run", "--task", name, "--", "python3", "-c", GET, url).stdout.decode().strip()


def net(run: Run, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run("net", name, "--json").stdout)
    return answer


def test_policies_of_the_host_are_listed_and_shown(run: Run, host: Host) -> None:
    rows = [re.split(r" +", line.strip()) for line in run("policy", "show").stdout.decode().splitlines()]
    assert [r[:2] for r in rows[1:]] == [["internal", "0"], ["support", "2"]]
    text = run("policy", "show", "support").stdout.decode()
    assert f"http://docs.example:{host.port}/help/**" in text and "support: rule 2 (tcp mirror.internal:873) is weak" in text
    assert run("policy", "diff", "support", host.policies / "support.yaml").stdout == b"", "the daemon has what the file says"


def test_what_try_says_is_what_happens(run: Run, host: Host) -> None:
    name = task(run, "7001")
    assert f"allowed by rule 1 (fetch http://docs.example:{host.port}/help/**)" in run(
        "policy", "try", "--task", name, host.url("/help/a?lang=en")).stdout.decode()
    assert fetch(run, name, host.url("/help/a?lang=en")) == "page of /help/a?lang=en"
    for url, reason in ((host.url("/other"), "path"), (host.url("/help/a?q=1"), "query")):
        assert f"refused: {reason}: " in run("policy", "try", "--task", name, url, code=1).stdout.decode()
        status, _, body = fetch(run, name, url).partition(" ")
        told = json.loads(body)
        assert (status, told["code"], told["rule"]) == ("403", reason, 1), "the gateway counts rules as `policy show` does"
    assert "refused: no-rule: " in run("policy", "try", "--task", name, "https://intake.evil.tld/", code=1).stdout.decode()
    assert fetch(run, name, "https://intake.evil.tld/").startswith("no way: ")
    assert Docs.asked.count("/help/a?lang=en") == 1 and "/other" not in Docs.asked


def allowed_of(found: dict[str, Any]) -> dict[str, Any]:
    return next((r for r in found["items"] if r["verdict"] == "allowed" and r["scheme"] == "http"), {"bytes_in": 0})


def test_net_has_each_verdict_and_the_budgets(run: Run, host: Host) -> None:
    name = task(run, "7002")
    box = run("sandbox", "create", "--task", name).stdout.decode().strip()
    assert b"nothing was asked for yet" in run("net", name).stdout
    for path in ("/help/b", "/secret"):
        run("sandbox", "exec", box, "--", "python3", "-c", GET, host.url(path))
    wait_until("bytes are told", lambda: allowed_of(net(run, "7002"))["bytes_in"])
    found = net(run, "7002")
    kinds = {(r["verdict"], r["reason"], r["name"], r.get("rule")) for r in found["items"] if r["scheme"] == "http"}
    assert kinds == {("allowed", "none", "docs.example", 1), ("refused", "path", "docs.example", 1)}
    allowed = allowed_of(found)
    assert (allowed["address"], allowed["port"], allowed["count"]) == ("127.0.0.1", host.port, 1)
    assert allowed["bytes_in"] >= len("page of /help/b")
    budgets = {b["budget"]: b for b in found["budgets"]}
    assert budgets["requests"]["limit"] == 20000 and budgets["requests"]["lent"] > 0, "a living gateway has a slice on loan"
    table = run("net", "7002").stdout.decode()
    assert re.search(rf"^refused +path +http docs\.example:{host.port} +1 ", table, re.M) and "BUDGET" in table
    run("sandbox", "kill", box)
    budgets = {b["budget"]: b for b in net(run, "7002")["budgets"]}
    assert budgets["requests"]["lent"] == 0 and budgets["names"]["lent"] == 0, "what is left of the slice came back"


def test_net_follows_a_task_to_its_end(run: Run, host: Host) -> None:
    name = task(run, "7003")
    env = {"PATH": "/usr/bin:/bin", "DEMILUNE_SOCKET": str(host.daemon.run / "api.sock")}
    with subprocess.Popen([BINARY, "net", name, "--follow"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follow:
        fetch(run, name, host.url("/other"))
        run("task", "close", name)
        out, err = follow.communicate(timeout=30)
    assert follow.returncode == 0, err
    assert f"refused path http docs.example:{host.port}  rule 1" in out.decode()


def test_a_sandbox_without_a_policy_reaches_nothing(run: Run, host: Host) -> None:
    done = run("run", "--label", "ticket=7004", "--tenant", "acme", "--", "python3", "-c", GET, host.url("/help/none"))
    assert done.stdout.startswith(b"no way: ") and "/help/none" not in Docs.asked
    assert run("net", "7004").stdout == b"the task has no policy: its sandboxes reach nothing\n"
    assert b"the task has no policy" in run("policy", "show", "--task", "7004", code=1).stderr


def test_policies_are_named_and_some_are_not_for_everybody(run: Run) -> None:
    assert b"demilune policy show" in run("sandbox", "create", "--policy", "nowhere", code=1).stderr
    run("task", "create", "--tenant", "acme", "--policy", "internal")
    other = run("task", "create", "--tenant", "globex", "--policy", "internal", code=1).stderr
    assert other == run("task", "create", "--tenant", "globex", "--policy", "nowhere", code=1).stderr.replace(b"nowhere", b"internal"), \
        "who may not use it hears that there is none"
    name = task(run, "7005")
    assert run("sandbox", "create", "--task", name, "--policy", "internal", code=1).stderr != b""


def test_a_sandbox_keeps_its_revision_and_replay_says_what_another_would_do(run: Run, host: Host, tmp_path: Path) -> None:
    name = task(run, "7006")
    box = run("sandbox", "create", "--task", name).stdout.decode().strip()
    digest = json.loads(run("sandbox", "show", box, "--json").stdout)["policy_digest"]
    assert fetch(run, name, host.url("/help/kept")) == "page of /help/kept"
    tmp_path.chmod(0o755)
    stricter = tmp_path / "support.yaml"
    stricter.write_text(host.text("/help/only/*"))
    told = json.loads(run("policy", "replay", stricter, "--json", code=1).stdout)
    changed = [c for c in told["changes"] if c["request"].endswith("/help/kept")]
    assert [(c["was"], c["would_be"], c["reason"]) for c in changed] == [("allowed", "refused", "path")]
    assert json.loads(run("policy", "replay", host.policies / "support.yaml", "--json").stdout)["changes"] == []
    host.write("support", host.text("/help/only/*"))
    try:
        host.anew()
        assert b"1 living sandbox has an older one" in run("policy", "show", "support").stdout
        assert b"an older one; new sandboxes get another" in run("policy", "show", "--task", name).stdout
        assert json.loads(run("policy", "show", "--task", name, "--json").stdout)["digest"] == digest
        done = run("sandbox", "exec", box, "--", "python3", "-c", GET, host.url("/help/still"))
        assert done.stdout == b"page of /help/still\n", "it keeps the revision it was made with"
        assert b"refused: path: " in run("policy", "try", "--policy", "support", host.url("/help/still"), code=1).stdout
    finally:
        host.write("support", host.text())
        host.anew()
    run("sandbox", "kill", box)


def test_the_record_tells_it_all(run: Run, host: Host) -> None:
    name = task(run, "7007")
    fetch(run, name, host.url("/help/recorded"))
    lines = [line for line in run("audit", name).stdout.decode().splitlines() if " egress.verdict " in line]
    assert [line.split("egress.verdict")[1].split() for line in lines] == [
        ["allowed", "GET", "http", f"docs.example:{host.port}/help/recorded,", "rule", "1"]]
    assert b"each follows the one before" in run("audit", "verify", name).stdout
