"""Compression of random and equal bytes, as a benchmark kind with a tool of its own."""

from __future__ import annotations

import argparse
import json
import random
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.benchmarks.kinds import parsing
from scaletest.benchmarks.kinds.failure import fail_if
from scaletest.benchmarks.kinds.kind import (
    ExecutionSite,
    Headline,
    Kind,
    Part,
    Task,
    ToolMeasurement,
    ToolOutput,
    bind_to_cpus,
)
from scaletest.benchmarks.kinds.spec import CommonSpec


@dataclass(frozen=True, kw_only=True)
class CompressionSpec(CommonSpec):
    """What people write below `spec:`, and sweep. Each field has its default, help and rules."""

    level: Annotated[int, Meta(ge=1, le=9), "Level of zlib, 1 is the fastest."] = 6
    mebibytes: Annotated[int, Meta(ge=1, le=65536), "Size of what is compressed."] = 64


def tasks(spec: CompressionSpec, site: ExecutionSite) -> Sequence[Task]:
    """Return the command of each part. This kind has one; site.python is the place's own."""
    options = ("--level", str(spec.level), "--mebibytes", str(spec.mebibytes))
    return [Task("worker", 0, bind_to_cpus(spec, [*site.python, "-m", __name__, *options]))]


def parse(spec: CompressionSpec, output: ToolOutput) -> ToolMeasurement:
    """Return the numbers that the tool printed; BenchmarkFailed says why there are none."""
    parsing.check_exit(output, "compression")
    document = parsing.json_object(output.stdout, "compression")
    before = parsing.positive(document, "bytes")
    fail_if(
        before != spec.mebibytes * 2**20, f"it compressed {before:.0f} bytes, not what was asked"
    )
    headlines = {
        "throughput": before / parsing.positive(document, "seconds"),
        "ratio": before / parsing.positive(document, "compressed_bytes"),
    }
    return ToolMeasurement(headlines=headlines, result=document)


KIND = Kind(
    name="Compression",
    plural="compressions",
    help="Throughput and ratio of zlib.",
    spec=CompressionSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: (),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 60 + spec.mebibytes,
    headlines=(
        Headline("throughput", "throughput", "B/s", True, "Bytes that went in, per second."),
        Headline("ratio", "ratio", "", True, "Bytes that went in, for each that came out."),
    ),
    columns=("level", "mebibytes"),
)


def main() -> None:
    """Run the tool: compress, and print the figures as one object of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", type=int, required=True)
    parser.add_argument("--mebibytes", type=int, required=True)
    options = parser.parse_args()
    block = random.Random(1).randbytes(2**19) + bytes(2**19)
    compressor = zlib.compressobj(options.level)
    began = time.perf_counter()
    size = sum(len(compressor.compress(block)) for _ in range(options.mebibytes))
    size += len(compressor.flush())
    figures = {
        "bytes": options.mebibytes * len(block),
        "compressed_bytes": size,
        "seconds": time.perf_counter() - began,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
