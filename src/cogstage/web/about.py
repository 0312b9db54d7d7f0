"""The About page: the corpus, the sources of the facts, and how accurate the answers are."""

from __future__ import annotations

from typing import Any

from cogstage.evaluation.metrics import TITLES
from cogstage.rationale.wording import joined_types
from cogstage.web.curve import reliability_curves
from cogstage.web.service import Service

SHOWN = ("f1", "auroc", "auprc", "precision", "recall", "brier", "ece")
UNITS = {"patient-window": "patient windows", "visit": "visits", "sentence": "sentences"}


def about_page(service: Service) -> dict[str, Any]:
    """The values of the page."""
    metrics = service.model.metrics
    sources = metrics.get("sources", {})
    test = metrics.get("test", {})
    figures = test.get("relations") or metrics.get("dev", {})
    names = [name for name in SHOWN if any(name in by_name for by_name in figures.values())]
    quality = [
        (relation, figures[relation].get("pairs"), [figures[relation].get(name) for name in names])
        for relation in service.relations
        if relation in figures
    ]
    return {
        "about": service.about(),
        "counted": [] if service.hide_counts else counted(sources.get("counted", {})),
        "stated": sources.get("stated", []),
        "licences": sources.get("licences", []),
        "tested": "test" if test else "dev",
        "measures": [TITLES[name] for name in names],
        "quality": quality,
        "joins": {name: joined_types(service.ranker.usual_types[name]) for name in service.relations},
        "curve": reliability_curves(test.get("reliability") or metrics.get("reliability", {})),
    }


def unit_words(counts: dict[str, Any]) -> str:
    """Return the unit of the counts, in the plural."""
    return UNITS.get(str(counts.get("unit")), "documents")


def counted(counts: dict[str, Any]) -> list[tuple[str, str]]:
    """Describe the corpus as headings and values, as far as the graph records it."""
    rows = []
    if counts.get("corpus"):
        rows.append(("Corpus", str(counts["corpus"])))
    if counts.get("documents"):
        rows.append(("Documents", f"{counts['documents']:,}"))
    if years := counts.get("years"):
        rows.append(("Years", f"{years[0]} to {years[1]}" if years[0] != years[1] else str(years[0])))
    if counts.get("unit"):
        rows.append(("Unit", unit_words(counts)))
    if examples := counts.get("examples"):
        rows.append(("Examples", f"up to {examples['per_pair']} documents per pair of terms"))
    return rows
