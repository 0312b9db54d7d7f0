"""Components that are one file each: a module with one class whose ``name`` is the module name."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cogstage.errors import CogstageError, UsageError


def component_names(package: str) -> tuple[str, ...]:
    """List the components of a package (its modules) without importing them."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise CogstageError(f"{package} is not a package")
    return tuple(sorted(module.name for module in pkgutil.iter_modules(list(spec.submodule_search_locations))))


def component(package: str, name: str, kind: str) -> Any:
    """The class in the module ``name`` of ``package`` whose attribute ``name`` is the module's name."""
    known = component_names(package)
    if name not in known:
        raise UsageError(f"unknown {kind}: {name}; choose one of {', '.join(known)}")
    module = import_module(f"{package}.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and getattr(value, "name", None) == name:
            return value
    raise CogstageError(f"{module.__file__} has no class whose name is {name!r}; see CONTRIBUTING")
