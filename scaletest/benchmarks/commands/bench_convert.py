"""scaletest bench convert: write documents of kube-perftest as ours."""

from collections.abc import Mapping

import click
import cloup
import yaml

from scaletest.benchmarks.documents import benchmark, sweep
from scaletest.cli.output import echo
from scaletest.documents import reader
from scaletest.model import checks


@cloup.command("convert")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, allow_dash=True))
def command(file: str) -> None:
    """Convert kube-perftest's YAML, one or several documents, to ours, on stdout. -: stdin.

    \b
    scaletest bench convert theirs.yaml > ours.yaml
    scaletest bench convert theirs.yaml | kubectl apply -f -
    """
    hint = "give a file with benchmarks or sets of kube-perftest"
    documents = reader.read_all(reader.text_of(file, file, hint), file, hint)
    checks.raise_first_mistake((not documents, f"{file} contains no document", hint))
    converted = []
    for document in documents:
        warnings: list[str] = []
        body = benchmark.read_envelope(document, warnings)
        # refuse what cannot be measured; but a matrix may choose among the nodes of a cluster,
        # which are not known here
        if not (isinstance(body["spec"], Mapping) and body["spec"].get("matrix")):
            warnings += sweep.plan_of(body, lambda: ())[1]
        for warning in warnings:
            echo(f"{body['kind']}: {warning}", err=True)
        converted.append({key: part for key, part in body.items() if key != "status"})
    echo(yaml.safe_dump_all(converted, sort_keys=False), nl=False)
