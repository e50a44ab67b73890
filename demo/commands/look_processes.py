# SPDX-License-Identifier: Apache-2.0
# Looks at all processes: who is not ours, and what their environment holds.
import os
import re

strangers = secrets = 0
for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            environ = f.read()
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            line = f.read().replace(b"\0", b" ").decode(errors="replace")
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError as e:
        print(pid, e.strerror)
        continue
    if uid != os.getuid():
        strangers += 1
        print("stranger:", pid, uid, line[:80])
    found = re.findall(rb"(?:TOKEN|SECRET|PASSWORD|API_KEY|DATABASE_URL|AWS_)[A-Z_]*=[^\0]+", environ)
    secrets += len(found)
    print(pid, line[:60], found)
print("strangers:", strangers)
print("secrets:", secrets)
