"""Keys and certificates, made with openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make(folder: Path) -> None:
    """A key for service accounts, and an authority and a certificate for the aggregator."""
    _openssl(folder, "genrsa", "-out", "sa.key", "2048")
    _openssl(folder, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    _certificate(folder, "front-ca", "/CN=front-ca")
    _certificate(folder, "front", "/CN=front", "-addext", "extendedKeyUsage=clientAuth", signer="front-ca")


def serving(folder: Path, *names: str) -> None:
    """What a server of these names needs, as in a Secret of type TLS: ca.crt, tls.crt and tls.key."""
    _certificate(folder, "ca", "/CN=ca")
    told = ",".join(f"DNS:{name}" for name in names)
    _certificate(folder, "tls", f"/CN={names[0]}", "-addext", f"subjectAltName={told}", signer="ca")


def _certificate(folder: Path, name: str, subject: str, *extensions: str, signer: str = "") -> None:
    line = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", subject, *extensions]
    if signer:
        line += ["-CA", f"{signer}.crt", "-CAkey", f"{signer}.key"]
    _openssl(folder, *line, "-keyout", f"{name}.key", "-out", f"{name}.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
