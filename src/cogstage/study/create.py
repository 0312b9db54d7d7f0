"""Creating a study: read the sources, draw the cases, write the folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cogstage.artefact import file_hash
from cogstage.errors import UsageError
from cogstage.progress import SILENT, Progress
from cogstage.rationale.corrections import Corrections
from cogstage.study.draw import StudyOptions, decided_by_known_facts, draw_study, known_facts
from cogstage.study.folder import check_new, create_folder
from cogstage.study.protocol import Study, check_source_names
from cogstage.study.secret import new_password
from cogstage.study.sources import labels_of_dataset, read_source


def create_study(
    out: Path,
    source: Sequence[str],
    options: StudyOptions,
    dataset: Path | None = None,
    database: str | None = None,
    progress: Progress = SILENT,
    corrections: Path | None = None,
) -> tuple[Study, str]:
    """Write a study folder; returns the study and the administrator's password.

    Each ``source`` reads ``NAME=PATH``. With a ``dataset`` its test pairs carry the labels. Model folders are
    asked with the verdicts in the table ``corrections``.
    """
    check_new(out)
    named = [_name_and_path(entry) for entry in source]
    check_source_names([name for name, _ in named], options.protocol)
    labels = labels_of_dataset(dataset, options.relation) if dataset else {}
    verdicts = None if corrections is None else Corrections.read(corrections)
    progress.start("Reading the sources", len(named))
    sources = []
    for name, path in named:
        sources.append(read_source(name, path, labels, options.per_set, dataset, verdicts))
        progress.advance()
    progress.done(", ".join(f"{entry.name}: {len(entry.predictions):,} predictions" for entry in sources))
    study = draw_study(sources, labels, options)
    hashes = {name: file_hash(path) if path.is_file() else path.name for name, path in named}
    password = new_password()
    made_with: dict[str, object] = {**asdict(options), "sources": hashes}
    if len(sources) > 1:
        decided, cases = decided_by_known_facts(study, known_facts(sources)), len(study.cases) - options.repeats
        made_with["decided_by_known_facts"] = decided
        advice = "" if options.match_known_facts or not decided else "; `match_known_facts` prevents it"
        progress.say(f"Known facts tell the sets of {decided} of {cases} cases apart{advice}.")
    if corrections is not None:
        made_with["corrections"] = file_hash(corrections)
    create_folder(out, study, password, made_with, database)
    return study, password


def _name_and_path(entry: str) -> tuple[str, Path]:
    name, separator, path = entry.partition("=")
    if not separator or not path:
        raise UsageError(f"`source` {entry}: write it as NAME=PATH, for example open=open.jsonl")
    return name, Path(path)
