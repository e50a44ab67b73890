# SPDX-License-Identifier: Apache-2.0
# Makes system calls that would widen what this process may do (x86-64 numbers).
import ctypes
import errno
import os
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NEWNS, NEWUSER, NEWNET, NEWPID = 0x20000, 0x10000000, 0x40000000, 0x20000000
PARAMS = ctypes.create_string_buffer(4096)
LEVEL = ctypes.create_string_buffer(8)

CALLS: dict[str, tuple[Any, ...]] = {
    "mount tmpfs": (165, b"none", b"/tmp", b"tmpfs", 0, None),
    "mount bind": (165, b"/proc", b"/tmp", None, 4096, None),
    "remount /": (165, None, b"/", None, 32 | 4096, None),
    "umount /proc": (166, b"/proc", 2),
    "fsopen": (430, b"tmpfs", 0),
    "open_tree clone": (428, -100, b"/", 1),
    "move_mount": (429, -100, b"/tmp", -100, b"/work", 0),
    "pivot_root": (155, b"/tmp", b"/tmp"),
    "chroot": (161, b"/tmp"),
    "unshare mount": (272, NEWNS),
    "unshare user": (272, NEWUSER),
    "unshare net": (272, NEWNET),
    "unshare pid": (272, NEWPID),
    "setns": (308, 0, 0),
    "ptrace attach 1": (101, 16, 1, 0, 0),
    "ptrace seize 1": (101, 0x4206, 1, 0, 0),
    "process_vm_readv 1": (310, 1, None, 0, None, 0, 0),
    "io_uring_setup": (425, 8, PARAMS),
    "bpf map": (321, 0, PARAMS, 128),
    "perf_event_open": (298, PARAMS, 0, -1, -1, 0),
    "userfaultfd": (323, 0),
    "add_key": (248, b"user", b"x", b"y", 1, -3),
    "request_key": (249, b"user", b"x", None, -3),
    "keyctl": (250, 0, -3, 1),
    "init_module": (175, PARAMS, 16, b""),
    "finit_module": (313, 0, b"", 0),
    "kexec_load": (246, 0, 0, None, 0),
    "reboot": (169, 0xFEE1DEAD, 672274793, 0x89ABCDEF, None),
    "swapon": (167, b"/tmp/x", 0),
    "sethostname": (170, b"x", 1),
    "settimeofday": (164, PARAMS, None),
    "clock_settime": (227, 0, PARAMS),
    "setuid 0": (105, 0),
    "setresuid 0": (117, 0, 0, 0),
    "setgroups": (116, 1, LEVEL),
    "mknod device": (133, b"/tmp/mem", 0o20666, 0x101),
    "open_by_handle_at": (304, -100, PARAMS, 0),
    "name_to_handle_at": (303, -100, b"/", PARAMS, LEVEL, 0),
    "fanotify_init": (300, 0, 0),
    "quotactl": (179, 0x800002, None, 0, None),
    "syslog": (103, 3, PARAMS, 4096),
    "iopl": (172, 3),
    "ioperm": (173, 0, 1, 1),
    "acct": (163, b"/tmp/acct"),
    "vhangup": (153,),
    "memfd_secret": (447, 0),
    "kcmp": (312, 1, 1, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "move_pages 1": (279, 1, 0, None, None, None, 0),
}

allowed = 0
for name, arguments in CALLS.items():
    child = os.fork()
    if child == 0:
        ctypes.set_errno(0)
        number, rest = arguments[0], arguments[1:]
        wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in rest]
        result = libc.syscall(ctypes.c_long(number), *wide)
        code = ctypes.get_errno()
        # EBADF, EINVAL and the like would mean that the kernel got as far as looking at the arguments.
        refused = result < 0 and code in (errno.EPERM, errno.ENOSYS, errno.EACCES)
        print(name if refused else f"ALLOWED {name}", errno.errorcode.get(code, "done"), flush=True)
        os._exit(0 if refused else 1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(name, "signal", os.WTERMSIG(status))
    elif status != 0:
        allowed += 1
print(f"tried: {len(CALLS)}, allowed: {allowed}")
