"""Service accounts of benchmarks that use the Kubernetes API, and the check of their rights.

Whoever may create benchmarks may use every service account of the namespace, as with pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scaletest.cluster.objects import ACCOUNTS, Busy, Documents
from scaletest.cluster.rights import NEEDED, PROXY, Right
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.kind import ActingSpec
from scaletest.kinds.own_commands import LifecycleSpec, ValidationSpec
from scaletest.lifecycle.kinds import ALIASES
from scaletest.model import checks
from scaletest.model.errors import Unreachable, UsageError

# Verbs that `lifecycle run` needs for objects that it creates, and for those it only watches.
CREATE_VERBS, WATCH_VERBS = ("list", "watch", "create", "patch", "delete"), ("list", "watch")
_JOBS, _PODS = ("batch", "jobs"), ("", "pods")
# Group and plural by workload type: of the object that is created, and of what follows from it.
_RESOURCES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "job": (_JOBS, _PODS),
    "indexed-job": (_JOBS, _PODS),
    "deployment": (("apps", "deployments"), _PODS),
    "statefulset": (("apps", "statefulsets"), _PODS),
    "pod": (_PODS,),
    "jobset": (("jobset.x-k8s.io", "jobsets"), _JOBS, _PODS),
    "scaledjob": (("keda.sh", "scaledjobs"), _JOBS, _PODS),
    "pytorchjob": (("kubeflow.org", "pytorchjobs"), _PODS),
}


def rights(benchmark: Benchmark) -> tuple[Right, ...]:
    """Rights that a benchmark needs in the cluster; none for most."""
    match benchmark.spec:
        case ValidationSpec(deployment=name) if name:
            return (*NEEDED, PROXY)
        case LifecycleSpec(workload_type=name):
            created, *watched = _RESOURCES.get(ALIASES.get(name, name), (_PODS,))
            wanted = [Right(verb, *created) for verb in CREATE_VERBS]
            for resource in watched:
                wanted += [Right(verb, *resource) for verb in WATCH_VERBS]
            return tuple(wanted)
    return ()


def with_account(benchmark: Benchmark, defaults: Mapping[str, str]) -> Benchmark:
    """The benchmark with the operator's account for its kind, where it needs one and names none."""
    spec, default = benchmark.spec, defaults.get(benchmark.kind.name, "")
    if not isinstance(spec, ActingSpec) or not rights(benchmark) or spec.service_account_name:
        return benchmark
    return replace(benchmark, spec=replace(spec, service_account_name=default))


def check(benchmark: Benchmark, objects: Documents, namespace: str) -> None:
    """Raises UsageError without the account or its rights; Busy when they are unknown now."""
    wanted = rights(benchmark)
    if not wanted:
        return
    name = getattr(benchmark.spec, "service_account_name", "")
    target = getattr(benchmark.spec, "namespace", "") or namespace
    hint = "docs/how-to/operator.md lists the rights that it needs"
    checks.refuse(
        (
            not name,
            f"{benchmark.kind.name} uses the Kubernetes API, but names no service account",
            "set serviceAccountName",
        )
    )
    try:
        checks.refuse(
            (
                objects.find(ACCOUNTS, namespace, name) is None,
                f"there is no service account {name} in namespace {namespace}",
                hint,
            )
        )
        lacking = [right for right in wanted if not objects.may(target, namespace, name, right)]
    except Busy:
        raise
    except Unreachable as error:
        raise UsageError(
            f"cannot check the rights of service account {name} in namespace {target}:"
            f" {error.message}",
            hint=error.hint,
        ) from error
    checks.refuse(
        (
            lacking,
            f"the service account {name} may not {', '.join(map(str, lacking))} in namespace"
            f" {target}",
            hint,
        )
    )
