"""Where the content of an artefact comes from, as ``meta.json`` records it: sources, licences and privacy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SEEDED = "none (the noise came from a known seed, so anyone who knows it can remove it)"
LEAST_SUPPRESSION, MOST_EPSILON, MOST_DELTA = 5, 10.0, 1e-5  # what passes for protection where it is required
COUNTED = ("corpus", "format", "unit", "documents", "units", "years", "until", "examples")


def privacy_text(made_with: Mapping[str, Any]) -> str:
    """The privacy protection of a graph in a few words; begins with "none" if there is none."""
    private = made_with.get("private")
    if private and any(part.get("seed") for part in private.get("parts") or [private]):
        return SEEDED
    if private:
        return f"differentially private (ε={private['epsilon']:g}, δ={private['delta']:g}, m={private['pairs']})"
    below = made_with.get("suppress_below") or 0
    return f"counts below {below} suppressed" if below else "none"


def privacy_weakness(privacy: str) -> str | None:
    """Why a protection (as :func:`privacy_text` words it) is too weak to rely on; None if it is strong enough."""
    if match := re.fullmatch(r"counts below (\d+) suppressed", privacy):
        below = int(match[1])
        return None if below >= LEAST_SUPPRESSION else f"it suppresses counts below {below} only"
    if match := re.match(r"differentially private \(ε=([^,]+), δ=([^,]+), m=\d+", privacy):
        epsilon, delta = float(match[1]), float(match[2])
        if epsilon > MOST_EPSILON:
            return f"its ε is {epsilon:g}"
        return None if delta <= MOST_DELTA else f"its δ is {delta:g}"
    return privacy.removeprefix("none").strip(" ()") or "they are exact"


def licences_of(*made: Mapping[str, Any]) -> list[str]:
    """The licences that the given artefacts name, each once, in order."""
    return list(dict.fromkeys(str(text) for made_with in made for text in made_with.get("licences") or ()))


def sources_of(graph: Mapping[str, Any], facts: Mapping[str, Any], relations: Mapping[str, int]) -> dict[str, Any]:
    """Where counts and facts come from, for data sets and models: short texts, and the list of licences.

    Parameters
    ----------
    graph, facts
        How the graph and the facts were made (``made_with``).
    relations
        Number of facts of each relation.

    Returns
    -------
    dict
        ``counts`` and ``facts`` in words, ``counted`` and ``stated`` as values, and the list of ``licences``.
    """
    named = facts.get("sources") or {}
    stated = ", ".join(f"{name} ({count:,})" for name, count in named.items())
    return {
        **counts_of(graph),
        "facts": f"{sum(relations.values()):,} facts" + (f" from {stated}" if stated else ""),
        "stated": [{"source": name, "facts": count} for name, count in named.items()],
        "licences": licences_of(graph, facts),
    }


def counts_of(made_with: Mapping[str, Any]) -> dict[str, Any]:
    """What a graph counted: ``counts`` in words and ``counted`` as values, as far as the graph says it."""
    return {
        "counts": counts_text(made_with),
        "counted": {name: made_with[name] for name in COUNTED if made_with.get(name) is not None},
    }


def counts_text(made_with: Mapping[str, Any]) -> str:
    """What a graph counted, in a clause: "41,686 documents, by document, until 1991-12-31"."""
    records = made_with.get("records")
    documents = made_with.get("documents", records.get("counted") if isinstance(records, Mapping) else None)
    parts = [f"{documents:,} documents" if isinstance(documents, int) else "an unrecorded number of documents"]
    if years := made_with.get("years"):
        parts.append(f"of {years[0]}" if years[0] == years[1] else f"of {years[0]} to {years[1]}")
    if made_with.get("unit"):
        window = made_with.get("window")
        parts.append(f"by {made_with['unit']}" + (f" of {window}" if window else ""))
    if made_with.get("until"):
        parts.append(f"until {made_with['until']}")
    return ", ".join(parts)
