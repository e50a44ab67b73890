# SPDX-License-Identifier: Apache-2.0
# Opens the kernel's files for writing, and counts the devices.
import os
import stat

FILES = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/kallsyms",
    "/proc/1/mem",
    "/proc/1/oom_score_adj",
    "/proc/acpi/wakeup",
    "/proc/irq/0/smp_affinity",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/power/state",
    "/dev/mem",
    "/dev/kmsg",
    "/dev/kvm",
    "/dev/vda",
    "/dev/loop-control",
    "/dev/fuse",
    "/dev/net/tun",
]
opened = 0
for path in FILES:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
        opened += 1
        print("OPEN", path)
    except OSError as e:
        print(path, e.strerror)
devices = [e.path for e in os.scandir("/dev") if stat.S_ISBLK(e.stat(follow_symlinks=False).st_mode)]
print(f"tried: {len(FILES)}, open for writing: {opened}")
print("block devices:", len(devices))
