"""RQ's scheduler in a thread of a worker: it enqueues jobs that are due.

Those are delayed and repeated jobs, and retries that wait. RQ would fork a process for it, which
would outlive a killed worker, and hold the pipe by which the worker's guard notices that death.
"""

import logging
from typing import Any, cast

from redis import WatchError
from rq import SimpleWorker
from rq.exceptions import NoSuchJobError
from rq.job import Job
from rq.scheduler import RQScheduler
from rq.scripts import release_lock
from rq.serializers import JSONSerializer

from scaletest.broker import keys
from scaletest.broker.connection import Redis, connect_again
from scaletest.broker.queue_state import living_workers, text_of
from scaletest.broker.redis_errors import excuse_outage, is_transient
from scaletest.processes.periodic import Periodic

logger = logging.getLogger("scaletest.worker")

# How often due jobs are enqueued, and how often a worker without the lock asks for it.
ENQUEUE_EVERY_S = 1.0
ASK_FOR_LOCK_EVERY_S = 5.0
REDIS_TIMEOUT_S = 10.0
# How the lock's value begins that a worker of ours holds.
OWNER = "worker:"


class _LockedRedis(Redis):
    """A client whose transactions fail once another worker has the lock.

    RQ reads what is due and enqueues it in two steps. A worker that was frozen in between would
    otherwise enqueue jobs again that have run meanwhile.
    """

    lock_key: str
    owner: str

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """Return a transaction that counts only while the lock is ours."""
        pipe: Any = super().pipeline(transaction, shard_hint)
        pipe.watch(self.lock_key)
        if pipe.get(self.lock_key) != self.owner.encode():
            pipe.reset()
            raise WatchError("another worker has the lock of the scheduler")
        pipe.multi()
        return pipe


class Scheduling:
    """Schedules one queue while its worker has RQ's lock; asks for the lock otherwise."""

    def __init__(self, worker: SimpleWorker) -> None:
        """Prepare the thread for the queue that `worker` serves."""
        self._queue = worker.queues[0].name
        owner = f"{OWNER}{worker.name}"
        self._plain_redis = connect_again(worker.connection, REDIS_TIMEOUT_S)
        self._redis = _LockedRedis(connection_pool=self._plain_redis.connection_pool)
        self._redis.lock_key = RQScheduler.get_locking_key(self._queue)
        self._redis.owner = owner
        self._scheduler = cast(
            Any,
            RQScheduler(
                [self._queue],
                self._redis,
                logging_level=logging.WARNING,
                serializer=JSONSerializer,
                name=owner,
            ),
        )
        self._scheduler._connection = self._redis
        self._pause_s = 0.0
        self._thread = Periodic("scheduler", self._step, lambda: self._pause_s)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and give the lock back."""
        self._thread.close()
        if self._scheduler.acquired_locks:
            with excuse_outage():
                self._scheduler.stop()
        self._redis.connection_pool.disconnect()

    def _step(self) -> None:
        """Enqueue what is due, or ask for the lock."""
        scheduler = self._scheduler
        try:
            with excuse_outage():
                if not scheduler.acquired_locks:
                    self._release_for_dead_holder()
                    if scheduler.acquire_locks():
                        scheduler.register_birth()
                if scheduler.acquired_locks:
                    scheduler.heartbeat()
                    self._enqueue_due()
        except WatchError:
            scheduler._acquired_locks = set()  # it expired, or another worker has it: ask again
        except Exception:
            logger.exception("the scheduler of queue %s failed, trying again", self._queue)
        self._pause_s = ENQUEUE_EVERY_S
        if not scheduler.acquired_locks:
            self._pause_s = ASK_FOR_LOCK_EVERY_S
            self._redis.connection_pool.disconnect()  # a connection a worker is too many

    def _release_for_dead_holder(self) -> None:
        """Take the lock from a worker that died.

        It would expire by itself only after a minute, and never when Redis's clock is set back.
        """
        holder = text_of(self._redis.get(self._redis.lock_key))
        living = living_workers(self._plain_redis, self._queue)
        if holder.startswith(OWNER) and holder.removeprefix(OWNER).encode() not in living:
            release_lock(self._redis, self._redis.lock_key, holder)

    def _enqueue_due(self) -> None:
        """Enqueue due jobs by RQ's code, which ends at the first job that cannot be read."""
        scheduler = self._scheduler
        try:
            scheduler.enqueue_scheduled_jobs()
        except Exception as error:
            if is_transient(error) or isinstance(error, WatchError):
                raise
            # a worker refuses such a job with the reason, and the next turn enqueues the others
            (registry,) = scheduler._scheduled_job_registries
            for job_id in registry.get_jobs_to_schedule():
                try:
                    Job.fetch(job_id, self._redis, JSONSerializer)
                except NoSuchJobError:
                    registry.remove(job_id)
                except Exception as fault:
                    if is_transient(fault):
                        raise
                    with self._redis.pipeline() as pipe:
                        registry.remove(job_id, pipeline=pipe)
                        pipe.rpush(keys.rq_queue(self._queue), job_id)
                        pipe.execute()
