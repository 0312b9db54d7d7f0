"""Pages about many pairs: candidates of a term, candidates side by side, lists of pairs."""

from __future__ import annotations

import csv
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlencode

import numpy as np
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from cogstage.errors import CogstageError, UsageError
from cogstage.evaluation.hit_rate import rate_at
from cogstage.rationale.discover import left_out_text
from cogstage.rationale.exports import prediction_columns, reason_rows
from cogstage.rationale.record import Term
from cogstage.rationale.side_effects import use_and_effect
from cogstage.rationale.wording import joined_types, opposite_flags, question_text
from cogstage.web.asked import Text
from cogstage.web.base import PageError
from cogstage.web.downloads import download, file_name, send_table
from cogstage.web.explorer import explorer_page
from cogstage.web.ranking import SORTS, CandidateRanking
from cogstage.web.service import Service

ON_PAGE = 25
EXPORTED_REASONS = 5  # of each candidate
COMPARED = 3
SideText = Annotated[str, Query(pattern="^(|head|tail)$")]
Choice = Annotated[str, Query(max_length=20)]


class CandidateQuestion:
    """What a list of candidates was asked, as it stands in its address."""

    def __init__(
        self,
        term: Text = "",
        relation: Text = "",
        side: SideText = "",
        type: Choice = "",
        known: Choice = "",
        together: Choice = "",
        least: Annotated[int, Query(ge=0, le=100)] = 0,
        sort: Choice = "rank",
        indications: Choice = "",
        drop_contradicted: bool = False,
        page: Annotated[int, Query(ge=1, le=10_000)] = 1,
    ) -> None:
        self.term, self.relation, self.side, self.type = term.strip(), relation, side, type
        self.known, self.together, self.least, self.indications = known, together, least, indications
        self.drop_contradicted = 1 if drop_contradicted else ""
        self.sort, self.page = sort if sort in SORTS else "rank", page

    def address(self, **changed: Any) -> str:
        """The address of this question with some fields changed; empty ones are left out."""
        return urlencode({name: value for name, value in {**vars(self), **changed}.items() if value not in ("", 0)})


Asked = Annotated[CandidateQuestion, Depends()]


def router(service: Service) -> APIRouter:
    """The pages over one service."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/discover", name="discover")
    def discover(request: Request, question: Asked) -> Response:
        _choose_relation(service, question)
        values: dict[str, Any] = {"subject": None, "ranking": None, "heading": "", "joins": "", "left_out": None}
        values["examples"] = () if question.term else service.examples
        if question.term:
            ranking = _ranking(service, question)
            values["subject"] = service.term(service.find(question.term))
            values["joins"] = joined_types(service.ranker.usual_types[question.relation])
            if ranking is not None:
                at = _chosen(service, ranking, question)
                values |= _page_of(service, ranking, at, question)
                values["left_out"] = _left_out(service, ranking, at, question)
                values["heading"] = question_text(ranking.relation, ranking.side, values["subject"].name)
        values |= {"asked": vars(question), "link": question.address, "question": question_text}
        return explorer_page(service, request, "discover.html", **values)

    @routes.get("/discover.{form}")
    def export(form: str, question: Asked, table: Literal["candidates", "reasons"] = "candidates") -> Response:
        _choose_relation(service, question)
        ranking = _ranking(service, question)
        subject = service.term(service.find(question.term)).name
        name = file_name(table, question.relation, subject)
        if ranking is None:
            return download([], form, name)
        at = _chosen(service, ranking, question)
        if form in ("tsv", "csv") and table == "candidates":
            return send_table(_candidate_rows(service, ranking, at), form, name)
        records = list(service.all_records(ranking, at, EXPORTED_REASONS))
        return send_table(reason_rows(records), form, name) if table == "reasons" else download(records, form, name)

    @routes.get("/compare", name="compare")
    def compare(
        request: Request,
        term: Text = "",
        relation: Text = "",
        side: SideText = "head",
        others: Annotated[list[str], Query(alias="with", max_length=20)] = [],  # noqa: B006
    ) -> Response:
        subject = service.term(service.find(term))
        side = side or "head"
        pairs = [(subject.key, other) if side == "head" else (other, subject.key) for other in others[:COMPARED]]
        predictions = [service.explain(head, tail, relation, 10) for head, tail in pairs]
        back = "/discover?" + urlencode({"term": subject.key, "relation": relation, "side": side})
        heading = question_text(relation, side, subject.name)
        values = {"predictions": predictions, "side": side, "left_out": len(others[COMPARED:])}
        return explorer_page(service, request, "compare.html", back=back, heading=heading, **values)

    def batch_page(request: Request, **values: Any) -> Response:
        return explorer_page(service, request, "batch.html", limits=service.limits, **values)

    @routes.get("/batch", name="batch")
    def batch(request: Request) -> Response:
        return batch_page(request, rows=[], text="", relation="")

    @routes.post("/batch")
    async def batch_posted(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        fields = await posted_fields(request)
        text, relation = fields.get("pairs", [""])[0], fields.get("relation", [""])[0]
        pairs = pairs_of(text)
        if not 0 < len(pairs) <= service.limits.pairs:
            raise UsageError(f"{len(pairs)} pairs were sent; a batch can have 1 to {service.limits.pairs}")
        answers = await run_in_threadpool(lambda: list(service.predict(pairs, relation, 3)))
        form = fields.get("form", ["page"])[0]
        if form != "page":
            return download(answers, form, "predictions", pairs)
        rows = [
            {"pair": pair, "error": str(row) if isinstance(row, CogstageError) else "", "prediction": row}
            for pair, row in zip(pairs, answers, strict=True)
        ]
        return batch_page(request, rows=rows, text=text, relation=relation)

    return routes


def _choose_relation(service: Service, question: CandidateQuestion) -> None:
    """Without a relation, the first that joins terms of this type."""
    if not question.relation:
        node = service.find(question.term) if question.term else None
        fitting = (name for name in service.relations if node is not None and service.ranker.side(name, node))
        question.relation = next(fitting, service.relations[0])


def _ranking(service: Service, question: CandidateQuestion) -> CandidateRanking | None:
    """All candidates; None where the relation does not join terms of this type."""
    node = service.find(question.term)
    service.model.check_relation(question.relation)
    side = question.side or service.ranker.side(question.relation, node)
    return service.ranking(question.relation, side, node) if side else None


def _chosen(service: Service, ranking: CandidateRanking, question: CandidateQuestion) -> np.ndarray:
    """The rows that pass the filters, sorted."""
    q = question
    drop = ranking.contradicted & bool(q.drop_contradicted)
    if q.indications == "drop":
        drop = drop | service.ranker.indications(ranking)
    at = ranking.choose(q.type, q.known, q.together, q.least / 100, q.sort, drop)
    if q.sort == "name":
        names = service.model.vocabulary.name
        at = np.array(sorted(at.tolist(), key=lambda row: names[ranking.node[row]].casefold()), np.int64)
    return at


def _left_out(
    service: Service, ranking: CandidateRanking, at: np.ndarray, question: CandidateQuestion
) -> list[tuple[Term, str]] | None:
    """The indications that would stand on this page or before it, with both probabilities; None if all are kept."""
    if question.indications != "drop":
        return None
    shown = at[: question.page * ON_PAGE]
    rows = ranking.left_out(service.ranker.indications(ranking), shown, whole=len(shown) == len(at))
    records = service.records(ranking, rows, 0)
    return [(p.tail if ranking.side == "head" else p.head, use_and_effect(p)) for p in records]


def _page_of(
    service: Service, ranking: CandidateRanking, at: np.ndarray, question: CandidateQuestion
) -> dict[str, Any]:
    """Return the candidates of one page, with their records."""
    pages = max(1, -(-len(at) // ON_PAGE))
    question.page = min(question.page, pages)
    shown = at[(question.page - 1) * ON_PAGE : question.page * ON_PAGE]
    bands = _bands(service, ranking)
    rows = [
        {
            "prediction": prediction,
            "partner": prediction.tail if ranking.side == "head" else prediction.head,
            "rank": int(row) + 1,
            "together": int(ranking.together[row]),
            "opposite": opposite_flags(prediction),
            "warning": service.bases.of(int(ranking.node[row])).warning,
            "hit": rate_at(bands, new) if new else None,
            "score": float(score),
        }
        for row, score, new, prediction in zip(
            shown.tolist(),
            ranking.score(shown),
            ranking.new_rank(shown).tolist(),
            service.records(ranking, shown, 4),
            strict=True,
        )
    ]
    kinds = sorted({kind for kind in ranking.type.tolist() if kind})
    return {
        "ranking": ranking,
        "rows": rows,
        "total": len(at),
        "pages": pages,
        "kinds": kinds,
        "hits": bool(bands),
        "basis": service.bases.of(ranking.given).warning,
        "ranked": left_out_text(service.model, ranking.relation, len(ranking.node)),
    }


def _bands(service: Service, ranking: CandidateRanking) -> list[dict[str, float]]:
    """The measured hit rates of such a list, by rank; empty if there are none."""
    bands: list[dict[str, float]] = (
        service.model.metrics.get("hit_rate", {}).get(ranking.relation, {}).get(ranking.side, [])
    )
    return bands


def _candidate_rows(service: Service, ranking: CandidateRanking, at: np.ndarray) -> list[dict[str, Any]]:
    """One row per candidate: its figures, how reliable they are, and the hit rate at its rank."""
    bands, rows = _bands(service, ranking), []
    for row, new, p in zip(
        at.tolist(), ranking.new_rank(at).tolist(), service.all_records(ranking, at, 0), strict=True
    ):
        partner, hit = p.tail if ranking.side == "head" else p.head, rate_at(bands, new) if new else None
        candidate = {
            "rank": p.rank,
            "candidate": partner.key,
            "candidate_name": partner.name,
            "candidate_type": partner.type,
            "co_occurrences": None if service.hide_counts else int(ranking.together[row]),
            "reliability": service.bases.of(int(ranking.node[row])).warning,
            "hit_rate": None if hit is None else hit["rate"],
        }
        rows.append(candidate | prediction_columns(p))
    return rows


def pairs_of(text: str) -> list[tuple[str, str]]:
    """Pairs from lines with a tab, semicolon or comma between the two terms; a heading is left out."""
    found = []
    for line in text.replace("\0", " ").splitlines():
        line = line[:2000]
        for separator in ("\t", ";", ","):
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
            if len(cells) > 1 and cells[0] and cells[1]:
                found.append((cells[0][:300], cells[1][:300]))
                break
        else:
            if line.strip():
                found.append((line.strip()[:300], ""))
    if found and (found[0][0].casefold(), found[0][1].casefold()) == ("head", "tail"):
        found = found[1:]
    return found


async def posted_fields(request: Request) -> dict[str, list[str]]:
    """The fields of a posted form."""
    try:
        return parse_qs(
            (await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=200, errors="strict"
        )
    except ValueError:
        raise PageError(400, "bad_form", "The form could not be understood.") from None
