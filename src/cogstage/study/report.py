"""The report of a study: every table with its denominators and intervals, as Markdown, LaTeX and one HTML page."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from cogstage.artefact import to_json, write_text
from cogstage.reporting import Report, Section, Table, estimate_text, figure_text, p_text
from cogstage.study.crossover import CrossoverResults, analyse_crossover
from cogstage.study.crossover_report import crossover_notes, crossover_sections
from cogstage.study.effort import HASTY, HASTY_SHARE
from cogstage.study.export import answers_csv, times_csv
from cogstage.study.folder import OpenStudy
from cogstage.study.judgements import judgements
from cogstage.study.plots import all_plots
from cogstage.study.reliability import FEWEST_UNITS
from cogstage.study.results import DRAWS, Results, SetScores, analyse

PRIVATE = 0o600  # reports and exports say which set is whose, and what each reviewer answered
LONGEST_LATIN = 0x17F  # the last character that LaTeX sets without further packages
# Plain lines where a document does not load booktabs, so that a table compiles in any document.
RULES = "".join(f"\\providecommand{{\\{name}}}{{\\hline}}" for name in ("toprule", "midrule", "bottomrule"))
OUTCOME_NAMES = {
    "all": "all cases",
    "true_positive": "correctly predicted positives",
    "false_positive": "false positives",
    "false_negative": "false negatives",
    "true_negative": "correctly predicted negatives",
}
INTERVALS = "Brackets contain 95 % percentile intervals from {draws:,} bootstrap samples of whole cases"


def build_report(results: Results | CrossoverResults, draws: int = DRAWS, profiles: str = "") -> Report:
    """The report behind results of either protocol."""
    made = (
        [*crossover_sections(results), *_people(results)]
        if isinstance(results, CrossoverResults)
        else _set_sections(results, draws)
    )
    comments = tuple((c.reviewer, c.case, c.text) for c in results.comments)
    if comments:
        made.append(Section("Comments", [Table("Comments", ("reviewer", "case", "comment"), comments, left=3)]))
    notes = [*crossover_notes(draws), _dash(), _hasty()] if isinstance(results, CrossoverResults) else _set_notes(draws)
    return Report(results.study.title, [*_facts(results), *([profiles] if profiles else [])], made, notes)


def table_3(results: Results, draws: int = DRAWS) -> Table:
    """The paper's Table 3, with what a reader needs to know in its caption."""
    n = len(results.counted)
    cases = len({case.key for case in results.study.cases if case.repeat_of is None})
    note = (
        f"{n} reviewer{'s' * (n != 1)}, {cases} cases. {INTERVALS.format(draws=draws)}. Ranking score: judgements in "
        "which the set was ranked above all others, of all that ranked the sets. Sum and maximum: of the scores (0 to "
        f"3) of a set, averaged over the n judgements in which all its reasons were scored. {_denominators(results)}"
    )
    return _quality_table("Quality of the reasons as judged by experts", results, "all", note, "tab:study-quality")


def _denominators(results: Results, group: str = "all") -> str:
    """The n of each source."""
    counts = ", ".join(f"{column.average_sum.n} ({column.source})" for column in results.table[group])
    return f"n = {counts}."


def _quality_table(caption: str, results: Results, group: str, note: str, label: str = "") -> Table:
    columns = results.table[group]
    return Table(caption, ("", *results.study.sources), _quality_rows(columns), note=note, label=label)


def _quality_rows(columns: tuple[SetScores, ...]) -> tuple[tuple[str, ...], ...]:
    return (
        ("Ranking score", *(estimate_text(c.ranking_score, 0, of=True) for c in columns)),
        ("Average sum per case", *(estimate_text(c.average_sum, n=False) for c in columns)),
        ("Average maximum per case", *(estimate_text(c.average_max, n=False) for c in columns)),
    )


def _set_sections(results: Results, draws: int) -> list[Section]:
    quality: list[Any] = [table_3(results, draws)]
    for group in results.table:
        if group != "all":
            caption = f"Quality of the reasons: {OUTCOME_NAMES[group]}"
            quality.append(_quality_table(caption, results, group, _denominators(results, group)))
    if results.differences:
        quality.append(
            Table(
                "Paired differences",
                ("measure", "sources", "difference per case", "sign-flip test p"),
                tuple(
                    (d.measure, f"{d.first} − {d.second}", estimate_text(d.estimate), p_text(d.p_value))
                    for d in results.differences
                ),
                left=2,
                note="Averaged over the reviewers of a case, then over the n cases; a case is the unit of the test.",
                label="tab:study-differences",
            )
        )
    compared = [*results.comparisons, *([results.position] if results.position and results.position.total else [])]
    if compared:
        rows = tuple(
            (
                f"{c.first} : {c.second}",
                c.who,
                str(c.wins),
                str(c.ties),
                str(c.losses),
                p_text(c.p_value),
                estimate_text(c.win_share),
            )
            for c in compared
        )
        columns_of_wins = ("sets", "reviewer", "wins", "ties", "losses", "sign test p", "share of wins")
        quality.append(Table("Which set was ranked higher", columns_of_wins, rows, left=2))
    further: list[Any] = []
    for group, columns in results.by_familiarity.items():
        counts = ", ".join(f"{column.average_sum.n} ({column.source})" for column in columns)
        caption, header = f"By familiarity: {group}", ("", *results.study.sources)
        further.append(Table(caption, header, _quality_rows(columns), note=f"n = {counts}."))
    if results.trust:
        rows_of_trust = tuple((arm, estimate_text(estimate)) for arm, estimate in results.trust.items())
        further.append(Table("Trust in the prediction (0 to 3)", ("arm", "average"), rows_of_trust))
    made = [Section("Quality of the reasons", [*quality, *all_plots(results)])]
    if further:
        made.append(Section("By familiarity and trust", further))
    return [*made, *_people(results)]


def _people(results: Results | CrossoverResults) -> list[Section]:
    agreement = tuple((a.question, a.who, a.measure, estimate_text(a.estimate)) for a in results.agreement)
    rows = tuple(
        (
            r.name,
            "" if r.finished else "unfinished" + (", counted" if r.name in results.counted else ", left out"),
            "hasty" if r.hasty else "",
            f"{r.complete}/{r.total}",
            str(r.unanswered),
            str(r.cannot_judge),
            figure_text(r.minutes, 2),
        )
        for r in results.reviewers
    )
    columns = ("reviewer", "state", "flag", "complete cases", "unanswered", "cannot judge", "median minutes per case")
    known = results.familiarity
    blocks: list[Any] = [Table("Reviewers", columns, rows, left=3)]
    total = sum(known.values())
    row = tuple(f"{known[answer]}/{total}" for answer in ("yes", "kind_of", "no"))
    blocks.append(Table("Familiar with the terms", ("yes", "kind of", "no"), (row,), left=0))
    made = [Section("Reviewers", blocks)]
    if agreement:
        table = Table("Agreement", ("question", "who", "measure", "agreement"), agreement, left=3)
        made.insert(0, Section("Agreement", [table]))
    return made


def _facts(results: Results | CrossoverResults) -> list[str]:
    study = results.study
    firsts = [case for case in study.cases if case.repeat_of is None]
    repeats = len(study.cases) - len(firsts)
    outcomes = ", ".join(
        f"{sum(c.outcome == o for c in firsts)} {name}"
        for o, name in OUTCOME_NAMES.items()
        if any(c.outcome == o for c in firsts)
    )
    lines = [
        f"Sources: {', '.join(study.sources)}; up to {study.per_set} reasons per set; sampled with seed {study.seed}.",
        f"Cases: {len(firsts)} ({outcomes}).",
    ]
    if study.same_sets_left_out:
        lines.append(f"Pairs left out because two sources give the same reasons: {study.same_sets_left_out}.")
    if repeats:
        lines.append(f"Cases shown a second time, used only for self-consistency: {repeats}.")
    if study.planted_bias != "none":
        words = "says yes" if study.planted_bias == "overcalls" else "says no"
        lines.append(f"Planted bias: whenever the prediction is wrong, it {words}.")
    if study.without_rationales:
        lines.append(f"Cases judged without reasons, sampled for each reviewer: {study.without_rationales}.")
    unfinished = [r.name for r in results.reviewers if not r.finished]
    rule = (
        "including unfinished ones, as requested"
        if results.everyone_counts
        else "those who answered every question of every case"
    )
    lines.append(f"Reviewers with answers: {len(results.reviewers)}; in the figures: {len(results.counted)} ({rule}).")
    if unfinished and not results.everyone_counts:
        lines.append(f"Left out as unfinished: {', '.join(unfinished)}.")
    return lines


def _set_notes(draws: int) -> list[str]:
    return [
        f"{INTERVALS.format(draws=draws)}; n is the number of judgements or cases behind a figure.",
        "The sign test is exact and two-sided, without ties. The sign-flip test is two-sided; it is exact for up to 16 "
        "cases that differ, and uses 10,000 random patterns for more.",
        _dash(),
        "“Cannot judge” counts as an answer, but not as a score: a set with one is left out of sums and maxima.",
        _hasty(),
    ]


def _dash() -> str:
    return (
        "A dash means that a figure is undefined: there are too few answers, or all are equal. κ and α are not "
        f"shown for fewer than {FEWEST_UNITS} shared units."
    )


def _hasty() -> str:
    return (
        f"A reviewer is flagged as hasty if more than {100 * HASTY_SHARE:.0f} % of the complete cases took less than "
        f"{HASTY:g} second per answer. Hasty reviewers are not excluded."
    )


def profiles_line(opened: OpenStudy) -> str:
    """Specialties and years of those who named them, apart from names and pseudonyms."""
    people = [p for p in opened.access.reviewers() if p.consented_at is not None]
    specialties = sorted({p.specialty for p in people if p.specialty})
    years = [p.years for p in people if p.years is not None]
    parts = []
    if specialties:
        parts.append(f"specialties: {', '.join(specialties)}")
    if years:
        parts.append(f"years in practice: median {median(years):g}, {min(years)} to {max(years)} (n = {len(years)})")
    return f"Reviewers' {'; '.join(parts)}." if parts else ""


def latex(report: Report) -> str:
    """The tables as a document that compiles by itself; comments, which may hold any character, are left out."""
    tables = [table for table in report.tables if table.caption != "Comments"]
    lines = [
        "\\documentclass{article}",
        RULES,
        "\\addtolength{\\textwidth}{4cm}\\addtolength{\\oddsidemargin}{-2cm}",
        "\\begin{document}",
        *("{\\footnotesize\n" + table.latex() + "\n}\\clearpage" for table in tables),
        "\\end{document}",
        "",
    ]
    return _settable("\n".join(lines))


def _settable(text: str) -> str:
    return "".join(c if ord(c) <= LONGEST_LATIN else "?" for c in text)


def as_json(results: Results | CrossoverResults) -> dict[str, Any]:
    """The figures for machines; what is not defined is null."""
    record = {key: value for key, value in asdict(results).items() if key != "study"}
    study = results.study
    about = {"title": study.title, "protocol": study.protocol, "sources": list(study.sources)}
    finished = {r.name: r.finished for r in results.reviewers}
    plain: dict[str, Any] = _plain({**about, **record, "finished": finished})
    return plain


def study_results(
    opened: OpenStudy,
    draws: int = DRAWS,
    seed: int = 0,
    names: bool = False,
    include_unfinished: bool = False,
    sensitivity: bool = False,
) -> Results | CrossoverResults:
    """The results of a study of either protocol; ``sensitivity`` adds mixed models to a crossover."""
    answered = judgements(opened, pseudonyms=not names)
    if opened.study.is_crossover:
        return analyse_crossover(opened.study, answered, draws, seed, include_unfinished, sensitivity)
    return analyse(opened.study, answered, draws, seed, include_unfinished)


def html_report(opened: OpenStudy) -> str:
    """The report as it stands, one page."""
    return build_report(study_results(opened), profiles=profiles_line(opened)).html()


def write_report(
    opened: OpenStudy,
    out: Path,
    draws: int = DRAWS,
    seed: int = 0,
    names: bool = False,
    include_unfinished: bool = False,
) -> Results | CrossoverResults:
    """Write the report and the raw answers into a folder; only their owner may read the files."""
    results = study_results(opened, draws, seed, names, include_unfinished, sensitivity=True)
    report = build_report(results, draws, profiles_line(opened))
    files = {
        "report.md": report.markdown(),
        "report.tex": latex(report),
        "report.html": report.html(),
        "results.json": to_json(as_json(results)),
        "answers.csv": answers_csv(opened, pseudonyms=not names),
        "times.csv": times_csv(opened, pseudonyms=not names),
    }
    if isinstance(results, Results):
        files["table3.tex"] = _settable(f"{RULES}\n{table_3(results, draws).latex()}\n")
    for name, text in files.items():
        write_text(out / name, text, PRIVATE)
    return results


def _plain(value: Any) -> Any:
    """The same with null for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value
