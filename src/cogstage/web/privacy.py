"""What a served model may show of the counts that it was trained on."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from cogstage.errors import UsageError

T = TypeVar("T")
COUNTS = frozenset({"count", "ppmi", "order", "signal"})  # fields of a record that tell how often terms were counted


def without_counts(record: T) -> T:
    """The same record with no count in it, and none of the documents that were counted."""
    if isinstance(record, tuple):
        return tuple(without_counts(part) for part in record)  # type: ignore[return-value]
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name in COUNTS:
            changed[field.name] = None
        elif field.name == "examples":
            changed[field.name] = ()
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changed[field.name] = without_counts(value)
    return dataclasses.replace(record, **changed)


def privacy_warning(privacy: str, required: bool, hidden: bool) -> str | None:
    """What to say before a model is served; raises if private counts are ``required`` and these are not.

    ``privacy`` is what the model's provenance says of its graph; ``hidden`` whether counts are kept from readers.
    """
    if privacy not in ("", "none"):
        return None
    if required:
        raise UsageError(
            "the counts behind this model were never suppressed, and `require_private` asks for it; build the graph"
            " with `suppress_below` 11 or `private`, and train again"
        )
    shown = "Counts are hidden, but predictions still rest on them" if hidden else "Readers will see them"
    return (
        "The counts behind this model were never suppressed. That is right for public text. If they come from patients,"
        f" build the graph with `suppress_below` 11 or `private`. {shown}."
    )
