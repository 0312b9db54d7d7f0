"""Named options with defaults, help texts and ranges: what the configurations of both models share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cogstage.errors import UsageError

C = TypeVar("C", bound="Options")


def option(default: Any, text: str) -> Any:
    """A field of a configuration: its default and one clause that says what it does."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Options:
    """A frozen set of named options: what the configurations of both models share."""

    def replace(self: C, **changes: Any) -> C:
        """A copy with some options changed; an unknown name raises with the known ones."""
        known = {entry.name for entry in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise UsageError(f"unknown option {name}; choose one of {', '.join(sorted(known))}")
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in ``config.json``."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[C], values: Mapping[str, Any]) -> C:
        """The configuration behind plain values."""
        return cls().replace(**values)

    def parse(self: C, settings: list[str]) -> C:
        """A copy changed by settings such as ``folds=5``."""
        kinds = {entry.name: type(getattr(self, entry.name)) for entry in dataclasses.fields(self)}
        changes: dict[str, Any] = {}
        for setting in settings:
            name, separator, text = setting.partition("=")
            if not separator:
                raise UsageError(f"setting {setting}: write option=value")
            if name not in kinds:
                raise UsageError(f"unknown option {name}; choose one of {', '.join(sorted(kinds))}")
            try:
                changes[name] = kinds[name](text)
            except ValueError:
                raise UsageError(f"option {name}={text}: expected a value of type {kinds[name].__name__}") from None
        return self.replace(**changes)

    @classmethod
    def describe(cls) -> list[str]:
        """One line per option: name, default and meaning."""
        return [f"{entry.name}={entry.default}  {entry.metadata['help']}" for entry in dataclasses.fields(cls)]

    def check_ranges(self, positive: str = "", shares: str = "") -> None:
        """Raise where a number is negative, one of ``positive`` is below 1, or one of ``shares`` outside [0, 1)."""
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, (int, float)) and not value >= 0:
                raise UsageError(f"option {entry.name}={value}: must not be negative")
        for name in positive.split():
            if getattr(self, name) < 1:
                raise UsageError(f"option {name}={getattr(self, name)}: must be at least 1")
        for name in shares.split():
            if getattr(self, name) >= 1:
                raise UsageError(f"option {name}={getattr(self, name)}: must be in [0, 1)")

    def check_choice(self, name: str, allowed: tuple[str, ...]) -> None:
        """Raise unless the option has one of the allowed values."""
        if getattr(self, name) not in allowed:
            raise UsageError(f"option {name}={getattr(self, name)}: choose one of {', '.join(allowed)}")
