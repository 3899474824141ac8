"""Change a Deployment and its autoscalers for a run, and put all of it back.

The annotation `scaletest/before` of an object says since when it is changed, and holds the patch
that undoes that. It is written before the first change and removed with the undoing, so an object
that a killed run left changed always says what it was: a later run starts from the annotation, or
`scaletest cluster restore` puts it back. Only what was changed is undone: an image that was rolled
out meanwhile stays.
"""

import logging
import time
from collections.abc import Callable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from scaletest.cluster.api_calls import (
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Busy,
    Cluster,
    Conflict,
    Refused,
)
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import DEPLOYMENTS, HPAS, STATEFUL_SETS, Resource
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError

BEFORE = "scaletest/before"
# An API server refuses for seconds while it restarts.
TRIES = 30
PAUSE_S = 1.0
# Kinds whose lists can be merged by name.
BUILT_IN = (DEPLOYMENTS, STATEFUL_SETS, HPAS)

logger = logging.getLogger("scaletest.cluster")


class Patch(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings of an object's spec, and annotations; None removes one."""

    spec: dict[str, Any] = {}
    annotations: dict[str, Any] = {}


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the annotation."""

    # when the object was first changed, to the microsecond, which tells the notes of two runs apart
    at: str
    undo: Patch


def read_note(title: str, text: str) -> Note:
    """Parse the annotation of an object; InvalidValue when it is not ours."""
    try:
        return msgspec.json.decode(text, type=Note)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"the annotation {BEFORE} of {title} was not written by scaletest",
            hint=f"check the settings of {title}, and remove the annotation",
        ) from error


def refuse_changed(deployment: Deployment, own: Set[str] = frozenset()) -> None:
    """Raise UsageError while the Deployment is as another run set it.

    own: settings that do not matter, because the run that asks sets them itself.
    """
    text = deployment.annotations.get(BEFORE)
    if text is None:
        return
    note = read_note(f"deployment {deployment.name}", text)
    if not note.undo.spec.keys() <= own:
        raise _changed_by_another(f"deployment {deployment.name}", note, deployment)


def restore_command(deployment: Deployment) -> str:
    """Return the command that puts back what a killed run left changed."""
    return (
        f"scaletest cluster restore -n {deployment.namespace} --deployment {deployment.reference}"
    )


class Changes:
    """The changes of one run to a Deployment and its autoscalers.

    What was noted last is put back first. Needs the rights to get and patch these objects.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        *,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._objects = ObjectClient(cluster)
        self._deployment, self._sleep = deployment, sleep
        self._notes: dict[tuple[Resource, str], str] = {}  # annotations, by object
        # Calls run one after the other in a thread: when a signal ends the wait for a change, that
        # change still ends before it is undone. The thread starts here: a signal while it starts
        # would leave a thread that the pool does not know.
        self._thread = ThreadPoolExecutor(1, "change")
        self._thread.submit(int).result()

    def take_over(self, resource: Resource, name: str, note: str | None) -> None:
        """Go on from what a killed run noted on an object, if it did, and put that back."""
        if note is not None:
            read_note(f"{resource.kind} {name}", note)
            self._notes.setdefault((resource, name), note)

    def note(self, resource: Resource, name: str, patch: Patch) -> None:
        """Note on an object what this patch will change. UsageError when another run changed it."""
        self._repeat_while_busy(partial(self._note, resource, name, patch))

    def change(self, resource: Resource, name: str, patch: Patch) -> None:
        """Note on an object what this patch changes, and change it."""
        self.note(resource, name, patch)
        self._repeat_while_busy(
            partial(self._write, resource, name, patch, self._notes[resource, name])
        )

    def put_back(self) -> dict[str, str]:
        """Undo all changes. Return by object what to do where that failed, "" where it did not."""
        remedies = {}
        for resource, name in reversed(list(self._notes)):
            title = f"{resource.kind} {name}"
            try:
                self._repeat_while_busy(partial(self._undo, resource, name))
                del self._notes[resource, name]
                remedies[title] = ""
            except ScaletestError as error:
                remedies[title] = (
                    f"{error.message}; try again later: {restore_command(self._deployment)}, or"
                    f" set it as you want it and remove its annotation {BEFORE}"
                )
        return remedies

    def close(self) -> None:
        """Undo all changes, and log what could not be undone. Does nothing the second time."""
        for title, remedy in self.put_back().items():
            if remedy:
                logger.error("%s could not be put back: %s", title, remedy)

    def _repeat_while_busy(self, act: Callable[[], None]) -> None:
        """Act until the API server is not busy, but not for ever."""
        for tries_left in reversed(range(TRIES)):
            try:
                self._thread.submit(act).result()
                return
            except Busy as error:
                if not tries_left:
                    raise
                # while pods come and go, the controller often writes the same Deployment
                if not isinstance(error, Conflict):
                    logger.warning("%s; trying again", error)
                self._sleep(PAUSE_S)

    def _note(self, resource: Resource, name: str, patch: Patch) -> None:
        document = self._objects.find(resource, self._deployment.namespace, name)
        if document is None:
            raise Refused(f"{resource.kind} {name} no longer exists", hint="it was deleted")
        text = _annotations(document).get(BEFORE)
        if text is None:
            note = Note(at=datetime.now(UTC).isoformat(), undo=undo_patch(patch, document))
            text = msgspec.json.encode(note).decode()
            # known before it is written, so that it is undone even when no answer comes
            self._notes[resource, name] = text
            # of two runs that begin at once, the second meets a conflict, and then this note
            self._write(
                resource, name, Patch(), text, version=document["metadata"]["resourceVersion"]
            )
        elif text != self._notes.get((resource, name)):
            title = f"{resource.kind} {name}"
            raise _changed_by_another(title, read_note(title, text), self._deployment)

    def _undo(self, resource: Resource, name: str) -> None:
        """Undo the changes of an object, unless it was deleted, or that was done already."""
        text = self._notes[resource, name]
        document = self._objects.find(resource, self._deployment.namespace, name)
        if document is not None and _annotations(document).get(BEFORE) == text:
            self._write(resource, name, read_note(f"{resource.kind} {name}", text).undo, None)

    def _write(
        self, resource: Resource, name: str, patch: Patch, note: str | None, *, version: str = ""
    ) -> None:
        """Patch an object and its note. version: the one that the object must still have."""
        meta: Document = {"annotations": {**patch.annotations, BEFORE: note}}
        if version:
            meta["resourceVersion"] = version
        self._objects.patch(
            resource,
            self._deployment.namespace,
            name,
            {"metadata": meta, "spec": patch.spec},
            form=STRATEGIC_PATCH if resource in BUILT_IN else MERGE_PATCH,
        )


def undo_patch(patch: Patch, document: Document) -> Patch:
    """Return the patch that sets what the object has now again, wherever this one changes it."""
    return Patch(
        _settings_now(patch.spec, document["spec"]),
        _settings_now(patch.annotations, _annotations(document)),
    )


def _settings_now(changes: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is set now wherever there is a change, at any depth."""
    return {name: _setting_now(change, now.get(name)) for name, change in changes.items()}


def _setting_now(change: Any, now: Any) -> Any:
    if isinstance(change, dict):
        return _settings_now(change, now or {})
    if not (isinstance(change, list) and change and isinstance(change[0], dict)):
        return now
    # a list of objects, which the API server merges by their names
    entries_now = {entry["name"]: entry for entry in now or ()}
    undone = []
    for entry in change:
        name = entry["name"]
        if name in entries_now:
            undone.append({**_settings_now(entry, entries_now[name]), "name": name})
        else:
            undone.append({"name": name, "$patch": "delete"})
    return undone


def _annotations(document: Document) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}


def _changed_by_another(title: str, note: Note, deployment: Deployment) -> UsageError:
    return UsageError(
        f"a run that began at {note.at} changed {title} and has not put it back",
        hint=f"if that run is over: {restore_command(deployment)}",
    )
