# SPDX-License-Identifier: Apache-2.0
"""What an ordinary program does, run under the sandbox filter by `sandboxed`."""

import asyncio
import ctypes
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time


def square(n: int) -> int:
    return n * n


def refused(errno: int, *call: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(*call) == -1, call
    assert ctypes.get_errno() == errno, (call, ctypes.get_errno())


def main() -> None:
    done: list[int] = []
    threads = [threading.Thread(target=done.append, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(done) == list(range(8))

    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]

    async def echo() -> bytes:
        async def serve(r: asyncio.StreamReader, w: asyncio.StreamWriter) -> None:
            w.write(await r.read(5))
            w.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
        w.write(b"hello")
        answer = await r.read(5)
        w.close()
        server.close()
        p = await asyncio.create_subprocess_exec("/bin/true")
        assert await p.wait() == 0
        return answer

    assert asyncio.run(echo()) == b"hello"
    with tempfile.TemporaryDirectory() as d:
        script = "mkdir a && echo x > a/b && mkfifo f && tar cf t.tar a && tar tf t.tar | grep -q a/b && rm -r a"
        subprocess.run(["/bin/sh", "-c", script], cwd=d, check=True)
    assert socket.getaddrinfo("127.0.0.1", 80)
    assert socket.if_nameindex()
    time.sleep(0.001)

    for family in (socket.AF_PACKET, socket.AF_VSOCK, 38):  # 38: AF_ALG
        try:
            socket.socket(family, socket.SOCK_STREAM)
        except OSError as e:
            assert e.errno == 97, e  # EAFNOSUPPORT
        else:
            sys.exit(f"family {family} is open")
    if sys.maxsize > 2**32 and sys.platform == "linux":
        refused(38, 425, 1, 0)  # io_uring_setup: ENOSYS


main()
