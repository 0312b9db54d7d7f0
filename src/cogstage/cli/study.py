"""``cogstage study``: run a blind expert study."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import typer

from cogstage import choices
from cogstage.cli import options, study_run
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import print_json, progress
from cogstage.cli.options import input_option, model_option, output_option
from cogstage.errors import UsageError

app = CommandGroup("Run a blind expert study of rationales: create, serve, report.")


@app.command()
def create(
    source: list[str] = input_option(
        ...,
        "--source",
        "-s",
        metavar="NAME=PATH",
        help="Source of reasons: prediction records, a table of reasons, or a model or graph folder. "
        "Give two or more, or one for crossover.",
    ),
    out: Path = options.out("Output folder; an existing study is never replaced."),
    dataset: Path | None = options.dataset(
        "Data set folder; provides the labels of its test pairs. Without it, records need a `label` field.", None
    ),
    corrections: Path | None = options.CORRECTIONS,
    protocol: choices.ProtocolName = model_option(
        "sets", help="Study protocol: sets asks whose reasons help more; crossover asks whether reasons help at all."
    ),
    pairs_per_reviewer: int = options.pairs_per_reviewer(
        "Number of pairs per reviewer, for --protocol crossover; half of the predictions are wrong."
    ),
    evidence_arm: bool = model_option(
        False, "--evidence-arm", help="Add a third crossover arm: the reasons without the prediction."
    ),
    planted_bias: choices.PlantedBias = model_option(
        "none", help="Direction of the wrong predictions of a crossover: all say yes (overcalls) or no (undercalls)."
    ),
    cases: int = model_option(30, help="Number of correctly predicted positives.", metavar="N"),
    false_positives: int = model_option(0, help="Number of extra cases: negatives predicted positive.", metavar="N"),
    false_negatives: int = model_option(0, help="Number of extra cases: positives predicted negative.", metavar="N"),
    repeats: int = model_option(
        0, help="Number of cases shown twice, to measure how consistent reviewers are.", metavar="N"
    ),
    without_rationales: int = model_option(
        0, help="Number of extra cases judged without reasons; every case then also asks for trust.", metavar="N"
    ),
    per_set: int = options.reasons("Number of reasons (in each set).", 5),
    relation: str | None = options.relation("Relation. Default: all relations."),
    judged_by: choices.JudgedBy = model_option(
        "all", help="Sources that must predict a case correctly: all, or only the first."
    ),
    match_known_facts: bool = model_option(
        False,
        "--match-known-facts",
        help="Give all sets of a case the same number of known facts, so that they do not reveal the source.",
    ),
    threshold: float = model_option(0.5, help="Probability at which a prediction counts as positive.", metavar="P"),
    title: str | None = output_option(None, help="Title shown to readers.", metavar="TEXT"),
    consent: Path | None = output_option(
        None, help="Text file that reviewers must agree to before they start.", metavar="FILE"
    ),
    questions: Path | None = input_option(
        None,
        "--questions",
        help="Table of further questions (columns name, type, text, choices, shown_if, expected).",
        metavar="TABLE",
    ),
    practice: Path | None = input_option(
        None,
        "--practice",
        help="Table of reasons with label and feedback: practice cases of a crossover whose answer is known.",
        metavar="TABLE",
    ),
    contact: str = output_option("", help="Contact shown to reviewers.", metavar="TEXT"),
    seed: int = options.seed(),
    database: str | None = options.DATABASE,
    as_json: bool = options.as_json(),
) -> None:
    """Create a study: sample its cases and print the administrator's password once.

    Example: cogstage study create -s open=open.jsonl -s closed=closed.jsonl --repeats 5 --seed 1 -o study
    """
    from cogstage.study.create import create_study
    from cogstage.study.draw import StudyOptions
    from cogstage.study.practice import read_practice
    from cogstage.study.questions import read_questions

    drawing = StudyOptions(
        title=title or "",
        protocol=protocol,
        pairs_per_reviewer=pairs_per_reviewer,
        evidence_arm=evidence_arm,
        planted_bias=planted_bias,
        cases=cases,
        false_positives=false_positives,
        false_negatives=false_negatives,
        repeats=repeats,
        without_rationales=without_rationales,
        per_set=per_set,
        relation=relation,
        judged_by=judged_by,
        match_known_facts=match_known_facts,
        threshold=threshold,
        seed=seed,
        consent=_text_of(consent) if consent else "",
        contact=contact,
        practice=read_practice(practice, per_set) if practice else (),
        questions=read_questions(questions) if questions else (),
    )
    study, password = create_study(out, source, drawing, dataset, database, progress(), corrections)
    if as_json:
        print_json(
            {
                "study": str(out),
                "id": study.id,
                "cases": len(study.cases),
                "same_sets_left_out": study.same_sets_left_out,
                "administrator_password": password,
            }
        )
        return
    typer.echo(f"Study with {len(study.cases)} cases in {out}.")
    if study.same_sets_left_out:
        typer.echo(f"Left out: {study.same_sets_left_out} pairs for which two sources give the same reasons.")
    typer.echo(f"Administrator's password (shown only now): {password}")
    typer.echo(f"Next: cogstage study serve {out}")


@app.command()
def report(
    study: Path = options.STUDY,
    out: Path = options.out("Output folder, for the report and the raw answers."),
    names: bool = output_option(False, "--names", help="Show reviewers' names instead of R1, R2 and so on."),
    include_unfinished: bool = model_option(
        False, "--include-unfinished", help="Include reviewers who did not answer everything in the main figures."
    ),
    draws: int = model_option(2000, min=10, max=100_000, help="Number of bootstrap samples per interval.", metavar="N"),
    seed: int = options.seed(),
    database: str | None = options.DATABASE,
    as_json: bool = options.as_json(),
) -> None:
    """Write a report with intervals, significance tests and agreement, and the raw answers.

    Example: cogstage study report study -o report
    """
    from cogstage.study.folder import open_folder
    from cogstage.study.report import as_json as plain
    from cogstage.study.report import build_report, write_report

    with closing(open_folder(study, database)) as opened:
        results = write_report(opened, out, draws, seed, names, include_unfinished)
    if as_json:
        print_json(plain(results))
        return
    typer.echo(build_report(results, draws).text())
    if results.reviewers and not results.counted:
        typer.echo("No reviewer has finished: --include-unfinished shows the figures so far.", err=True)
    typer.echo(f"Written to {out}: {', '.join(sorted(path.name for path in out.iterdir()))}", err=True)


@app.command()
def power(
    accuracy: float = model_option(0.75, help="Expected share of correct judgements without reasons.", metavar="P"),
    gain: float = model_option(0.10, help="Smallest gain from reasons that the study should detect.", metavar="P"),
    evidence_gain: float | None = model_option(
        None, help="Add an arm with reasons but no prediction, and this gain from it.", metavar="P"
    ),
    reviewers: int = model_option(24, help="Number of reviewers; two arms take twos, three take sixes.", metavar="N"),
    pairs_per_reviewer: int = options.pairs_per_reviewer(
        "Number of pairs per reviewer; an equal part is shown in each arm."
    ),
    reviewer_spread: float = model_option(0.5, help="Standard deviation between reviewers, in log-odds.", metavar="SD"),
    pair_spread: float = model_option(1.5, help="Standard deviation between pairs, in log-odds.", metavar="SD"),
    studies: int = model_option(
        1000, min=100, max=100_000, help="Number of simulated studies per design.", metavar="N"
    ),
    seed: int = options.seed(),
    as_json: bool = options.as_json(),
) -> None:
    """Estimate by simulation how many reviewers and pairs a crossover study needs.

    Example: cogstage study power --accuracy 0.7 --gain 0.1
    """
    from cogstage.study.power import Scenario, plan, plan_text

    scenario = Scenario(accuracy, gain, reviewer_spread, pair_spread, reviewers, pairs_per_reviewer, evidence_gain)
    made = plan(scenario, studies, seed)
    if as_json:
        table = [{"reviewers": r, "pairs": p, "power": value} for (r, p), value in made.table.items()]
        powers = [{"first": one, "second": other, "power": share} for (one, other), share in made.powers.items()]
        print_json(
            {"power": made.power, "contrasts": powers, "reviewers_for_80_percent": made.needed, "designs": table}
        )
    else:
        typer.echo(plan_text(made, scenario, studies))


for name, command in study_run.COMMANDS.items():
    app.command(name)(command)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as text: {error}") from None
