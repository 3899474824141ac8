"""Names of all keys, in one place, so that each is documented and its removal is known.

scaletest:queues             hash    queue -> JSON {maximum, note}
scaletest:queue:<q>:counters hash    submitted, rejected, the five outcomes, requeued, stale,
                                     undelivered
scaletest:queue:<q>:ended    string  ended requests as 64-bit numbers: outcomes, wait and run times,
                                     slots (model/queue_counts.py)
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
scaletest:failures:<q>       stream  the last 100 requests that failed or timed out
                                     (broker/failures.py); nothing while none did
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
                                     expire after 10 minutes, the plan unless it is renewed
scaletest:pulse              string  when Redis was last seen alive by a heartbeat, microseconds
scaletest:standstill         string  how far the clock of deadlines is behind Redis's, microseconds
                                     (lua/pulse.lua)

All keys begin with RQ's prefix: under `RQ_KEY_PREFIX=lab` RQ's keys are `lab:*` and ours
`lab:scaletest:*`, so two installations can share a Redis. Under `{lab}` all keys are in one hash
slot.
"""

from collections.abc import Callable

from rq.defaults import RQ_KEY_PREFIX

# Prefixes of RQ's keys and of our keys.
RQ = f"{RQ_KEY_PREFIX}:"
OWN = "scaletest:" if RQ_KEY_PREFIX == "rq" else f"{RQ}scaletest:"

QUEUES = f"{OWN}queues"
CLIENTS = f"{OWN}clients"
PULSE = f"{OWN}pulse"
STANDSTILL = f"{OWN}standstill"
DEVICES = f"{OWN}devices"

RQ_QUEUES = f"{RQ}queues"
RQ_SUSPENDED = f"{RQ}suspended"
RQ_WORKERS = f"{RQ}workers"
# The beginning of a queue's keys.
OWN_QUEUE = f"{OWN}queue:"


def _key_of(prefix: str, suffix: str = "") -> Callable[[str], str]:
    """Return a function that makes the key of a queue, client, request or worker by its name."""

    def key(name: str) -> str:
        return f"{prefix}{name}{suffix}"

    return key


# Hash of counters.
counters = _key_of(OWN_QUEUE, ":counters")
# Numbers that count ended requests (model/queue_counts.py).
ended = _key_of(OWN_QUEUE, ":ended")
# Ring of ten-second slots.
slots = _key_of(OWN_QUEUE, ":slots")
# String that is present while the queue is paused.
paused = _key_of(OWN_QUEUE, ":paused")
# Leases of running requests.
leases = _key_of(f"{OWN}leases:")
# Deadlines of the queue's workers.
workers = _key_of(f"{OWN}workers:")
# The queue's suspect workers.
suspects = _key_of(f"{OWN}suspects:")
# Samples of the nodes of the queue's workers.
samples = _key_of(f"{OWN}samples:")
# Hash of the worker that samples each node.
samplers = _key_of(f"{OWN}samplers:")
# The queue's last failures.
failures = _key_of(f"{OWN}failures:")
# Time when one of the queue's workers reaps it next.
reaps = _key_of(f"{OWN}reaps:")
# A client's last call.
client = _key_of(f"{OWN}client:")
# A client's stream of replies.
replies = _key_of(f"{OWN}replies:")
# Set of ids that a client is cancelling.
cancelled = _key_of(f"{OWN}cancelled:")
# Target of blocking moves.
taking = _key_of(OWN_QUEUE, ":taking")
# RQ's list of waiting job ids.
rq_queue = _key_of(f"{RQ}queue:")
# RQ's hash of a job.
rq_job = _key_of(f"{RQ}job:")
# RQ's stream of a job's results.
rq_results = _key_of(f"{RQ}results:")
# RQ's registry of started jobs.
rq_started = _key_of(f"{RQ}wip:")
# RQ's registry of failed jobs.
rq_failed = _key_of(f"{RQ}failed:")
# RQ's registry of finished jobs.
rq_finished = _key_of(f"{RQ}finished:")
# RQ's registry of scheduled jobs.
rq_scheduled = _key_of(f"{RQ}scheduled:")
# The lock of RQ's scheduler.
rq_scheduler_lock = _key_of(f"{RQ}scheduler-lock:")
# RQ's hash of a worker.
rq_worker = _key_of(f"{RQ}worker:")
# RQ's set of worker keys of a queue.
rq_queue_workers = _key_of(f"{RQ}workers:")


def device(node: str, identity: str) -> str:
    """Return the key of the leases of one device of a node."""
    return f"{OWN}device:{node}:{identity}"


def agents(rendezvous: str, part: str) -> str:
    """Return the key of a part of a rendezvous of load agents."""
    return f"{OWN}agents:{rendezvous}:{part}"


def of_queue(queue: str) -> list[str]:
    """Return our own keys of a queue, to delete when the queue is removed."""
    return [
        counters(queue),
        ended(queue),
        slots(queue),
        paused(queue),
        taking(queue),
        leases(queue),
        workers(queue),
        suspects(queue),
        samples(queue),
        samplers(queue),
        failures(queue),
        reaps(queue),
    ]
