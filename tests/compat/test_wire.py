# SPDX-License-Identifier: Apache-2.0
"""The wire beneath the SDKs, as scripts with curl speak it: another header for the token, events, metrics, odd requests."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from place import Caller


def ask(caller: Caller, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status and object; JSON is sent without a content type of its own, as curl -d does."""
    sent = {"X-API-Key": caller.token} if headers is None else headers
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(caller.url + path, data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read())


@pytest.fixture
def box(caller: Caller) -> Iterator[str]:
    status, made = ask(caller, "POST", "/v1/sandboxes", {"template": "python", "cpu": 1, "memory_mb": 256})
    assert status == 201, made
    yield f"/v1/sandboxes/{made['id']}"
    ask(caller, "DELETE", f"/v1/sandboxes/{made['id']}")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": "dml_" + "0" * 40},
        {"X-API-Key": ""},
        {"Authorization": "Basic dTpw"},
        {"Authorization": "Bearer "},
    ],
    ids=str,
)
def test_who_is_not_known(caller: Caller, headers: dict[str, str]) -> None:
    status, said = ask(caller, "GET", "/v1/sandboxes", headers=headers)
    assert status == 401
    assert said["code"] == "unauthorized"


def test_a_bad_authorization_is_not_made_good_by_the_key(caller: Caller) -> None:
    status, _ = ask(caller, "GET", "/v1/me", headers={"Authorization": "Basic dTpw", "X-API-Key": caller.token})
    assert status == 401


def test_both_headers(caller: Caller, stranger: Caller) -> None:
    both = {"Authorization": f"Bearer {caller.token}", "X-API-Key": stranger.token}
    assert ask(caller, "GET", "/v1/me", headers=both)[1]["tenant"] == "compat"


def test_events(caller: Caller, box: str) -> None:
    assert ask(caller, "POST", box + "/pause")[0] < 300
    assert ask(caller, "POST", box + "/resume")[0] < 300
    status, said = ask(caller, "GET", box + "/events?tail=100")
    assert status == 200
    types = [event["type"] for event in said["events"]]
    wanted = [t for t in types if t in ("sandbox.running", "sandbox.paused", "sandbox.resumed")]
    assert wanted == ["sandbox.running", "sandbox.paused", "sandbox.resumed"]
    assert all(event["sandbox_id"] == box.rsplit("/", 1)[1] for event in said["events"])
    assert len(ask(caller, "GET", box + "/events?tail=1")[1]["events"]) == 1


def test_metrics(caller: Caller, box: str) -> None:
    _, said = ask(caller, "GET", box + "/metrics")
    assert said["pid"] > 0
    assert said["host_rss_bytes"] > 0


def test_file_by_hand(caller: Caller, box: str) -> None:
    assert ask(caller, "PUT", box + "/fs?path=/tmp/hello.txt", b"hello pandas")[0] < 300
    assert ask(caller, "GET", box + "/fs?path=/tmp/hello.txt") == (200, b"hello pandas")
    assert ask(caller, "GET", box + "/fs/stat?path=/tmp/hello.txt")[1]["size"] == 12
    assert ask(caller, "POST", box + "/fs/mkdir?path=/tmp/a/b")[0] < 300
    names = [entry["name"] for entry in ask(caller, "GET", box + "/fs/dir?path=/tmp")[1]["entries"]]
    assert sorted(names) == ["a", "hello.txt"]
    assert ask(caller, "DELETE", box + "/fs?path=/tmp/hello.txt")[0] < 300
    assert ask(caller, "GET", box + "/fs?path=/tmp/hello.txt")[0] == 404


def test_stream_by_hand(caller: Caller, box: str) -> None:
    _, text = ask(caller, "POST", box + "/exec/stream", {"cmd": "for i in 1 2 3; do echo line$i; sleep 0.1; done"})
    frames = text.decode("ascii").split("\n\n")
    assert frames[-1] == "", "the last frame has its blank line"
    events = [line.removeprefix("event: ") for frame in frames for line in frame.splitlines() if line.startswith("event:")]
    assert set(events) == {"stdout", "exit"}
    assert '"exit_code":0' in frames[-2]


def test_create_again_with_the_same_key(caller: Caller) -> None:
    headers = {"X-API-Key": caller.token, "Idempotency-Key": f"compat-{time.time_ns()}"}
    status, one = ask(caller, "POST", "/v1/sandboxes", {"template": "python"}, headers)
    _, two = ask(caller, "POST", "/v1/sandboxes", {"template": "python"}, headers)
    assert (status, one["id"]) == (201, two["id"])
    status, said = ask(caller, "POST", "/v1/sandboxes", {"template": "python", "persistent": True}, headers)
    assert (status, said["code"]) == (409, "idempotency_mismatch")
    ask(caller, "DELETE", f"/v1/sandboxes/{one['id']}")


@pytest.mark.parametrize("verb", ["snapshots", "fork", "fork-tree", "hibernate", "wake", "promote"])
def test_what_needs_a_microvm(caller: Caller, box: str, verb: str) -> None:
    status, said = ask(caller, "POST", f"{box}/{verb}", {"count": 2})
    assert (status, said["code"]) == (501, "not_implemented")
    assert "microvm" in said["error"]


def test_what_is_not_there(caller: Caller) -> None:
    for path in ("/v1/nothing", "/v2/sandboxes", "/", "/v1/sandboxes/sb_0000000000000000/fs?path=/x"):
        status, said = ask(caller, "GET", path)
        assert status == 404, path
        assert isinstance(said["error"], str)


def test_large_file(caller: Caller, box: str) -> None:
    data = b"\xc3" * (50 << 20)
    assert ask(caller, "PUT", box + "/fs?path=/work/large", data)[0] < 300
    assert ask(caller, "GET", box + "/fs?path=/work/large") == (200, data)


def test_a_mode_that_forbids_writing_is_meant(caller: Caller, box: str) -> None:
    assert ask(caller, "PUT", box + "/fs?path=/work/kept&mode=0444", b"old")[0] < 300
    status, said = ask(caller, "PUT", box + "/fs?path=/work/kept", b"new")
    assert (status, said["code"]) == (400, "file")
    assert ask(caller, "GET", box + "/fs?path=/work/kept")[1] == b"old"
