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
    """Return a warning to show before a model is served; raise if protection is ``required`` and missing.

    ``privacy`` is the protection recorded in the model's provenance; ``hidden`` says whether counts are hidden.
    """
    if privacy not in ("", "none"):
        return None
    if required:
        raise UsageError(
            "the counts of this model are not protected, but `require_private` is set; build the graph"
            " with `suppress_below` 11 or `private`, and train again"
        )
    shown = "Counts are hidden, but predictions still depend on them" if hidden else "All users can see the counts"
    return (
        "The counts of this model are not protected. This is fine for public text. If they come from patients,"
        f" build the graph with `suppress_below` 11 or `private`. {shown}."
    )
