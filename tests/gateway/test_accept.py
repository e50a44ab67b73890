# SPDX-License-Identifier: Apache-2.0
"""Which connections of a program are anybody's: the address that it dialled is that of a name it asked for, or the proxy's. All others
hear a reset, are recorded, and nobody is asked for anything. Ids are those of research: egress, section 2."""

import errno
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rig import Gateway, Origin, answer_of, drain, fetch, policy

RULES = (fetch("http://plain.test/**"), fetch("https://docs.example/**"))


@contextmanager
def begun(lend: dict[str, int] | None = None, **more: object) -> Iterator[tuple[Gateway, Origin]]:
    origin = Origin()
    g = Gateway(policy(*RULES, **more), {("plain.test", 80): origin.port}, lend=lend)
    try:
        yield g, origin
    finally:
        g.close()
        origin.close()


def dial(address: str, port: int) -> socket.socket:
    return socket.create_connection((address, port), 10)


def hung_up(address: str, port: int) -> None:
    """Not a byte, and no clean end that could be taken for an answer."""
    try:
        with dial(address, port) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert drain(s, 5) == (b"", "reset")
    except (ConnectionResetError, BrokenPipeError):
        pass


@pytest.mark.parametrize(("address", "port"), [
    ("198.18.0.0", 80), ("198.18.0.1", 80), ("198.19.255.255", 443), ("127.0.0.1", 80), ("127.0.0.1", 443), ("127.1.2.3", 80), ("::1", 80),
    ("::1", 443), ("fd00:5eed::1", 80), ("fd00:5eed::ffff:ffff", 443)])
def test_J3_an_address_that_is_no_name_s_hears_a_reset(address: str, port: int) -> None:
    with begun() as (g, origin):
        hung_up(address, port)
        v = g.verdict("raw-address")
        assert (v["verdict"], v["scheme"], v["address"], v["port"], v["name"]) == ("refused", "none", address, port, "")
        assert g.reaches == [] and origin.heard == []


def test_a_name_s_address_is_anybody_s_only_after_it_was_asked_for() -> None:
    """The address of one gateway means nothing to the next: another key, and nobody asked."""
    with begun() as (g, _):
        before = g.address("plain.test")
    with begun() as (g, origin):
        hung_up(before, 80)
        assert g.verdict("raw-address")["address"] == before
        assert g.reaches == [] and origin.heard == []
        with g.dial("plain.test", 80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert answer_of(s)[0] == 200
        assert [r["host"] for r in g.reaches] == ["plain.test"]


def test_names_of_ipv6_have_no_other_address() -> None:
    with begun(ipv6=True) as (g, origin):
        hung_up("198.18.0.1", 80)
        assert g.verdict("raw-address")["address"] == "198.18.0.1"
        assert g.reaches == [] and origin.heard == []


@pytest.mark.parametrize(("address", "port"), [
    ("169.254.169.254", 80), ("10.0.0.1", 443), ("8.8.8.8", 443), ("1.1.1.1", 80), ("2606:4700:4700::1111", 443), ("fd00:ec2::254", 80)])
def test_J3_with_capture_every_address_is_refused_and_recorded(address: str, port: int) -> None:
    family = ["ip", "-6"] if ":" in address else ["ip"]
    subprocess.run([*family, "route", "add", "local", "default", "dev", "lo"], check=True)
    try:
        with begun(capture=True) as (g, origin):
            hung_up(address, port)
            v = g.verdict("raw-address")
            assert (v["address"], v["port"]) == (address, port)
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.settimeout(0.3)
                s.connect((address, 53))
                s.send(b"\0\7\1\0\0\1\0\0\0\0\0\0\5plain\4test\0\0\1\0\1")
                with pytest.raises(TimeoutError):
                    s.recv(512)
            assert g.wait(lambda: any(v["scheme"] == "dns" and v["address"] == address for v in g.verdicts))
            assert g.reaches == [] and origin.heard == []
    finally:
        subprocess.run([*family, "route", "del", "local", "default", "dev", "lo"], check=True)


def test_J1_there_is_no_udp_but_dns() -> None:
    with begun() as (g, _), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.connect((g.address("docs.example"), 443))
        s.send(b"quic")
        with pytest.raises(ConnectionRefusedError):
            s.recv(1)


def test_ports_without_a_rule_are_nobody_s() -> None:
    with begun() as (g, _):
        address = g.address("plain.test")
        for port in (8080, 22, 3128):
            with pytest.raises(OSError) as e:
                dial(address, port)
            assert e.value.errno == errno.ECONNREFUSED


def test_L2_at_the_cap_others_wait_and_dns_goes_on() -> None:
    with begun() as (g, origin):
        held = [g.proxy() for _ in range(256)]
        time.sleep(0.3)
        with g.dial("plain.test", 80) as late:
            late.sendall(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert drain(late, 0.7) == (b"", "open")
            assert origin.heard == []
            assert g._resolve("docs.example")[0] == 0
            used = cpu(g)
            time.sleep(1)
            assert cpu(g) - used < 0.2, "it turns and turns"
            held.pop().close()
            assert answer_of(late, 5)[0] == 200
        for s in held:
            s.close()
        with g.dial("plain.test", 80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert answer_of(s, 5)[0] == 200


def test_L2_ten_thousand_connections_are_taken_one_after_the_other() -> None:
    with begun(lend={"connections": 20000}) as (g, _):
        address = g.address("plain.test")
        descriptors = set()
        for round_ in range(40):
            held = [dial(address, 80) for _ in range(250)]
            for s in held:
                s.close()
            if round_ % 10 == 9:
                time.sleep(0.5)
                descriptors.add(len(descriptors_of(g)))
        with g.dial("plain.test", 80) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n")
            assert answer_of(s, 10)[0] == 200
        assert max(descriptors) - min(descriptors) <= 2, descriptors


def descriptors_of(g: Gateway) -> list[str]:
    return subprocess.run(["ls", f"/proc/{g.process.pid}/fd"], capture_output=True, text=True, check=True).stdout.split()


def cpu(g: Gateway) -> float:
    with open(f"/proc/{g.process.pid}/stat") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100
