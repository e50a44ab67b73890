# SPDX-License-Identifier: Apache-2.0
"""A sandbox of Demilune as inspect_ai wants one, and its self_check run against it.

    inspect_adapter.py URL TOKEN prints {"name", "error"} per check, a line each.

Run by the Python in which inspect_ai is installed. Long words and large inputs travel as files.
"""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox import self_check

HOME = "/workspace"
ARGUMENTS_BYTES = 100_000  # more travel as a file
INPUT_BYTES = 500_000
# Runs the words of a file: what the API takes at once is bounded.
FROM_FILE = "import os, sys; a = open(sys.argv[1], 'rb').read().split(b'\\0'); os.execvp(a[0], a)"


class Demilune(SandboxEnvironment):  # type: ignore[misc]  # not installed where types are checked
    def __init__(self, url: str, token: str) -> None:
        super().__init__()
        self.url, self.token = url, token
        self.id = json.loads(self.ask("POST", "/v1/sandboxes", {"template": "python"})[1])["id"]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/octet-stream"}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    async def ask_box(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        return await asyncio.to_thread(self.ask, method, f"/v1/sandboxes/{self.id}{path}", body)

    async def close(self) -> None:
        await self.ask_box("DELETE", "")

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        words = list(cmd)
        if sum(map(len, words)) > ARGUMENTS_BYTES:
            name = f"/tmp/{uuid.uuid4()}"
            await self.write_file(name, "\0".join(words))
            words = ["python3", "-c", FROM_FILE, name]
        body: dict[str, Any] = {"argv": words, "cwd": os.path.join(HOME, cwd or ""), "output_limit": 4 << 20}
        if isinstance(input, str) and len(input.encode()) <= INPUT_BYTES and "\0" not in input:
            body["stdin"] = input
        elif input is not None:
            name = f"/tmp/{uuid.uuid4()}"
            await self.write_file(name, input)
            body["argv"] = ["sh", "-c", 'f=$1; shift; exec "$@" < "$f"', "sh", name, *words]
        body |= {"env": env} if env else {}
        body |= {"user": user} if user else {}
        body |= {"timeout_seconds": timeout} if timeout else {}
        status, text = await self.ask_box("POST", "/exec", body)
        said = json.loads(text)
        if status == 504:
            raise TimeoutError(said["error"])
        if status == 400 and user:
            raise SandboxUserUnsupportedError(said["error"])
        if status != 200:
            raise RuntimeError(said["error"])
        if said["exit_code"] == 126:
            raise PermissionError(said.get("not_started", "permission denied"))
        return ExecResult(said["exit_code"] == 0, said["exit_code"], said["stdout"], said["stderr"])

    def fail(self, path: str, status: int, text: bytes) -> Exception:
        said = json.loads(text)["error"]
        kinds = {"directory": IsADirectoryError, "may not": PermissionError, "no such": FileNotFoundError}
        if status == 404:
            return FileNotFoundError(f"{path}: {said}")
        return next((kind(f"{path}: {said}") for word, kind in kinds.items() if word in said), RuntimeError(said))

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        path = os.path.join(HOME, file)
        status, text = await self.ask_box("PUT", "/fs?path=" + urllib.parse.quote(path, safe=""), data)
        if status != 200:
            raise self.fail(file, status, text)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...
    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        path = urllib.parse.quote(os.path.join(HOME, file), safe="")
        status, data = await self.ask_box("GET", "/fs?path=" + path)
        if status != 200:
            raise self.fail(file, status, data)
        if len(data) > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return data.decode() if text else data

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool) -> None:
        for environment in environments.values():
            await environment.close()


async def main() -> None:
    box = Demilune(sys.argv[1], sys.argv[2])
    for name in self_check.__all__:
        error = ""
        try:
            await getattr(self_check, name)(box)
        except BaseException as e:
            error = f"{type(e).__name__}: {e}"
        print(json.dumps({"name": name, "error": error}), flush=True)
    await box.close()


asyncio.run(main())
