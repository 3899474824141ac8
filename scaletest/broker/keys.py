"""Names of all keys, in one place, so that each is documented and its removal is known.

scaletest:queues             hash    queue -> JSON {maximum, note}
scaletest:queue:<q>:counters hash    submitted, rejected, the five outcomes, requeued, stale,
                                     undelivered
scaletest:queue:<q>:ended    string  ended requests as 64-bit numbers: outcomes, wait and run times,
                                     slots (model/ended.py)
scaletest:queue:<q>:wait     hash    bucket -> count of wait times, from workers of earlier versions
scaletest:queue:<q>:run      hash    bucket -> count of run times, from workers of earlier versions
scaletest:queue:<q>:slots    hash    submissions in each of the last ten-second slots, and where the
                                     longest run was
scaletest:queue:<q>:paused   string  present while the queue is paused
scaletest:queue:<q>:taking   list    target of workers' blocking moves, empty but for an instant;
                                     reapers put back what lies there
scaletest:leases:<q>         zset    <request>:<attempt>:<worker> -> deadline in microseconds
scaletest:workers:<q>        zset    worker -> deadline in microseconds
scaletest:suspects:<q>       set     workers whose requests fail at once
scaletest:samples:<q>        stream  about the last 2000 samples of its nodes (broker/samples.py)
scaletest:samplers:<q>       hash    node -> the worker that samples it, while that worker lives
scaletest:reaps:<q>          string  time of the next reaping by its workers (lua/turn.lua); expires
                                     after a minute
scaletest:clients            zset    client -> deadline in microseconds
scaletest:client:<id>        hash    call, answer: the client's last call number and the answer to
                                     it
scaletest:replies:<id>       stream  replies to one client; entries are deleted when read
scaletest:cancelled:<id>     set     ids that a client takes out of its queue now; '' as well when
                                     the set is complete
scaletest:device:<node>:<id> zset  <slot>:<worker>:<nonce> -> deadline in microseconds; id: PCI
                                   address or device number
scaletest:devices            set     the keys of devices that have leases
scaletest:settled:<id>:<n>:<worker>:<taken> string  when attempt n was settled, for two minutes
scaletest:intervals          zset    heartbeat interval in microseconds, two digits -> the latest
                                     deadline of those that beat at it
scaletest:agents:<id>:<part>         keys of load agents: plan, joined, orders:<n>, done:<n>, stop;
                                     expire after 10 minutes, the plan when nobody renews it
scaletest:pulse              string  when Redis was last seen alive by a heartbeat, microseconds
scaletest:standstill         string  how far the clock of deadlines is behind Redis's, microseconds
                                     (lua/pulse.lua)

All keys begin with RQ's prefix: under `RQ_KEY_PREFIX=lab` RQ's keys are `lab:*` and ours
`lab:scaletest:*`, so two installations can share a Redis. Under `{lab}` all keys are in one hash
slot.
"""

from __future__ import annotations

from rq.defaults import RQ_KEY_PREFIX

# Prefixes of RQ's keys and of our keys.
RQ = f"{RQ_KEY_PREFIX}:"
OWN = "scaletest:" if RQ_KEY_PREFIX == "rq" else f"{RQ}scaletest:"

QUEUES = f"{OWN}queues"
CLIENTS = f"{OWN}clients"
PULSE = f"{OWN}pulse"
STANDSTILL = f"{OWN}standstill"
DEVICES = f"{OWN}devices"
INTERVALS = f"{OWN}intervals"

RQ_QUEUES = f"{RQ}queues"
RQ_SUSPENDED = f"{RQ}suspended"
RQ_WORKERS = f"{RQ}workers"


def own_queue(queue: str) -> str:
    """The beginning of a queue's keys."""
    return f"{OWN}queue:{queue}"


def counters(queue: str) -> str:
    """Hash of counters."""
    return f"{own_queue(queue)}:counters"


def ended(queue: str) -> str:
    """Numbers that count ended requests (model/ended.py)."""
    return f"{own_queue(queue)}:ended"


def wait(queue: str) -> str:
    """Histogram of wait times of requests that workers of earlier versions ended."""
    return f"{own_queue(queue)}:wait"


def run(queue: str) -> str:
    """Histogram of run times of requests that workers of earlier versions ended."""
    return f"{own_queue(queue)}:run"


def slots(queue: str) -> str:
    """Ring of ten-second slots."""
    return f"{own_queue(queue)}:slots"


def paused(queue: str) -> str:
    """String that is present while the queue is paused."""
    return f"{own_queue(queue)}:paused"


def leases(queue: str) -> str:
    """Leases of running requests."""
    return f"{OWN}leases:{queue}"


def workers(queue: str) -> str:
    """Deadlines of the queue's workers."""
    return f"{OWN}workers:{queue}"


def suspects(queue: str) -> str:
    """The queue's suspect workers."""
    return f"{OWN}suspects:{queue}"


def samples(queue: str) -> str:
    """Samples of the nodes of the queue's workers."""
    return f"{OWN}samples:{queue}"


def samplers(queue: str) -> str:
    """Hash of the worker that samples each node."""
    return f"{OWN}samplers:{queue}"


def reaps(queue: str) -> str:
    """Time when one of the queue's workers reaps it next."""
    return f"{OWN}reaps:{queue}"


def client(name: str) -> str:
    """A client's last call."""
    return f"{OWN}client:{name}"


def replies(name: str) -> str:
    """A client's stream of replies."""
    return f"{OWN}replies:{name}"


def cancelled(name: str) -> str:
    """Set of ids that a client is cancelling."""
    return f"{OWN}cancelled:{name}"


def taking(queue: str) -> str:
    """Target of blocking moves."""
    return f"{own_queue(queue)}:taking"


def device(node: str, identity: str) -> str:
    """Leases of the slots of one device of a node."""
    return f"{OWN}device:{node}:{identity}"


def settled(execution: str) -> str:
    """When an attempt was settled outside the fast lane."""
    return f"{OWN}settled:{execution}"


def agents(rendezvous: str, part: str) -> str:
    """A part of a rendezvous of load agents."""
    return f"{OWN}agents:{rendezvous}:{part}"


def rq_queue(queue: str) -> str:
    """RQ's list of waiting job ids."""
    return f"{RQ}queue:{queue}"


def rq_job(request: str) -> str:
    """RQ's hash of a job."""
    return f"{RQ}job:{request}"


def rq_results(request: str) -> str:
    """RQ's stream of a job's results."""
    return f"{RQ}results:{request}"


def rq_execution(execution: str) -> str:
    """RQ's hash of an execution."""
    return f"{RQ}execution:{execution}"


def rq_executions(request: str) -> str:
    """RQ's executions of a job."""
    return f"{RQ}executions:{request}"


def rq_started(queue: str) -> str:
    """RQ's registry of started jobs."""
    return f"{RQ}wip:{queue}"


def rq_failed(queue: str) -> str:
    """RQ's registry of failed jobs."""
    return f"{RQ}failed:{queue}"


def rq_finished(queue: str) -> str:
    """RQ's registry of finished jobs."""
    return f"{RQ}finished:{queue}"


def rq_worker(worker: str) -> str:
    """RQ's hash of a worker."""
    return f"{RQ}worker:{worker}"


def rq_queue_workers(queue: str) -> str:
    """RQ's set of worker keys of a queue."""
    return f"{RQ}workers:{queue}"


def of_queue(queue: str) -> list[str]:
    """Our own keys of a queue, to delete when the queue is removed."""
    own = [counters(queue), ended(queue), wait(queue), run(queue), slots(queue), paused(queue)]
    own += [taking(queue), leases(queue), workers(queue), suspects(queue), samples(queue)]
    return [*own, samplers(queue), reaps(queue)]
