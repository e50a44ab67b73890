# SPDX-License-Identifier: Apache-2.0
"""The world that a policy of the demo leads to: a documentation site, a carrier and a name server, which keep all that they hear.

All three are threads of the demo on loopback, with certificates of an authority that it makes. They are the judges: what is
refused must never have come to them, and what is allowed must have come as it was meant.
"""

import email.message
import http.server
import json
import socket
import ssl
import struct
import subprocess
import threading
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[1]
CREDENTIAL = "sk_demo_credential_of_the_carrier"
DOCS, CARRIER, MIRROR = "docs.example.com", "api.carrier.example", "mirror.example.org"
# The ports of policy.d/support.yaml and of the agent's commands; the servers take those that are free.
WRITTEN = {"docs": ":7443", "carrier": ":7444"}
PAGE = b"Returns: send the parcel back within 30 days.\n"
PARCEL = {"status": "in transit", "eta": "2026-12-02", "recipient": "Jane Doe, 1 High Street", "phone": "+1 555 0100"}


class Authority:
    """A certificate authority of the demo; whoever is to believe it is told so by name."""

    def __init__(self, directory: Path):
        self.directory = directory
        directory.mkdir(mode=0o700)
        self.certificate = directory / "ca.crt"
        self.openssl("req", "-x509", *self.fresh("ca"), "-subj", "/CN=roots of the demo", "-days", "2",
                     "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign", "-out", "ca.crt")

    def openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, check=True)

    def fresh(self, name: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def server(self, name: str) -> ssl.SSLContext:
        (self.directory / "ext").write_text(f"subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\n")
        self.openssl("req", *self.fresh(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "ext", "-out", f"{name}.crt")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        return context


@dataclass(frozen=True)
class Heard:
    """One request as a server heard it."""

    line: str
    host: str
    authorization: str
    body: str  # how long it said that one is; "" for none


class Handler(http.server.BaseHTTPRequestHandler):
    """Writes each request down before it looks at it, whatever its method is."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    spoken = False

    def setup(self) -> None:
        cast(ssl.SSLSocket, self.request).do_handshake()  # in the connection's own thread
        super().setup()

    def parse_request(self) -> bool:
        good = super().parse_request()
        fields = self.headers if good else email.message.Message()
        site = cast(Site, self.server)
        site.heard.append(Heard(
            " ".join(self.requestline.split()[:2]), fields.get("Host", ""), fields.get("Authorization", ""),
            fields.get("Content-Length", "") or fields.get("Transfer-Encoding", ""),
        ))
        if not self.spoken:
            self.spoken = True
            site.speakers.append(self.client_address)
        return good

    def do_GET(self) -> None:
        if self.path == "/help/moved":
            self.answer(b"", HTTPStatus.FOUND, ("Location", "http://10.0.0.5/internal"))
        elif cast(Site, self.server).name == CARRIER:
            self.answer(json.dumps(PARCEL).encode(), HTTPStatus.OK, ("Content-Type", "application/json"))
        else:
            self.answer(PAGE, HTTPStatus.OK, ("Content-Type", "text/plain"))

    def answer(self, body: bytes, status: HTTPStatus, field: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header(*field)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """It is written down already."""


class Site(http.server.ThreadingHTTPServer):
    """An HTTPS server for one name."""

    daemon_threads = True

    def __init__(self, name: str, authority: Authority):
        self.name = name
        self.heard: list[Heard] = []
        self.callers: list[tuple[str, int]] = []  # connections, and those of them on which a request came
        self.speakers: list[tuple[str, int]] = []
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = int(self.server_address[1])
        self.socket = authority.server(name).wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, caller = super().get_request()
        self.callers.append(caller)
        return connection, caller

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks is in the list already."""

    @property
    def silent(self) -> int:
        return len(self.callers) - len(self.speakers)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class Names:
    """The name server that the host asks. It knows one name, which leads to this very host."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            data, peer = self.socket.recvfrom(4096)
            if not data:  # stop() says so
                self.socket.close()
                return
            self.socket.sendto(self.answer(data), peer)

    def answer(self, query: bytes) -> bytes:
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", errors="replace"))
            at += 1 + query[at]
        name, (kind,) = ".".join(labels).lower(), struct.unpack(">H", query[at + 1 : at + 3])
        self.asked.append(name)
        found = socket.inet_aton("127.0.0.1") if name == MIRROR and kind == 1 else b""
        row = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, len(found)) + found if found else b""
        flags = 0x8180 if name == MIRROR else 0x8183
        return query[:2] + struct.pack(">HHHHH", flags, 1, 1 if row else 0, 0, 0) + query[12 : at + 5] + row

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"", ("127.0.0.1", self.port))


class Network:
    """The three, and what a host is told of them: a policy, a root to believe, a secret."""

    def __init__(self, directory: Path, trust: Path, secrets: Path):
        self.directory = directory
        directory.mkdir(mode=0o755)
        authority = Authority(directory / "authority")
        self.docs, self.carrier, self.names = Site(DOCS, authority), Site(CARRIER, authority), Names()
        (trust / "demo.pem").write_bytes(authority.certificate.read_bytes())
        secret = secrets / "carrier"
        secret.touch(mode=0o600)
        secret.write_text(CREDENTIAL + "\n")
        policies = directory / "policy.d"
        policies.mkdir(mode=0o755)
        (policies / "support.yaml").write_text(self.placed((ROOT / "demo/policy.d/support.yaml").read_text()))

    def placed(self, text: str) -> str:
        """With the ports that the servers got."""
        return text.replace(WRITTEN["docs"], f":{self.docs.port}").replace(WRITTEN["carrier"], f":{self.carrier.port}")

    def settings(self) -> str:
        """The part of demilune.yaml that is about egress."""
        roots = self.directory / "authority/ca.crt"
        return f"egress:\n  policies: {self.directory}/policy.d\n  roots: {roots}\ndialer:\n  resolvers: 127.0.0.1:{self.names.port}\n"

    def stop(self) -> None:
        self.docs.stop()
        self.carrier.stop()
        self.names.stop()
