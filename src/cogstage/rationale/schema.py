"""The JSON Schema of the prediction record: pydantic reads the dataclasses, their docstrings describe the fields."""

from __future__ import annotations

import inspect
import re
from typing import Any, NoReturn

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit

from cogstage.graph.kept_examples import Example
from cogstage.rationale import evidence
from cogstage.rationale.record import SCHEMA_VERSION, Prediction, record_type


def prediction_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of one prediction record."""
    definitions = record_schemas("#/$defs/")
    root = definitions.pop(Prediction.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cogstage prediction",
        **root,
        "$defs": definitions,
    }


def record_schemas(prefix: str) -> dict[str, Any]:
    """The schema of every part of the record by name, referring to each other as ``prefix`` + name."""
    root = record_type().json_schema(
        ref_template=prefix + "{model}", schema_generator=_PublicFields, mode="serialization"
    )
    definitions: dict[str, Any] = {**root.pop("$defs"), Prediction.__name__: root}
    for name, definition in definitions.items():
        cls = {"Prediction": Prediction, "Example": Example}.get(name) or getattr(evidence, name)
        meaning = _attributes(cls)
        properties = definition["properties"]
        for field, value in properties.items():
            value.pop("title", None)
            value.pop("default", None)
            value["description"] = meaning[field]
        definition |= {"description": (cls.__doc__ or "").split("\n\n")[0].strip(), "required": list(properties)}
        definition["additionalProperties"] = False
        del definition["title"]
    definitions[Prediction.__name__]["properties"]["schema"] = {
        "const": SCHEMA_VERSION,
        "description": "Version of the record.",
    }
    _add_derived(definitions[Prediction.__name__], definitions["ProfileEntry"]["properties"])
    return definitions


def _add_derived(record: dict[str, Any], entry: dict[str, Any]) -> None:
    """Describe the fields that are written for readers of the file and computed again when a record is read."""
    record["properties"] |= {
        "verdict": entry["verdict"],
        "contradicted_by": entry["contradicted_by"],
        "statement": {"type": "string", "description": "The verdict in one sentence."},
    }
    record["required"] = list(record["properties"])


class _PublicFields(GenerateJsonSchema):
    """Leaves out the function with which a record asks its model again."""

    def callable_schema(self, schema: Any) -> NoReturn:
        raise PydanticOmit


def _attributes(cls: type) -> dict[str, str]:
    """Read the section Attributes of a docstring: the meaning of each field."""
    section = re.search(r"\nAttributes\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+\n|$)", inspect.getdoc(cls) or "", re.S)
    entries = re.findall(r"^(\w.*)\n((?:    .*\n?)+)", section[1] if section else "", re.M)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}
