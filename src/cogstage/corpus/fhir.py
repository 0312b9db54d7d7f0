"""FHIR R4 resources from bundles or JSON lines: codings as codes, the text of DocumentReferences as text."""

from __future__ import annotations

import base64
import binascii
import datetime
import html
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from cogstage.corpus.json_stream import BrokenJson, JsonScanner
from cogstage.corpus.readers import Reader
from cogstage.corpus.records import Document, parse_date
from cogstage.errors import UsageError
from cogstage.tables import BadRows, bare_suffix, is_clean, open_text

# resource -> the elements that hold its codes, and those that hold its date, the best first
_CODES = {
    "Condition": ("code",),
    "MedicationRequest": ("medicationCodeableConcept",),
    "MedicationStatement": ("medicationCodeableConcept",),
    "AllergyIntolerance": ("code",),
    "Observation": ("code", "valueCodeableConcept"),
    "Procedure": ("code",),
}
_DATES = {
    "Condition": ("onsetDateTime", "onsetPeriod", "recordedDate"),
    "MedicationRequest": ("authoredOn",),
    "MedicationStatement": ("effectiveDateTime", "effectivePeriod", "dateAsserted"),
    "AllergyIntolerance": ("onsetDateTime", "onsetPeriod", "recordedDate"),
    "Observation": ("effectiveDateTime", "effectivePeriod", "effectiveInstant", "issued"),
    "Procedure": ("performedDateTime", "performedPeriod"),
    "DocumentReference": ("date",),
}
_NOT_SO = {"entered-in-error", "refuted", "not-done", "not-taken", "cancelled"}  # statuses that deny the record
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
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class FhirReader(Reader):
    """Conditions, medication requests and statements, allergies, observations, procedures and document references.

    A code is written ``snomed:38341003`` (other systems: ``system|code``). ``codings``: the ``first`` coding of a
    concept (default; one node a concept), or ``all``. What a status denies (refuted, entered in error, not done) is
    left out.
    """

    def __init__(self, files: Sequence[Path], bad: BadRows, codings: Literal["first", "all"] = "first") -> None:
        super().__init__(files, bad)
        if codings not in ("first", "all"):
            raise UsageError(f"codings must be first or all, not {codings}")
        self.codings = codings
        self._medications: dict[str, Any] = {}  # Medication resources met so far, for references to them

    def _read(self, path: Path) -> Iterator[Document]:
        with open_text(path, self.meter) as handle:
            try:
                for line, resource in self._resources(path, handle):
                    yield from self._documents(resource, f"{path}:{line}")
            except BrokenJson as error:
                self.bad.report(str(error))

    def _resources(self, path: Path, handle: Any) -> Iterator[tuple[int, Any]]:
        if bare_suffix(path) == ".json":
            for line, entry in JsonScanner(handle, path).items("entry"):
                wrapped = isinstance(entry, dict) and "resource" in entry
                yield line, entry["resource"] if wrapped else entry
            return
        for number, line_text in enumerate(handle, start=1):
            if not line_text.strip():
                continue
            try:
                resource = json.loads(line_text)
            except (ValueError, RecursionError) as error:
                place, what = getattr(error, "colno", 1), getattr(error, "msg", error)
                self.bad.report(f"{path}:{number}, column {place}: not JSON ({what})")
                continue
            if isinstance(resource, dict) and resource.get("resourceType") == "Bundle":
                entries = resource.get("entry") or []
                yield from ((number, entry.get("resource")) for entry in entries if isinstance(entry, dict))
            else:
                yield number, resource

    def _documents(self, resource: Any, where: str) -> Iterator[Document]:
        kind = resource.get("resourceType") if isinstance(resource, dict) else None
        if not isinstance(kind, str):
            self.bad.report(f"{where}, column resourceType: no value")
            return
        if kind == "Medication" and resource.get("id"):
            self._medications[str(resource["id"])] = resource.get("code")
        if kind not in _DATES or _NOT_SO & set(_statuses(resource)):
            return
        try:
            document = self._document(resource, kind, where)
        except (AttributeError, TypeError, KeyError):
            self.bad.report(f"{where}: not a FHIR R4 {kind}")
            return
        except ValueError as error:
            self.bad.report(f"{where}, column {error}")
            return
        if document is not None:
            yield document

    def _document(self, resource: dict[str, Any], kind: str, where: str) -> Document | None:
        holder = resource.get("subject") or resource.get("patient") or {}
        patient = str(holder.get("reference") or (holder.get("identifier") or {}).get("value") or "")
        patient = re.sub(r"^(.*Patient/|urn:uuid:)", "", patient)
        doc_id = f"{kind}/{resource.get('id') or where}"
        date = _date(resource, kind)
        if kind == "DocumentReference":
            text = "\n".join(filter(None, (_attached(content) for content in resource.get("content") or [])))
            if not text:
                return None
            return Document(doc_id, text, patient or None, date, (), where)
        codes: list[str] = []
        for element in _CODES[kind]:
            codes += self._codes(resource.get(element), kind)
        if not codes and (reference := (resource.get("medicationReference") or {}).get("reference")):
            codes += self._codes(self._medication(resource, str(reference)), kind)
        if not codes:
            raise ValueError(f"{_CODES[kind][0]}: no code")
        if not patient:
            raise ValueError("subject: no patient")
        return Document(doc_id, "", patient, date, tuple(dict.fromkeys(codes)), where)

    def _codes(self, concept: Any, kind: str) -> list[str]:
        found = []
        for coding in (concept or {}).get("coding") or []:
            if coding.get("code"):
                system = str(coding.get("system") or "")
                short = _SYSTEMS.get(system)
                code = f"{short}:{coding['code']}" if short else f"{system}|{coding['code']}".lstrip("|")
                self._name(code, coding.get("display") or concept.get("text"), kind.lower())
                found.append(code)
        if not found and (concept or {}).get("text"):
            found = ["text:" + " ".join(str(concept["text"]).lower().split())]
            self._name(found[0], str(concept["text"]), kind.lower())
        return found[:1] if self.codings == "first" else found

    def _medication(self, resource: dict[str, Any], reference: str) -> Any:
        if reference.startswith("#"):
            inner = resource.get("contained") or []
            return next((each.get("code") for each in inner if each.get("id") == reference[1:]), None)
        return self._medications.get(re.sub(r"^(.*Medication/|urn:uuid:)", "", reference))


def _statuses(resource: dict[str, Any]) -> Iterator[str]:
    if isinstance(status := resource.get("status"), str):
        yield status
    verification = resource.get("verificationStatus")
    codings = verification.get("coding") if isinstance(verification, dict) else None
    for coding in codings if isinstance(codings, list) else ():
        if isinstance(coding, dict) and isinstance(coding.get("code"), str):
            yield coding["code"]


def _date(resource: dict[str, Any], kind: str) -> datetime.date | None:
    for element in _DATES[kind]:
        value = resource.get(element)
        if isinstance(value, dict):
            value = value.get("start") or value.get("end")
        if value:
            try:
                return parse_date(value)
            except ValueError as error:
                raise ValueError(f"{element}: {error}") from None
    return None


def _attached(content: dict[str, Any]) -> str:
    """The text of an attachment: plain text as it is, HTML and XML without their tags, other kinds not at all."""
    attachment = content.get("attachment") or {}
    kind = str(attachment.get("contentType") or "text/plain").lower()
    if not attachment.get("data") or not (kind.startswith("text/") or "xml" in kind):
        return ""
    try:
        raw = base64.b64decode(attachment["data"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"attachment.data: not base64 ({error})") from None
    charset = re.search(r"charset=\"?([\w-]+)", kind)
    try:
        text = raw.decode(charset[1] if charset else "utf-8")
    except (UnicodeDecodeError, LookupError):
        raise ValueError(f"attachment.data: not {charset[1] if charset else 'UTF-8'} text") from None
    if not is_clean(text):
        raise ValueError("attachment.data: not UTF-8 text")
    return html.unescape(_TAG.sub(" ", text)) if "html" in kind or "xml" in kind else text
