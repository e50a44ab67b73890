# SPDX-License-Identifier: Apache-2.0
# Tries to send something to addresses; prints what the kernel said.
import errno
import socket

TARGETS = [
    (socket.AF_INET, socket.SOCK_STREAM, ("93.184.216.34", 443)),
    (socket.AF_INET, socket.SOCK_STREAM, ("8.8.8.8", 53)),
    (socket.AF_INET, socket.SOCK_STREAM, ("10.0.0.1", 80)),
    (socket.AF_INET, socket.SOCK_STREAM, ("192.168.1.1", 80)),
    (socket.AF_INET, socket.SOCK_STREAM, ("172.17.0.1", 2375)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.251", 5353)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("2606:2800:220:1::1", 443)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("64:ff9b::a9fe:a9fe", 80)),
    (socket.AF_INET6, socket.SOCK_DGRAM, ("ff02::1", 5353)),
]

out = 0
for family, kind, address in TARGETS:
    with socket.socket(family, kind) as s:
        s.settimeout(3)
        try:
            s.connect(address)
            s.send(b"customers")
            out += 1
            print("OUT", address)
        except OSError as e:
            print(address[0], errno.errorcode.get(e.errno, e))
print(f"tried: {len(TARGETS)}, out: {out}")
