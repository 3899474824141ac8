"""Command-line flags of the control plane's programs."""

from pathlib import Path


def etcd(folder: Path, client: str, peer: str) -> list[str]:
    return [
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # its data need not survive a crash
        "--log-level=warn",
    ]


def apiserver(folder: Path, store: str, port: int, address: str | None) -> list[str]:
    """Return the flags of the API server.

    address: of a real node; without one it serves this machine alone.
    """
    if address:
        network = ["--bind-address=0.0.0.0", f"--advertise-address={address}"]
        network += ["--kubelet-preferred-address-types=InternalIP"]
        network += [f"--kubelet-client-certificate={folder}/kubelet-client.crt"]
        network += [f"--kubelet-client-key={folder}/kubelet-client.key"]
    else:
        network = ["--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"]
    return [
        *network,
        f"--etcd-servers={store}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",
        f"--token-auth-file={folder}/tokens.csv",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/sa.pub",
        f"--service-account-signing-key-file={folder}/sa.key",
        f"--requestheader-client-ca-file={folder}/front-ca.crt",
        "--requestheader-allowed-names=front",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={folder}/front.crt",
        f"--proxy-client-key-file={folder}/front.key",
    ]


def controllers(folder: Path) -> list[str]:
    return [
        "--use-service-account-credentials",
        f"--service-account-private-key-file={folder}/sa.key",
        f"--root-ca-file={folder}/apiserver.crt",
        "--leader-elect=false",
        "--secure-port=0",
        "--horizontal-pod-autoscaler-sync-period=2s",
        "--horizontal-pod-autoscaler-tolerance=0.1",
    ]
