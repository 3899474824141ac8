"""`kubectl get ... -o json` without kubectl, for who looks again and again: starting it costs many times the answer.

The plainest calls only, and only what the API server answers well. For all else the answer is None: ask kubectl.
"""

from __future__ import annotations

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


class Kind(NamedTuple):
    """One kind of objects, as the API server serves it."""

    group_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str) -> str:
        """Of one object, or of all; without a namespace, in all namespaces."""
        root = "/api" if "/" not in self.group_version else "/apis"
        parts = [root, self.group_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *([name] if name else [])])


class Reader:
    """For the API server of a folder, with one user's token."""

    def __init__(self, folder: Path, port: int, token: str) -> None:
        self._at, self._token = f"https://127.0.0.1:{port}", token
        self._context = ssl.create_default_context(cafile=str(folder / "apiserver.crt"))
        self._kinds: dict[str, set[Kind]] = {}

    def __call__(self, arguments: Sequence[str]) -> str | None:
        """What kubectl would print with these arguments, or None."""
        call = _parse(arguments)
        if call is None:
            return None
        try:
            if call.raw:
                return self._get(call.raw).decode()
            return self._read(call)
        except (OSError, ValueError):  # refused, away, or no text
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
            return json.dumps(_shown(json.loads(self._get(kinds[0].path(call.namespace, call.name)))))
        items: list[Any] = []
        for kind in kinds:
            head = {"apiVersion": kind.group_version, "kind": kind.kind}
            rows = json.loads(self._get(kind.path(call.namespace, "") + query))["items"]
            items += [_shown({**head, **row}) for row in rows]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}})

    def _get(self, path: str, accept: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        request = urllib.request.Request(self._at + path, headers=headers)
        with urllib.request.urlopen(request, timeout=WAIT_S, context=self._context) as answer:
            return bytes(answer.read())

    def _discovered(self) -> dict[str, set[Kind]]:
        found: dict[str, set[Kind]] = {}
        for root in ("/api", "/apis"):
            for group in json.loads(self._get(root, DISCOVERY))["items"]:
                name = group.get("metadata", {}).get("name", "")
                newest = group["versions"][0]
                for row in newest.get("resources", []):
                    version = f"{name}/{newest['version']}" if name else newest["version"]
                    plural, scope = row["resource"], row["scope"] == "Namespaced"
                    kind = Kind(version, row["responseKind"]["kind"], plural, scope)
                    words = {plural, row.get("singularResource"), *row.get("shortNames", ()), f"{plural}.{name}"}
                    for word in words - {None, ""}:
                        found.setdefault(word, set()).add(kind)
        return found


def _only(kinds: set[Kind]) -> Kind:
    """What a word means: the core's kind where several groups have one. Raises ValueError when that does not tell."""
    meant = [kind for kind in kinds if "/" not in kind.group_version] if len(kinds) > 1 else list(kinds)
    if len(meant) != 1:
        raise ValueError("unknown, or of several groups")
    return meant[0]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Without what kubectl does not show."""
    row["metadata"].pop("managedFields", None)
    return row


def _options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    made.add_argument("-n", dest="namespace", default="default")
    made.add_argument("-A", "--all-namespaces", dest="namespace", action="store_const", const=None)
    made.add_argument("-l", dest="selector", default="")
    made.add_argument("-o", dest="form", default="")
    made.add_argument("--raw", default="")
    made.add_argument("words", nargs="*")
    return made


OPTIONS = _options()


def _parse(arguments: Sequence[str]) -> argparse.Namespace | None:
    """None for what is not the plainest."""
    if "get" not in arguments:
        return None
    call, more = OPTIONS.parse_known_args(arguments)
    verb, kinds, name, *rest = [*call.words, "", "", ""]
    if more or verb != "get" or any(rest) or "/" in kinds + name:
        return None
    if call.form != "json" or not kinds:
        return call if call.raw and not kinds else None
    call.kinds, call.name = kinds, name
    return call
