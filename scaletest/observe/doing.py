"""What a thread does: it can run, or is blocked, in a state and on an object.

And what the kernel's functions and system calls tell of that.
"""

import platform
import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
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
_COLUMNS = {"x86_64": 0, "aarch64": 1, "arm64": 1}
# The commands of fcntl that wait for a lock, F_SETLKW and F_OFD_SETLKW, on both architectures.
LOCK_COMMANDS = (7, 38)


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
# By the letter of a thread's state in /proc, as far as that says what it does.
OF_LETTERS = {
    "R": RUNNABLE,
    "D": Doing(State.DISK),
    "T": Doing(State.IDLE),
    "t": Doing(State.IDLE),
}


def of_function(name: str) -> State | None:
    """Return the state of a thread that sleeps in this kernel function.

    None for an unknown function.
    """
    return next((state for pattern, state in _FUNCTIONS if pattern.search(name)), None)


class WaitKind(Enum):
    """Kinds of blocking system calls whose arguments tell what the thread waits for."""

    DESCRIPTOR = auto()
    CONNECT = auto()
    FLOCK = auto()
    FCNTL = auto()
    FUTEX = auto()
    POLL = auto()
    SELECT = auto()
    EPOLL = auto()
    SEMAPHORES = auto()  # of System V, by the id of the set
    QUEUE = auto()  # of messages, System V's, by its id
    SEND = auto()  # to an address, unless the socket is connected
    RING = auto()  # of io_uring, for what was asked there
    SLEEP = auto()


# (x86_64, aarch64); None where the architecture has no such call. A state: of calls that wait for
# nothing else.
_NUMBERS: Mapping[WaitKind | State, Mapping[str, tuple[int | None, int | None]]] = {
    WaitKind.DESCRIPTOR: {
        "read": (0, 63),
        "write": (1, 64),
        "ioctl": (16, 29),
        "pread64": (17, 67),
        "pwrite64": (18, 68),
        "readv": (19, 65),
        "writev": (20, 66),
        "sendfile": (40, 71),
        "recvfrom": (45, 207),
        "sendmsg": (46, 211),
        "recvmsg": (47, 212),
        "fsync": (74, 82),
        "fdatasync": (75, 83),
        "ftruncate": (77, 46),
        "getdents": (78, None),
        "getdents64": (217, 61),
        "splice": (275, 76),
        "tee": (276, 77),
        "sync_file_range": (277, 84),
        "vmsplice": (278, 75),
        "fallocate": (285, 47),
        "preadv": (295, 69),
        "pwritev": (296, 70),
        "recvmmsg": (299, 243),
        "sendmmsg": (307, 269),
        "copy_file_range": (326, 285),
        "preadv2": (327, 286),
        "pwritev2": (328, 287),
    },
    WaitKind.CONNECT: {"connect": (42, 203)},
    WaitKind.SEND: {"sendto": (44, 206)},
    WaitKind.SEMAPHORES: {"semop": (65, 193), "semtimedop": (220, 192)},
    WaitKind.QUEUE: {"msgsnd": (69, 189), "msgrcv": (70, 188)},
    State.IDLE: {
        "accept": (43, 202),
        "accept4": (288, 242),
        "pause": (34, None),
        "rt_sigtimedwait": (128, 137),
        "rt_sigsuspend": (130, 133),
    },
    WaitKind.FLOCK: {"flock": (73, 32)},
    WaitKind.FCNTL: {"fcntl": (72, 25)},
    WaitKind.FUTEX: {"futex": (202, 98)},
    # those of futexes have the flags and the address elsewhere than futex has
    State.LOCK: {
        "futex_waitv": (449, 449),
        "futex_wait": (455, 455),
    },
    State.PIPE: {
        "mq_timedsend": (242, 182),
        "mq_timedreceive": (243, 183),
    },
    WaitKind.SLEEP: {"nanosleep": (35, 101), "clock_nanosleep": (230, 115)},
    State.CHILD: {"wait4": (61, 260), "waitid": (247, 95), "vfork": (58, None)},
    WaitKind.POLL: {"poll": (7, None), "ppoll": (271, 73)},
    WaitKind.SELECT: {"select": (23, None), "pselect6": (270, 72)},
    WaitKind.EPOLL: {
        "epoll_wait": (232, None),
        "epoll_pwait": (281, 22),
        "epoll_pwait2": (441, 441),
    },
    WaitKind.RING: {"io_uring_enter": (426, 426)},
    State.DISK: {"sync": (162, 81), "syncfs": (306, 267), "msync": (26, 227)},
    # they wait for the lock of the address space, or for pages
    State.MEMORY: {
        "mmap": (9, 222),
        "mprotect": (10, 226),
        "munmap": (11, 215),
        "brk": (12, 214),
        "mremap": (25, 216),
        "madvise": (28, 233),
    },
}


def call_kinds(machine: str = "") -> Mapping[int, WaitKind | State]:
    """Return the kind of each number on this machine's architecture; empty for an unknown one."""
    column = _COLUMNS.get(machine or platform.machine())
    if column is None:
        return {}
    kinds: dict[int | None, WaitKind | State] = {}
    for kind, names in _NUMBERS.items():
        kinds.update(dict.fromkeys((numbers[column] for numbers in names.values()), kind))
    return {number: kind for number, kind in kinds.items() if number is not None}
