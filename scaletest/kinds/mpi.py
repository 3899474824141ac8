"""Arguments of Open MPI that its kinds share. Hosts are given by name, since it takes no IPv6 address for one.

mpirun's daemon is started on other nodes by the executor's agent, or by ssh with the executor's configuration, which
finds the names in the hosts file that the executor makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scaletest.kinds.common import RDMA, MpiSpec
from scaletest.kinds.kind import ExecutionSite

HOSTFILE = "hosts"


def hostfile(site: ExecutionSite, slots: int) -> str:
    """One line a host; several workers on one host have their slots there together."""
    hosts = Counter(peer.host for peer in site.peers["worker"])
    return "".join(f"{host} slots={slots * count}\n" for host, count in hosts.items())


def one_host(site: ExecutionSite) -> bool:
    """Whether all workers are on one host, where only the loopback interface is between them."""
    return len({peer.host for peer in site.peers["worker"]}) == 1


def mpirun(spec: MpiSpec, site: ExecutionSite, processes: int, mapping: str) -> list[str]:
    """mpirun and its options, up to the program's name."""
    line = ["mpirun", "--allow-run-as-root", "--display-map", "--hostfile", HOSTFILE, "-np", str(processes)]
    line += ["--map-by", "slot" if one_host(site) else mapping]
    # two nodes that are one machine have the same cores: bound to them, all ranks would share the first
    line += ["--bind-to", "none"]
    if site.agent:
        # nodes that are one machine share its cores too: a rank that waits must not keep the other from running
        line += ["--mca", "plm_rsh_agent", site.agent, "--mca", "mpi_yield_when_idle", "1"]
    if site.ssh:
        # only the master has the hosts' names, so the daemons of many workers do not start each other
        line += ["--mca", "plm_rsh_args", f"-F {site.ssh}", "--mca", "plm_rsh_no_tree_spawn", "1"]
    if one_host(site):
        # left out otherwise, as it leads nowhere
        line += ["--mca", "btl_tcp_if_include", "lo"]
    return [*line, *_transport(spec), *_family(spec)]


def _transport(spec: MpiSpec) -> Sequence[str]:
    if spec.transport == RDMA:
        return ("-x", "UCX_TLS=self,rc_x", "--mca", "btl", "^openib", "--mca", "pml", "ucx", "--mca", "osc", "ucx")
    return ("--mca", "btl", "self,tcp", "--mca", "pml", "ob1", "--mca", "osc", "^ucx")


def _family(spec: MpiSpec) -> Sequence[str]:
    """Open MPI tries every address that a node has; the other family is switched off so that data cannot use it."""
    return ("--mca", "btl_tcp_disable_family", "6" if spec.ip_family == "IPv4" else "4")
