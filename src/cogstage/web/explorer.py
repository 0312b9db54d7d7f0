"""The explorer's pages: search, a pair and its reasons, candidates of a term, and what the model is."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from cogstage.rationale.exports import rows_of, table
from cogstage.rationale.filters import Filter
from cogstage.rationale.picture import svg
from cogstage.rationale.record import Prediction
from cogstage.relations import RELATIONS, phrase
from cogstage.web.base import page
from cogstage.web.service import Service

SHOWN = 10  # rationales on the pair page unless asked otherwise
DRAWN = 15  # rationales in the picture at most
Text = Annotated[str, Query(max_length=300)]


def in_words(prediction: Prediction) -> str:
    """What the probability means, in a sentence."""
    p = prediction.probability
    tenths = round(10 * p)
    if tenths == 0:
        share = "fewer than 1 in 10 hold"
    elif tenths == 10:
        share = "more than 9 in 10 hold"
    else:
        share = f"about {tenths} in 10 hold"
    return f"Among pairs that the model gives about this probability, {share} (as many true as false pairs were asked)."


class Question:
    """What a pair page was asked, as it stands in its address."""

    def __init__(
        self,
        head: Text = "",
        tail: Text = "",
        relation: Text = "",
        k: Annotated[int, Query(ge=1, le=50)] = SHOWN,
        through: Text = "",
        by: Text = "",
        known: bool = False,
    ) -> None:
        self.head, self.tail, self.relation, self.k = head.strip(), tail.strip(), relation, k
        self.through, self.by, self.known = through.strip(), by, known

    def choose(self) -> Filter:
        """The filter that was asked for."""
        return Filter(self.through or None, self.by or None, self.known)

    def address(self, prediction: Prediction) -> str:
        """The stable address of this question: keys in place of what was typed, defaults left out."""
        asked: dict[str, Any] = {"head": prediction.head.key, "tail": prediction.tail.key, "relation": self.relation}
        asked |= {"k": self.k} if self.k != SHOWN else {}
        asked |= {"through": self.through} if self.through else {}
        asked |= {"by": self.by} if self.by else {}
        asked |= {"known": 1} if self.known else {}
        return urlencode(asked)


Asked = Annotated[Question, Depends()]


def router(service: Service) -> APIRouter:
    """The pages over one service."""
    routes = APIRouter(include_in_schema=False)

    def show(request: Request, name: str, **values: Any) -> Response:
        return page(request, f"explorer/{name}", relations=service.relations, phrase=phrase, **values)

    def ask(question: Question) -> Prediction:
        question.relation = question.relation or service.relations[0]
        return service.explain(question.head, question.tail, question.relation, question.k, question.choose())

    @routes.get("/", name="start")
    def start(request: Request) -> Response:
        return show(request, "start.html", about=service.about(), examples=service.examples)

    @routes.get("/pair", name="pair")
    def pair(request: Request, question: Asked) -> Response:
        prediction = ask(question)
        head, tail = prediction.head.key, prediction.tail.key
        others = [service.explain(head, tail, name, 0) for name in service.relations if name != question.relation]
        return show(
            request,
            "pair.html",
            question=question,
            prediction=prediction,
            words=in_words(prediction),
            others=others,
            picture=Markup(svg(prediction, DRAWN, background=False)) if prediction.reasons else None,
            rationale_relations=[*RELATIONS],
            address=question.address(prediction),
        )

    @routes.get("/pair.json")
    def pair_json(question: Asked) -> Response:
        return _file(ask(question).to_json() + "\n", "application/json", "prediction.json")

    @routes.get("/pair.tsv")
    def pair_tsv(question: Asked) -> Response:
        return _file(table(rows_of([ask(question)])), "text/tab-separated-values; charset=utf-8", "prediction.tsv")

    @routes.get("/pair.svg")
    def pair_svg(question: Asked) -> Response:
        return _file(svg(ask(question), DRAWN), "image/svg+xml", "prediction.svg")

    @routes.get("/discover", name="discover")
    def discover(
        request: Request,
        term: Text = "",
        side: Annotated[str, Query(pattern="^(head|tail)$")] = "head",
        relation: Text = "",
        top: Annotated[int, Query(ge=1, le=service.limits.candidates)] = 20,
        new: bool = False,
    ) -> Response:
        relation = relation or service.relations[0]
        found = []
        if term.strip():
            head, tail = (term, None) if side == "head" else (None, term)
            found = service.discover(relation, head, tail, top, new, 3)
        asked = {"term": term, "side": side, "relation": relation, "top": top, "new": new}
        subject = service.term(service.model.vocabulary.find(term)) if term.strip() else None
        return show(request, "discover.html", asked=asked, found=found, subject=subject)

    @routes.get("/docs", name="docs")
    def docs(request: Request) -> Response:
        return show(request, "api.html", schema=request.app.openapi())

    @routes.get("/about", name="about")
    def about(request: Request) -> Response:
        return show(request, "about.html", about=service.about(), quality=service.quality())

    return routes


def _file(content: str, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
