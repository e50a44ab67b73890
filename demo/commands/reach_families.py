# SPDX-License-Identifier: Apache-2.0
# Tries to open sockets that a support agent has no use for.
import socket
import struct

STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
KINDS = {
    "raw": (2, RAW, 1),
    "raw6": (10, RAW, 58),
    "packet": (17, RAW, 0x0300),
    "netlink audit": (16, RAW, 9),
    "netlink diag": (16, RAW, 4),
    "netlink filter": (16, RAW, 12),
    "netlink generic": (16, RAW, 16),
    "netlink uevent": (16, RAW, 15),
    "vsock": (40, STREAM, 0),
    "alg": (38, SEQPACKET, 0),
    "can": (29, RAW, 1),
    "bluetooth": (31, RAW, 1),
    "tipc": (30, STREAM, 0),
    "xdp": (44, RAW, 0),
    "smc": (43, STREAM, 0),
    "key": (15, RAW, 2),
    "rds": (21, SEQPACKET, 0),
}
opened = []
for name, (family, kind, protocol) in KINDS.items():
    try:
        socket.socket(family, kind, protocol).close()
        opened.append(name)
    except OSError as e:
        print(name, e.strerror)

# The one family of netlink that name resolution asks tells of lo alone, and changes nothing: the namespace is not the
# sandbox's. RTM_NEWLINK with an acknowledgement, for the first interface.
with socket.socket(16, RAW, 0) as route:
    route.settimeout(5)
    route.send(struct.pack("=IHHII", 32, 16, 5, 1, 0) + struct.pack("=BxHiII", 0, 0, 1, 1, 1))
    _, kind, _, _, _, error = struct.unpack_from("=IHHIIi", route.recv(65536))
    print("change an interface: errno", -error)
    if (kind, error) != (2, -1):
        opened.append("a change of an interface")
print("opened:", ", ".join(opened) or "none")
