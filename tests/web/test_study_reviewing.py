"""What makes reviewing bearable and safe: consent, practice, missing answers, closing, live figures, odd requests."""

import json
import re
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient
from study_material import crossover_study, small_study, sources
from study_pages import BASE, Make, admin, client, join, token_of

from cogstage.study import schema
from cogstage.study.database import Database
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.judgements import judgements
from cogstage.study.sources import WeightedTriple
from cogstage.web.study_app import create_study_app


def test_reviewers_agree_and_introduce_themselves_first(make_study: Make) -> None:
    opened = make_study(small_study(consent="We store your answers.\n\nYou may stop.", contact="Dr Who, 12345"))
    invitation = opened.access.invite("Dr A")
    browser = client(opened)
    assert browser.post(f"/join/{invitation.ticket}").headers["location"] == "/start"
    for path in ("/welcome", "/case/1", "/finish", "/practice"):
        assert browser.get(path).headers["location"] == "/start"
    page = browser.get("/start").text
    assert browser.get("/start", params={"problem": "Call this number"}).text == page  # no words of others
    assert "We store your answers." in page
    assert "Dr Who, 12345" in page
    assert re.search(r"4 cases, about \d+ minutes", page)
    token = token_of(page)
    refused = browser.post("/case/1/save", json={"answers": {"comment": "x"}}, headers={"X-Form-Token": token})
    assert refused.status_code == 403
    assert opened.answers.all() == []
    for fields in (
        {},
        {"agree": "yes", "years": "many"},
        {"agree": "yes", "years": "-1"},
        {"agree": "yes", "years": "99"},
    ):
        answer = browser.post("/start", data={"form_token": token, **fields})
        assert answer.status_code == 200
        assert 'class="problem"' in answer.text
        assert opened.access.reviewer(invitation.reviewer.id).consented_at is None
    said = {"form_token": token, "agree": "yes", "specialty": " Cardio\x00logy ", "years": "12"}
    assert browser.post("/start", data=said).headers["location"] == "/welcome"
    person = opened.access.reviewer(invitation.reviewer.id)
    assert person.consented_at is not None
    assert (person.specialty, person.years) == ("Cardiology", 12)
    assert "Try a practice case" in browser.get("/welcome").text
    again = client(opened)
    assert again.post(f"/join/{invitation.ticket}").headers["location"] == "/welcome"  # asked once


@pytest.mark.parametrize("study", [small_study(), crossover_study()], ids=["sets", "crossover"])
def test_practice_is_stored_nowhere(make_study: Make, study: object) -> None:
    opened = make_study(study)  # type: ignore[arg-type]
    browser, headers = join(opened, opened.access.invite("Dr A"))
    page = browser.get("/practice").text
    assert "your answers here are not stored" in page
    assert "data-position" not in page
    fields = dict.fromkeys(re.findall(r'type="radio" name="([^"]+)"', page), "1")
    sent = {**fields, "form_token": headers["X-Form-Token"], "comment": "x", "go": "next"}
    assert browser.post("/practice", data=sent).headers["location"] == "/case/1"
    assert opened.answers.all() == []


def test_missing_answers_are_pointed_out(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    answers = {"form_token": headers["X-Form-Token"], "familiar-head": "yes", "score-A-1": "n", "go": "next"}
    back = browser.post("/case/1", data=answers).headers["location"]
    assert back == "/case/1?unanswered=true"
    page = browser.get(back).text
    assert "11 questions are not answered yet" in page
    marked = re.findall(r'class="(?:row|question) missing">?.*?name="([^"]+)"', page, re.S)
    assert "familiar-tail" in marked
    assert "compare" in marked
    assert not {"familiar-head", "score-A-1"} & set(marked)
    assert "missing" not in browser.get("/case/1").text
    assert browser.post("/case/1", data={**answers, "go": "skip"}).headers["location"] == "/case/2"


def test_cannot_judge_is_an_answer_but_no_score(make_study: Make) -> None:
    opened = make_study(small_study())
    person = opened.access.invite("Dr A")
    browser, headers = join(opened, person)
    form = opened.answers.form(person.reviewer.id, 1)
    assert form is not None
    answers = {field: "n" if "n" in allowed else "yes" for field, allowed in form.fields.items()}
    done = browser.post("/case/1/save", json={"answers": answers}, headers=headers)
    assert done.json()["complete"] is True
    assert browser.get("/case/1").text.count(" checked") == len(answers)
    (judgement,) = judgements(opened)
    assert judgement.cannot_judge == 11  # ten reasons and the comparison
    assert judgement.ranks == {}
    assert judgement.whole_scores("open") is None
    assert judgement.unanswered == 0


def two_sided_study(**options: int) -> object:
    """Both sources say one same thing for and one against, and something of their own."""
    made, labels = sources()
    shared = (
        WeightedTriple("aspirin", "may_treat", "pain", 3.0),
        WeightedTriple("aspirin", "causes", "bleeding", -2.0),
    )
    changed = [
        replace(
            source,
            predictions={
                pair: replace(
                    said, reasons=(*shared, WeightedTriple(f"{source.name[0]}-drug", "may_treat", "fever", 1.0))
                )
                for pair, said in source.predictions.items()
            },
        )
        for source in made
    ]
    return draw_study(changed, labels, StudyOptions(**{"cases": 2, "seed": 1, **options}))  # type: ignore[arg-type]


def test_a_reason_in_both_sets_is_scored_once(make_study: Make) -> None:
    opened = make_study(two_sided_study())  # type: ignore[arg-type]
    person = opened.access.invite("Dr A")
    browser, headers = join(opened, person)
    page = browser.get("/case/1").text
    assert page.count("also in Set A; score it there") == 2
    fields = set(re.findall(r'type="radio" name="(score-[^"]+)"', page))
    assert len(fields) == 4
    field = next(name for name in fields if "pain" in page.split(f'id="w-{name}"')[1][:200])
    browser.post("/case/1/save", json={"answers": {field: "3"}}, headers=headers)
    form = opened.answers.form(person.reviewer.id, 1)
    assert form is not None
    stored = opened.answers.of_case(person.reviewer.id, form.case.key)
    assert {item.rpartition(":")[0]: value for item, value in stored.items()} == {
        "score:open": "3",
        "score:closed": "3",
    }
    for item in stored:
        _, source, number = item.split(":")
        assert form.case.set_of(source).rationales[int(number)].text == "aspirin may treat pain"
    refused = browser.post("/case/1/save", json={"answers": {field.replace("-A-", "-B-"): "3"}}, headers=headers)
    assert refused.status_code == 400


def test_both_kinds_of_prediction_ask_one_clear_question(make_study: Make) -> None:
    opened = make_study(two_sided_study(cases=1, false_negatives=1))  # type: ignore[arg-type]
    browser, _ = join(opened, opened.access.invite("Dr A"))
    pages = {("<strong>not</strong>" in page): page for page in (browser.get(f"/case/{n}").text for n in (1, 2))}
    assert set(pages) == {True, False}
    for negative, page in pages.items():
        case = next(c for c in opened.study.cases if c.predicted != negative)
        assert f"help you judge whether {case.head} may treat {case.tail}?" in page
        assert "trust the prediction" not in page
        first, second = ("against", "for") if negative else ("for", "against")
        card = page.split('<div class="set card"')[1]
        assert card.index(f"Reasons {first}") < card.index(f"Reasons {second}")
        bleeding = card.index("bleeding")
        assert card.index("Reasons against") < bleeding
        assert (bleeding < card.index("Reasons for")) == negative


def test_a_closed_study_takes_no_answers_until_reopened(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    save = {"answers": {"familiar-head": "yes"}}
    manager, token = admin(opened)
    assert manager.post("/admin/close", data={"form_token": "x"}).status_code == 403
    manager.post("/admin/close", data={"form_token": token})
    assert "Reopen the study" in manager.get("/admin").text
    refused = browser.post("/case/1/save", json=save, headers=headers)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "closed"
    assert browser.get("/case/1").status_code == 409
    assert "closed" in browser.get("/welcome").text
    assert opened.answers.all() == []
    manager.post("/admin/reopen", data={"form_token": token})
    assert browser.post("/case/1/save", json=save, headers=headers).status_code == 200
    assert len(opened.answers.all()) == 1


def test_several_invitations_at_once_or_none(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, token = admin(opened)
    page = browser.post(
        "/admin/reviewers", data={"form_token": token, "names": "Dr A\r\n\r\n Dr B \nDr C", "days": "7"}
    )
    links = re.findall(rf'value="{BASE}/join/([^"]+)"', page.text)
    assert len(links) == 3
    assert [person.name for person in opened.access.reviewers()] == ["Dr A", "Dr B", "Dr C"]
    assert all(opened.access.reviewer_with_link(link) for link in links)
    for names in ("Dr D\nDr A", "Dr D\nDr D", "", "Dr D\nDr \x07"):
        again = browser.post("/admin/reviewers", data={"form_token": token, "names": names, "days": "7"})
        assert again.headers["location"] == "/admin"
    assert len(opened.access.reviewers()) == 3


def test_links_need_an_address_that_the_server_knows(make_study: Make) -> None:
    """The Host of a request is whatever its sender says."""
    opened = make_study(small_study())
    app = create_study_app(opened, secure_cookies=False)
    browser = TestClient(app, base_url=BASE, follow_redirects=False)
    from study_stores import PASSWORD

    sign_in = {"form_token": token_of(browser.get("/admin/sign-in").text), "password": PASSWORD}
    browser.post("/admin/sign-in", data=sign_in)
    token = token_of(browser.get("/admin").text)
    browser.post("/admin/reviewers", data={"form_token": token, "names": "Dr A", "days": "7"})
    assert "public address; start the server with one" in browser.get("/admin").text
    assert opened.access.reviewers() == []


def test_the_live_figures_tell_no_source_from_another(make_study: Make) -> None:
    """Exchanging what every reviewer said about the two sources changes nothing that the administrator sees."""
    seen = []
    for swapped in (False, True):
        opened = make_study(small_study(cases=6))
        for name in ("Dr A", "Dr B"):
            person = opened.access.invite(name).reviewer
            for placed in opened.answers.placements(person.id):
                better, worse = placed.set_order if swapped else placed.set_order[::-1]
                items = {"familiar:head": "yes", "familiar:tail": "no"}
                for source, score in ((better, "3"), (worse, "1")):
                    items |= {f"score:{source}:{n}": score for n in range(5)}
                    items[f"rank:{source}"] = "1" if source == better else "2"
                opened.answers.save(person.id, placed.case_key, items)
        browser, _ = admin(opened)
        page = browser.get("/admin/live").text
        assert "open" not in page
        assert "closed" not in page
        assert f"{12 if swapped else 0} of 12" in page  # the set shown first: a bias, and visible as one
        assert "shared answers" in page
        assert "6 of 6" in page
        seen.append(re.sub(r"\d+ of 12|p = [\d.]+|\d{4}-\d\d-\d\d \d\d:\d\d", "", page))
        assert client(opened).get("/admin/live").status_code == 303
    assert re.sub(r"-?\d\.\d\d", "", seen[0]) == re.sub(r"-?\d\.\d\d", "", seen[1])


def test_odd_visits_and_cookies_are_bad_requests(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    for visit in ("\0", "a\0b", "x" * 64, "1.2.3", "\ud800"):
        body = json.dumps({"answers": {}, "visit": visit})
        sent = {**headers, "Content-Type": "application/json"}
        assert browser.post("/case/1/save", content=body.encode("utf-8", "replace"), headers=sent).status_code in (
            400,
            422,
        )
    form = {"form_token": headers["X-Form-Token"], "visit": "\0"}
    assert browser.post("/case/1", data=form).status_code == 400
    deep = "[" * 30_000
    sent = {**headers, "Content-Type": "application/json"}
    assert browser.post("/case/1/save", content=deep.encode(), headers=sent).status_code in (400, 422)
    manager, _ = admin(opened)
    session = manager.cookies["cogstage_administrator"]
    for cookie in (deep[:3000].encode().hex(), b'{"problem":"x"}'.hex(), "zz", "ab.cd"):
        both = {"Cookie": f"cogstage_administrator={session}; cogstage_flash={cookie}"}
        assert client(opened).get("/admin", headers=both).status_code == 400
    assert manager.get("/admin").status_code == 200


def test_looking_needs_no_writing(make_study: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a reviewer can still read; only answers are refused, and kept by the browser."""
    opened = make_study(small_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    browser.get("/case/1")

    @contextmanager
    def full(self: Database) -> object:
        raise AssertionError("written")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(Database, "writing", full)
        for path in ("/welcome", "/case/1", "/case/2?unanswered=true", "/practice", "/finish"):
            assert browser.get(path).status_code == 200
        assert browser.post("/case/1/save", json={"answers": {"comment": "x"}}, headers=headers).status_code == 500
    with opened.database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(schema.visit)) == 0


def test_a_crossover_asks_for_a_verdict(make_study: Make) -> None:
    opened = make_study(crossover_study())
    person = opened.access.invite("Dr A")
    browser, headers = join(opened, person)
    pages = [browser.get(f"/case/{n}").text for n in range(1, 9)]
    shown = ["The model's reasons" in page for page in pages]
    assert shown in ([True] * 4 + [False] * 4, [False] * 4 + [True] * 4)
    for page in pages:
        fields = set(re.findall(r'type="radio" name="([^"]+)"', page))
        assert fields == {"familiar-head", "familiar-tail", "verdict", "confidence"}
        assert "In your judgement:" in page
    answers = {"familiar-head": "yes", "familiar-tail": "yes", "verdict": "no", "confidence": "3"}
    assert browser.post("/case/1/save", json={"answers": answers}, headers=headers).json()["complete"] is True
    for wrong in ({"score-A-0": "1"}, {"compare": "A"}, {"verdict": "n"}):
        assert browser.post("/case/1/save", json={"answers": wrong}, headers=headers).status_code == 400
    assert "share" not in admin(opened)[0].get("/admin").text.lower().replace("shared", "")
