"""What belongs to one benchmark in a cluster: made once, found again, kept, and taken away.

Objects have names of their own, what is there is not made again, and a result is stored before anything is taken away.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from scaletest.benchmarks import endings, manifests, said, ssh
from scaletest.benchmarks.endings import Over, Taken
from scaletest.benchmarks.kept import Damaged, Reads, agreed, forget, forget_together, keep, owned, unpacked
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.seen import Place, Seen
from scaletest.cluster.connection import Busy, Conflict
from scaletest.cluster.documents import CONFIG_MAPS, PODS, SECRETS, Resource
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure


class Belongings:
    """Those of one benchmark, during one look."""

    def __init__(self, benchmark: Benchmark, objects: Reads, place: Place, clock: Callable[[], float]) -> None:
        self._benchmark, self._objects, self._clock = benchmark, objects, clock
        self._namespace, self._owner, self._image = place.namespace, place.owner, place.image
        self._since_s, self._waits = place.since_s, place.waits
        self._role = benchmark.kind.measures

    def _agreed(self, peers: Document) -> Benchmark:
        found = agreed(peers)
        if found.kind is not self._benchmark.kind:
            raise Damaged(peers, f"it is of another kind, {found.kind.name}")
        return found

    def _ended(self) -> BenchmarkResult | None:
        """The result, when it is stored. Raises Taken when another has its place: it is not measured in vain."""
        name = manifests.result_name(self._benchmark.name)
        found = self._objects.find(CONFIG_MAPS, self._namespace, name)
        if found is not None and not owned(found, self._owner["uid"]):
            raise Taken(f"configmaps {name} is there and belongs to something else")
        if found is None:
            return None
        try:
            return unpacked(found)
        except Damaged as error:
            peers = self._objects.find(CONFIG_MAPS, self._namespace, manifests.name_of(self._benchmark, "peers"))
            if peers is None or not owned(peers, self._owner["uid"]):
                return self._failed(Failure.INTERRUPTED, error.message, remedy=error.hint)
            # nothing else was taken away yet, so the result is still told by the pods, or why there is none
            self._objects.delete(CONFIG_MAPS, self._namespace, name, found["metadata"]["uid"])
            return None

    def _forget(self) -> None:
        name, uid = self._benchmark.name, self._owner["uid"]
        forget_together(self._benchmark, uid, self._objects, self._namespace)
        forget(self._benchmark.kind, name, uid, self._objects, self._namespace)

    def _own(self, what: Resource, body: Document, before: Callable[[], None] = lambda: None) -> Document:
        """The object, made when it is not there, after `before`. Raises Taken when it is somebody else's."""
        name = body["metadata"]["name"]
        found = self._objects.find(what, self._namespace, name)
        if found is None:
            before()
            found = self._objects.create(what, self._namespace, body) or {"metadata": {}}
            self._still_goes_on()
        if not owned(found, self._owner["uid"]):
            raise Taken(f"{what.plural} {name} is there and belongs to something else")
        return found

    def _still_goes_on(self) -> None:
        """Nothing is left behind by one operator of what another has ended since it looked. Raises Conflict."""
        if self._ended() is not None:
            self._forget()
            raise Conflict(f"{self._benchmark.name} was ended by another operator", hint="run one operator a namespace")

    def _make_key(self) -> None:
        """That of the parts, when they start processes on each other. One that is there is ours, as its name says."""
        if ssh.wanted(self._benchmark.kind):
            body = manifests.secret(self._benchmark, self._owner)
            self._objects.create(SECRETS, self._namespace, body)

    def _pods(self) -> list[Document]:
        rows = self._objects.list(PODS, self._namespace, manifests.own(self._benchmark.name, self._owner["uid"]))
        # a copy that somebody made to look into has not all of our marks
        return [pod for pod in rows if said.marked(pod)]

    def _measuring(self, pods: Sequence[Document]) -> list[Document]:
        return [pod for pod in pods if pod["metadata"]["labels"][manifests.ROLE] == self._role]

    def _blamed(self, pod: Document, pods: tuple[Document, ...], message: str, log: str | None = None) -> Over:
        text = log or ""
        if log is None:
            # a log that went with its node keeps nothing from its end
            with contextlib.suppress(Busy):
                text = self._objects.log(self._namespace, said.name(pod)) or ""
        return Over(endings.blamed(self._benchmark, self._clock(), pod, message, text), pods)

    def _failed(self, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = "") -> BenchmarkResult:
        return endings.failed(self._benchmark, self._clock(), failure, message, lines, remedy)

    def _store(self, ended: BenchmarkResult, pods: tuple[Document, ...]) -> Seen:
        """The result first, then the end: whoever comes after a crash finds the one or the other."""
        mine = keep(self._objects, self._namespace, self._benchmark, self._owner, ended)
        if mine is None:
            name = manifests.result_name(self._benchmark.name)
            return Seen(BenchmarkPhase.SUMMARISING, f"the ConfigMap {name} belongs to something else: delete it", pods)
        return Seen(BenchmarkPhase.SUMMARISING, mine.message, pods)

    def _age(self, document: Document) -> float:
        return self._clock() - said.seconds(document["metadata"]["creationTimestamp"])
