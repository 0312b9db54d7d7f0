"""The release report of a graph, facts, data set or model folder: what a reader must know before using or sharing it.

It is made from ``meta.json`` and the small JSON files next to it, never from the tables, so it costs next to nothing.
Every such folder holds it as ``REPORT.md``; ``cogstage report FOLDER`` shows it and checks the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cogstage.artefact import read_kind, read_meta
from cogstage.errors import CogstageError, UsageError
from cogstage.provenance import counts_text, licences_of, privacy_text
from cogstage.reporting.figures import figure_text
from cogstage.reporting.report import Report, Section
from cogstage.reporting.table import Table, value_text

KINDS = {"graph": "Co-occurrence graph", "facts": "Facts", "dataset": "Data set", "model": "Model"}
SPLITS = ("train", "dev", "test")
TEST_FIGURES = "test_figures.json"  # kept by an evaluation
NOT_STATED = "Not recorded when the folder was made."
# Shown elsewhere in the report, or of no use to its reader.
_NOT_OPTIONS = (
    *("inputs", "licences", "nodes", "edges", "relations", "sources", "years", "documents", "private"),
    *("graph", "facts", "privacy", "rows", "merged"),
)
_USE = (
    "Intended use: research, such as ranking hypotheses, studying explanations and comparing methods.",
    "Not for clinical use: no prediction has been validated for patient care.",
)
_LIMITS = (
    "A probability assumes that half of all pairs are true. In practice, far fewer are.",
    "A reason that is not a known fact is a guess of the model, with its own probability.",
    "Answers about terms with few counts or facts are less reliable. The model also learns the errors of its sources.",
)


def report_folder(path: Path | str) -> Report:
    """The release report of a folder on disk, after its files were compared with their hashes.

    Parameters
    ----------
    path
        A graph, facts, data set or model folder.

    Returns
    -------
    Report
        Also says when ``meta.json`` was last written and how many files were checked, which ``REPORT.md`` cannot.

    Raises
    ------
    UsageError
        If the folder is of another kind.
    CogstageError
        If a file is missing or damaged.
    """
    path = Path(path)
    kind = read_kind(path)
    if kind not in KINDS:
        parts = [name for name in KINDS if (path / name / "meta.json").is_file()]
        hint = f"; report one of its folders: {', '.join(str(path / name) for name in parts)}" if parts else ""
        raise UsageError(f"{path} is a {kind or 'folder of another program'}, which has no release report{hint}")
    return release_report(path, read_meta(path, kind), checked=True)


def release_markdown(folder: Path, meta: Mapping[str, Any]) -> str:
    """The text of ``REPORT.md``: the same bytes for the same content."""
    return release_report(folder, meta).markdown()


def release_report(folder: Path, meta: Mapping[str, Any], checked: bool = False) -> Report:
    """The report of a folder whose ``meta.json`` says (or will say) ``meta``."""
    kind, made = str(meta["kind"]), meta["made_with"]
    contents = {"graph": _graph, "facts": _facts, "dataset": _dataset, "model": _model}[kind]
    summary, tables, notes = contents(folder, made)
    tables = [*tables, *_sources(folder, kind, made), _options(folder, kind, made), *_files(meta)]
    facts = [("Version of cogstage", str(meta.get("version", "")))]
    if checked:
        import datetime

        written = datetime.datetime.fromtimestamp((folder / "meta.json").stat().st_mtime, datetime.timezone.utc)
        facts.append(("Last written (UTC)", written.strftime("%Y-%m-%d %H:%M")))
        facts.append(("Files", f"{len(meta['files'])} unchanged" if meta.get("files") else "hashes not recorded"))
    facts.append(("Privacy of the counts", _privacy(kind, made)))
    overview = Table("Overview", ("property", "value"), tuple(facts), left=2)
    return Report(f"{KINDS[kind]}: release report", summary, [Section("", [overview, *tables])], notes)


def release_json(report: Report) -> dict[str, Any]:
    """The report as plain values: title, summary, tables by caption, notes."""
    tables = {
        table.caption: [dict(zip(table.columns, (cell.text for cell in row), strict=True)) for row in table.cells()]
        for table in report.tables
    }
    return {"title": report.title, "summary": list(report.summary), "tables": tables, "notes": list(report.notes)}


def release_text(report: Report) -> str:
    """The report for a terminal."""
    return "\n\n".join([report.title, "\n".join(report.summary), report.text(), "\n".join(report.notes)]).strip() + "\n"


Contents = tuple[list[str], list[Table], list[str]]
"""Summary, tables and notes."""


def _graph(folder: Path, made: Mapping[str, Any]) -> Contents:
    per = {"patient": "patients", "bin": "patient windows"}.get(str(made.get("per")), f"{made.get('unit', 'unit')}s")
    if made.get("values") == "ppmi":
        summary = ["Edges contain imported PPMI values, not counts."]
    else:
        summary = [f"The count of an edge is the number of {per} that contain both terms: {counts_text(made)}."]
    merged = made.get("merged") or {}
    rows = [("terms", value_text(made.get("nodes"))), ("edges", value_text(made.get("edges")))]
    rows += [(name, value_text(made[name])) for name in ("documents", "units", "skipped") if made.get(name) is not None]
    return summary, [Table("Contents", ("what", "number"), tuple(rows))], [*merged.get("notes", ())]


def _facts(folder: Path, made: Mapping[str, Any]) -> Contents:
    years = made.get("years")
    summary = [f"{made.get('facts', 0):,} facts (head, relation, tail) as their sources state them."]
    summary += [f"The earliest statement of a dated fact lies between {years[0]} and {years[1]}."] if years else []
    rows = tuple((name, f"{count:,}") for name, count in made.get("relations", {}).items())
    return summary, [Table("Facts per relation", ("relation", "facts"), rows)], []


def _dataset(folder: Path, made: Mapping[str, Any]) -> Contents:
    manifest, leakage = _json(folder / "manifest.json"), _json(folder / "leakage.json")
    counts, negatives = manifest["counts"], str(made.get("negatives"))
    columns = ("relation", *(f"{split}{kind}" for split in SPLITS for kind in ("", " negatives")))
    rows = tuple((name, *(f"{row.get(c, 0):,}" for c in columns[1:])) for name, row in counts.items())
    floor = leakage.get("AUROC of simple scores (test)", {}).get(negatives, {})
    scores = list(next(iter(floor.values()), {}))
    leaks = tuple((name, *(figure_text(row.get(score)) for score in scores)) for name, row in floor.items())
    return (
        [
            f"Facts on a graph of {manifest['nodes']:,} terms; split: {made.get('split')}; negatives: {negatives}.",
            "Scores without medical knowledge should have an AUROC near 0.5; higher values indicate shortcuts.",
        ],
        [
            Table("Facts and negatives", columns, rows),
            Table("AUROC of simple scores on test pairs", ("relation", *scores), leaks),
        ],
        [w for w in leakage.get("warnings", ()) if f", {negatives} negatives" in w or " negatives:" not in w],
    )


def _model(folder: Path, made: Mapping[str, Any]) -> Contents:
    config, kept = _json(folder / "config.json"), folder / TEST_FIGURES
    measured = {"dev": _json(folder / "metrics.json").get("dev")}
    if kept.exists():
        measured["test"] = _json(kept)["relations"]
    tables = []
    for split, figures in measured.items():
        if figures:
            shown = ("pairs", "f1", "precision", "recall", "auroc", "brier")
            names = [name for name in shown if any(name in row for row in figures.values())]
            rows = tuple((relation, *(_figure(row.get(name)) for name in names)) for relation, row in figures.items())
            note = "Used to calibrate, so these figures are optimistic." if split == "dev" else ""
            tables.append(Table(f"Figures on {split} pairs", ("relation", *names), rows, note=note))
    summary = [
        f"Predicts {', '.join(config['targets'])}; preset {config['preset']}, {config['config'].get('world')} world.",
        *_USE,
    ]
    return summary, tables, list(_LIMITS)


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else figure_text(value)


def _sources(folder: Path, kind: str, made: Mapping[str, Any]) -> Iterator[Table]:
    stored: Mapping[str, Any] = made
    if kind == "dataset":
        stored = _json(folder / "manifest.json").get("sources") or {}
    elif kind == "model":
        stored = _json(folder / "metrics.json").get("sources") or {}
    rows = [(name.capitalize(), str(stored[name])) for name in ("counts", "facts") if isinstance(stored.get(name), str)]
    if kind == "facts" and isinstance(made.get("sources"), Mapping):
        rows += [("Source", f"{name}: {count:,} facts") for name, count in made["sources"].items()]
    licences = licences_of(stored)
    rows += [("Licence", text) for text in licences or (NOT_STATED,)]
    yield Table("Sources and licences", ("what", "source"), tuple(rows), left=2)
    inputs = made.get("inputs")
    hashes: list[tuple[str, str]] = []
    if isinstance(inputs, Mapping):
        hashes = [(str(name), str(digest)) for name, digest in inputs.items()]
    elif isinstance(inputs, list):
        hashes = [(str(entry.get("file", "name not kept")), str(entry.get("sha256", ""))) for entry in inputs]
    hashes += [
        (f"content of the {name}", str(made[name])) for name in ("graph", "facts") if isinstance(made.get(name), str)
    ]
    if hashes:
        yield Table("Inputs", ("input", "SHA-256"), tuple(hashes), left=2)


def _options(folder: Path, kind: str, made: Mapping[str, Any]) -> Table:
    options = dict(made)
    if kind == "model":
        options |= _json(folder / "config.json")["config"]
    rows = [
        (name.replace("_", " "), value_text(value) if not isinstance(value, (list, dict)) else json.dumps(value))
        for name, value in sorted(options.items())
        if value not in (None, "", [], {})
        and name not in (*_NOT_OPTIONS, "graph", "facts", "privacy", "rows", "merged")
    ]
    return Table("Options", ("option", "value"), tuple(rows), left=2)


def _files(meta: Mapping[str, Any]) -> Iterator[Table]:
    files = meta.get("files") or {}
    rows = [(name, f"{about['bytes']:,}", about["xxh3"]) for name, about in files.items() if "/" not in name]
    for folder in sorted({name.split("/")[0] for name in files if "/" in name}):
        inside = [about["bytes"] for name, about in files.items() if name.startswith(f"{folder}/")]
        rows.append((f"{folder}/", f"{sum(inside):,}", f"{len(inside)} files, hashes in meta.json"))
    if rows:
        yield Table("Files", ("file", "bytes", "XXH3"), tuple(rows))


def _privacy(kind: str, made: Mapping[str, Any]) -> str:
    if kind == "facts":
        return "facts contain no counts"
    applied = str(made.get("privacy") or privacy_text(made))
    return "none: exact counts; do not share them if they come from patients" if applied == "none" else applied


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CogstageError(f"{path} cannot be read ({error}); create the folder again") from error
    return dict(value)
