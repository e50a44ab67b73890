#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policies and requests by chance, decided twice: by lib/egress (the program decide) and by the few lines here, which were written from
demilune-policy(5) alone and share nothing with it. Each document accepted or refused, each reason and each rule must be the same.

    differential.py DECIDE [SEED]
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
import subprocess
import sys
from typing import Any
from urllib.parse import unquote_to_bytes

POLICIES, REQUESTS = 400, 60
LABELS = ["a", "b", "test"]
NAMES = [".".join(c) for n in (1, 2, 3, 4) for c in itertools.product(LABELS, repeat=n)]
ADDRESSES = ["10.0.0.1", "10.0.0.2"]
PORTS = [80, 443, 9]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
SEGMENTS = ["a", "b", "a%20b", "A", ""]
ODD = ["..", ".", "%2e", "a;b", "%2f", "%00", "%ff", "a|b", "%25", "%zz", "a%5cb", "~"]
PARAMETERS = ["q", "page", "key", "lang"]
BODIES = {"POST", "PUT", "PATCH"}

Rule = dict[str, Any]


# ---- by chance ----

def some_rule(r: random.Random) -> Rule:
    kind = r.choices(["fetch", "brokered", "tcp", "passthrough"], [8, 3, 1, 1])[0]
    rule: Rule = {"kind": kind, "host": r.choice(ADDRESSES) if r.random() < 0.1 else r.choice(NAMES[:12]), "port": r.choice(PORTS)}
    if rule["host"] not in ADDRESSES and r.random() < 0.4:
        rule["labels"] = r.choice(["one", "many"])
    if kind in ("tcp", "passthrough"):
        return rule
    parts = [r.choice(["a", "b", "a%20b", "*"]) for _ in range(r.randrange(3))] + [r.choice(["", "**", "a", "*", "**"])]
    rule |= {"path": "/" + "/".join(parts), "methods": ["GET"], "response_max": 1000}
    if r.random() < 0.4:
        rule["query"] = sorted(r.sample(PARAMETERS, r.randrange(1, 3)))
    if kind == "brokered":
        return rule | {"credential": {"header": "Authorization", "secret": "s"}, "fields": ["f"]}
    rule["methods"] = sorted(r.sample(METHODS, r.randrange(1, 4)), key=METHODS.index)
    if set(rule["methods"]) & BODIES:
        rule["request_max"] = 100
    if rule["port"] != 80:
        rule["tls"] = True
    if "GET" in rule["methods"] and r.random() < 0.2:
        rule["websocket"] = True
    return rule


def some_request(r: random.Random, rules: list[Rule]) -> tuple[str, ...]:
    near = r.choice(rules) if rules and r.random() < 0.9 else {"host": "a.test", "port": 443}
    host = near["host"]
    if "labels" in near and r.random() < 0.8:
        host = ".".join(r.choices(LABELS, k=r.choice([1, 1, 2]))) + "." + host
    if r.random() < 0.15:
        host = r.choice(NAMES + ADDRESSES)
    port = near["port"] if r.random() < 0.9 else r.choice(PORTS)
    scheme = "http" if port == 80 and near.get("kind") != "brokered" else "https"
    scheme = r.choice(["http", "https", "tcp"]) if r.random() < 0.1 else scheme
    parts = [r.choice(SEGMENTS[:3]) if p == "*" else p for p in near.get("path", "/a").split("/")[1:] if p != "**"]
    if near.get("path", "").endswith("**"):
        parts += r.choices(SEGMENTS[:4], k=r.randrange(1, 3))
    if r.random() < 0.3:
        parts[r.randrange(len(parts))] = r.choice(SEGMENTS + ODD)
    if r.random() < 0.1:
        parts.append(r.choice(SEGMENTS + ODD))
    pairs = [p + r.choice(["", "=1", "=%41", "=%ff", "=+"]) for p in r.sample(near.get("query", PARAMETERS), r.randrange(0, 2))]
    if r.random() < 0.1:
        pairs.append(r.choice(["%71=1", "q=2", "", "=1", "x=1", "KEY=1", "q%00=1"]))
    query = "?" + "&".join(pairs) if pairs or r.random() < 0.05 else "-"
    method = r.choice(near.get("methods", METHODS)) if r.random() < 0.8 else r.choice(METHODS)
    body = method in BODIES or r.random() < 0.05
    flags = "x" + "c" * (r.random() < 0.05) + "u" * (r.random() < 0.1) + "b" * body
    length = r.choice([0, 5, 100, 101, 2**64 - 1]) if body else 0
    return host, str(port), scheme, method, flags, str(length), "/" + "/".join(parts), query


# ---- the second opinion ----

@functools.cache
def host_fits(host: str, labels: str, name: str) -> bool:
    label = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
    front = {"one": f"{label}\\.", "many": f"({label}\\.)+"}.get(labels, "")
    return re.fullmatch(front + re.escape(host), name) is not None


def hosts(rule: Rule, name: str) -> bool:
    return host_fits(rule["host"], rule.get("labels", ""), name)


def speaks(rule: Rule) -> set[str]:
    if rule["kind"] == "tcp":
        return {"tcp", "http", "https"}
    if rule["kind"] == "fetch" and "tls" not in rule:
        return {"http"}
    return {"https"}


def document_ok(rules: list[Rule]) -> bool:
    for one, other in itertools.combinations(rules, 2):
        apart = one["kind"] == other["kind"] and one.get("tls") == other.get("tls")
        if not apart and one["port"] == other["port"] and any(hosts(one, n) and hosts(other, n) for n in NAMES + ADDRESSES):
            return False
    return True


def path_ok(path: str) -> bool:
    if not re.fullmatch(r"/([A-Za-z0-9._~!$&'()*+,=:@/-]|%[0-9A-Fa-f]{2})*", path):
        return False
    parts = path.split("/")[1:]
    for i, part in enumerate(parts):
        raw = unquote_to_bytes(part)
        if raw in (b".", b"..") or (raw == b"" and i + 1 < len(parts)) or re.search(rb"[\x00-\x1f\x7f/\\%;]", raw):
            return False
        try:
            raw.decode()
        except UnicodeDecodeError:
            return False
    return True


def path_fits(pattern: str, path: str) -> bool:
    want, have = pattern.split("/")[1:], path.split("/")[1:]
    if want[-1] == "**":
        want = want[:-1]
        if len(have) <= len(want):
            return False
        have = have[:len(want)]
    return len(want) == len(have) and all(h != "" if w == "*" else w == h for w, h in zip(want, have, strict=True))


def parameters(query: str) -> list[str] | None:
    names: list[str] = []
    for pair in query[1:].split("&") if query != "?" else []:
        texts = [unquote_to_bytes(t.replace("+", " ")) for t in pair.split("=", 1)]
        try:
            name, *_ = (t.decode() for t in texts)
        except UnicodeDecodeError:
            return None
        if name == "" or name in names or b"\0" in b"".join(texts):
            return None
        names.append(name)
    return names


def first_fault(rule: Rule, method: str, flags: str, length: int, path: str, query: str) -> tuple[int, str]:
    names = parameters(query) if query != "-" else []
    listed = query == "-" or ("query" in rule and names is not None and set(names) <= set(rule["query"]))
    fits = length == 0 or (method in BODIES and "request_max" in rule and (length == 2**64 - 1 or length <= rule["request_max"]))
    steps = [("method", method in rule["methods"]), ("path", path_ok(path)), ("path", path_fits(rule["path"], path)), ("query", listed),
             ("cred-scope", "c" not in flags and not any(n.lower() == "key" for n in names or [])),
             ("upgrade", "u" not in flags or "websocket" in rule), ("body-limit", fits)]
    return next(((i, reason) for i, (reason, holds) in enumerate(steps) if not holds), (len(steps), "none"))


def decide(rules: list[Rule], request: tuple[str, ...]) -> str:
    host, port, scheme, method, flags, length, path, query = request
    named = [i for i, rule in enumerate(rules) if hosts(rule, host)]
    there = [i for i in named if rules[i]["port"] == int(port)]
    spoken = [i for i in there if scheme in speaks(rules[i])]
    if not spoken:
        return ("scheme" if there else "port" if named else "ip-literal" if host in ADDRESSES else "no-rule") + " 65535"
    looked = [i for i in spoken if rules[i]["kind"] in ("fetch", "brokered")]
    if not looked:
        return "no-rule 65535"
    found = [(*first_fault(rules[i], method, flags, int(length), path, query), i) for i in looked]
    _, reason, rule = max(found, key=lambda f: (f[0], -f[2]))
    return f"{reason} {rule}"


# ---- both ----

def document(rules: list[Rule]) -> str:
    names = ["brokered", "bytes_in", "bytes_out", "connections", "handshakes", "names", "requests"]
    whole = {"budgets": dict.fromkeys(names, 1), "name": "p", "rules": rules, "v": 1}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"))


def main() -> int:
    r = random.Random(sys.argv[2] if len(sys.argv) > 2 else "egress")
    asked: list[str] = []
    wanted: list[str] = []
    for _ in range(POLICIES):
        rules = [some_rule(r) for _ in range(r.choice([0, 1, 2, 3, 4, 6]))]
        asked.append("D\t" + document(rules))
        wanted.append("ok" if document_ok(rules) else "refused")
        for _ in range(REQUESTS if document_ok(rules) else 0):
            request = some_request(r, rules)
            asked.append("\t".join(["R", *request]))
            wanted.append(decide(rules, request))
    done = subprocess.run([sys.argv[1]], input="\n".join(asked) + "\n", capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert len(told) == len(wanted)
    last = ""
    for ask, want, is_ in zip(asked, wanted, told, strict=True):
        last = ask if ask.startswith("D") else last
        if want != is_:
            print(f"{last}\n{ask}\nhere: {want}; lib/egress: {is_}")
            return 1
    seen = {w.split()[0] for w in wanted}
    every = {"ok", "refused", "none", "no-rule", "ip-literal", "port", "scheme", "method", "path", "query", "cred-scope", "upgrade",
             "body-limit"}
    if every - seen:
        print(f"chance brought no {', '.join(sorted(every - seen))}")
        return 1
    print(f"{len(told)} decisions are the same; {sum(w.startswith('none ') for w in wanted)} allowed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
