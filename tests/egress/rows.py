# SPDX-License-Identifier: Apache-2.0
"""The inputs of research: egress, section 2, that one exchange shows, as rows: id, how it is sent, the bytes, what must come of it.

`via`: proxy (the explicit proxy), plain (plain.test:80, by its name), tls (allowed.test:443, by its name, inside of TLS). Rows of
group E are sent both ways, plain and tls. A row that is refused has the statuses that it may be answered with (0: closed without an
answer) and the reasons that may be on record; where a byte breaks two rules the parser may name either.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    case: str
    via: str
    send: list[bytes]
    status: tuple[int, ...]
    reason: tuple[str, ...] = ()
    name: str | None = None  # of the verdict, when it must be known
    late: bool = False  # the fault stands in the body: the server was spoken to, and never sees the end of a request
    more: dict[str, object] = field(default_factory=dict)  # for the probe


def absolute(target: str | bytes, host: str | bytes = "plain.test", method: str = "GET") -> bytes:
    target = target.encode() if isinstance(target, str) else target
    host = host.encode() if isinstance(host, str) else host
    return method.encode() + b" " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"


def head(*lines: str | bytes, body: bytes = b"", first: str | bytes = "GET /v1/x HTTP/1.1", host: str = "@") -> bytes:
    """A request with these lines; "@" is the host of the row's way."""
    all_lines = [first if isinstance(first, bytes) else first.encode(), b"Host: " + host.encode(),
                 *(one if isinstance(one, bytes) else one.encode("latin-1") for one in lines)]
    return b"\r\n".join(all_lines) + b"\r\n\r\n" + body


URL, HOST, IDN, IP, PORT = ("url-syntax",), ("host-syntax",), ("host-idn",), ("ip-literal",), ("port", "url-syntax")
SYNTAX = ("url-syntax", "host-syntax", "framing", "port")
FRAMING = ("framing",)


def proxied(case: str, target: str | bytes, status: int | tuple[int, ...], reason: tuple[str, ...], host: str | bytes = "plain.test") -> Row:
    return Row(case, "proxy", [absolute(target, host)], status if isinstance(status, tuple) else (status,), reason)


A = [
    proxied("A1", "http://plain.test@evil.test/", 400, URL),
    proxied("A2", "http://evil.test#@plain.test/", 400, URL),
    proxied("A3", "http://evil.test\\@plain.test/", 400, SYNTAX),
    proxied("A4", "http://plain.test\\.evil.test/", 400, SYNTAX),
    *(proxied("A6", t, 400, SYNTAX) for t in ("http:///evil.test/", "http:/evil.test", "http:evil.test")),
    Row("A7", "plain", [b"GET //evil.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n"], (400,), ("path",)),
    *(proxied("A8", t, 400, SYNTAX) for t in ("http://plain.test:80@evil.test/", "http://a:b@c:d@evil.test/")),
    proxied("A9", "http://[::1]:80@plain.test/", 400, SYNTAX),
    proxied("A11", "http://evil.test?@plain.test/", 403, ("no-rule",), "evil.test"),
    *(proxied("A12", t, 400, SYNTAX) for t in ("http://ev%69l.test/", "http://plain%2etest/")),
    *(proxied("A13", t, 400, SYNTAX) for t in (b"http://evil.test%00.plain.test/", b"http://evil.test\0.plain.test/")),
    *(proxied("A14", b"http://plain" + c + b".test/", 400, SYNTAX) for c in (b"\r", b"\n", b"\t", b" ", b"\x7f")),
    *(proxied("A16", t.encode(), 400, (*IDN, *SYNTAX)) for t in ("http://pl\u00adain.test/", "http://pl\u200dain.test/")),
    proxied("A17", "http://b\u00fccher.test/".encode(), 400, (*IDN, *SYNTAX)),
    *(proxied("A19", f"http://{t}/", (400, 403), (*IDN, *HOST, "no-rule"), t) for t in ("xn--", "xn--.test", "xn--a.test")),
    *(proxied("A22", f"http://{t}/", 400, SYNTAX) for t in ("plain.test..", ".plain.test", "a..b.test")),
    *(proxied("A23", f"http://{t}/", 400, SYNTAX) for t in ("-a.test", "a" * 64 + ".test", ".".join(["a" * 49] * 5) + ".test")),
    *(proxied("A24", f"http://plain.test{t}/", 400, (*PORT, "framing", "host-syntax"))
      for t in (":", ":080", ":0", ":65536", ":+80", ": 80", ":80:81", ":00080", ":8 0", ":-1")),
    *(proxied("A26", f"http://{t}/", 400, SYNTAX) for t in ("[plain.test]", "[127.0.0.1]")),
    proxied("A27", "https://allowed.test/v1/", 400, ("scheme",), "allowed.test"),
    *(proxied("A28", t, 400, ("scheme", "url-syntax")) for t in ("ftp://plain.test/", "gopher://plain.test/", "file:///etc/passwd", "ws://plain.test/", "data:,x")),
    Row("A31", "proxy", [absolute("allowed.test:443", "allowed.test:443")], (400,), SYNTAX),
    Row("A31", "proxy", [absolute("*", "plain.test", "OPTIONS")], (400,), ("url-syntax", "path", "not-http")),
    Row("A31", "plain", [absolute("*", "plain.test", "OPTIONS")], (400, 403), ("url-syntax", "path", "method")),
]

NUMBERS = ("2130706433", "0x7f000001", "017700000001", "2852039166", "0xA9FEA9FE", "127.1", "127.0.1", "0x7f.1", "0177.0.0.1", "0x7f.0.0.1",
           "169.254.43518", "1.2.3", "0", "00", "0x", "127.0.0.1.", "127.0.0.1 foo", "127.0.0.1\t", "127.0.0.01", "256.1.1.1")
LITERALS = ("127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[2001:0:4136:e378:8000:63bf:5601:5601]", "[fec0::1]", "[ff02::1]", "[5f00::1]",
            "[3fff::1]", "[100::1]", "[2001:db8::1]", "[4000::1]", "168.63.129.16", "198.18.0.5", "[fd00:5eed::5]", "93.184.216.35",
            "[2607:f8b0::5efe:a00:1]", "192.0.2.1")
NOT_ONE_FORM = ("[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1%25lo]",
                "::ffff:1.2.3.4%x.allowed.test", "[::FFFF:127.0.0.1]")
ADDRESSES = ("B1", "B8", "B9", "B12", "B13", "B14", "B17", "B18", "B21", "B22", "B23")
B = [
    *(proxied("B2_B3_B4_B6_B7", f"http://{t}/", 400, SYNTAX) for t in NUMBERS),
    *(proxied("_".join(ADDRESSES), f"http://{t}/", 403, IP, t) for t in LITERALS),
    *(proxied("B9_B11_B16", f"http://{t}/", (400, 403), (*SYNTAX, *IP)) for t in NOT_ONE_FORM),
    *(Row("B1_to_B17_in_Host", "plain", [head(host=t)], (400, 403, 421), (*SYNTAX, *IP, "name-mismatch")) for t in (*NUMBERS[:8], *LITERALS[:10], *NOT_ONE_FORM)),
    *(Row("B1_to_B17_in_CONNECT", "proxy", [absolute(f"{t}:443", f"{t}:443", "CONNECT")], (400, 403), (*SYNTAX, *IP))
      for t in (*NUMBERS[:8], *LITERALS, *NOT_ONE_FORM)),
]


def framed(case: str, *sends: bytes, status: tuple[int, ...] = (400,), reason: tuple[str, ...] = FRAMING, late: bool = False) -> list[Row]:
    return [Row(case, via, list(sends), status, reason, late=late) for via in ("plain", "tls")]


POST = "POST /v1/x HTTP/1.1"
CHUNKED = "Transfer-Encoding: chunked"
ABC = b"3\r\nabc\r\n0\r\n\r\n"
E = [row for rows in (
    framed("E1", head("Content-Length: 3", CHUNKED, first=POST, body=ABC)),
    framed("E1", head(CHUNKED, "Content-Length: 3", first=POST, body=ABC)),
    *(framed("E2", head(*lines, first=POST, body=b"abc")) for lines in (
        ("Content-Length: 3", "Content-Length: 3"), ("Content-Length: 3", "Content-Length: 4"), ("Content-Length: 3, 3",))),
    *(framed("E3", head(f"Content-Length: {value}", first=POST, body=b"abc"))
      for value in ("+3", "-3", "0x3", "3 4", "", "3_0", "99999999999999999999", "0003", "3;", "3,")),
    *(framed("E4", head(line, first=POST, body=b"abc")) for line in ("Content-Length : 3", "Content-Length\t: 3", " Content-Length: 3")),
    framed("E6", head("Transfer-Encoding:\r\n chunked", first=POST, body=ABC)),
    framed("E6", head("X-A: b\r\n folded")),
    framed("E7", head(CHUNKED, first="POST /v1/x HTTP/1.0", body=ABC)),
    framed("E8", b"GET /v1/x HTTP/1.1\nHost: @\n\n"),
    framed("E8", head("X-A: a\rb")),
    framed("E8", b"GET /v1/x HTTP/1.1\r\nHost: @\r\n\rX"),
    framed("E8", head("X-A: a\nX-B: b")),
    framed("E9", b"GET /v1/x HTTP/1.1\r\n Host: @\r\n\r\n"),
    *(framed("E11", head(CHUNKED, first=POST, body=size + b"\r\nabc\r\n0\r\n\r\n"), late=True)
      for size in (b"0x3", b"+3", b"-3", b"3_0", b"3 ", b" 3", b"00000000000000003", b"")),
    framed("E12", head(CHUNKED, first=POST, body=b"3\r\nabcXX0\r\n\r\n"), late=True),
    framed("E13", head(CHUNKED, first=POST, body=b"3\nabc\r\n0\r\n\r\n"), late=True),
    framed("E13", head(CHUNKED, first=POST, body=b"3;a\nb\r\nabc\r\n0\r\n\r\n"), late=True),
    framed("E14", head(CHUNKED, first=POST, body=b"3;a=\"b c\"\r\nabc\r\n0\r\n\r\n"), late=True),
    framed("E14", head(CHUNKED, first=POST, body=b"3;" + b"a" * 80 + b"\r\nabc\r\n0\r\n\r\n"), late=True),
    *(framed("E18", head(line), reason=FRAMING) for line in (b"X-A: a\0b", b"X-A: a\x01b", b"X-A: a\x7fb", b"X\xffA: b", b": b", b"no colon", b"X A: b", b"X(A): b")),
    *(framed("E19", b"%s\r\nHost: @\r\n\r\n" % line, status=(400, 501, 505), reason=("framing", "method", "url-syntax", "not-http"))
      for line in (b"GET  /v1/x HTTP/1.1", b"GET\t/v1/x\tHTTP/1.1", b"GET /v1/x http/1.1", b"GET /v1/x HTTP/1.01", b"GET /v1/x HTTP/9.9",
                   b"GET /v1/x HTTP/2.0", b"GET /v1/x", b"GET /v1/x HTTP/1.1 ", b"get /v1/x HTTP/1.1", b"GE(T /v1/x HTTP/1.1")),
    framed("E21", head("Content-Length: 5", body=b"abcde"), reason=("body-limit",), status=(400, 413)),
    framed("E21", head(CHUNKED, body=ABC), reason=("body-limit",), status=(400, 413)),
    *(framed("E23", head(f"Expect: {value}", "Content-Length: 3", first=POST, body=b"abc"), status=(417,))
      for value in ("100-continue, x", "100-continue;q=1", "200-ok", "100-continu\xeb")),
    *(framed("E24", head(f"Connection: {value}", "Authorization: x", "Content-Length: 0", first=POST), reason=("framing", "cred-scope"), status=(400, 403))
      for value in ("Host", "Authorization, X-Forwarded-For, content-length", "content-length", "transfer-encoding", "cookie")),
    *(framed("E29", head(f"{name}: DELETE"), reason=("method",), status=(403,)) for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")),
    framed("E31", b"\r\n\r\n" + head()),
) for row in rows]


def path(case: str, target: str | bytes, status: tuple[int, ...] = (400,), reason: tuple[str, ...] = ("path",)) -> list[Row]:
    target = target if isinstance(target, bytes) else target.encode()
    return [Row(case, "tls", [b"GET " + target + b" HTTP/1.1\r\nHost: @\r\n\r\n"], status, reason)]


F = [row for rows in (
    *(path("F1", t) for t in ("/v1/../admin", "/v1/./x", "/v1/%2e%2e/admin", "/v1/.%2e/", "/v1/..", "/v1/.", "/v1/%2E%2e/x")),
    *(path("F2", t, reason=("path", "url-syntax")) for t in ("/v1/%2fadmin", "/v1%2f..%2fadmin", "/v1/%5cadmin", "/v1/a\\b", "/v1/a%2Fb")),
    *(path("F3", t, (400, 403)) for t in ("//v1/x", "/v1//x", "/v1/x//")),
    *(path("F4", t, (400, 403)) for t in ("/v1;x=1/../admin", "/v1/a;b")),
    *(path("F6", t, (400,), ("path", "url-syntax", "framing")) for t in (b"/v1/%00", b"/v1/%0d%0a", b"/v1/a\x01", b"/v1/\xc3\xa9", b"/v1/a#b")),
    *(path("F7", t, (400, 403), ("path", "url-syntax")) for t in ("/v1/%zz", "/v1/%u002e", "/v1/%252e%252e", "/v1/%", "/v1/%2")),
    *(path("F8", t, (403,)) for t in ("/v1", "/v1evil", "/v1evil/x", "/V1/x", "/", "/v2/x")),
    path("F9", "/v1/" + "a" * 8190, (414,), ("path", "header-limit", "url-syntax")),
    *(path("F13", t) for t in ("/v1/%c0%ae", "/v1/%c0%ae%c0%ae/x", "/v1/%ff")),
    *(path("F14_query", t, (403, 400), ("query", "url-syntax")) for t in ("/v1/x?other=1", "/v1/x?q=1&q=2", "/v1/x?%71=1&x=2", "/v1/x?=1")),
    *(path("K4_query", t, (403,), ("query", "cred-scope")) for t in ("/v1/x?api_key=1", "/v1/x?access_token=1")),
    *([Row("K4", "tls", [head(line)], (403,), ("cred-scope",))] for line in
      ("Authorization: Bearer x", "authorization: Basic eDp5", "Proxy-Authorization: Basic x", "Cookie: a=b", "X-Api-Key: x", "x_api_key: x")),
    [Row("K8", "tls", [head(first="TRACE /v1/x HTTP/1.1")], (403, 405, 501), ("method",))],
    [Row("K8", "tls", [head(first="DELETE /v1/x HTTP/1.1")], (403,), ("method",))],
    [Row("D9", "tls", [head(first="GET /other HTTP/1.1")], (403,), ("path",))],
    *([Row("G24_G3", "tls", [head(host=host)], (421,), ("name-mismatch",))] for host in ("allowed.test:8443", "allowed.test:80", "evil.test", "plain.test", "x.allowed.test")),
    [Row("G4", "tls", [absolute("https://evil.test/v1/x", "allowed.test")], (421,), ("name-mismatch",))],
    [Row("G4", "tls", [absolute("https://evil.test/v1/x", "evil.test")], (421,), ("name-mismatch",))],
    [Row("G4", "tls", [absolute("http://allowed.test/v1/x", "allowed.test")], (400, 421), ("name-mismatch", "scheme"))],
    [Row("G3", "plain", [head(host="evil.test")], (421,), ("name-mismatch",))],
    [Row("H1", "tls", [head("Upgrade: websocket", "Connection: upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")],
         (403,), ("upgrade",))],
    *([Row("H6", via, [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], (400, 501, 505, 0), ("framing", "method", "url-syntax", "not-http"))] for via in ("plain", "tls", "proxy")),
    [Row("H9", "proxy", [b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\nUpgrade: connect-udp\r\nConnection: upgrade\r\n\r\n"], (400, 403), ("upgrade", "framing"))],
    [Row("H9", "tls", [head("Upgrade: connect-udp", "Connection: upgrade")], (400, 403), ("upgrade",))],
    *([Row("L3", "tls", [send], (431, 414), ("header-limit", "path"))] for send in (
        head(*(f"X-{n}: {'a' * 8000}" for n in range(100))), head("X-A: " + "a" * 65536), head(*(f"X-{n}: a" for n in range(101))))),
    [Row("L3", "plain", [b"GET /v1/" + b"a" * (1 << 20)], (414, 431), ("path", "header-limit"))],
) for row in rows]

G = [
    *(Row("G13", "proxy", [absolute(f"allowed.test{port}", f"allowed.test{port}", "CONNECT")], status, reason) for port, status, reason in (
        (":22", (403,), ("port",)), (":25", (403,), ("port",)), (":80", (403,), ("port", "scheme")), (":0", (400,), (*SYNTAX, "port")),
        ("", (400,), SYNTAX), (":443/path", (400,), SYNTAX))),
    Row("G2_no_rule", "proxy", [absolute("evil.test:443", "evil.test:443", "CONNECT")], (403,), ("no-rule",), "evil.test"),
    Row("J7", "proxy", [absolute("dns.google:443", "dns.google:443", "CONNECT")], (403,), ("no-rule",), "dns.google"),
    *(Row("C16", "proxy", [absolute(f"http://{host}/", host)], (403, 400), ("no-rule", "host-syntax"), host)
      for host in ("localhost", "x.localhost", "host.docker.internal", "kubernetes.default.svc", "metadata", "metadata.google.internal")),
    *(Row("G19", "proxy", [send], (0, 400, 501), ("not-http", "framing", "method", "url-syntax")) for send in (
        b"\x05\x01\x00", b"\x05\x01\x00\x05\x01\x00\x03\x0cevil\x00test..\x01\xbb", b"\x04\x01\x00\x50\x5d\xb8\xd8\x24\x00", b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n")),
    *(Row("G23", via, [send + head()], (0, 400, 501), ("not-http", "framing", "method", "url-syntax")) for via in ("plain", "proxy") for send in (
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n", b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01\x00\x50")),
]

ROWS = A + B + E + F + G
