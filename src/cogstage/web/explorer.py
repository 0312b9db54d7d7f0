"""The explorer's pages: start, a pair and its reasons, search, a term, what the model is, the API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from cogstage.rationale.exports import rows_of, table
from cogstage.rationale.layout import bridged
from cogstage.rationale.picture import png, svg
from cogstage.rationale.prose import prose
from cogstage.rationale.record import Prediction, Triple
from cogstage.rationale.verdict import sigmoid
from cogstage.rationale.wording import (
    estimate_in_words,
    joined_types,
    opposes,
    order_in_words,
    status_in_words,
    steps,
    triple_phrase,
    verdict_words,
)
from cogstage.relations import phrase
from cogstage.web.about import about_page
from cogstage.web.asked import PairQuestion, Text, code_of
from cogstage.web.base import page
from cogstage.web.downloads import send_file
from cogstage.web.links import document_link, literature
from cogstage.web.service import Service
from cogstage.web.term_page import describe

DRAWN = 10  # reasons in the picture at most
BEHIND = 3  # reasons shown for the relation that contradicts the answer
Asked = Annotated[PairQuestion, Query()]


def in_words(prediction: Prediction) -> str:
    """What the probability means, in a sentence, with the base rate it assumes."""
    tenths = round(10 * prediction.probability)
    share = {0: "fewer than 1 in 10", 10: "more than 9 in 10"}.get(tenths, f"about {tenths} in 10")
    rate = f"{100 * prediction.base_rate:g} %"
    return f"If {rate} of the pairs in question are true, {share} pairs with this answer are true."


def bars(prediction: Prediction) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Where each step of the sum begins and ends on a scale of 200, and the bar of the total."""
    done = steps(prediction)
    sums = [0.0, prediction.logit, *(step.before + step.share for step in done)]
    low, high = min(sums), max(sums)
    scale = 200.0 / ((high - low) or 1.0)

    def bar(start: float, end: float) -> dict[str, str]:
        left, right = sorted((start, end))
        width = max(1.2, (right - left) * scale)
        x = min((left - low) * scale, 200.0 - width)
        return {"x": f"{x:.1f}", "width": f"{width:.1f}", "zero": f"{-low * scale:.1f}"}

    return [bar(step.before, step.before + step.share) for step in done], bar(0.0, prediction.logit)


def running(prediction: Prediction) -> list[float]:
    """The probability after each step of the sum; after the last one it is the answer."""
    return [sigmoid(step.before + step.share) for step in steps(prediction)]


def drawn_twice(prediction: Prediction, most: int) -> Markup:
    """The picture for screens and the one for phones; the style sheet shows one of them."""
    wide = svg(prediction, most, background=False, whole=False)
    if not bridged(prediction):  # four columns do not fit a phone; there it can be scrolled
        return Markup(wide)
    narrow = svg(prediction, most, background=False, narrow=True)
    return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')


def explorer_page(service: Service, request: Request, name: str, **values: Any) -> Response:
    """A page of the explorer from its template, with what all of them show."""
    common: dict[str, Any] = {
        "relations": service.relations,
        "phrase": phrase,
        "triple_phrase": triple_phrase,
        "status_in_words": status_in_words,
        "verdict_words": verdict_words,
        "literature": literature,
    }
    return page(request, f"explorer/{name}", counts_hidden=service.hide_counts, **common, **values)


def router(service: Service) -> APIRouter:
    """The pages over one service."""
    routes = APIRouter(include_in_schema=False)

    def show(request: Request, name: str, **values: Any) -> Response:
        return explorer_page(service, request, name, **values)

    def document_address(document: str) -> str | None:
        return document_link(document, str(service.counted.get("format", "")))

    @routes.get("/", name="start")
    def start(request: Request) -> Response:
        examples = service.examples
        picture = drawn_twice(examples[0], 6) if examples else None
        return show(request, "start.html", about=service.about(), examples=examples, picture=picture)

    @routes.get("/pair", name="pair")
    def pair(request: Request, question: Asked) -> Response:
        prediction = question.ask(service)
        typed = ((question.head, prediction.head), (question.tail, prediction.tail))
        read_as = [(words, term) for text, term in typed if (words := service.read_as(text, term))]
        question = question.of(prediction)
        changes = question.verdicts(service)
        original = question.ask(service, {}) if changes else prediction
        drawn, total = bars(prediction)
        rows = [
            {
                "step": step,
                "bar": bar,
                "so_far": so_far,
                "opposes": step.reason is not None and opposes(step.reason, prediction),
                "strike": step.reason and question.address({**changes, step.reason.triple: False}),
                "confirm": step.reason and question.address({**changes, step.reason.triple: True}),
            }
            for step, bar, so_far in zip(steps(prediction), drawn, running(prediction), strict=True)
        ]
        against = prediction.contradicted_by
        contradicting = {"relation": against, "k": BEHIND, "through": "", "reason_relation": "", "known_only": False}
        return show(
            request,
            "pair.html",
            question=question,
            prediction=prediction,
            read_as=read_as,
            order_in_words=order_in_words,
            estimate=estimate_in_words,
            original=original,
            words=in_words(prediction),
            sentences=prose(prediction)[1:],
            joins=joined_types(service.ranker.usual_types[prediction.relation]),
            document_link=document_address,
            contradicting=question.model_copy(update=contradicting).ask(service) if against else None,
            relation_address=lambda name: question.model_copy(update={"relation": name}).address(),
            rows=rows,
            total_bar=total,
            changes=_changes(service, question, changes),
            can_correct=service.corrected.path is not None,
            picture=drawn_twice(prediction, DRAWN) if prediction.reasons else None,
            rationale_relations=service.model.all_relations,
            address=question.address(),
            plain_address=question.address({}),
            unfiltered=urlencode(question.fields("through", "reason_relation", "known_only")),
        )

    @routes.get("/pair.json")
    def pair_json(question: Asked) -> Response:
        return send_file(question.ask(service).to_json() + "\n", "application/json", "prediction.json")

    @routes.get("/pair.tsv")
    def pair_tsv(question: Asked) -> Response:
        return send_file(
            table(rows_of([question.ask(service)])), "text/tab-separated-values; charset=utf-8", "prediction.tsv"
        )

    @routes.get("/pair.svg")
    def pair_svg(question: Asked) -> Response:
        return send_file(svg(question.ask(service), DRAWN), "image/svg+xml", "prediction.svg")

    @routes.get("/pair.png")
    def pair_png(question: Asked) -> Response:
        return send_file(png(question.ask(service), DRAWN), "image/png", "prediction.png")

    @routes.get("/search", name="search")
    def search(request: Request, q: Text = "") -> Response:
        return show(request, "search.html", q=q.strip(), matches=service.terms(q, 30) if q.strip() else [])

    @routes.get("/term", name="term")
    def term(request: Request, key: Text) -> Response:
        return show(request, "term.html", **describe(service, service.find(key)))

    @routes.get("/docs", name="docs")
    def docs(request: Request) -> Response:
        return show(request, "api.html", schema=request.app.openapi(), examples=_examples(service, request))

    @routes.get("/about", name="about")
    def about(request: Request) -> Response:
        return show(request, "about.html", **about_page(service))

    return routes


def _changes(service: Service, question: PairQuestion, changes: Mapping[Triple, bool]) -> list[dict[str, str]]:
    """The what-if changes in words, each with the address without it."""
    described = []
    for triple, right in changes.items():
        names = [service.term(service.find(key)).name for key in (triple[0], triple[2])]
        rest = {other: verdict for other, verdict in changes.items() if other != triple}
        described.append(
            {
                "words": f"{names[0]} {phrase(triple[1])} {names[1]}",
                "verdict": "right" if right else "wrong",
                "code": code_of(triple),
                "undo": question.address(rest),
            }
        )
    return described


def _examples(service: Service, request: Request) -> list[dict[str, str]]:
    """Calls of the API with the answers that this model gives."""
    if not service.examples:
        return []
    p = service.examples[0]
    base = str(request.base_url).rstrip("/")
    asked = {"head": p.head.name, "tail": p.tail.name, "relation": p.relation, "k": 1}
    record = service.explain(p.head.key, p.tail.key, p.relation, 1).to_dict()
    pairs: Sequence[dict[str, str]] = [
        {"head": p.head.name, "tail": p.tail.name},
        {"head": "no such term", "tail": p.tail.name},
    ]
    rows = [record["probability"], "unknown_term"]
    python = (
        "import json, urllib.request\n\n"
        f"body = {json.dumps({'relation': p.relation, 'pairs': pairs}, indent=4)}\n"
        f'request = urllib.request.Request("{base}/api/v1/predict", json.dumps(body).encode(),\n'
        '                                 {"Content-Type": "application/json"})\n'
        "for row in json.load(urllib.request.urlopen(request)):\n"
        '    print(row.get("probability", row.get("error", {}).get("code")))'
    )
    return [
        {
            "title": "One pair with curl",
            "asked": f"curl '{base}/api/v1/explain?{urlencode(asked)}'",
            "given": json.dumps(record, indent=2, ensure_ascii=False),
        },
        {"title": "A batch with Python", "asked": python, "given": "\n".join(str(row) for row in rows)},
    ]
