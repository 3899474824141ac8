"""What RQ's tools show of a worker: the fields that its heartbeat writes into RQ's hash of the
worker.
"""

from __future__ import annotations

from rq import SimpleWorker

from workers.runtime import Runtime


def count(worker: SimpleWorker, succeeded: bool, run_s: float) -> None:
    """Count an execution in the figures that heartbeats tell, which are the only ones written."""
    worker.total_working_time += run_s
    if succeeded:
        worker.successful_job_count += 1
    else:
        worker.failed_job_count += 1


def details(worker: SimpleWorker, runtime: Runtime) -> dict[str, str | int | float]:
    """Fields of the hash by name, as RQ writes them; node and pod are ours."""
    return {
        "successful_job_count": worker.successful_job_count,
        "failed_job_count": worker.failed_job_count,
        "total_working_time": round(worker.total_working_time, 6),
        "hostname": worker.hostname or "",
        "queues": worker.queues[0].name,
        "pid": worker.pid or 0,
        "birth": f"{worker.birth_date:%Y-%m-%dT%H:%M:%S.%fZ}" if worker.birth_date else "",
        "version": worker.version,
        "python_version": worker.python_version,
        "ip_address": worker.ip_address,
        "node": runtime.node,
        "pod": runtime.pod,
    }
