# SPDX-License-Identifier: Apache-2.0
"""A certificate authority of the tests' own, and servers' certificates, by the openssl program."""

import ssl
import subprocess
import tempfile
from pathlib import Path

_folder = tempfile.TemporaryDirectory(prefix="gateway-certs-")
FOLDER = Path(_folder.name)


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=FOLDER)


def authority(name: str = "ca") -> bytes:
    if not (FOLDER / f"{name}.pem").exists():
        _openssl(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
            "-days",
            "30",
            "-subj",
            f"/CN={name}",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
        )
    return (FOLDER / f"{name}.pem").read_bytes()


def server(label: str, san: str, *, ca: str = "ca", subject: str = "server", days: str = "20") -> ssl.SSLContext:
    """A context that serves with this subjectAltName (empty: none); ca "self": signed by itself."""
    authority("ca" if ca == "self" else ca)
    if not (FOLDER / f"{label}.pem").exists():
        ext = FOLDER / f"{label}.ext"
        ext.write_text(f"subjectAltName={san}\n" if san else "basicConstraints=CA:FALSE\n")
        _openssl(
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            f"{label}.key",
            "-out",
            f"{label}.csr",
            "-subj",
            f"/CN={subject}",
        )
        signer = ["-signkey", f"{label}.key"] if ca == "self" else ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial"]
        _openssl("x509", "-req", "-in", f"{label}.csr", *signer, "-out", f"{label}.pem", "-days", days, "-extfile", str(ext))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER / f"{label}.pem", FOLDER / f"{label}.key")
    return context
