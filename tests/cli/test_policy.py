# SPDX-License-Identifier: Apache-2.0
"""`demilune policy show`, `try` and `diff` with policies of the daemon, `net`, and `--policy`: what is asked, decided and printed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fake import SANDBOX, TASK, Fake, Handler, Seen
from policies import DOCS, MIRROR, PINNED, SUPPORT, TRACK, document, row

EVIL = "\x1b[2J\x1b]0;owned\x07\u202etxt\n"


def rows(text: bytes) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in text.decode().splitlines()]


def serve(fake: Fake, policy: dict[str, Any], **more: Any) -> None:
    fake.on("GET", f"/v1/policies/{policy['name']}", 200, row(policy, **more))


def attempt(fake: Fake, *args: str, code: int = 0, policy: dict[str, Any] = SUPPORT) -> tuple[str, list[list[str]]]:
    """What is said under the table, and the table."""
    serve(fake, policy)
    text = fake.run("policy", "try", "--policy", policy["name"], *args, code=code).stdout.decode()
    table, _, said = text.rpartition("\n\n")
    return said or text, rows(table.encode())


# ---- show ----


def test_show_lists_policies(fake: Fake) -> None:
    fake.on("GET", "/v1/policies", 200, {"items": [row(SUPPORT, sandboxes=2), row(document(name="empty"))], "more": False})
    head, support, empty = rows(fake.run("policy", "show").stdout)
    assert head == ["POLICY", "RULES", "OLDER", "DIGEST", "TENANTS"] and support[4] == "all"
    assert support[:3] == ["support", "4", "2"] and support[3] == row(SUPPORT)["digest"][:19] and empty[:3] == ["empty", "0", "0"]


def test_show_marks_weak_rules_in_words(fake: Fake) -> None:
    serve(fake, SUPPORT, sandboxes=1)
    text = fake.run("policy", "show", "support").stdout.decode()
    assert row(SUPPORT)["digest"] in text and "1 living sandbox has an older one" in text and "bytes_out 64 MiB" in text
    table = rows(text.partition("\n\n")[2].partition("\n\n")[0].encode())
    assert table[0] == ["RULE", "KIND", "WHERE", "WEAK", "WHAT"]
    assert table[1] == ["1", "fetch", "https://docs.example.com/help/**", "methods GET, HEAD; query lang; answers up to 8 MiB"]
    assert table[2][:3] == ["2", "brokered", "https://api.carrier.example/v1/track/*"]
    assert "credential carrier as Authorization: Bearer ...; answered with eta, status" in table[2][3]
    assert table[3] == ["3", "tcp", "mirror.internal:873", "weak", "at the address 10.0.3.7"]
    assert table[4] == ["4", "passthrough", "pinned.example:443", "weak"]
    assert "support: rule 3 (tcp mirror.internal:873) is weak: nothing of what is said on this connection is seen" in text
    assert "rule 4 (passthrough pinned.example:443) is weak: nothing of what is said inside TLS is seen" in text
    assert "rule 1" not in text and "rule 2" not in text, "only weak rules have a line"


@pytest.mark.parametrize("rule, words", [
    (DOCS | {"labels": "many"}, "labels"), (DOCS | {"port": 80, "tls": None}, "not encrypted"), (DOCS | {"websocket": True}, "upgrade"),
    (DOCS | {"host": "dns.google"}, "resolves names")])
def test_each_weakness_is_told(fake: Fake, rule: dict[str, Any], words: str) -> None:
    serve(fake, document({k: v for k, v in rule.items() if v is not None}))
    text = fake.run("policy", "show", "support").stdout.decode()
    assert "support: rule 1 (" in text and words in text and "no weak rules" not in text


def test_show_without_weak_rules_and_without_rules(fake: Fake) -> None:
    serve(fake, document(DOCS))
    assert fake.run("policy", "show", "support").stdout.endswith(b"\nno weak rules\n")
    serve(fake, document(tenants=["acme", "globex"], capture=True, ipv6=True))
    text = fake.run("policy", "show", "support").stdout.decode()
    assert "no rules: nothing leaves a sandbox" in text
    assert re.search(r"tenants +acme, globex", text) and re.search(r"addresses +ipv6", text)


def test_show_of_a_task_is_its_own_revision(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK})
    fake.on("GET", f"/v1/tasks/{TASK}/policy", 200, row(SUPPORT, current=False))
    text = fake.run("policy", "show", "--task", TASK).stdout.decode()
    assert "an older one; new sandboxes get another" in text
    assert b"either a policy or --task" in fake.run("policy", "show", "support", "--task", TASK, code=1).stderr


def test_show_as_json_is_the_answer(fake: Fake) -> None:
    serve(fake, SUPPORT)
    assert json.loads(fake.run("policy", "show", "support", "--json").stdout) == row(SUPPORT)


def test_a_document_that_is_not_its_digest_is_refused(fake: Fake) -> None:
    fake.on("GET", "/v1/policies/support", 200, row(SUPPORT) | {"policy": document(DOCS, TRACK, MIRROR)})
    for verb in (("show", "support"), ("try", "--policy", "support", "https://docs.example.com/help/")):
        assert b"not the one that its digest names" in fake.run("policy", *verb, code=None).stderr


@pytest.mark.parametrize("policy", [
    None, [], "support", {}, {"rules": []}, document(DOCS) | {"v": 2}, document(DOCS | {"host": "Docs.example.com"}),
    document(DOCS | {"path": "/../x"}), document(DOCS, MIRROR | {"host": "docs.example.com", "port": 443}), document(*[DOCS] * 65)],
    ids=lambda p: repr(p)[:40])
def test_what_is_no_document_decides_nothing(fake: Fake, policy: Any) -> None:
    fake.on("GET", "/v1/policies/support", 200, row(SUPPORT) | {"policy": policy})
    done = fake.run("policy", "try", "--policy", "support", "https://docs.example.com/help/", code=2)
    assert done.stdout == b"" and done.stderr.startswith(b"demilune: ")


# ---- try ----


def test_try_tells_each_step_and_the_rule(fake: Fake) -> None:
    said, table = attempt(fake, "https://docs.example.com/help/x?lang=en")
    assert said.startswith("allowed by rule 1 (fetch https://docs.example.com/help/**)\n")
    assert "nothing was sent: which address docs.example.com leads to" in said
    assert table[0] == ["RULE", "WHAT MUST HOLD", "HOLDS"]
    assert [r[0] for r in table[1:]] == ["1"] * 10 + ["2", "3", "4"]
    assert [r[2] for r in table[1:]] == ["yes"] * 10 + ["no"] * 3


@pytest.mark.parametrize("url, reason, more", [
    ("https://docs.example.com/other", "path", "rule 1 (fetch https://docs.example.com/help/**) came nearest"),
    ("https://docs.example.com/help/%2e%2e/x", "path", "came nearest"),
    ("https://docs.example.com/help/x?q=1", "query", "came nearest"),
    ("https://docs.example.com:8443/help/x", "port", "but not this port"),
    ("http://docs.example.com/help/x", "port", "but not this port"),
    ("http://docs.example.com:443/help/x", "scheme", "not spoken in this way"),
    ("https://evil.example/", "no-rule", "names this host"),
    ("https://docs.example.com.evil.example/help/x", "no-rule", "names this host"),
    ("http://169.254.169.254/latest/meta-data", "ip-literal", "an address"),
    ("http://2130706433/", "host-syntax", "malformed"),
    ("http://0x7f.1/", "host-syntax", "malformed"),
    ("https://docs.ex\u00e4mple.com/", "host-idn", "A-label"),
    ("https://user:word@docs.example.com/help/x", "url-syntax", "not a URL"),
    ("https://docs.example.com/help/x#part", "path", "illegal part"),
    ("https://docs.example.com\\@evil.example/", "url-syntax", "not a URL"),
    ("ftp://docs.example.com/", "scheme", "only http and https"),
    ("file:///etc/passwd", "scheme", "only http and https"),
    ("docs.example.com", "url-syntax", "or NAME:PORT"),
    ("tcp://mirror.internal:873", "scheme", "try other protocols as NAME:PORT"),
    ("docs.example.com:443", "not-http", "try a URL"),
    ("https://api.carrier.example/v1/track/7?number=1&number=2", "url-syntax", "given twice"),
    ("https://api.carrier.example/v1/track/", "path", "rule 2"),
    ("https://api.carrier.example/v1/track/7/8", "path", "rule 2"),
])
def test_try_refuses_with_the_reason_and_its_sentence(fake: Fake, url: str, reason: str, more: str) -> None:
    said, _ = attempt(fake, url, code=1)
    assert said.startswith(f"refused: {reason}: "), said
    assert more in said, said
    assert "nothing was sent" not in said


def test_try_of_a_bare_question_mark_is_a_query(fake: Fake) -> None:
    plain = document({k: v for k, v in DOCS.items() if k != "query"})
    assert attempt(fake, "https://docs.example.com/help/x?", code=1, policy=plain)[0].startswith("refused: query: ")
    assert attempt(fake, "https://docs.example.com/help/x", policy=plain)[0].startswith("allowed by rule 1 ")


def test_try_names_a_method(fake: Fake) -> None:
    said, _ = attempt(fake, "-X", "POST", "https://docs.example.com/help/x", code=1)
    assert said.startswith("refused: method: ")
    assert attempt(fake, "--method", "HEAD", "https://docs.example.com/help/x")[0].startswith("allowed by rule 1 ")
    for method in ("BREW", "get", "CONNECT", "TRACE"):
        assert b"no request of a sandbox has this method" in fake.run(
            "policy", "try", "--policy", "support", "-X", method, "https://docs.example.com/", code=2).stderr


def test_try_says_that_an_address_may_be_refused_yet(fake: Fake) -> None:
    said, _ = attempt(fake, "https://10.0.0.5/help/x", policy=document(DOCS | {"host": "10.0.0.5"}))
    assert "one that is not needs `address: 10.0.0.5` in the rule" in said


def test_try_says_what_is_weak_and_what_the_broker_adds(fake: Fake) -> None:
    said, _ = attempt(fake, "https://pinned.example/")
    assert said.startswith("allowed by rule 4 (passthrough pinned.example:443)\nthe rule is weak: nothing of what is said inside TLS")
    said, _ = attempt(fake, "mirror.internal:873")
    assert "the rule is weak: " in said and said.endswith("nothing was sent; it goes to 10.0.3.7, as the rule says\n")
    said, _ = attempt(fake, "https://api.carrier.example/v1/track/7?number=48221")
    assert "allowed by rule 2 (brokered " in said and "the broker adds carrier, and only the fields of the rule come back" in said


@pytest.mark.parametrize("args, rule", [
    (("https://docs.example.com/other",), '- fetch: {url: "https://docs.example.com/other", methods: [GET]}'),
    (("-X", "POST", "https://docs.example.com/help/x"),
     '- fetch: {url: "https://docs.example.com/help/x", methods: [POST], request_max: 64KiB}'),
    (("https://new.example:8443/a?page=2&lang=en",), '- fetch: {url: "https://new.example:8443/a", methods: [GET], query: [page, lang]}'),
    (("db.example:5432",), "- tcp: {name: db.example, port: 5432}"),
])
def test_try_says_which_rule_would_allow_it(fake: Fake, args: tuple[str, ...], rule: str) -> None:
    assert attempt(fake, *args, code=1)[0].splitlines()[-1] == "a rule that would allow it: " + rule


@pytest.mark.parametrize("args", [
    ("http://169.254.169.254/latest",), ("https://docs.example.com/help/%2e%2e/x",), ("https://api.carrier.example/v1/other",),
    ("https://docs.example.com/other/*",), ("https://evil.example/?token=x",),
    ("https://evil.example/?%22%7D=x",), ("169.254.169.254:80",)])
def test_try_has_no_hint_where_no_rule_should_be(fake: Fake, args: tuple[str, ...]) -> None:
    assert "would allow it" not in attempt(fake, *args, code=1)[0]


def test_try_as_json(fake: Fake) -> None:
    serve(fake, SUPPORT)
    done = json.loads(fake.run("policy", "try", "--policy", "support", "--json", "https://evil.example/a", code=1).stdout)
    assert done == {"request": "https://evil.example/a", "method": "GET", "policy": "support", "allowed": False, "reason": "no-rule",
                    "error": "no rule of this sandbox's policy names this host",
                    "would_allow": '- fetch: {url: "https://evil.example/a", methods: [GET]}',
                    "steps": [{"rule": n, "step": "the rule names this host", "holds": False} for n in (1, 2, 3, 4)]}
    done = json.loads(fake.run("policy", "try", "--policy", "support", "--json", "https://docs.example.com/help/").stdout)
    assert done["allowed"] is True and done["rule"] == 1 and done["reason"] == "none" and len(done["steps"]) == 13


def test_try_of_a_task_asks_for_its_revision(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK})
    fake.on("GET", f"/v1/tasks/{TASK}/policy", 200, row(SUPPORT, current=False))
    assert fake.run("policy", "try", "--task", TASK, "https://docs.example.com/help/").stdout.count(b"allowed by rule 1") == 1


def test_try_wants_one_policy(fake: Fake) -> None:
    for args in (("https://a.example/",), ("--policy", "support", "--task", TASK, "https://a.example/"),
                 ("--policy", "support", "x.yaml", "https://a.example/")):
        assert b"by which policy?" in fake.run("policy", "try", *args, code=2).stderr
    assert fake.run("policy", "try", code=2).stderr.startswith(b"demilune: usage: ")
    done = fake.run("policy", "try", "--policy", "support", "https://a.example/", code=2)
    assert b"no route for GET" in done.stderr, "a daemon that does not know is no verdict"


# ---- diff ----


def test_diff_goes_rule_by_rule(fake: Fake) -> None:
    serve(fake, SUPPORT)
    serve(fake, document(DOCS | {"query": ["lang", "v"]}, TRACK, PINNED, name="next", budgets={"names": 50}, tenants=["acme"]))
    lines = fake.run("policy", "diff", "support", "next", code=1).stdout.decode().splitlines()
    assert [line[:28] for line in lines] == [
        "- rule fetch https://docs.ex", "+ rule fetch https://docs.ex", "  rule brokered https://api.", "- rule tcp mirror.internal:8",
        "  rule passthrough pinned.ex", "- budget names 100", "+ budget names 50", "- tenants all", "+ tenants acme"]
    assert "query lang;" in lines[0] and "query lang, v;" in lines[1]
    changes = json.loads(fake.run("policy", "diff", "support", "next", "--json", code=1).stdout)
    assert [(c["change"], c["what"]) for c in changes] == [
        ("removed", "rule"), ("added", "rule"), ("removed", "rule"), ("removed", "budget"), ("added", "budget"), ("removed", "tenants"),
        ("added", "tenants")]


def test_diff_of_the_same_is_silent(fake: Fake) -> None:
    serve(fake, SUPPORT)
    assert fake.run("policy", "diff", "support", "support").stdout == b""
    assert fake.run("policy", "diff", "support", "support", "--json").stdout == b"[]\n"
    assert b"no route" in fake.run("policy", "diff", "support", "nowhere", code=2).stderr


def test_diff_sees_what_moved_and_the_last_byte(fake: Fake) -> None:
    serve(fake, SUPPORT)
    serve(fake, document(TRACK, DOCS, MIRROR, PINNED, name="moved"))
    lines = fake.run("policy", "diff", "support", "moved", code=1).stdout.decode().splitlines()
    assert sorted(line[0] for line in lines) == [" ", " ", " ", "+", "-"], "order decides, so a rule that moved is told"
    serve(fake, document(DOCS, TRACK, MIRROR, PINNED, name="close", budgets={"bytes_out": (64 << 20) + 1}, capture=True))
    text = fake.run("policy", "diff", "support", "close", code=1).stdout.decode()
    assert "- budget bytes_out 64 MiB (67108864 B)\n+ budget bytes_out 64 MiB (67108865 B)\n" in text
    assert text.endswith("- capture false\n+ capture true\n") and "rule" in text


# ---- net ----

REACHED = {"verdict": "allowed", "reason": "none", "scheme": "https", "name": "docs.example.com", "port": 443, "rule": 1,
           "address": "192.0.2.7", "policy_digest": "sha256:00", "count": 3, "bytes_out": 512, "bytes_in": 2048,
           "first_at": "2026-11-29T16:13:04.000Z", "last_at": "2026-11-29T16:13:05.000Z"}
REFUSED = REACHED | {"verdict": "refused", "reason": "no-rule", "name": "intake.evil.tld", "address": "", "count": 1, "bytes_out": 0,
                     "bytes_in": 0}
REFUSED.pop("rule")
NET = {"items": [REFUSED, REACHED], "more": False, "budgets": [
    {"budget": "names", "used": 2, "lent": 4, "limit": 100}, {"budget": "bytes_in", "used": 1048576, "lent": 0, "limit": 1048576}]}


def test_net_is_a_table_of_verdicts_and_budgets(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK})
    fake.on("GET", f"/v1/tasks/{TASK}/net", 200, NET)
    table = rows(fake.run("net", TASK).stdout)
    assert table[0] == ["VERDICT", "REASON", "WHERE", "RULE", "ADDRESS", "COUNT", "OUT", "IN", "LAST"]
    assert table[1] == ["refused", "no-rule", "https intake.evil.tld:443", "-", "1", "0 B", "0 B", "2026-11-29 16:13:05"]
    assert table[2] == ["allowed", "-", "https docs.example.com:443", "1", "192.0.2.7", "3", "512 B", "2 KiB", "2026-11-29 16:13:05"]
    assert table[4] == ["BUDGET", "USED", "LENT", "LIMIT", "STATE"]
    assert table[5] == ["names", "2", "4", "100"] and table[6] == ["bytes_in", "1 MiB", "0 B", "1 MiB", "used up"]
    assert json.loads(fake.run("net", TASK, "--json").stdout) == NET


def test_net_shows_an_address_where_there_is_no_name(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK})
    fake.on("GET", f"/v1/tasks/{TASK}/net", 200, NET | {"items": [
        REFUSED | {"reason": "raw-address", "scheme": "none", "name": "", "address": "10.0.0.5"},
        REFUSED | {"reason": "url-syntax", "scheme": "none", "name": "", "port": 0}]})
    table = rows(fake.run("net", TASK).stdout)
    assert table[1][:3] == ["refused", "raw-address", "10.0.0.5:443"] and table[2][:4] == ["refused", "url-syntax", "-", "-"]


def test_net_of_a_task_without_a_policy_and_of_one_that_asked_nothing(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK})
    fake.on("GET", f"/v1/tasks/{TASK}/net", 200, {"items": [], "budgets": [], "more": False})
    assert fake.run("net", TASK).stdout == b"the task has no policy: its sandboxes reach nothing\n"
    fake.on("GET", f"/v1/tasks/{TASK}/net", 200, NET | {"items": []})
    assert fake.run("net", TASK).stdout.startswith(b"nothing was asked for yet\n\nBUDGET ")


def test_names_of_a_program_do_not_move_the_terminal(fake: Fake) -> None:
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK, "state": "closed"})
    fake.on("GET", f"/v1/tasks/{TASK}/net", 200, NET | {"items": [REFUSED | {"name": EVIL, "reason": EVIL, "address": EVIL}]})
    for args in (("net", TASK), ("net", TASK, "--follow")):
        out = fake.run(*args).stdout
        assert b"\x1b" not in out and b"\x07" not in out and "\u202e".encode() not in out
        assert b"\\x1b" in out or b"\\u{1b}" in out or b"^[" in out, out


def test_net_follows_until_the_task_is_over(fake: Fake) -> None:
    looks = {"task": 0, "net": 0}

    def task(h: Handler, s: Seen) -> None:
        looks["task"] += 1
        h.answer(200, {"id": TASK, "state": "closed" if looks["task"] > 4 else "open"})

    def net(h: Handler, s: Seen) -> None:
        looks["net"] += 1
        items = [REFUSED] if looks["net"] < 3 else [REACHED | {"count": looks["net"]}, REFUSED]
        h.answer(200, NET | {"items": items})

    fake.on("GET", f"/v1/tasks/{TASK}", task)
    fake.on("GET", f"/v1/tasks/{TASK}/net", net)
    lines = fake.run("net", TASK, "--follow").stdout.decode().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["refused no-rule https intake.evil.tld:443"] + \
        ["allowed https docs.example.com:443"] * (looks["net"] - 2), lines
    assert looks["net"] >= 3
    looks.update(task=0, net=0)
    told = [json.loads(line) for line in fake.run("net", TASK, "--follow", "--json").stdout.splitlines()]
    assert told[0] == REFUSED and told[1]["count"] == 3


# ---- --policy ----


def test_a_policy_is_named_when_a_sandbox_or_a_task_is_made(fake: Fake) -> None:
    fake.sandbox()
    fake.run("sandbox", "create", "--policy", "support")
    assert fake.asked("POST", "/v1/sandboxes").json()["policy"] == "support"
    fake.on("POST", "/v1/tasks", 201, {"id": TASK})
    fake.run("task", "create", "--policy", "support")
    assert fake.asked("POST", "/v1/tasks").json()["policy"] == "support"
    fake.exec([("exit", {"exit_code": 0, "reason": "exited"})])
    fake.run("run", "--policy", "support", "true")
    assert fake.asked("POST", "/v1/sandboxes").json()["policy"] == "support"
    fake.run("run", "true")
    assert "policy" not in fake.asked("POST", "/v1/sandboxes").json()
    assert fake.run("sandbox", "list", "--policy", "x", code=2).stderr.endswith(b"demilune sandbox list has no --policy\n")


def test_show_of_sandbox_and_task_tells_the_policy(fake: Fake) -> None:
    fake.on("GET", f"/v1/sandboxes/{SANDBOX}", 200, {"id": SANDBOX, "policy": "support", "policy_digest": "sha256:" + "ab" * 32})
    assert re.search(rb"policy +support, sha256:abab", fake.run("sandbox", "show", SANDBOX).stdout)
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK, "policy": "none"})
    assert re.search(rb"policy +none", fake.run("task", "show", TASK).stdout)


def test_a_policy_that_there_is_not_comes_with_where_to_look(fake: Fake) -> None:
    told = "no such policy; `demilune policy show` (GET /v1/policies) has those that may be used"
    fake.on("POST", "/v1/sandboxes", lambda h, s: h.refuse(404, "not_found", told))
    assert fake.run("sandbox", "create", "--policy", "nowhere", code=1).stderr.decode() == (
        f"demilune: {told}; a new file is read when the daemon gets SIGHUP\n")
    fake.on("GET", f"/v1/tasks/{TASK}", 200, {"id": TASK})
    told = "the task has no policy: its sandboxes reach nothing at all"
    fake.on("GET", f"/v1/tasks/{TASK}/policy", lambda h, s: h.refuse(404, "not_found", told))
    assert fake.run("policy", "show", "--task", TASK, code=1).stderr.decode() == \
        f"demilune: {told}; a task gets one by --policy, when it is made\n"
