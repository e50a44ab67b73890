# SPDX-License-Identifier: Apache-2.0
# Forks until it is refused, then lets go.
import os
import signal

children: list[int] = []
try:
    while len(children) < 9999:
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
    print("never refused")
except OSError as e:
    print(f"fork refused after {len(children)}: {e.strerror}")
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
