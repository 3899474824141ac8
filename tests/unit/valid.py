"""Documents checked against the schemas that `scaletest schema` publishes."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema

from scaletest.cli.schema import documents

DOCUMENTS = documents()


@lru_cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The validator of a document."""
    schema = DOCUMENTS[name]()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


# What lies in the folder of a lifecycle run, and what each is, whole or line by line.
FILES = {
    "plan.json": "lifecycle",
    "environment.json": "environment",
    "result.json": "lifecycle-result",
    "submissions.jsonl": "lifecycle-submission",
    "records.jsonl": "lifecycle-record",
}


def fits(folder: Path) -> set[str]:
    """Check every such file of the folder; the names of those that are there."""
    names = {name for name in FILES if (folder / name).exists()}
    for name in names:
        text = (folder / name).read_text("utf-8")
        for part in text.splitlines() if name.endswith("jsonl") else [text]:
            checked(json.loads(part), FILES[name])
    return names


def checked(document: dict[str, Any], name: str = "result") -> dict[str, Any]:
    """The document, when it is one of that name; else the test fails and says where it is not."""
    wrong = [
        f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)
    ]
    assert not wrong, "\n".join(wrong)
    return document
