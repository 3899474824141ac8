"""System calls and kernel functions give the state of the thread that they block."""

import pytest

from scaletest.model import State
from scaletest.observe.doing import WaitKind, call_kinds, of_function
from scaletest.processes import proc


def test_a_line_of_proc_syscall_gives_number_arguments_and_stack() -> None:
    line = b"230 0x0 0x0 0x7ffca4bd9450 0x7ffca4bd9490 0x0 0x0 0x7ffca4bd9438 0x7ff7f3c31503\n"
    call = proc.parse_call(line)
    assert call == (230, (0, 0, 0x7FFCA4BD9450, 0x7FFCA4BD9490, 0, 0), 0x7FFCA4BD9438)
    assert call_kinds("x86_64")[call.number] is WaitKind.SLEEP
    assert proc.parse_call(b"running\n") is None
    assert proc.parse_call(b"-1 0x7ffc 0x401000\n") == (-1, (), 0x7FFC)
    # a dead thread has no stack
    assert proc.parse_call(b"-1 0x0 0x0\n") == (-1, (), 0)


@pytest.mark.parametrize(
    ("intel", "arm", "kind"),
    [
        (73, 32, WaitKind.FLOCK),
        (202, 98, WaitKind.FUTEX),
        (0, 63, WaitKind.DESCRIPTOR),
        (232, 22, WaitKind.EPOLL),
        (11, 215, State.MEMORY),
    ],
)
def test_numbers_of_system_calls_differ_by_architecture(
    intel: int, arm: int, kind: WaitKind | State
) -> None:
    assert (
        call_kinds("x86_64")[intel]
        is call_kinds("aarch64")[arm]
        is call_kinds("arm64")[arm]
        is kind
    )
    assert not call_kinds("riscv64")


FUNCTIONS = {
    "locks_lock_inode_wait": State.FILE_LOCK,
    "futex_do_wait": State.LOCK,
    "do_semtimedop": State.LOCK,
    "hrtimer_nanosleep": State.SLEEP,
    "do_wait": State.CHILD,
    "anon_pipe_read": State.PIPE,
    "wait_woken": State.NETWORK,
    "unix_stream_read_generic": State.NETWORK,
    "sk_stream_wait_memory": State.NETWORK,
    "inet_csk_accept": State.IDLE,
    "sigsuspend": State.IDLE,
    "io_schedule": State.DISK,
    "folio_wait_bit_common": State.DISK,
    "jbd2_log_wait_commit": State.DISK,
    "balance_dirty_pages": State.DISK,
    "submit_bio_wait": State.DISK,
    "mem_cgroup_handle_over_high": State.MEMORY,
    "do_swap_page": State.MEMORY,
    "i915_request_wait_timeout": State.DEVICE,
    "dma_fence_default_wait": State.DEVICE,
    "xe_exec_ioctl": State.DEVICE,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernel_functions_map_to_wait_states(name: str) -> None:
    assert of_function(name) is FUNCTIONS[name]


def test_an_unknown_kernel_function_has_no_state() -> None:
    assert of_function("something_else") is None
