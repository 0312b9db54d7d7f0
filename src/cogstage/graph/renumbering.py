"""Keys under new numbers: sorted, some of them replaced by one or several parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cogstage.numbering import within_groups


@dataclass(frozen=True)
class Renumbering:
    """Number i becomes ``new[starts[i]:starts[i + 1]]``, which are positions in the sorted ``keys``."""

    keys: list[str]
    starts: np.ndarray  # int64 (n + 1,)
    new: np.ndarray  # int32 (starts[-1],)

    @classmethod
    def from_keys(cls, keys: Iterable[str], parents: Mapping[str, tuple[str, ...]] | None = None) -> Renumbering:
        """Sort the keys; ``parents`` replace those that have any."""
        replaced = parents or {}
        meant = [replaced.get(key, (key,)) for key in keys]
        ordered = sorted({key for each in meant for key in each})
        rank = {key: number for number, key in enumerate(ordered)}
        starts = np.concatenate([[0], np.cumsum([len(each) for each in meant])]).astype(np.int64)
        new = np.fromiter((rank[key] for each in meant for key in each), np.int32, int(starts[-1]))
        return cls(ordered, starts, new)

    @property
    def one_to_one(self) -> bool:
        """Whether every number becomes one new number."""
        return len(self.new) == len(self.starts) - 1

    def spread(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All new numbers of these old ones: index into ``number``, and the new number."""
        n_new = self.starts[number + 1] - self.starts[number]
        index = np.repeat(np.arange(len(number)), n_new)
        within = within_groups(n_new)
        return index, self.new[self.starts[number][index] + within]
