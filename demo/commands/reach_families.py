# SPDX-License-Identifier: Apache-2.0
# Tries to open sockets that a support agent has no use for.
import socket

STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
KINDS = {
    "raw": (2, RAW, 1),
    "raw6": (10, RAW, 58),
    "packet": (17, RAW, 0x0300),
    "netlink": (16, RAW, 0),
    "nfnetlink": (16, RAW, 12),
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
print("opened:", ", ".join(opened) or "none")
