# SPDX-License-Identifier: Apache-2.0
# Looks for anything that an earlier ticket may have left.
import os
import shutil

MARK = b"planted-by-" + b"48221"
planted = 0
for place in ("/app", "/home", "/root", "/run", "/tmp", "/var/tmp", "/work", "/workspace", "/dev/shm"):
    for folder, _, names in os.walk(place):
        for name in names:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as f:
                    text = f.read(1 << 20)
            except OSError:
                continue
            if MARK in text or name in ("sitecustomize.py", ".netrc", "survivor"):
                planted += 1
                print("planted:", path)
strangers = [
    p
    for p in os.listdir("/proc")
    if p.isdigit() and os.path.exists(f"/proc/{p}/exe") and int(p) not in (1, os.getpid(), os.getppid())
]
print("python3:", shutil.which("python3"))
print("planted:", planted)
print("strangers:", len(strangers))
