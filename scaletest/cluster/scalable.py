"""Objects that can be scaled, by a reference such as statefulset/NAME or KIND.GROUP/NAME.

Any kind with the subresource /scale will do, if that is the number in spec.replicas, as it nearly
always is: the number is set and noted in one change of the object.
"""

from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.resources import DEPLOYMENTS, STATEFUL_SETS, Resource
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue, UsageError

KNOWN = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), DEPLOYMENTS),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), STATEFUL_SETS),
}


def find_scalable(cluster: Cluster, text: str) -> tuple[Resource, str]:
    """Return the kind and name of NAME (a Deployment), KIND/NAME or KIND.GROUP/NAME.

    UsageError for a kind that the API server does not serve or cannot scale.
    """
    kind, slash, name = text.rpartition("/")
    if not slash:
        return DEPLOYMENTS, text
    kind, _, group = kind.lower().partition(".")
    if kind in KNOWN and group in ("", "apps"):
        return KNOWN[kind], name
    if not group or not name:
        raise InvalidValue(
            f"{cut_text(text, 80)!r} names no object that can be scaled",
            hint="give NAME of a Deployment, statefulset/NAME, or KIND.GROUP/NAME",
        )
    api = ApiCalls(cluster)
    served = api.get(f"/apis/{group}", f"read the API group {group}", f"get /apis/{group}")
    path = f"/apis/{served['preferredVersion']['groupVersion']}"
    # kinds by their plurals, and subresources, which have a slash in their names
    rows = {
        str(row["name"]): row for row in api.get(path, f"read {path}", f"get {path}")["resources"]
    }
    for plural, row in rows.items():
        if kind in (plural, str(row["kind"]).lower()) and f"{plural}/scale" in rows:
            return Resource(str(row["kind"]), path, plural, bool(row["namespaced"])), name
    raise UsageError(
        f"{kind}.{group} is no kind with the subresource /scale",
        hint=f"look at: kubectl api-resources --api-group={group}",
    )
