"""Command line of Open MPI for the kinds that use it.

Hosts have names, as it accepts no IPv6 addresses.

mpirun's daemon is started on other nodes by the executor's agent, or by ssh with the executor's
configuration, which has the names in a hosts file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scaletest.kinds.common import RDMA, MpiSpec
from scaletest.kinds.kind import ExecutionSite

HOSTFILE = "hosts"


def hostfile(site: ExecutionSite, slots: int) -> str:
    """The hostfile: one line for each host, with the slots of all its workers."""
    hosts = Counter(peer.host for peer in site.peers["worker"])
    return "".join(f"{host} slots={slots * count}\n" for host, count in hosts.items())


def one_host(site: ExecutionSite) -> bool:
    """Whether all workers are on one host, where only the loopback interface connects them."""
    return len({peer.host for peer in site.peers["worker"]}) == 1


def mpirun(spec: MpiSpec, site: ExecutionSite, processes: int, mapping: str) -> list[str]:
    """mpirun and its options, before the program's name."""
    line = [
        "mpirun",
        "--allow-run-as-root",
        "--display-map",
        "--hostfile",
        HOSTFILE,
        "-np",
        str(processes),
    ]
    line += ["--map-by", "slot" if one_host(site) else mapping]
    # nodes that are one machine have the same cores: with binding all ranks would share the first
    line += ["--bind-to", "none"]
    if site.agent:
        # such nodes share the cores: a rank that waits must let the other one run
        line += ["--mca", "plm_rsh_agent", site.agent, "--mca", "mpi_yield_when_idle", "1"]
    if site.ssh:
        # only the master knows the hosts' names, so the daemons of workers must not start others
        line += ["--mca", "plm_rsh_args", f"-F {site.ssh}", "--mca", "plm_rsh_no_tree_spawn", "1"]
    if one_host(site):
        # Open MPI ignores the loopback interface by default
        line += ["--mca", "btl_tcp_if_include", "lo"]
    return [*line, *_transport(spec), *_family(spec)]


def _transport(spec: MpiSpec) -> Sequence[str]:
    if spec.transport == RDMA:
        return (
            "-x",
            "UCX_TLS=self,rc_x",
            "--mca",
            "btl",
            "^openib",
            "--mca",
            "pml",
            "ucx",
            "--mca",
            "osc",
            "ucx",
        )
    return ("--mca", "btl", "self,tcp", "--mca", "pml", "ob1", "--mca", "osc", "^ucx")


def _family(spec: MpiSpec) -> Sequence[str]:
    """Turn the other address family off, since Open MPI tries every address of a node."""
    return ("--mca", "btl_tcp_disable_family", "6" if spec.ip_family == "IPv4" else "4")
