"""Components that are one file each: a module with one class whose ``name`` is the module name, or a plugin.

A plugin is an entry point of another distribution, in the groups ``cogstage.encoders``, ``.scorers``, ``.measures`` and
``.readers``.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from cogstage.errors import CogstageError, UsageError

GROUPS = {
    "cogstage.baselines.encoders": "cogstage.encoders",
    "cogstage.baselines.scorers": "cogstage.scorers",
    "cogstage.evaluation.rationale_measures": "cogstage.measures",
}
"""The entry points that add to each package of components."""


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; two of one name are an error."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise CogstageError(f"{_origin(entry)} and {_origin(other)} both define {entry.name}; uninstall one")
    return found


def load_plugin(entry: EntryPoint) -> Any:
    """What an entry point names; an error in it is one line that names its distribution."""
    try:
        return entry.load()
    except Exception as error:
        raise CogstageError(f"{entry.name} of {_origin(entry)} cannot be loaded: {error}") from error


def _origin(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist is not None else entry.value


def component_names(package: str) -> tuple[str, ...]:
    """List the components of a package (its modules and plugins) without importing them."""
    own, added = _modules(package), plugins(GROUPS[package])
    for name in own & added.keys():
        raise CogstageError(f"{_origin(added[name])} defines {name}, which cogstage has already; uninstall it")
    return tuple(sorted(own | added.keys()))


@cache
def _modules(package: str) -> frozenset[str]:
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise CogstageError(f"{package} is not a package")
    return frozenset(module.name for module in pkgutil.iter_modules(list(spec.submodule_search_locations)))


def component(package: str, name: str, kind: str) -> Any:
    """The class of a component: in the module ``name`` of ``package``, with that ``name``, or of a plugin."""
    known = component_names(package)
    if name not in known:
        raise UsageError(f"unknown {kind}: {name}; choose one of {', '.join(known)}")
    if (entry := plugins(GROUPS[package]).get(name)) is not None:
        value = load_plugin(entry)
        if getattr(value, "name", None) != name:
            raise CogstageError(f"{name} of {_origin(entry)} has the name {getattr(value, 'name', None)!r}")
        return value
    module = import_module(f"{package}.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and getattr(value, "name", None) == name:
            return value
    raise CogstageError(f"{module.__file__} has no class whose name is {name!r}; see CONTRIBUTING")
