"""Read pickles of plain data without executing code in them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from cogstage.errors import CogstageError, UsageError

LARGEST_KEY = 1 << 60  # beyond the modulus of Python's hash, numbers can be chosen to collide
_Unpickler: Any = pickle._Unpickler  # the implementation in Python


class PlainUnpickler(_Unpickler):
    """Admits lists, tuples, dictionaries, strings, bytes, numbers, booleans and None; every name is refused.

    The unpickler in Python rather than the one in C, which a file can make allocate a table of any size, and which
    hashes keys of any depth without a limit. It takes about a microsecond per value.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(_Unpickler.dispatch)

    def __init__(self, handle: BinaryIO, size: int) -> None:
        self._handle, self._size = handle, size
        super().__init__(self)

    def read(self, count: int) -> bytes:
        """``count`` bytes; a length beyond the end of the file is refused before memory is allocated."""
        if count > self._size:
            raise pickle.UnpicklingError("its stated length is wrong")
        return self._handle.read(count)

    def readline(self) -> bytes:
        """Return the next line, limited in length."""
        return self._handle.readline()

    def find_class(self, module: str, name: str) -> Any:
        """Refuse every class and function."""
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")

    def persistent_load(self, key: Any) -> Any:
        """No object outside the file is ever looked up."""
        raise pickle.UnpicklingError("it refers to something outside the file")

    def _set_items(self) -> None:
        items = self.pop_mark()
        self._put(items[::2], items[1::2])

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._put([key], [value])

    def _dictionary(self) -> None:
        items = self.pop_mark()
        self.stack.append({})
        self._put(items[::2], items[1::2])

    def _put(self, keys: list[Any], values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise pickle.UnpicklingError("it sets an item of something that is not a dictionary")
        for key in keys:
            if not isinstance(key, (str, bytes)) and not (isinstance(key, int) and -LARGEST_KEY < key < LARGEST_KEY):
                raise pickle.UnpicklingError("a dictionary key is neither a string nor a number of normal size")
        target.update(zip(keys, values, strict=True))

    def _set(self) -> None:
        raise pickle.UnpicklingError("it contains a set")

    dispatch.update(
        {
            pickle.SETITEM[0]: _set_item,
            pickle.SETITEMS[0]: _set_items,
            pickle.DICT[0]: _dictionary,
            pickle.EMPTY_SET[0]: _set,
            pickle.FROZENSET[0]: _set,
        }
    )


def read_plain_pickle(path: Path | str) -> Any:
    """Read a pickle file of plain data; raise for anything else."""
    path = Path(path)
    try:
        with path.open("rb") as handle:
            return PlainUnpickler(handle, path.stat().st_size).load()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except pickle.UnpicklingError as error:
        raise CogstageError(
            f"{path} is not a pickle of plain lists, dictionaries, strings and numbers: {error}"
        ) from None
    except (
        EOFError,
        RecursionError,
        ValueError,
        IndexError,
        KeyError,
        AttributeError,
        ImportError,
        MemoryError,
        OverflowError,
        TypeError,
    ):
        raise CogstageError(f"{path} is not a pickle file, or is truncated") from None
