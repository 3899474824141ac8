"""Build the command line of Open MPI, for the kinds that use it.

Hosts have names, as Open MPI accepts no IPv6 addresses. mpirun's daemon is started on other nodes
by the executor's agent, or by ssh with the executor's configuration, which has the names in a hosts
file.
"""

from collections import Counter

from scaletest.benchmarks.kinds import RDMA, TCP, ExecutionSite, MpiSpec

HOSTFILE = "hosts"
_TRANSPORTS = {
    RDMA: "-x UCX_TLS=self,rc_x --mca btl ^openib --mca pml ucx --mca osc ucx",
    TCP: "--mca btl self,tcp --mca pml ob1 --mca osc ^ucx",
}


def hostfile(site: ExecutionSite, slots: int) -> str:
    """Write the hostfile: one line for each host, with the slots of all its workers."""
    workers_by_host = Counter(peer.host for peer in site.peers["worker"])
    return "".join(f"{host} slots={slots * count}\n" for host, count in workers_by_host.items())


def is_one_host(site: ExecutionSite) -> bool:
    """Check whether all workers are on one host, connected only by the loopback interface."""
    return len({peer.host for peer in site.peers["worker"]}) == 1


def command_prefix(spec: MpiSpec, site: ExecutionSite, processes: int, mapping: str) -> list[str]:
    """Return mpirun and its options, before the program's name."""
    argv = [
        *("mpirun", "--allow-run-as-root", "--display-map", "--hostfile", HOSTFILE),
        *("-np", str(processes), "--map-by", "slot" if is_one_host(site) else mapping),
        # nodes that are one machine have the same cores: all ranks would share the first
        *("--bind-to", "none"),
    ]
    if site.agent:
        # such nodes share the cores: a rank that waits must let the other one run
        argv += ["--mca", "plm_rsh_agent", site.agent, "--mca", "mpi_yield_when_idle", "1"]
    if site.ssh:
        # only the master knows the hosts' names, so the daemons of workers must not start others
        argv += ["--mca", "plm_rsh_args", f"-F {site.ssh}", "--mca", "plm_rsh_no_tree_spawn", "1"]
    if is_one_host(site):
        # Open MPI ignores the loopback interface by default
        argv += ["--mca", "btl_tcp_if_include", "lo"]
    argv += _TRANSPORTS[spec.transport].split()
    # the other address family is turned off, since Open MPI tries every address of a node
    return [*argv, "--mca", "btl_tcp_disable_family", "6" if spec.ip_family == "IPv4" else "4"]
