# SPDX-License-Identifier: Apache-2.0
"""Each with a gateway of its own: redirects (D1), servers' certificates (G16), large answers."""

import socket
import ssl

import certs
import pytest
import rig
from cases import request


@pytest.mark.skipif(rig.SANITIZED, reason="memory is measured")
def test_a_large_answer_comes_whole() -> None:
    size = 64 << 20

    def big(_: rig.Origin, s: socket.socket, __: bytes) -> None:
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _i in range(64):
            s.sendall(b"m" * (1 << 20))

    o = rig.Origin(big)
    g = rig.Gateway(rig.policy(rig.fetch("http://large.test/**", response_max=1 << 30)), {("large.test", 80): o.port})
    before = rss(g)
    s = g.dial("large.test", 80)
    s.sendall(request("GET / HTTP/1.1", "large.test"))
    n = 0
    while n < size:
        data = s.recv(1 << 20)
        assert data
        n += len(data)
    assert rss(g) - before < 2048, "KiB"
    assert g.wait(lambda: sum(f["bytes_in"] for f in g.flows) >= size, 3)
    g.close()


def rss(g: rig.Gateway) -> int:
    with open(f"/proc/{g.process.pid}/status", encoding="ascii") as file:
        return int(file.read().split("VmRSS:")[1].split()[0])


def test_D1_a_redirect_is_handed_back_and_not_followed() -> None:
    location = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\n\r\n"
    o = rig.Origin(location)
    g = rig.Gateway(rig.policy(rig.fetch("http://plain.test/**")), {("plain.test", 80): o.port})
    s = g.dial("plain.test", 80)
    s.sendall(request("GET / HTTP/1.1", "plain.test"))
    status, fields, _ = rig.answer_of(s)
    assert (status, fields["location"]) == (302, "http://169.254.169.254/latest/meta-data/")
    assert len(g.reaches) == 1
    s.close()
    s = g.proxy()
    s.sendall(b"GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")
    assert rig.drain(s)[0].startswith(b"HTTP/1.1 403 ")
    assert len(g.reaches) == 1
    g.close()


# ---- servers' certificates ----


def bad(label: str) -> ssl.SSLContext:
    rows = {
        "wrong_name": {"san": "DNS:evil.test"},
        "self_signed": {"san": "DNS:allowed.test", "ca": "self"},
        "other_authority": {"san": "DNS:allowed.test", "ca": "other"},
        "one_label_wildcard": {"san": "DNS:*.test"},
        "partial_wildcard": {"san": "DNS:a*.test"},
        "common_name_only": {"san": "", "subject": "allowed.test"},
        "address_only": {"san": "IP:192.0.2.7"},
        "expired": {"san": "DNS:allowed.test", "days": "-1"},
    }
    return certs.server(label, **rows[label])


@pytest.mark.parametrize(
    "label", ["wrong_name", "self_signed", "other_authority", "partial_wildcard", "common_name_only", "address_only", "not_tls"]
)
def test_G16_a_certificate_of_the_server_that_is_not_right(label: str) -> None:
    o = rig.Origin(b"HTTP/1.1 200 OK\r\n\r\n") if label == "not_tls" else rig.Origin(tls=bad(label))
    g = rig.Gateway(rig.policy(rig.fetch("https://allowed.test/**")), {("allowed.test", 443): o.port}, roots=certs.authority())
    s = g.dial_tls("allowed.test")
    s.sendall(request("GET /secret HTTP/1.1", "allowed.test"))
    status, _, body = rig.answer_of(s, 30)
    assert status == 502 and b'"tls-verify"' in body
    assert g.verdict("tls-verify")["verdict"] == "refused"
    assert not any(b"secret" in h for h in o.heard)
    g.close()
