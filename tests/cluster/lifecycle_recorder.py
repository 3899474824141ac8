"""An independent witness: watches the pods of a namespace and notes when it saw what.

Imports nothing of scaletest.

When its input ends it prints a JSON line for each pod and milestone: uid, milestone, seconds since
the epoch. Not before: a pipe that nobody reads meanwhile is full after some 900 lines, and who
writes to it sees nothing any more.
"""

import http.client
import json
import os
import ssl
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

CONDITIONS = {"PodScheduled": "scheduled", "Ready": "ready"}


def main(kubeconfig: str, namespace: str) -> None:
    config = json.loads(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    at = urlsplit(cluster["server"])
    trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
    line = http.client.HTTPSConnection(at.hostname or "", at.port, context=trust)
    line.request(
        "GET",
        f"/api/v1/namespaces/{namespace}/pods?watch=true&timeoutSeconds=3600",
        headers={"Authorization": f"Bearer {user['token']}"},
    )
    answer = line.getresponse()
    assert answer.status == 200, answer.read()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    stamps: dict[tuple[str, str], float] = {}
    threading.Thread(target=end, args=(stamps,), daemon=True).start()
    while event := answer.readline():
        now = time.time()
        pod = json.loads(event)["object"]
        for milestone in passed(pod):
            stamps.setdefault((pod["metadata"]["uid"], milestone), now)


def passed(pod: dict) -> list[str]:  # type: ignore[type-arg]
    """List the milestones that a pod has passed."""
    status = pod.get("status", {})
    milestones = ["created"]
    for condition in status.get("conditions", ()):
        if condition["type"] in CONDITIONS and condition["status"] == "True":
            milestones.append(CONDITIONS[condition["type"]])
    if status.get("phase") in ("Succeeded", "Failed"):
        milestones.append("finished")
    return milestones


def end(stamps: dict[tuple[str, str], float]) -> None:
    """Wait until standard input is closed, then print the stamps and end."""
    sys.stdin.read()
    for key, at_s in stamps.copy().items():
        sys.stdout.write(json.dumps([*key, at_s]) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
