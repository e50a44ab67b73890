# SPDX-License-Identifier: Apache-2.0
"""Runs inside a sandbox as `python3 -c` for one code context: a line of JSON in, a line of JSON out.

What it writes is a claim of the sandbox like any output. It ends when nothing was asked for IDLE_S seconds.
"""
import ast
import base64
import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import traceback
from typing import Any, BinaryIO

IDLE_S = 2400
KEPT = 1 << 20
asks = os.dup(0)
answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
signal.signal(signal.SIGINT, signal.SIG_IGN)
space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
RICH = (("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"),
        ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("text/latex", "_repr_latex_"),
        ("application/json", "_repr_json_"))


def told(answer: dict[str, Any]) -> None:
    data = (json.dumps(answer) + "\n").encode("ascii")
    while data:
        data = data[os.write(answers, data):]


def kept(file: BinaryIO) -> str:
    size = file.seek(0, 2)
    if size <= KEPT:
        file.seek(0)
        return file.read().decode("utf-8", "replace")
    file.seek(0)
    head = file.read(KEPT // 2).decode("utf-8", "replace")
    file.seek(size - KEPT // 2)
    return f"{head}\n[... {size - KEPT} bytes left out ...]\n{file.read().decode('utf-8', 'replace')}"


def shown(value: Any) -> dict[str, str]:
    bundle = {"text/plain": repr(value)}
    for mime, method in RICH:
        made = getattr(value, method, None)
        if isinstance(value, type) or not callable(made):
            continue
        made = made()
        if isinstance(made, bytes):
            made = base64.b64encode(made).decode("ascii")
        if made is not None:
            bundle[mime] = made if isinstance(made, str) else json.dumps(made)
    return bundle


def figures() -> list[dict[str, str]]:
    plot = sys.modules.get("matplotlib.pyplot")
    if plot is None:
        return []
    found = []
    for number in plot.get_fignums():
        with tempfile.TemporaryFile() as file:
            plot.figure(number).savefig(file, format="png")
            file.seek(0)
            found.append({"image/png": base64.b64encode(file.read()).decode("ascii")})
    plot.close("all")
    return found


def run(code: str) -> list[dict[str, str]]:
    tree = ast.parse(code, "<cell>")
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "<cell>", "exec"), space)
    results = []
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
        if value is not None:
            results.append(shown(value))
    return results + figures()


def cell(code: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"results": [], "exit": 0}
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        answer["results"] = run(code)
    except SystemExit as end:
        answer["exit"] = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as fault:
        answer["exit"] = 1
        answer["error"] = f"{type(fault).__name__}: {fault}"
        traceback.print_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    return answer


def main() -> None:
    told({"ready": True})
    waiting = b""
    while True:
        while b"\n" not in waiting:
            if not select.select([asks], [], [], IDLE_S)[0]:
                return
            data = os.read(asks, 65536)
            if not data:
                return
            waiting += data
        line, waiting = waiting.split(b"\n", 1)
        ask = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            answer = cell(ask["code"])
            answer.update(id=ask["id"], stdout=kept(out), stderr=kept(err))
        told(answer)


main()
