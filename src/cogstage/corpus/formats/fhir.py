"""FHIR R4 resources from bundles or JSON lines: codings as codes, notes and reports as text."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from cogstage.corpus.cohort import Person, as_sex
from cogstage.corpus.markup import text_of_markup
from cogstage.corpus.readers import WITHOUT_PATIENT, Reader, ReaderOption, Sample
from cogstage.corpus.records import Document, parse_date
from cogstage.errors import UsageError
from cogstage.input_files import bare_suffix, is_clean, lines_of, open_text
from cogstage.json_stream import BrokenJson, JsonScanner
from cogstage.tables import BadRows


@dataclass(frozen=True, slots=True)
class _Kind:
    """Where a resource holds its codes and its date, the best element first."""

    codes: tuple[str, ...]
    dates: tuple[str, ...]
    needs_code: bool = True


_MEDICATION = ("medicationCodeableConcept",)
_ONSET = ("onsetDateTime", "onsetPeriod", "recordedDate")
_EFFECTIVE = ("effectiveDateTime", "effectivePeriod")
_KINDS = {
    "Condition": _Kind(("code",), _ONSET),
    "AllergyIntolerance": _Kind(("code",), _ONSET),
    "MedicationRequest": _Kind(_MEDICATION, ("authoredOn",)),
    "MedicationStatement": _Kind(_MEDICATION, (*_EFFECTIVE, "dateAsserted")),
    "MedicationAdministration": _Kind(_MEDICATION, _EFFECTIVE),
    "Immunization": _Kind(("vaccineCode",), ("occurrenceDateTime", "recorded")),
    "Observation": _Kind(("code", "valueCodeableConcept"), (*_EFFECTIVE, "effectiveInstant", "issued")),
    "Procedure": _Kind(("code",), ("performedDateTime", "performedPeriod")),
    "DiagnosticReport": _Kind(("code", "conclusionCode"), (*_EFFECTIVE, "issued"), needs_code=False),
    "Encounter": _Kind(("reasonCode",), ("period",), needs_code=False),
    "DocumentReference": _Kind((), ("date",), needs_code=False),
}
_DENIED = {"entered-in-error", "refuted", "not-done", "not-taken", "cancelled"}  # statuses that exclude the record
_SYSTEMS = {
    "http://snomed.info/sct": "snomed",
    "http://loinc.org": "loinc",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "rxnorm",
    "http://hl7.org/fhir/sid/icd-10": "icd10",
    "http://hl7.org/fhir/sid/icd-10-cm": "icd10cm",
    "http://hl7.org/fhir/sid/icd-9-cm": "icd9cm",
    "http://www.whocc.no/atc": "atc",
    "http://www.ama-assn.org/go/cpt": "cpt",
    "http://hl7.org/fhir/sid/ndc": "ndc",
    "http://hl7.org/fhir/sid/cvx": "cvx",
}
_MEDICATION_RESOURCE = re.compile(r'"resourceType"\s*:\s*"Medication"')
_CHARSET = re.compile(r"charset=\"?([\w-]+)")


class FhirReader(Reader):
    """Conditions, allergies, medication requests, statements and administrations, immunizations, observations,
    procedures, the reasons of encounters, diagnostic reports and document references.

    A code is written ``snomed:38341003`` (other systems: ``system|code``), that of an allergy ``allergy:rxnorm:7980``,
    so that it is not the drug. Components of observations are not read. ``codings``: the ``first`` coding of a
    concept (default; one node per concept), or ``all``. Resources with a negative status (refuted, entered in error,
    not done) are left out.
    """

    format = "fhir"
    title = "FHIR R4 bundles or JSON lines"
    suffixes = (".json", ".ndjson", ".jsonl")
    options: ClassVar = {"codings": ReaderOption("codings of a concept to use: first or all")}

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """Return 2 for JSON that contains FHIR resources, otherwise 0."""
        return 2 * int(sample.suffix in cls.suffixes and '"resourceType"' in sample.beginning)

    def __init__(
        self,
        files: Sequence[Path],
        bad: BadRows,
        codings: Literal["first", "all"] = "first",
        ids_across_files: bool = False,
    ) -> None:
        super().__init__(files, bad, ids_across_files)
        if codings not in ("first", "all"):
            raise UsageError(f"codings must be first or all, not {codings}")
        self.codings = codings
        self._medications: dict[str, Any] | None = None  # read when a resource first refers to one

    def parts(self) -> list[list[Path]]:
        """All files together: a resource may refer to a Medication in another file."""
        return [list(self.files)]

    def _read(self, path: Path) -> Iterator[Document]:
        first = True
        for line, resource in self._resources(path):
            if first and len(self.files) > 1 and not (isinstance(resource, dict) and "resourceType" in resource):
                self.bad.notice(f"{path} contains no FHIR resources, not read", 0)
                return
            first = False
            yield from self._documents(resource, f"{path}:{line}")

    def _resources(self, path: Path) -> Iterator[tuple[int, Any]]:
        """The resources of a file, out of their bundles, with their lines."""
        with open_text(path, self.meter) as handle:
            if bare_suffix(path) == ".json":
                try:
                    for line, entry in JsonScanner(handle, path).items("entry"):
                        wrapped = isinstance(entry, dict) and "resource" in entry
                        yield line, entry["resource"] if wrapped else entry
                except BrokenJson as error:
                    self.bad.report(str(error))
                return
            for number, text in lines_of(handle, path, self.bad):
                if not text.strip():
                    continue
                try:
                    resource = json.loads(text)
                except (ValueError, RecursionError) as error:
                    column, what = getattr(error, "colno", 1), getattr(error, "msg", error)
                    self.bad.report(f"{path}:{number}, column {column}: not JSON ({what})")
                    continue
                if isinstance(resource, dict) and resource.get("resourceType") == "Bundle":
                    entries = resource.get("entry")
                    for entry in entries if isinstance(entries, list) else ():
                        yield number, entry.get("resource") if isinstance(entry, dict) else entry
                else:
                    yield number, resource

    def _documents(self, resource: Any, where: str) -> Iterator[Document]:
        kind = resource.get("resourceType") if isinstance(resource, dict) else None
        if not isinstance(kind, str):
            self.bad.report(f"{where}, column resourceType: no value")
            return
        if kind == "Binary":
            self.bad.notice("Binary resources, not read")
        if kind not in _KINDS or _DENIED & set(_statuses(resource)):
            return
        try:
            document = self._document(resource, kind, where)
        except (AttributeError, TypeError, KeyError):
            self.bad.report(f"{where}: not a FHIR R4 {kind}")
        except ValueError as error:
            self.bad.report(f"{where}, column {error}")
        else:
            if document is not None:
                yield document

    def _document(self, resource: dict[str, Any], kind: str, where: str) -> Document | None:
        about = _KINDS[kind]
        date = _date(resource, about.dates)
        patient = _patient(resource)
        doc_id = f"{kind}/{resource.get('id') or where}"
        codes: list[str] = []
        for element in about.codes:
            concepts = resource.get(element)
            for concept in concepts if isinstance(concepts, list) else [concepts]:
                codes += self._codes(concept, kind, patient or doc_id)
        self._notice_values(resource, kind)
        if not codes and (medication := self._medication(resource)) is not None:
            codes += self._codes(medication, kind, patient or doc_id)
        text = self._text(resource, kind)
        if not codes and about.needs_code:
            raise ValueError(f"{about.codes[0]}: no code")
        if not codes and not text:
            return None
        if patient is None:
            self.bad.notice(WITHOUT_PATIENT)
        visit = _visit(resource, kind)
        return Document(doc_id, text, patient, date, tuple(dict.fromkeys(codes)), where, visit, rows=not text)

    def _notice_values(self, resource: dict[str, Any], kind: str) -> None:
        """Count what a user may not expect of observations."""
        if kind == "Observation" and resource.get("valueCodeableConcept"):
            self.bad.notice("values of observations that are codes, counted as codes of their own")
        if kind == "Observation" and (components := resource.get("component")):
            self.bad.notice("components of observations, not read", len(components))

    def _codes(self, concept: Any, kind: str, patient: str) -> list[str]:
        if concept is None:
            return []
        codes = []
        words = concept.get("text")
        prefix, named = ("allergy:", _as_allergy) if kind == "AllergyIntolerance" else ("", _as_it_is)
        for coding in concept.get("coding") or []:
            value = coding.get("code")
            if isinstance(value, (str, int)) and value != "":
                system = str(coding.get("system") or "")
                short = _SYSTEMS.get(system)
                code = prefix + (f"{short}:{value}" if short else f"{system}|{value}".lstrip("|"))
                self.code_names.add(code, named(coding.get("display") or words), kind.lower(), patient)
                codes.append(code)
        if not codes and isinstance(words, str) and words.strip():
            codes = [f"{prefix}text:" + " ".join(words.lower().split())]
            self.code_names.add(codes[0], named(words), kind.lower(), patient)
        return codes[:1] if self.codings == "first" else codes

    def _medication(self, resource: dict[str, Any]) -> Any:
        """The concept of a medication that the resource refers to, contained or elsewhere; None if there is none."""
        reference = str((resource.get("medicationReference") or {}).get("reference") or "")
        if reference.startswith("#"):
            inner = resource.get("contained") or []
            return next((each.get("code") for each in inner if each.get("id") == reference[1:]), None)
        if not reference:
            return None
        if self._medications is None:
            self._medications = self._all_medications()
        return self._medications.get(_bare_reference(reference))

    def people(self) -> dict[str, Person]:
        """Sex and birth of the Patient resources in all files."""
        quiet = FhirReader(self.files, BadRows(skip=True), self.codings)
        found = {}
        for _, resource in (numbered for path in self.files for numbered in quiet._resources(path)):
            if isinstance(resource, dict) and resource.get("resourceType") == "Patient":
                with contextlib.suppress(ValueError):  # a date that is none is unknown
                    birth = parse_date(resource.get("birthDate"))
                    found[str(resource.get("id"))] = Person(as_sex(resource.get("gender")), birth)
        return found

    def _all_medications(self) -> dict[str, Any]:
        """The Medication resources of all files: one may stand behind what refers to it, or in another file."""
        quiet = FhirReader(self.files, BadRows(skip=True), self.codings)
        medications: dict[str, Any] = {}
        for path in self.files:
            if bare_suffix(path) != ".json" and not quiet._mentions_medication(path):
                continue
            for _, resource in quiet._resources(path):
                if isinstance(resource, dict) and resource.get("resourceType") == "Medication":
                    medications[str(resource.get("id"))] = resource.get("code")
        return medications

    def _mentions_medication(self, path: Path) -> bool:
        with open_text(path) as handle:
            return any(_MEDICATION_RESOURCE.search(line) for _, line in lines_of(handle, path, self.bad))

    def _text(self, resource: dict[str, Any], kind: str) -> str:
        if kind == "DocumentReference":
            attachments = [content.get("attachment") or {} for content in resource.get("content") or []]
        elif kind == "DiagnosticReport":
            attachments = list(resource.get("presentedForm") or [])
        else:
            return ""
        parts = [str(resource.get("conclusion") or ""), *(self._attached(each) for each in attachments)]
        return "\n".join(filter(None, parts))

    def _attached(self, attachment: dict[str, Any]) -> str:
        """The text of an attachment: plain text as it is, HTML and XML without tags; other kinds are counted."""
        kind = str(attachment.get("contentType") or "text/plain").lower()
        if not attachment.get("data"):
            if attachment.get("url"):
                self.bad.notice("attachments given by url, not read")
            return ""
        if not (kind.startswith("text/") or "xml" in kind):
            self.bad.notice(f"attachments of type {kind.split(';')[0]}, not read")
            return ""
        try:
            raw = base64.b64decode(attachment["data"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"attachment.data: not base64 ({error})") from None
        charset = _CHARSET.search(kind)
        try:
            text = raw.decode(charset[1] if charset else "utf-8")
        except (UnicodeDecodeError, LookupError):
            raise ValueError(f"attachment.data: not {charset[1] if charset else 'UTF-8'} text") from None
        if not is_clean(text):
            raise ValueError("attachment.data: not UTF-8 text")
        return text_of_markup(text) if "html" in kind or "xml" in kind else text


def _as_it_is(name: object) -> object:
    return name


def _as_allergy(name: object) -> object:
    """The name of an allergy to a substance, which is often that of the substance alone."""
    if not isinstance(name, str) or re.search("allerg|intoleran", name, re.IGNORECASE):
        return name
    return f"Allergy to {name}"


def _bare_reference(reference: str) -> str:
    """The identifier in ``Patient/7``, ``https://host/fhir/Patient/7`` or ``urn:uuid:7``."""
    return reference.removeprefix("urn:uuid:").rpartition("/")[2]


def _patient(resource: dict[str, Any]) -> str | None:
    holder = resource.get("subject") or resource.get("patient") or {}
    reference = str(holder.get("reference") or "")
    if reference:
        kind = reference.rpartition("/")[0].rpartition("/")[2]
        return _bare_reference(reference) or None if kind in ("", "Patient") else None
    return str((holder.get("identifier") or {}).get("value") or "") or None


def _visit(resource: dict[str, Any], kind: str) -> str | None:
    """The encounter that the record belongs to."""
    if kind == "Encounter":
        return str(resource.get("id") or "") or None
    context = resource.get("encounter") or resource.get("context") or {}
    if kind == "DocumentReference":
        context = next(iter((resource.get("context") or {}).get("encounter") or []), {})
    return _bare_reference(str(context.get("reference") or "")) or None


def _statuses(resource: dict[str, Any]) -> Iterator[str]:
    if isinstance(status := resource.get("status"), str):
        yield status
    verification = resource.get("verificationStatus")
    codings = verification.get("coding") if isinstance(verification, dict) else None
    for coding in codings if isinstance(codings, list) else ():
        if isinstance(coding, dict) and isinstance(coding.get("code"), str):
            yield coding["code"]


def _date(resource: dict[str, Any], elements: Sequence[str]) -> datetime.date | None:
    for element in elements:
        value = resource.get(element)
        if isinstance(value, dict):
            value = value.get("start") or value.get("end")
        if value:
            try:
                return parse_date(value)
            except ValueError as error:
                raise ValueError(f"{element}: {error}") from None
    return None
