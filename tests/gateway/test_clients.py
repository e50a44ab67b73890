# SPDX-License-Identifier: Apache-2.0
"""What real clients take of a sandbox's authority: servers with its leaves, one with a name of the policy and one that is not, asked with
the certificate (or the Java key store) alone. A leaked key is worth nothing for other names; but Java does not look at the constraints of
a certificate that it was told to trust."""

import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import rig

GOOD, BAD = "allowed.test", "evil.test"
CLIENTS = Path(__file__).parent / "clients"


class Server:
    """Answers one request per connection; notes whether any came."""

    def __init__(self, pem: Path) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pem)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            s, _ = self.listener.accept()
            try:
                with self.context.wrap_socket(s, server_side=True) as t:
                    t.settimeout(10)
                    self.heard += t.recv(65536)
                    t.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes")
                    t.unwrap()
            except OSError:
                pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("authority")
    subprocess.run([rig.BUILD / "tests/gateway/gateway_issue", path, GOOD, GOOD, BAD], check=True)
    return path


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[dict[str, Server]]:
    made = {name: Server(folder / f"{name}.pem") for name in (GOOD, BAD)}
    yield made
    for server in made.values():
        server.listener.close()


def command(client: str, name: str, port: int, folder: Path) -> list[str]:
    ca, jks = str(folder / "ca.crt"), str(folder / "java.jks")
    url = f"https://{name}:{port}/"
    return {
        "curl": ["curl", "-sS", "--noproxy", "*", "--cacert", ca, "--resolve", f"{name}:{port}:127.0.0.1", url],
        "openssl": ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", name, "-CAfile", ca, "-no-CApath", "-no-CAstore",
            "-x509_strict", "-verify_return_error", "-verify_hostname", name],
        "python": ["python3", str(CLIENTS / "get.py"), name, str(port), ca],
        "node": ["node", str(CLIENTS / "get.js"), name, str(port), ca],
        "go": [str(folder / "get-go"), name, str(port), ca],
        "java": ["java", f"-Djavax.net.ssl.trustStore={jks}", str(CLIENTS / "Get.java"), name, str(port)],
        "gnutls": ["gnutls-cli", f"--x509cafile={ca}", f"--sni-hostname={name}", f"--verify-hostname={name}", "-p", str(port), "127.0.0.1"],
        "git": ["git", "-c", f"http.curloptResolve={name}:{port}:127.0.0.1", "ls-remote", url],
    }[client]


@pytest.mark.parametrize("client", ["curl", "openssl", "python", "node", "go", "java", "gnutls", "git"])
def test_a_client_takes_the_names_of_the_policy_and_no_other(client: str, folder: Path, servers: dict[str, Server]) -> None:
    for program in command(client, GOOD, 1, folder)[:1]:
        if client == "go":
            program = shutil.which("go") or "/usr/local/go/bin/go"
            if Path(program).exists():
                env = {**os.environ, "GO111MODULE": "off"}
                subprocess.run([program, "build", "-o", folder / "get-go", CLIENTS / "get.go"], check=True, env=env)
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    # Nothing of the caller's: where to find roots is what is tested. git is the one that is told by its variable.
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_TERMINAL_PROMPT": "0", "GIT_SSL_CAINFO": str(folder / "ca.crt")}
    for name in (GOOD,) if client == "java" else (GOOD, BAD):
        server = servers[name]
        server.heard = b""
        done = subprocess.run(command(client, name, server.port, folder), input=f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode(),
            capture_output=True, timeout=60, check=False, env=env)
        said = (done.stdout + done.stderr).decode(errors="replace")
        assert (server.heard != b"") == (name == GOOD), said


def test_keytool_reads_the_key_store(folder: Path) -> None:
    if not shutil.which("keytool"):
        pytest.skip("keytool is not installed")
    listing = ["keytool", "-list", "-v", "-keystore", str(folder / "java.jks"), "-storepass", "changeit"]
    done = subprocess.run(listing, capture_output=True, text=True, check=True)
    assert "Your keystore contains 1 entry" in done.stdout
    assert "CN=Demilune sandbox authority" in done.stdout
    assert "trustedCertEntry" in done.stdout
    listing = ["keytool", "-list", "-keystore", str(folder / "java.jks"), "-storepass", "changeIt"]
    wrong = subprocess.run(listing, capture_output=True, check=False)
    assert wrong.returncode != 0


def test_a_directory_of_certificates_finds_it_by_its_hash(folder: Path) -> None:
    (folder / "hashed").mkdir()
    (folder / "hashed" / "b674e9d2.0").symlink_to(folder / "ca.crt")
    digest = ["openssl", "x509", "-in", str(folder / "ca.crt"), "-noout", "-hash"]
    said = subprocess.run(digest, capture_output=True, text=True, check=True).stdout
    assert said.strip() == "b674e9d2"
    verify = ["openssl", "verify", "-x509_strict", "-no-CAfile", "-no-CAstore", "-CApath", str(folder / "hashed"), "-purpose", "sslserver"]
    assert subprocess.run([*verify, folder / f"{GOOD}.pem"], capture_output=True, check=False).returncode == 0
    bad = subprocess.run([*verify, folder / f"{BAD}.pem"], capture_output=True, text=True, check=False)
    assert bad.returncode != 0 and "permitted subtree violation" in bad.stderr
