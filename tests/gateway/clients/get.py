# SPDX-License-Identifier: Apache-2.0
"""get.py NAME PORT CA: as strict as Python is by default from 3.13 on."""

import socket
import ssl
import sys

name, port, ca = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= ssl.VERIFY_X509_STRICT
with context.wrap_socket(socket.create_connection(("127.0.0.1", int(port))), server_hostname=name) as s:
    s.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    print(s.recv(1000))
