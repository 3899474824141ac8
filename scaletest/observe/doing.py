"""What a thread does: it can run, or is blocked, in a state and on an object."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from scaletest.model.activity import State

_RANK = {state: rank for rank, state in enumerate(State)}
# Tried in this order: the first pattern that matches the name of the kernel function decides.
_FUNCTIONS: Sequence[tuple[re.Pattern[str], State]] = [
    (re.compile(pattern), state)
    for pattern, state in (
        (r"locks_lock|flock_lock|posix_lock|fcntl_setlk|nlmclnt", State.FILE_LOCK),
        (r"futex|semop|semtimedop", State.LOCK),
        (r"nanosleep", State.SLEEP),
        (r"do_wait|kernel_wait|vfork|kernel_clone", State.CHILD),
        (r"accept|signal|sigsuspend|sigtimedwait|pause|ptrace", State.IDLE),
        (r"pipe|fifo|wait_for_partner|mq_|msgrcv|msgsnd|wq_sleep", State.PIPE),
        (
            r"dma_fence|dma_resv|drm_|i915|^xe_|amdgpu|ttm_|nvidia|uvm_|^nv_|kfd_|ib_uverbs",
            State.DEVICE,
        ),
        (r"mem_cgroup|reclaim|shrink_|swap|compact|oom|userfault", State.MEMORY),
        (r"^sk_|skb_|inet|tcp|udp|unix_|sock|wait_woken|rpc_|nfs|ceph|cifs|smb", State.NETWORK),
        (
            r"io_schedule|folio|page|_bit|buffer|blk|bio|jbd2|ext4|xfs|btrfs|f2fs|zfs|dio|balance_dirty|^wb_|writeback"
            r"|rq_qos|wbt|fuse|request_wait_answer|rwsem|sync|filemap|iterate|nvme|scsi|read_events|io_cqring",
            State.DISK,
        ),
    )
]


class Doing(NamedTuple):
    """Activity of a thread. state: None while it runs or could run."""

    state: State | None
    object: str = ""

    @property
    def rank(self) -> tuple[int, bool]:
        """The most active comes first, and of those the one whose object is known."""
        return -1 if self.state is None else _RANK[self.state], not self.object


RUNNABLE = Doing(None)
UNKNOWN = Doing(State.NOT_OBSERVED)
_LETTERS = {
    "R": RUNNABLE,
    "D": Doing(State.DISK),
    "T": Doing(State.IDLE),
    "t": Doing(State.IDLE),
}


def of_function(name: str) -> State | None:
    """Return the state of a thread that sleeps in this kernel function; None for an unknown
    function.
    """
    return next((state for pattern, state in _FUNCTIONS if pattern.search(name)), None)


def of_letter(letter: str) -> Doing:
    """Return the activity of a thread as far as its state letter says."""
    return _LETTERS.get(letter, UNKNOWN)
