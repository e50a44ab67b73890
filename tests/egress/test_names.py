# SPDX-License-Identifier: Apache-2.0
"""Names: what the resolver of a sandbox answers (research: egress, 4.2, J6, K1), and what becomes of what name servers answer (C)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from outside import Zone, encode
from world import World

PUBLIC = "93.184.216.40"
# Name to what is answered, whether it arrives, and for which reason not.
ANSWERED: dict[str, tuple[object, tuple[int, ...], tuple[str, ...]]] = {
    "c1-loopback.test": (["127.0.0.1"], (403,), ("dns-private",)),
    "c1-private.test": (["10.0.0.5"], (403,), ("dns-private",)),
    "c1-metadata.test": (["169.254.169.254"], (403,), ("dns-private",)),
    "c1-carrier.test": (["100.64.0.1"], (403,), ("dns-private",)),
    "b22-own.test": (["192.0.2.1"], (403,), ("dns-private",)),
    "b23-pool.test": (["198.18.7.7"], (403,), ("dns-private",)),
    "c2-mixed.test": ([PUBLIC, "10.0.0.5"], (403,), ("dns-mixed",)),
    "c2-mixed-first.test": (["10.0.0.5", PUBLIC], (403,), ("dns-mixed",)),
    "c3-six.test": ([PUBLIC, "::1"], (403,), ("dns-mixed",)),
    "c3-ula.test": ([PUBLIC, "fd00::1"], (403,), ("dns-mixed",)),
    "c3-nat64.test": ([PUBLIC, "64:ff9b::a9fe:a9fe"], (403,), ("dns-mixed",)),
    "c4-alias.test": (Zone(cname="metadata.google.internal"), (403,), ("dns-private",)),
    "c6-self.test": (Zone(cname="c6-self.test"), (502, 504), ("dns-fail",)),
    "c13-many.test": ([f"93.184.{n // 200}.{n % 200}" for n in range(400)], (502, 504), ("dns-fail",)),
    "c14-servfail.test": (Zone(rcode=2), (502, 504), ("dns-fail",)),
    "c14-refused.test": (Zone(rcode=5), (502, 504), ("dns-fail",)),
    "c14-nothing.test": (Zone(), (502, 504), ("dns-fail",)),
    "c14-none.test": (Zone(rcode=3), (502, 504), ("dns-fail",)),
    "c7-rebinds.test": (lambda calls: Zone([PUBLIC] if calls == 1 else ["127.0.0.1"]), (200,), ()),
}
POLICY = "egress:\n" + "".join(f'  - fetch: {{url: "http://{name}/**"}}\n' for name in (*ANSWERED, "good.test")) + '  - fetch: {url: "http://*.labels.test/**"}\n'


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    names = {name: row[0] for name, row in ANSWERED.items()} | {"metadata.google.internal": ["169.254.169.254"], "good.test": [PUBLIC]}
    with World({"test": POLICY}, names) as made:  # type: ignore[arg-type]
        outside = made.outside
        made.good = outside.origin(PUBLIC, 80)  # type: ignore[attr-defined]
        for address in ("10.0.0.5", "100.64.0.1", "169.254.169.254", "198.18.7.7"):
            outside.origin(address, 80)
        for address in ("127.0.0.1", "192.0.2.1"):
            outside.origin(address, 80, host=True)
        yield made


def get(name: str) -> bytes:
    return f"GET /x HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()


@pytest.mark.parametrize("name", [name for name, row in ANSWERED.items() if row[2]])
def test_C1_to_C14_all_addresses_are_judged(world: World, name: str) -> None:
    _, status, reason = ANSWERED[name]
    for origin in world.outside.origins:
        origin.forget()
    with world.refused(reason, verdict=None, name=name, silent=False):
        got = world.talk(name, 80, get(name), wait=15)
    assert got.status in status, got
    assert got.said["code"] in reason
    assert [o.address for o in world.outside.origins if o.connections] == []


def test_C7_one_question_for_each_connection(world: World) -> None:
    """The second answer of a name that rebinds is never asked for by the connection that the first one was judged for."""
    world.resolver.forget()
    got = world.talk("c7-rebinds.test", 80, get("c7-rebinds.test"))
    assert got.status == 200
    assert sorted(world.resolver.asked) == [("c7-rebinds.test", 1), ("c7-rebinds.test", 28)]
    assert [o.address for o in world.outside.origins if o.connections and o.address == "127.0.0.1"] == []


def test_C17_the_hosts_file_of_the_host_is_not_read(world: World) -> None:
    """localhost stands in every hosts file; no rule names it, and no library of ours answers it by itself."""
    with world.refused("no-rule", name="localhost"):
        world.proxy(b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n")


# ---- questions of programs ----


def question(name: str | bytes, kind: int = 1, ident: int = 7, flags: int = 0x0100, count: int = 1, tail: bytes = b"", cls: int = 1, extra: int = 0) -> bytes:
    wire = name if isinstance(name, bytes) else encode(name)
    return struct.pack(">HHHHHH", ident, flags, count, 0, 0, extra) + (wire + struct.pack(">HH", kind, cls)) * max(count, 1) + tail


def rcode(answer: bytes) -> int:
    return answer[3] & 15


def answers(answer: bytes) -> int:
    count: int = struct.unpack(">H", answer[6:8])[0]
    return count


def test_J6_a_name_is_answered_from_the_pool_and_always_the_same(world: World) -> None:
    with world.outside.silent():
        got = [world.probe(do="dns", send=[question("good.test")]).data for _ in range(3)]
    assert {one[-4:] for one in got} == {got[0][-4:]}
    assert (rcode(got[0]), answers(got[0])) == (0, 1)
    assert got[0][-4] == 198 and got[0][-3] in (18, 19)
    assert struct.unpack(">I", got[0][-10:-6])[0] <= 5


@pytest.mark.parametrize("kind", [28, 65, 64, 16, 15, 2, 6, 33, 255, 12])
def test_J6_of_other_types_there_is_no_data(world: World, kind: int) -> None:
    with world.outside.silent():
        got = world.probe(do="dns", send=[question("good.test", kind)]).data
    assert answers(got) == 0
    assert rcode(got) in (0, 4)


def test_J6_a_name_without_a_rule_does_not_exist(world: World) -> None:
    with world.refused("no-rule", name="secret-data.evil.test"):
        got = world.probe(do="dns", send=[question("secret-data.evil.test")]).data
    assert rcode(got) == 3


def test_K1_a_tunnel_of_labels_under_an_allowed_pattern_asks_nobody(world: World) -> None:
    """Even of a wildcard: a question of DNS causes none outside, only an allowed request does."""
    with world.outside.silent():
        for n in range(20):
            got = world.probe(do="dns", send=[question(f"stolen{n}.labels.test")]).data
            assert (rcode(got), answers(got)) == (0, 1)


@pytest.mark.parametrize(("message", "wanted"), [
    pytest.param(question("good.test", count=2), {1}, id="two questions"),
    pytest.param(question("good.test", flags=0x2900), {4, 1}, id="opcode UPDATE"),
    pytest.param(question("good.test", cls=3), {1, 4, 5, 3}, id="class CH"),
    pytest.param(question("good.test", tail=b"xx"), {1}, id="bytes behind"),
    pytest.param(question(b"\x04good\xc0\x0c"), {1}, id="a pointer"),
    pytest.param(question(b"\x40" + b"a" * 64 + b"\0"), {1}, id="label of 64"),
    pytest.param(question(b"".join(b"\x31" + b"a" * 49 for _ in range(6)) + b"\0"), {1}, id="name of 300"),
])
def test_J6_what_is_not_one_plain_question(world: World, message: bytes, wanted: set[int]) -> None:
    with world.outside.silent():
        got = world.probe(do="dns", send=[message]).data
    assert rcode(got) in wanted
    assert answers(got) == 0


def test_J6_an_answer_is_not_answered(world: World) -> None:
    with world.outside.silent():
        assert world.probe(do="dns", send=[question("good.test", flags=0x8100)], wait=1).error == "ETIMEDOUT"


def test_J6_each_question_of_a_tcp_stream_is_judged(world: World) -> None:
    with world.refused("no-rule", name="x.evil.test"):
        got = world.probe(do="dns", tcp=True, send=[question("good.test"), question("x.evil.test", ident=8)], wait=1).data
    first = struct.unpack(">H", got[:2])[0]
    one, two = got[2:2 + first], got[4 + first:]
    assert (rcode(one), answers(one)) == (0, 1)
    assert (two[:2], rcode(two)) == (b"\0\x08", 3)


def test_J6_a_tcp_message_of_64_KiB_is_cut(world: World) -> None:
    with world.outside.silent():
        got = world.probe(do="dns", tcp=True, send=[question("good.test", tail=b"x" * 60000)], wait=1)
    assert got.ended or (got.data and rcode(got.data[2:]) == 1)


def test_names_in_upper_case_are_the_same_name(world: World) -> None:
    with world.outside.silent():
        one = world.probe(do="dns", send=[question("good.test")]).data
        two = world.probe(do="dns", send=[question("GOOD.Test")]).data
    assert one[-4:] == two[-4:]


def test_another_sandbox_has_other_addresses(world: World) -> None:
    """They are keyed: an address says nothing about another sandbox's names."""
    _, box = world.sandbox("test")
    names = [f"n{n}.labels.test" for n in range(4)]
    mine = [world.probe(do="dns", send=[question(name)]).data[-4:] for name in names]
    theirs = [world.probe(box, do="dns", send=[question(name)]).data[-4:] for name in names]
    assert mine != theirs
    assert socket.inet_ntoa(mine[0]).startswith("198.1")


def test_a_resolver_that_asks_for_what_the_host_can_use(world: World) -> None:
    """AI_ADDRCONFIG: libraries count the addresses of the host, but 127.0.0.1 and ::1, and ask for no family that has none."""
    done = world.run("getent ahostsv4 good.test")
    assert done["stdout"].startswith("198.1"), done
