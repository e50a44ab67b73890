#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every check of the source; `./run lint` is this program. A check is a row of CHECKS; each prints what breaks it.

    lint.py --build DIR [CHECK...]
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "proto"))
import generate  # noqa: E402
import options_man  # noqa: E402

ROOMS = ("supervisor", "engine", "api", "relay", "config", "cli", "broker", "gateway", "dialer")
PROCESSES = ("supervisor", "engine", "api", "relay", "config", "broker", "gateway", "dialer")
FUNCTION_MAX, FILE_MAX, HEADER_MAX = 100, 800, 250
# Words that speak of how the text came about instead of the project.
FOREIGN_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

Faults = Iterator[str]


def tracked(*patterns: str) -> list[Path]:
    out = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True, capture_output=True).stdout
    return [ROOT / name for name in out.decode().split("\0") if name and (ROOT / name).exists()]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def includes(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if match:
            yield number, match.group(1)


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    if parts[0] == "src":
        return parts[1]
    return "agent" if parts[:2] == ("guest", "agent") else ""


def check_rooms() -> Faults:
    """One process folder never includes another's headers; lib includes no process; no relative paths upwards."""
    for path in tracked("src/*.c", "src/*.h", "guest/*.c", "guest/*.h"):
        room = room_of(path)
        for number, name in includes(path):
            place = f"{relative(path)}:{number}"
            first = name.split("/")[0]
            if ".." in name.split("/"):
                yield f"{place}: includes {name}; paths start at the root"
            if first in (*ROOMS, "agent", "guest") and first != room and not (room == "agent" and first == "guest"):
                yield f"{place}: {room} includes {name}, a file of another process"
            if room == "agent" and first == "lib" and name.split("/")[1] not in ("base", "ipc", "channel", "ustar", "jail"):
                yield f"{place}: the guest agent includes {name}"


def check_arrows() -> Faults:
    """Folders of lib know each other in one direction only."""
    knows: dict[str, set[str]] = defaultdict(set)
    for path in tracked("src/lib/*.c", "src/lib/*.h"):
        folder = path.relative_to(ROOT / "src/lib").parts[0]
        for _, name in includes(path):
            parts = name.split("/")
            if parts[0] == "lib" and parts[1] != folder:
                knows[folder].add(parts[1])

    def reaches(start: str, target: str, seen: set[str]) -> bool:
        return any(n == target or (n not in seen and reaches(n, target, seen | {n})) for n in knows[start])

    for folder in sorted(knows):
        if reaches(folder, folder, set()):
            yield f"src/lib/{folder} reaches itself through {', '.join(sorted(knows[folder]))}"


def check_edges() -> Faults:
    """Each message has a row in its receiver's serve table, and each row belongs to its room."""
    tables = generate.load()
    messages = {m.name: m for m in tables.messages}
    rows: dict[str, set[str]] = defaultdict(set)
    for path in tracked("src/*.c", "src/*/answer.def"):
        for match in re.finditer(r"^\s*(?:IPC_ROW|ANSWER)\(([A-Z]\w*),", path.read_text(), re.M):
            rows[room_of(path)].add(match.group(1))
    for room, names in rows.items():
        for name in sorted(names):
            message = messages.get(name)
            if message is None:
                yield f"src/{room}: a row for {name}, which is not in proto/messages.def"
                continue
            edge = tables.edges[message.edge]
            if room == message.sender or room not in (edge.a, edge.b):
                yield f"src/{room}: a row for {name}, which {room} does not receive"
    for message in tables.messages:
        edge = tables.edges[message.edge]
        receiver = edge.b if message.sender == edge.a else edge.a
        if message.edge != "CONFIG_SUPERVISOR" and message.name not in rows[receiver]:
            yield f"src/{receiver}: no row for {message.name} ({message.edge} from {message.sender})"


def check_fsm() -> Faults:
    """Every .fsm table is walked by a test that names it; states and events are listed with prose."""
    tests = "\n".join(p.read_text() for p in tracked("tests/*.c"))
    for path in tracked("*.fsm"):
        text = path.read_text()
        if path.name not in tests:
            yield f"{relative(path)}: no test includes it"
        if not re.search(r"^STEP\(", text, re.M):
            yield f"{relative(path)}: no STEP row"


def check_limits() -> Faults:
    """A limit that nothing reads is a promise that nobody keeps."""
    for path in tracked("src/*/limits.def", "src/*/*/limits.def"):
        room = path.parent
        names = re.findall(r"^LIMIT\((\w+)", path.read_text(), re.M)
        text = "".join(f.read_text() for f in room.iterdir() if f.suffix in (".c", ".h", ".def") and f.name != "limits.def")
        used = set(re.findall(r"\w+", text))
        prefixes = ("", "LIMIT_", f"{room.name.upper()}_")
        for name in names:
            if not any(prefix + name in used for prefix in prefixes):
                yield f"{relative(path)}: nothing reads the limit {name}"


def check_options() -> Faults:
    """Options and limits have prose; the manual page names every option; the CLI's verbs are documented."""
    manual = ROOT / "docs/man/demilune.yaml.5.scd"
    if not manual.exists() or manual.read_text() != options_man.page():
        yield "docs/man/demilune.yaml.5.scd is not what tools/options_man.py writes"
    if len(options_man.ROW.findall(options := (ROOT / "src/config/options.def").read_text())) != options.count("\nOPTION("):
        yield "src/config/options.def: a row that tools/options_man.py cannot read"
    yield from check_command_line()
    for path in tracked("*/limits.def", "*/*/limits.def"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("LIMIT(") and not re.search(r'"[^"]{8,}"\)$', line):
                yield f"{relative(path)}:{number}: a limit without prose"
    yield from check_limits()


def check_command_line() -> Faults:
    """demilune(1) names each verb and each option of the tables of the command line, and no others."""
    page = ROOT / "docs/man/demilune.1.scd"
    text = page.read_text()
    verbs = verbs_of_cli()
    options = re.findall(r'^OPTION\(\w+,\s*"(--[^"]+)",\s*"(\w?)"', (ROOT / "src/cli/options.def").read_text(), re.M)
    if len(verbs) < 20 or len(options) < 20:
        yield "the tables of the command line are not understood"
    named = set(re.findall(r"\*(demilune [a-z ]+)\*", text))
    for verb in sorted(verbs - named):
        yield f"{relative(page)} does not name {verb}"
    for verb in sorted(named - verbs):
        yield f"{relative(page)} names {verb}, which there is not"
    lines = [line for line in text.splitlines() if re.match(r"\*-", line)]
    for name, letter in options:
        if not any(re.search(rf"\*{re.escape(name)}\*", line) and (not letter or f"*-{letter}*" in line) for line in lines):
            yield f"{relative(page)} does not name {name}{f', -{letter}' if letter else ''}"
    for name in sorted(set(re.findall(r"\*(--[a-z]+)\*", text)) - {name for name, _ in options}):
        yield f"{relative(page)} names {name}, which there is not"


def check_size() -> Faults:
    """Functions, files and headers keep their ceilings; tables do not count."""
    for path in tracked("src/*.c", "src/*.h", "guest/*.c", "guest/*.h"):
        lines = len(path.read_text().splitlines())
        ceiling = HEADER_MAX if path.suffix == ".h" else FILE_MAX
        if lines > ceiling:
            yield f"{relative(path)}: {lines} lines, more than {ceiling}"
    files = [str(p) for p in tracked("src/*.c", "guest/*.c")]
    out = subprocess.run(["ctags", "--languages=C", "--c-kinds=f", "--fields=+ne", "--output-format=json", "-f", "-",
                          *files], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        tag = json.loads(line)
        size = tag.get("end", 0) - tag["line"] + 1
        if size > FUNCTION_MAX:
            yield f"{relative(Path(tag['path']))}:{tag['line']}: {tag['name']} has {size} lines, more than {FUNCTION_MAX}"


def check_headers(build: Path) -> Faults:
    """Each header compiles alone and holds no variable."""
    generated = sorted({path.parent for path in build.glob("src/**/*.h")})
    include = [f"-I{ROOT}", f"-I{ROOT}/src", *(f"-I{folder}" for folder in generated)]
    for path in tracked("src/*.h", "guest/*.h"):
        if path.name == "banned.h":
            continue
        text = path.read_text()
        if "#pragma once" not in text:
            yield f"{relative(path)}: no #pragma once"
        done = subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused",
                               *include, "-x", "c", "-include", str(path), "/dev/null"], capture_output=True, text=True,
                              check=False)
        if done.returncode or done.stderr:
            why = next((line for line in done.stderr.splitlines() if "error" in line or "warning" in line), "")
            yield f"{relative(path)} does not compile alone: {why}"


def check_words() -> Faults:
    """SPDX line in each file; no unfinished marks; no // comments; no goto; ours only."""
    for path in tracked():
        if path.suffix in (".c", ".h", ".def", ".fsm", ".py", ".sh", ".build", ".sql", ".yaml", ".ts", ".js"):
            head = path.read_text().splitlines()[:3]
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
                yield f"{relative(path)}: no SPDX line"
        if path.suffix not in (".c", ".h", ".def", ".fsm", ".py", ".sql"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            place = f"{relative(path)}:{number}"
            if FOREIGN_WORDS.search(line) and path != Path(__file__).resolve():
                yield f"{place}: an unfinished mark"
            if path.suffix in (".c", ".h"):
                if re.match(r"\s*//", line):
                    yield f"{place}: a // comment"
                if re.search(r"\bgoto\b", re.sub(r'/\*.*?\*/|"[^"]*"', "", line)) and not line.strip().startswith("*"):
                    yield f"{place}: goto"
                if re.search(r"^\s*default\s*:", line) and room_of(path):
                    yield f"{place}: default in a switch; list every value"


def check_cards() -> Faults:
    """Each room has its boundary card with the same six rows, and its furniture."""
    for room in PROCESSES:
        folder = ROOT / "src" / room
        card = folder / "README.md"
        if not card.exists():
            yield f"src/{room}: no README.md"
            continue
        text = card.read_text().lower()
        for word in ("runs as", "reads", "holds", "never", "peers", "exit codes"):
            if word not in text:
                yield f"src/{room}/README.md: the card says nothing about `{word}`"
        for name in ("main.c", "confine.c"):
            if not (folder / name).exists():
                yield f"src/{room}: no {name}"


def braces(text: str) -> list[str]:
    """As a shell expands a{b,c}."""
    match = re.search(r"\{([^{}]*)\}", text)
    if match is None:
        return [text]
    return [whole for part in match[1].split(",") for whole in braces(text[:match.start()] + part + text[match.end():])]


def verbs_of_cli() -> set[str]:
    rows = re.findall(r'^VERB\("([^"]+)",\s*"([^"]*)"', (ROOT / "src/cli/verbs.def").read_text(), re.M)
    return {f"demilune {verb} {sub}".strip() for verb, sub in rows}


def check_links() -> Faults:
    """What documents call a file or a command of ours is there: `src/...`, `demilune ...` and the like, and links."""
    verbs = verbs_of_cli()
    first = {" ".join(verb.split()[:2]) for verb in verbs}
    files = [relative(path) for path in tracked()]
    there = set(files) | {str(folder) for name in files for folder in Path(name).parents}
    for path in tracked("*.md", "*.scd"):
        text = path.read_text()
        for match in re.finditer(r"`((?:src|tests|docs|proto|tools|fuzz|guest|demo|bench|templates)/[\w./{},*-]*)`", text):
            for name in braces(match[1].rstrip("/")):
                if name not in there and not any(fnmatch.fnmatch(one, name) for one in files):
                    yield f"{relative(path)}: there is no {name}"
        for match in re.finditer(r"[`*](demilune [a-z]+)( [a-z]+)?", text):
            verb, whole = match[1], match[0][1:]
            if not (whole in verbs or verb in verbs or (match[2] is None and verb in first)):
                yield f"{relative(path)}: there is no {whole}"
        for match in re.finditer(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            if not (path.parent / match[1]).exists():
                yield f"{relative(path)}: a link to {match[1]}, which is not there"


def check_format() -> Faults:
    files = [str(p) for p in tracked("*.c", "*.h")]
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    places = {":".join(line.split(":")[:2]) for line in done.stderr.splitlines() if "error:" in line}
    for place in sorted(places)[:40]:
        yield f"{place.replace(str(ROOT) + '/', '')}: not as clang-format writes it (./run fmt)"


def check_shell() -> Faults:
    scripts = [str(p) for p in tracked("run", ".ci/run", "*.sh")]
    done = subprocess.run(["shellcheck", *scripts], cwd=ROOT, capture_output=True, text=True, check=False)
    yield from done.stdout.splitlines()


def virtualenv(build: Path) -> Path:
    """ruff and mypy at fixed versions, from PyPI, beside the build."""
    folder = build / "lint-venv"
    if not (folder / "bin/mypy").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin/pip"), "install", "-q", "ruff==0.6.9", "mypy==1.11.2"], check=True)
    return folder / "bin"


def check_python(build: Path) -> Faults:
    tools = virtualenv(build)
    files = [str(p) for p in tracked("*.py")]
    done = subprocess.run([str(tools / "ruff"), "check", "--quiet", "--config", str(ROOT / "ruff.toml"), *files],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    yield from (done.stdout + done.stderr).splitlines()
    groups: dict[Path, list[str]] = defaultdict(list)
    for name in files:
        groups[Path(name).parent].append(name)
    for folder, group in sorted(groups.items()):
        done = subprocess.run([str(tools / "mypy"), "--strict", "--allow-untyped-decorators", "--no-error-summary",
                               "--ignore-missing-imports", "--cache-dir", str(build / "mypy"),
                               "--no-namespace-packages", *group], cwd=folder, capture_output=True, text=True, check=False,
                              env=dict(os.environ) | {"MYPYPATH": f"{folder}:{ROOT / 'proto'}"})
        yield from (f"{folder.relative_to(ROOT)}: {line}" for line in (done.stdout + done.stderr).splitlines())


def check_manuals() -> Faults:
    """The manual pages are well formed."""
    for path in tracked("docs/man/*.scd"):
        done = subprocess.run(["scdoc"], stdin=path.open(), capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{relative(path)}: {done.stderr.strip()}"
            continue
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error"], input=done.stdout, capture_output=True, text=True,
                              check=False)
        yield from (f"{relative(path)}: {line}" for line in lint.stdout.splitlines())


def compile_everything(folder: Path, compiler: str, *options: str) -> Faults:
    """A whole build without a single warning."""
    environment = dict(os.environ) | {"CC": compiler}
    if folder.exists() and not (folder / "build.ninja").exists():
        shutil.rmtree(folder)
    if not folder.exists():
        done = subprocess.run(["meson", "setup", str(folder), *options], cwd=ROOT, env=environment, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            yield f"{compiler}: {done.stdout.splitlines()[-3:]}"
            return
    done = subprocess.run(["ninja", "-k", "0", "-C", str(folder)], cwd=ROOT, env=environment, capture_output=True, text=True,
                          check=False)
    faults = [line for line in done.stdout.splitlines() if re.search(r": (fatal )?(warning|error): ", line)]
    yield from faults
    if done.returncode and not faults:
        yield from done.stdout.splitlines()[-10:]


def check_gcc(build: Path) -> Faults:
    yield from compile_everything(build.parent / "build-lint-gcc", "gcc", "-Dwerror=true")


def check_clang(build: Path) -> Faults:
    yield from compile_everything(build.parent / "build-lint-clang", "clang", "-Dwerror=true")


def check_analyzer(build: Path) -> Faults:
    yield from compile_everything(build.parent / "build-lint-analyzer", "gcc", "-Dwerror=true", "-Doptimization=1",
                                  "-Danalyzer=true")


CHECKS: dict[str, Callable[..., Faults]] = {
    "rooms": check_rooms, "arrows": check_arrows, "edges": check_edges, "fsm": check_fsm, "options": check_options,
    "size": check_size, "headers": check_headers, "words": check_words, "cards": check_cards, "links": check_links, "format": check_format,
    "shell": check_shell, "python": check_python, "manuals": check_manuals, "gcc": check_gcc, "clang": check_clang,
    "analyzer": check_analyzer,
}
NEED_BUILD = ("headers", "python", "gcc", "clang", "analyzer")


def main() -> int:
    parser = argparse.ArgumentParser(description="every check of the source")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("check", nargs="*", help="of: " + ", ".join(CHECKS))
    arguments = parser.parse_args()
    chosen = arguments.check or list(CHECKS)
    unknown = [name for name in chosen if name not in CHECKS]
    if unknown:
        parser.error(f"no check {unknown[0]}; there are: {', '.join(CHECKS)}")
    bad = 0
    for name in chosen:
        began = time.monotonic()
        check = CHECKS[name]
        faults = list(check(arguments.build.resolve()) if name in NEED_BUILD else check())
        print(f"{name:10} {'ok' if not faults else f'{len(faults)} faults':12} {time.monotonic() - began:6.1f} s",
              flush=True)
        for fault in faults:
            print(f"    {fault}")
        bad += bool(faults)
    print(f"{len(chosen) - bad} checks passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
