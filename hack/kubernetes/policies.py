"""Enforces NetworkPolicies on the real node with nftables, so that tests find wrong ones.

Each pod of that node has a link of its own, so every packet between two of them passes the node's
`forward` hook, after the addresses of Services were translated. Packets between pods and their node
pass other hooks, which no policy affects. A new connection that no policy allows is refused with an
ICMP message, so that a client can distinguish it from a port without a listener. Open connections
stay.
"""

import ipaddress
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import ROOT
from hack.kubernetes.watch import Watch

TABLE, START_S = "inet policies", 60.0
PATHS = ("/api/v1/pods", "/api/v1/namespaces", "/apis/networking.k8s.io/v1/networkpolicies")
REFUSE = "reject with icmpx type admin-prohibited"
Document = dict[str, Any]


class Policies:
    """Enforcement for a control plane with a real node, by a process beside it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def up(self) -> None:
        """Start it and wait until it enforces all existing policies. Raises TimeoutError.

        Changes take effect a moment after they are made.
        """
        line = [sys.executable, "-m", "hack.kubernetes.policies", str(self._plane.folder)]
        self._plane.start("policies", line, {"PYTHONPATH": str(ROOT)}, inside=False)
        deadline = time.monotonic() + START_S
        look = [*self._plane.node.box.network(), "nft", "list", "table", *TABLE.split()]
        while subprocess.run(look, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline or not self._plane.running()["policies"]:
                end = (self._plane.folder / "policies.log").read_text()[-2000:]
                raise TimeoutError(f"policies are not enforced:\n{end}")
            time.sleep(0.2)

    def down(self) -> None:
        """End it, so that everything is allowed again."""
        self._plane.stop("policies")


def ruleset(
    policies: Iterable[Document], namespaces: Iterable[Document], pods: Iterable[Document]
) -> str:
    """Write the input of nft that replaces the table by the rules of these policies."""
    known = {
        namespace["metadata"]["name"]: namespace["metadata"].get("labels", {})
        for namespace in namespaces
    }
    reachable = [pod for pod in pods if _addresses(pod)]
    everything = list(policies)
    chains: list[str] = []
    jumps: list[str] = []
    for index, pod in enumerate(reachable):
        for kind, own_side, verb in (("Egress", "saddr", "leave"), ("Ingress", "daddr", "enter")):
            applied = [
                policy for policy in everything if _selects(policy, pod) and kind in _types(policy)
            ]
            if not applied:
                continue
            name = f"{verb}_{index}"
            rules: list[str] = []
            for policy in applied:
                rules += _allowed(policy, kind, pod, reachable, known)
            chains.append(_chain(name, [*rules, REFUSE]))
            jumps += [
                f"{_family(address)} {own_side} {address} jump {name}"
                for address in _addresses(pod)
            ]
    # both ends must allow a connection: a chain that allows it returns, and the other end's follows
    first = [
        "type filter hook forward priority 0; policy accept;",
        "ct state established,related accept",
    ]
    forward = _chain("forward", [*first, *jumps])
    # `delete` fails without the table, so it is created before; nft applies all of it or nothing
    return (
        f"table {TABLE} {{}}\ndelete table {TABLE}\ntable {TABLE}"
        f" {{\n{''.join(chains)}{forward}}}\n"
    )


def _chain(name: str, rules: Iterable[str]) -> str:
    return f"  chain {name} {{\n" + "".join(f"    {rule}\n" for rule in rules) + "  }\n"


def _types(policy: Document) -> list[str]:
    spec = policy["spec"]
    return list(spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _selects(policy: Document, pod: Document) -> bool:
    same = policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and matches(
        policy["spec"].get("podSelector") or {}, pod["metadata"].get("labels", {})
    )


def _allowed(
    policy: Document,
    kind: str,
    pod: Document,
    pods: list[Document],
    namespaces: dict[str, Document],
) -> Iterator[str]:
    """Yield the rules of a chain for the connections that one policy of a pod allows."""
    peers_key, peer_side = ("from", "saddr") if kind == "Ingress" else ("to", "daddr")
    targets = [pod] if kind == "Ingress" else pods
    for rule in policy["spec"].get(kind.lower()) or []:
        matches_of_peers: list[str] = []
        for peer in rule.get(peers_key) or []:
            matches_of_peers += _peer(peer, peer_side, policy, pods, namespaces)
        if not rule.get(peers_key):
            matches_of_peers = [""]  # no peers mean all peers
        for match in matches_of_peers:
            for port in _ports(rule.get("ports"), targets):
                yield " ".join(filter(None, (match, port, "return")))


def _peer(
    peer: Document,
    side: str,
    policy: Document,
    pods: list[Document],
    namespaces: dict[str, Document],
) -> Iterator[str]:
    if block := peer.get("ipBlock"):
        family = _family(block["cidr"])
        without = "".join(
            f" {family} {side} != {excluded}" for excluded in block.get("except") or []
        )
        yield f"{family} {side} {block['cidr']}{without}"
        return
    home, anywhere = policy["metadata"]["namespace"], peer.get("namespaceSelector")
    for pod in pods:
        meta = pod["metadata"]
        space = meta["namespace"]
        near = space == home if anywhere is None else matches(anywhere, namespaces.get(space, {}))
        if near and matches(peer.get("podSelector") or {}, meta.get("labels", {})):
            for address in _addresses(pod):
                yield f"{_family(address)} {side} {address}"


def _ports(ports: list[Document] | None, targets: list[Document]) -> Iterator[str]:
    if not ports:
        yield ""
    for port in ports or []:
        protocol, number = port.get("protocol", "TCP"), port.get("port")
        if number is None:
            yield f"meta l4proto {protocol.lower()}"
        elif isinstance(number, int):
            last = f"-{port['endPort']}" if "endPort" in port else ""
            yield f"{protocol.lower()} dport {number}{last}"
        else:
            yield from _named(number, protocol, targets)


def _named(name: str, protocol: str, targets: list[Document]) -> Iterator[str]:
    """Yield matches for a named port, whose number each pod defines."""
    for pod in targets:
        numbers = []
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", []):
                if (port.get("name"), port.get("protocol", "TCP")) == (name, protocol):
                    numbers.append(port["containerPort"])
        for address in _addresses(pod):
            for number in numbers:
                yield f"{_family(address)} daddr {address} {protocol.lower()} dport {number}"


def matches(selector: Document, labels: Document) -> bool:
    """Check whether a label selector matches these labels; an empty one matches all."""
    tests: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, accepted: labels.get(key) in accepted,
        "NotIn": lambda key, accepted: labels.get(key) not in accepted,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    for key, text in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != text:
            return False
    rules = selector.get("matchExpressions") or []
    return all(tests[rule["operator"]](rule["key"], rule.get("values") or []) for rule in rules)


def _addresses(pod: Document) -> list[str]:
    """List a pod's own addresses; a pod that ended, or uses its node's network, has none."""
    status = pod.get("status", {})
    if pod["spec"].get("hostNetwork") or status.get("phase") in ("Succeeded", "Failed"):
        return []
    return [assigned["ip"] for assigned in status.get("podIPs", [])]


def _family(address: str) -> str:
    return "ip6" if ipaddress.ip_interface(address).version == 6 else "ip"


class _Enforcer:
    """Watches the API server and writes the rules anew after each change."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._objects: dict[str, dict[str, Document]] = {path: self._listed(path) for path in PATHS}
        self._changed, self._lock = threading.Event(), threading.Lock()
        self._changed.set()
        self._watches = [Watch(plane, f"{path}?watch=true", self._see(path)) for path in PATHS]

    def run(self) -> None:
        """Enforce the policies until the process is ended."""
        try:
            while self._changed.wait():
                self._changed.clear()
                with self._lock:
                    pods, namespaces, policies = (
                        list(self._objects[path].values()) for path in PATHS
                    )
                self._nft(ruleset(policies, namespaces, pods))
        finally:
            for watch in self._watches:
                watch.close()
            if self._plane.node.box.running():  # else the rules are gone with its network
                self._nft(f"table {TABLE} {{}}\ndelete table {TABLE}\n")

    def _listed(self, path: str) -> dict[str, Document]:
        """List all objects, by uid.

        All at once before the first rules: rules that know only some pods would let packets of
        others through.
        """
        listed = json.loads(self._plane.kubectl("get", "--raw", path))["items"]
        return {document["metadata"]["uid"]: document for document in listed}

    def _see(self, path: str) -> Callable[[str, Document], None]:
        def see(kind: str, document: Document) -> None:
            uid = document["metadata"]["uid"]
            with self._lock:
                if kind == "DELETED":
                    self._objects[path].pop(uid, None)
                else:
                    self._objects[path][uid] = document
            self._changed.set()

        return see

    def _nft(self, text: str) -> None:
        subprocess.run(
            [*self._plane.node.box.network(), "nft", "-f", "-"], input=text, text=True, check=True
        )


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    _Enforcer(ControlPlane(Path(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
