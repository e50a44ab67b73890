# SPDX-License-Identifier: Apache-2.0
"""Side routes out of a sandbox that has a policy (research: egress, J): nothing leaves, and the kernel says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from world import World

NOWHERE = ("ENETUNREACH", "EHOSTUNREACH")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as made:
        yield made


@pytest.fixture(scope="module")
def bare(world: World) -> str:
    """A sandbox without a policy."""
    return world.sandbox(None)[1]


@pytest.mark.parametrize("port", [53, 123, 443, 4433])
@pytest.mark.parametrize("host", ["8.8.8.8", "93.184.216.34", "192.0.2.1"])
def test_J1_datagrams_have_no_way(world: World, host: str, port: int) -> None:
    with world.outside.silent():
        assert world.probe(do="udp", host=host, port=port).error in NOWHERE


def test_J1_nobody_hears_datagrams_in_the_pool(world: World) -> None:
    with world.outside.silent():
        assert world.probe(do="udp", host="allowed.test", port=443).error == "ECONNREFUSED"


@pytest.mark.parametrize(("family", "kind", "protocol"), [
    (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW), (socket.AF_PACKET, socket.SOCK_RAW, 0x0300)])
def test_J2_no_icmp_and_no_raw_sockets(world: World, family: int, kind: int, protocol: int) -> None:
    with world.outside.silent():
        got = world.probe(do="socket", family=int(family), type=int(kind), protocol=protocol, host="8.8.8.8", port=1)
    assert got.error in ("EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", *NOWHERE)


@pytest.mark.parametrize("host", ["169.254.169.254", "192.0.2.1", "10.0.0.5", "172.17.0.1", "8.8.8.8", "93.184.216.34"])
@pytest.mark.parametrize("port", [80, 443, 53])
def test_J3_addresses_are_no_destination(world: World, host: str, port: int) -> None:
    with world.outside.silent():
        got = world.talk(host, port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (got.error, got.data) in [(one, b"") for one in NOWHERE]


@pytest.mark.parametrize("host", ["2606:4700:4700::1111", "fd00::1", "fe80::1"])
def test_J4_nor_are_those_of_version_6(world: World, host: str) -> None:
    with world.outside.silent():
        got = world.talk(host, 443)
    assert got.error in (*NOWHERE, "EADDRNOTAVAIL", "EINVAL")


@pytest.mark.parametrize("port", [80, 443])
@pytest.mark.parametrize("host", ["127.0.0.1", "198.18.0.1", "198.19.255.255"])
def test_an_address_of_the_pool_that_no_name_has_is_closed(world: World, host: str, port: int) -> None:
    with world.refused("raw-address"):
        got = world.talk(host, port, b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", wait=2)
    assert got.data == b""
    assert got.ended or got.error == "ECONNRESET"


@pytest.mark.parametrize("port", [22, 25, 8080, 3306])
def test_a_port_that_no_rule_uses_is_refused_by_the_kernel(world: World, port: int) -> None:
    with world.outside.silent():
        assert world.talk("allowed.test", port).error == "ECONNREFUSED"


def test_J8_no_vsock(world: World) -> None:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        got = world.probe(do="socket", family=40, type=int(kind), at=[2, 1024])
        assert got.error in ("EAFNOSUPPORT", "EPERM", "EACCES", "ENOSYS")


@pytest.mark.parametrize(("family", "kind", "protocol"), [(2, 1, 262), (2, 1, 132), (2, 6, 33), (2, 2, 136), (16, 3, 16), (38, 5, 0), (44, 3, 0)])
def test_J16_no_other_protocol(world: World, family: int, kind: int, protocol: int) -> None:
    """MPTCP, SCTP, DCCP, UDP-Lite, generic netlink, AF_ALG, XDP: refused, or without a way."""
    with world.outside.silent():
        got = world.probe(do="socket", family=family, type=kind, protocol=protocol, host="8.8.8.8", port=443)
    assert got.error


@pytest.mark.parametrize("command", ["ip route add default dev lo", "ip link add d0 type dummy", "ip addr add 8.8.8.8/32 dev lo",
                                     "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
@pytest.mark.parametrize("user", ["root", "agent"])
def test_J11_J12_the_sandbox_owns_nothing_of_its_network(world: World, command: str, user: str) -> None:
    program = ("import os,socket,sys,struct\n"
               "what=sys.argv[1]\n"
               "if what.startswith('echo'):\n"
               "    v,_,p=what[5:].partition(' > ')\n"
               "    open(p,'w').write(v)\n"
               "else:\n"
               "    s=socket.socket(16,3,0)\n"
               "    kind={'ip route':24,'ip link ':16,'ip addr ':20}[what[:8]]\n"
               "    body=struct.pack('BBBBBBBBI',2,0,0,0,254,3,0,1,0) if kind==24 else struct.pack('BBHiII',0,0,0,0,0,0) if kind==16 else struct.pack('BBBBi',2,32,0,0,1)+struct.pack('HH',8,2)+bytes([8,8,8,8])\n"
               "    s.send(struct.pack('IHHII',16+len(body),kind,0x605,1,0)+body)\n"
               "    code=struct.unpack('i',s.recv(4096)[16:20])[0]\n"
               "    sys.exit(0 if code==0 else 'errno %d' % -code)\n")
    with world.outside.silent():
        done = world.client.exec(world.box, ["python3", "-c", program, command], 90, **({"user": user} if user == "root" else {}))
    assert done["exit_code"] == 1, done
    assert any(word in done["stderr"] for word in ("errno 1", "Errno 1]", "Errno 30]", "Errno 13]", "errno 93", "Errno 97]", "Errno 38]")), done["stderr"]


def test_J13_another_network_namespace_is_empty(world: World) -> None:
    done = world.run("unshare -n true; unshare -rn true; true")
    assert done["exit_code"] == 0
    got = world.run("unshare -rn python3 -c \"import socket; socket.create_connection(('8.8.8.8',53),2)\"")
    assert got["exit_code"] != 0


def test_J14_shadowing_the_gateway_fools_only_itself(world: World) -> None:
    done = world.run("python3 -c \"import socket; s=socket.socket(); s.bind(('127.0.0.1',443))\"")
    assert "Permission denied" in done["stderr"] or "Address already in use" in done["stderr"]
    done = world.run("python3 -c \"import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('127.0.0.1',53))\"")
    assert done["exit_code"] != 0


def test_without_a_policy_there_is_nothing(world: World, bare: str) -> None:
    """No resolver, no proxy, no route: ENETUNREACH for the pool too."""
    with world.outside.silent():
        assert world.probe(bare, do="talk", host="allowed.test", port=443).error in ("NXDOMAIN", "EAI_AGAIN")
        assert world.probe(bare, do="proxy", send=[b"x"]).error == "ECONNREFUSED"
        for host in ("198.18.0.1", "8.8.8.8", "fd00:5eed::1"):
            assert world.probe(bare, do="talk", host=host, port=443).error in (*NOWHERE, "EADDRNOTAVAIL")


def test_an_empty_list_lets_nothing_through() -> None:
    with World({"test": "egress: []\n"}) as world, world.refused("no-rule", name="allowed.test"):
        assert world.talk("allowed.test", 443).error == "NXDOMAIN"


def test_with_capture_each_address_is_on_record() -> None:
    with World({"test": "egress: []\ncapture: true\n"}) as world:
        for host, port in (("169.254.169.254", 80), ("8.8.8.8", 443)):
            with world.refused("raw-address"):
                got = world.talk(host, port, b"GET / HTTP/1.1\r\n\r\n", wait=2)
            assert got.data == b""
            for other in ("10.0.0.5", "10.0.0.6"):
                world.talk(other, port, wait=2)
        assert {"169.254.169.254", "8.8.8.8", "10.0.0.5", "10.0.0.6"} <= {row["address"] for row in world.verdicts()}
