# SPDX-License-Identifier: Apache-2.0
# Lists Unix sockets with a name, and connects to the usual ones of a host.
import os
import socket

# The way to ask for an action leads to PID 1 of the sandbox, as everything here does.
OWN = ("/run/demilune/propose", "/run/demilune/read")
strangers = 0
try:
    with open("/proc/net/unix", encoding="ascii", errors="replace") as f:
        for line in f.readlines()[1:]:
            if len(line.split()) > 7 and line.split()[7] not in OWN:
                strangers += 1
                print("named:", line.split()[7])
except OSError as e:
    print("/proc/net/unix:", e.strerror)
for path in (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/demilune/api.sock",
    "/run/systemd/private",
    "\0/containerd-shim",
    "/tmp/.X11-unix/X0",
    os.environ.get("SSH_AUTH_SOCK", "/run/ssh-agent"),
):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
            strangers += 1
            print("connected:", repr(path))
        except OSError as e:
            print(repr(path), e.strerror)
print("strangers:", strangers)
