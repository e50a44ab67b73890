# SPDX-License-Identifier: Apache-2.0
"""Rows A (URLs to the explicit proxy), B (addresses in place of names), D (redirects), G (TLS, CONNECT, names that must agree)."""

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterator

import pytest
import rig
from cases import Reason, Status, World, request


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    w = World()
    yield w
    w.close()


def url(text: str, host: str = "plain.test") -> bytes:
    return f"GET {text} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")


SYNTAX, HOST, IDN, IP, PORT, SCHEME = "url-syntax", "host-syntax", "host-idn", "ip-literal", "port", "scheme"
URLS: dict[str, tuple[str, Reason, Status]] = {
    "A1_user": ("http://plain.test@evil.test/", (SYNTAX, HOST), 400),
    "A2_fragment": ("http://evil.test#@plain.test/", (SYNTAX, HOST), 400),
    "A3_backslash": ("http://evil.test\\@plain.test/", (SYNTAX, HOST), 400),
    "A4_backslash": ("http://plain.test\\.evil.test/", (SYNTAX, HOST), 400),
    "A6_three_slashes": ("http:///evil.test/", (SYNTAX, HOST), 400),
    "A6_one_slash": ("http:/evil.test", (SYNTAX, HOST), 400),
    "A6_no_slash": ("http:evil.test", (SYNTAX, HOST), 400),
    "A7_network_path": ("//evil.test/", (SYNTAX, "path"), 400),
    "A8_port_user": ("http://plain.test:80@evil.test/", (SYNTAX, HOST, PORT), 400),
    "A8_two_users": ("http://a:b@c:d@evil.test/", (SYNTAX, HOST, PORT), 400),
    "A9_bracket_user": ("http://[::1]:80@plain.test/", (SYNTAX, HOST, PORT), 400),
    "A11_query_user": ("http://evil.test?@plain.test/", ("no-rule", SYNTAX), (403, 400)),
    "A12_escaped": ("http://ev%69l.test/", (HOST, SYNTAX), 400),
    "A12_escaped_dot": ("http://plain%2etest/", (HOST, SYNTAX), 400),
    "A13_escaped_nul": ("http://evil.test%00.plain.test/", (HOST, SYNTAX), 400),
    "A13_nul": ("http://evil.test\0.plain.test/", "framing", 400),
    "A14_tab": ("http://plain.te\tst/", ("framing", HOST, SYNTAX), 400),
    "A14_del": ("http://plain.te\x7fst/", "framing", 400),
    "A16_soft_hyphen": ("http://pla\xc2\xadin.test/", (IDN, HOST), 400),
    "A17_u_label": ("http://b\xc3\xbccher.test/", (IDN, HOST), 400),
    "A18_a_label_without_rule": ("http://xn--bcher-kva.test/", "no-rule", 403),
    "A19_empty_a_label": ("http://xn--.test/", (HOST, IDN, "no-rule"), (400, 403)),
    "A22_two_dots": ("http://plain.test../", HOST, 400),
    "A22_dot_first": ("http://.plain.test/", HOST, 400),
    "A22_empty_label": ("http://a..b.test/", HOST, 400),
    "A23_hyphen": ("http://-a.test/", HOST, 400),
    "A23_long_label": (f"http://{'a' * 64}.test/", HOST, 400),
    "A23_long_name": (f"http://{'.'.join(['a' * 49] * 5)}.test/", HOST, 400),
    "A24_empty": ("http://plain.test:/v1/x", (PORT, HOST, SYNTAX), 400),
    "A24_leading_zero": ("http://plain.test:080/", PORT, 400),
    "A24_zero": ("http://plain.test:0/", PORT, 400),
    "A24_large": ("http://plain.test:65536/", PORT, 400),
    "A24_plus": ("http://plain.test:+80/", PORT, 400),
    "A24_two": ("http://plain.test:80:81/", (PORT, HOST), 400),
    "A26_name_in_brackets": ("http://[plain.test]/", HOST, 400),
    "A26_v4_in_brackets": ("http://[127.0.0.1]/", HOST, 400),
    "A27_https": ("https://allowed.test/v1/x", SCHEME, 400),
    "A28_ftp": ("ftp://plain.test/", (SCHEME, SYNTAX), 400),
    "A28_file": ("file:///etc/passwd", (SCHEME, SYNTAX), 400),
    "A28_ws": ("ws://plain.test/", (SCHEME, SYNTAX), 400),
    "A28_data": ("data:,x", (SCHEME, SYNTAX), 400),
    "A29_below": ("http://x.plain.test/v1/x", "no-rule", 403),
    "A29_longer": ("http://xplain.test/v1/x", "no-rule", 403),
    "A31_authority": ("allowed.test:443", (SYNTAX, SCHEME), 400),
    "A31_asterisk": ("*", SYNTAX, 400),
    "A_origin_form": ("/v1/x", SYNTAX, 400),
    "A_no_rule": ("http://evil.test/", "no-rule", 403),
    "C16_localhost": ("http://localhost/", (HOST, "no-rule"), (400, 403)),
    "C16_internal": ("http://kubernetes.default.svc/", "no-rule", 403),
    "C16_search": ("http://metadata/", ("no-rule", HOST), (400, 403)),
    "D2_downgrade": ("http://allowed.test/v1/x", ("port", "scheme"), 403),
    "D9_path": ("http://plain.test/v2/", "path", 403),
    "B1_loopback": ("http://127.0.0.1/", IP, 403),
    "B1_metadata": ("http://169.254.169.254/latest/", IP, 403),
    "B1_private": ("http://10.0.0.1/", IP, 403),
    "B2_decimal": ("http://2130706433/", HOST, 400),
    "B2_hex": ("http://0x7f000001/", HOST, 400),
    "B2_octal": ("http://017700000001/", HOST, 400),
    "B3_short": ("http://127.1/", HOST, 400),
    "B3_short3": ("http://127.0.1/", HOST, 400),
    "B3_hex_part": ("http://0x7f.1/", HOST, 400),
    "B3_octal_part": ("http://0177.0.0.1/", HOST, 400),
    "B3_zero": ("http://0/", HOST, 400),
    "B3_0x": ("http://0x/", HOST, 400),
    "B6_dot_behind": ("http://127.0.0.1./", HOST, 400),
    "B7_blank": ("http://127.0.0.1 foo/", ("framing", HOST), 400),
    "B8_loopback6": ("http://[::1]/", IP, 403),
    "B8_any6": ("http://[::]/", IP, 403),
    "B8_any": ("http://0.0.0.0/", IP, 403),
    "B9_mapped": ("http://[::ffff:127.0.0.1]/", (IP, HOST), (400, 403)),
    "B9_mapped_hex": ("http://[::ffff:7f00:1]/", (IP, HOST), (400, 403)),
    "B11_siit": ("http://[::ffff:0:127.0.0.1]/", (IP, HOST), (400, 403)),
    "B12_nat64": ("http://[64:ff9b::a9fe:a9fe]/", IP, 403),
    "B13_6to4": ("http://[2002:a9fe:a9fe::1]/", IP, 403),
    "B14_teredo": ("http://[2001:0:4136:e378:8000:63bf:5601:5601]/", (IP, HOST), (400, 403)),
    "B16_zone": ("http://[fe80::1%eth0]/", (HOST, SYNTAX), 400),
    "B16_zone_escaped": ("http://[fe80::1%25eth0]/", (HOST, SYNTAX), 400),
    "B16_zone_as_suffix": ("http://::ffff:1.2.3.4%x.plain.test/", (HOST, SYNTAX, PORT), 400),
    "B17_documentation": ("http://[2001:db8::1]/", IP, 403),
    "B21_wireserver": ("http://168.63.129.16/", IP, 403),
    "B23_pool": ("http://198.18.0.5/", IP, 403),
    "B24_other_port_of_a_rule": ("http://1.2.3.4:81/", "port", 403),
}


@pytest.mark.parametrize("case", URLS)
def test_a_url_to_the_proxy_that_is_none_of_a_rule(world: World, case: str) -> None:
    text, reason, status = URLS[case]
    authority = text.split("//")[-1].split("/")[0] if "//" in text else "plain.test"
    world.refused(world.connect("proxy"), url(text, authority), reason, status)


@pytest.mark.parametrize(
    "text", ["http://plain.test/v1/x", "HTTP://plain.test/v1/x", "http://PLAIN.test./v1/x", "http://plain.test:80/v1/x"]
)
def test_A28_http_in_absolute_form_passes(world: World, text: str) -> None:
    host = text.split("//")[1].split("/")[0]
    world.allowed(world.connect("proxy"), url(text, host))
    assert world.plain.heard[-1].endswith(b"GET /v1/x HTTP/1.1\r\nHost: plain.test\r\n\r\n")


def test_A_each_request_to_the_proxy_names_its_own_place(world: World) -> None:
    s = world.connect("proxy")
    s.sendall(url("http://plain.test/v1/1"))
    assert rig.answer_of(s)[0] == 200
    s.sendall(url("http://plain.test/v1/2?q=1"))
    assert rig.answer_of(s)[0] == 200
    assert b"GET /v1/2?q=1 HTTP/1.1\r\nHost: plain.test\r\n" in b"".join(world.plain.heard)
    world.refused(s, url("http://evil.test/", "evil.test"), "no-rule", 403)


def test_httpjail_57_the_url_and_host_name_different_places(world: World) -> None:
    world.refused(world.connect("proxy"), url("http://plain.test/v1/x", "evil.test"), "name-mismatch", 421)
    world.refused(world.connect("proxy"), url("http://evil.test/", "plain.test"), "name-mismatch", 421)


CONNECTS: dict[str, tuple[str, Reason, Status]] = {
    "G13_port_of_no_rule": ("allowed.test:22", "port", 403),
    "G13_smtp": ("allowed.test:25", "port", 403),
    "G13_http": ("allowed.test:80", "port", 403),
    "G13_zero": ("allowed.test:0", "port", 400),
    "G13_no_port": ("allowed.test", ("port", SYNTAX, HOST), 400),
    "G13_path": ("allowed.test:443/path", (PORT, SYNTAX), 400),
    "G14_address": ("1.2.3.4:443", ("ip-literal", "port"), 403),
    "G14_other_address": ("9.9.9.9:443", "ip-literal", 403),
    "G_no_rule": ("evil.test:443", "no-rule", 403),
    "B8_loopback": ("[::1]:443", "ip-literal", 403),
    "A12_escaped": ("allowed%2etest:443", (HOST, SYNTAX), 400),
    "A1_user": ("a@allowed.test:443", (HOST, SYNTAX), 400),
    "H6_h2_port": ("plain.test:8080", "port", 403),
}


@pytest.mark.parametrize("value", ["connect-udp", "h2c", "websocket", ""])
@pytest.mark.parametrize("to", ["allowed.test:443", "plain.test:80", "ssh.test:2222"])
def test_H9_a_connect_that_asks_for_another_protocol(world: World, to: str, value: str) -> None:
    head = f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nConnection: Upgrade\r\nUpgrade: {value}\r\n\r\n"
    got = world.refused(world.connect("proxy"), head.encode(), "upgrade", 403)
    assert b"No rule would change this" in got and b"websocket" not in got


def test_H9_to_a_place_without_a_rule_it_is_that(world: World) -> None:
    head = b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\nUpgrade: connect-udp\r\n\r\n"
    world.refused(world.connect("proxy"), head, "no-rule", 403)


@pytest.mark.parametrize("case", CONNECTS)
def test_a_connect_to_no_place_of_a_rule(world: World, case: str) -> None:
    to, reason, status = CONNECTS[case]
    world.refused(world.connect("proxy"), f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode(), reason, status)


def test_G1_connect_server_name_and_host_agree(world: World) -> None:
    world.allowed(world.connect("tunnel"), request("GET /v1/x HTTP/1.1", "allowed.test"))


def test_G_connect_to_a_plain_rule_speaks_http(world: World) -> None:
    s = world.connect("proxy")
    s.sendall(b"CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n" + request("GET /v1/x HTTP/1.1", "plain.test"))
    s.settimeout(5)
    got = b""
    while not got.endswith(b"ok"):
        got += s.recv(4096)
    assert got.count(b"HTTP/1.1 200") == 2
    world.refused(s, request("GET /v1/x HTTP/1.1", "evil.test"), "name-mismatch", 421)


def test_H6_h2_inside_of_a_connect(world: World) -> None:
    s = world.connect("proxy")
    s.sendall(b"CONNECT plain.test:80 HTTP/1.1\r\nHost: plain.test:80\r\n\r\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200")
    world.refused(s, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ("framing", "method"), (505, 501, 400))


def hello(name: str | None) -> bytes:
    """The first flight of a client, for this server name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def dropped(world: World, s: socket.socket, raw: bytes, reason: str, alert: bool = False) -> None:
    before, reaches, heard = world.told(reason), len(world.g.reaches), world.heard()
    if raw:
        s.sendall(raw)
    got, how = rig.drain(s, 8)
    assert how != "open" and got == (bytes([21, 3, 3, 0, 2, 2, 112]) if alert else b""), (got, how)
    assert world.g.wait(lambda: world.told(reason) > before, 4)
    assert (len(world.g.reaches), world.heard()) == (reaches, heard)
    s.close()


def via(world: World, how: str) -> socket.socket:
    if how == "dialled":
        return world.g.dial("allowed.test", 443)
    s = world.connect("proxy")
    s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200 ")
    return s


BOTH = pytest.mark.parametrize("how", ["dialled", "connect"])


@BOTH
def test_G2_the_server_name_is_another(world: World, how: str) -> None:
    dropped(world, via(world, how), hello("evil.test"), "name-mismatch", alert=True)


@BOTH
def test_G6_no_server_name(world: World, how: str) -> None:
    dropped(world, via(world, how), hello(None), "no-sni", alert=True)


@BOTH
@pytest.mark.parametrize(
    "raw",
    [b"SSH-2.0-x\r\n", b"EHLO x\r\n", b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", b"\0" * 64, b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"],
)
def test_G11_G23_what_is_no_client_hello(world: World, how: str, raw: bytes) -> None:
    dropped(world, via(world, how), raw, "not-tls")


@BOTH
def test_G12_silence_where_a_client_hello_belongs(world: World, how: str) -> None:
    s = via(world, how)
    began = time.monotonic()
    dropped(world, s, b"", "timeout")
    assert 4 < time.monotonic() - began < 7


@pytest.mark.parametrize("pieces", [2, 50])
def test_G9_a_client_hello_in_pieces(world: World, pieces: int) -> None:
    class Slow(socket.socket):
        def send(self, data: bytes, *more: int) -> int:  # type: ignore[override]
            return super().send(data[: max(1, 517 // pieces)], *more)

    plain = via(world, "dialled")
    s = Slow(fileno=plain.detach())
    s.settimeout(10)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = world.g.trust().wrap_bio(incoming, outgoing, server_hostname="allowed.test")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            data = outgoing.read()
            while data:
                data = data[s.send(data) :]
            incoming.write(s.recv(65536))
    s.close()


def test_G9_a_client_hello_that_is_too_long(world: World) -> None:
    first = hello("allowed.test")
    # One handshake message that says it is 20,000 bytes long, over two records.
    body = b"\x01" + (20000).to_bytes(3, "big") + first[9:]
    body += b"\0" * (20004 - len(body))
    raw = b"".join(b"\x16\x03\x01" + struct.pack(">H", len(p)) + p for p in (body[:16000], body[16000:]))
    dropped(world, via(world, "dialled"), raw, "header-limit")


def test_G3_the_host_inside_is_another(world: World) -> None:
    for how in ("tls", "tunnel"):
        world.refused(world.connect(how), request("GET /v1/x HTTP/1.1", "evil.test"), "name-mismatch", 421)


def test_G21_a_program_that_does_not_trust_us(world: World) -> None:
    before = world.told("client-rejected-ca")
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLError):
        context.wrap_socket(world.g.dial("allowed.test", 443), server_hostname="allowed.test")
    assert world.g.wait(lambda: world.told("client-rejected-ca") > before)


def test_a_name_of_another_port_is_recorded_and_hears_nothing(world: World) -> None:
    """443 of a name with a rule for 80 alone: the hello is read for the record, and nothing is said."""
    dropped(world, world.g.dial("plain.test", 443), hello("plain.test"), "port")
    assert [v for v in world.g.verdicts if v["reason"] == "port"][-1]["name"] == "plain.test"


def test_a_name_of_another_port_is_answered_where_http_is_spoken(world: World) -> None:
    world.refused(world.g.dial("allowed.test", 80), request("GET /v1/x HTTP/1.1", "allowed.test"), "port", 403)


def test_a_port_of_tcp_alone_is_closed_at_once_for_others(world: World) -> None:
    before, reaches = world.told("port"), len(world.g.reaches)
    address = world.g.address("plain.test")
    with contextlib.suppress(ConnectionResetError):  # when it is quicker than the dialling
        assert rig.drain(socket.create_connection((address, 2222)), 5)[1] in ("reset", "end")
    assert world.g.wait(lambda: world.told("port") > before) and len(world.g.reaches) == reaches


# ---- what the dialer says ----

DIALS = {
    "C1_private": ("address_refused", "dns-private", 403),
    "C2_C3_mixed": ("address_mixed", "dns-mixed", 403),
    "C6_C14_no_name": ("no_name", "dns-fail", 502),
    "C_unreachable": ("unreachable", "unreachable", 502),
    "C_timeout": ("timeout", "timeout", 504),
    "C_busy": ("busy", "unreachable", 502),
    "C_other_table": ("not_listed", "no-rule", 403),
}


@pytest.mark.parametrize("case", DIALS)
def test_what_the_dialer_refuses_is_told_by_its_reason(world: World, case: str) -> None:
    said, reason, status = DIALS[case]
    before = len(world.g.reaches)
    world.g.to[("1.2.3.4", 80)] = said
    world.refused(world.connect("proxy"), url("http://1.2.3.4/x", "1.2.3.4"), reason, status, silent=False)
    assert len(world.g.reaches) == before + 1
