"""Measure bandwidth, operations and latencies of storage by fio: servers on workers, one client.

Results have percentiles, but not fio's histogram bins, which would make them grow with the workers.
fio reports bandwidth in KiB/s and in bytes per second; the latter is used everywhere.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import mul
from typing import Annotated, Any

from msgspec import Meta

from scaletest.benchmarks.kinds import (
    CrowdSpec,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    Task,
    ToolMeasurement,
    ToolOutput,
    bind_to_cpus,
    fail_if,
    master_and_workers,
    parsing,
)
from scaletest.model import checks, declared

JOB = "job.fio"  # the end of the names of job files
FILES = "data"  # the folder of test files in that of a worker
ALL = "All clients"  # fio's name of the row with the sum of its clients
SIDES = ("read", "write")
SIZE = r"\d{1,15}[KMGTPkmgtp]?"
_UNITS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MIXED = ("readwrite", "randrw")

Row = dict[str, Any]  # fio's results of a worker, of a job, or their sum


@dataclass(frozen=True, kw_only=True)
class FioSpec(CrowdSpec):
    """Spec of Fio. Fields and defaults are those of kube-perftest's CRD, not of its README."""

    rw: Annotated[
        str,
        declared.choice(("read", "write", "randread", "randwrite", "readwrite", "randrw")),
        declared.text_aliases({"rw": "readwrite", "rw,readwrite": "readwrite"}),
        "Access pattern.",
    ] = "read"
    bs: Annotated[str, declared.text(SIZE, "a size, e.g. 4k or 1M"), "Block size."] = "4M"
    iodepth: Annotated[int, Meta(ge=1, le=65536), "Operations in flight for each job."] = 1
    ioengine: Annotated[
        str,
        declared.choice(("libaio", "io_uring", "psync", "posixaio")),
        "fio's engine for input and output.",
    ] = "libaio"
    nrfiles: Annotated[int, Meta(ge=1), "Files for each job."] = 1
    num_jobs: Annotated[int, Meta(ge=1, le=4096), "Jobs on each worker."] = 1
    rwmixread: Annotated[
        int, Meta(ge=0, le=100), "Percent of reads when reads and writes are mixed."
    ] = 50
    percentage_random: Annotated[
        int, Meta(ge=0, le=100), "Percent of random operations in random modes."
    ] = 100
    direct: Annotated[int, Meta(ge=0, le=1), "1: bypass the page cache."] = 1
    runtime: Annotated[
        str,
        declared.text(r"\d{1,9}(us|ms|s|m|h)?", "a time, e.g. 30s"),
        "Duration of the measurement.",
    ] = "30s"
    size: Annotated[
        str, declared.text(SIZE, "a size, e.g. 10G"), "Total size of the files of each job."
    ] = "10G"
    thread: Annotated[bool, "Use threads instead of processes."] = False
    num_workers: Annotated[int, Meta(ge=1, le=1000), "Workers, each with a fio server."] = 1
    fio_port: Annotated[int, Meta(ge=1024, le=65535), "Port of the servers."] = 8765
    volume_claim_template: Annotated[
        Mapping[str, Any],
        "Spec of a volume claim: with ReadWriteMany one for all workers, else one for each; empty:"
        " none.",
    ] = field(default_factory=dict)
    volume: Annotated[Mapping[str, Any], "A volume, such as an emptyDir or an existing claim."] = (
        field(default_factory=dict)
    )
    directory: Annotated[
        str,
        declared.TRUSTED,
        "Directory of the test files on the worker; empty: a scratch directory.",
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.raise_first_mistake(
            (
                self.volume and self.volume_claim_template,
                "volume and volumeClaimTemplate exclude each other",
                "leave one of them out",
            ),
            (
                parse_seconds(self.runtime) < 1,
                f"runtime {self.runtime} is too short",
                "give one second or more",
            ),
            (
                self.directory and not re.fullmatch(r"/[^:\n]*", self.directory),
                f"directory {self.directory!r} is not a plain path",
                "give a path, e.g. /data",
            ),
        )


def parse_seconds(text: str) -> float:
    """Return a duration of fio in seconds."""
    digits = "".join(character for character in text if character.isdigit())
    return float(digits) * _UNITS[text[len(digits) :]]


def parse_bytes(text: str) -> float:
    """Return a size of fio in bytes; its letters are powers of 1024."""
    letter = text[-1].upper()
    if letter.isdigit():
        return float(text)
    return float(text[:-1]) * 1024.0 ** (1 + "KMGTP".index(letter))


def job_file(spec: FioSpec, directory: str = FILES) -> str:
    """Write the job file of fio."""
    options = {
        "rw": spec.rw,
        "bs": spec.bs,
        "iodepth": spec.iodepth,
        "ioengine": spec.ioengine,
        "nrfiles": spec.nrfiles,
        "numjobs": spec.num_jobs,
        "rwmixread": spec.rwmixread,
        "direct": spec.direct,
        "runtime": spec.runtime,
        "time_based": 1,
        "size": spec.size,
        "thread": int(spec.thread),
        "directory": spec.directory or directory,
        "group_reporting": 1,
        "unlink": 1,
    }
    # a sequential pattern has no random operations
    if spec.rw.startswith("rand"):
        options["percentage_random"] = spec.percentage_random
    return "[scaletest]\n" + "".join(f"{name}={setting}\n" for name, setting in options.items())


def tasks(spec: FioSpec, site: ExecutionSite) -> Sequence[Task]:
    """Run a server on each worker, and a client on the master, with a job file for each server."""
    servers, job_files = [], {}
    client = ["fio", "--output-format=json"]
    for worker in site.peers["worker"]:
        scheme = "ip6" if spec.ip_family == "IPv6" else "ip"
        address = f"{scheme}:{worker.address},{spec.fio_port}"
        folder = f"{worker.folder}/{FILES}"
        servers.append(
            Task(
                "worker",
                worker.index,
                bind_to_cpus(spec, ("fio", f"--server={address}")),
                before=(("mkdir", "-p", spec.directory or folder),),
                port=spec.fio_port,
            )
        )
        job_files[f"{worker.index}-{JOB}"] = job_file(spec, folder)
        client += [f"--client={address}", f"{worker.index}-{JOB}"]
    return (*servers, Task("master", 0, tuple(client), files=job_files))


def parse(spec: FioSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse fio's JSON, of a client or a single run.

    Raises BenchmarkFailed unless all workers did what the spec asks for.
    """
    # its exit code counts at once only without JSON, which says more of what failed
    if "{" not in output.stdout:
        parsing.check_exit(output, "fio")
    report = parsing.json_object(output.stdout, "fio")
    # results by worker or job, and their sum
    rows: list[Row] = parsing.part_at(report, "client_stats") or parsing.part_at(report, "jobs")
    fail_if(
        not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows),
        "fio's report has neither client_stats nor jobs",
        list(map(str, report)),
    )
    errors = [f"error {row['error']}" for row in rows if row.get("error")]
    fail_if(
        errors,
        "fio reports a failed job",
        [line for line in output.text.splitlines() if "fio:" in line] or errors[:1],
        failure=Failure.EXIT,
    )
    parsing.check_exit(output, "fio")
    sums = [row for row in rows if row.get("jobname") == ALL]
    single = [row for row in rows if row.get("jobname") != ALL]
    _check_workers(spec, single)
    _check_sums(sums, single)
    remote = ""
    if spec.num_workers == 1:
        remote = str(single[0].get("hostname") or "")
    return ToolMeasurement(
        _read_headlines(spec, sums or single),
        {"version": parsing.part_at(report, "fio version"), "jobs": list(map(_shorten, rows))},
        remote,
    )


def _check_workers(spec: FioSpec, rows: Sequence[Row]) -> None:
    """Raise BenchmarkFailed unless these are all workers, and did what the spec asks for."""
    # each worker has one row, or one for each job
    rows_by_worker = Counter((str(row.get("hostname", "")), row.get("port", "")) for row in rows)
    names = [f"{host} port {port}: {count}" for (host, port), count in rows_by_worker.items()]
    fail_if(
        len(rows_by_worker) != spec.num_workers,
        f"fio reports {len(rows_by_worker)} workers instead of {spec.num_workers}",
        names,
    )
    fail_if(
        set(rows_by_worker.values()) not in ({1}, {spec.num_jobs}),
        f"fio reports a worker neither once nor once for each of its {spec.num_jobs} jobs",
        names,
    )
    # it did the operations that the spec asks for and no others, and for its time
    sides = _sides(spec)
    for row, side in product(rows, SIDES):
        operations = parsing.number(row, side, "total_ios")
        fail_if(
            side in sides and not operations,
            f"fio reports a worker without {side}s with rw {spec.rw}",
        )
        fail_if(
            side not in sides and operations,
            f"fio reports {operations:.0f} {side}s with rw {spec.rw}",
            failure=Failure.MISMATCH,
        )
    for row in rows:
        runtime_ms = max(parsing.number(row, side, "runtime") for side in SIDES)
        parsing.check_length(runtime_ms / 1e3, parse_seconds(spec.runtime), "a worker of fio")


def _check_sums(sums: Sequence[Row], rows: Sequence[Row]) -> None:
    """Raise BenchmarkFailed unless fio's own sum, if it has one, is that of its workers."""
    fail_if(len(sums) > 1, f"fio reports the sum of all workers {len(sums)} times")
    for fio_sum, side, count in product(sums, SIDES, ("io_bytes", "total_ios")):
        reported = parsing.number(fio_sum, side, count)
        total = sum(parsing.number(row, side, count) for row in rows)
        fail_if(
            reported != total,
            f"fio's sum of {side}.{count} is {reported:.0f}, but its workers' add up to"
            f" {total:.0f}",
        )


def _read_headlines(spec: FioSpec, rows: Sequence[Row]) -> dict[str, float]:
    """Return the headlines of fio's sum, or of all its rows together, in base units."""
    headlines: dict[str, float] = {}
    for side in _sides(spec):
        counts = [parsing.number(row, side, "total_ios") for row in rows]
        means_ns = [parsing.positive(row, side, "lat_ns", "mean") for row in rows]
        headlines |= {
            f"{side}Bandwidth": sum(_rate(row, side, "bw_bytes", "io_bytes") for row in rows),
            f"{side}Iops": sum(_rate(row, side, "iops", "total_ios") for row in rows),
            f"{side}Latency": sum(map(mul, counts, means_ns)) / sum(counts) / 1e9,
        }
        # percentiles only of a single row, since they cannot be merged
        tail = (side, "clat_ns", "percentile", "99.000000")
        if len(rows) == 1 and parsing.part_at(rows[0], *tail) is not None:
            headlines[f"{side}Latency99"] = parsing.positive(rows[0], *tail) / 1e9
    return headlines


def _sides(spec: FioSpec) -> list[str]:
    """Return the directions that are measured: read, write or both."""
    if spec.rw not in _MIXED:
        return ["read" if "read" in spec.rw else "write"]
    shares = {"read": spec.rwmixread, "write": 100 - spec.rwmixread}
    return [side for side, percent in shares.items() if percent]


def _rate(row: Row, side: str, name: str, count: str) -> float:
    """Return a rate of fio. Raises BenchmarkFailed unless it is the count divided by the time."""
    rate = parsing.positive(row, side, name)
    runtime_s = parsing.positive(row, side, "runtime") / 1e3
    parsing.check_agreement(rate, parsing.number(row, side, count) / runtime_s, f"{side}.{name}")
    return rate


def _shorten(row: Row) -> dict[str, Any]:
    """Return a row without the details that no report shows: bins, depths, samples."""
    row_fields = ("jobname", "hostname", "port", "error", "usr_cpu", "sys_cpu")
    totals = ("io_bytes", "bw_bytes", "iops", "runtime", "total_ios", "short_ios", "drop_ios")
    percentiles = ("1.000000", "50.000000", "95.000000", "99.000000", "99.900000", "99.990000")
    short = parsing.pick_keys(row, row_fields)
    for side in SIDES:
        short[side] = parsing.pick_keys(row.get(side), (*totals, "lat_ns"))
        tails = parsing.part_at(row, side, "clat_ns", "percentile")
        if isinstance(tails, dict):
            short[side]["clat_ns_percentile"] = {
                name: tails[name] for name in percentiles if name in tails
            }
    return short


def laid_out_bytes(spec: FioSpec) -> float:
    """Return the size of all test files together."""
    return parse_bytes(spec.size) * spec.num_jobs * spec.num_workers


def _headlines(side: str) -> tuple[Headline, ...]:
    return (
        Headline(f"{side}Bandwidth", f"{side} bandwidth", "B/s", True, f"All {side}s together."),
        Headline(f"{side}Iops", f"{side} operations", "1/s", True, f"All {side}s together."),
        Headline(
            f"{side}Latency",
            f"mean {side} latency",
            "s",
            False,
            f"Mean of {side}s, submission included.",
        ),
        Headline(
            f"{side}Latency99",
            f"{side} latency, 99th percentile",
            "s",
            False,
            f"With one worker: 99 % of {side}s, completion only.",
        ),
    )


KIND = Kind(
    name="Fio",
    plural="fios",
    help="Bandwidth, operations and latencies of storage, by fio.",
    spec=FioSpec,
    measures="master",
    layout=lambda spec: master_and_workers(spec, spec.num_workers),
    programs=lambda spec: ("fio",),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 2 * parse_seconds(spec.runtime) + 600,
    headlines=(*_headlines("read"), *_headlines("write")),
    scratch_bytes=lambda spec: 0.0 if spec.directory else laid_out_bytes(spec),
    here={"size": "1G"},
    columns=("numJobs", "numWorkers", "rw", "bs", "rwmixread", "percentageRandom"),
)
