"""`kubectl get ... -o json` without kubectl, whose start costs many times the answer.

Only simple calls that the API server answers with success are supported. For all others the answer
is None, and the caller runs kubectl.
"""

import argparse
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

WAIT_S = 30.0
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ResourceKind(NamedTuple):
    """One kind of objects of the API server."""

    group_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str) -> str:
        """Return the path of one object, or of all; namespace None means all namespaces."""
        root = "/api" if "/" not in self.group_version else "/apis"
        parts = [root, self.group_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/".join(parts)


class ObjectReader:
    """Reads from the API server of a folder, with one user's token."""

    def __init__(self, folder: Path, port: int, token: str) -> None:
        self._at, self._token = f"https://127.0.0.1:{port}", token
        self._context = ssl.create_default_context(cafile=str(folder / "apiserver.crt"))
        self._kinds: dict[str, set[ResourceKind]] = {}

    def __call__(self, arguments: Sequence[str]) -> str | None:
        """Return what kubectl would print with these arguments; None when kubectl must be run."""
        call = _parse(arguments)
        if call is None:
            return None
        try:
            if call.raw:
                return self._get(call.raw).decode()
            return self._read(call)
        except (OSError, ValueError):  # an HTTP error, no connection, or not JSON
            return None

    def _read(self, call: argparse.Namespace) -> str | None:
        query = f"?labelSelector={urllib.parse.quote(call.selector)}" if call.selector else ""
        names = call.kinds.split(",")
        if call.name and names[1:]:
            return None
        if not all(name in self._kinds for name in names):
            self._kinds = self._discovered()
        kinds = [_only(self._kinds.get(name, set())) for name in names]
        if call.name:
            return json.dumps(
                _shown(json.loads(self._get(kinds[0].path(call.namespace, call.name))))
            )
        objects: list[Any] = []
        for kind in kinds:
            head = {"apiVersion": kind.group_version, "kind": kind.kind}
            listed = json.loads(self._get(kind.path(call.namespace, "") + query))["items"]
            objects += [_shown({**head, **document}) for document in listed]
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": objects,
                "metadata": {"resourceVersion": ""},
            }
        )

    def _get(self, path: str, accept: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        request = urllib.request.Request(self._at + path, headers=headers)
        with urllib.request.urlopen(request, timeout=WAIT_S, context=self._context) as answer:
            return bytes(answer.read())

    def _discovered(self) -> dict[str, set[ResourceKind]]:
        kinds: dict[str, set[ResourceKind]] = {}
        for root in ("/api", "/apis"):
            for group in json.loads(self._get(root, DISCOVERY))["items"]:
                name = group.get("metadata", {}).get("name", "")
                newest = group["versions"][0]
                for resource in newest.get("resources", []):
                    version = f"{name}/{newest['version']}" if name else newest["version"]
                    plural, scope = resource["resource"], resource["scope"] == "Namespaced"
                    kind = ResourceKind(version, resource["responseKind"]["kind"], plural, scope)
                    aliases = {
                        plural,
                        resource.get("singularResource"),
                        *resource.get("shortNames", ()),
                    }
                    aliases.add(f"{plural}.{name}")
                    for alias in aliases - {None, ""}:
                        kinds.setdefault(alias, set()).add(kind)
        return kinds


def _only(kinds: set[ResourceKind]) -> ResourceKind:
    """Choose the kind that a name means: of several, the one of the core group.

    Raises ValueError.
    """
    candidates = list(kinds)
    if len(candidates) > 1:
        candidates = [kind for kind in kinds if "/" not in kind.group_version]
    if len(candidates) != 1:
        raise ValueError("unknown, or in several groups")
    return candidates[0]


def _shown(document: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields that kubectl does not show."""
    document["metadata"].pop("managedFields", None)
    return document


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-n", dest="namespace", default="default")
    parser.add_argument(
        "-A", "--all-namespaces", dest="namespace", action="store_const", const=None
    )
    parser.add_argument("-l", dest="selector", default="")
    parser.add_argument("-o", dest="form", default="")
    parser.add_argument("--raw", default="")
    parser.add_argument("positional", nargs="*")
    return parser


OPTIONS = _options()


def _parse(arguments: Sequence[str]) -> argparse.Namespace | None:
    """Parse a simple `get`; None for any other call."""
    if "get" not in arguments:
        return None
    call, more = OPTIONS.parse_known_args(arguments)
    verb, kinds, name, *rest = [*call.positional, "", "", ""]
    if more or verb != "get" or any(rest) or "/" in kinds + name:
        return None
    if call.form != "json" or not kinds:
        return call if call.raw and not kinds else None
    call.kinds, call.name = kinds, name
    return call
