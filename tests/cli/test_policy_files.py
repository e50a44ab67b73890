# SPDX-License-Identifier: Apache-2.0
"""Policies of files, compiled by demilune-config: check, show, try, diff, replay; and what `demilune doctor` says about them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake import BINARY, TASK, Fake
from policies import SUPPORT, document, row

TEXT = """# SPDX-License-Identifier: Apache-2.0
egress:
  - fetch:       {url: "https://docs.example.com/help/**", methods: [GET, HEAD], query: [lang]}
  - brokered:    {url: "https://api.carrier.example/v1/track/*", credential: carrier, query: [number], response_fields: [status, eta]}
  - tcp:         {name: mirror.internal, port: 873, address: 10.0.3.7}
  - passthrough: {name: pinned.example}
"""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "DEMILUNE_SOCKET": "/nonexistent"}
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="what it makes must belong to root")


def demilune(*args: str | Path, code: int = 0) -> str:
    """Without a daemon."""
    done = subprocess.run([BINARY, *map(str, args)], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, (done.returncode, done.stdout[-3000:], done.stderr[-2000:])
    return done.stdout + done.stderr


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "policy.d"
    folder.mkdir()
    return folder


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o644)
    return path


def rule(text: str) -> str:
    return f"egress:\n  {text}\n"


# ---- check and show ----


def test_check_of_a_file_tells_what_is_weak_and_is_no_fault(here: Path) -> None:
    path = put(here, "support.yaml", TEXT)
    text = demilune("policy", "check", path)
    assert "support: rule 3 (tcp mirror.internal:873) is weak: nothing of what is said on this connection is seen" in text
    assert "support: rule 4 (passthrough pinned.example:443) is weak: nothing of what is said inside TLS" in text
    assert text.endswith(f"{path}: 1 policy, no faults, 2 weak rules\n") and text.count("\n") == 3


def test_check_of_a_directory(here: Path) -> None:
    put(here, "a.yaml", "egress: []\n")
    put(here, "b.yaml", rule('- fetch: {url: "https://docs.example.com/"}'))
    assert demilune("policy", "check", here) == f"{here}: 2 policies, no faults\n"
    put(here, "b.yaml", rule('- fetch: {url: "http://docs.example.com/"}'))
    assert "b: rule 1 (fetch http://docs.example.com/) is weak: http is not encrypted" in demilune("policy", "check", here)
    put(here, "b.yaml", rule("- fetch: {url: ftp://docs.example.com/}"))
    put(here, "a.yaml", rule("- nothing: {}"))
    text = demilune("policy", "check", here, code=1)
    assert re.search(rf"^{here}/a.yaml:2:\d+: ", text, re.M) and re.search(rf"^{here}/b.yaml:2:\d+: ", text, re.M)
    assert "no faults" not in text and "weak" not in text, "what has faults is judged no further"


def test_check_without_an_argument_is_of_the_host(here: Path, tmp_path: Path) -> None:
    config = put(tmp_path, "demilune.yaml", f"egress:\n  policies: {here}\n")
    put(here, "support.yaml", TEXT)
    assert f"{here}: 1 policy, no faults, 2 weak rules" in demilune("policy", "check", "--config", config)
    assert "No such file" in demilune("policy", "check", tmp_path / "nowhere", code=1)


@pytest.mark.parametrize("name", ["none.yaml", "NEW.yaml", "-a.yaml", "a b.yaml", "support.yml", "draft"])
def test_the_name_of_a_file_is_the_name_of_the_policy(here: Path, name: str) -> None:
    text = demilune("policy", "check", put(here, name, TEXT), code=1)
    assert text.startswith(f"{here}/{name}:1:1: "), text


def test_show_of_a_file_is_what_the_daemon_would_have(here: Path) -> None:
    path = put(here, "support.yaml", TEXT)
    assert json.loads(demilune("policy", "show", path, "--json")) == SUPPORT
    text = demilune("policy", "show", path)
    assert row(SUPPORT)["digest"] in text and "brokered     https://api.carrier.example/v1/track/*" in text
    assert "support: rule 3 (tcp mirror.internal:873) is weak" in text


def test_faults_of_a_file_decide_nothing(here: Path) -> None:
    path = put(here, "support.yaml", TEXT.replace("GET, HEAD", "GET, BREW"))
    for args in (("show", path), ("try", path, "https://docs.example.com/help/"), ("diff", path, path)):
        text = demilune("policy", *args, code=1 if args[0] == "show" else 2)
        assert f"{path}:3:" in text and f"{path} is no policy" in text and "allowed" not in text


def test_a_directory_is_not_one_policy(here: Path) -> None:
    for name in ("a", "b"):
        put(here, f"{name}.yaml", TEXT)
    assert "has 2 policies; name the file of one" in demilune("policy", "show", here, code=1)


# ---- try and diff ----


def test_try_with_a_file_needs_no_daemon(here: Path) -> None:
    path = put(here, "support.yaml", TEXT)
    text = demilune("policy", "try", path, "https://docs.example.com/help/a")
    assert "allowed by rule 1 (fetch https://docs.example.com/help/**)" in text
    assert "refused: no-rule: " in demilune("policy", "try", path, "https://intake.evil.tld/", code=1)


@pytest.mark.parametrize("args", [
    ("https://docs.example.com/other",), ("-X", "POST", "https://docs.example.com/help/x"), ("https://new.example:8443/a?page=2&lang=en",),
    ("http://new.example/",), ("db.example:5432",), ("-X", "DELETE", "https://new.example/a/b/"), ("https://docs.example.com/help/?n2=1",)])
def test_the_rule_that_try_names_allows_it(here: Path, args: tuple[str, ...]) -> None:
    path = put(here, "support.yaml", TEXT)
    told = json.loads(demilune("policy", "try", path, "--json", *args, code=1))["would_allow"]
    path = put(here, "support.yaml", TEXT + f"  {told}\n")
    assert "allowed by rule 5 " in demilune("policy", "try", path, *args)


def test_diff_of_files(here: Path, tmp_path: Path) -> None:
    old, new = put(here, "support.yaml", TEXT), put(tmp_path, "support.yaml", TEXT.replace(", address: 10.0.3.7", ""))
    assert demilune("policy", "diff", old, old) == ""
    text = demilune("policy", "diff", old, new, code=1)
    assert "- rule tcp mirror.internal:873: at the address 10.0.3.7\n+ rule tcp mirror.internal:873\n" in text
    assert demilune("policy", "diff", old, put(tmp_path, "same.yaml", TEXT)) == "", "the name of a file changes nothing"


# ---- replay ----


def recorded(n: int, **more: Any) -> dict[str, Any]:
    return {"row": n, "task": TASK, "tenant": "acme", "policy": "support", "verdict": "allowed", "reason": "none", "scheme": "https",
            "name": "docs.example.com", "port": 443, "method": "GET", "path": "/help/x", "query": [], "count": 1,
            "last_at": f"2026-11-29T16:13:{n:02}.000Z"} | more


Replay = Callable[..., tuple[str, dict[str, Any]]]


@pytest.fixture
def replay(fake: Fake, here: Path) -> Replay:
    """Rows of the daemon, and what the policy TEXT, or another, makes of them: in words and as JSON."""
    def run(*rows: dict[str, Any], code: int = 0, text: str = TEXT, args: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
        path = put(here, "support.yaml", text)
        fake.on("GET", "/v1/egress", 200, {"items": list(rows), "more": False})
        said = fake.run("policy", "replay", str(path), *args, code=code).stdout.decode()
        return said, json.loads(fake.run("policy", "replay", str(path), "--json", *args, code=code).stdout)

    return run


def test_replay_of_what_stays_is_silent_about_it(replay: Replay) -> None:
    said, done = replay(recorded(1), recorded(2, path="/help/y", query=["lang"]), recorded(3, verdict="refused", reason="no-rule",
                        name="evil.example"), recorded(4, scheme="dns", method="", path=""),
                        recorded(5, scheme="dns", method="", path="", name="evil.example", verdict="refused", reason="no-rule"),
                        recorded(6, scheme="tcp", name="mirror.internal", port=873, method="", path=""),
                        recorded(7, scheme="passthrough", name="pinned.example", method="", path=""),
                        recorded(8, verdict="refused", reason="cred-scope"), recorded(9, verdict="aborted", reason="resp-limit"))
    assert done["changes"] == [] and (done["requests"], done["same"]) == (9, 9)
    assert said == ("different requests: 9, in rows: 9\n  decided as they were: 9\n  allowed that were refused: 0\n"
                    "  refused that were allowed: 0\n")


def test_replay_tells_what_would_be_closed_and_what_opened(replay: Replay) -> None:
    rows = [recorded(1), recorded(2, count=4, task="tk_0000000000000000"), recorded(3, path="/other", verdict="refused", reason="path"),
            recorded(4, name="mirror.internal", scheme="tcp", port=873, method="", path="")]
    text = rule('- fetch: {url: "https://docs.example.com/other"}')
    said, done = replay(*rows, code=1, text=text)
    first, second, third = done["changes"]
    assert first == {"request": "GET https://docs.example.com:443/help/x", "was": "allowed", "was_reason": "none", "would_be": "refused",
                     "reason": "path", "rule": 1, "count": 5, "last_at": "2026-11-29T16:13:02.000Z"}
    assert (second["was"], second["was_reason"], second["would_be"], second["rule"]) == ("refused", "path", "allowed", 1)
    assert (third["request"], third["reason"], third.get("rule")) == ("tcp mirror.internal:873", "no-rule", None)
    table = [re.split(r"  +", line.strip()) for line in said.splitlines()]
    assert table[0] == ["COUNT", "LAST", "WAS", "WOULD BE", "REQUEST"]
    assert table[1] == ["5", "2026-11-29 16:13:02", "allowed", "refused: path", "GET https://docs.example.com:443/help/x"]
    assert table[2][2:4] == ["refused: path", "allowed by rule 1"]
    assert said.endswith("different requests: 3, in rows: 4\n  decided as they were: 0\n  allowed that were refused: 1\n"
                         "  refused that were allowed: 2\n")


@pytest.mark.parametrize("reason", ["framing", "name-mismatch", "no-sni", "ech", "host-syntax", "raw-address", "client-rejected-ca"])
def test_what_no_rule_decided_no_rule_changes(replay: Replay, reason: str) -> None:
    said, done = replay(recorded(1, verdict="refused", reason=reason), text="egress: []\n")
    assert done["no_policy_decides"] == 1 and re.search(r"refused for what no rule decides .*: 1$", said, re.M)


@pytest.mark.parametrize("reason", ["dns-private", "dns-mixed", "tls-verify", "quota", "contained", "broker"])
def test_what_a_rule_allowed_and_another_check_refused_stays_refused(replay: Replay, reason: str) -> None:
    for text in (TEXT, "egress: []\n"):
        assert replay(recorded(1, verdict="refused", reason=reason), text=text)[1]["no_policy_decides"] == 1


def test_what_is_not_on_record_is_not_guessed(replay: Replay) -> None:
    said, done = replay(recorded(1, path="", method=""), recorded(2, verdict="refused", reason="body-limit"), recorded(3, method="BREW"),
                        recorded(4, verdict="refused", reason="no-rule", path="", method="", name="new.example"))
    assert done["not_on_record"] == 3 and done["same"] == 1 and re.search(r"not to be replayed, .*: 3$", said, re.M)
    opened = rule('- fetch: {url: "https://new.example/a"}')
    unseen = recorded(4, verdict="refused", reason="no-rule", path="", method="", name="new.example")
    assert replay(unseen, text=opened)[1]["not_on_record"] == 1
    closed = replay(recorded(1, path="", method=""), text="egress: []\n", code=1)[1]
    assert closed["changes"][0]["reason"] == "no-rule", "a place that nobody names is refused, whatever was asked there"


def test_replay_judges_each_step(replay: Replay) -> None:
    text = rule('- fetch: {url: "https://docs.example.com/help/**", methods: [HEAD]}')
    assert replay(recorded(1), text=text, code=1)[1]["changes"][0]["reason"] == "method"
    text = rule('- fetch: {url: "https://docs.example.com/help/**"}')
    assert replay(recorded(1, query=["lang"]), text=text, code=1)[1]["changes"][0]["reason"] == "query"
    assert replay(recorded(1, verdict="refused", reason="upgrade"), text=text)[1]["same"] == 1
    text = text.replace("}", ", websocket: true}")
    assert replay(recorded(1, verdict="refused", reason="upgrade"), text=text, code=1)[1]["changes"][0]["would_be"] == "allowed"
    text = rule('- fetch: {url: "https://docs.example.com:8443/help/**"}')
    assert replay(recorded(1), text=text, code=1)[1]["changes"][0]["reason"] == "port"


def test_replay_is_of_the_policy_of_the_same_name(replay: Replay, fake: Fake) -> None:
    said, done = replay(recorded(1, policy="other"), text="egress: []\n")
    assert done["rows"] == 0 and "no request that this policy decided is on record; --policy NAME" in said
    said, done = replay(recorded(1, policy="other"), text="egress: []\n", args=("--policy", "other"), code=1)
    assert done["rows"] == 1


def test_replay_reads_all_pages_since_then(fake: Fake, here: Path) -> None:
    path = put(here, "support.yaml", "egress: []\n")
    pages = {"0": {"items": [recorded(1), recorded(2, policy="other")], "more": True},
             "2": {"items": [recorded(3, path="/z")], "more": False}}
    fake.on("GET", "/v1/egress", lambda h, s: h.answer(200, pages[s.query["after"]]))
    done = json.loads(fake.run("policy", "replay", str(path), "--since", "2h", "--json", code=1).stdout)
    assert (done["rows"], len(done["changes"])) == (2, 2)
    asked = fake.asked("GET", "/v1/egress").query
    assert abs(int(asked["since"]) - (time.time() - 7200) * 1000) < 60000 and asked["limit"] == "200"
    fake.run("policy", "replay", str(path), code=1)
    assert abs(int(fake.asked("GET", "/v1/egress").query["since"]) - (time.time() - 30 * 86400) * 1000) < 60000
    pages["2"] = {"items": [], "more": True}
    assert b"does not go on" in fake.run("policy", "replay", str(path), code=2).stderr


@pytest.mark.parametrize("bad", [{"reason": "whim"}, {"scheme": "gopher"}, {"verdict": "maybe"}, {"reason": None}])
def test_replay_of_what_it_does_not_know_fails(fake: Fake, here: Path, bad: dict[str, Any]) -> None:
    fake.on("GET", "/v1/egress", 200, {"items": [recorded(1, **bad)], "more": False})
    done = fake.run("policy", "replay", str(put(here, "support.yaml", TEXT)), code=2)
    assert done.stdout == b"" and b"does not know" in done.stderr


def test_requests_on_record_do_not_move_the_terminal(replay: Replay) -> None:
    said, _ = replay(recorded(1, path="/\x1b[2J", name="a\u202eb"), text="egress: []\n", code=1)
    assert "\x1b" not in said and "\u202e" not in said


# ---- doctor ----


class Host:
    def __init__(self, root: Path) -> None:
        root.chmod(0o755)
        self.dirs = {name: root / name for name in ("secrets", "trust", "operations", "policies")}
        for name, path in self.dirs.items():
            path.mkdir()
            path.chmod(0o700 if name == "secrets" else 0o755)
        self.roots = put(root, "roots.crt", "x")
        own = {name: str(path) for name, path in self.dirs.items() if name != "policies"}
        egress = f"{{policies: {self.dirs['policies']}, roots: {self.roots}}}"
        self.config = put(root, "demilune.yaml", f"actions: {json.dumps(own)}\negress: {egress}\n")

    def doctor(self, *more: str) -> dict[str, Any]:
        done = subprocess.run([BINARY, "doctor", "--json", "--config", str(self.config), *more], env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=60, check=False)
        return {check["check"]: check for check in json.loads(done.stdout)}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path / "host"
    root.mkdir()
    return Host(root)


@ROOT_ONLY
def test_doctor_looks_for_what_policies_name(host: Host) -> None:
    put(host.dirs["policies"], "support.yaml", TEXT + '  - fetch: {url: "https://own.example/", roots: own}\n')
    found = host.doctor()["policies"]
    carrier, own = host.dirs["secrets"] / "carrier", host.dirs["trust"] / "own.pem"
    assert found["state"] == "wrong" and found["detail"].startswith("2 things to mend")
    assert found["findings"] == [
        f"{carrier} is not there, and the policy support needs it: put it there: install -m 0600 FILE {carrier}",
        f"{own} is not there, and the policy support needs it: put it there: install -m 0644 FILE {own}"]
    put(host.dirs["secrets"], "carrier", "hunter22")
    carrier.chmod(0o600)
    put(host.dirs["trust"], "own.pem", "x")
    found = host.doctor()["policies"]
    assert (found["state"], found["findings"], found["detail"]) == ("ok", [], f"1 in {host.dirs['policies']}")
    host.roots.unlink()
    assert [f.split(" ")[0] for f in host.doctor()["policies"]["findings"]] == [str(host.roots)]


@ROOT_ONLY
def test_doctor_compiles_policies_and_operations(host: Host) -> None:
    put(host.dirs["policies"], "support.yaml", "egress: nothing\n")
    put(host.dirs["operations"], "a.yaml", "operations: nothing\n")
    checks = host.doctor()
    for name, verb in (("policies", "policy"), ("operations", "operation")):
        assert checks[name]["state"] == "wrong" and len(checks[name]["findings"]) == 1
        path = host.dirs[name]
        assert checks[name]["findings"] == [f"{path} has 1 fault, and the daemon does not start with it: demilune {verb} check {path}"]


@ROOT_ONLY
def test_doctor_looks_for_what_operations_name(host: Host) -> None:
    sample = (Path(__file__).resolve().parents[1] / "unit/config/sample.yaml").read_text()
    put(host.dirs["operations"], "a.yaml", sample)
    payments = host.dirs["secrets"] / "payments"
    assert [f.split(" ")[0] for f in host.doctor()["operations"]["findings"]] == [str(payments)]
    put(host.dirs["secrets"], "payments", "hunter22")
    assert host.doctor()["operations"]["state"] == "ok"


@ROOT_ONLY
@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_doctor_finds_a_policy_that_others_write(host: Host, mode: int) -> None:
    path = put(host.dirs["policies"], "support.yaml", "egress: []\n")
    path.chmod(mode)
    found = host.doctor()["policies"]
    assert found["state"] == "wrong"
    assert found["findings"][0].startswith(f"{path} has mode ") and f"chmod go-w {path}" in found["findings"][0]


@ROOT_ONLY
@pytest.mark.parametrize("file, line, whose", [
    ("/etc/passwd", "guest:x:2130706500:2130706500::/:/bin/false", "the user guest (2130706500)"),
    ("/etc/group", "guests:x:2147483648:", "the group guests (2147483648)"),
    ("/etc/subuid", "anna:2130706000:500", "what /etc/subuid gives to anna (2130706000 and 499 more)"),
    ("/etc/subgid", "anna:2214592511:65536", "what /etc/subgid gives to anna (2214592511 and 65535 more)")])
def test_doctor_finds_ids_that_somebody_has(host: Host, tmp_path: Path, file: str, line: str, whose: str) -> None:
    assert host.doctor()["uids"]["state"] == "ok"
    shown = put(tmp_path, "shown", Path(file).read_text() + line + "\n")
    bound: list[str | Path] = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", shown, file]
    done = subprocess.run([*bound, BINARY, "doctor", "--json", "--config", host.config], capture_output=True, text=True, timeout=60,
                          env=ENVIRONMENT | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, check=False)
    found = {check["check"]: check for check in json.loads(done.stdout)}["uids"]
    of = "sandboxes: give uids.sandbox_base" if "2147483648" in line or "2214592511" in line else "gateways: give uids.gateway_base"
    assert found["state"] == "wrong" and len(found["findings"]) == 1
    assert found["findings"][0].startswith(f"{whose} is among the ids ") and f" of {of} another number" in found["findings"][0]


def test_a_policy_of_the_daemon_and_one_of_a_file_are_compared(fake: Fake, here: Path) -> None:
    fake.on("GET", "/v1/policies/support", 200, row(document(name="support")))
    text = fake.run("policy", "diff", "support", str(put(here, "support.yaml", TEXT)), code=1).stdout.decode()
    assert [line[:6] for line in text.splitlines()] == ["+ rule"] * 4
