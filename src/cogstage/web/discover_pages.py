"""Pages about many pairs: candidates of a term, candidates side by side, lists of pairs; and the team's corrections."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import parse_qs, urlencode

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from cogstage.errors import CogstageError, UsageError
from cogstage.evaluation.hit_rate import rate_at
from cogstage.rationale.corrections import WITHDRAWN
from cogstage.rationale.exports import kgx, rows_of, table
from cogstage.rationale.record import Prediction
from cogstage.relations import phrase
from cogstage.web.api import described, problem
from cogstage.web.asked import Text, code_of, triple_of
from cogstage.web.base import PageError, page
from cogstage.web.explorer import send_file
from cogstage.web.links import literature
from cogstage.web.questions import joined_types, question
from cogstage.web.ranking import SORTS, CandidateRanking
from cogstage.web.service import Service

ON_PAGE = 25
EXPORTED = 500  # candidates in a download at most
COMPARED = 3
Side = Annotated[str, Query(pattern="^(|head|tail)$")]
Choice = Annotated[str, Query(max_length=20)]


def router(service: Service) -> APIRouter:
    """The pages over one service."""
    routes = APIRouter(include_in_schema=False)

    def show(request: Request, name: str, **values: Any) -> Response:
        common: dict[str, Any] = {
            "relations": service.relations,
            "phrase": phrase,
            "literature": literature,
            "question": question,
        }
        return page(request, f"explorer/{name}", counts_hidden=service.hide_counts, **common, **values)

    def rank(term: str, relation: str, side: str) -> tuple[int, CandidateRanking | None]:
        """The node and its ranking; none where the relation does not join terms of its type."""
        node = service.find(term)
        service.model.check_relation(relation)
        side = side or service.ranker.side(relation, node)
        return node, service.ranking(relation, side, node) if side else None

    def used(ranking: CandidateRanking, asked: dict[str, Any]) -> np.ndarray | None:
        """Which candidates are indications to leave out."""
        return service.ranker.indications(ranking) if asked["indications"] == "drop" else None

    def chosen(ranking: CandidateRanking, asked: dict[str, Any]) -> np.ndarray:
        choices = asked["type"], asked["known"], asked["together"], asked["least"] / 100, asked["sort"]
        at = ranking.choose(*choices, used(ranking, asked))
        if asked["sort"] == "name":
            names = service.model.vocabulary.name
            at = np.array(sorted(at.tolist(), key=lambda row: names[ranking.node[row]].casefold()), np.int64)
        return at

    @routes.get("/discover", name="discover")
    def discover(
        request: Request,
        term: Text = "",
        relation: Text = "",
        side: Side = "",
        type: Choice = "",
        known: Choice = "",
        together: Choice = "",
        least: Annotated[int, Query(ge=0, le=100)] = 0,
        sort: Choice = "rank",
        indications: Choice = "",
        number: Annotated[int, Query(ge=1, le=10_000, alias="page")] = 1,
    ) -> Response:
        relation = relation or service.relations[0]
        asked: dict[str, Any] = {"term": term.strip(), "relation": relation, "side": side, "type": type}
        asked |= {"known": known, "together": together, "least": least, "page": number, "indications": indications}
        asked["sort"] = sort if sort in SORTS else "rank"
        values: dict[str, Any] = {
            "asked": asked,
            "subject": None,
            "ranking": None,
            "heading": "",
            "joins": "",
            "left_out": None,
            "examples": () if asked["term"] else service.examples,
        }
        if asked["term"]:
            node, ranking = rank(asked["term"], relation, side)
            values |= {"subject": service.term(node), "joins": joined_types(service.ranker.sides[relation])}
            if ranking is not None:
                at = chosen(ranking, asked)
                values |= _listed(service, ranking, at, asked)
                if (drop := used(ranking, asked)) is not None:
                    shown = at[: asked["page"] * ON_PAGE]
                    out = ranking.left_out(drop, shown, whole=len(shown) == len(at))
                    values["left_out"] = [service.term(node) for node in out]
                values["heading"] = question(relation, ranking.side, values["subject"].name)
        values["link"] = lambda **changed: urlencode(
            {k: v for k, v in {**asked, **changed}.items() if v not in ("", 0)}
        )
        return show(request, "discover.html", **values)

    @routes.get("/discover.{form}")
    def export(
        form: str,
        term: Text,
        relation: Text = "",
        side: Side = "",
        type: Choice = "",
        known: Choice = "",
        together: Choice = "",
        least: Annotated[int, Query(ge=0, le=100)] = 0,
        sort: Choice = "rank",
        indications: Choice = "",
    ) -> Response:
        _, ranking = rank(term, relation or service.relations[0], side)
        asked = {"type": type, "known": known, "together": together, "least": least, "sort": sort}
        asked["indications"] = indications
        at = chosen(ranking, asked)[:EXPORTED] if ranking is not None else np.empty(0, np.int64)
        records = service.records(ranking, at, 5) if ranking is not None else []
        return download(records, form, "candidates")

    @routes.get("/compare", name="compare")
    def compare(
        request: Request,
        term: Text = "",
        relation: Text = "",
        side: Side = "head",
        others: Annotated[list[str], Query(alias="with", max_length=20)] = [],  # noqa: B006
    ) -> Response:
        subject = service.term(service.find(term))
        side = side or "head"
        pairs = [(subject.key, other) if side == "head" else (other, subject.key) for other in others[:COMPARED]]
        predictions = [service.explain(head, tail, relation, 10) for head, tail in pairs]
        back = "/discover?" + urlencode({"term": subject.key, "relation": relation, "side": side})
        heading = question(relation, side, subject.name)
        values = {"predictions": predictions, "side": side, "left_out": len(others[COMPARED:])}
        return show(request, "compare.html", back=back, heading=heading, **values)

    def batch_page(request: Request, **values: Any) -> Response:
        return show(request, "batch.html", limits=service.limits, **values)

    @routes.get("/batch", name="batch")
    def batch(request: Request) -> Response:
        return batch_page(request, rows=[], text="", relation="")

    @routes.post("/batch")
    async def batch_posted(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        fields = await _fields(request)
        text, relation = fields.get("pairs", [""])[0], fields.get("relation", [service.relations[0]])[0]
        pairs = pairs_of(text)
        if not 0 < len(pairs) <= service.limits.pairs:
            raise UsageError(f"{len(pairs)} pairs were sent; between 1 and {service.limits.pairs} can be asked about")
        answers = await run_in_threadpool(lambda: list(service.predict(pairs, relation, 3)))
        form = fields.get("form", ["page"])[0]
        if form != "page":
            return download(answers, form, "predictions", pairs)
        rows = [
            {"pair": pair, "error": str(row) if isinstance(row, CogstageError) else "", "prediction": row}
            for pair, row in zip(pairs, answers, strict=True)
        ]
        return batch_page(request, rows=rows, text=text, relation=relation)

    @routes.get("/corrections", name="corrections")
    def corrections(request: Request) -> Response:
        service.corrected.version  # noqa: B018 (reads the table again if it has changed)
        told = service.corrected.entries.entries
        last = {(entry.head, entry.relation, entry.tail): entry for entry in told}
        entries = [
            {
                **vars(entry),
                "words": _words(service, entry),
                "code": code_of(triple),
                "holds": entry is last[triple] and entry.verdict != WITHDRAWN,
            }
            for entry in reversed(told)
            for triple in [(entry.head, entry.relation, entry.tail)]
        ]
        return show(request, "corrections.html", entries=entries, kept=service.corrected.path is not None)

    @routes.get("/corrections.tsv")
    def corrections_file() -> Response:
        path = service.corrected.path
        if path is None or not path.exists():
            raise PageError(404, "no_corrections", "No corrections are kept on this server.")
        return send_file(path.read_bytes(), "text/tab-separated-values; charset=utf-8", "corrections.tsv")

    @routes.post("/corrections")
    async def correct(request: Request) -> Response:
        fields = await _fields(request)
        who, why = (fields.get(name, [""])[0] for name in ("who", "why"))
        codes, verdicts = fields.get("triple", []), fields.get("verdict", [])
        if not codes or len(codes) != len(verdicts):
            raise UsageError("nothing to save: strike a reason out or confirm it first")
        for code, verdict in zip(codes[:20], verdicts, strict=False):
            service.corrected.add(*triple_of(code), verdict, who, why)
        back = fields.get("back", [""])[0]
        return RedirectResponse(f"/pair?{back}" if back.startswith("head=") else "/corrections", 303)

    return routes


def _listed(service: Service, ranking: CandidateRanking, at: np.ndarray, asked: dict[str, Any]) -> dict[str, Any]:
    """One page of candidates."""
    pages = max(1, -(-len(at) // ON_PAGE))
    asked["page"] = min(asked["page"], pages)
    shown = at[(asked["page"] - 1) * ON_PAGE : asked["page"] * ON_PAGE]
    bands = service.model.metrics.get("hit_rate", {}).get(ranking.relation, {}).get(ranking.side, [])
    rows = [
        {
            "prediction": prediction,
            "partner": prediction.tail if ranking.side == "head" else prediction.head,
            "rank": int(row) + 1,
            "together": int(ranking.together[row]),
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
    }


def download(
    answers: Sequence[Prediction | CogstageError], form: str, name: str, pairs: Sequence[tuple[str, str]] = ()
) -> Response:
    """Answers as a file: one row per reason in TSV and CSV, whole records in JSON, nodes and edges in KGX (JSON).

    A pair without an answer keeps its place, with the error: what was asked stands in ``pairs``.
    """
    records = [row for row in answers if isinstance(row, Prediction)]
    if form == "json":
        text = json.dumps([_record(row) for row in answers], ensure_ascii=False)
        return send_file(text, "application/json", f"{name}.json")
    if form == "kgx":
        nodes, edges = kgx(records)
        text = json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False)
        return send_file(text, "application/json", f"{name}.kgx.json")
    rows = rows_of(records) if len(records) == len(answers) else _with_errors(answers, pairs)
    if form == "tsv":
        return send_file(table(rows) if rows else "\n", "text/tab-separated-values; charset=utf-8", f"{name}.tsv")
    if form == "csv":
        stream = io.StringIO()
        if rows:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\r\n")
            writer.writeheader()
            writer.writerows([{key: _cell(value) for key, value in row.items()} for row in rows])
        return send_file(stream.getvalue(), "text/csv; charset=utf-8", f"{name}.csv")
    raise PageError(404, "unknown_format", "Candidates can be exported as TSV, CSV, JSON and KGX.")


def _record(row: Prediction | CogstageError) -> dict[str, Any]:
    return row.to_dict() if isinstance(row, Prediction) else problem(*described(row)[1:])


def _with_errors(answers: Sequence[Prediction | CogstageError], pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """The rows of a table, in the order of the pairs; a pair that has no answer has one row with its error."""
    columns = dict.fromkeys([*(rows_of([p])[0] if (p := _first(answers)) else ("head", "tail")), "error"], "")
    rows = []
    for answer, (head, tail) in zip(answers, pairs, strict=True):
        if isinstance(answer, Prediction):
            rows += [{**columns, **row} for row in rows_of([answer])]
        else:
            rows.append({**columns, "head": head, "tail": tail, "error": str(answer)})
    return rows


def _first(answers: Sequence[Prediction | CogstageError]) -> Prediction | None:
    return next((row for row in answers if isinstance(row, Prediction)), None)


def _cell(value: Any) -> Any:
    """A value that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


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


async def _fields(request: Request) -> dict[str, list[str]]:
    """The fields of a posted form."""
    try:
        return parse_qs(
            (await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=200, errors="strict"
        )
    except ValueError:
        raise PageError(400, "bad_form", "The form could not be understood.") from None


def _words(service: Service, entry: Any) -> str:
    names = []
    for key in (entry.head, entry.tail):
        try:
            names.append(service.term(service.find(key)).name)
        except CogstageError:
            names.append(key)
    return f"{names[0]} {phrase(entry.relation)} {names[1]}"
