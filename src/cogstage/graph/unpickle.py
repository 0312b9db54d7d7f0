"""Reading other people's pickles without running anything in them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from cogstage.errors import CogstageError, UsageError


class PlainUnpickler(pickle.Unpickler):
    """Admits lists, tuples, sets, dictionaries, strings, bytes, numbers, booleans and None; every name is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """No class and no function is ever looked up."""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, key: Any) -> Any:
        """Nor anything that lies outside the file."""
        raise pickle.UnpicklingError("it refers to something outside the file")


def read_plain_pickle(path: Path | str) -> Any:
    """The content of a pickle that holds plain data alone; any other is refused in one line."""
    path = Path(path)
    try:
        with path.open("rb") as handle:
            return PlainUnpickler(handle).load()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except pickle.UnpicklingError as error:
        raise CogstageError(
            f"{path} is not a pickle of plain lists, dictionaries, strings and numbers: {error}"
        ) from None
    except (
        EOFError,
        ValueError,
        IndexError,
        KeyError,
        AttributeError,
        ImportError,
        MemoryError,
        OverflowError,
        TypeError,
    ):
        raise CogstageError(f"{path} is no pickle, or cut short") from None
