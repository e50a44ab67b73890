# SPDX-License-Identifier: Apache-2.0
# Takes memory until it is refused or ended; 64 GiB is more than a sandbox can have.
held = []
for _ in range(1024):
    held.append(bytearray(b"x") * (64 << 20))
print("took everything")
