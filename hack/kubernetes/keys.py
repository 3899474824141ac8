"""Keys and certificates, created with openssl."""

import json
import subprocess
from pathlib import Path


def make(folder: Path, *addresses: str) -> None:
    """Create the control plane's keys and certificates.

    These are a key for service accounts; an authority with certificates for the aggregator and for
    the API server as client of a kubelet; and a certificate of the API server for loopback and
    `addresses`.
    """
    _openssl(folder, "genrsa", "-out", "sa.key", "2048")
    _openssl(folder, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    _certificate(folder, "front-ca", "/CN=front-ca")
    _certificate(
        folder, "front", "/CN=front", "-addext", "extendedKeyUsage=clientAuth", signer="front-ca"
    )
    _certificate(folder, "kubelet-client", "/O=system:masters/CN=kube-apiserver", signer="front-ca")
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    known = [
        *(f"DNS:{name}" for name in names),
        *(f"IP:{address}" for address in ("127.0.0.1", *addresses)),
    ]
    _certificate(
        folder, "apiserver", "/CN=kube-apiserver", "-addext", f"subjectAltName={','.join(known)}"
    )


def kubeconfig(path: Path, port: int, token: str) -> None:
    """Write a kubeconfig for the API server at a port of loopback."""
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority": str(path.parent / "apiserver.crt"),
    }
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "scaletest",
        "clusters": [{"name": "scaletest", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "scaletest", "context": {"cluster": "scaletest", "user": "admin"}}],
    }
    path.touch(0o600)
    path.write_text(json.dumps(whole, indent=2))


def make_server_keys(folder: Path, *names: str) -> None:
    """Create ca.crt, tls.crt and tls.key of a server with these names, as in a TLS Secret."""
    _certificate(folder, "ca", "/CN=ca")
    alternatives = ",".join(f"DNS:{name}" for name in names)
    _certificate(
        folder, "tls", f"/CN={names[0]}", "-addext", f"subjectAltName={alternatives}", signer="ca"
    )


def _certificate(folder: Path, name: str, subject: str, *extensions: str, signer: str = "") -> None:
    line = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "30",
        "-subj",
        subject,
        *extensions,
    ]
    if signer:
        line += ["-CA", f"{signer}.crt", "-CAkey", f"{signer}.key"]
    _openssl(folder, *line, "-keyout", f"{name}.key", "-out", f"{name}.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
