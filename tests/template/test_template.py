#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demilune-template against the real mkfs.erofs and real mounts; needs root, no network.

Usage: test_template.py PROGRAM [STATE]. With a state directory that holds the template `python`, that is looked at too.
Prints `ok NAME` or `not ok NAME: why` per case and ends with 1 if any failed.
The template is made of a few files (and busybox, where installed), so that each case takes a moment.
"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = ""


class Failure(Exception):
    """A condition of a case did not hold."""


def check(condition: bool, why: str) -> None:
    if not condition:
        raise Failure(why)


def run(state: Path, *args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PROGRAM, "--state", str(state), *args], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == status, f"{args} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def make_tree(top: Path, backwards: bool = False) -> Path:
    """A root file system with what must be stripped, kept and replaced. The order of making says nothing."""
    files = [f"usr/bin/tool{i}" for i in range(20)] + ["etc/passwd", "bin/sh", "usr/bin/su", "root/.bashrc"]
    for name in reversed(files) if backwards else files:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"root:x:0:0::/root:/bin/sh\nagent:x:77:77::/:/bin/sh\n" if name == "etc/passwd" else b"x" * 5000)
        path.chmod(0o755)
    os.chown(top / "usr/bin/su", 1234, 1234)
    (top / "usr/bin/su").chmod(0o6755)  # after chown, which takes the bits away
    os.setxattr(top / "usr/bin/tool1", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    (top / "etc/resolv.conf").symlink_to("/run/elsewhere")
    (top / "etc/motd").symlink_to("/etc/hostname")
    (top / "dev").mkdir()
    os.mknod(top / "dev/null", 0o20666, os.makedev(1, 3))
    busybox = shutil.which("busybox")
    if busybox:
        shutil.copy(busybox, top / "bin/busybox")
    os.utime(top / "bin/sh", (time.time() - (7 if backwards else 99999),) * 2)
    return top


def imported(state: Path, name: str, tree: Path, *args: str) -> str:
    """The digest that an import answers with."""
    last = run(state, *args, "import", name, str(tree)).stdout.splitlines()[-1].split()
    check(last[:2] == ["imported", name] and len(last) == 4, f"last line is {last}")
    return last[2]


@contextmanager
def mounted(state: Path, digest: str, scratch: Path) -> Iterator[Path]:
    at = scratch / "mnt"
    at.mkdir(exist_ok=True)
    image = state / "templates" / f"{digest}.erofs"
    subprocess.run(["mount", "-t", "erofs", "-o", "ro,nosuid,nodev", image, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def same_input_same_image(scratch: Path) -> None:
    one = imported(scratch / "s1", "tiny", make_tree(scratch / "a"))
    two = imported(scratch / "s2", "tiny", make_tree(scratch / "b", backwards=True))
    check(one == two, "two imports of the same files differ")
    sha = subprocess.run(["sha256sum", scratch / f"s1/templates/{one}.erofs"], capture_output=True, text=True, check=True)
    check(sha.stdout.split()[0] == one, "the name of the image is not its digest")
    other = imported(scratch / "s1", "other", scratch / "a")
    check(other != one, "another manifest, but the same digest")


def inherited_acl(folder: Path) -> None:
    """Whatever is made inside gets an access list, which is an extended attribute."""
    entries = [(1, 7, -1), (2, 7, 1234), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(folder, "system.posix_acl_default", acl)


def image_content(scratch: Path) -> None:
    state = scratch / "s"
    (state / "tmp").mkdir(parents=True)
    inherited_acl(state / "tmp")
    digest = imported(state, "tiny", make_tree(scratch / "a"))
    with mounted(state, digest, scratch) as root:
        for path in root.rglob("*"):
            st = path.lstat()
            inside_home = path == root / "home/agent"
            check((st.st_uid, st.st_gid) == ((10001, 10001) if inside_home else (0, 0)), f"owner of {path}")
            check(not st.st_mode & 0o6000, f"setuid or setgid on {path}")
            check(path.is_symlink() or path.is_dir() or path.is_file(), f"special file {path}")
            check(path.is_symlink() or not os.listxattr(path), f"extended attribute on {path}")
            check(st.st_mtime == 1672531200, f"time of {path}")
        for place in ["app", "dev", "proc", "root", "run", "sys", "tmp", "var/tmp", "work", "workspace", "home/agent"]:
            check((root / place).is_dir() and not any((root / place).iterdir()), f"{place} is no empty directory")
        check((root / "tmp").stat().st_mode & 0o7777 == 0o1777, "mode of /tmp")
        check((root / "etc/hosts").read_text() == "127.0.0.1 localhost sandbox\n::1 localhost\n", "hosts")
        check(not (root / "etc/resolv.conf").is_symlink(), "resolv.conf is still a link")
        check("nameserver 127.0.0.1\n" in (root / "etc/resolv.conf").read_text(), "resolv.conf")
        check((root / "etc/machine-id").read_bytes() == b"", "machine-id")
        passwd = (root / "etc/passwd").read_text().splitlines()
        check(
            [p for p in passwd if p.startswith("agent:")] == ["agent:x:10001:10001:agent:/home/agent:/bin/sh"],
            str(passwd),
        )
        check(any(p.startswith("root:") for p in passwd), "root is gone")
        check((root / "etc/motd").is_symlink(), "a link inside was not kept as a link")
        inside = (root / "etc/demilune/template.json").read_text()
    record = json.loads(run(state, "show", "tiny").stdout)
    check(record["digest"] == digest and record["image_bytes"] > 0, "record")
    check(json.loads(inside) == record["manifest"], "the manifest in the image is another")
    check(socket.gethostname() not in inside, "the host's name is in the image")


def hostile_links(scratch: Path) -> None:
    """Links where the program writes: never followed, nothing outside is touched."""
    victim = scratch / "victim"
    victim.mkdir()
    (victim / "passwd").write_text("mine\n")
    for name in ("etc", "tmp", "var", "home", "dev"):
        tree = scratch / f"t-{name}"
        tree.mkdir()
        (tree / name).symlink_to(victim)
        done = subprocess.run(
            [PROGRAM, "--state", scratch / "s", "import", "x", tree], capture_output=True, text=True, check=False
        )
        check(done.returncode == (0 if name == "dev" else 1), f"{name}: {done.stdout}{done.stderr}")
    check(sorted(p.name for p in victim.iterdir()) == ["passwd"], "something was written through a link")
    check((victim / "passwd").read_text() == "mine\n", "the host's file was changed")
    check(not any((scratch / "s/tmp/template").iterdir()), "something half-made stayed")


BUNDLE = "/run/demilune/trust/bundle.crt"


def trust_is_the_sandbox_s(scratch: Path) -> None:
    """Where libraries look for roots is a link to what a sandbox makes; the system's own are kept beside."""
    tree = make_tree(scratch / "a")
    (tree / "etc/ssl/certs/java").mkdir(parents=True)
    (tree / "etc/ssl/certs/ca-certificates.crt").write_text("theirs\n")
    (tree / "etc/ssl/certs/java/cacerts").write_bytes(b"\xfe\xed\xfe\xed")
    (tree / "etc/ssl/cert.pem").symlink_to("certs/ca-certificates.crt")
    digest = imported(scratch / "s", "whole", tree)
    with mounted(scratch / "s", digest, scratch) as root:
        for name in ("etc/ssl/certs/ca-certificates.crt", "usr/lib/ssl/cert.pem", "etc/ssl/cert.pem"):
            check(os.readlink(root / name) == BUNDLE, f"{name} leads elsewhere")
        check(os.readlink(root / "etc/ssl/certs/java/cacerts") == "/run/demilune/trust/java.jks", "the key store leads elsewhere")
        kept = root / "usr/share/demilune"
        check((kept / "roots.crt").read_text() == "theirs\n", "the system's roots")
        check((kept / "roots.jks").read_bytes() == b"\xfe\xed\xfe\xed", "the system's key store")
        check((kept / "roots.crt").stat().st_mode & 0o7777 == 0o644, "mode of the roots")
        again = scratch / "again"
        shutil.copytree(root, again, symlinks=True)
    digest = imported(scratch / "s", "again", again)  # what is ours already stays as it is
    with mounted(scratch / "s", digest, scratch) as root:
        check((root / "usr/share/demilune/roots.crt").read_text() == "theirs\n", "the second time there are no roots")
    digest = imported(scratch / "s", "bare", make_tree(scratch / "b"))
    with mounted(scratch / "s", digest, scratch) as root:
        check(os.readlink(root / "etc/ssl/certs/ca-certificates.crt") == BUNDLE, "no link in an image without roots")
        check(not (root / "usr/share/demilune").exists(), "roots out of nothing")
        check(not os.path.lexists(root / "etc/ssl/certs/java/cacerts"), "a key store that nobody asked for")


def hostile_trust(scratch: Path) -> None:
    """Links on the way to where programs look: refused. Links in its place: replaced, and what they lead to is neither read nor written."""
    victim = scratch / "victim"
    (victim / "ssl/certs").mkdir(parents=True)
    (victim / "ssl/certs/ca-certificates.crt").write_text("mine\n")
    for number, name in enumerate(("etc/ssl", "etc/ssl/certs", "usr/lib/ssl", "usr/share/demilune")):
        tree = scratch / f"t{number}"
        (tree / name).parent.mkdir(parents=True)
        (tree / name).symlink_to(victim / "ssl/certs" if name != "etc/ssl" else victim / "ssl")
        if name == "usr/share/demilune":
            (tree / "etc/ssl/certs").mkdir(parents=True)
            (tree / "etc/ssl/certs/ca-certificates.crt").write_text("theirs\n")
        done = run(scratch / "s", "import", "x", str(tree), status=1)
        check("needed as a directory" in done.stderr or "Not a directory" in done.stderr, done.stderr)
    tree = make_tree(scratch / "file")
    (tree / "etc/ssl/certs").mkdir(parents=True)
    (tree / "etc/ssl/certs/ca-certificates.crt").symlink_to(victim / "ssl/certs/ca-certificates.crt")
    digest = imported(scratch / "s", "file", tree)
    with mounted(scratch / "s", digest, scratch) as root:
        check(os.readlink(root / "etc/ssl/certs/ca-certificates.crt") == BUNDLE, "the link is theirs")
        check(not (root / "usr/share/demilune").exists(), "a file of the host is in the image")
    tree = make_tree(scratch / "large")
    (tree / "etc/ssl/certs").mkdir(parents=True)
    (tree / "etc/ssl/certs/ca-certificates.crt").write_bytes(b"x" * (1048576 + 1))
    check("too large" in run(scratch / "s", "import", "large", str(tree), status=1).stderr, "roots of any size")
    check(sorted(p.name for p in victim.rglob("*")) == ["ca-certificates.crt", "certs", "ssl"], "something was written through a link")
    check((victim / "ssl/certs/ca-certificates.crt").read_text() == "mine\n", "the host's file was changed")


def refuses_special_files(scratch: Path) -> None:
    tree = make_tree(scratch / "a")
    os.mkfifo(tree / "usr/pipe")
    done = run(scratch / "s", "import", "tiny", str(tree), status=1)
    check("pipe" in done.stderr and "FIFO" in done.stderr, done.stderr)
    check(not list((scratch / "s/templates/index").iterdir()), "it stands in the index")


def refuses_pipes_and_names(scratch: Path) -> None:
    for name in ("no-such-file", "pipe"):
        if name == "pipe":
            os.mkfifo(scratch / name)
        run(scratch / "s", "import", "tiny", str(scratch / name), status=1)
    (scratch / "a").mkdir()
    run(scratch / "s", "import", "../x", str(scratch / "a"), status=1)
    run(scratch / "s", "--place", "/etc", "import", "x", str(scratch / "a"), status=1)
    run(scratch / "s", "show", "nothing", status=1)
    run(scratch / "s", "frobnicate", status=2)


def tar_of(tree: Path, archive: Path, *options: str) -> Path:
    subprocess.run(
        ["tar", "--format=ustar", "--sort=name", *options, "-cf", archive, "-C", tree, "."], check=True, timeout=60
    )
    return archive


def archive_is_like_its_tree(scratch: Path) -> None:
    """A tar gives the image that its directory gives; setuid goes, hard links are refused or copies."""
    tree = make_tree(scratch / "a")
    want = imported(scratch / "s1", "tiny", tree)
    done = run(scratch / "s2", "import", "tiny", str(tar_of(tree, scratch / "a.tar", "--exclude=./dev/*")))
    check(done.stdout.split()[-2] == want, "the archive gives another image than its directory")
    check("setuid and setgid left out of 1 files" in done.stdout, done.stdout)
    check("FIFO" in run(scratch / "s2", "import", "x", str(tar_of(tree, scratch / "b.tar")), status=1).stderr, "device")
    os.link(tree / "bin/sh", tree / "bin/sh2")
    hard = tar_of(tree, scratch / "c.tar", "--exclude=./dev/*")
    check("tar --hard-dereference" in run(scratch / "s2", "import", "x", str(hard), status=1).stderr, "no advice")
    copies = tar_of(tree, scratch / "d.tar", "--exclude=./dev/*", "--hard-dereference")
    check(imported(scratch / "s2", "tiny", copies) == imported(scratch / "s1", "tiny", tree), "copies of hard links")


def archive_of_closed_directories(scratch: Path) -> None:
    """Directories that their owner may not write or enter, inside each other."""
    tree = make_tree(scratch / "a")
    (tree / "usr/one/two").mkdir(parents=True)
    (tree / "usr/one/two/file").write_text("in")
    for path, mode in (("usr/one/two/file", 0), ("usr/one/two", 0), ("usr/one", 0o455)):
        (tree / path).chmod(mode)
    archive = tar_of(tree, scratch / "a.tar", "--exclude=./dev/*")
    check(imported(scratch / "s1", "t", archive) == imported(scratch / "s2", "t", tree), "another image")


def entry(name: str, kind: bytes = tarfile.DIRTYPE, content: bytes = b"", **fields: object) -> bytes:
    """One entry of an archive as it stands there, whatever it says."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, len(content), 0o755
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> bytes:
    return entry(name, kind, linkname=target)


def hostile_archives(scratch: Path) -> None:
    """Refused with a sentence; nothing outside is touched, nothing stays, the name is not taken."""
    victim = scratch / "victim"
    victim.mkdir(mode=0o777)
    victim.chmod(0o777)
    (victim / "own").write_text("mine")
    (victim / "own").chmod(0o666)
    out, end = str(victim), bytes(1024)
    gnu = tarfile.TarInfo("x" * 200).tobuf(tarfile.GNU_FORMAT)
    pax = tarfile.TarInfo("x" * 300).tobuf(tarfile.PAX_FORMAT)
    deep = b"".join(entry("/".join("d" * n)) for n in range(1, 65))
    link_file = entry("own", tarfile.REGTYPE, b"theirs")
    cases: list[tuple[str, bytes, str]] = [
        ("absolute", entry(out + "/a", tarfile.REGTYPE, b"x") + end, "absolute"),
        ("dot dot", entry("../../victim/a", tarfile.REGTYPE, b"x") + end, "absolute"),
        ("dot dot inside", entry("a") + entry("a/../../victim/b") + end, "absolute"),
        ("through a link", link("l", out) + entry("l/own", tarfile.REGTYPE, b"theirs") + end, "below a link"),
        ("directory below a link", link("l", out) + entry("l/new") + end, "below a link"),
        ("link below a link", link("l", out) + link("l/new", "x") + end, "below a link"),
        ("through two links", entry("d") + link("d/l", "m") + link("m", out) + entry("d/l/x") + end, "below a link"),
        ("link over a link", link("l", out) + link("l", "/tmp") + end, "stands twice"),
        ("file over a link", link("own", out + "/own") + link_file + end, "stands twice"),
        ("directory over a link", link("l", out) + entry("l") + entry("l/a") + end, "stands twice"),
        ("link over a directory", entry("l") + link("l", out) + entry("l/a") + end, "stands twice"),
        ("file below a file", link_file + entry("own/a") + end, "below a link or file"),
        ("hard link out", link("h", out + "/own", tarfile.LNKTYPE) + end, "hard link"),
        ("device", entry("n", tarfile.CHRTYPE, devmajor=1, devminor=3) + end, "device"),
        ("block device", entry("n", tarfile.BLKTYPE, devmajor=8) + end, "device"),
        ("fifo", entry("n", tarfile.FIFOTYPE) + end, "FIFO"),
        ("twice", link_file + link_file + end, "stands twice"),
        ("directory twice", entry("a") + entry("a") + end, "stands twice"),
        ("child first", entry("a/b") + entry("a") + end, "in front of it"),
        ("too deep", deep + end, "inside each other"),
        ("truncated file", entry("f", tarfile.REGTYPE, b"x" * 5000)[:2000], "too early"),
        ("truncated header", entry("f")[:300], "too early"),
        ("no end", entry("f"), "too early"),
        ("empty", b"", "too early"),
        ("garbage", os.urandom(4096), "--format=ustar"),
        ("compressed", b"\x1f\x8b" + bytes(1022), "--format=ustar"),
        ("gnu", gnu + end, "--format=ustar"),
        ("pax", pax + end, "--format=ustar"),
        ("bytes", link_file + entry("big", tarfile.REGTYPE, size=0o77777777777), "8589934592 bytes"),
        ("entries", entry("d") * 500_001, "500000 entries"),
        ("after the end", entry("a") + end + entry("b"), "zero"),
        ("escape codes", link("\x1b[2Jevil", out) + entry("\x1b[2Jevil/x") + end, "?[2Jevil"),
    ]
    state = scratch / "s"
    archive = scratch / "a.tar"
    for what, content, sentence in cases:
        archive.write_bytes(content)
        done = run(state, "import", "x", str(archive), status=1)
        check(sentence in done.stderr and done.stderr.count("\n") == 1, f"{what}: {done.stderr!r}")
        check(not any((state / "tmp/template").iterdir()), f"{what}: something half-made stayed")
        check(not any((state / "templates/index").iterdir()), f"{what}: it stands in the index")
        check([p.name for p in victim.iterdir()] == ["own"], f"{what}: something was written outside")
        check((victim / "own").read_text() == "mine", f"{what}: a file outside was written")
    archive.write_bytes(entry("./") + link("l", out) + link("m", "../../../..") + end)
    imported(state, "x", archive)


def unpackers() -> list[Path]:
    """The running demilune-unpack of this build."""
    own = os.path.dirname(PROGRAM).encode() + b"/demilune-unpack\0"
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes() == own:
                found.append(path)
        except OSError:
            continue
    return found


def archive_reader_is_confined(scratch: Path) -> None:
    """While it reads: its own uid, no capability, a filter, no network; five descriptors."""
    archive = scratch / "a.tar"
    with archive.open("wb") as f:
        f.write(entry("big", tarfile.REGTYPE, size=8_000_000_000))
        f.truncate(7_000_000_000)  # refused in the end, nothing is written
    want = {"NoNewPrivs": "1", "Seccomp": "2", "Groups": ""}
    want |= {key: "\t".join(["64105"] * 4) for key in ("Uid", "Gid")}
    want |= {f"Cap{key}": "0" * 16 for key in ("Inh", "Prm", "Eff", "Bnd", "Amb")}
    seen: dict[str, str] = {}
    argv = [PROGRAM, "--state", str(scratch / "s"), "import", "x", str(archive)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        while program.poll() is None and seen != want:
            for path in unpackers():
                try:
                    lines = (line.split(":", 1) for line in (path / "status").read_text().splitlines())
                    status = {key: value.strip() for key, value in lines}
                    seen = {key: status[key] for key in want}
                    if seen == want:
                        fds = {int(fd.name): os.readlink(fd) for fd in (path / "fd").iterdir()}
                        check(sorted(fds) == [0, 1, 2, 3, 4], f"descriptors {fds}")
                        check(fds[3] == str(archive), f"descriptors {fds}")
                        net = os.readlink(path / "ns/net")
                        check(net != os.readlink("/proc/self/ns/net"), "it sees the network")
                        program.kill()
                except OSError:
                    continue
    check(seen == want, f"it runs as {seen}")


def half_unpacked_goes(scratch: Path) -> None:
    """kill -9 while the archive is unpacked: nobody goes on, the next run cleans up and succeeds."""
    state = scratch / "s"
    tree = make_tree(scratch / "a")
    want = imported(state, "tiny", tree)
    (tree / "big").write_bytes(os.urandom(60_000_000))
    archive = tar_of(tree, scratch / "a.tar", "--exclude=./dev/*")
    middle = 0
    for moment in range(8):
        argv = [PROGRAM, "--state", str(state), "import", "tiny", str(archive)]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as victim:
            deadline = time.monotonic() + 5
            while not any((state / "tmp/template").glob("tree/*")) and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(0.01 * moment)
            for path in unpackers():
                with suppress(ProcessLookupError):
                    os.kill(int(path.name), signal.SIGSTOP)  # only a kill ends it now
                    middle += 1
            victim.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 5
        while unpackers() and time.monotonic() < deadline:
            time.sleep(0.02)
        left = unpackers()
        for path in left:
            os.kill(int(path.name), signal.SIGKILL)
        check(not left, "the reader lives on")
        check((state / "templates/index/tiny").read_text() == want + "\n", "the index changed")
    check(middle > 0, "no kill hit the unpacking")
    (tree / "big").unlink()
    check(imported(state, "tiny", tar_of(tree, archive, "--exclude=./dev/*")) == want, "another image after the kills")
    check(not any((state / "tmp/template").iterdir()), "something half-made stayed")


def manifest_refused_by_place(scratch: Path) -> None:
    (scratch / "template.yaml").write_text("name: tiny\ncolour: red\n")
    done = run(scratch / "s", "build", str(scratch), status=3)
    check(f'{scratch}/template.yaml:2:1: unknown key "colour"' in done.stderr, done.stderr)
    check("the key packages is missing" in done.stderr, "not all problems at once")
    check(not (scratch / "s").exists(), "the store was touched")


def index_is_atomic(scratch: Path) -> None:
    """While two contents take turns, a reader sees one of the two whole, always."""
    state = scratch / "s"
    one, two = make_tree(scratch / "a"), make_tree(scratch / "b")
    (two / "more").write_text("more")
    digests = {imported(state, "tiny", one), imported(state, "tiny", two)}
    check(len(digests) == 2, "the two do not differ")
    seen: set[str] = set()
    for tree in (one, two, one):
        with subprocess.Popen([PROGRAM, "--state", state, "import", "tiny", tree], stdout=subprocess.DEVNULL) as writer:
            while writer.poll() is None:
                text = (state / "templates/index/tiny").read_text()
                check(text.endswith("\n") and text[:-1] in digests, f"index holds {text!r}")
                check((state / f"templates/{text[:-1]}.erofs").exists(), "image missing")
                check((state / f"templates/{text[:-1]}.json").exists(), "record missing")
                seen.add(text[:-1])
    check(seen == digests, "the index never changed")


def half_made_goes(scratch: Path) -> None:
    """kill -9 at many moments: no child lives on, the index is whole, the next run cleans up and succeeds."""
    state = scratch / "s"
    tree = make_tree(scratch / "a")
    (tree / "big").write_bytes(os.urandom(30_000_000))
    want = imported(state, "tiny", tree)
    middle = 0
    for moment in range(12):
        with subprocess.Popen([PROGRAM, "--state", state, "import", "tiny", tree], stdout=subprocess.DEVNULL) as victim:
            time.sleep(0.02 + 0.06 * moment)
            victim.send_signal(signal.SIGKILL)
        middle += any((state / "tmp/template").iterdir())
        deadline = time.monotonic() + 5
        while str(state) in processes() and time.monotonic() < deadline:
            time.sleep(0.02)
        check(str(state) not in processes(), "a child lives on")
        check((state / "templates/index/tiny").read_text() == want + "\n", "the index changed")
        names = {p.name for p in (state / "templates").iterdir()}
        check(names == {"index", "built", f"{want}.erofs", f"{want}.json"}, f"half-made: {names}")
    check(middle > 0, "no kill hit the middle of the work")
    check(imported(state, "tiny", tree) == want, "another image after the kills")
    check(not any((state / "tmp/template").iterdir()), "something half-made stayed")


def processes() -> str:
    """Command lines of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def cached_build(scratch: Path) -> None:
    """What was built is found by its manifest; comments do not count, anything else does. No archive is asked."""
    state = scratch / "s"
    digest = imported(state, "tiny", make_tree(scratch / "a"))
    manifest = (
        "name: cached\ndescription: d\nbase: {suite: nosuchsuite}\npackages: [bash]\nplaces: [/home]\nenv: {A: b}\n"
        "user: {name: agent, uid: 10001, gid: 10001, home: /home/agent}\nhostname: h\naliases: [also]\n"
    )
    (scratch / "template.yaml").write_text(manifest)
    done = run(state, "build", str(scratch), status=1)
    check("knows no archive of Debian nosuchsuite" in done.stderr, done.stderr)
    check(not (state / "templates/index/cached").exists(), "a failed build stands in the index")
    (state / "templates/built" / manifest_digest(manifest)).write_text(digest + "\n")
    (scratch / "template.yaml").write_text("# a comment\n" + manifest)
    check(run(state, "build", str(scratch)).stdout.split() == ["cached", "cached", digest], "not found")
    check((state / "templates/index/also").readlink() == Path("cached"), "no alias")
    (scratch / "template.yaml").write_text(manifest.replace("[also]", "[other]"))
    run(state, "build", str(scratch), status=1)
    (state / "templates/built" / manifest_digest(manifest.replace("[also]", "[other]"))).write_text(digest + "\n")
    run(state, "build", str(scratch))
    check(not (state / "templates/index/also").is_symlink(), "the old alias stayed")
    check("an alias of" in run(state, "import", "other", str(scratch / "a"), status=1).stderr, "alias taken over")
    (scratch / "template.yaml").write_text(manifest.replace("name: cached", "name: third").replace("[also]", "[tiny]"))
    check("of its own" in run(state, "build", str(scratch), status=1).stderr, "a name was made an alias")
    check("cached\t" + digest in run(state, "list").stdout, "list")


def manifest_digest(text: str) -> str:
    """The digest that the program gives this small manifest, computed independently."""
    import hashlib

    value = {
        "aliases": [text.rsplit("[", 1)[1].split("]")[0]],
        "description": "d",
        "env": {"A": "b"},
        "exclude": [],
        "finish": [],
        "hostname": "h",
        "name": "cached",
        "packages": ["bash"],
        "places": ["/home"],
        "suite": "nosuchsuite",
        "user": {"gid": 10001, "home": "/home/agent", "name": "agent", "uid": 10001},
    }
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    propose = Path(PROGRAM).resolve().parents[2] / "guest/propose/demilune-propose"  # part of every image
    return hashlib.sha256(b"demilune-template 2\n" + canonical.encode() + propose.read_bytes()).hexdigest()


def one_at_a_time(scratch: Path) -> None:
    state = scratch / "s"
    tree = make_tree(scratch / "a")
    with subprocess.Popen([PROGRAM, "--state", state, "import", "a", tree], stdout=subprocess.PIPE, text=True) as one:
        imported(state, "b", tree)
        check(one.wait(60) == 0, "the other one failed")
    check({p.name for p in (state / "templates/index").iterdir()} == {"a", "b"}, "one got lost")


def python_template(scratch: Path) -> None:
    """The real one: nothing of the host in it, nothing set-uid, byte code that is used, all programs there."""
    state = Path(sys.argv[2]).resolve()
    digests = {(state / "templates/index" / n).read_text() for n in ("python", "code-interpreter", "ubuntu-24.04")}
    check(len(digests) == 1, "an alias stands for another template")
    imports = "import openpyxl, psycopg, pypdf, requests, sqlite3, ssl, ctypes, lzma, bz2"
    tools = "awk bash bzip2 curl file find git grep gzip jq killall less nc pdftotext pdfinfo pkill ps python3 sed tar"
    program = (
        "import sys; sys.dont_write_bytecode = True\n" + imports + "\nimport shutil, json, json.decoder as d\n"
        f"print([t for t in '{tools} top unzip xz zip'.split() if not shutil.which(t)], psycopg.pq.version() > 0)\n"
        "print(open(d.__cached__, 'rb').read(8)[4:] == b'\\1\\0\\0\\0')"  # PEP 552: hash based, not checked
    )
    with mounted(state, digests.pop().strip(), scratch) as root:
        for path in root.rglob("*"):
            st = path.lstat()
            check(st.st_uid == st.st_gid == (10001 if path == root / "home/agent" else 0), f"owner of {path}")
            check(not st.st_mode & 0o6000, f"setuid or setgid on {path}")
            check(path.is_symlink() or not st.st_mode & 0o002 or st.st_mode & 0o1000 != 0, f"open to all: {path}")
            check(path.is_symlink() or path.is_dir() or path.is_file(), f"special file {path}")
        check(not any((root / "etc/apt").iterdir()), "the mirror is in the image")
        names = (root / "etc/hostname").read_text() + (root / "etc/hosts").read_text()
        check(socket.gethostname() not in names.split(), "the host's name is in the image")
        inside = f'mount --bind /dev {root}/dev && exec chroot --userspec=10001:10001 {root} /usr/bin/python3 -c "$1"'
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", inside, "sh", program], capture_output=True, text=True, check=False
        )
        check(done.stdout == "[] True\nTrue\n", done.stdout + done.stderr)


CASES: list[Callable[[Path], None]] = [
    same_input_same_image,
    image_content,
    hostile_links,
    trust_is_the_sandbox_s,
    hostile_trust,
    refuses_special_files,
    refuses_pipes_and_names,
    archive_is_like_its_tree,
    archive_of_closed_directories,
    hostile_archives,
    archive_reader_is_confined,
    half_unpacked_goes,
    manifest_refused_by_place,
    index_is_atomic,
    half_made_goes,
    cached_build,
    one_at_a_time,
]


def main() -> int:
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        print("not ok template: needs root")
        return 1
    failed = 0
    cases = CASES + ([python_template] if len(sys.argv) > 2 else [])
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="demilune-template-") as scratch:
            try:
                case(Path(scratch))
                print(f"ok {case.__name__}", flush=True)
            except (Failure, OSError, subprocess.SubprocessError, ValueError) as e:
                failed += 1
                print(f"not ok {case.__name__}: {e}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
