"""Ask which API groups the API server serves. Every authenticated user may; no Role is needed."""

from scaletest.cluster.api_calls import ApiCalls, Cluster


def api_groups(cluster: Cluster) -> set[str]:
    """Return the names of the API groups that are served or registered."""
    answer = ApiCalls(cluster).get("/apis", "list the API groups", "get /apis")
    return {str(group["name"]) for group in answer["groups"]}
