"""The JSON Schema of the prediction record, generated from its dataclasses and their docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from typing import Any

from cogstage.rationale.record import SCHEMA_VERSION, Prediction

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


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
    definitions: dict[str, Any] = {}
    _value(Prediction, definitions, prefix)
    definitions[Prediction.__name__]["properties"]["schema"] = {
        "const": SCHEMA_VERSION,
        "description": "Version of the record.",
    }
    return definitions


def _object(cls: type, definitions: dict[str, Any], prefix: str) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")]
    meaning = _attributes(cls)
    return {
        "type": "object",
        "description": (cls.__doc__ or "").split("\n\n")[0].strip(),
        "properties": {
            name: _value(hints[name], definitions, prefix) | {"description": meaning[name]} for name in names
        },
        "required": names,
        "additionalProperties": False,
    }


def _attributes(cls: type) -> dict[str, str]:
    """Read the section Attributes of a docstring: the meaning of each field."""
    found = re.search(r"\nAttributes\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+\n|$)", inspect.getdoc(cls) or "", re.S)
    entries = re.findall(r"^(\w.*)\n((?:    .*\n?)+)", found[1] if found else "", re.M)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def _value(hint: Any, definitions: dict[str, Any], prefix: str) -> dict[str, Any]:
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _object(hint, definitions, prefix)
        return {"$ref": f"{prefix}{hint.__name__}"}
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _value(typing.get_args(hint)[0], definitions, prefix)}
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        choices = [_value(part, definitions, prefix) for part in typing.get_args(hint) if part is not type(None)]
        return {"anyOf": [*choices, {"type": "null"}]}
    raise TypeError(f"no JSON form for {hint}")
