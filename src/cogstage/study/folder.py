"""A study on disk: the protocol in a folder, the answers in its SQLite file or in a database named by URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogstage.artefact import new_folder
from cogstage.errors import UsageError
from cogstage.study.access import Access
from cogstage.study.administrators import Administrators
from cogstage.study.answers import Answers
from cogstage.study.database import DATABASE_FILE, Database
from cogstage.study.protocol import KIND, Study


@dataclass(frozen=True)
class OpenStudy:
    """An open study, for reviewers, administrator and report."""

    study: Study
    database: Database
    access: Access
    administrators: Administrators
    answers: Answers

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _wire(study: Study, database: Database) -> OpenStudy:
    return OpenStudy(
        study, database, Access(database, study), Administrators(database, study), Answers(database, study)
    )


def create_folder(
    path: Path, study: Study, password: str, made_with: Mapping[str, Any], database: str | None = None
) -> None:
    """Write a study folder and prepare its database. An existing study is never replaced."""
    check_new(path)
    with new_folder(path, KIND, made_with) as folder:
        study.write(folder)
        store = Database(database) if database else Database.in_folder(folder)
        opened = _wire(study, store)
        try:
            store.upgrade()
            opened.answers.register()
            opened.administrators.set_password(password)
        finally:
            opened.close()
        folder.chmod(0o700)  # it reveals the sources of the sets and the reviewers


def check_new(path: Path) -> None:
    """Raise unless a study can be made at ``path``."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} already exists; choose another `out` (a study with answers is never overwritten)")


def open_folder(path: Path, database: str | None = None, upgrade: bool = False) -> OpenStudy:
    """Open a study folder with its database, and check that they match."""
    study = Study.load(path)
    if database is None and not (path / DATABASE_FILE).exists():
        raise UsageError(f"{path} has no {DATABASE_FILE}; set `database` to the one that the study was created with")
    store = Database(database) if database else Database.in_folder(path)
    if upgrade:
        store.upgrade()
    store.check_schema()
    opened = _wire(study, store)
    opened.answers.check()
    return opened
