"""Documents checked against the schemas that `scaletest config schema` publishes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonschema

from scaletest.model.schema import DOCUMENTS


@lru_cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The validator of a document."""
    schema = DOCUMENTS[name]()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def checked(document: dict[str, Any], name: str = "result") -> dict[str, Any]:
    """The document, when it is one of that name; else the test fails and says where it is not."""
    wrong = [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)]
    assert not wrong, "\n".join(wrong)
    return document
