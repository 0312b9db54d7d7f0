"""Copied notes: documents of one patient that are nearly the same, recognised by MinHash over shingles of words.

A document's signature is a one-permutation MinHash: every shingle of four words is hashed once, the hash chooses one of
128 bins, and each bin keeps its smallest value. The share of equal bins among those that either document fills
estimates the Jaccard similarity of their shingles, with a standard deviation of about 0.035 at the threshold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numba import njit

from cogstage.corpus.records import Document

BINS = 128
WORDS = 4  # in a shingle
ALIKE = 0.8  # Jaccard similarity from which a document counts as a copy
_HALF = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _mixed(value):  # type: ignore[no-untyped-def]
    value = np.uint64(value) + _HALF
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True)
def _signature(text):  # type: ignore[no-untyped-def]
    """The signature of UTF-8 bytes: uint16 (BINS,), 0 for an empty bin. Case and punctuation do not matter."""
    least = np.full(BINS, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64)
    words = np.zeros(WORDS, np.uint64)
    count = 0
    current = np.uint64(0)
    inside = False
    for index in range(len(text) + 1):
        byte = text[index] if index < len(text) else np.uint8(32)
        if 65 <= byte <= 90:
            byte += np.uint8(32)
        if byte >= 128 or 97 <= byte <= 122 or 48 <= byte <= 57:
            current = (current ^ np.uint64(byte)) * np.uint64(0x100000001B3)
            inside = True
            continue
        if not inside:
            continue
        words[count % WORDS] = current
        count += 1
        current, inside = np.uint64(0xCBF29CE484222325), False
        if count >= WORDS:
            shingle = np.uint64(0)
            for back in range(count - WORDS, count):
                shingle = _mixed(shingle ^ words[back % WORDS])
            at = np.int64(shingle & np.uint64(BINS - 1))
            least[at] = min(least[at], shingle >> np.uint64(7))
    if 0 < count < WORDS:  # a few words are one shingle
        shingle = np.uint64(count)
        for back in range(count):
            shingle = _mixed(shingle ^ words[back])
        least[np.int64(shingle & np.uint64(BINS - 1))] = shingle >> np.uint64(7)
    result = np.zeros(BINS, np.uint16)
    for at in range(BINS):
        if least[at] != np.uint64(0xFFFFFFFFFFFFFFFF):
            result[at] = max(np.uint16(least[at] & np.uint64(0xFFFF)), np.uint16(1))
    return result


@njit(cache=True, nogil=True)
def _copies(group, order, signature, alike):  # type: ignore[no-untyped-def]
    """Which documents are nearly the same as an earlier one of their group that is no copy itself."""
    n = len(order)
    copy = np.zeros(n, np.bool_)
    kept = np.empty(n, np.int64)
    begin = 0
    while begin < n:
        end = begin
        n_kept = 0
        while end < n and group[order[end]] == group[order[begin]]:
            here = order[end]
            found = False
            for k in range(n_kept):
                there = kept[k]
                equal = filled = 0
                for at in range(BINS):
                    a, b = signature[here, at], signature[there, at]
                    if a != 0 or b != 0:
                        filled += 1
                        equal += a == b
                    if filled - equal > (1.0 - alike) * BINS:  # more bins differ than a copy may
                        break
                if filled > 0 and equal >= alike * filled:
                    found = True
                    break
            if found:
                copy[here] = True
            else:
                kept[n_kept] = here
                n_kept += 1
            end += 1
        begin = end
    return copy


compiled: Any = _signature


def signature(text: str) -> np.ndarray:
    """The MinHash signature of a text, uint16 (128,)."""
    result: np.ndarray = compiled(np.frombuffer(text.encode("utf-8", "surrogatepass") or b" ", np.uint8))
    return result


def similarity(one: np.ndarray, other: np.ndarray) -> float:
    """Estimate the Jaccard similarity of the shingles of two texts from their signatures."""
    filled = (one != 0) | (other != 0)
    return float((one == other)[filled].mean()) if filled.any() else 0.0


def document_key(document: Document) -> int:
    """A 64-bit number that identifies a document."""
    text = "\0".join((document.scope, document.doc_id)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Signatures:
    """What is needed of patients' notes to recognise copies."""

    patient: np.ndarray  # uint64 (N,), hashes
    day: np.ndarray  # int32 (N,), 0 without a date
    key: np.ndarray  # uint64 (N,), see document_key
    signature: np.ndarray  # uint16 (N, BINS)

    @classmethod
    def from_documents(cls, documents: Iterable[Document]) -> Signatures:
        """The notes among documents: those with a patient and a text."""
        patients, days, keys, signatures = [], [], [], []
        for document in documents:
            if document.patient_id is None or not document.text:
                continue
            name = document.patient_id.encode("utf-8", "surrogatepass")
            patients.append(int.from_bytes(blake2b(name, digest_size=8).digest(), "little"))
            days.append(0 if document.date is None else document.date.toordinal())
            keys.append(document_key(document))
            signatures.append(signature(document.text))
        found = np.array(signatures, np.uint16).reshape(-1, BINS)
        return cls(np.array(patients, np.uint64), np.array(days, np.int32), np.array(keys, np.uint64), found)

    @classmethod
    def join(cls, parts: Iterable[Signatures]) -> Signatures:
        """The notes of all parts."""
        listed = list(parts) or [cls.from_documents(())]
        return cls(
            np.concatenate([part.patient for part in listed]),
            np.concatenate([part.day for part in listed]),
            np.concatenate([part.key for part in listed]),
            np.concatenate([part.signature for part in listed]),
        )

    def copies(self) -> np.ndarray:
        """Keys of the notes that are nearly the same as an earlier note of their patient, sorted."""
        order = np.lexsort((self.key, self.day, self.patient))
        search: Any = _copies
        return np.sort(self.key[search(self.patient, order, self.signature, ALIKE)])
