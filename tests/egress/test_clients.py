# SPDX-License-Identifier: Apache-2.0
"""Programs as they are (research: egress, 4.2, client behaviour): by name, over TLS, without any setting; and what they say when it is refused."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import daemon
import pytest
from world import World

HERE = Path(__file__).resolve().parent / "clients"
POLICY = """egress:
  - fetch: {url: "https://allowed.test/**", methods: [GET, POST], query: [service, q], request_max: 1MiB}
  - fetch: {url: "http://plain.test/**"}
"""
NODE = "fetch(process.argv[1]).then(async a => process.stdout.write(a.status + ' ' + await a.text())).catch(e => { console.error(String(e.cause ?? e)); process.exit(1) })"
URLLIB = "import sys,urllib.request as u; a=u.urlopen(sys.argv[1]); print(a.status, a.read().decode(), end='')"
REQUESTS = "import sys,requests; a=requests.get(sys.argv[1]); print(a.status_code, a.text, end='')"
CLIENTS: dict[str, list[str]] = {
    "curl": ["curl", "-sS", "-w", "%{stderr}%{http_code}", "URL"],
    "wget": ["wget", "-qO-", "URL"],
    "python_urllib": ["python3", "-c", URLLIB, "URL"],
    "python_requests": ["python3", "-c", REQUESTS, "URL"],
    "node_fetch": ["node", "-e", NODE, "URL"],
    "java_http_client": ["java", "/workspace/Fetch.java", "URL"],
    "go_net_http": ["/workspace/fetch-go", "URL"],
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The template with all the clients is baked once and stays with the others."""
    folder = tmp_path_factory.mktemp("clients")
    go = subprocess.run(["go", "build", "-o", str(folder / "fetch-go"), str(HERE / "fetch.go")], capture_output=True, check=False,
                        env={**os.environ, "CGO_ENABLED": "0", "GOCACHE": str(daemon.BUILD.resolve() / "tests/egress/go"), "HOME": str(folder), "GO111MODULE": "off"})
    assert go.returncode == 0, go.stderr.decode()
    musl = subprocess.run(["musl-gcc", "-static", "-O", "-o", str(folder / "fetch-musl"), str(HERE / "fetch.c")], capture_output=True, check=False)
    assert musl.returncode == 0, musl.stderr.decode()
    baked = subprocess.run([str(daemon.BUILD / "src/template/demilune-template"), "--state", str(daemon.STATE), "build", str(HERE)],
                           capture_output=True, check=False)
    assert baked.returncode == 0, baked.stderr.decode()
    with World({"test": POLICY}, template="clients") as made:
        for name in ("fetch-go", "fetch-musl"):
            made.client.write(made.box, f"/workspace/{name}", (folder / name).read_bytes(), mode="755").expect(200, 201, 204)
        made.client.write(made.box, "/workspace/Fetch.java", (HERE / "Fetch.java").read_bytes()).expect(200, 201, 204)
        yield made


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("url", ["https://allowed.test/v1/x", "http://plain.test/v1/x"])
def test_allowed_without_a_setting(world: World, name: str, url: str) -> None:
    done = world.client.exec(world.box, [url if word == "URL" else word for word in CLIENTS[name]], timeout_s=90)
    assert done["exit_code"] == 0, done
    assert done["stdout"].endswith("fine.\n"), done


@pytest.mark.parametrize("name", CLIENTS)
def test_a_name_without_a_rule_is_not_known(world: World, name: str) -> None:
    with world.refused("no-rule", name="evil.test"):
        done = world.client.exec(world.box, ["https://evil.test/" if word == "URL" else word for word in CLIENTS[name]], timeout_s=90)
    assert done["exit_code"] != 0


@pytest.mark.parametrize("name", ["curl", "wget", "python_urllib", "python_requests", "go_net_http"])
@pytest.mark.parametrize("url", ["https://allowed.test/v1/x", "http://plain.test/v1/x"])
def test_through_the_proxy_too(world: World, name: str, url: str) -> None:
    proxy = {"http_proxy": "http://127.0.0.1:3128", "https_proxy": "http://127.0.0.1:3128", "HTTP_PROXY": "http://127.0.0.1:3128", "HTTPS_PROXY": "http://127.0.0.1:3128"}
    done = world.client.exec(world.box, [url if word == "URL" else word for word in CLIENTS[name]], env=proxy)
    assert done["exit_code"] == 0 and done["stdout"].endswith("fine.\n"), done


def test_a_static_musl_program(world: World) -> None:
    done = world.client.exec(world.box, ["/workspace/fetch-musl", "plain.test", "/v1/x"])
    assert done["stdout"].endswith("fine.\n"), done
    with world.refused("no-rule", name="evil.test"):
        done = world.client.exec(world.box, ["/workspace/fetch-musl", "evil.test", "/"])
    assert done["exit_code"] == 1


def test_git_over_https(world: World, tmp_path: Path) -> None:
    """A repository served as files: what any web server can do."""
    source = tmp_path / "source"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(source)]
    source.mkdir()
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "one"], ["update-server-info"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    for path in (source / ".git").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            world.allowed.answers[f"/repo.git/{path.relative_to(source / '.git')}"] = (
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    gone = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    world.allowed.answers["*"] = gone
    try:
        done = world.client.exec(world.box, "git clone -q https://allowed.test/repo.git /workspace/repo && git -C /workspace/repo log --format=%s")
        assert done["stdout"] == "one\n", done
    finally:
        world.allowed.answers.clear()


def test_a_refusal_is_read_by_the_program(world: World) -> None:
    done = world.client.exec(world.box, ["curl", "-sS", "-X", "DELETE", "https://allowed.test/v1/x"])
    assert "method" in done["stdout"] and "another way" in done["stdout"]


def test_no_variable_is_needed_where_libraries_look_by_themselves(world: World) -> None:
    """Debian's bundle, OpenSSL's file and Java's store lead to the sandbox's own authority."""
    for command in (["env", "-i", "/usr/bin/curl", "-sS", "https://allowed.test/v1/x"], ["env", "-i", "/usr/bin/python3", "-c", URLLIB, "https://allowed.test/v1/x"],
                    ["env", "-i", "/usr/bin/wget", "-qO-", "https://allowed.test/v1/x"], ["env", "-i", "PATH=/usr/bin", "java", "/workspace/Fetch.java", "https://allowed.test/v1/x"]):
        done = world.client.exec(world.box, command)
        assert done["stdout"].endswith("fine.\n"), (command, done)


def test_a_callers_own_variable_wins(world: World) -> None:
    done = world.client.exec(world.box, ["sh", "-c", "echo $SSL_CERT_FILE"], env={"SSL_CERT_FILE": "/mine"})
    assert done["stdout"] == "/mine\n"
