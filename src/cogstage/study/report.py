"""The report of a study as Markdown, LaTeX and one self-contained HTML page, all from the same tables."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cogstage.artefact import software_version, to_json, write_text
from cogstage.study.agreement import Estimate
from cogstage.study.export import answers_csv, times_csv
from cogstage.study.folder import OpenStudy
from cogstage.study.results import DRAWS, Results, analyse, judgements

OUTCOME_NAMES = {
    "all": "all cases",
    "true_positive": "correctly predicted positives",
    "false_positive": "false positives",
    "false_negative": "false negatives",
}
NOTE = (
    "Brackets hold 95 % intervals from {draws} bootstrap samples of whole cases. The ranking score is how often a set "
    "was ranked above all others; sums and maxima are of the scores (0 to 3) of the rationales in a set. The sign test "
    "is exact and two-sided and leaves ties out. A dash stands where a figure is not defined: too few answers, or all "
    "of them the same."
)


@dataclass(frozen=True)
class ReportTable:
    """A table with its caption; all cells are text."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def show(estimate: Estimate, digits: int = 2) -> str:
    """A figure with its interval."""
    if not estimate.defined:
        return "–"
    if math.isnan(estimate.low):
        return f"{estimate.value:.{digits}f}"
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def report_tables(results: Results) -> list[ReportTable]:
    """Every table that the answers allow."""
    tables = []
    for group, columns in results.table.items():
        rows = (
            ("Ranking score", *(show(c.ranking_score, 0) for c in columns)),
            ("Average sum a case", *(show(c.average_sum) for c in columns)),
            ("Average maximum a case", *(show(c.average_max) for c in columns)),
        )
        caption = f"Quality of the rationales: {OUTCOME_NAMES[group]}"
        tables.append(ReportTable(caption, ("", *(c.source for c in columns)), rows))
    compared = [*results.comparisons, *([results.position] if results.position and results.position.total else [])]
    if compared:
        rows_of = [
            (
                f"{c.first} : {c.second}",
                c.who,
                str(c.wins),
                str(c.ties),
                str(c.losses),
                p_value(c.p_value),
                show(c.win_share),
            )
            for c in compared
        ]
        columns_of_wins = ("sets", "reviewer", "wins", "ties", "losses", "sign test p", "share of wins")
        tables.append(ReportTable("Which set was ranked higher", columns_of_wins, tuple(rows_of)))
    if results.agreement:
        rows_of_agreement = tuple(
            (a.question, a.who, a.measure, show(a.estimate), str(a.estimate.n)) for a in results.agreement
        )
        columns_of_agreement = ("question", "who", "measure", "agreement", "units")
        tables.append(ReportTable("Agreement", columns_of_agreement, rows_of_agreement))
    if results.trust:
        rows_of_trust = tuple((arm, show(estimate)) for arm, estimate in results.trust.items())
        tables.append(ReportTable("Trust in the prediction (0 to 3)", ("arm", "average"), rows_of_trust))
    people = tuple((name, str(results.complete[name]), f"{results.minutes[name]:.1f}") for name in results.reviewers)
    tables.append(ReportTable("Reviewers", ("reviewer", "complete cases", "median minutes a case"), people))
    known = results.familiarity
    row = (str(known["yes"]), str(known["kind_of"]), str(known["no"]))
    tables.append(ReportTable("Familiar with the terms", ("yes", "kind of", "no"), (row,)))
    return tables


def p_value(p: float) -> str:
    """A p value as papers print it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _facts(results: Results) -> list[str]:
    study = results.study
    firsts = [case for case in study.cases if case.repeat_of is None]
    repeats = len(study.cases) - len(firsts)
    outcomes = ", ".join(
        f"{sum(c.outcome == o for c in firsts)} {name}"
        for o, name in OUTCOME_NAMES.items()
        if any(c.outcome == o for c in firsts)
    )
    lines = [
        f"Sources: {', '.join(study.sources)}; up to {study.per_set} rationales a set; drawn with seed {study.seed}.",
        f"Cases: {len(firsts)} ({outcomes}).",
    ]
    if repeats:
        lines.append(f"Cases shown a second time, which counts for self-consistency alone: {repeats}.")
    if study.without_rationales:
        lines.append(f"Cases judged without rationales, drawn anew for each reviewer: {study.without_rationales}.")
    return [*lines, f"Reviewers with answers: {len(results.reviewers)}."]


def markdown(results: Results, draws: int = DRAWS) -> str:
    """The report as Markdown."""
    lines = [f"# {_md(results.study.title)}", "", *(f"- {_md(fact)}" for fact in _facts(results)), ""]
    for table in report_tables(results):
        lines += [f"## {_md(table.caption)}", "", "| " + " | ".join(map(_md, table.header)) + " |"]
        lines.append("|" + "---|" * len(table.header))
        lines += ["| " + " | ".join(map(_md, row)) + " |" for row in table.rows]
        lines.append("")
    return "\n".join([*lines, NOTE.format(draws=f"{draws:,}"), "", f"Made with cogstage {software_version()}.", ""])


def latex(results: Results, draws: int = DRAWS) -> str:
    """The tables as LaTeX (booktabs), to be put into a paper."""
    lines = [
        f"% {_one_line(results.study.title)}; made with cogstage {software_version()}",
        "% needs \\usepackage{booktabs}",
    ]
    for table in report_tables(results):
        columns = "l" + "r" * (len(table.header) - 1)
        lines += ["\\begin{table}", "\\centering", f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
        lines += [" & ".join(map(_tex, table.header)) + " \\\\", "\\midrule"]
        lines += [" & ".join(map(_tex, row)) + " \\\\" for row in table.rows]
        lines += ["\\bottomrule", "\\end{tabular}", f"\\caption{{{_tex(table.caption)}.}}", "\\end{table}", ""]
    return "\n".join([*lines, f"% {NOTE.format(draws=draws)}", ""])


def html(results: Results, draws: int = DRAWS) -> str:
    """The report as one page that needs nothing else: styles and pictures stand inside."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from cogstage.study.plots import all_plots

    templates = Environment(
        loader=PackageLoader("cogstage.study"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return templates.get_template("report.html").render(
        title=results.study.title,
        facts=_facts(results),
        tables=report_tables(results),
        plots=[(caption, Markup(svg)) for caption, svg in all_plots(results)],
        note=NOTE.format(draws=f"{draws:,}"),
        version=software_version(),
    )


def as_json(results: Results) -> dict[str, Any]:
    """The figures for machines; what is not defined is null."""
    return {
        "title": results.study.title,
        "sources": list(results.study.sources),
        "reviewers": list(results.reviewers),
        "complete": results.complete,
        "table": _plain({group: [asdict(entry) for entry in columns] for group, columns in results.table.items()}),
        "comparisons": _plain([asdict(entry) for entry in results.comparisons]),
        "position": _plain(asdict(results.position)) if results.position else None,
        "agreement": _plain([asdict(entry) for entry in results.agreement]),
        "trust": _plain({arm: asdict(estimate) for arm, estimate in results.trust.items()}),
        "familiarity": results.familiarity,
        "minutes": results.minutes,
    }


def write_report(opened: OpenStudy, out: Path, draws: int = DRAWS, seed: int = 0) -> Results:
    """Write ``report.md``, ``report.tex``, ``report.html``, ``results.json``, ``answers.csv`` and ``times.csv``."""
    results = analyse(opened.study, judgements(opened), draws, seed)
    write_text(out / "report.md", markdown(results, draws))
    write_text(out / "report.tex", latex(results, draws))
    write_text(out / "report.html", html(results, draws))
    write_text(out / "results.json", to_json(as_json(results)))
    write_text(out / "answers.csv", answers_csv(opened))
    write_text(out / "times.csv", times_csv(opened))
    return results


def _plain(value: Any) -> Any:
    """The same with null for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


_FIGURE = re.compile(r"[-0-9., \[\]]*")  # a number with its interval needs no escapes


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _md(text: str) -> str:
    if _FIGURE.fullmatch(text):
        return text
    text = _one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return "".join("\\" + c if c in "\\`*_[]|#" else c for c in text)


_TEX = {
    **{c: "\\" + c for c in "&%$#_{}"},
    "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "<": "$<$", ">": "$>$", "κ": "$\\kappa$", "α": "$\\alpha$", "–": "--",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in _one_line(text))
