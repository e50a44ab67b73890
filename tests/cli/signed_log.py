# SPDX-License-Identifier: Apache-2.0
"""A log of RFC 6962 as its text defines it, and checkpoints signed by a key of its own (openssl): written without ours."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import tempfile
from pathlib import Path


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def openssl(*args: str, data: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *args], input=data, capture_output=True, check=True).stdout


class Log:
    """Of digests; what it gave is kept, so that large ones are quick."""

    def __init__(self, digests: list[bytes], origin: str = "host.test/audit", key: Log | None = None) -> None:
        self.leaves = [hashlib.sha256(b"\0" + d).digest() for d in digests]
        self.origin = origin
        self.known: dict[tuple[int, int], bytes] = {}
        self.private: bytes
        self.public: bytes
        if key is not None:
            self.private, self.public = key.private, key.public
        else:
            self.private = openssl("genpkey", "-algorithm", "ed25519")
            self.public = openssl("pkey", "-pubout", "-outform", "DER", data=self.private)[-32:]

    @property
    def size(self) -> int:
        return len(self.leaves)

    def hash_of(self) -> bytes:
        return hashlib.sha256(self.origin.encode() + b"\n\1" + self.public).digest()[:4]

    @property
    def key(self) -> str:
        public = base64.b64encode(b"\1" + self.public).decode()
        return f"{self.origin}+{self.hash_of().hex()}+{public}"

    def root(self, first: int = 0, n: int | None = None) -> bytes:
        n = self.size - first if n is None else n
        if n == 0:
            return hashlib.sha256().digest()
        if n == 1:
            return self.leaves[first]
        if (first, n) not in self.known:
            k = split(n)
            self.known[first, n] = node(self.root(first, k), self.root(first + k, n - k))
        return self.known[first, n]

    def path(self, m: int, first: int, n: int) -> list[bytes]:
        if n == 1:
            return []
        k = split(n)
        if m < k:
            return [*self.path(m, first, k), self.root(first + k, n - k)]
        return [*self.path(m - k, first + k, n - k), self.root(first, k)]

    def inclusion(self, leaf: int, size: int) -> list[str]:
        return [h.hex() for h in self.path(leaf, 0, size)]

    def subproof(self, m: int, first: int, n: int, whole: bool) -> list[bytes]:
        if m == n:
            return [] if whole else [self.root(first, n)]
        k = split(n)
        if m <= k:
            return [*self.subproof(m, first, k, whole), self.root(first + k, n - k)]
        return [*self.subproof(m - k, first + k, n - k, False), self.root(first, k)]

    def consistency(self, old: int, size: int) -> list[str]:
        return [] if old == 0 else [h.hex() for h in self.subproof(old, 0, size, True)]

    def note(self, size: int | None = None, origin: str | None = None) -> str:
        size = self.size if size is None else size
        text = f"{origin or self.origin}\n{size}\n{base64.b64encode(self.root(0, size)).decode()}\n"
        with tempfile.TemporaryDirectory() as where:
            (Path(where) / "key").write_bytes(self.private)
            (Path(where) / "text").write_text(text)
            signature = openssl("pkeyutl", "-sign", "-rawin", "-inkey", f"{where}/key", "-in", f"{where}/text")
        line = base64.b64encode(self.hash_of() + signature).decode()
        return f"{text}\n\u2014 {self.origin} {line}\n"
