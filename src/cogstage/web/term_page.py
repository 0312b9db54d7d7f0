"""What is known of one term: identity, associations, facts, candidates, and how far answers about it can be relied."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from cogstage.rationale.record import Term
from cogstage.rationale.wording import question_text
from cogstage.relations import inverse
from cogstage.web.about import unit_words
from cogstage.web.links import source_of
from cogstage.web.service import Service

ASSOCIATIONS, CANDIDATES = 16, 5


def describe(service: Service, node: int) -> dict[str, Any]:
    """The values of a term's page."""
    model = service.model
    facts = facts_of(service, node)
    asked = next(
        ((name, side) for name in service.relations if (side := service.ranker.side(name, node))), ("", "head")
    )
    return {
        "term": service.term(node),
        "relation": asked[0],
        "side": asked[1],
        "source": source_of(model.vocabulary.term[node]),
        "synonyms": [name for name, other in model.vocabulary.synonyms if other == node][:20],
        "count": service.count(node),
        "unit": unit_words(service.counted),
        "associations": [] if service.hide_counts else _associations(service, node),
        "facts": facts,
        "candidates": _candidates(service, node),
        "basis": service.bases.of(node),
    }


def facts_of(service: Service, node: int) -> list[tuple[str, list[Term]]]:
    """The training facts about a term, by relation and, read backwards, by its inverse."""
    facts, names = service.model.fitted.facts, service.model.all_relations
    found = []
    for number, name in enumerate(names):
        for ours, theirs, read in ((facts.head, facts.tail, name), (facts.tail, facts.head, inverse(name))):
            others = theirs[(facts.relation == number) & (ours == node)]
            if len(others):
                found.append((read, [service.term(int(other)) for other in others]))
    return found


def _associations(service: Service, node: int) -> list[tuple[Term, int, float]]:
    strongest = service.model.counts.strongest(node, ASSOCIATIONS)
    return [(service.term(other), together, ppmi) for other, together, ppmi in strongest]


def _candidates(service: Service, node: int) -> list[dict[str, Any]]:
    """The best new candidates for each question that the term's type allows."""
    name, kind = service.model.vocabulary.name[node], service.model.vocabulary.type[node]
    found = []
    for relation in service.relations:
        for side, usual in zip(("head", "tail"), service.ranker.usual_types[relation], strict=True):
            if kind and kind not in usual:
                continue
            ranking = service.ranking(relation, side, node)
            address = urlencode({"term": service.term(node).key, "relation": relation, "side": side})
            best = ranking.choose(known="new")[:CANDIDATES]
            found.append(
                {
                    "question": question_text(relation, side, name),
                    "side": side,
                    "address": f"/discover?{address}",
                    "rows": list(zip(service.records(ranking, best, 0), ranking.score(best).tolist(), strict=True)),
                }
            )
    return found
