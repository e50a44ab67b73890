# SPDX-License-Identifier: Apache-2.0
"""The gateway beside haproxy, squid, tinyproxy and mitmdump, against one nginx, with one client, in one run; bench.py prints the rows.

All stand on loopback addresses of this machine. Load: wrk for kept connections, handshakes.c for new ones. Against the gateway the same
programs run in the network namespace of a sandbox, outside of its control groups, as a program of the sandbox would connect: to the
fake address. Peers get what their manuals say a plain forward (haproxy: reverse) proxy needs, no access log, no cache.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/egress")]
from daemon import Daemon, wait_until  # noqa: E402
from outside import Authority  # noqa: E402

KIB = "x" * 1023 + "\n"
MIB_1024 = 1 << 30


@dataclass
class Load:
    rate: float
    p50_ms: float
    p99_ms: float


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Programs:
    """Started here, ended here."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, words: Sequence[str], port: int, **more: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, **more)
        self.running.append(process)

        def heard() -> bool:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True
            assert process.poll() is None, f"{words[0]} ended with {process.returncode}"
            return False

        wait_until(f"{words[0]} listens", heard, 30)
        return process

    def stop(self) -> None:
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a session of its own: the process and its workers
            process.wait(10)
        self.running = []


class Place:
    """An origin and the certificates of the run."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="demilune-bench-"))
        self.folder.chmod(0o755)
        self.authority = Authority(self.folder / "ca")
        self.programs = Programs()
        self.http, self.https = free_port(), free_port()
        self.nginx()

    def nginx(self) -> None:
        site = self.folder / "site"
        site.mkdir()
        (site / "1k").write_text(KIB)
        with (site / "1g").open("wb") as file:
            file.truncate(MIB_1024)
        pem, key = self.authority.leaf(["origin.test", "opaque.test"])
        config = self.folder / "nginx.conf"
        config.write_text(f"""daemon off; master_process off; pid {self.folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on;
  client_body_temp_path {self.folder}/t1; proxy_temp_path {self.folder}/t2; fastcgi_temp_path {self.folder}/t3;
  uwsgi_temp_path {self.folder}/t4; scgi_temp_path {self.folder}/t5;
  server {{ listen 127.0.0.1:{self.http}; root {site}; }}
  server {{ listen 127.0.0.1:{self.https} ssl; ssl_certificate {pem}; ssl_certificate_key {key};
    ssl_protocols TLSv1.3; ssl_session_tickets off; root {site}; }} }}
""")
        self.programs.start(["nginx", "-c", str(config), "-e", "stderr"], self.http)

    def close(self) -> None:
        self.programs.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def peers(place: Place, names: Sequence[str], build: Path) -> Iterator[dict[str, int | str]]:
    """Ports of proxies that run as long as the block; of one that does not, why."""
    own, ports = Programs(), dict[str, int | str]()
    try:
        for name in names:
            port, home = free_port(), place.folder / name
            home.mkdir(exist_ok=True)
            home.chmod(0o777)
            try:
                own.start(command(place, name, port, home, build), port)
                ports[name] = port
            except FileNotFoundError as missing:
                ports[name] = f"{Path(str(missing.filename)).name} is not installed"
            except (AssertionError, OSError, subprocess.SubprocessError) as fault:
                ports[name] = f"does not start: {str(fault).splitlines()[0][:60]}"
        yield ports
    finally:
        own.stop()


def command(place: Place, name: str, port: int, home: Path, build: Path) -> list[str]:
    config = home / "config"
    ca = place.authority
    if name == "haproxy":
        config.write_text(f"global\n  maxconn 4096\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n"
                          f"  timeout server 60s\n  http-reuse always\n"
                          f"frontend f\n  bind 127.0.0.1:{port}\n  default_backend b\nbackend b\n  server s 127.0.0.1:{place.http}\n")
        return ["haproxy", "-db", "-f", str(config)]
    if name == "tinyproxy":
        config.write_text(f"Port {port}\nListen 127.0.0.1\nTimeout 60\nLogLevel Critical\nLogFile \"/dev/null\"\nMaxClients 200\n"
                          f"ConnectPort {place.https}\n")
        return ["tinyproxy", "-d", "-c", str(config)]
    if name.startswith("squid"):
        listen = f"http_port 127.0.0.1:{port}"
        more = ""
        if name == "squid-bump":
            pem = home / "ca.pem"
            pem.write_bytes(ca.pem.read_bytes() + ca.key.read_bytes())
            listen += f" ssl-bump cert={pem} generate-host-certificates=on dynamic_cert_mem_cache_size=4MB"
            shutil.rmtree(home / "db", ignore_errors=True)
            subprocess.run(["/usr/lib/squid/security_file_certgen", "-c", "-s", str(home / "db"), "-M", "4MB"], check=True,
                           capture_output=True)
            subprocess.run(["chown", "-R", "proxy:proxy", str(home / "db")], check=True)
            more = (f"sslcrtd_program /usr/lib/squid/security_file_certgen -s {home}/db -M 4MB\nsslcrtd_children 5\nssl_bump bump all\n"
                    f"tls_outgoing_options cafile={ca.pem}\n")
        config.write_text(f"{listen}\nhttp_access allow all\ncache deny all\ncache_mem 8 MB\naccess_log none\ncache_log /dev/null\n"
                          f"pid_filename {home}/pid\n"
                          f"coredump_dir {home}\nshutdown_lifetime 0 seconds\nhosts_file {home}/hosts\n{more}")
        (home / "hosts").write_text("127.0.0.1 origin.test\n")
        return ["squid", "-N", "-f", str(config)]
    venv = build / "bench-mitmproxy"
    if not (venv / "bin/mitmdump").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin/pip"), "install", "-q", "mitmproxy==11.0.2"], check=True)
    (home / "mitmproxy-ca.pem").write_bytes(ca.key.read_bytes() + ca.pem.read_bytes())
    return [str(venv / "bin/mitmdump"), "-q", "--set", f"confdir={home}", "--set", "flow_detail=0",
            "--set", f"ssl_verify_upstream_trusted_ca={ca.pem}", "--listen-host", "127.0.0.1", "--listen-port", str(port), "--anticache"]


# ---- load ----


def wrk(at: str, target: str, host: str, clients: int, seconds: int, inside: Sequence[str] = (), tls: bool = False) -> Load:
    """Kept connections. `target`: a path, or a whole URL for a forward proxy. wrk tells the server the name of its URL, so that is
    `host`, and looked up is `at`; it verifies nothing."""
    address, port = at.split(":")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f'wrk.path = "{target}"\nwrk.headers["Host"] = "{host}"\n'
                     f'local resolve = wrk.resolve\nfunction wrk.resolve(_, _) resolve("{address}", "{port}") end\n'
                     'function done(s, l, r) io.write(string.format("RESULT %f %f %f %d\\n", s.requests / s.duration * 1e6, '
                     'l:percentile(50) / 1e3, l:percentile(99) / 1e3, s.errors.status + s.errors.connect + s.errors.timeout)) end\n')
        script.flush()
        done = subprocess.run([*inside, "wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "-s", script.name,
                               f"{'https' if tls else 'http'}://{host}/"],
                              capture_output=True, check=True)
    found = re.search(r"RESULT (\S+) (\S+) (\S+) (\d+)", done.stdout.decode())
    assert found and found[4] == "0", done.stdout.decode() + done.stderr.decode()
    return Load(float(found[1]), float(found[2]), float(found[3]))


def handshakes(build: Path, at: str, pem: Path, clients: int, seconds: float, proxied: str = "", inside: Sequence[str] = (),
               name: str = "origin.test") -> Load:
    words = [*inside, str(build / "bench/handshakes"), at, name, str(pem), "/1k", str(clients), f"{seconds:g}"]
    words += [proxied] if proxied else []
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    rate, p50, p99 = map(float, done.stdout.split())
    return Load(rate, p50 / 1000, p99 / 1000)


def rss_mib(pid: int) -> float:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


# ---- ours ----


class Ours:
    """A daemon, a sandbox with a policy that leads to the origin, and the way into its network namespace."""

    def __init__(self, place: Place, build: Path) -> None:
        self.stack = contextlib.ExitStack()
        folder = place.folder / "policy.d"
        folder.mkdir(exist_ok=True)
        big = ("budgets: {names: 10000, connections: 100000000, handshakes: 100000000, requests: 1000000000, bytes_out: 1000GiB, "
               "bytes_in: 1000GiB}\n")
        (folder / "bench.yaml").write_text(f"""egress:
  - fetch: {{url: "http://origin.test:{place.http}/**", address: 127.0.0.1, response_max: 4GiB}}
  - fetch: {{url: "https://origin.test:{place.https}/**", address: 127.0.0.1, response_max: 4GiB}}
  - passthrough: {{name: opaque.test, port: {place.https}, address: 127.0.0.1}}
{big}""")
        (folder / "spent.yaml").write_text(f"""egress:
  - fetch: {{url: "http://origin.test:{place.http}/**", address: 127.0.0.1}}
budgets: {{requests: 8}}
""")
        self.daemon = self.stack.enter_context(Daemon({"egress.policies": str(folder), "egress.roots": str(place.authority.pem),
                                                       "defaults.ttl": "1h", "defaults.idle": "1h"}, build=build))
        self.client = self.daemon.client
        row = self.client.create(policy="bench")
        self.box = row["id"]
        pid = self.client.get(self.box).json["measured"]["host_pid"]
        self.inside = ["nsenter", f"--net=/proc/{pid}/ns/net"]
        self.gateway = self.daemon.by_role("gateway")
        self.pem = place.folder / "sandbox.pem"
        self.pem.write_bytes(self.client.read(self.box, "/run/demilune/trust/ca.crt").body)

    def address(self, name: str) -> str:
        done = self.client.exec(self.box, ["getent", "ahostsv4", name])
        return str(done["stdout"].split()[0])

    def gateway_pid(self) -> int:
        """The one that serves the sandbox: spares hold no connection and grow by nothing, so it is the largest."""
        return int(max(self.daemon.by_role("gateway"), key=rss_mib))

    def close(self) -> None:
        self.stack.close()


def dns_us(ours: Ours, rounds: int) -> list[float]:
    program = ("import socket,struct,time\nq=struct.pack('>HHHHHH',7,256,1,0,0,0)+b'\\x06origin\\x04test\\0'+struct.pack('>HH',1,1)\n"
               "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('127.0.0.1',53))\n"
               f"for n in range({rounds}+50):\n"
               "    b=time.perf_counter(); s.send(q); s.recv(512)\n"
               "    if n>=50: print((time.perf_counter()-b)*1e6)\n")
    done = ours.client.exec(ours.box, ["python3", "-c", program])
    assert done["exit_code"] == 0, done
    return [float(x) for x in done["stdout"].split()]


def answered_us(inside: Callable[[str], str], at: tuple[str, int], host: str, rounds: int) -> float:
    """From the last byte of a head to the first of its answer, at the median. The program stays awake between its writes: what is asked
    for is not how long a processor takes to wake up."""
    done = inside("import socket,time\n"
                  f"for n in range({rounds}+50):\n"
                  f"    s=socket.create_connection({at!r}); s.setsockopt(6,1,1)\n"
                  f"    s.sendall(b'GET /1k HTTP/1.1\\r\\nHost: {host}\\r\\n\\r'); e=time.perf_counter()+0.0005\n"
                  "    while time.perf_counter()<e: pass\n"
                  "    b=time.perf_counter(); s.sendall(b'\\n'); s.recv(4096)\n"
                  "    if n>=50: print((time.perf_counter()-b)*1e6)\n"
                  "    s.close()\n")
    return statistics.median(float(x) for x in done.split())


def idle_kib(ours: Ours, place: Place, count: int) -> float:
    """What an idle intercepted connection weighs in the gateway."""
    pid = ours.gateway_pid()
    program = ("import socket,ssl,sys,time\nc=ssl.create_default_context()\nk=[]\n"
               f"for n in range({count}):\n"
               f"    s=c.wrap_socket(socket.create_connection(('origin.test',{place.https})),server_hostname='origin.test')\n"
               f"    s.sendall(b'GET /1k HTTP/1.1\\r\\nHost: origin.test:{place.https}\\r\\n\\r\\n'); s.recv(4096)\n"
               "    k.append(s)\n"
               "print('ready',flush=True); time.sleep(4)\n")
    before = rss_mib(pid)
    thread = threading.Thread(target=ours.client.exec, args=(ours.box, ["python3", "-c", program]))
    thread.start()
    time.sleep(3)
    after = rss_mib(pid)
    thread.join()
    return (after - before) * 1024 / count


@dataclass
class Measured:
    what: str
    value: float | None  # None: `what` says why there is none
    unit: str = ""
    direct: float | None = None  # the same, straight to the origin
    reach: float | None = None
    more: bool = True  # is better
    p50_ms: float | None = None
    p99_ms: float | None = None


ROUNDS = 3
Way = Callable[[], Load]


def interleaved(ways: dict[str, Way | str]) -> dict[str, Load | str]:
    """The median of rounds, of which each has every way once, so that what else the machine does meets all alike. A way that fails
    says why."""
    had: dict[str, list[Load]] = {name: [] for name in ways}
    out: dict[str, Load | str] = {name: way for name, way in ways.items() if isinstance(way, str)}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            if name in out or isinstance(way, str):
                continue
            try:
                had[name].append(way())
            except (AssertionError, subprocess.SubprocessError) as fault:
                if name in ("direct", "demilune"):
                    raise
                out[name] = f"fails: {str(fault).splitlines()[0][:60] if str(fault) else 'no answer'}"
    return out | {name: sorted(rounds, key=lambda one: one.rate)[len(rounds) // 2] for name, rounds in had.items() if name not in out}


def measured(what: str, load: Load | str, direct: Load | None = None, reach: float | None = None) -> Measured:
    if isinstance(load, str):
        return Measured(f"{what}: {load}", None)
    return Measured(what, load.rate, "/s", None if direct is None else direct.rate, reach, True, load.p50_ms, load.p99_ms)


def loaded(load: Load | str) -> Load:
    assert isinstance(load, Load)
    return load


def kept(place: Place, ours: Ours, build: Path) -> list[Measured]:
    """Kept connections: 32 at once, and one."""
    fake, host = f"{ours.address('origin.test')}:{place.http}", f"origin.test:{place.http}"
    direct, url = f"127.0.0.1:{place.http}", f"http://127.0.0.1:{place.http}/1k"

    def ways(clients: int, seconds: int, ports: dict[str, int | str]) -> dict[str, Way | str]:
        some: dict[str, Way | str] = {"direct": lambda: wrk(direct, "/1k", host, clients, seconds),
                                      "demilune": lambda: wrk(fake, "/1k", host, clients, seconds, ours.inside)}
        for name, port in ports.items():
            target = "/1k" if name == "haproxy" else url
            some[name] = port if isinstance(port, str) else partial(wrk, f"127.0.0.1:{port}", target, direct, clients, seconds)
        return some

    with peers(place, ("haproxy", "squid", "tinyproxy", "mitmdump"), build) as ports:
        many, one = interleaved(ways(32, 2, ports)), interleaved(ways(1, 1, ports))
    base, alone = loaded(many.pop("direct")), loaded(one.pop("direct"))
    # 12 k of 25.7 k: the goal as a ratio, so that it means the same on a slower machine.
    rows = [measured("kept connections, 32 at once: direct (nginx)", base),
            measured("  through the gateway", many.pop("demilune"), base, round(min(12000.0, 0.47 * base.rate)))]
    rows += [measured(f"  through {name}", load, base) for name, load in many.items()]
    added = {name: load.p50_ms - alone.p50_ms for name, load in one.items() if isinstance(load, Load)}
    others = "".join(f"; {name} {ms:.2f}" for name, ms in added.items() if name != "demilune")
    return [*rows, Measured(f"  what it adds, one at once{others}", added["demilune"], "ms", None, 0.15, False)]


def kept_tls(place: Place, ours: Ours) -> list[Measured]:
    """The same with TLS to the gateway and from there."""
    fake, host = f"{ours.address('origin.test')}:{place.https}", f"origin.test:{place.https}"

    def ways(clients: int, seconds: int) -> dict[str, Way | str]:
        return {"direct": lambda: wrk(f"127.0.0.1:{place.https}", "/1k", host, clients, seconds, tls=True),
                "demilune": lambda: wrk(fake, "/1k", host, clients, seconds, ours.inside, tls=True)}

    many, one = ({name: loaded(load) for name, load in interleaved(ways(clients, seconds)).items()}
                 for clients, seconds in ((32, 2), (1, 1)))
    return [measured("kept connections with TLS, 32 at once: direct", many["direct"]),
            measured("  through the gateway, TLS on both sides", many["demilune"], many["direct"]),
            Measured("  what it adds, one at once", one["demilune"].p50_ms - one["direct"].p50_ms, "ms", None, 0.15, False)]


def new(place: Place, ours: Ours, build: Path) -> list[Measured]:
    """New connections with TLS 1.3, eight at once."""
    at, ca = f"127.0.0.1:{place.https}", place.authority.pem
    fake, opaque = (f"{ours.address(name)}:{place.https}" for name in ("origin.test", "opaque.test"))

    def run(to: str, pem: Path, proxied: str = "", inside: Sequence[str] = (), name: str = "origin.test") -> Way:
        return lambda: handshakes(build, to, pem, 8, 1.5, proxied, inside, name)

    ways: dict[str, Way | str] = {"direct": run(at, ca),
                                  "demilune": run(fake, ours.pem, inside=ours.inside),
                                  "passed through by the gateway": run(opaque, ca, inside=ours.inside, name="opaque.test")}
    with peers(place, ("squid-bump", "mitmdump", "tinyproxy", "squid"), build) as ports:
        for name, port in ports.items():
            what = f"{'intercepted' if name in ('squid-bump', 'mitmdump') else 'tunnelled'} by {name}"
            to = f"origin.test:{place.https}" if name == "squid-bump" else at
            ways[what] = port if isinstance(port, str) else run(f"127.0.0.1:{port}", ca, proxied=to)
        had = interleaved(ways)
    base = loaded(had.pop("direct"))
    # 400 of 713: as a ratio too.
    rows = [measured("new connections with TLS, 8 at once: direct", base),
            measured("  intercepted by the gateway", had.pop("demilune"), base, round(min(400.0, 0.56 * base.rate)))]
    return rows + [measured(f"  {what}", load, base, round(0.85 * base.rate) if what.startswith("passed") else None)
                   for what, load in sorted(had.items())]


def downloads(place: Place, ours: Ours, build: Path) -> list[Measured]:
    """1 GiB with one curl, outside of the sandbox's control groups."""

    def mib_s(url: str, inside: Sequence[str] = (), *more: str) -> float:
        began = time.monotonic()
        subprocess.run([*inside, "curl", "-sSf", "-o", "/dev/null", *more, url], check=True, stdin=subprocess.DEVNULL)
        return 1024 / (time.monotonic() - began)

    def through(scheme: str, port: int) -> float:
        return mib_s(f"{scheme}://origin.test:{port}/1g", ours.inside, "--cacert", str(ours.pem),
                     "--resolve", f"origin.test:{port}:{ours.address('origin.test')}")

    before = rss_mib(ours.gateway_pid())
    plain = [(mib_s(f"http://127.0.0.1:{place.http}/1g"), through("http", place.http)) for _ in range(2)]
    direct, our = (max(x) for x in zip(*plain, strict=True))
    rows = [Measured("1 GiB, plain: direct", direct, "MiB/s"), Measured("  through the gateway", our, "MiB/s", direct),
            Measured("  through the gateway, TLS on both sides", through("https", place.https), "MiB/s", direct)]
    grown = rss_mib(ours.gateway_pid()) - before
    with peers(place, ("haproxy",), build) as ports:
        port = ports["haproxy"]
        rows.append(Measured(f"  through haproxy: {port}", None) if isinstance(port, str) else
                    Measured("  through haproxy", mib_s(f"http://127.0.0.1:{port}/1g"), "MiB/s", direct))
    return [*rows, Measured("  what the gateway grew meanwhile", max(grown, 0.0), "MiB", None, 1, False)]


def parts(build: Path) -> list[Measured]:
    """What gateway_measure says of the parts, with OpenSSL or a pump at the other ends."""
    done = subprocess.run([str(build / "tests/unit/gateway/gateway_measure")], capture_output=True, text=True, check=True).stdout
    found = {name.strip(): float(value) for name, value in re.findall(r"^(.{40}) +([\d.]+) ", done, re.M)}
    copied, spliced = found["tunnel, copying"] * 1e9 / 2**20, found["tunnel, in the kernel"] * 1e9 / 2**20
    return [Measured("a leaf, made", found["leaf, made"], "us", None, 300, False),
            Measured("a handshake and an answer, as server, CPU", found["handshake and one answer, as server"], "us"),
            Measured("1 GiB between two plain sockets, copied", copied, "MiB/s"),
            Measured("  in the kernel (tcp, passthrough); the ratio is to copied", spliced, "MiB/s", copied, round(1.2 * copied))]


class Neighbour:
    """A second sandbox whose budget is used up and whose program asks on and on, from inside of its own bounds."""

    def __init__(self, place: Place, ours: Ours) -> None:
        self.ours = ours
        self.box = ours.client.create(policy="spent")["id"]
        self.words = ["python3", "-c", "import socket,sys,threading,time\ne=time.monotonic()+float(sys.argv[1])\n"
                      "def ask():\n"
                      "    while time.monotonic()<e:\n"
                      "        try:\n"
                      f"            s=socket.create_connection(('origin.test',{place.http}),1)\n"
                      f"            s.sendall(b'GET /1k HTTP/1.1\\r\\nHost: origin.test:{place.http}\\r\\n\\r\\n')\n"
                      "            s.recv(4096); s.close()\n"
                      "        except OSError: pass\n"
                      "for _ in range(8): threading.Thread(target=ask).start()\n"]

    @contextlib.contextmanager
    def busy(self, seconds: float) -> Iterator[None]:
        asks = threading.Thread(target=self.ours.client.exec, args=(self.box, [*self.words, str(seconds)]))
        asks.start()
        time.sleep(0.3)
        try:
            yield
        finally:
            asks.join()


def fair(place: Place, ours: Ours) -> Measured:
    fake, host = f"{ours.address('origin.test')}:{place.http}", f"origin.test:{place.http}"
    neighbour = Neighbour(place, ours)
    with neighbour.busy(1):
        pass  # its budget is used up by this
    alone, beside = list[float](), list[float]()
    for _ in range(ROUNDS):
        alone.append(wrk(fake, "/1k", host, 1, 1, ours.inside).p99_ms)
        with neighbour.busy(1.5):
            beside.append(wrk(fake, "/1k", host, 1, 1, ours.inside).p99_ms)
    before, after = min(alone), min(beside)  # of the rounds that the rest of the machine left alone
    return Measured(f"p99 beside a sandbox at its cap, of p99 alone ({after:.2f} of {before:.2f} ms)", after / before, "x", None, 2, False)


def rest(place: Place, ours: Ours) -> list[Measured]:
    asked, pid = dns_us(ours, 1000), ours.gateway_pid()

    def here(program: str) -> str:
        return subprocess.run(["python3", "-c", program], capture_output=True, text=True, check=True).stdout

    def inside(program: str) -> str:
        return str(ours.client.exec(ours.box, ["python3", "-c", program])["stdout"])

    direct = answered_us(here, ("127.0.0.1", place.http), "origin.test", 300)
    denied = answered_us(inside, ("origin.test", place.http), f"origin.test:{place.http + 1}", 300)
    return [Measured("a name answered, p50", statistics.median(asked), "us", None, 100, False),
            Measured("a request refused after its head, p50, the program's side included", denied, "us", direct, 50, False),
            Measured("memory of a gateway", rss_mib(pid), "MiB", None, 10, False),
            Measured("  of an idle intercepted connection", idle_kib(ours, place, 100), "KiB", None, 64, False),
            fair(place, ours)]


def measure(build: Path) -> list[Measured]:
    place = Place()
    try:
        ours = Ours(place, build)
        try:
            return (kept(place, ours, build) + kept_tls(place, ours) + new(place, ours, build) + downloads(place, ours, build)
                    + rest(place, ours) + parts(build))
        finally:
            ours.close()
    finally:
        place.close()


def table(rows: list[Measured]) -> None:
    print(f"{'egress':78} {'value':>9}      {'p50':>8} {'p99':>8}  {'of direct':>9} {'reach':>7}")
    for r in rows:
        if r.value is None:
            print(r.what)
            continue
        met = " " if r.reach is None else "+" if (r.value >= r.reach if r.more else r.value <= r.reach) else "-"
        ratio = f"{r.value / r.direct:8.2f}x" if r.direct else ""
        lat = f"{r.p50_ms:8.2f} {r.p99_ms:8.2f}" if r.p50_ms is not None and r.p99_ms is not None else f"{'':17}"
        print(f"{r.what:78} {r.value:9.2f} {r.unit:5} {lat}  {ratio:>9} {'' if r.reach is None else f'{r.reach:g}':>7}{met}")
