# SPDX-License-Identifier: Apache-2.0
"""TLS from inside of a sandbox (research: egress, G): names that must agree, what is no TLS, and servers that are not who they should be."""

from __future__ import annotations

import concurrent.futures
import os
import ssl
import struct
from collections.abc import Iterator

import pytest
from daemon import wait_until
from world import World

GET = b"GET /v1/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
# Server names and what the certificate of each says.
CERTIFICATES: dict[str, tuple[list[str], dict[str, str]]] = {
    "g16-other-name.test": (["other.test"], {}),
    "g16-expired.test": (["g16-expired.test"], {"start": "20200101000000Z", "end": "20200201000000Z"}),
    "g16-future.test": (["g16-future.test"], {"start": "20400101000000Z", "end": "20410101000000Z"}),
    "g16-wild-top.test": (["*.test"], {}),
    "g16-partial.test": (["g16-p*.test"], {}),
    "g16-common-name.test": ([], {"subject": "g16-common-name.test"}),
    "g16-address.test": (["IP:93.184.216.41"], {}),
}
POLICY = """egress:
  - fetch: {url: "https://allowed.test/v1/**", methods: [GET, POST], request_max: 1MiB}
  - passthrough: {name: opaque.test}
  - passthrough: {name: plain-passthrough.test, port: 8443}
  - tcp: {name: tcp.test, port: 873}
""" + "".join(f'  - fetch: {{url: "https://{name}/**"}}\n' for name in (*CERTIFICATES, "g16-self.test", "g17-old.test", "g17-anonymous.test", "g17-asks.test"))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    names = {name: [f"93.184.216.{37 if name.startswith('g17') else 41}"] for name in CERTIFICATES} | {
        "allowed.test": ["93.184.216.34"], "opaque.test": ["93.184.216.38"], "tcp.test": ["93.184.216.39"], "plain-passthrough.test": ["93.184.216.38"]}
    at = 41
    with World({"test": POLICY}, names) as made:
        outside = made.outside
        for name, (alternatives, leaf) in CERTIFICATES.items():
            # All stand at one address after the other; servers beyond the addresses share a port number per name.
            made.resolver.answers[name] = [f"93.184.216.{at}"]
            outside.origin(f"93.184.216.{at}", 443, tls=outside.context(alternatives, **leaf))
            at += 1
        made.opaque = outside.origin("93.184.216.38", 443, tls=["opaque.test"])  # type: ignore[attr-defined]
        made.tcp = outside.origin("93.184.216.39", 873)  # type: ignore[attr-defined]
        yield made


def hello(name: str | None = "allowed.test", **options: object) -> bytes:
    """A real ClientHello, with this server name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def with_extension(record: bytes, kind: int, data: bytes) -> bytes:
    """The hello with one extension more."""
    return rebuilt(record, lambda extensions: extensions + struct.pack(">HH", kind, len(data)) + data)


def rebuilt(record: bytes, change: object) -> bytes:
    body = record[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]
    at += 1 + body[at]
    extensions = change(body[at + 2:])  # type: ignore[operator]
    body = body[:at] + struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


def named(record: bytes, raw: bytes) -> bytes:
    """The hello with these bytes as the server_name extension."""
    def change(extensions: bytes) -> bytes:
        kept, at = b"", 0
        while at < len(extensions):
            kind, size = struct.unpack(">HH", extensions[at:at + 4])
            if kind != 0:
                kept += extensions[at:at + 4 + size]
            at += 4 + size
        return kept + struct.pack(">HH", 0, len(raw)) + raw

    return rebuilt(record, change)


def entry(name: bytes, kind: int = 0) -> bytes:
    return bytes([kind]) + struct.pack(">H", len(name)) + name


def listed(*entries: bytes) -> bytes:
    return struct.pack(">H", sum(map(len, entries))) + b"".join(entries)


def test_G1_through_the_proxy_and_by_name(world: World) -> None:
    for got in (world.proxy(GET, connect="allowed.test:443", tls="allowed.test"), world.talk("allowed.test", 443, GET, tls="allowed.test")):
        assert (got.status, got.data[-6:]) == (200, b"fine.\n")


@pytest.mark.parametrize("name", ["evil.test", "opaque.test", "x.allowed.test", "allowed.test.evil.test"])
@pytest.mark.parametrize("way", ["proxy", "name"])
def test_G2_the_server_name_is_another_one(world: World, name: str, way: str) -> None:
    with world.refused("name-mismatch", name="allowed.test"):
        if way == "proxy":
            got = world.proxy(GET, connect="allowed.test:443", tls=name)
        else:
            got = world.talk("allowed.test", 443, GET, tls=name)
    assert got.error.startswith("tls") or got.error in ("ECONNRESET",), got


def test_G6_no_server_name(world: World) -> None:
    with world.refused("no-sni"):
        world.talk("allowed.test", 443, hello(None), wait=2)


@pytest.mark.parametrize(("raw", "reasons"), [
    (listed(entry(b"allowed.test.")), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"a" * 256)), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"allowed.test\0")), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"allowed.test\0.evil.test")), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"93.184.216.34")), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"allowed.test"), entry(b"evil.test")), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"allowed.test"), entry(b"allowed.test")), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"x", 1)), ("name-mismatch", "no-sni", "not-tls")),
    (listed(), ("name-mismatch", "no-sni", "not-tls")),
    (listed(entry(b"")), ("name-mismatch", "no-sni", "not-tls")),
    (b"", ("name-mismatch", "no-sni", "not-tls")),
])
def test_G7_names_that_are_not_one_plain_name(world: World, raw: bytes, reasons: tuple[str, ...]) -> None:
    with world.refused(reasons):
        world.talk("allowed.test", 443, named(hello(), raw), wait=2)


def test_G7_in_upper_case_it_is_the_same(world: World) -> None:
    got = world.talk("allowed.test", 443, GET, tls="ALLOWED.Test")
    assert got.status == 200


@pytest.mark.parametrize("host", ["opaque.test"])
def test_G8_encrypted_hello_is_refused_where_nothing_is_opened(world: World, host: str) -> None:
    with world.refused("ech", name=host):
        world.talk(host, 443, with_extension(hello(host), 0xFE0D, os.urandom(64)), wait=2)


def test_G8_and_ignored_where_all_is_opened(world: World) -> None:
    got = world.talk("allowed.test", 443, with_extension(hello(), 0xFE0D, b"\0" + struct.pack(">HHB", 1, 1, 7) + struct.pack(">H", 32) + os.urandom(32)
                                                           + struct.pack(">H", 64) + os.urandom(64)), wait=2)
    assert got.data[:1] in (b"\x16", b"\x15")  # a server's hello, or an alert about bytes that are no client hello inside


def test_G9_a_hello_in_pieces(world: World) -> None:
    whole = hello()
    got = world.talk("allowed.test", 443, *[whole[n:n + 20] for n in range(0, len(whole), 20)], pause=0.01, wait=2)
    assert got.data[:1] == b"\x16"
    records = b"".join(b"\x16\x03\x01" + struct.pack(">H", len(part)) + part for part in (whole[5:5 + 60], whole[65:]))
    got = world.talk("allowed.test", 443, records, wait=2)
    assert got.data[:1] == b"\x16"


def test_G9_one_byte_each_second_is_too_slow(world: World) -> None:
    with world.refused("timeout"):
        got = world.talk("allowed.test", 443, *[bytes([b]) for b in hello()[:9]], pause=1, wait=3)
    assert got.ended


def test_G9_a_hello_of_more_than_16_KiB(world: World) -> None:
    body = b"\x01" + (20000).to_bytes(3, "big") + os.urandom(20000)
    records = b"".join(b"\x16\x03\x01" + struct.pack(">H", len(body[n:n + 4000])) + body[n:n + 4000] for n in range(0, len(body), 4000))
    with world.refused(("header-limit", "not-tls")):
        world.talk("allowed.test", 443, records, wait=2)


@pytest.mark.parametrize("noise", [b"SSH-2.0-OpenSSH_9.2\r\n", b"EHLO x\r\n", b"GET /v1/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n", b"\0" * 64, b"\x16\x03\x01\x00\x00",
                                   b"\x80\x2e\x01\x03\x01", b"\x17\x03\x03\x00\x10" + b"x" * 16])
@pytest.mark.parametrize("way", ["proxy", "name", "passthrough"])
def test_G11_what_is_no_tls(world: World, noise: bytes, way: str) -> None:
    with world.refused("not-tls"):
        if way == "proxy":
            got = world.proxy(noise, connect="allowed.test:443", wait=2)
        else:
            got = world.talk("allowed.test" if way == "name" else "opaque.test", 443, noise, wait=2)
    assert got.ended


def test_G12_silence(world: World) -> None:
    with world.refused("timeout"):
        got = world.proxy(connect="allowed.test:443", wait=8)
    assert got.ended


@pytest.mark.parametrize("name", list(CERTIFICATES))
def test_G16_servers_that_prove_nothing(world: World, name: str) -> None:
    for origin in world.outside.origins:
        origin.forget()
    with world.refused("tls-verify", verdict=None, name=name, silent=False):
        got = world.talk(name, 443, f"GET /x HTTP/1.1\r\nHost: {name}\r\n\r\n".encode(), tls=name)
    assert got.status == 502
    assert got.said["code"] == "tls-verify"
    assert all(b"GET" not in origin.data for origin in world.outside.origins), "a request was sent"


def test_G21_a_client_that_believes_only_its_own_roots(world: World) -> None:
    with world.refused("client-rejected-ca", verdict=None, name="allowed.test", silent=False):
        done = world.run("curl -sS --cacert /usr/share/demilune/roots.crt https://allowed.test/v1/x")
    assert done["exit_code"] == 60


def test_G22_a_passthrough_is_not_looked_into_and_its_name_is_checked(world: World) -> None:
    got = world.run("curl -sSk https://opaque.test/anything")
    assert got["stdout"] == "fine.\n", got
    assert b"GET /anything" in world.opaque.data  # type: ignore[attr-defined]
    with world.refused("name-mismatch", name="opaque.test"):
        world.talk("opaque.test", 443, tls="allowed.test", wait=2)


def test_a_passthrough_keeps_the_servers_own_certificate(world: World) -> None:
    """The program sees who it talks to: the authority of the sandbox has no part in it."""
    got = world.talk("opaque.test", 443, tls="opaque.test")
    assert got.error.startswith("tls: CERTIFICATE_VERIFY_FAILED")


def test_tcp_goes_both_ways_and_to_that_port_only(world: World) -> None:
    world.tcp.forget()  # type: ignore[attr-defined]
    got = world.talk("tcp.test", 873, b"GET /x HTTP/1.1\r\nHost: nobody looks\r\n\r\n")
    assert got.data.endswith(b"fine.\n")
    with world.refused(("port", "no-rule", "scheme"), name="tcp.test"):
        world.talk("tcp.test", 443, hello("tcp.test"), wait=2)


def test_the_weak_ones_say_so(world: World) -> None:
    rows = {(row["name"], row["scheme"]) for row in world.verdicts() if row["verdict"] == "allowed"}
    assert ("opaque.test", "passthrough") in rows
    assert ("tcp.test", "tcp") in rows


def test_G18_no_session_is_taken_up_again(world: World) -> None:
    program = ("import socket,ssl\nc=ssl.create_default_context()\n"
               "def one(s):\n"
               "    t=c.wrap_socket(socket.create_connection(('allowed.test',443)),server_hostname='allowed.test',session=s)\n"
               "    t.sendall(b'GET /v1/x HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); t.recv(999)\n"
               "    return t.session, t.session_reused\n"
               "s,_=one(None)\nprint(s is not None and s.has_ticket, one(s)[1])\n")
    done = world.client.exec(world.box, ["python3", "-c", program])
    assert done["stdout"].split()[-1] == "False", done


def test_only_http_1_is_offered(world: World) -> None:
    done = world.run("curl -sS -o /dev/null -w '%{http_version}' --http2 https://allowed.test/v1/x")
    assert done["stdout"] == "1.1", done
    got = world.talk("allowed.test", 443, GET, tls="allowed.test", alpn=["h2"])
    assert got.status != 200 or got.error.startswith("tls")


def test_the_authority_is_constrained_to_the_names_of_the_policy(world: World) -> None:
    done = world.run("openssl x509 -in /run/demilune/trust/ca.crt -noout -text || python3 -c \"print(open('/run/demilune/trust/ca.crt').read())\"")
    text = done["stdout"]
    if "BEGIN CERTIFICATE" in text:
        pem = world.outside.folder / "sandbox-ca.pem"
        pem.write_text(text)
        import subprocess
        text = subprocess.run(["openssl", "x509", "-in", str(pem), "-noout", "-text"], capture_output=True, check=True).stdout.decode()
    assert "X509v3 Name Constraints: critical" in text
    assert "DNS:allowed.test" in text
    assert "DNS:opaque.test" not in text
    assert "CA:TRUE" in text


def test_two_sandboxes_have_two_authorities(world: World) -> None:
    _, box = world.sandbox("test")
    mine, theirs = (world.run("cat /run/demilune/trust/ca.crt", one)["stdout"] for one in (world.box, box))
    assert mine.startswith("-----BEGIN CERTIFICATE") and theirs.startswith("-----BEGIN CERTIFICATE") and mine != theirs


def test_a_revoked_task_loses_what_it_has_open(world: World) -> None:
    """A tunnel that nobody looks into could go on for an hour; taking a task's authority back resets it."""
    task, box = world.sandbox("test")
    program = ("import socket,sys,time\n"
               "s=socket.create_connection(('tcp.test',873)); s.sendall(b'GET /one HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(len(s.recv(999))>0,flush=True)\n"
               "open('/tmp/open','w').close(); s.settimeout(20)\n"
               "try: print(s.recv(1))\n"
               "except ConnectionResetError: print('reset')\n")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(world.client.exec, box, ["python3", "-c", program])
        wait_until("the tunnel is open", lambda: world.client.read(box, "/tmp/open").status == 200)
        world.client.request("POST", "/v1/revocations", {"kind": "task", "name": task, "reason": "test"}).expect(200, 204)
        done = running.result()
    assert done["stdout"].split() == ["True", "reset"], done
    with world.outside.silent():
        assert world.probe(box, do="talk", host="tcp.test", port=873, send=[b"x"]).data == b""
