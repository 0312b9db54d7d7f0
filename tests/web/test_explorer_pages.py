"""The explorer's pages in-process: sums that add up, facts and assumptions apart, what-if, lists, corrections."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import json
import math
import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sample_predictions import inapplicable

from cogstage.estimator import CogStage
from cogstage.mcp.server import create_server
from cogstage.rationale.corrections import Corrections
from cogstage.rationale.record import Prediction
from cogstage.rationale.wording import in_words, question_text, verdict_words
from cogstage.relations import phrase
from cogstage.web.asked import code_of, triple_of
from cogstage.web.base import chance
from cogstage.web.discover_pages import pairs_of
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.links import literature, source_of
from cogstage.web.service import Service

PAIR = {"head": "remedy 4", "tail": "Disorder number 7", "relation": "may_treat"}


@pytest.fixture(scope="module")
def service(small_model_folder: Path) -> Service:
    return Service.load(small_model_folder)


@pytest.fixture(scope="module")
def client(service: Service) -> TestClient:
    return TestClient(create_explorer_app(service))


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def shares(page: str) -> list[float]:
    rows = re.search(r'<table class="sum">(.*?)</table>', page, re.S)
    assert rows
    return [float(value) for value in re.findall(r'<td class="right">([+-][\d.]+)</td>', rows[1])]


# The answer


@pytest.mark.parametrize("relation", ["may_treat", "causes"])
def test_pages_files_api_and_agents_say_the_same_sentence(
    client: TestClient, service: Service, relation: str, small_model_folder: Path
) -> None:
    asked = {"head": "C004", "tail": "C007", "relation": relation}
    record = CogStage.load(small_model_folder).predict("C004", "C007", relation)
    sentence = record.statement
    page = client.get("/pair", params=asked).text
    assert plain(page[page.index("<h1>") : page.index("</h1>")]) == sentence
    assert sentence in html.unescape(client.get("/pair.svg", params=asked).text)
    assert client.get("/pair.json", params=asked).json()["statement"] == sentence
    rows = csv.DictReader(io.StringIO(client.get("/pair.tsv", params=asked).text), delimiter="\t")
    assert {row["statement"] for row in rows} == {sentence}
    assert client.get("/api/v1/explain", params=asked).json()["statement"] == sentence
    assert client.post("/api/v1/explain", json=asked).json()["statement"] == sentence
    pairs = {"pairs": [{"head": "C004", "tail": "C007"}], "relation": relation}
    assert client.post("/api/v1/predict", json=pairs).json()[0]["statement"] == sentence
    found = client.get("/api/v1/discover", params={"head": "C004", "relation": relation, "top": 200}).json()
    assert [row["statement"] for row in found if row["tail"]["key"] == "C007"] == [sentence]
    batch = {"pairs": "C004;C007", "relation": relation, "form": "page"}
    assert sentence in plain(client.post("/batch", data=batch).text)
    for form in ("csv", "tsv"):
        assert sentence in client.post("/batch", data={**batch, "form": form}).text
    exported = client.get("/discover.kgx", params={"term": "C004", "relation": relation, "side": "head"}).json()
    assert sentence in [edge["statement"] for edge in exported["edges"]]
    tools = create_server(service)
    for name in ("predict", "explain"):
        answer = asyncio.run(tools.call_tool(name, asked))
        assert json.dumps(sentence, ensure_ascii=False)[1:-1] in str(answer)


@pytest.mark.parametrize("tail", range(1, 40, 4))
def test_the_sum_on_the_page_is_the_answer(client: TestClient, service: Service, tail: int) -> None:
    page = client.get("/pair", params={**PAIR, "tail": f"C{tail:03d}"}).text
    *parts, total = shares(page)
    record = service.explain("C004", f"C{tail:03d}", "may_treat", 10)
    assert sum(parts) == pytest.approx(total, abs=0.0006 * len(parts))  # three digits each
    assert total == pytest.approx(record.logit, abs=0.0005)
    shown = re.search(r"Sum: probability ([\d.]+)", page)
    assert shown
    assert float(shown[1]) == pytest.approx(1 / (1 + math.exp(-record.logit)), abs=0.0006)
    assert page.count('class="for"') == len(record.reasons_for)
    assert page.count('class="against"') == len(record.reasons_against)


def test_the_answer_after_each_step_ends_at_the_answer(client: TestClient, service: Service) -> None:
    page = client.get("/pair", params=PAIR).text
    *parts, _ = shares(page)
    shown = re.findall(r'<td class="right so-far">([^<]+)</td>', page)
    total, expected = 0.0, []
    for share in parts:
        total += share
        expected.append(1 / (1 + math.exp(-total)))
    assert len(shown) == len(parts) + 1
    for text, value in zip(shown, expected, strict=False):
        assert float(html.unescape(text).strip("<>")) == pytest.approx(value, abs=0.012)
    assert html.unescape(shown[-1]) == chance(service.explain("C004", "C007", "may_treat", 10).probability)


def test_a_contradicted_relation_leads_with_the_contradiction(client: TestClient, service: Service) -> None:
    seen = set()
    for tail in range(1, 40, 2):
        asked = {**PAIR, "tail": f"C{tail:03d}"}
        record = service.explain("C004", asked["tail"], "may_treat", 10)
        page = client.get("/pair", params=asked).text
        shown = plain(page)
        assert plain(page[page.index("<h1>") :]).startswith(record.statement)
        assert ("What speaks for “" in shown) == (record.verdict == "contradicted")
        if record.verdict == "contradicted":
            other = service.explain("C004", asked["tail"], record.contradicted_by, 3)
            contradiction = page[page.index('aria-label="Contradiction"') : page.index('<div class="columns">')]
            assert f"{phrase(other.relation)} {other.tail.name}”" in plain(contradiction)
            assert [r.head.name in plain(contradiction) for r in other.reasons_for] == [True] * len(other.reasons_for)
        seen.add(record.verdict)
    assert {"contradicted", "likely"} <= seen


def test_facts_and_assumptions_are_marked(client: TestClient, service: Service) -> None:
    record = service.explain("C004", "C007", "may_treat", 10)
    page = client.get("/pair", params=PAIR).text
    table = page[page.index('<table class="sum">') :]
    assert table.count("Known fact</span>") == sum(r.known_fact for r in record.reasons)
    assert table.count('class="tag assumed"') == sum(not r.known_fact for r in record.reasons)


def test_the_words_and_the_bar_have_the_colour_of_the_verdict(client: TestClient, service: Service) -> None:
    for tail in ("C007", "C001", "C003", "C009"):
        record = service.explain("C004", tail, "may_treat", 10)
        page = client.get("/pair", params={**PAIR, "tail": tail}).text
        kinds = re.findall(r'class="answer ([^"]*)"', page)
        assert kinds == [record.verdict.replace(" ", "-")]


def test_all_relations_stand_beside_the_answer_at_one_base_rate(client: TestClient, service: Service) -> None:
    for rate in (0.5, 0.01):
        record = service.explain("C004", "C007", "may_treat", 0).with_base_rate(rate)
        page = client.get("/pair", params={**PAIR, "base_rate": rate}).text
        chart = page[page.index('<table class="profile">') :]
        rows = [plain(row) for row in chart[: chart.index("</table>")].split("<tr")[1:]]
        assert len(rows) == len(record.profile) == 2
        for row, entry in zip(rows, record.profile, strict=True):
            assert phrase(entry.relation) in row
            assert chance(entry.probability) in row
            assert verdict_words(entry).capitalize() in row


class NothingFits(Service):
    """A service whose every pair has types that the relation does not join."""

    def _shown(self, records: list[Prediction]) -> list[Prediction]:
        return [inapplicable(record) for record in records]


def test_no_number_on_nonsense(small_model_folder: Path) -> None:
    client = TestClient(create_explorer_app(NothingFits.load(small_model_folder)))
    page = client.get("/pair", params=PAIR).text
    text = plain(page[page.index("<h1>") :])
    assert "Does not apply" in text
    assert "may treat joins" in text
    assert not re.search(r"\b0\.\d", text.split("All relations of the pair")[0])
    assert '<table class="sum">' not in page


def test_the_base_rate_is_stated_and_can_be_set(client: TestClient, service: Service) -> None:
    record = service.explain("C004", "C007", "may_treat", 10)
    assert "If 50 % of the pairs" in plain(client.get("/pair", params=PAIR).text)
    page = client.get("/pair", params={**PAIR, "base_rate": "0.01"}).text
    assert "If 1 % of the pairs" in plain(page)
    shifted = record.logit + math.log(0.01 / 0.99)
    assert shares(page)[-1] == pytest.approx(shifted, abs=0.0006)
    assert "base_rate=0.01" in html.unescape(page)  # the link keeps it
    assert client.get("/pair", params={**PAIR, "base_rate": "0"}).status_code == 422


def test_filters_take_part_of_a_name_and_never_change_the_answer(client: TestClient, service: Service) -> None:
    record = service.explain("C004", "C007", "may_treat", 10)
    term = next(r for r in record.reasons).tail.name
    page = client.get("/pair", params={**PAIR, "through": term.split()[-1]}).text
    assert term in page
    assert shares(page)[-1] == pytest.approx(record.logit, abs=0.0006)
    page = client.get("/pair", params={**PAIR, "known_only": "1"}).text
    assert 'class="tag assumed"' not in page
    assert shares(page)[-1] == pytest.approx(record.logit, abs=0.0006)


def test_a_filter_that_leaves_nothing_offers_the_way_back(client: TestClient) -> None:
    page = client.get("/pair", params={**PAIR, "through": "qqqqzzzz"}).text
    assert "No reason passes the filter." in page
    back = re.search(r'href="(/pair[^"#]*)#reasons">Show all reasons', page)
    assert back
    assert "through" not in back[1]
    assert 'data-reason="1"' in client.get(html.unescape(back[1])).text


# What if


def test_striking_a_reason_out_is_the_models_own_arithmetic(client: TestClient, service: Service) -> None:
    page = client.get("/pair", params=PAIR).text
    record = service.explain("C004", "C007", "may_treat", 10)
    reason = (record.reasons_for + record.reasons_against)[0]
    links = [html.unescape(link) for link in re.findall(r'href="/pair\?([^"#]*wrong=[^"#]*)#', page)]
    assert parse_qs(links[0])["wrong"] == [code_of(reason.triple)]
    struck = client.get(f"/pair?{links[0]}").text
    assert shares(struck)[-1] == pytest.approx(record.logit + reason.effect, abs=0.0006)
    assert shares(struck)[-1] == pytest.approx(record.without(reason.triple).logit, abs=0.0006)
    assert "The answer changes from" in plain(struck)
    undo = re.search(r'href="/pair\?([^"]*)#reasons">undo', struck)
    assert undo
    assert shares(client.get(f"/pair?{html.unescape(undo[1])}").text) == shares(page)


def test_an_assumption_can_be_called_right(client: TestClient, service: Service) -> None:
    asked = ((f"C{head:03d}", f"C{tail:03d}") for head in range(4, 40, 2) for tail in range(7, 41, 2))
    records = (service.explain(head, tail, "may_treat", 10) for head, tail in asked)
    record, assumed = next((record, r) for record in records for r in record.reasons if not r.known_fact)
    ends = {"head": record.head.key, "tail": record.tail.key}
    page = client.get("/pair", params={**PAIR, **ends, "right": code_of(assumed.triple)}).text
    assert shares(page)[-1] == pytest.approx(record.assuming(assumed.triple, True).logit, abs=0.0006)


def test_the_api_takes_the_same_changes(client: TestClient, service: Service) -> None:
    record = service.explain("C004", "C007", "may_treat", 10)
    reason = record.reasons[0]
    got = client.get("/api/v1/explain", params={**PAIR, "wrong": code_of(reason.triple), "base_rate": 0.1}).json()
    for triple in (in_words(reason), "\t".join((reason.head.name, reason.relation, reason.tail.name))):
        assert client.post("/api/v1/explain", json={**PAIR, "wrong": [triple], "base_rate": 0.1}).json() == got
    assert got["logit"] == pytest.approx(record.without(reason.triple).with_base_rate(0.1).logit)


@pytest.mark.parametrize("code", ["", "a", "a\tb", "a\tb\tc\td", "\t\t", "x" * 2000])
def test_a_triple_that_is_none_is_refused_in_words(client: TestClient, code: str) -> None:
    answer = client.get("/pair", params={**PAIR, "wrong": code})
    assert answer.status_code == 422
    assert "<nav" in answer.text
    with pytest.raises(Exception, match="triple"):
        triple_of(code)


def test_corrections_are_kept_listed_and_used_by_everybody(small_model_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "corrections.tsv"
    service = Service.load(small_model_folder, corrections=file)
    client, colleague = (
        TestClient(create_explorer_app(s)) for s in (service, Service.load(small_model_folder, corrections=file))
    )
    before = service.explain("C004", "C007", "may_treat", 10)
    reason = before.reasons[0]
    form = {
        "triple": code_of(reason.triple),
        "verdict": "wrong",
        "who": "=Dr A",
        "why": "seen\nin\tpractice",
        "back": "head=C004",
    }
    answer = client.post("/corrections", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/pair?head=C004")
    entries = Corrections.read(file).entries
    assert [(e.head, e.relation, e.tail, e.verdict, e.who, e.why) for e in entries] == [
        (*reason.triple, "wrong", "'=Dr A", "seen in practice")
    ]
    expected = CogStage.load(small_model_folder).corrected(Corrections.read(file)).predict("C004", "C007", "may_treat")
    for one in (client, colleague):  # another worker reads the table too
        got = one.get("/api/v1/explain", params={**PAIR, "k": 10}).json()
        assert got["logit"] == pytest.approx(expected.logit)
        assert got["logit"] != pytest.approx(before.logit)
        page = plain(one.get("/corrections").text)
        assert f"{reason.head.name} {phrase(reason.relation)} {reason.tail.name} wrong" in page
    assert client.get("/corrections.tsv").text.startswith("head\trelation\ttail\tverdict\twho\twhen\twhy\n")
    assert client.post("/corrections", data={**form, "who": " "}).status_code == 422
    assert client.post("/corrections", data={**form, "verdict": "maybe"}).status_code == 422
    assert client.post("/corrections", data=form, headers={"Origin": "https://elsewhere.example"}).status_code == 403
    assert len(Corrections.read(file).entries) == 1


def test_a_correction_can_be_withdrawn(small_model_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "corrections.tsv"
    service = Service.load(small_model_folder, corrections=file)
    client = TestClient(create_explorer_app(service))
    before = service.explain("C004", "C007", "may_treat", 10)
    triple = before.reasons[0].triple
    form = {"triple": code_of(triple), "verdict": "wrong", "who": "Dr A"}
    client.post("/corrections", data=form)
    assert service.explain("C004", "C007", "may_treat", 10).logit != pytest.approx(before.logit)
    page = client.get("/corrections").text
    assert page.count('value="withdrawn"') == 1
    assert html.unescape(re.findall(r'name="triple" value="([^"]+)"', page)[0]) == code_of(triple)
    client.post("/corrections", data={**form, "verdict": "withdrawn", "who": "Dr B", "why": "a slip"})
    assert service.explain("C004", "C007", "may_treat", 10).logit == pytest.approx(before.logit)
    assert [(e.verdict, e.who) for e in Corrections.read(file).entries] == [("wrong", "Dr A"), ("withdrawn", "Dr B")]
    page = client.get("/corrections").text
    assert 'value="withdrawn"' not in page  # nothing is in force any more
    assert "no longer active" in page
    client.post("/corrections", data=form)  # and it may be given again
    assert service.explain("C004", "C007", "may_treat", 10).logit != pytest.approx(before.logit)


def test_without_a_file_nothing_is_kept(client: TestClient) -> None:
    assert "does not store corrections" in client.get("/corrections").text
    form = {"triple": "C004\tmay_treat\tC007", "verdict": "wrong", "who": "me"}
    assert client.post("/corrections", data=form).status_code == 422
    assert client.get("/corrections.tsv").status_code == 404


# Terms and questions


def test_an_unknown_term_keeps_everything_else(client: TestClient) -> None:
    answer = client.get("/pair", params={**PAIR, "head": "remedi 4", "k": 3})
    assert answer.status_code == 404
    links = [
        parse_qs(urlsplit(html.unescape(link)).query)
        for link in re.findall(r'class="button" href="([^"]+)"', answer.text)
    ]
    assert {"head": ["Drug number 4"], "tail": [PAIR["tail"]], "relation": ["may_treat"], "k": ["3"]} in links
    assert 'value="Disorder number 7"' in answer.text
    assert '<option value="may_treat" selected' in answer.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/pair?head=C004&tail=C007&k=999", "The value of “reasons at most” must be at most 50."),
        ("/pair?head=C004&tail=C007&k=many", "The value of “reasons at most” must be a whole number."),
        ("/pair?head=C004&tail=C004&relation=may_treat", "the same term"),
        ("/nowhere", "This page does not exist."),
        ("/discover?term=C004&relation=cures", "does not know the relation cures"),
    ],
)
def test_errors_are_in_words_and_keep_the_navigation(client: TestClient, path: str, words: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert words in html.unescape(answer.text)
    assert '<nav aria-label="Main">' in answer.text
    assert "Unprocessable" not in answer.text


def test_a_page_for_each_term(client: TestClient, service: Service) -> None:
    page = client.get("/term", params={"key": "remedy 4"}).text
    text = plain(page)
    facts = service.model.fitted.facts
    known = {int(t) for h, t in zip(facts.head, facts.tail, strict=True) if h == 4}
    for node in known:
        assert service.term(node).name in text
    assert "remedy 4" in text  # its synonym
    assert "What might Drug number 4 treat?" in text
    assert "How reliable" in text
    strongest = service.model.counts.strongest(4, 3)
    assert all(service.term(node).name in text for node, _, _ in strongest)
    assert client.get("/term", params={"key": "nobody knows"}).status_code == 404


def test_candidates_on_a_terms_page_are_new(client: TestClient, service: Service) -> None:
    page = client.get("/term", params={"key": "C004"}).text
    cards = page[page.index("New candidates") :]
    shown = [parse_qs(urlsplit(html.unescape(link)).query) for link in re.findall(r'href="(/pair[^"]+)"', cards)]
    assert shown
    for asked in shown:
        assert not service.explain(asked["head"][0], asked["tail"][0], asked["relation"][0], 0).known_fact


@pytest.mark.parametrize("key", ["C004", "C007"])
def test_a_terms_page_asks_with_the_term_on_its_side(client: TestClient, service: Service, key: str) -> None:
    node = service.find(key)
    side = service.ranker.side(service.relations[0], node)
    page = client.get("/term", params={"key": key}).text
    assert re.search(rf'<input id="{side}" [^>]*value="{service.term(node).name}"', page)


@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("D001241", ("MeSH", "https://meshb.nlm.nih.gov/record/ui?ui=D001241")),
        ("MESH:C000657245", ("MeSH", "https://meshb.nlm.nih.gov/record/ui?ui=C000657245")),
        ("C0004057", ("UMLS", "https://uts.nlm.nih.gov/uts/umls/concept/C0004057")),
        ("snomed:22298006", ("SNOMED CT", "https://browser.ihtsdotools.org/?perspective=full&conceptId1=22298006")),
        ("OMOP:1112807", ("OMOP", "https://athena.ohdsi.org/search-terms/terms/1112807")),
        ("aspirin", None),
        ("D001241<script>", None),
    ],
)
def test_terms_link_to_their_vocabulary(key: str, source: tuple[str, str] | None) -> None:
    assert source_of(key) == source


def test_links_out_are_plain_links(client: TestClient, service: Service) -> None:
    page = client.get("/pair", params=PAIR).text
    outside = re.findall(r'<(\w+)[^>]*(?:href|src)="(https?://(?!testserver)[^"]+)"', page)
    assert outside
    assert {tag for tag, _ in outside} == {"a"}
    url = literature(service.term(4), service.term(7))
    assert parse_qs(urlsplit(url).query)["term"] == ['"Drug number 4" AND "Disorder number 7"']


def test_questions_read_like_questions() -> None:
    assert question_text("may_treat", "tail", "asthma") == "What might treat asthma?"
    assert question_text("may_treat", "head", "aspirin") == "What might aspirin treat?"
    assert question_text("binds_to", "head", "aspirin") == "aspirin binds to what?"


# Lists


def listed(client: TestClient, **asked: object) -> list[str]:
    page = client.get("/discover", params={"term": "C004", "relation": "may_treat", "side": "head", **asked}).text
    return re.findall(r'<a class="term" href="/pair[^"]*">([^<]+)</a>', page)


def test_candidates_are_ranked_paged_and_without_probabilities(client: TestClient, service: Service) -> None:
    kinds = service.model.explainer.types.of_heads(len(service.model.all_relations))  # heads of the inverse
    pool = np.array([n for n, kind in enumerate(service.model.vocabulary.type) if kind in kinds and n != 4])
    profiles = service.model.profiles(np.full(len(pool), 4), pool)
    order = np.lexsort((pool, -profiles.logit[:, 0], profiles.contradicted("may_treat")))
    expected = [service.term(int(n)).name for n in pool[order]]
    pages = -(-len(expected) // 25)
    found = [name for number in range(1, pages + 1) for name in listed(client, page=number)]
    assert found == expected
    page = client.get("/discover", params={"term": "C004", "relation": "may_treat", "side": "head"}).text
    assert not re.search(r">\s*0\.\d\d\s*<", re.sub(r'<span class="tag assumed">.*?</span>', "", page))


def test_candidates_can_be_filtered_and_sorted(client: TestClient, service: Service) -> None:
    known = {service.term(int(t)).name for h, r, t in zip(*_facts(service), strict=True) if h == 4 and r == 0}
    assert set(listed(client, known="known")) <= known
    assert not set(listed(client, known="new")) & known
    assert all(name.startswith("Disorder") for name in listed(client, type="disorder"))
    names = listed(client, sort="name")
    assert names == sorted(names, key=str.casefold)
    together = [
        int(n)
        for n in re.findall(
            r'data-label="Co-occurrences">([\d,]+)<',
            client.get(
                "/discover", params={"term": "C004", "relation": "may_treat", "side": "head", "sort": "together"}
            ).text,
        )
    ]
    assert together == sorted(together, reverse=True)
    assert listed(client, least=100) == listed(client)[:1]


def _facts(service: Service) -> tuple[list[int], list[int], list[int]]:
    facts = service.model.fitted.facts
    return facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist()


def test_the_side_follows_the_type(service: Service) -> None:
    heads, tails = service.ranker.usual_types["may_treat"]
    for node in (4, 7):
        kind = service.term(node).type
        expected = "head" if heads.get(kind, 0) >= tails.get(kind, 0) else "tail"
        assert service.ranker.side("may_treat", node) == expected


def test_discover_begins_with_questions_that_have_answers(client: TestClient) -> None:
    links = re.findall(r'class="button" href="(/discover[^"]+)">([^<]+)<', client.get("/discover").text)
    assert links
    for address, words in links:
        page = client.get(html.unescape(address)).text
        assert f"<h1>{words}</h1>" in page
        assert 'class="rank">1<' in page


def test_hit_rates_are_shown_where_they_were_measured(small_model_folder: Path) -> None:
    service = Service.load(small_model_folder)
    client = TestClient(create_explorer_app(service))
    asked = {"term": "C004", "relation": "may_treat", "side": "head"}
    assert "Hit rate" not in client.get("/discover", params=asked).text
    bands = [{"from": 1, "to": 1, "rate": 0.31, "of": 90}, {"from": 2, "to": 3, "rate": 0.2, "of": 180}]
    service.model.metrics["hit_rate"] = {"may_treat": {"head": bands}}
    shown = re.findall(r'data-label="Hit rate">([^<]+)<', client.get("/discover", params=asked).text)
    assert shown[:4] == ["31 %", "20 %", "20 %", "–"]


def test_nothing_is_said_of_indications_unless_asked(client: TestClient) -> None:
    asked = {"term": "C004", "relation": "causes", "side": "head"}
    assert "Left out as indications" not in client.get("/discover", params=asked).text
    assert "eft out" in client.get("/discover", params={**asked, "indications": "drop"}).text


@pytest.mark.parametrize("form", ["tsv", "csv", "json", "kgx"])
def test_lists_can_be_exported(client: TestClient, form: str) -> None:
    answer = client.get(
        f"/discover.{form}", params={"term": "C004", "relation": "may_treat", "side": "head", "known": "new"}
    )
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    text = answer.text
    if form == "json":
        assert all(Prediction.from_dict(record).known_fact is False for record in json.loads(text))
    elif form == "kgx":
        graph = json.loads(text)
        ends = {edge["subject"] for edge in graph["edges"]} | {edge["object"] for edge in graph["edges"]}
        assert ends <= {node["id"] for node in graph["nodes"]}
    else:
        rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if form == "tsv" else ","))
        assert {row["head"] for row in rows} == {"C004"}
        assert len({row["candidate"] for row in rows}) == len(rows) == len(listed_of_all(client, known="new"))
        assert "known_fact" in rows[0]
        assert "candidates_may-treat_drug-number-4" in answer.headers["content-disposition"]


def listed_of_all(client: TestClient, **asked: object) -> list[str]:
    """The candidates of all pages."""
    names: list[str] = []
    while page := listed(client, page=1 + len(names) // 25, **asked):
        names += page
        if len(page) < 25:
            break
    return names


def test_the_reasons_of_a_list_are_a_table_of_their_own(client: TestClient, service: Service) -> None:
    asked = {"term": "C004", "relation": "may_treat", "side": "head"}
    tables = [
        list(csv.DictReader(io.StringIO(client.get("/discover.tsv", params=params).text), delimiter="\t"))
        for params in (asked, {**asked, "table": "reasons"})
    ]
    for row in tables[0][:10]:
        record = service.explain("C004", row["candidate"], "may_treat", 5)
        mine = [reason for reason in tables[1] if reason["tail"] == row["candidate"]]
        assert [float(reason["reason_share"]) for reason in mine] == pytest.approx(
            [reason.share for reason in record.reasons], rel=1e-4
        )
        assert all(reason["rank"] == row["rank"] for reason in mine)


def test_candidates_carry_their_warnings(client: TestClient, service: Service) -> None:
    page = client.get("/discover", params={"term": "C004", "relation": "may_treat", "side": "head"}).text
    assert "terms ranked; " in page
    asked = {"term": "C004", "relation": "may_treat", "side": "head"}
    rows = csv.DictReader(io.StringIO(client.get("/discover.tsv", params=asked).text), delimiter="\t")
    source, target = service.model.counts, service.model.vocabulary.index
    for row in list(rows)[:25]:
        neighbours = len(source.neighbours(target[row["candidate"]])[0])
        level = "weak basis" if neighbours < 20 else ""
        assert row["reliability"].endswith(level)
        assert bool(row["reliability"]) == (neighbours < 20)
        assert (row["reliability"] in page) == (neighbours < 20) or not row["reliability"]


def test_candidates_side_by_side(client: TestClient, service: Service) -> None:
    others = [("with", f"C{n:03d}") for n in (7, 9, 11, 13)]
    asked = urlencode([("term", "C004"), ("relation", "may_treat"), ("side", "head"), *others])
    page = client.get(f"/compare?{asked}").text
    assert page.count('<section class="card"') == 3  # at most three
    for number in (7, 9, 11):
        for reason in service.explain("C004", f"C{number:03d}", "may_treat", 10).reasons:
            assert reason.head.name in page
            assert reason.tail.name in page


def test_a_fourth_candidate_is_not_dropped_in_silence(client: TestClient) -> None:
    asked = [("term", "C004"), ("relation", "may_treat"), ("side", "head")]
    for number, told in ((3, False), (4, True)):
        others = [("with", f"C{n:03d}") for n in (7, 9, 11, 13)[:number]]
        page = client.get("/compare?" + urlencode([*asked, *others])).text
        assert ("1 more was selected" in page) == told


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("aspirin\theadache\tnote", ("aspirin", "headache")),
        ("aspirin; Diabetes Mellitus, Type 2", ("aspirin", "Diabetes Mellitus, Type 2")),
        ('"Diabetes Mellitus, Type 2",aspirin', ("Diabetes Mellitus, Type 2", "aspirin")),
        ('aspirin, "Diabetes Mellitus, Type 2"', ("aspirin", "Diabetes Mellitus, Type 2")),
        ('"aspirin";"headache"', ("aspirin", "headache")),
        ("alone", ("alone", "")),
        ("x" * 200_000, ("x" * 300, "")),
        ("a\0b,c", ("a b", "c")),
    ],
)
def test_pairs_are_read_as_spreadsheets_write_them(line: str, pair: tuple[str, str]) -> None:
    assert pairs_of(f"head,tail\n{line}\n") == [pair]


@pytest.mark.parametrize(("form", "separator"), [("tsv", "\t"), ("csv", ",")])
def test_a_file_of_answers_names_the_lines_that_failed(client: TestClient, form: str, separator: str) -> None:
    asked = {"pairs": "C004;C007\n=nobody;C007\nC009;C007\n", "relation": "causes", "form": form}
    rows = list(csv.DictReader(io.StringIO(client.post("/batch", data=asked).text), delimiter=separator))
    order = list(dict.fromkeys(row["head"] for row in rows))
    assert order == ["C004", "'=nobody", "C009"]
    assert [row["error"] for row in rows if row["head"] == "'=nobody"] == ["unknown term: =nobody"]
    assert not any(row["error"] for row in rows if row["head"] != "'=nobody")
    alone = client.post("/batch", data={**asked, "pairs": "nobody;C007\n"}).text
    assert "unknown term: nobody" in alone


def test_a_list_of_pairs_is_answered_line_by_line(client: TestClient, service: Service) -> None:
    text = "head\ttail\nremedy 4\tC007\nnobody;C007\nC004, C004\n\nalone\n"
    page = client.post("/batch", data={"pairs": text, "relation": "causes", "form": "page"}).text
    assert "4 answers" in page
    shown = plain(page)
    assert "unknown term: nobody" in shown
    assert "the same term" in shown
    assert service.explain("C004", "C007", "causes", 0).statement in shown
    rows = client.post("/batch", data={"pairs": text, "relation": "causes", "form": "json"}).json()
    assert [row.get("error", {}).get("code") or row["head"]["key"] for row in rows] == [
        "C004",
        "unknown_term",
        "wrong_use",
        "unknown_term",
    ]
    assert client.post("/batch", data={"pairs": "", "relation": "causes"}).status_code == 422
    assert client.post("/batch", content=b"\xff\xfe=1").status_code == 400


# About and API


def test_api_examples_are_real(client: TestClient, service: Service) -> None:
    page = html.unescape(client.get("/docs").text)
    given = re.search(r'<pre class="given"><code>(\{.*?\n\})</code>', page, re.S)
    asked = re.search(r"curl '([^']+)'", page)
    assert given
    assert asked
    assert json.loads(given[1]) == client.get(asked[1].removeprefix("http://testserver")).json()
    assert "unknown_term" in page


def test_about_names_privacy_types_and_figures(client: TestClient) -> None:
    text = plain(client.get("/about").text)
    for words in ("Not medical advice", "not protected", "joins drug", "AUROC"):
        assert words in text


def test_the_start_page_shows_a_worked_example(client: TestClient, service: Service) -> None:
    page = client.get("/").text
    best = service.examples[0]
    assert best.head.name in page
    assert "<svg" in page
    assert len({example.relation for example in service.examples}) == len(service.examples)
    assert not any(example.known_fact for example in service.examples)  # the model was trained on those
    assert "This pair is not among the" in page


@pytest.mark.parametrize(
    "path", ["/", "/pair", "/discover?term=C004&relation=causes", "/term?key=C004", "/batch", "/corrections", "/about"]
)
def test_sentences_have_a_space_between_them(client: TestClient, path: str) -> None:
    page = client.get(path, params=PAIR if path == "/pair" else None).text
    text = html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(code|svg|script).*?</\1>", "", page, flags=re.S)))
    assert not re.findall(r"[a-z0-9)]\.[A-Z]\w*", text)


def test_search_forgives(client: TestClient) -> None:
    for typed in ("number 4 drug", "DRUG NUMBER 4", "remedi 4"):
        assert "Drug number 4" in client.get("/search", params={"q": typed}).text
    assert "No match for" in client.get("/search", params={"q": "qqqqqqzzzz"}).text
