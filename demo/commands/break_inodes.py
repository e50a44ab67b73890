# SPDX-License-Identifier: Apache-2.0
# Makes empty files until it is refused, then removes them.
import itertools
import os
import shutil

os.makedirs("/work/inodes", exist_ok=True)
for n in itertools.count():
    try:
        os.close(os.open(f"/work/inodes/{n}", os.O_CREAT | os.O_EXCL))
    except OSError as e:
        print(f"refused after {n} files: {e.strerror}")
        break
    if n >= 5_000_000:
        print("never refused")
        break
shutil.rmtree("/work/inodes")
with open("/work/again", "w", encoding="ascii") as f:
    f.write("fits")
print("fits")
