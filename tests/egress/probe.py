# SPDX-License-Identifier: Apache-2.0
"""Runs inside of a sandbox, with Python's standard library only: does one thing on the network and says what came of it, as JSON.

The argument is JSON. `do`:
    talk     connect to host:port (a name, through the resolver, or an address); with `tls` (server name) a TLS client that believes nobody's
             absence; then each of `send` (base64) with `pause` seconds between; reads until the end or `wait` seconds of silence
    proxy    the same to the explicit proxy; with `connect` that target first, and `tls` inside of it
             `file`: bytes to send, in a file
    dns      `send` as a UDP datagram (or with `tcp` as messages of one stream) to the name server, all answers
    udp      `send` as a datagram to host:port
    socket   socket(family, type, protocol) and connect to host:port
Answer: {"data": base64, "error": name of errno or exception, "where": the step, "peer": address, "ended": it was closed, not silent, "reset": by RST,
"length": of all data, of which 64 KiB are shown, the first and the last}
"""

import base64
import contextlib
import errno
import json
import socket
import ssl
import struct
import sys
import time
from typing import Any

ask = json.loads(sys.argv[1])
answer: dict[str, Any] = {"data": "", "error": "", "where": "", "peer": "", "ended": False, "reset": False, "length": 0}
chunks = [base64.b64decode(one) for one in ask.get("send", [])]
if "file" in ask:
    with open(ask["file"], "rb") as sent:
        chunks = [sent.read()]
wait = ask.get("wait", 3)


def answered(got: bytes | bytearray) -> bool:
    """The one request that was sent has its whole answer: it is not worth the whole wait that nothing follows."""
    head, end, body = bytes(got).partition(b"\r\n\r\n")
    if not end or not head.startswith(b"HTTP/1.1 ") or head[9:10] == b"1" or b"".join(chunks).count(b" HTTP/1.1\r\n") != 1:
        return False
    sizes = [line.split(b":")[1].strip() for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(sizes) == 1 and sizes[0].isdigit() and len(body) >= int(sizes[0])


def read_all(sock: socket.socket, until: bytes | None = None) -> bytes:
    got = bytearray()
    sock.settimeout(wait)
    try:
        while until is None or until not in got:
            data = sock.recv(65536)
            if not data:
                answer["ended"] = True
                break
            got += data
            if len(got) < 65536 and answered(got):
                sock.settimeout(min(wait, 0.3))
            if len(got) > ask.get("most", 1 << 20):
                break
    except TimeoutError:
        pass
    except ConnectionResetError:
        answer["ended"] = answer["reset"] = True
    return bytes(got)


def send_all(sock: socket.socket) -> None:
    for at, chunk in enumerate(chunks):
        if at:
            time.sleep(ask.get("pause", 0))
        sock.sendall(chunk)
    if ask.get("shut"):
        sock.shutdown(socket.SHUT_WR)


def secure(sock: socket.socket) -> socket.socket:
    if ask.get("tls") is None:
        return sock
    context = ssl.create_default_context()
    context.check_hostname = False  # the certificate must still lead to a root that is trusted here
    if ask.get("alpn"):
        context.set_alpn_protocols(ask["alpn"])
    answer["where"] = "tls"
    return context.wrap_socket(sock, server_hostname=ask["tls"] or None, suppress_ragged_eofs=False)


def talk(host: str, port: int) -> bytes:
    answer["where"] = "name"
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    answer["peer"] = address[4][0]
    answer["where"] = "connect"
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    sock.settimeout(10)
    sock.connect(address[4])
    if ask.get("connect"):
        answer["where"] = "proxy"
        sock.sendall(f"CONNECT {ask['connect']} HTTP/1.1\r\nHost: {ask['connect']}\r\n\r\n".encode("latin-1"))
        head = read_all(sock, b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            return head
    sock = secure(sock)
    answer["where"] = "talk"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it answered before it had heard all
        send_all(sock)
    return read_all(sock)


def dns() -> bytes:
    got = bytearray()
    if ask.get("tcp"):
        sock = socket.create_connection(("127.0.0.1", 53), 5)
        sock.sendall(b"".join(struct.pack(">H", len(c)) + c for c in chunks))
        return read_all(sock)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(wait)
    sock.connect(("127.0.0.1", 53))
    for chunk in chunks:
        sock.send(chunk)
        got += sock.recv(65536)
    return bytes(got)


def udp() -> bytes:
    family = socket.AF_INET6 if ":" in ask["host"] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.settimeout(1)
    sock.connect((ask["host"], ask["port"]))
    sock.send(chunks[0] if chunks else b"x")
    time.sleep(0.05)
    sock.send(b"x")  # what ICMP said of the first
    return sock.recv(2048)


def raw() -> bytes:
    sock = socket.socket(ask["family"], ask["type"], ask.get("protocol", 0))
    answer["where"] = "connect"
    sock.settimeout(2)
    sock.connect((ask["host"], ask["port"]) if "host" in ask else ask["at"])
    return b""


try:
    do = ask["do"]
    if do == "talk":
        data = talk(ask["host"], ask["port"])
    elif do == "proxy":
        data = talk("127.0.0.1", 3128)
    elif do == "dns":
        data = dns()
    elif do == "udp":
        data = udp()
    else:
        data = raw()
    answer["length"] = len(data)
    answer["data"] = base64.b64encode(data if len(data) <= 65536 else data[:32768] + data[-32768:]).decode()
except ssl.SSLError as error:
    answer["error"] = "tls: " + (error.reason or str(error))
except socket.gaierror as error:
    answer["error"] = {socket.EAI_NONAME: "NXDOMAIN", socket.EAI_AGAIN: "EAI_AGAIN", socket.EAI_NODATA: "NODATA"}.get(error.errno, str(error))
except TimeoutError:
    answer["error"] = "ETIMEDOUT"
except OSError as error:
    answer["error"] = errno.errorcode.get(error.errno, str(error))
except UnicodeError as error:
    answer["error"] = "name: " + str(error)
print(json.dumps(answer))
