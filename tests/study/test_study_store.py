"""Storage: the same on SQLite and PostgreSQL; answers stand once, links and sessions end when they should."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import func, select, update
from study_material import small_study
from study_stores import PASSWORD

from cogstage.errors import CogstageError, UsageError
from cogstage.study import schema
from cogstage.study.database import Database
from cogstage.study.folder import OpenStudy, create_folder, open_folder
from cogstage.study.protocol import Study

Make = Callable[[Study], OpenStudy]


def test_migrations_build_exactly_the_schema(make_study: Make) -> None:
    opened = make_study(small_study())
    with opened.database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []
    opened.database.upgrade()  # again: nothing to do, nothing lost
    opened.answers.check()


def test_an_answer_stands_once_and_every_change_is_kept(make_study: Make) -> None:
    opened = make_study(small_study())
    person = opened.access.invite("Dr A").reviewer
    for value in ("1", "1", "2", "2", "1"):
        opened.answers.save(person.id, "c001", {"score:open:0": value, "comment": "ö <b>"})
    assert opened.answers.of_case(person.id, "c001") == {"score:open:0": "1", "comment": "ö <b>"}
    with opened.database.reading() as connection:
        history = connection.execute(
            select(schema.change.c.value).where(schema.change.c.item == "score:open:0").order_by(schema.change.c.id)
        ).scalars()
        assert list(history) == ["1", "2", "1"]
        assert connection.scalar(select(func.count()).select_from(schema.answer)) == 2


def test_many_threads_saving_the_same_answer_leave_one(make_study: Make) -> None:
    opened = make_study(small_study())
    people = [opened.access.invite(f"Dr {n}").reviewer for n in range(4)]

    def click(n: int) -> None:
        for value in ("0", "1", "2", "3"):
            opened.answers.save(people[n % 4].id, "c001", {"trust": value})

    threads = [threading.Thread(target=click, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = opened.answers.all()
    assert sorted(row.reviewer_id for row in rows) == sorted(person.id for person in people)


def test_links_hold_until_revoked_renewed_or_expired(make_study: Make) -> None:
    opened = make_study(small_study())
    access = opened.access
    first, second = access.invite("Dr A"), access.invite("Dr B")
    found = access.reviewer_with_link(first.ticket)
    assert found is not None
    assert found.name == "Dr A"
    mixed = first.ticket.split(".")[0] + "." + second.ticket.split(".")[1]
    for wrong in ("", ".", "a.b", first.ticket + "x", first.ticket.upper(), mixed, "\0.\0", "\ud800.x", "ü" * 500):
        assert access.reviewer_with_link(wrong) is None

    cookie, _ = access.open_session(first.reviewer)
    assert access.reviewer_in_session(cookie) == first.reviewer
    access.revoke(first.reviewer.id)
    assert access.reviewer_with_link(first.ticket) is None
    assert access.reviewer_in_session(cookie) is None

    renewed = access.renew_link(first.reviewer.id)
    assert access.reviewer_with_link(first.ticket) is None
    assert access.reviewer_with_link(renewed.ticket) is not None
    cookie, lasts = access.open_session(renewed.reviewer)
    assert 29 < lasts / 86_400 <= 30
    with opened.database.writing() as connection:
        connection.execute(update(schema.reviewer).values(expires_at=time.time() - 1))
    assert access.reviewer_with_link(renewed.ticket) is None
    assert access.reviewer_in_session(cookie) is None
    assert [person.state() for person in access.reviewers()] == ["expired", "expired"]


def test_secrets_are_stored_hashed(make_study: Make) -> None:
    opened = make_study(small_study())
    invitation = opened.access.invite("Dr A")
    cookie, _ = opened.administrators.open_session()
    with opened.database.reading() as connection:
        stored = json.dumps(
            [list(row) for table in schema.metadata.sorted_tables for row in connection.execute(select(table))]
        )
    for secret in (invitation.ticket.split(".")[1], cookie.split(".")[1], PASSWORD):
        assert len(secret) >= 20
        assert secret not in stored


def test_names_are_given_once(make_study: Make) -> None:
    access = make_study(small_study()).access
    access.invite("Dr A")
    with pytest.raises(UsageError, match="already"):
        access.invite(" Dr  A ")
    with pytest.raises(UsageError, match="name"):
        access.invite("  ")
    with pytest.raises(UsageError, match="days"):
        access.invite("Dr B", days=0)
    assert [person.number for person in access.reviewers()] == [1]


def test_time_is_the_longest_report_and_never_more_than_passed(
    make_study: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = make_study(small_study())
    person, other = opened.access.invite("Dr A").reviewer, opened.access.invite("Dr B").reviewer
    with monkeypatch.context() as patch:
        begun = time.time() - 100
        patch.setattr("cogstage.study.answers.time.time", lambda: begun)
        visit = opened.answers.new_visit(person.id, "c001")
    assert opened.answers.seconds() == {}
    for seconds in (20.0, 12.0, -5.0):
        opened.answers.record_time(person.id, "c001", visit, seconds)
    forged = visit.replace(".", ".1", 1)
    for who, note in ((other.id, visit), (person.id, forged), (person.id, ""), (person.id, "\0.\ud800.x")):
        with pytest.raises(UsageError, match="does not belong to this case"):
            opened.answers.record_time(who, "c001", note, 90.0)
    assert opened.answers.seconds() == {(person.id, "c001"): 20.0}
    opened.answers.record_time(person.id, "c001", visit, 1e9)
    assert 100 <= opened.answers.seconds()[person.id, "c001"] < 160
    again = opened.answers.new_visit(person.id, "c001")
    opened.answers.record_time(person.id, "c001", again, None)
    assert 100 <= opened.answers.seconds()[person.id, "c001"] < 160


def test_progress_counts_complete_cases(make_study: Make) -> None:
    opened = make_study(small_study())
    person = opened.access.invite("Dr A").reviewer
    form = opened.answers.form(person.id, 2)
    assert form is not None
    needed = sorted(form.needed)
    opened.answers.save(person.id, form.case.key, dict.fromkeys(needed[:-1], "1"))
    assert opened.answers.progress(person.id).done == 0
    opened.answers.save(person.id, form.case.key, {needed[-1]: "1"})
    progress = opened.answers.progress(person.id)
    assert (progress.done, progress.total, progress.next_open) == (1, 4, 1)
    assert progress.complete == (False, True, False, False)
    assert opened.answers.form(person.id, 5) is None


def test_a_folder_is_never_overwritten_and_fits_its_database(database_url: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    create_folder(folder, small_study(), PASSWORD, {}, database_url)
    with pytest.raises(UsageError, match="never overwritten"):
        create_folder(folder, small_study(), PASSWORD, {}, database_url)
    text = (folder / "study.json").read_text()
    (folder / "study.json").write_text(text.replace("aspirin", "placebo"))
    with pytest.raises(CogstageError, match="changed after the study began"):
        open_folder(folder, database_url)
    (folder / "study.json").write_text(text)
    open_folder(folder, database_url).close()


def test_bad_databases_are_named_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    create_folder(folder, small_study(), PASSWORD, {})
    for url in ("mysql://a@b/c", "nonsense", "postgresql://a:s3cret@127.0.0.1:1/none"):
        with pytest.raises(CogstageError) as caught:
            open_folder(folder, url)
        assert "s3cret" not in str(caught.value)
        assert "\n" not in str(caught.value)
    other = tmp_path / "other.sqlite"
    Database(f"sqlite:///{other}").upgrade()
    with pytest.raises(CogstageError, match="does not contain this study"):
        open_folder(folder, f"sqlite:///{other}")
    with pytest.raises(CogstageError, match="schema none"):
        open_folder(folder, f"sqlite:///{tmp_path / 'empty.sqlite'}")
    (folder / "study.sqlite").write_bytes(b"rubbish" * 1000)
    with pytest.raises(CogstageError, match="not a"):
        open_folder(folder)
    (folder / "study.sqlite").unlink()
    with pytest.raises(UsageError, match="`database`"):
        open_folder(folder)
