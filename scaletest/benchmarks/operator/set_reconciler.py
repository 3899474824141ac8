"""Reconcile a set: store its plan once, and create the next benchmarks.

Benchmarks have the names of the plan, so none is created twice; the plan holds what samples and
selectors chose.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.benchmarks.documents import Benchmark, sweep
from scaletest.benchmarks.kinds import API_VERSION
from scaletest.benchmarks.measure import operator_executor, runner
from scaletest.benchmarks.objects import config_maps, manifests, owned_objects
from scaletest.benchmarks.operator import benchmark_reconciler, reporting, set_status
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.cluster.api_calls import Busy, Missing, Refused
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import CONFIG_MAPS, Resource
from scaletest.model import checks, errors, wire, wording

SETS = Resource("BenchmarkSet", f"/apis/{API_VERSION}", "benchmarksets", True)
SET = "scaletest.dev/set"  # label with the name of a benchmark's set
PLAN = "plan.json.gz"  # key of the ConfigMap with the plan
MOST_PLAN = 900_000  # characters: the API server takes objects of up to about 1.5 MB
MOST_REMEMBERED = 64  # plans: sets that were deleted leave theirs behind
MOST_AT_ONCE = 64  # benchmarks of a set that run on different nodes
# By namespace and uid of a set: its benchmarks that the index has, each as `child_by_owner` makes
# it. Those that were created a moment ago may be missing.
Children = Callable[[str, str], Iterable[Document]]


def child_by_owner(document: Mapping[str, Any]) -> Mapping[tuple[str, str], Document]:
    """Return the part of a benchmark that its set needs, by the set's namespace and uid."""
    meta = document["metadata"]
    current = document.get("status") or {}
    part = {
        "metadata": {"name": meta["name"]},
        # the fields that results are computed from
        "status": {
            key: current[key] for key in ("phase", "failure", "message", "values") if key in current
        },
    }
    return {
        (meta["namespace"], owner["uid"]): part
        for owner in meta.get("ownerReferences", ())
        if owner["kind"] == SETS.kind
    }


def reconcile(
    objects: ObjectClient,
    namespace: str,
    name: str,
    settings: reporting.ReconcileSettings,
    children: Children,
) -> str:
    """Bring a set forward; return its phase if that has changed, else ""."""
    return reporting.run_pass(
        SETS,
        objects,
        namespace,
        name,
        lambda document: _SetPass(SETS, objects, namespace, settings, document, children),
    )


@dataclass(frozen=True, slots=True)
class _SetPass(reporting.ReconcilePass):
    """One reconcile pass over a set."""

    children: Children

    def act(self) -> tuple[Document, str]:
        """Act once; return the status then, and what an event says of it. Raises Busy."""
        old_status = self.document.get("status") or {}
        now_s = self.settings.clock()
        try:
            new_status = self._advance()
        except Busy:
            raise
        except config_maps.Damaged as error:
            new_status = set_status.refused_status(
                old_status, f"{error.message}; {error.remedy}", now_s
            )
        except (errors.UsageError, Refused) as error:
            new_status = set_status.refused_status(
                old_status, f"{error.message}; {wording.as_options(error.hint)}", now_s
            )
        except (errors.Unreachable, Missing) as error:
            new_status = set_status.hindered_status(
                old_status, f"{error.message}; {wording.as_options(error.hint)}", now_s
            )
        except owned_objects.NameConflict as error:
            new_status = set_status.hindered_status(old_status, str(error), now_s)
        return new_status, new_status["conditions"][0]["message"]

    def _advance(self) -> Document:
        """Create the benchmarks that may start; return the status then."""
        uid = self.document["metadata"]["uid"]
        plan = self._load_plan()
        created = {child["metadata"]["name"]: child for child in self.children(self.namespace, uid)}
        # the index may be late, and a benchmark that it lacks occupies its nodes all the same
        new = self.settings.new_children.setdefault(uid, {})
        for benchmark in [planned for planned in plan.benchmarks if planned.name in new]:
            unseen = None
            if benchmark.name not in created:
                unseen = self.objects.find(
                    operator_executor.resource_of(benchmark.kind), self.namespace, benchmark.name
                )
            if unseen is not None and config_maps.is_owned(unseen, uid):
                created[benchmark.name] = unseen
            else:
                # the index has it now, or it was deleted
                del new[benchmark.name]
        if not self.document["spec"].get("paused"):
            self._create_startable(plan, created, new)
        new_status = set_status.status_of(self.document, plan, created, self.settings.clock())
        if "finishedAt" in new_status:
            del self.settings.new_children[uid]
            self.settings.plans.pop(uid, None)
        return new_status

    def _load_plan(self) -> BenchmarkPlan:
        """Return the stored plan, made if there is none.

        Raises NameConflict when another set has its name, and InvalidValue for a plan that is too
        large, and for bad names.
        """
        meta, plans = self.document["metadata"], self.settings.plans
        if remembered := plans.get(meta["uid"]):
            return remembered
        name = f"{meta['name']}-plan"
        stored = self.objects.find(CONFIG_MAPS, self.namespace, name)
        if stored is None:
            # made without what the API server adds to the set, such as managedFields
            requested = {
                "apiVersion": API_VERSION,
                "kind": "BenchmarkSet",
                "metadata": {"name": meta["name"]},
                "spec": self.document["spec"],
            }
            plan, _ = sweep.plan_of(requested, lambda: operator_executor.nodes_of(self.objects))
            for benchmark in plan.benchmarks:
                manifests.require_runnable(benchmark)
            text = wire.dump(plan.to_dict())
            data = config_maps.pack_text(text)
            checks.raise_first_mistake(
                (
                    len(data) > MOST_PLAN or len(text.encode()) > config_maps.MOST_UNPACKED,
                    f"the plan has {len(text.encode())} bytes, which is too large to store",
                    "split the set into smaller ones",
                )
            )
            body = {
                "metadata": {
                    "name": name,
                    "ownerReferences": [reporting.owner_reference(self.document)],
                    "labels": {SET: meta["name"]},
                },
                "binaryData": {PLAN: data},
            }
            stored = self.objects.create(CONFIG_MAPS, self.namespace, body)
        if stored is None or not config_maps.is_owned(stored, meta["uid"]):
            raise owned_objects.NameConflict(
                f"the ConfigMap {name} exists and belongs to something else"
            )
        plan = config_maps.read_packed(stored, PLAN, BenchmarkPlan.from_dict)
        if len(plans) >= MOST_REMEMBERED:
            plans.clear()
        plans[meta["uid"]] = plan
        return plan

    def _create_startable(
        self, plan: BenchmarkPlan, created: dict[str, Document], new: dict[str, bool]
    ) -> None:
        """Create the benchmarks that may start now, and add them to `created` and `new`.

        Raises NameConflict when another owner has the name of one.
        """
        if set_status.is_stopped(plan, created):
            return
        waiting: list[Benchmark] = []
        running: list[Benchmark] = []
        for benchmark in plan.benchmarks:
            if benchmark.name not in created:
                waiting.append(benchmark)
            elif not reporting.has_ended(created[benchmark.name]):
                running.append(benchmark)
        # one at a time, unless they may run at the same time on different nodes
        while waiting and len(running) < (MOST_AT_ONCE if plan.disjoint else 1):
            startable = runner.first_startable(waiting, running)
            if startable is None:
                return
            waiting.remove(startable)
            running.append(startable)
            new[startable.name] = True
            labels = {SET: self.document["metadata"]["name"]}
            if plan.disjoint:
                labels[benchmark_reconciler.TOGETHER] = "true"
            # created, or found if an earlier pass was killed right after that
            body, path = startable.document(), operator_executor.resource_of(startable.kind)
            body["metadata"] |= {
                "labels": labels,
                "annotations": {
                    "scaletest.dev/permutation": str(startable.permutation),
                    "scaletest.dev/repetition": str(startable.repetition),
                },
                "ownerReferences": [reporting.owner_reference(self.document)],
            }
            child = self.objects.create(path, self.namespace, body)
            child = child or self.objects.find(path, self.namespace, startable.name)
            if child is None or not config_maps.is_owned(child, self.document["metadata"]["uid"]):
                raise owned_objects.NameConflict(
                    f"there is another {startable.kind.name} named {startable.name}; delete it, or"
                    " rename the set"
                )
            created[startable.name] = child
