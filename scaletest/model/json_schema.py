"""JSON Schemas (draft 2020-12), made from the classes of documents, without references."""

import dataclasses
import functools
import itertools
import operator
import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from scaletest.model.declared import declaration_of, is_enum
from scaletest.model.wording import as_arguments
from scaletest.model.writing import DocumentMember, document_members, to_plain

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_JSON_TYPES: Mapping[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
}
# Keywords of msgspec, and those of schemas.
_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
# The keyword for the largest length, by the type in schemas.
_LENGTHS = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}
VERSION: Schema = {"type": "integer", "minimum": 1, "description": "version of the format"}


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How schemas are made of classes."""

    # whether people write the document: they use the keys that are declared for files, may leave
    # out what has a default, and write durations with a unit
    is_file: bool = False

    def properties(self, class_: type) -> dict[str, Schema]:
        """Return the schemas of the members of a class's documents."""
        constants = {} if self.is_file else getattr(class_, "constants", {})
        schemas: dict[str, Schema] = {name: {"const": value} for name, value in constants.items()}
        if "schema_version" in constants:
            schemas["schema_version"] = {**VERSION, "minimum": constants["schema_version"]}
        for member in document_members(class_):
            schema = self.schema(member.hint)
            has_default = member.default is not dataclasses.MISSING
            # the schema of a class has the defaults of its members
            if has_default and not dataclasses.is_dataclass(member.default):
                schema["default"] = to_plain(member.default)
            # files cannot have members without a key
            if key := self._key(member):
                schemas[key] = schema
        return schemas

    def schema(self, hint: Any) -> Schema:
        """Return the schema of values of a type, with all that is declared of it."""
        rule = declaration_of(hint)
        schema = self._of_type(rule.base)
        if rule.choices:
            schema["enum"] = [*rule.choices, *rule.extra.get("aliases", ())]
        schema |= rule.extra.get("schema", {})
        for name, limit in rule.limits.items():
            keyword = _LENGTHS[str(schema["type"])] if name == "max_length" else _KEYWORDS[name]
            # \Z is Python's alone
            schema[keyword] = limit.replace(r"\Z", "$") if name == "pattern" else limit
        if self.is_file and rule.is_duration:
            schema["type"] = ["number", "string"]
        if rule.optional:
            schema["type"] = list(dict.fromkeys([*type_names(schema), "null"]))
        description = as_arguments(rule.description)
        return {**schema, "description": description} if description else schema

    def _key(self, member: DocumentMember) -> str:
        return member.key if self.is_file else member.name

    def _of_type(self, base: Any) -> Schema:
        """Return the schema of a type, without what is declared of it."""
        origin, arguments = get_origin(base), get_args(base)
        if base in _JSON_TYPES:
            return {"type": _JSON_TYPES[base]}
        if base is Any:
            return {}
        if is_enum(base):
            return {"type": "string"}
        if origin in (Union, types.UnionType):
            # a keyword of one type does not concern the values of another
            alternatives = [self.schema(inner) for inner in arguments if inner is not type(None)]
            json_types = sorted(set(itertools.chain.from_iterable(map(type_names, alternatives))))
            return {**functools.reduce(operator.or_, alternatives), "type": json_types}
        if origin in (tuple, list, Sequence):
            return {"type": "array", "items": self.schema(arguments[0])}
        if origin in (dict, Mapping):
            names = {} if arguments[0] is str else {"propertyNames": self.schema(arguments[0])}
            return {"type": "object", **names, "additionalProperties": self.schema(arguments[1])}
        if dataclasses.is_dataclass(base):
            return self.object(base)
        raise TypeError(f"no schema for {base!r}")

    def object(self, class_: Any) -> Schema:
        """Return the schema of a class's documents."""
        always = getattr(class_, "always", None)
        optional = [
            self._key(member)
            for member in document_members(class_)
            if (self.is_file and member.default is not dataclasses.MISSING)
            or (always is not None and member.name not in always)
        ]
        schema = object_schema(self.properties(class_), optional)
        description = getattr(class_, "description", "")
        # where a field has such a name, it is not text
        if isinstance(description, str) and description:
            schema["description"] = description
        return schema


def object_schema(properties: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """Return the schema of an object with these members; the optional ones may be missing."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def document_schema(name: str, schema: Schema) -> Schema:
    """Return the schema of a whole document, version 1."""
    return {
        "$schema": DRAFT,
        "$id": f"urn:scaletest:{name}:1",
        "title": f"scaletest {name}",
        **schema,
    }


def class_schema(name: str, description: str, class_: type, form: Form | None = None) -> Schema:
    """Return the schema of a class's documents as a whole."""
    return document_schema(name, {**(form or Form()).object(class_), "description": description})


def json_type(hint: Any) -> str:
    """Return the JSON type of a type's values, null aside."""
    return type_names(Form().schema(hint))[0]


def type_names(schema: Schema) -> Sequence[str]:
    """Return the JSON types of a schema's values."""
    names = schema.get("type", "any")
    return [names] if isinstance(names, str) else names
