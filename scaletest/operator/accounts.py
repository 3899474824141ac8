"""The accounts of benchmarks that use the cluster themselves: there, and with the rights that they need, or refused.

Who may make benchmarks may use every account of the namespace, as who may make pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scaletest.benchmarks.cluster_objects import ClusterObjects as Reads
from scaletest.cluster.documents import ACCOUNTS, Busy
from scaletest.cluster.rights import NEEDED, PROXY, Right
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.common import ActingSpec
from scaletest.kinds.lifecycle import LifecycleSpec
from scaletest.kinds.validation import ValidationSpec
from scaletest.lifecycle.kinds import ALIASES
from scaletest.model.errors import Unreachable, UsageError

# What lifecycle run asks for of each object, and of those that it only watches.
MADE, WATCHED = ("list", "watch", "create", "patch", "delete"), ("list", "watch")
_JOBS, _PODS = ("batch", "jobs"), ("", "pods")
_OBJECTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "job": (_JOBS, _PODS),
    "indexed-job": (_JOBS, _PODS),
    "deployment": (("apps", "deployments"), _PODS),
    "statefulset": (("apps", "statefulsets"), _PODS),
    "pod": (_PODS,),
    "jobset": (("jobset.x-k8s.io", "jobsets"), _JOBS, _PODS),
    "scaledjob": (("keda.sh", "scaledjobs"), _JOBS, _PODS),
    "pytorchjob": (("kubeflow.org", "pytorchjobs"), _PODS),
}


def rights(one: Benchmark) -> tuple[Right, ...]:
    """What a benchmark does to the cluster; nothing for most."""
    match one.spec:
        case ValidationSpec(deployment=name) if name:
            return (*NEEDED, PROXY)
        case LifecycleSpec(workload_type=name):
            made, *watched = _OBJECTS.get(ALIASES.get(name, name), (_PODS,))
            pairs = [(made, MADE), *((one, WATCHED) for one in watched)]
            return tuple(Right(verb, group, what) for (group, what), verbs in pairs for verb in verbs)
    return ()


def with_account(one: Benchmark, defaults: Mapping[str, str]) -> Benchmark:
    """The benchmark with the operator's account for its kind, where it needs one and names none."""
    spec, default = one.spec, defaults.get(one.kind.name, "")
    if not isinstance(spec, ActingSpec) or not rights(one) or spec.service_account_name:
        return one
    return replace(one, spec=replace(spec, service_account_name=default))


def check(one: Benchmark, objects: Reads, namespace: str) -> None:
    """Raises UsageError when the account is missing, or a right of it; Busy when that cannot be told now."""
    wanted = rights(one)
    if not wanted:
        return
    name, where = getattr(one.spec, "service_account_name", ""), getattr(one.spec, "namespace", "") or namespace
    hint = "docs/how-to/operator.md says which rights it needs"
    if not name:
        raise UsageError(f"{one.kind.name} acts on the cluster, and names no account", hint="set serviceAccountName")
    try:
        if objects.find(ACCOUNTS, namespace, name) is None:
            raise UsageError(f"there is no service account {name} in {namespace}", hint=hint)
        lacking = [right for right in wanted if not objects.may(where, namespace, name, right)]
    except Busy:
        raise
    except Unreachable as error:
        raise UsageError(f"what {name} may do in {where} is not known: {error.message}", hint=error.hint) from error
    if lacking:
        raise UsageError(f"the service account {name} may not {', '.join(map(str, lacking))} in {where}", hint=hint)
