# SPDX-License-Identifier: Apache-2.0
"""The fixture of the tables (rules for allowed.test in TLS and plain.test without) and what is asserted about each refusal:
the verdict was told, the dialer was asked for nothing, the origin heard nothing."""

import json
import socket
import ssl
from typing import Any

import certs
import rig

Reason = str | tuple[str, ...]
Status = int | tuple[int, ...]
METHODS = ["GET", "HEAD", "POST", "OPTIONS"]


class World:
    """A gateway with both rules, an origin for each."""

    def __init__(self, **more: Any) -> None:
        self.tls = rig.Origin(tls=certs.server("allowed", "DNS:allowed.test"))
        self.plain = rig.Origin()
        document = rig.policy(
            rig.fetch("https://allowed.test/v1/**", methods=METHODS, request_max=1 << 20, query=["q", "x"]),
            rig.fetch("http://plain.test/v1/**", methods=METHODS, request_max=1 << 20, query=["q", "x"]),
            rig.fetch("https://small.test/**", methods=METHODS, request_max=16, response_max=64),
            rig.fetch("http://1.2.3.4/**"),
            {"host": "ssh.test", "kind": "tcp", "port": 2222},
        )
        to: dict[tuple[str, int], int | str] = {("allowed.test", 443): self.tls.port, ("plain.test", 80): self.plain.port}
        self.g = rig.Gateway(document, to, roots=certs.authority(), **more)

    def connect(self, how: str) -> socket.socket:
        """`how`: plain or tls, dialled; proxy, or inside of a CONNECT (tunnel)."""
        if how == "plain":
            return self.g.dial("plain.test", 80)
        if how == "tls":
            return self.g.dial_tls("allowed.test")
        s = self.g.proxy()
        if how == "tunnel":
            s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200 ")
            return self.g.trust().wrap_socket(s, server_hostname="allowed.test")
        return s

    def told(self, reason: str) -> int:
        """Verdicts and counts of this reason that were not allowed."""
        return self.g.told(reason)

    def heard(self) -> int:
        return sum(len(h) for h in self.tls.heard + self.plain.heard)

    def refused(
        self,
        s: socket.socket,
        raw: bytes,
        reason: str | tuple[str, ...],
        status: int | tuple[int, ...],
        *,
        more: bool = True,
        silent: bool = True,
        end: bool = False,
    ) -> bytes:
        """Sends it; all that must hold of the refusal. status 0: closed without a word. silent False: its server may have been asked."""
        reasons = (reason,) if isinstance(reason, str) else reason
        statuses = (status,) if isinstance(status, int) else status
        before = {r: self.told(r) for r in reasons}
        reaches, heard = len(self.g.reaches), self.heard()
        try:
            s.sendall(raw)
            if end:
                s.shutdown(socket.SHUT_WR)
        except (OSError, ssl.SSLError):
            pass
        got, how = rig.drain(s, 12)
        s.close()
        assert self.g.alive()
        assert how != "open", f"still open after {got!r}"
        if statuses == (0,):
            assert got == b"", got
        else:
            assert got.startswith(tuple(b"HTTP/1.1 %d " % x for x in statuses)), got[:200]
            head, _, body = got.partition(b"\r\n\r\n")
            assert b"Connection: close" in head, head
            if body:
                said = json.loads(body)
                assert said["code"] in reasons, said
                assert said["error"] and said["hint"], said
        assert self.g.wait(lambda: any(self.told(r) > before[r] for r in reasons), 4), (
            reasons,
            [(v["verdict"], v["reason"]) for v in self.g.verdicts[-3:]],
        )
        if silent:
            assert len(self.g.reaches) == reaches, "the dialer was asked"
            assert self.heard() == heard, "the origin heard something"
        return got

    def allowed(self, s: socket.socket, raw: bytes, status: int = 200) -> bytes:
        s.sendall(raw)
        got, _, body = rig.answer_of(s)
        assert got == status, (got, body)
        s.close()
        return body

    def close(self) -> None:
        self.g.close()
        self.tls.close()
        self.plain.close()


def request(line: str, host: str, *fields: str, body: bytes = b"") -> bytes:
    return "\r\n".join([line, f"Host: {host}", *fields, "", ""]).encode("latin-1") + body
