"""What a source calls its codes: every name with how often it was used, and by how many patients.

A name in a record may be the words of one patient, so publishing names requires knowing how many patients share them;
names from a vocabulary table are marked as such.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from cogstage.input_files import is_clean

LONGEST_NAME = 200  # characters; longer ones are sentences
MOST_NAMES = 1_000  # different names kept for one code
PATIENTS_COUNTED = 100  # patients of a name are counted exactly up to this many


@dataclass(frozen=True, slots=True)
class NameCount:
    """A name of a code: how many records use it, how many patients they belong to (documents, without patients)."""

    name: str
    type: str
    count: int
    patients: int  # PATIENTS_COUNTED stands for that many or more; 0 for a name from a vocabulary alone
    vocabulary: bool  # from a vocabulary table, not from a record


class _Uses:
    """How often one name was used; hashes of patients are kept until there are enough of them."""

    __slots__ = ("count", "patients", "shared_widely", "vocabulary")

    def __init__(self) -> None:
        self.count, self.vocabulary, self.shared_widely = 0, False, False
        self.patients = array("Q")

    def meet(self, patients: Iterable[int]) -> None:
        for patient in patients:
            if self.shared_widely or patient in self.patients:
                continue
            self.patients.append(patient)
            if len(self.patients) >= PATIENTS_COUNTED:
                self.patients, self.shared_widely = array("Q"), True


class CodeNames:
    """The names of codes as they are seen; the most common is the code's name, ties go to the first in the alphabet."""

    def __init__(self) -> None:
        self._uses: dict[str, dict[tuple[str, str], _Uses]] = {}  # code -> (name, type) -> uses

    def __contains__(self, code: str) -> bool:
        return code in self._uses

    def __len__(self) -> int:
        return len(self._uses)

    def codes(self) -> list[str]:
        """The codes that have a name."""
        return list(self._uses)

    def add(
        self, code: str, name: object, type: object, patient: str, vocabulary: bool = False, weak: bool = False
    ) -> None:
        """A record of ``patient`` (or this document, if there is none) calls the code ``name``.

        A ``weak`` name, which stands for other codes too, comes after all others.
        """
        if not isinstance(name, str) or not (name := " ".join(name.split())):
            return
        names = self._uses.get(code)
        if names is None:
            names = self._uses[code] = {}
        kind = type if isinstance(type, str) and is_clean(type) else ""  # it may reveal as much as the name
        uses = names.get((name, kind))
        if uses is None:
            if len(name) > LONGEST_NAME or len(names) >= MOST_NAMES or not is_clean(name):
                return
            uses = names[name, kind] = _Uses()
        uses.count += not weak
        uses.vocabulary = uses.vocabulary or vocabulary
        if not vocabulary and not uses.shared_widely:
            digest = blake2b(patient.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            uses.meet((int.from_bytes(digest, "little"),))

    def merge(self, other: CodeNames) -> None:
        """Take over what another part of the same source said."""
        for code, names in other._uses.items():
            mine = self._uses.setdefault(code, {})
            for name, theirs in names.items():
                uses = mine.setdefault(name, _Uses())
                uses.count += theirs.count
                uses.vocabulary = uses.vocabulary or theirs.vocabulary
                uses.shared_widely = uses.shared_widely or theirs.shared_widely
                uses.meet(theirs.patients)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what :meth:`from_dict` reads."""
        return {
            code: [[*name, u.count, u.vocabulary, u.shared_widely, list(u.patients)] for name, u in names.items()]
            for code, names in self._uses.items()
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> CodeNames:
        """Restore an object from the plain values of :meth:`to_dict`."""
        names = cls()
        for code, uses in stored.items():
            for name, kind, count, vocabulary, widely, patients in uses:
                use = names._uses.setdefault(code, {})[name, kind] = _Uses()
                use.count, use.vocabulary, use.shared_widely = count, vocabulary, widely
                use.patients = array("Q", patients)
        return names

    def only(self, codes: Iterable[str]) -> CodeNames:
        """Only the names of these codes."""
        kept = CodeNames()
        kept._uses = {code: self._uses[code] for code in codes if code in self._uses}
        return kept

    def names_of(self, code: str) -> list[NameCount]:
        """All names of a code: those of a vocabulary first, then the most common."""
        listed = [
            NameCount(name, kind, u.count, PATIENTS_COUNTED if u.shared_widely else len(u.patients), u.vocabulary)
            for (name, kind), u in self._uses.get(code, {}).items()
        ]
        return sorted(listed, key=lambda use: (not use.vocabulary, -use.count, use.name, use.type))

    def best(self, codes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """Name and type of each code that has one."""
        named = ((code, self.names_of(code)) for code in codes)
        return {code: (names[0].name, names[0].type) for code, names in named if names}
