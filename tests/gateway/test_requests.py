# SPDX-License-Identifier: Apache-2.0
"""Rows E (framing) and F (path and query) of the tables, each on the plain listener and inside of intercepted TLS."""

import socket
import time
from collections.abc import Iterator

import pytest
import rig
from cases import Reason, Status, World, request

HOST = {"plain": "plain.test", "tls": "allowed.test"}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    w = World()
    yield w
    w.close()


@pytest.fixture(params=["plain", "tls"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def post(host: str, *fields: str, body: bytes = b"abc") -> bytes:
    return request("POST /v1/x HTTP/1.1", host, *fields, body=body)


FRAMING = {
    "E1_length_then_coding": ["Content-Length: 3", "Transfer-Encoding: chunked"],
    "E1_coding_then_length": ["Transfer-Encoding: chunked", "Content-Length: 3"],
    "E2_length_twice_the_same": ["Content-Length: 3", "Content-Length: 3"],
    "E2_length_twice_different": ["Content-Length: 3", "Content-Length: 4"],
    "E2_length_as_a_list": ["Content-Length: 3, 3"],
    "E3_length_plus": ["Content-Length: +3"],
    "E3_length_minus": ["Content-Length: -3"],
    "E3_length_hex": ["Content-Length: 0x3"],
    "E3_length_two_numbers": ["Content-Length: 3 4"],
    "E3_length_empty": ["Content-Length:"],
    "E3_length_underscore": ["Content-Length: 3_0"],
    "E3_length_overflow": ["Content-Length: 18446744073709551619"],
    "E3_length_leading_zeros": ["Content-Length: 0003"],
    "E4_blank_before_colon": ["Content-Length : 3"],
    "E6_folded_coding": ["Transfer-Encoding:\r\n chunked"],
    "E6_folded_field": ["X-A: b\r\n c", "Content-Length: 3"],
    "E8_bare_cr_in_a_value": ["X-A: b\rc", "Content-Length: 3"],
    "E18_nul_in_a_value": ["X-A: b\0c", "Content-Length: 3"],
    "E18_control_in_a_value": ["X-A: b\x01c", "Content-Length: 3"],
    "E18_del_in_a_value": ["X-A: b\x7fc", "Content-Length: 3"],
    "E18_high_bit_in_a_name": ["X-\xe4: b", "Content-Length: 3"],
    "E18_empty_name": [": b", "Content-Length: 3"],
    "E18_no_colon": ["XA", "Content-Length: 3"],
    "E24_connection_names_host": ["Connection: Host", "Content-Length: 3"],
    "E24_connection_names_credentials": ["Connection: Authorization, X-Forwarded-For, content-length", "Content-Length: 3"],
    "E1_coding_twice": ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    "E1_coding_list": ["Transfer-Encoding: chunked, chunked"],
    "E1_coding_other": ["Transfer-Encoding: xchunked"],
    "E1_coding_identity": ["Transfer-Encoding: identity", "Content-Length: 3"],
}


@pytest.mark.parametrize("case", FRAMING)
def test_a_head_with_two_readings_is_400(world: World, how: str, case: str) -> None:
    world.refused(world.connect(how), post(HOST[how], *FRAMING[case]), "framing", 400)


LINES: dict[str, tuple[bytes, Reason, Status]] = {
    "E9_first_field_begins_with_a_blank": (b"GET /v1/x HTTP/1.1\r\n X: y\r\nHost: HOST\r\n\r\n", "framing", 400),
    "E19_two_blanks": (b"GET  /v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n", "framing", 400),
    "E19_tab": (b"GET\t/v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n", "framing", 400),
    "E19_lower_case_version": (b"GET /v1/x http/1.1\r\nHost: HOST\r\n\r\n", "framing", 400),
    "E19_three_digits": (b"GET /v1/x HTTP/1.01\r\nHost: HOST\r\n\r\n", "framing", 400),
    "E19_version_9": (b"GET /v1/x HTTP/9.9\r\nHost: HOST\r\n\r\n", "framing", 505),
    "E19_version_2": (b"GET /v1/x HTTP/2.0\r\nHost: HOST\r\n\r\n", "framing", 505),
    "E19_version_0_9": (b"GET /v1/x\r\n\r\n", "framing", 400),
    "E8_bare_lf": (b"GET /v1/x HTTP/1.1\nHost: HOST\n\n", "framing", 400),
    "E8_lf_at_the_end": (b"GET /v1/x HTTP/1.1\r\nHost: HOST\r\n\n", "framing", 400),
    "E8_cr_x_at_the_end": (b"GET /v1/x HTTP/1.1\r\nHost: HOST\r\n\rX", "framing", 400),
    "E31_two_empty_lines_first": (b"\r\n\r\nGET /v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n", "framing", 400),
    "E7_coding_in_1_0": (b"POST /v1/x HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "framing", 400),
    "E23_expect_list": (b"POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nExpect: 100-continue, x\r\n\r\na", "framing", 417),
    "E23_expect_other": (b"POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nExpect: 100-Continue x\r\n\r\na", "framing", 417),
    "E29_method_override": (
        b"POST /v1/x HTTP/1.1\r\nHost: HOST\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n",
        "method",
        403,
    ),
    "E29_method_override_other": (
        b"POST /v1/x HTTP/1.1\r\nHost: HOST\r\nX-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n",
        "method",
        403,
    ),
    "E21_get_with_body": (b"GET /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello", "body-limit", 400),
    "E21_head_with_body": (b"HEAD /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello", "body-limit", 400),
    "E21_delete_with_body": (b"DELETE /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello", "body-limit", 400),
    "E_no_host": (b"GET /v1/x HTTP/1.1\r\n\r\n", "framing", 400),
    "E_no_host_in_1_0": (b"GET /v1/x HTTP/1.0\r\n\r\n", "framing", 400),
    "E_two_hosts": (b"GET /v1/x HTTP/1.1\r\nHost: HOST\r\nHost: evil.test\r\n\r\n", "framing", 400),
    "K8_trace": (b"TRACE /v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n", "method", 501),
    "E_method_of_no_rule": (b"PUT /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n", "method", (403, 405)),
    "A31_connect_inside": (b"CONNECT HOST:443 HTTP/1.1\r\nHost: HOST:443\r\n\r\n", ("method", "name-mismatch"), (403, 405, 421)),
    "A31_authority_form": (b"GET HOST:443 HTTP/1.1\r\nHost: HOST\r\n\r\n", ("url-syntax", "scheme"), 400),
    "A31_asterisk": (b"OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n", "path", (400, 403)),
    "H6_h2_preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ("framing", "method"), (400, 501, 505)),
    "L3_header_of_64_kib": (b"GET /v1/x HTTP/1.1\r\nHost: HOST\r\nX: " + b"a" * 65536 + b"\r\n\r\n", "header-limit", 431),
    "L3_101_fields": (b"GET /v1/x HTTP/1.1\r\nHost: HOST\r\n" + b"X: a\r\n" * 101 + b"\r\n", "header-limit", 431),
    "L3_line_of_1_mib": (b"GET /v1/" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: HOST\r\n\r\n", "path", 414),
    "F9_path_of_8193_bytes": (b"GET /v1/" + b"a" * 8190 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n", "path", 414),
    "K11_length_over_the_rule": (b"POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1048577\r\n\r\n", "body-limit", 413),
    "G23_proxy_protocol_v1": (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET /v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n", "not-http", 0),
    "G23_proxy_protocol_v2": (b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", "framing", 400),
}


@pytest.mark.parametrize("case", LINES)
def test_a_request_that_is_none_of_a_rules(world: World, how: str, case: str) -> None:
    raw, reason, status = LINES[case]
    world.refused(world.connect(how), raw.replace(b"HOST", HOST[how].encode()), reason, status)


PATHS: dict[str, tuple[str, Reason, Status]] = {
    "F1_dot_dot": ("/v1/../admin", "path", 400),
    "F1_dot": ("/v1/./x", "path", 400),
    "F1_encoded": ("/v1/%2e%2e/admin", "path", 400),
    "F1_half_encoded": ("/v1/.%2e/", "path", 400),
    "F2_encoded_slash": ("/v1/%2fadmin", "path", 400),
    "F2_encoded_slashes": ("/v1%2f..%2fadmin", "path", 400),
    "F2_encoded_backslash": ("/v1/%5cadmin", "path", 400),
    "F2_backslash": ("/v1/\\admin", "path", 400),
    "F3_empty_first": ("//v1/x", "path", 400),
    "F3_empty": ("/v1//x", "path", 400),
    "F4_parameter_and_dots": ("/v1;x=1/../admin", "path", (400, 403)),
    "F4_parameter": ("/v1/a;b", "path", 403),
    "F6_nul": ("/v1/%00", "path", 400),
    "F6_crlf": ("/v1/%0d%0a", "path", 400),
    "F6_raw_high": ("/v1/\xe4", "path", 400),
    "F6_fragment": ("/v1/x#y", "path", 400),
    "F7_bad_escape": ("/v1/%zz", ("path", "url-syntax"), 400),
    "F7_u_escape": ("/v1/%u002e", ("path", "url-syntax"), 400),
    "F7_double": ("/v1/%252e%252e", "path", 400),
    "F8_prefix_without_slash": ("/v1", "path", 403),
    "F8_prefix_longer": ("/v1evil", "path", 403),
    "F13_overlong": ("/v1/%c0%ae", "path", 400),
    "D9_another_path": ("/v2/x", "path", 403),
    "A7_network_path": ("//evil.test/", "path", 400),
    "F_parameter_of_no_rule": ("/v1/x?other=1", "query", 403),
    "F_parameter_twice": ("/v1/x?q=1&q=2", "url-syntax", 400),
    "F_parameter_bad_escape": ("/v1/x?q=%zz", "url-syntax", 400),
    "K4_key_in_the_query": ("/v1/x?api_key=1", ("cred-scope", "query"), 403),
}


@pytest.mark.parametrize("case", PATHS)
def test_a_path_with_two_readings_or_of_no_rule(world: World, how: str, case: str) -> None:
    path, reason, status = PATHS[case]
    world.refused(world.connect(how), request(f"GET {path} HTTP/1.1", HOST[how]), reason, status)


CREDENTIALS = [
    "Authorization: Bearer x",
    "AUTHORIZATION: Basic eDp5",
    "Cookie: a=b",
    "X-Api-Key: k",
    "x_api_key: k",
    "Proxy-Authorization: Basic x",
]


@pytest.mark.parametrize("field", CREDENTIALS)
def test_K4_a_credential_of_the_program_is_refused(world: World, how: str, field: str) -> None:
    world.refused(world.connect(how), request("GET /v1/x HTTP/1.1", HOST[how], field), "cred-scope", 403)


NAMES = {
    "G3_another_host": "evil.test",
    "G24_another_port": "SELF:8443",
    "E_address": "127.0.0.1",
    "G3_below": "x.SELF",
    "G3_longer": "SELF.evil.test",
    "B_zone": "[fe80::1%25eth0]",
    "A22_two_dots": "SELF..",
    "A12_escaped": "SELF%2e",
    "A1_user": "a@SELF",
}


@pytest.mark.parametrize("case", NAMES)
def test_a_host_that_is_not_the_name_is_421(world: World, how: str, case: str) -> None:
    """G3, G24: domain fronting."""
    host = NAMES[case].replace("SELF", HOST[how])
    world.refused(
        world.connect(how),
        request("GET /v1/x HTTP/1.1", host),
        ("name-mismatch", "host-syntax", "ip-literal", "port", "url-syntax"),
        (421, 400, 403),
    )


@pytest.mark.parametrize("host", ["SELF", "SELF.", "UPPER", "SELF:PORT"])
def test_A21_the_same_host_written_otherwise_is_written_anew(world: World, how: str, host: str) -> None:
    name = HOST[how]
    origin = world.plain if how == "plain" else world.tls
    said = host.replace("SELF", name).replace("UPPER", name.upper()).replace("PORT", "80" if how == "plain" else "443")
    world.allowed(world.connect(how), request("GET /v1/A21 HTTP/1.1", said))
    assert origin.heard[-1].endswith(b"GET /v1/A21 HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n"), origin.heard[-1]


def test_G4_an_absolute_form_that_names_another_place_is_421(world: World, how: str) -> None:
    for url in ("https://evil.test/v1/x", "http://evil.test/v1/x"):
        world.refused(world.connect(how), request(f"GET {url} HTTP/1.1", HOST[how]), ("name-mismatch", "scheme"), (421, 400))
    other = "https" if how == "plain" else "http"
    world.refused(
        world.connect(how), request(f"GET {other}://{HOST[how]}/v1/x HTTP/1.1", HOST[how]), ("name-mismatch", "scheme"), (421, 400)
    )


def test_E26_a_second_request_behind_an_empty_body_is_judged_alone(world: World, how: str) -> None:
    raw = post(HOST[how], "Content-Length: 0", body=b"") + request("GET /v1/x HTTP/1.1", "evil.test")
    origin = world.plain if how == "plain" else world.tls
    s = world.connect(how)
    before = world.told("name-mismatch")
    s.sendall(raw)
    got, _ = rig.drain(s, 5)
    assert got.count(b"HTTP/1.1 200 ") == 1 and got.count(b"HTTP/1.1 421 ") == 1, got
    assert world.g.wait(lambda: world.told("name-mismatch") > before)
    assert b"evil.test" not in b"".join(origin.heard)


def test_E27_allowed_then_forbidden_on_one_connection(world: World, how: str) -> None:
    s = world.connect(how)
    s.sendall(request("GET /v1/E27 HTTP/1.1", HOST[how]))
    assert rig.answer_of(s)[0] == 200
    world.refused(s, request("GET /admin HTTP/1.1", HOST[how]), "path", 403)


def test_E26_pipelined_requests_are_answered_in_order(world: World, how: str) -> None:
    s = world.connect(how)
    s.sendall(b"".join(request(f"GET /v1/{i} HTTP/1.1", HOST[how]) for i in range(20)))
    got = b""
    s.settimeout(10)
    while got.count(b"ok") < 20:
        got += s.recv(65536)
    assert got.count(b"HTTP/1.1 200 ") == 20
    s.close()


def test_E31_one_empty_line_first_is_fine(world: World, how: str) -> None:
    world.allowed(world.connect(how), b"\r\n" + request("GET /v1/x HTTP/1.1", HOST[how]))


def test_E16_trailers_and_extensions_are_dropped(world: World, how: str) -> None:
    origin = world.plain if how == "plain" else world.tls
    s = world.connect(how)
    world.allowed(
        s, post(HOST[how], "Transfer-Encoding: chunked", body=b"3;a=b\r\nabc\r\n0\r\nHost: evil.test\r\nAuthorization: x\r\n\r\n")
    )
    world.g.wait(lambda: origin.heard[-1].endswith(b"0\r\n\r\n"))
    assert origin.heard[-1].endswith(b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), origin.heard[-1]


CHUNKS = {
    "E11_hex_prefix": b"0x3\r\nabc\r\n0\r\n\r\n",
    "E11_plus": b"+3\r\nabc\r\n0\r\n\r\n",
    "E11_minus": b"-3\r\nabc\r\n0\r\n\r\n",
    "E11_underscore": b"3_0\r\nabc\r\n0\r\n\r\n",
    "E11_blank_behind": b"3 \r\nabc\r\n0\r\n\r\n",
    "E11_blank_first": b" 3\r\nabc\r\n0\r\n\r\n",
    "E11_17_digits": b"00000000000000003\r\nabc\r\n0\r\n\r\n",
    "E11_empty": b"\r\nabc\r\n0\r\n\r\n",
    "E12_no_crlf_behind": b"3\r\nabcXX0\r\n\r\n",
    "E13_bare_lf": b"3\nabc\r\n0\r\n\r\n",
    "E13_lf_in_an_extension": b"3;a\nabc\r\n0\r\n\r\n",
    "E14_long_extension": b"3;" + b"a" * 80 + b"\r\nabc\r\n0\r\n\r\n",
    "E14_quoted_extension": b'3;a="b"\r\nabc\r\n0\r\n\r\n',
    "E16_long_trailer": b"3\r\nabc\r\n0\r\nX: " + b"a" * 5000 + b"\r\n\r\n",
    "E16_trailer_control": b"3\r\nabc\r\n0\r\nX: \0\r\n\r\n",
    "K11_chunks_over_the_rule": b"100001\r\n" + b"a" * 0x100001 + b"\r\n0\r\n\r\n",
}
LATER = b"8000\r\n" + b"a" * 0x8000 + b"\r\n"


@pytest.mark.parametrize("case", CHUNKS)
def test_a_body_that_breaks_never_ends_at_the_origin(world: World, how: str, case: str) -> None:
    """E11 to E17, K11: behind some of it the head may have gone out before it; the end of the body never does, and the connection is
    reset."""
    origin = world.plain if how == "plain" else world.tls
    ends = b"".join(origin.heard).count(b"0\r\n\r\n")
    reason, status = ("body-limit", 413) if case.startswith("K11") else ("framing", 400)
    body = 5 * LATER + CHUNKS[case]
    world.refused(world.connect(how), post(HOST[how], "Transfer-Encoding: chunked", body=body), reason, status, silent=False)
    assert b"".join(origin.heard).count(b"0\r\n\r\n") == ends


@pytest.mark.parametrize("case", CHUNKS)
def test_E11_to_E16_of_a_body_that_begins_broken_no_server_hears(world: World, how: str, case: str) -> None:
    reason, status = ("body-limit", 413) if case.startswith("K11") else ("framing", 400)
    world.refused(world.connect(how), post(HOST[how], "Transfer-Encoding: chunked", body=CHUNKS[case]), reason, status)
    assert [v for v in world.g.verdicts if v["reason"] == reason][-1]["verdict"] == "refused"


def said(s: socket.socket, raw: bytes) -> bytes:
    """What a client hears that first says all that it has to say, as many do."""
    s.settimeout(10)
    s.sendall(raw)
    return rig.drain(s, 5)[0]


def test_L3_a_program_that_still_sends_its_head_hears_the_refusal(world: World, how: str) -> None:
    head = request("GET /v1/x HTTP/1.1", HOST[how], *(f"X-{i}: {'a' * 8192}" for i in range(100)))
    got = said(world.connect(how), head)
    assert got.startswith(b"HTTP/1.1 431 ") and got.endswith(b"}\n") and b'"header-limit"' in got, got


@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_L3_a_program_that_still_sends_its_body_hears_the_413(world: World, how: str, coding: str) -> None:
    n = 4 << 20
    if coding == "length":
        raw = post(HOST[how], f"Content-Length: {n}", body=b"a" * n)
    else:
        raw = post(HOST[how], "Transfer-Encoding: chunked", body=(n // 0x8000) * LATER + b"0\r\n\r\n")
    got = said(world.connect(how), raw)
    assert got.startswith(b"HTTP/1.1 413 ") and got.endswith(b"}\n") and b'"body-limit"' in got, got


def test_L3_behind_a_refusal_so_much_is_read_and_no_more(world: World, how: str) -> None:
    s = world.connect(how)
    s.settimeout(10)
    s.sendall(request("GET /v2 HTTP/1.1", HOST[how]))
    sent = 0
    with pytest.raises(OSError):
        while sent < 64 << 20:
            sent += s.send(b"a" * 65536)
    assert sent < 32 << 20
    s = world.connect(how)
    s.sendall(request("GET /v2 HTTP/1.1", HOST[how]))
    rig.drain(s, 5)
    began = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() - began < 8:
            s.sendall(b"a")
            time.sleep(0.1)
    assert time.monotonic() - began < 5


def test_E17_a_body_that_is_cut_off_is_aborted(world: World, how: str) -> None:
    origin = world.plain if how == "plain" else world.tls
    before = world.told("closed")
    s = world.connect(how)
    s.sendall(post(HOST[how], "Content-Length: 10", "X-Case: E17", body=b"abc"))
    assert world.g.wait(lambda: any(h.endswith(b"abc") for h in origin.heard))
    s.close()
    assert world.g.wait(lambda: world.told("closed") > before, 5)
    assert world.g.verdict("closed")["verdict"] == "aborted"
    assert not any(b"X-Case: E17" in h and not h.endswith(b"abc") for h in origin.heard)


def test_E22_continue_comes_from_the_gateway_after_the_decision(world: World, how: str) -> None:
    origin = world.plain if how == "plain" else world.tls
    world.refused(world.connect(how), request("POST /v2/x HTTP/1.1", HOST[how], "Content-Length: 3", "Expect: 100-continue"), "path", 403)
    s = world.connect(how)
    s.sendall(request("POST /v1/E22 HTTP/1.1", HOST[how], "Content-Length: 3", "Expect: 100-continue"))
    s.settimeout(5)
    assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    s.sendall(b"abc")
    assert rig.answer_of(s)[0] == 200
    assert not any(b"xpect" in h for h in origin.heard)


def test_hop_by_hop_fields_do_not_pass(world: World, how: str) -> None:
    origin = world.plain if how == "plain" else world.tls
    fields = [
        "Connection: keep-alive, TE",
        "TE: trailers",
        "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive",
        "Trailer: X",
        "X-Stays: yes",
    ]
    world.allowed(world.connect(how), request("GET /v1/hop HTTP/1.1", HOST[how], *fields))
    last = origin.heard[-1][origin.heard[-1].rindex(b"GET /v1/hop") :]
    assert last == b"GET /v1/hop HTTP/1.1\r\nHost: " + HOST[how].encode() + b"\r\nX-Stays: yes\r\n\r\n", last


def test_nothing_of_the_request_is_in_a_refusal(world: World, how: str) -> None:
    """I14: as Squid's CVE-2025-62168."""
    got = world.refused(
        world.connect(how), request("GET /v2/s3cr3t?q=s3cr3t HTTP/1.1", HOST[how], "X-A: s3cr3t", "Authorization: s3cr3t"), "path", 403
    )
    assert b"s3cr3t" not in got
    assert HOST[how].encode() in got


def test_H_h2c_of_a_library_is_not_passed_and_not_refused(world: World, how: str) -> None:
    origin = world.plain if how == "plain" else world.tls
    world.allowed(
        world.connect(how),
        request(
            "GET /v1/h2c HTTP/1.1", HOST[how], "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"
        ),
    )
    assert b"pgrade" not in origin.heard[-1] and b"HTTP2" not in origin.heard[-1]


@pytest.mark.parametrize("value", ["websocket", "foo", "connect-udp", "h2c, websocket"])
def test_H1_H9_an_upgrade_without_a_rule_is_403(world: World, how: str, value: str) -> None:
    world.refused(world.connect(how), request("GET /v1/x HTTP/1.1", HOST[how], "Connection: Upgrade", f"Upgrade: {value}"), "upgrade", 403)
