"""Enforces NetworkPolicies on the real node with nftables, so that a policy that cuts too much, or nothing, is found.

Pods of that node have a link of their own each, so every packet between two of them passes the node's `forward` hook,
with the addresses that are left when Services were translated. What pods and their node say to each other passes other
hooks: no policy touches that. A new connection that no policy allows is refused with an ICMP message, which a client
tells from a port on which nobody listens; connections that are there stay.
"""

from __future__ import annotations

import ipaddress
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import ROOT
from hack.kubernetes.watch import Watch

TABLE = "inet policies"
PATHS = ("/api/v1/pods", "/api/v1/namespaces", "/apis/networking.k8s.io/v1/networkpolicies")
REFUSE = "reject with icmpx type admin-prohibited"
Row = dict[str, Any]


class Policies:
    """Those of a control plane with a real node, enforced by a process beside it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def up(self) -> None:
        """Start it. New policies count a moment after they were accepted."""
        line = [sys.executable, "-m", "hack.kubernetes.policies", str(self._plane.folder)]
        self._plane.start("policies", line, {"PYTHONPATH": str(ROOT)}, inside=False)

    def down(self) -> None:
        """End it: everything is allowed again."""
        self._plane.stop("policies")


def ruleset(policies: Iterable[Row], namespaces: Iterable[Row], pods: Iterable[Row]) -> str:
    """What nft replaces the table with."""
    known = {row["metadata"]["name"]: row["metadata"].get("labels", {}) for row in namespaces}
    there = [row for row in pods if _addresses(row)]
    rows, chains, jumps = list(policies), [], []
    for index, pod in enumerate(there):
        for kind, mine, word in (("Egress", "saddr", "leave"), ("Ingress", "daddr", "enter")):
            applied = [row for row in rows if _selects(row, pod) and kind in _types(row)]
            if not applied:
                continue
            name = f"{word}_{index}"
            lines = [line for row in applied for line in _allowed(row, kind, pod, there, known)]
            chains.append(f"  chain {name} {{\n" + "".join(f"    {one}\n" for one in (*lines, REFUSE)) + "  }\n")
            jumps += [f"{_family(one)} {mine} {one} jump {name}" for one in _addresses(pod)]
    # both ends must allow it: a chain that allows returns, and the other end's is asked
    first = ["type filter hook forward priority 0; policy accept;", "ct state established,related accept"]
    forward = "  chain forward {\n" + "".join(f"    {one}\n" for one in (*first, *jumps)) + "  }\n"
    # made before it is deleted, since it may not be there; nft does all of it or nothing
    return f"table {TABLE} {{}}\ndelete table {TABLE}\ntable {TABLE} {{\n{''.join(chains)}{forward}}}\n"


def _types(policy: Row) -> list[str]:
    spec = policy["spec"]
    return list(spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])])


def _selects(policy: Row, pod: Row) -> bool:
    same = policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and matches(policy["spec"].get("podSelector") or {}, pod["metadata"].get("labels", {}))


def _allowed(policy: Row, kind: str, pod: Row, pods: list[Row], namespaces: dict[str, Row]) -> Iterator[str]:
    """The lines of a chain that allow what one policy of a pod allows."""
    others, other = ("from", "saddr") if kind == "Ingress" else ("to", "daddr")
    for rule in policy["spec"].get(kind.lower()) or []:
        peers = rule.get(others)
        found = [match for one in peers for match in _peer(one, other, policy, pods, namespaces)] if peers else [""]
        for match in found:
            targets = [pod] if kind == "Ingress" else pods
            for port in _ports(rule.get("ports"), targets):
                yield " ".join(word for word in (match, port, "return") if word)


def _peer(peer: Row, side: str, policy: Row, pods: list[Row], namespaces: dict[str, Row]) -> Iterator[str]:
    if block := peer.get("ipBlock"):
        family = _family(block["cidr"])
        without = "".join(f" {family} {side} != {one}" for one in block.get("except") or [])
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


def _ports(ports: list[Row] | None, targets: list[Row]) -> Iterator[str]:
    if not ports:
        yield ""
    for port in ports or []:
        protocol, number = port.get("protocol", "TCP"), port.get("port")
        if number is None:
            yield f"meta l4proto {protocol.lower()}"
        elif isinstance(number, int):
            yield f"{protocol.lower()} dport {number}" + (f"-{port['endPort']}" if "endPort" in port else "")
        else:
            yield from _named(number, protocol, targets)


def _named(name: str, protocol: str, targets: list[Row]) -> Iterator[str]:
    """Each pod has its own number for a name."""
    for pod in targets:
        rows = [one for each in pod["spec"]["containers"] for one in each.get("ports", [])]
        numbers = [
            row["containerPort"] for row in rows if (row.get("name"), row.get("protocol", "TCP")) == (name, protocol)
        ]
        for address in _addresses(pod):
            yield from (f"{_family(address)} daddr {address} {protocol.lower()} dport {one}" for one in numbers)


def matches(selector: Row, labels: Row) -> bool:
    """Whether a label selector takes these labels; an empty one takes all."""
    tests: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    wanted = selector.get("matchLabels") or {}
    rules = selector.get("matchExpressions") or []
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        tests[rule["operator"]](rule["key"], rule.get("values") or []) for rule in rules
    )


def _addresses(pod: Row) -> list[str]:
    """A pod's own; one that ended, or uses its node's, has none."""
    status = pod.get("status", {})
    if pod["spec"].get("hostNetwork") or status.get("phase") in ("Succeeded", "Failed"):
        return []
    return [one["ip"] for one in status.get("podIPs", [])]


def _family(address: str) -> str:
    return "ip6" if ipaddress.ip_interface(address).version == 6 else "ip"


class _Enforcer:
    """Follows what the API server says."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._rows: dict[str, dict[str, Row]] = {path: {} for path in PATHS}
        self._changed, self._lock = threading.Event(), threading.Lock()
        self._watches = [Watch(plane, f"{path}?watch=true", self._see(path)) for path in PATHS]

    def run(self) -> None:
        """Until the process is told to end."""
        try:
            while self._changed.wait():
                self._changed.clear()
                with self._lock:
                    pods, namespaces, policies = (list(self._rows[path].values()) for path in PATHS)
                self._nft(ruleset(policies, namespaces, pods))
        finally:
            self._nft(f"table {TABLE} {{}}\ndelete table {TABLE}\n")
            for watch in self._watches:
                watch.close()

    def _see(self, path: str) -> Callable[[str, Row], None]:
        def see(kind: str, row: Row) -> None:
            with self._lock:
                if kind == "DELETED":
                    self._rows[path].pop(row["metadata"]["uid"], None)
                else:
                    self._rows[path][row["metadata"]["uid"]] = row
            self._changed.set()

        return see

    def _nft(self, text: str) -> None:
        subprocess.run([*self._plane.node.box.network(), "nft", "-f", "-"], input=text, text=True, check=True)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    _Enforcer(ControlPlane(Path(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
