"""Import the pickle files of X-MedRELA: pickles of plain data, read without executing code in them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.importers import graph_of, highest, inputs, unique_names

PPMI_SCALE = 1_000_000

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


def import_xmedrela(
    neighbours: Path | str, strings: Path | str | None = None, concepts: Path | str | None = None
) -> Graph:
    """The co-occurrence pickle of X-MedRELA: a dictionary from term id to a list of (term id, weight).

    ``strings`` (id to string) and ``concepts`` (id to concept, or to a list of which the first counts) are its
    mapping pickles. Whole-number weights are counts. Other weights are PPMI values, which the published file
    (``sub_neighbors_dict_ppmi_perBin_1.pkl``) holds: they are kept to six decimals and :meth:`Graph.ppmi` gives them
    back. Neighbours that have no entry of their own are left out, as its authors do.
    """
    table = read_plain_pickle(neighbours)
    if not isinstance(table, dict) or not table:
        raise CogstageError(f"{neighbours}: expected a dictionary from term id to a list of (term id, weight)")
    ends, weight = _neighbours(table, Path(neighbours))
    whole = bool(np.all(weight == np.floor(weight)))
    values = (weight if whole else np.maximum(np.round(weight * PPMI_SCALE), 1)).astype(np.int64)
    source, target, count = highest(ends, values)
    words = _mapping(strings) if strings is not None else {}
    meant = _mapping(concepts) if concepts is not None else {}
    keys = unique_names([(node, words.get(node, str(node))) for node in table])
    about = {}
    for node, key in zip(table, keys, strict=True):
        about[key] = (str(meant.get(node, key)), words.get(node, key), "")
    made_with: dict[str, Any] = {"how": "import xmedrela", "inputs": inputs([Path(neighbours)])}
    if not whole:
        made_with |= {"values": "ppmi", "scale": PPMI_SCALE}
    return graph_of(keys, source, target, count, None, about, made_with)


def _neighbours(table: dict[Any, Any], path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The entries of an X-MedRELA dictionary by position in it: (n, 2) ends and (n,) weights above 0.

    One list may stand at any number of places of a pickle, so that a small file would give an endless text or any
    number of edges: nothing is turned into text that is not plain, and a file has fewer entries than bytes.
    """
    number = {node: position for position, node in enumerate(table)}
    if sum(len(near) for near in table.values() if isinstance(near, (list, tuple))) > path.stat().st_size:
        raise CogstageError(f"{path}: has more entries than bytes; the file is damaged or hostile")
    ends: list[tuple[int, int]] = []
    weights: list[float] = []
    for node, near in table.items():
        if not isinstance(near, (list, tuple)):
            raise CogstageError(f"{path}: the entry of {node!r} is not a list of (term id, weight)")
        for item in near:
            if not (
                isinstance(item, (list, tuple))
                and len(item) >= 2
                and isinstance(item[0], (str, bytes, int))
                and isinstance(item[1], (int, float))
            ):
                shown = repr(item)[:40] if isinstance(item, (str, bytes, int, float)) else f"a {type(item).__name__}"
                raise CogstageError(f"{path}: the entry of {node!r} holds {shown}, not (term id, weight)")
            if item[0] in number and item[0] != node and item[1] > 0:
                ends.append((number[node], number[item[0]]))
                weights.append(float(item[1]))
    if not ends:
        raise CogstageError(f"{path}: no edges between its terms")
    return np.array(ends, np.int64), np.array(weights)


def _mapping(path: Path | str) -> dict[Any, str]:
    """A dictionary from term id to text; of a list, the first entry counts."""
    table = read_plain_pickle(path)
    if not isinstance(table, dict):
        raise CogstageError(f"{path}: expected a dictionary by term id")
    mapping = {}
    for node, value in table.items():
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if not isinstance(first, (str, int)):
            raise CogstageError(f"{path}: the entry of {node!r} is neither a text nor a list of texts")
        mapping[node] = str(first)
    return mapping
