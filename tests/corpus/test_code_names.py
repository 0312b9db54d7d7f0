"""Names of codes: by how many patients a name is counted, and which name is the code's."""

from __future__ import annotations

import pytest

from cogstage.corpus.names import PATIENTS_COUNTED, CodeNames


@pytest.mark.parametrize("patients", [1, PATIENTS_COUNTED - 1, PATIENTS_COUNTED, PATIENTS_COUNTED + 5])
def test_patients_with_a_name_are_counted_up_to_a_limit(patients: int) -> None:
    names = CodeNames()
    for number in [*range(patients), 0, 0]:  # a patient who is met again counts once
        names.add("C1", "Aspirin", "drug", f"p{number}")
    (use,) = names.names_of("C1")
    assert use.patients == min(patients, PATIENTS_COUNTED)
    assert use.count == patients + 2
    again = CodeNames.from_dict(names.to_dict())
    again.merge(names)
    assert again.names_of("C1")[0].patients == min(patients, PATIENTS_COUNTED)


def test_a_weak_name_comes_after_all_others() -> None:
    names = CodeNames()
    for number in range(5):
        names.add("C1", "Other drugs", "drug", f"p{number}", weak=True)
    assert names.best(["C1"]) == {"C1": ("Other drugs", "drug")}
    names.add("C1", "Zinc", "drug", "p9")
    assert names.best(["C1"]) == {"C1": ("Zinc", "drug")}
    names.add("C1", "Aspirin", "drug", "p8", vocabulary=True)
    names.add("C1", "Zinc", "drug", "p8")
    assert names.best(["C1"]) == {"C1": ("Aspirin", "drug")}
